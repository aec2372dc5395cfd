"""Prediction intervals for any regressor: a model's errors, a width, one neuron for each kind of row."""

from pimeter.regression.auto import AutoWidth
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.local import LocalWidth
from pimeter.regression.regressor import IntervalRegressor
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.shift import shift_weights

__all__ = [
    "AutoWidth",
    "GroupedWidth",
    "IntervalRegressor",
    "LocalWidth",
    "QuantileWidth",
    "ScaledWidth",
    "shift_weights",
]
