"""The four rates of a binary classifier, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Value = Any  # what computes like a number: a float, an array, or a `derivatives.Series`

# Cells of a confusion matrix stand in the paper's order throughout.
TN, TP, FN, FP = range(4)


class Rates(NamedTuple):
    """The four rates of a classifier and the proportions of the classes; what a metric of yours is given.

    Attributes
    ----------
    tn, tp, fn, fp : float or ndarray
        Proportion of the negatives that are predicted negative, of the positives predicted positive, of the positives
        predicted negative, of the negatives predicted positive; NaN where there is no row of that class.
    p_n, p_p : float or ndarray
        Proportions of negatives and positives among all rows.
    """

    tn: Value
    tp: Value
    fn: Value
    fp: Value
    p_n: Value
    p_p: Value

    @classmethod
    def of(cls, cells: Value) -> Rates:
        """Rates of cells TN, TP, FN, FP: counts or proportions, each a number or an array."""
        tn, tp, fn, fp = cells
        negative, positive = tn + fp, tp + fn
        every = negative + positive
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(tn / negative, tp / positive, fn / positive, fp / negative, negative / every, positive / every)

    @property
    def outcomes(self) -> tuple[Value, Value, Value, Value]:
        """Proportions of the outcomes TN, TP, FN, FP among all rows."""
        return (
            _part(self.p_n, self.tn),
            _part(self.p_p, self.tp),
            _part(self.p_p, self.fn),
            _part(self.p_n, self.fp),
        )


Metric = Callable[[Rates], Value]


def _part(proportion: Value, rate: Value) -> Value:
    """Their product: 0 for a class without rows, whose rate is not known."""
    if isinstance(proportion, np.ndarray):
        return np.where(proportion == 0.0, 0.0, proportion * rate)
    return 0.0 if getattr(proportion, "value", proportion) == 0.0 else proportion * rate


def _ratio(part: Value, rest: Value) -> Value:
    with np.errstate(invalid="ignore", divide="ignore"):
        return part / (part + rest)


def _ppv(r: Rates) -> Value:
    _, tp, _, fp = r.outcomes
    return _ratio(tp, fp)


def _npv(r: Rates) -> Value:
    tn, _, fn, _ = r.outcomes
    return _ratio(tn, fn)


def _accuracy(r: Rates) -> Value:
    tn, tp, _, _ = r.outcomes
    return tn + tp


def _f1(r: Rates) -> Value:
    _, tp, fn, fp = r.outcomes
    return _ratio(2.0 * tp, fn + fp)


def _mcc(r: Rates) -> Value:
    tn, tp, fn, fp = r.outcomes
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
# Usual names of some of them.
ALSO_CALLED = {"precision": "ppv", "recall": "tpr", "sensitivity": "tpr", "specificity": "tnr"}


def builtin(metric: Metric) -> str:
    """Name of one of `METRICS`, whatever it is called by the caller; empty for a metric of the caller's."""
    return next((name for name, one in METRICS.items() if one is metric), "")


def metric_range(metric: Metric) -> tuple[float, float]:
    """Least and largest value that it can have; infinite for a metric of the caller's."""
    name = builtin(metric)
    return (-1.0, 1.0) if name == "mcc" else (0.0, 1.0) if name else (-np.inf, np.inf)


# Metrics that are a proportion of some rows among others: cells counted, cells among which.
PROPORTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
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
