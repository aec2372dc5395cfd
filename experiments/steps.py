"""Do neurons stall because a descent was not given enough steps? The neuron as printed with 5,000 to 100,000 of them.

The paper prints no number of steps; all other experiments stop after 5,000, or after 200 that come no closer. Here
nothing but the number of steps stops a neuron: first for absolute normal errors, then for the widths of Table 3 (raw
scores of relu networks that are stopped on the test rows). Beside them stands the root of the very same equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.classifiers import LEVEL, deviation, median, scores, shuffled
from experiments.data import Array, Split, classification, classification_files
from experiments.printed import BETA, printed_neuron
from experiments.protocol import Experiment, Row, Unit, paper_rows
from experiments.table3 import DATASETS, LARGE
from pimeter import bandwidth, quantile
from pimeter.paper import outcome_errors
from pimeter.smoothing import SmoothedSample

if TYPE_CHECKING:
    from pimeter.protocols import Flags

NORMAL = "absolute normal errors"
N_RESAMPLES = 10_000
SMALL = tuple(name for name, one in DATASETS.items() if one.training != LARGE)


@dataclass(frozen=True)
class Settings:
    """Numbers of steps; sample lengths and descents of normal errors; datasets and shuffles of Table 3."""

    seed: int = 0
    steps: tuple[int, ...] = (5_000, 20_000, 100_000)
    lengths: tuple[int, ...] = (20, 100, 1000)
    n_descents: int = 100
    datasets: tuple[str, ...] = SMALL
    n_shuffles: int = 30
    max_epochs: int = 200
    test: float = 0.2
    held_out: float = 0.1


QUICK = Settings(steps=(20, 50), lengths=(20,), n_descents=3, datasets=("sonar",), n_shuffles=2, max_epochs=10)


def units(settings: Settings) -> list[Unit]:
    """One per dataset, and one per sample length."""
    return [*((name, 0) for name in settings.datasets), *((NORMAL, m) for m in settings.lengths)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each descent, or shuffle, and number of steps."""
    return _normal(settings, int(unit[1]), rng) if unit[0] == NORMAL else _table3(settings, str(unit[0]), rng)


def _normal(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    errors = np.abs(rng.standard_normal((m, settings.n_descents)))
    root = np.asarray(quantile(errors, LEVEL, axis=0, beta=BETA))
    return [
        _row(NORMAL, m, i, n, float(weights[i]), float(root[i]), bool(arrived[i]))
        for n, (weights, arrived) in _descents([*errors.T], settings.steps).items()
        for i in range(settings.n_descents)
    ]


def _table3(settings: Settings, name: str, rng: np.random.Generator) -> list[Row]:
    X, y = classification(name)
    splits = [shuffled(len(y), settings.test, settings.held_out, rng) for _ in range(settings.n_shuffles)]
    peeking = [Split(np.concatenate(split[:2]), split.test, split.test) for split in splits]
    how = replace(DATASETS[name].training, max_epochs=settings.max_epochs)
    sides, negative = [], []
    for split, score in zip(splits, scores(X, y, peeking, how, rng), strict=True):
        true = y[split.test]
        both = outcome_errors(true, score[split.test])[:2]
        if all(map(len, both)):
            sides.append(both)
            negative.append(float(np.mean(true == 0)))
    found: list[Row] = []
    for n, (weights, arrived) in _descents([errors for both in sides for errors in both], settings.steps).items():
        for i, both in enumerate(sides):
            own = slice(2 * i, 2 * i + 2)
            root = _width(negative[i], [float(quantile(errors, LEVEL, beta=BETA)) for errors in both])
            few, width = min(map(len, both)), _width(negative[i], weights[own].tolist())
            found.append(_row(name, few, i, n, width, root, bool(arrived[own].all())))
    return found


def _row(errors: str, m: int, number: int, steps: int, found: float, root: float, arrived: bool) -> Row:
    return {
        "errors": errors,
        "m": m,
        "number": number,
        "steps": steps,
        "found": found,
        "root": root,
        "arrived": int(arrived),
    }


def _descents(samples: Sequence[Array], steps: Sequence[int]) -> dict[int, tuple[Array, Flags]]:
    """Weights of the closest approach within so many steps, a neuron for each sample, and whether they have arrived.

    Neurons descend side by side, which `fit` does for samples of one length: others are filled up with errors that
    count nothing.
    """
    most, lengths = max(steps), np.array([len(errors) for errors in samples])
    neuron = printed_neuron(LEVEL).set_params(max_iter=most, patience=most)
    columns = [SmoothedSample.of(errors, None, BETA, False) for errors in samples]
    tasks = [neuron._task(column, LEVEL) for column in columns]
    counts = (np.arange(lengths.max()) < lengths[:, None]).astype(float)
    filled = [task._replace(positions=np.resize(task.positions, lengths.max())) for task in tasks]
    path = neuron._descent(filled, counts if lengths.min() < lengths.max() else None, columns[0])
    weights = np.stack([one.smoother.errors(at) for one, at in zip(columns, path.positions.T, strict=True)], axis=1)
    near = [max(0.5 / m, 0.1 * bandwidth.standard_error(LEVEL, m)) for m in lengths.tolist()]  # as `converged_` says it
    found = {}
    for n in steps:
        best = np.nanargmin(path.losses[: n + 1], axis=0)[None]
        weight, loss = (np.take_along_axis(curve, best, axis=0)[0] for curve in (weights, path.losses))
        found[n] = weight, np.sqrt(loss) <= near
    return found


def _width(negative: float, weights: Sequence[float]) -> float:
    """2 delta(ACC) of Table 3, by the fraction of negative rows."""
    return negative * weights[0] + (1.0 - negative) * weights[1]


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """For normal errors how many arrive, and how far off the rest is; for Table 3 the median widths."""
    normal = [row for row in rows if row["errors"] == NORMAL]
    names = [name for name in dict.fromkeys(str(row["errors"]) for row in rows) if name != NORMAL]
    steps = list(dict.fromkeys(int(row["steps"]) for row in rows))
    return {
        "Descents that have arrived, and the RMSE of all to the root of the same equation": [
            {"m": m} | {f"{what}, {n:,} steps": value for n in steps for what, value in _of(normal, m, n).items()}
            for m in dict.fromkeys(int(row["m"]) for row in normal)
        ],
        "Widths of Table 3 by number of steps, medians over shuffles": [line(rows, name) for name in names],
    }


def _of(rows: Sequence[Row], m: int, n: int) -> dict[str, float]:
    own = [row for row in rows if (row["m"], row["steps"]) == (m, n)]
    off = [float(row["found"]) - float(row["root"]) for row in own]
    return {"arrived": float(np.mean([row["arrived"] for row in own])), "RMSE": float(np.sqrt(np.mean(np.square(off))))}


def line(rows: Sequence[Row], name: str) -> Row:
    """Median widths of a dataset by number of steps, and that of the root, beside the published one."""
    own = [row for row in rows if row["errors"] == name]
    theirs = paper_rows("table3", "dataset")[name]
    by_steps: dict[int, list[float]] = {}
    for row in own:
        by_steps.setdefault(int(row["steps"]), []).append(float(row["found"]))
    fewest = min(by_steps)
    return {
        "dataset": name,
        **{f"{n:,} steps": median(widths) for n, widths in by_steps.items()},
        "the root": median([float(row["root"]) for row in own]),
        "way to the root": str(way(rows, name)),
        f"deviation of ours, {fewest:,} steps": deviation(by_steps[fewest]),
        "published": float(theirs["PIM"]),
        "its tolerance": float(theirs["PIM_tolerance"]),
    }


class Way(NamedTuple):
    """What part of the gap to the root more steps close, with an interval: a bootstrap over shuffles."""

    part: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.part:.2f} ({self.low:.2f} to {self.high:.2f})"


