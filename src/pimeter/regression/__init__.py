"""Prediction intervals for any regressor: a model's errors, a width, one neuron for each kind of row."""

from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.regressor import IntervalRegressor
from pimeter.regression.scaled import ScaledWidth

__all__ = ["GroupedWidth", "IntervalRegressor", "ScaledWidth"]
