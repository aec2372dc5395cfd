"""Where does the error bound of Appendix A.1 hold: for descents that have arrived, or also for those that stalled?

The bound takes a small gradient for nearness to the root. With beta = 1000 the gradient is also small wherever there
are no errors within a few thousandths, so that a descent stops there. Neurons as printed learn from absolute normal
errors, level .95; each is told by its own report whether it arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.printed import BETA, start, trained
from experiments.protocol import Experiment, Row, Unit
from experiments.theory import LEVEL, ROUNDING
from pimeter import quantile

KINDS = ("arrived", "stalled")


@dataclass(frozen=True)
class Settings:
    """Sample lengths, and descents of each."""

    seed: int = 0
    lengths: tuple[int, ...] = (20, 100, 1000, 10_000)
    n_descents: int = 100


QUICK = Settings(lengths=(20, 100), n_descents=5)


def units(settings: Settings) -> list[Unit]:
    """One per sample length."""
    return [(m,) for m in settings.lengths]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each descent: whether it arrived, its distance from the root, and the printed bound of it."""
    m = int(unit[0])
    errors = np.abs(rng.standard_normal((m, settings.n_descents)))
    weights, arrived, bounds = trained(errors, LEVEL)
    root = np.asarray(quantile(errors, LEVEL, axis=0, beta=BETA))
    distance = np.abs(np.where(np.isnan(weights), start(LEVEL), weights) - root)
    return [
        {"m": m, "arrived": int(is_there), "distance": float(far), "bound": float(bound)}
        for is_there, far, bound in zip(arrived, distance, bounds, strict=True)
    ]


# What the rows say.


def within(rows: Sequence[Row], kind: str = "", factor: float = 1.0, m: int | None = None) -> float:
    """Of the descents (of one kind, of one length), the part that is no farther from the root than bound x factor."""
    own = [row for row in rows if m in (None, row["m"]) and kind in ("", KINDS[1 - int(row["arrived"])])]
    near = [float(row["distance"]) <= factor * float(row["bound"]) + ROUNDING for row in own]
    return float(np.mean(near)) if near else float("nan")


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """By sample length: how many descents arrived, and what part of each kind is within the bound."""
    lines: list[Row] = []
    for m in dict.fromkeys(int(row["m"]) for row in rows):
        held = [row for row in rows if row["m"] == m]
        medians = {key: float(np.median([float(row[key]) for row in held])) for key in ("distance", "bound")}
        lines.append(
            {
                "m": m,
                "descents": len(held),
                "arrived": sum(int(row["arrived"]) for row in held),
                **{f"{kind}, within": within(rows, kind, m=m) for kind in KINDS},
                "all, within": within(rows, m=m),
                "all, within twice": within(rows, factor=2.0, m=m),
                **{f"median {key}": f"{value:.2g}" for key, value in medians.items()},
            }
        )
    return {"Descents, and what part of them is as near to the root as the bound, or twice the bound, says": lines}


def headline(rows: Sequence[Row]) -> str:
    """Where the bound holds, in one sentence."""
    known = {kind: within(rows, kind) for kind in KINDS}
    parts = [f"{100 * part:.0f} % of the descents that {kind}" for kind, part in known.items() if not np.isnan(part)]
    twice = 100 * within(rows, factor=2.0)
    return f"The printed bound holds for {' and '.join(parts)}, twice the bound for {twice:.0f} % of all."


def finding(rows: Sequence[Row]) -> str:
    """What that says of the bound."""
    return (
        f"{headline(rows)} It is the first term of a series in the gap |F - p|: the error is seldom more than twice as "
        "large, also for a descent that stalled, and it is a bound for neither."
    )


EXPERIMENT = Experiment(
    name="theory",
    columns="bound",
    title="the error bound of Appendix A.1 for descents that arrived and for those that stalled",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    unpublished="The paper measures no bound.",
)
