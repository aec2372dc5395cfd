"""`plot_reliability`: whether scores mean probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pimeter.classification.calibration import reliability
from pimeter.coverage import percent
from pimeter.plotting.display import INSIDE_COLOUR, LINE_COLOUR, OUTSIDE_COLOUR, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def plot_reliability(
    y_true: ArrayLike, y_score: ArrayLike, *, n_bins: int = 10, confidence_level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Proportion of positives against the mean score, in bins of equally many rows, with Clopper-Pearson intervals.

    An interval holds the mean probability of the bin's rows, which may differ, as often as it says or more: each bin by
    itself, rows independent. What is marked as not consistent is so with all bins taken together: were scores
    probabilities, a proportion of ``1 - confidence_level`` of such plots at most would have a mark, however rare the
    positives. The title of the legend has the p-value of all bins, which may be low with no single bin marked.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, 0 or 1.
    y_score : array-like of shape (n,)
        Scores between 0 and 1.
    n_bins : int, default=10
        Number of bins.
    confidence_level : float, default=0.95
        Of each interval by itself, and of the test of all bins together.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    found = reliability(y_true, y_score, n_bins=n_bins, confidence_level=confidence_level)
    if ax is None:
        ax = pyplot().subplots(figsize=(5.5, 5.5), layout="constrained")[1]
    assert ax is not None
    ax.plot([0, 1], [0, 1], color=LINE_COLOUR, linewidth=1, linestyle="--", label="calibrated")
    for part, colour, mark, text in (
        (~found.is_off, INSIDE_COLOUR, "o", "consistent with it"),
        (found.is_off, OUTSIDE_COLOUR, "X", "not consistent with it"),
    ):
        ax.vlines(found.score[part], found.lower[part], found.upper[part], color=colour, alpha=0.5, linewidth=3)
        ax.plot(found.score[part], found.proportion[part], mark, color=colour, label=text)
    ax.set(xlabel="mean score", ylabel="proportion of positives", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, loc="upper left", title=f"p = {found.p_value:.2g} if calibrated", alignment="left")
    ax.set_title(f"Reliability, with intervals for {percent(confidence_level)} each", loc="left")
    return ax
