"""How badly a class fits a row, from the probabilities of all classes: LAC, APS and RAPS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.conformal.guarantee import rank

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)  # that RAPS chooses from, as its authors do


class Penalty(NamedTuple):
    """RAPS's constants: what each class beyond the first few costs."""

    weight: float = 0.0
    n_free: int = 0


def lac(probabilities: Array, draws: Array | None, penalty: Penalty) -> Array:  # noqa: ARG001
    """One minus the probability of the class."""
    return 1.0 - probabilities


def aps(probabilities: Array, draws: Array | None, penalty: Penalty) -> Array:
    """Probability of all likelier classes, with draws also a random part of the class's own; plus a penalty.

    Without draws the class itself does not count, so that the likeliest class is in every set. (If it counted, sets
    would be larger, and empty where the likeliest class alone is above the limit.)
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=1)
    total = np.cumsum(ranked, axis=1)
    total -= ranked if draws is None else draws[:, None] * ranked
    if penalty.weight:
        total += penalty.weight * np.maximum(np.arange(1, ranked.shape[1] + 1) - penalty.n_free, 0)
    scores = np.empty_like(total)
    np.put_along_axis(scores, order, total, axis=1)
    return scores


SCORES: dict[str, Callable[[Array, Array | None, Penalty], Array]] = {"lac": lac, "aps": aps, "raps": aps}


def chosen_penalty(probabilities: Array, codes: Index, draws: Array | None, confidence_level: float) -> Penalty:
    """RAPS's constants from rows that do not calibrate: those with the smallest sets among these rows."""
    m = len(codes)
    rows = np.arange(m)
    own = probabilities[rows, codes][:, None]
    places = np.sort(1 + np.count_nonzero(probabilities > own, axis=1))
    k = min(rank(m, confidence_level), m)
    n_free = int(places[k - 1])
    set_counts = []
    for weight in PENALTIES:
        scores = aps(probabilities, draws, Penalty(weight, n_free))
        limit = np.sort(scores[rows, codes])[k - 1]
        set_counts.append(np.count_nonzero(scores <= limit))
    return Penalty(PENALTIES[int(np.argmin(set_counts))], n_free)
