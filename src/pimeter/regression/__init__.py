"""Prediction intervals for any regressor: residuals of a model, a width, a quantile of calibration scores."""

from pimeter.regression.auto import AutoWidth
from pimeter.regression.calibrator import IntervalCalibrator
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.following import OnlineIntervals
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.local import LocalWidth
from pimeter.regression.models import EstimatorWidth
from pimeter.regression.quantile_forest import QuantileForestWidth
from pimeter.regression.regressor import IntervalRegressor
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.shift import shift_weights
from pimeter.regression.width import IntervalShape, Width

__all__ = [
    "AutoWidth",
    "EstimatorWidth",
    "GroupedWidth",
    "IntervalCalibrator",
    "IntervalRegressor",
    "IntervalShape",
    "LocalWidth",
    "OnlineIntervals",
    "QuantileForestWidth",
    "QuantileWidth",
    "ScaledWidth",
    "Width",
    "shift_weights",
]
