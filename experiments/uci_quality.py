"""Why Table 2's quality-driven ensembles miss the published ones: the tuned ensembles with one thing changed at a time.

Some networks fail: their bounds cross on many rows, where the loss sees no width, and the spread of members then makes
the whole ensemble wide. Others rest on a plateau of constant bounds for longer than the patience. So networks are
trained without patience, failed members are left out, or both. A member has failed if its loss on the rows that it
stops on is more than three times the least one of its ensemble; test rows have no part in that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from experiments import uci_networks, uci_tuning
from experiments.data import official
from experiments.stacked import Member, Stack
from experiments.uci_networks import stacked
from experiments.uci_splits import in_units, judged, tables
from experiments.uci_tuning import START, Settings, driven, ensemble, scaled, tuned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.protocol import Row, Unit

LEFT_OUT, PATIENT, BOTH = "QD-Ens, failed left out", "QD-Ens, no patience", "QD-Ens, both"
FAILED = 3.0  # times the least loss


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Ensembles on each split, and how many of their members failed."""
    name = str(unit[0])
    whole = official(name)
    parts = [scaled(in_units(whole, split)) for split in range(settings.n_splits(name))]
    groups = uci_tuning.member_rows(np.arange(len(parts[0].y)), settings.n_members)
    how = tuned(settings, name, uci_tuning.QD, len(groups[0][0]))
    found: list[Row] = []
    for patience, labels in ((how.patience, (LEFT_OUT,)), (how.max_epochs, (PATIENT, BOTH))):
        patient = replace(how, patience=patience)
        members = [
            Member(k, rows, stop, patient, int(rng.integers(2**31))) for k in range(len(parts)) for rows, stop in groups
        ]
        stack = Stack(*stacked(parts), members, driven, start=START)
        stack.train(how.max_epochs)
        outputs = stack.outputs()[:, len(parts[0].y) :].reshape(len(parts), len(groups), -1, 2)
        losses = stack.least.numpy().reshape(len(parts), len(groups))
        fails = losses > FAILED * losses.min(axis=1, keepdims=True)
        found += [
            {
                "dataset": name,
                "split": split,
                **judged(own, label, ensemble(outputs[split][~fails[split] | (label == PATIENT)])),
                "failed": int(fails[split].sum()),
            }
            for label in labels
            for split, own in enumerate(parts)
        ]
    return found


def headline(rows: Sequence[Row]) -> str:
    """How many members fail, in one sentence."""

    def failed(method: str) -> float:
        return float(np.mean([float(row["failed"]) for row in rows if row["method"] == method]))

    return (
        f"Of the members of a tuned quality-driven ensemble {failed(LEFT_OUT):.1f} fail on average, {failed(BOTH):.1f} "
        "without patience."
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
