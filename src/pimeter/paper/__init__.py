"""What only the paper needs: it may import everything, and nothing else in the library imports it."""

from pimeter.paper.baseline import baseline_interval
from pimeter.paper.criterion import coverage_width_criterion
from pimeter.paper.descent import DescendingNeuron
from pimeter.paper.errors import outcome_errors, sided_errors
from pimeter.paper.outcomes import plot_outcomes, score_spread
from pimeter.paper.spread import WhiteTest, power_spectral_entropy, white_test

__all__ = [
    "DescendingNeuron",
    "WhiteTest",
    "baseline_interval",
    "coverage_width_criterion",
    "outcome_errors",
    "plot_outcomes",
    "power_spectral_entropy",
    "score_spread",
    "sided_errors",
    "white_test",
]