def way(rows: Sequence[Row], name: str) -> Way:
    """How far a dataset's median width goes from that of the fewest steps to that of the root."""
    steps = sorted({int(row["steps"]) for row in rows})
    held = {n: {row["number"]: row for row in rows if (row["errors"], row["steps"]) == (name, n)} for n in steps}
    last = held[steps[-1]]
    widths = np.array(
        [[float(held[steps[0]][i]["found"]), float(row["found"]), float(row["root"])] for i, row in last.items()]
    )
    drawn = np.random.default_rng(0).integers(len(widths), size=(N_RESAMPLES, len(widths)))
    few, many, root = np.median(widths[np.concatenate([np.arange(len(widths))[None], drawn])], axis=1).T
    parts = (many - few) / np.where(root > few, root - few, np.nan)
    low, high = np.nanquantile(parts[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Way(float(parts[0]), float(low), float(high))


def arrived(rows: Sequence[Row], n: int | None = None) -> dict[int, float]:
    """By sample length of normal errors, the part of descents that has arrived within n steps, or within the most."""
    normal = [row for row in rows if row["errors"] == NORMAL]
    most = n or max(int(row["steps"]) for row in normal)
    return {m: _of(normal, m, most)["arrived"] for m in sorted({int(row["m"]) for row in normal})}


def ways(rows: Sequence[Row]) -> dict[str, Way]:
    """By dataset, how far more steps bring its width."""
    return {str(name): way(rows, str(name)) for name in dict.fromkeys(row["errors"] for row in rows) if name != NORMAL}


def limited(rows: Sequence[Row]) -> dict[str, float]:
    """Datasets whose width goes more than half of the way to the root's with more steps, beyond chance, and how far."""
    return {name: found.part for name, found in ways(rows).items() if found.low > 0.5}


def finding(rows: Sequence[Row]) -> str:
    """Whether more steps end the stall."""
    steps = sorted({int(row["steps"]) for row in rows})
    before, after = arrived(rows, steps[0]), arrived(rows)
    parts = "; ".join(f"{100 * before[m]:.0f} % and {100 * after[m]:.0f} % at m = {m:,}" for m in before)
    found, moved = ways(rows), limited(rows)
    still = [name for name, one in found.items() if one.high < 0.5]
    open_ = [name for name in found if name not in (*moved, *still)]
    more, less, unknown = (
        ", ".join(f"{name} {found[name]}" for name in names) or "none" for names in (moved, still, open_)
    )
    return (
        f"Of descents for normal errors have arrived after {steps[0]:,} and {steps[-1]:,} steps: {parts}. Table 3's "
        f"width with {steps[-1]:,} steps, as a part of the gap between that with {steps[0]:,} and that of the root "
        f"({100 * LEVEL:.0f} % interval of a bootstrap over shuffles): the interval is above one half on {more}; below "
        f"it on {less}; has it inside on {unknown}."
    )


EXPERIMENT = Experiment(
    name="theory",
    columns="steps",
    title="descents with more steps: do they still stall?",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=finding,
    finding=finding,
    reads=lambda settings: classification_files(settings.datasets),
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
    only_if_named=True,
    unpublished="The paper prints no number of steps.",
)
