"""Classifiers: how sure their numbers are, sets of classes with a guarantee, and scores that mean probabilities."""

from pimeter.classification.calibration import ScalingBinning, calibrated_scores, calibration_error
from pimeter.classification.curve_bands import CurveBand, precision_recall_band, roc_band
from pimeter.classification.estimates import ClassificationUncertainty
from pimeter.classification.reliability_plot import plot_reliability
from pimeter.classification.sets import SetClassifier
from pimeter.classification.uncertainty import classification_uncertainty

__all__ = [
    "ClassificationUncertainty",
    "CurveBand",
    "ScalingBinning",
    "SetClassifier",
    "calibrated_scores",
    "calibration_error",
    "classification_uncertainty",
    "plot_reliability",
    "precision_recall_band",
    "roc_band",
]
