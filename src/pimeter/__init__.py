"""A meter for prediction intervals: one neuron measures how uncertain any trained model is."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "AutoWidth",
    "CoverageMonitor",
    "CoverageWarning",
    "EstimatorWidth",
    "ForecastIntervals",
    "GroupedWidth",
    "IntervalCalibrator",
    "IntervalRegressor",
    "IntervalShape",
    "LocalWidth",
    "Measurement",
    "OnlineNeuron",
    "PanelIntervals",
    "QuantileNeuron",
    "QuantileSketch",
    "QuantileWidth",
    "RiskController",
    "ScaledWidth",
    "ScalingBinning",
    "SetClassifier",
    "Width",
    "absolute_errors",
    "backtest",
    "calibrated_scores",
    "calibration_error",
    "classification_uncertainty",
    "compare",
    "coverage_score",
    "crps_score",
    "duplicate_groups",
    "excess_risk_score",
    "grouped_quantile",
    "interval_score",
    "mean_width_score",
    "measure",
    "plot_reliability",
    "quantile",
    "rows_needed",
    "scorecard",
    "shift_weights",
    "show_versions",
    "worst_slab_coverage_score",
    "worst_subgroup",
]

if TYPE_CHECKING:
    from pimeter.classification import (
        ScalingBinning,
        SetClassifier,
        calibrated_scores,
        calibration_error,
        classification_uncertainty,
        plot_reliability,
    )
    from pimeter.coverage import CoverageWarning, rows_needed
    from pimeter.duplicates import duplicate_groups
    from pimeter.errors import absolute_errors
    from pimeter.evaluation.backtesting import backtest
    from pimeter.evaluation.comparison import compare
    from pimeter.evaluation.conditional import excess_risk_score, worst_slab_coverage_score, worst_subgroup
    from pimeter.evaluation.measurement import Measurement
    from pimeter.evaluation.measuring import measure
    from pimeter.evaluation.scorecards import scorecard
    from pimeter.forecast import ForecastIntervals, PanelIntervals
    from pimeter.groups import grouped_quantile
    from pimeter.monitoring import CoverageMonitor
    from pimeter.neuron import QuantileNeuron
    from pimeter.online import OnlineNeuron
    from pimeter.quantiles import quantile
    from pimeter.regression import (
        AutoWidth,
        EstimatorWidth,
        GroupedWidth,
        IntervalCalibrator,
        IntervalRegressor,
        IntervalShape,
        LocalWidth,
        QuantileWidth,
        ScaledWidth,
        Width,
        shift_weights,
    )
    from pimeter.risk import RiskController
    from pimeter.scores import coverage_score, crps_score, interval_score, mean_width_score
    from pimeter.sketch import QuantileSketch
    from pimeter.versions import show_versions
else:
    # Hidden from type checkers: with a module-level __getattr__ in sight they would accept any misspelt name.
    _MODULE_OF = {
        "AutoWidth": "regression",
        "CoverageMonitor": "monitoring",
        "CoverageWarning": "coverage",
        "EstimatorWidth": "regression",
        "ForecastIntervals": "forecast",
        "GroupedWidth": "regression",
        "IntervalCalibrator": "regression",
        "IntervalRegressor": "regression",
        "IntervalShape": "regression",
        "LocalWidth": "regression",
        "Measurement": "evaluation.measurement",
        "OnlineNeuron": "online",
        "PanelIntervals": "forecast",
        "QuantileNeuron": "neuron",
        "QuantileSketch": "sketch",
        "QuantileWidth": "regression",
        "RiskController": "risk",
        "ScaledWidth": "regression",
        "ScalingBinning": "classification",
        "SetClassifier": "classification",
        "Width": "regression",
        "absolute_errors": "errors",
        "backtest": "evaluation.backtesting",
        "calibrated_scores": "classification",
        "calibration_error": "classification",
        "classification_uncertainty": "classification",
        "compare": "evaluation.comparison",
        "coverage_score": "scores",
        "crps_score": "scores",
        "duplicate_groups": "duplicates",
        "excess_risk_score": "evaluation.conditional",
        "grouped_quantile": "groups",
        "interval_score": "scores",
        "mean_width_score": "scores",
        "measure": "evaluation.measuring",
        "plot_reliability": "classification",
        "quantile": "quantiles",
        "rows_needed": "coverage",
        "scorecard": "evaluation.scorecards",
        "shift_weights": "regression",
        "show_versions": "versions",
        "worst_slab_coverage_score": "evaluation.conditional",
        "worst_subgroup": "evaluation.conditional",
    }

    def __getattr__(name):
        if name not in _MODULE_OF:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
