"""Why Table 2's quality-driven ensembles miss the published ones: our ensembles with something changed at a time.

Some networks fail: their bounds cross on many rows, where the loss sees no width, and the spread of members then makes
the whole ensemble wide. Others rest on a plateau of constant bounds for longer than the patience. So networks are
trained without patience, failed members are left out, or both; with the settings that were found, or the plain ones,
and with five times the steps where 10,000 are few epochs (two splits). Bounds of an ensemble are the mean of its
members', farther out by 1.96 standard deviations, or the mean alone. A member has failed if its loss on the rows that
it stops on is more than three times the least one of its ensemble; test rows have no part in that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from experiments import uci_networks, uci_tuning
from experiments.data import Array, official
from experiments.stacked import Member, Stack
from experiments.uci_networks import stacked
from experiments.uci_splits import Parts, in_units, judged, tables
from experiments.uci_tuning import START, Settings, driven, ensemble, scaled, tuned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.protocol import Row, Unit

LEFT_OUT, PATIENT, BOTH = "QD-Ens, failed left out", "QD-Ens, no patience", "QD-Ens, both"
PLAIN, MEAN = "QD-Ens, both, not tuned", "QD-Ens, both, not tuned, mean bounds"
LONG, LONG_MEAN = f"{PLAIN}, five times the steps", f"{MEAN}, five times the steps"
FAILED = 3.0  # times the least loss
LONGER, LONG_FROM, LONG_SPLITS = 5, 5_000, 2  # times the steps, from so many training rows on, on so many splits


@dataclass(frozen=True)
class Change:
    """How networks are trained, and what is made of them."""

    labels: tuple[str, ...]
    is_tuned: bool = True
    has_patience: bool = False
    longer: int = 1


CHANGES = (
    Change((LEFT_OUT,), has_patience=True),
    Change((PATIENT, BOTH)),
    Change((PLAIN, MEAN), is_tuned=False),
    Change((LONG, LONG_MEAN), is_tuned=False, longer=LONGER),
)


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Ensembles on each split, and how many of their members failed."""
    name = str(unit[0])
    whole = official(name)
    parts = [scaled(in_units(whole, split)) for split in range(settings.n_splits(name))]
    is_long = len(parts[0].y) >= LONG_FROM
    return [
        row
        for change in CHANGES
        if change.longer == 1 or is_long
        for row in _changed(settings, name, parts[: len(parts) if change.longer == 1 else LONG_SPLITS], change, rng)
    ]


def _changed(
    settings: Settings, name: str, parts: Sequence[Parts], change: Change, rng: np.random.Generator
) -> list[Row]:
    """Ensembles that are trained in one way."""
    settings = replace(
        settings, is_tuned=settings.is_tuned and change.is_tuned, max_steps=change.longer * settings.max_steps
    )
    groups = uci_tuning.member_rows(np.arange(len(parts[0].y)), settings.n_members)
    how = tuned(settings, name, uci_tuning.QD, len(groups[0][0]))
    if not change.has_patience:
        how = replace(how, patience=how.max_epochs)
    members = [Member(k, rows, stop, how, int(rng.integers(2**31))) for k in range(len(parts)) for rows, stop in groups]
    stack = Stack(*stacked(parts), members, driven, start=START)
    stack.train(how.max_epochs)
    outputs = stack.outputs()[:, len(parts[0].y) :].reshape(len(parts), len(groups), -1, 2)
    losses = stack.least.numpy().reshape(len(parts), len(groups))
    fails = losses > FAILED * losses.min(axis=1, keepdims=True)
    return [
        {
            "dataset": name,
            "split": split,
            **judged(own, label, _bounds(outputs[split][~fails[split] | (label == PATIENT)], label)),
            "failed": int(fails[split].sum()),
        }
        for label in change.labels
        for split, own in enumerate(parts)
    ]


def _bounds(outputs: Array, label: str) -> Array:
    """Intervals of members (k, n, 2) as those of one ensemble (n, 2)."""
    return np.sort(outputs.mean(axis=0), axis=1) if label in {MEAN, LONG_MEAN} else ensemble(outputs)


def headline(rows: Sequence[Row]) -> str:
    """How many members fail, in one sentence."""

    def failed(method: str) -> float:
        return float(np.mean([float(row["failed"]) for row in rows if row["method"] == method]))

    return (
        f"Of the {Settings().n_members} members of a tuned quality-driven ensemble {failed(LEFT_OUT):.1f} fail on "
        f"average, {failed(BOTH):.1f} without patience."
    )


EXPERIMENT = replace(
    uci_networks.PAPER,
    columns="qd-reasons",
    title="quality-driven ensembles with one thing changed at a time (Table 2, QD-Ens, reasons)",
    measure=measure,
    tables=tables,
    headline=headline,
    finding=headline,
)
