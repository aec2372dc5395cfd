"""Rates that a threshold decides on: of which rows, and what counts as an error among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pimeter.risk.testing import Candidates

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags


class Rate(NamedTuple):
    """One rate: which rows are declared, which of them or of a class it looks at, and what is wrong with them."""

    declared: Literal["above", "below"]  # the threshold
    among: Literal["declared", "positive", "negative"]
    wrong: Literal["negative", "positive", "missed", "declared"]
    is_better_high: bool

    def risk(self, level: float) -> float:
        """Largest rate of errors."""
        return 1.0 - level if self.is_better_high else level

    def candidates(self, is_positive: Flags, score: Array) -> Candidates:
        """Thresholds from the safest to the riskiest, with what is known of each."""
        if self.among == "declared":
            sign = 1.0 if self.declared == "above" else -1.0
            is_wrong = ~is_positive if self.wrong == "negative" else is_positive
            cuts = _falling(sign * score)
            found = Candidates(sign * cuts, _above(sign * score, cuts), _above(sign * score[is_wrong], cuts))
            return Candidates(*(one[found.rows > 0] for one in found))
        if self.wrong == "missed":  # the lower the threshold, the fewer positives are missed
            cuts = _falling(score)[::-1]
            n = float(np.count_nonzero(is_positive))
            return Candidates(cuts, np.full(len(cuts), n), n - _above(score[is_positive], cuts))
        cuts = _falling(score[~is_positive]) if not is_positive.all() else np.array([np.inf])
        n = float(np.count_nonzero(~is_positive))
        return Candidates(cuts, np.full(len(cuts), n), _above(score[~is_positive], cuts))

    def declares(self, score: Array, threshold: float) -> Flags:
        """Which rows are declared positive, negative or safe, whichever the rate is about, at a threshold."""
        return np.asarray(score > threshold if self.declared == "above" else score < threshold)

    @property
    def safest(self) -> float:
        """The threshold whose rate of errors is 0, whatever the rows."""
        return np.inf if (self.declared == "above") == (self.wrong != "missed") else -np.inf


def _falling(score: Array) -> Array:
    """Distinct scores from the highest to the lowest, and one below all."""
    return np.append(np.unique(score)[::-1], -np.inf)


def _above(score: Array, cuts: Array) -> Array:
    """Number of scores above each cut."""
    found: Array = (len(score) - np.searchsorted(np.sort(score), cuts, side="right")).astype(np.float64)
    return found


PRECISION = Rate("above", "declared", "negative", True)
NPV = Rate("below", "declared", "positive", True)
RECALL = Rate("above", "positive", "missed", True)
FPR = Rate("above", "negative", "declared", False)

RATES: dict[str, Rate] = {
    "precision": PRECISION,
    "fdr": PRECISION._replace(is_better_high=False),
    "npv": NPV,
    "for": NPV._replace(is_better_high=False),
    "recall": RECALL,
    "fnr": RECALL._replace(is_better_high=False),
    "fpr": FPR,
    "specificity": FPR._replace(is_better_high=True),
    "exceedance": NPV._replace(is_better_high=False),
}
