"""Estimators in files of skops, which are read without executing anything that they hold."""

from __future__ import annotations

# Classes that only hold numbers, strings and each other. skops makes them without calling their constructors.
PIMETER = {
    "_kernels.reference": ("Map",),
    "classification.calibration": ("ScalingBinning",),
    "classification.conformity": ("Penalty",),
    "classification.sets": ("SetClassifier",),
    "conformal.categories": ("CategoryLine", "CategoryTable"),
    "conformal.folds": ("FoldModels",),
    "conformal.guarantee": ("Guarantee",),
    "conformal.overlapping": ("Groups", "OverlappingQuantile"),
    "conformal.quantile": ("ScoreQuantile",),
    "conformal.scores": ("CalibrationScores", "Tails"),
    "forecast.boxes": ("Box",),
    "forecast.cones": ("ForecastIntervals",),
    "forecast.context": ("Context", "ForgettingRegressions"),
    "forecast.features": ("Standardised",),
    "forecast.long_frames": ("Clock", "Names"),
    "forecast.memory": ("Memory", "Newest"),
    "forecast.panel_bounds": ("NewSeries", "Rule"),
    "forecast.panel_context": ("Coefficients", "History", "PanelContext"),
    "forecast.panel_model": ("Known", "ModelErrors"),
    "forecast.panel_windows": ("PanelWindows", "SeriesMoments"),
    "forecast.panels": ("PanelIntervals",),
    "forecast.window_weights": ("Weighting",),
    "monitoring.monitor": ("CoverageMonitor",),
    "monitoring.onset": ("Since",),
    "monitoring.recalibration": ("Recalibration",),
    "monitoring.settings": ("Settings",),
    "monitoring.state": ("Progress",),
    "monitoring.stream": ("Stream",),
    "neuron": ("QuantileNeuron",),
    "online": ("OnlineNeuron",),
    "paper.descent": ("DescendingNeuron",),
    "predictive": ("Predictive",),
    "regression.answers": ("predictions_themselves",),
    "regression.auto": ("AutoWidth", "Candidate", "_Part"),
    "regression.bands": ("Additive", "Blended", "Distributional", "Multiplicative", "Normalised"),
    "regression.calibrator": ("IntervalCalibrator",),
    "regression.cqr": ("QuantileWidth",),
    "regression.features": ("Features",),
    "regression.following": ("OnlineIntervals",),
    "regression.grouped": ("GroupedWidth",),
    "regression.joint": ("JointWidth",),
    "regression.local": ("LocalWidth",),
    "regression.models": ("EstimatorWidth", "QuantileModels"),
    "regression.nearness": ("Leaves", "LocalNeurons", "Neighbours"),
    "regression.quantile_forest": ("QuantileForestWidth",),
    "regression.regressor": ("IntervalRegressor",),
    "regression.scaled": ("ScaledWidth",),
    "regression.surroundings": ("Surroundings",),
    "regression.training": ("Remembered",),
    "regression.width": ("ConstantWidth",),
    "risk.controller": ("RiskController",),
    "sketch": ("QuantileSketch",),
    "smoothing": ("Smoother",),
}
PYTHON_AND_NUMPY = ("builtins.frozenset", "numpy.dtype")
COMPILED = (
    "scipy.sparse._csr.csr_array",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.tree._tree.Tree",
)  # what forests and neighbours of widths are made of


def trusted_types() -> list[str]:
    """Types that files of pimeter's estimators hold, for ``skops.io.load(file, trusted=...)``.

    skops reads a file only if each type in it is trusted, by skops or by the caller. These are pimeter's, and compiled
    types of scikit-learn and SciPy that the forests of widths are made of. The latter run nothing when they are read,
    but in a file that somebody has tampered with they may make predictions crash the process or read memory beyond
    their arrays: of files of unknown origin trust ``set(trusted_types()) - set(COMPILED)``, which is enough for the
    widths "constant", "grouped" and "estimator", and for all other estimators. Types of the model inside come on top:
    ``skops.io.get_untrusted_types`` says which.

    Returns
    -------
    list of str
        Names of types.

    Examples
    --------
    >>> from pimeter.integrations.skops import trusted_types
    >>> "pimeter.regression.regressor.IntervalRegressor" in trusted_types()
    True
    """
    own = [f"pimeter.{module}.{name}" for module, names in PIMETER.items() for name in names]
    return sorted([*own, *PYTHON_AND_NUMPY, *COMPILED])
