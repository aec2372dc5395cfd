"""Classifiers: how sure their numbers are, sets of classes with a promise, and scores that mean probabilities."""

from pimeter.classification.sets import SetClassifier
from pimeter.classification.uncertainty import ClassificationUncertainty, classification_uncertainty

__all__ = ["SetClassifier", "ClassificationUncertainty", "classification_uncertainty"]
