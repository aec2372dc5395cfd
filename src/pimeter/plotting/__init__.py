"""Displays of intervals, in scikit-learn's manner.

Each is made by ``from_estimator`` or ``from_predictions``, and draws on the axes given as `ax`, or on new ones. They
are imported from here: ``from pimeter.plotting import IntervalDisplay``.
"""

from pimeter.plotting.coverage import CoverageDisplay, ReliabilityDisplay
from pimeter.plotting.display import pyplot
from pimeter.plotting.intervals import IntervalDisplay

__all__ = ["CoverageDisplay", "IntervalDisplay", "ReliabilityDisplay", "pyplot"]
