"""What only the paper needs: it may import everything, and nothing else in the library imports it."""

from pimeter.paper.descent import DescendingNeuron

__all__ = ["DescendingNeuron"]
