"""Classifiers: how sure their numbers are, sets of classes with a guarantee, and scores that mean probabilities."""

from pimeter.classification.calibration import ScalingBinning, calibrated_scores, calibration_error
from pimeter.classification.curve_bands import CurveBand, precision_recall_band, roc_band
from pimeter.classification.estimates import ClassificationUncertainty
from pimeter.classification.label_shift import label_shift_ratios, label_shift_sets
from pimeter.classification.reliability_plot import plot_reliability
from pimeter.classification.set_scores import (
    mean_set_size_score,
    set_coverage_score,
    size_stratified_coverage_score,
)
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
    "label_shift_ratios",
    "label_shift_sets",
    "mean_set_size_score",
    "plot_reliability",
    "precision_recall_band",
    "roc_band",
    "set_coverage_score",
    "size_stratified_coverage_score",
]
