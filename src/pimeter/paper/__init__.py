"""What only the paper needs: it may import everything, and nothing else in the library imports it."""

from pimeter.paper.descent import DescendingNeuron
from pimeter.paper.errors import outcome_errors, sided_errors
from pimeter.paper.outcomes import plot_outcomes, score_spread

__all__ = ["DescendingNeuron", "outcome_errors", "plot_outcomes", "score_spread", "sided_errors"]
