"""Pictures of scores: whether they are calibrated, and how they are spread over the four outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.classification.calibration import reliability
from pimeter.coverage import percent
from pimeter.errors import outcome_errors
from pimeter.plotting import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

# Told apart also by those who do not see red and green alike, and in print.
RIGHT, WRONG, LINE = "#0072b2", "#d55e00", "#222222"
N_BARS = 40


def plot_reliability(
    y_true: ArrayLike, y_score: ArrayLike, *, n_bins: int = 10, confidence_level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Share of positives against the mean score, in bins of equally many rows, each with its Clopper-Pearson interval.

    An interval holds the mean probability of the bin's rows, which may differ, as often as it says or more: each bin by
    itself, rows independent. What is marked as not consistent is so with all bins taken together: were scores
    probabilities, a share of ``1 - confidence_level`` of such pictures at most would have a mark, however rare the
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
    ax.plot([0, 1], [0, 1], color=LINE, linewidth=1, linestyle="--", label="calibrated")
    kinds = ((~found.is_off, RIGHT, "consistent with it"), (found.is_off, WRONG, "not consistent with it"))
    for part, colour, text in kinds:
        ax.vlines(found.score[part], found.lower[part], found.upper[part], color=colour, alpha=0.5, linewidth=3)
        ax.plot(found.score[part], found.share[part], "o" if colour == RIGHT else "X", color=colour, label=text)
    ax.set(xlabel="mean score", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, loc="upper left", title=f"p = {found.p_value:.2g} if calibrated", alignment="left")
    ax.set_title(f"Reliability, with intervals for {percent(confidence_level)} each", loc="left")
    return ax


def plot_outcomes(
    y_true: ArrayLike, y_score: ArrayLike, *, threshold: float = 0.5, axes: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The confusion matrix as distributions of scores, the paper's Figure 4.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, 0 or 1.
    y_score : array-like of shape (n,)
        Scores between 0 and 1.
    threshold : float, default=0.5
        Above it the prediction is 1.
    axes : array of four matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    ndarray of Axes, shape (2, 2)
        Rows: the true class; columns: the prediction.
    """
    tn, tp, fn, fp = outcome_errors(y_true, y_score, threshold=threshold)
    grid: NDArray[Any] = (
        pyplot().subplots(2, 2, figsize=(8, 6), layout="constrained")[1] if axes is None else np.asarray(axes)
    )
    if grid.size != 4:
        msg = f"axes must be four; got {grid.size}. Give those of plt.subplots(2, 2), or none."
        raise ValueError(msg)
    grid = grid.reshape(2, 2)
    cells = (
        ("true negatives", tn, len(tn) + len(fp), RIGHT),
        ("false positives", threshold + fp, len(tn) + len(fp), WRONG),
        ("false negatives", threshold - fn, len(tp) + len(fn), WRONG),
        ("true positives", 1.0 - tp, len(tp) + len(fn), RIGHT),
    )
    edges = np.linspace(0.0, 1.0, N_BARS + 1)
    for ax, (name, scores, of, colour) in zip(grid.ravel(), cells, strict=True):
        counts = np.histogram(scores, edges)[0]
        ax.bar(edges[:-1], counts / max(len(scores), 1), np.diff(edges), align="edge", color=colour)
        ax.axvline(threshold, color=LINE, linewidth=1, linestyle="--")
        ax.set_title(f"{name}: {len(scores):,} of {of:,}", loc="left")
        ax.set(xlim=(0, 1), xlabel="score", ylabel="share of these rows")
    return grid
