"""The four rates of a binary classifier, the metrics made of them, and intervals for a share of so many rows."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Cells of a confusion matrix stand in the paper's order throughout.
TN, TP, FN, FP = range(4)


class Rates(NamedTuple):
    """The four rates of a classifier and the proportions of the classes; what a metric of one's own is given.

    Attributes
    ----------
    tn, tp, fn, fp : float or ndarray
        Share of the negatives that are predicted negative, of the positives predicted positive, of the positives
        predicted negative, of the negatives predicted positive; NaN where there is no row of that class.
    p_n, p_p : float or ndarray
        Shares of negatives and positives among all rows.
    """

    tn: Any
    tp: Any
    fn: Any
    fp: Any
    p_n: Any
    p_p: Any

    @classmethod
    def of(cls, cells: Any) -> Rates:
        """From cells TN, TP, FN, FP: counts or shares, each a number or an array."""
        tn, tp, fn, fp = cells
        negative, positive = tn + fp, tp + fn
        every = negative + positive
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(tn / negative, tp / positive, fn / positive, fp / negative, negative / every, positive / every)

    @property
    def shares(self) -> tuple[Any, Any, Any, Any]:
        """Shares of the four outcomes among all rows."""
        return (
            _part(self.p_n, self.tn),
            _part(self.p_p, self.tp),
            _part(self.p_p, self.fn),
            _part(self.p_n, self.fp),
        )


Metric = Callable[[Rates], Any]


def _part(proportion: Any, rate: Any) -> Any:
    """Their product: 0 for a class without rows, whose rate is not known."""
    if isinstance(proportion, np.ndarray):
        return np.where(proportion == 0.0, 0.0, proportion * rate)
    return 0.0 if getattr(proportion, "value", proportion) == 0.0 else proportion * rate


def _ratio(part: Any, rest: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        return part / (part + rest)


def _ppv(r: Rates) -> Any:
    _, tp, _, fp = r.shares
    return _ratio(tp, fp)


def _npv(r: Rates) -> Any:
    tn, _, fn, _ = r.shares
    return _ratio(tn, fn)


def _accuracy(r: Rates) -> Any:
    tn, tp, _, _ = r.shares
    return tn + tp


def _f1(r: Rates) -> Any:
    _, tp, fn, fp = r.shares
    return _ratio(2.0 * tp, fn + fp)


def _mcc(r: Rates) -> Any:
    tn, tp, fn, fp = r.shares
    with np.errstate(invalid="ignore", divide="ignore"):
        return (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5


METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    "balanced_accuracy": lambda r: (r.tn + r.tp) / 2.0,
    "tpr": lambda r: r.tp,
    "fpr": lambda r: r.fp,
    "tnr": lambda r: r.tn,
    "fnr": lambda r: r.fn,
    "ppv": _ppv,
    "npv": _npv,
    "fdr": lambda r: 1.0 - _ppv(r),
    "for": lambda r: 1.0 - _npv(r),
    "f1": _f1,
    "mcc": _mcc,
}


def builtin(metric: Metric) -> str:
    """Name of one of `METRICS`, whatever it is called by the caller; empty for a metric of one's own."""
    return next((name for name, one in METRICS.items() if one is metric), "")


def bounds(metric: Metric) -> tuple[float, float]:
    """Least and largest value that it can have; infinite for a metric of one's own."""
    name = builtin(metric)
    return (-1.0, 1.0) if name == "mcc" else (0.0, 1.0) if name else (-np.inf, np.inf)


# Metrics that are the share of some rows among others: cells counted, cells among which.
SHARES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "accuracy": ((TN, TP), (TN, TP, FN, FP)),
    "tpr": ((TP,), (TP, FN)),
    "fpr": ((FP,), (TN, FP)),
    "tnr": ((TN,), (TN, FP)),
    "fnr": ((FN,), (TP, FN)),
    "ppv": ((TP,), (TP, FP)),
    "npv": ((TN,), (TN, FN)),
    "fdr": ((FP,), (TP, FP)),
    "for": ((FN,), (TN, FN)),
}


class Share(NamedTuple):
    """A share of rows, and the number of rows that it is worth."""

    value: float  # NaN where there are no rows
    n: float


def share(counted: Any, among: Any, squares: Array, sums: Array) -> Share:
    """Share of cells among others, from sums of weights and of squared weights per cell.

    With equal weights n is the number of rows. Otherwise it is the number of equally weighted rows whose share would
    have the same variance, but no more than Kish's ``(sum w)^2 / sum w^2``: a rare answer that happens to have met
    small weights makes nothing surer.
    """
    others = [cell for cell in among if cell not in counted]
    inside, outside = sums[list(counted)].sum(), sums[others].sum()
    every = inside + outside
    if not every:
        return Share(float("nan"), 0.0)
    value = float(inside / every)
    in_squares, out_squares = squares[list(counted)].sum(), squares[others].sum()
    most = float(every**2 / (in_squares + out_squares))
    if not inside or not outside:
        return Share(value, most)
    variance = (in_squares * (1.0 - value) ** 2 + out_squares * value**2) / every**2
    return Share(value, min(float(value * (1.0 - value) / variance), most))


def normal_quantile(confidence_level: float) -> float:
    """Standard errors to either side for a two-sided interval."""
    return NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)


def wilson(found: Share, confidence_level: float) -> tuple[float, float]:
    """Wilson's score interval: all shares that the one found is not too far from; everything where there are no rows.

    Examples
    --------
    >>> from pimeter.classification.rates import Share, wilson
    >>> [round(end, 4) for end in wilson(Share(0.8, 50), 0.95)]
    [0.6696, 0.8876]
    """
    value, n = found
    if not n:
        return 0.0, 1.0
    z2 = normal_quantile(confidence_level) ** 2
    centre = (value + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = (z2 / n * (value * (1.0 - value) + z2 / (4.0 * n))) ** 0.5 / (1.0 + z2 / n)
    # At the edges the two terms are equal, and rounding must not leave the edge out.
    return (0.0 if value == 0.0 else max(centre - half, 0.0)), (1.0 if value == 1.0 else min(centre + half, 1.0))


def clopper_pearson(found: Share, confidence_level: float) -> tuple[float, float]:
    """The exact interval, which with equal weights covers at least as often as it says; everything without rows."""
    from scipy.special import betaincinv

    value, n = found
    if not n:
        return 0.0, 1.0
    k, tail = value * n, (1.0 - confidence_level) / 2.0
    lower = 0.0 if value == 0.0 else float(betaincinv(k, n - k + 1.0, tail))
    upper = 1.0 if value == 1.0 else float(betaincinv(k + 1.0, n - k, 1.0 - tail))
    return lower, upper


def normal(found: Share, confidence_level: float) -> tuple[float, float]:
    """The paper's ``z sqrt(mu (1 - mu) / n)`` to either side; of width zero where the share is 0 or 1."""
    value, n = found
    if not n:
        return 0.0, 1.0
    half = normal_quantile(confidence_level) * (value * (1.0 - value) / n) ** 0.5
    return value - half, value + half
