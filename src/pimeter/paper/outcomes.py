"""The paper's four neurons of a binary classifier: how widely scores are spread, in numbers and as a plot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pimeter.classification.derivatives import Series, derivatives
from pimeter.classification.estimates import ClassificationUncertainty, Estimate
from pimeter.classification.inputs import (
    Metrics,
    as_precise,
    checked_thresholds,
    class_labels,
    class_scores,
    metric_functions,
    ordered_classes,
    positive_column,
    refuse_missing,
    warn_if_swapped,
)
from pimeter.classification.rates import Metric, Rates
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.frames import refuse_other_order
from pimeter.paper.errors import OutcomeErrors, outcome_errors
from pimeter.plotting.display import INSIDE_COLOUR, LINE_COLOUR, OUTSIDE_COLOUR, pyplot
from pimeter.quantiles import quantile
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array

OUTCOMES = ("true negatives", "true positives", "false negatives", "false positives")
NOTE = "spread of the scores, not a confidence interval"
METHOD = "pim"  # the paper's name
N_BARS = 40


def score_spread(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence_level: float = 0.95,
    threshold: float | ArrayLike = 0.5,
    metrics: Metrics | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = 1,
) -> ClassificationUncertainty:
    """Metrics of a binary classifier with the paper's ranges: four neurons and their propagation (Theorem 2).

    The range is **the spread of the scores, not a confidence interval**: it does not shrink with more rows. How sure
    the metrics are is what `classification_uncertainty` says. The four weights are the roots of the neurons' equation
    with a beta that follows the errors (``method="pim"`` in the result), not the paper's descent with ``beta=1000``,
    which stalls on few errors and then gives smaller ranges: `DescendingNeuron` has that one.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes, of rows that the classifier was not trained on.
    y_score : array-like of shape (n,) or (n, 2)
        Scores of the positive class, or of each class, between 0 and 1; those of two classes add up to 1.
    confidence_level : float, default=0.95
        Level of the four neurons.
    threshold : float or array-like of shape (T,), default=0.5
        Scores above it predict the positive class. Several give a result for each.
    metrics : name, list of names and functions, or dict of name to function, optional
        Names such as "accuracy", "precision" or "recall", and functions of the rates of the four outcomes; all metrics
        of `classification_uncertainty` that have a threshold by default.
    labels : sequence, optional
        The two classes, in the order of the columns of `y_score`; by default those of `y_true`, sorted.
    pos_label : object, default=1
        The positive class.

    Returns
    -------
    ClassificationUncertainty
        Dicts `value`, `lower`, `upper`, `method` and `note` by metric; NaN where an outcome has too few errors for its
        neuron, which the note says.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.paper import score_spread
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < score
    >>> score_spread(y, score, metrics="accuracy")
    500 rows, intervals for 95 %
    accuracy   0.7640  [ 0.5319,  0.9961]  pim (spread of the scores, not a confidence interval)
    """
    level, chosen = one_level("confidence_level", confidence_level), metric_functions(metrics)
    refuse_other_order("y_true", y_true, "y_score", y_score)
    score = class_scores("y_score", y_score)
    if score.ndim == 2 and score.shape[1] > 2:
        msg = (
            f"score_spread needs two classes; y_score has {score.shape[1]} columns. Ask for one class against all "
            "others: y_true == label, with its column of y_score."
        )
        raise ValueError(msg)
    known = refuse_missing("y_true", class_labels("y_true", y_true, len(score)))
    classes = ordered_classes(known, score, labels, pos_label)
    column = positive_column(classes, pos_label)
    score = score if score.ndim == 1 else score[:, column]
    is_positive = known.in_order(classes).codes == column
    warn_if_swapped("y_score", score, [is_positive, ~is_positive], None, classes[column])
    thresholds = checked_thresholds(threshold)
    estimates = [
        _spreads(outcome_errors(is_positive, score, threshold=float(one)), chosen, level)
        for one in as_precise(thresholds, y_score).ravel()
    ]
    used = tuple(thresholds.ravel().tolist())
    return ClassificationUncertainty(estimates, used, thresholds.ndim == 0, level, len(score))


def _spreads(errors: OutcomeErrors, metrics: dict[str, Metric], level: float) -> dict[str, Estimate]:
    """Each metric of the four outcomes, with the propagated half-widths of four neurons."""
    enough = [rank_guarantee(len(part), level).is_enough for part in errors]
    widths = [
        float(quantile(part, level, reflect=True)) if is_enough else np.nan
        for part, is_enough in zip(errors, enough, strict=True)
    ]
    few = [
        f"{len(part)} {name}" for part, name, is_enough in zip(errors, OUTCOMES, enough, strict=True) if not is_enough
    ]
    rates = Rates.of(np.array([len(part) for part in errors], float))
    found = {}
    with np.errstate(invalid="ignore", divide="ignore"):  # metrics of the caller's may divide by 0
        for name, metric in metrics.items():
            value = float(metric(rates))
            delta = propagated(
                lambda *r, metric=metric: metric(Rates(r[0], r[1], r[2], r[3], rates.p_n, rates.p_p)),
                np.array([rates.tn, rates.tp, rates.fn, rates.fp]),
                np.array(widths) / 2.0,
            )
            note = NOTE if np.isfinite(delta) else f"too few errors for a neuron at {level:g}: {', '.join(few)}"
            found[name] = Estimate(value, value - delta, value + delta, METHOD, note)
    return found


def propagated(function: Callable[..., Series | float], at: Array, delta: Array) -> float:
    """Uncertainty of a function of the rates TN, TP, FN, FP, by the paper's Taylor expansion.

    Absolute values add up, so this approximates the largest change in the box ``at -+ delta``: to first order for all
    four, to second order for the two false outcomes.

    Parameters
    ----------
    function : callable
        A function of the four rates, made of arithmetic and numpy's sqrt, exp and log.
    at, delta : ndarray of shape (4,)
        The rates and their uncertainties; NaN in `delta` only matters if the function depends on that rate.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.paper.outcomes import propagated
    >>> half = lambda tn, tp, fn, fp: (tn + tp) / 2
    >>> propagated(half, np.array([0.9, 0.8, 0.2, 0.1]), np.array([0.02, 0.04, np.nan, np.nan]))
    0.03
    """
    found = derivatives(function, at)
    first, second = np.abs(found.first), np.abs(found.second)
    second[:2] = 0.0
    used = (first != 0.0) | (second != 0.0)
    return float(np.sum((first * delta + 0.5 * second * delta**2)[used]))


def plot_outcomes(
    y_true: ArrayLike, y_score: ArrayLike, *, threshold: float = 0.5, axes: NDArray[np.object_] | None = None
) -> NDArray[np.object_]:
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
    errors = outcome_errors(y_true, y_score, threshold=threshold)
    grid: NDArray[np.object_] = (
        pyplot().subplots(2, 2, figsize=(8, 6), layout="constrained")[1] if axes is None else np.asarray(axes)
    )
    if grid.size != 4:
        msg = f"axes must be four; got {grid.size}. Give those of plt.subplots(2, 2), or none."
        raise ValueError(msg)
    grid = grid.reshape(2, 2)
    n_negative = len(errors.true_negative) + len(errors.false_positive)
    n_positive = len(errors.true_positive) + len(errors.false_negative)
    cells = (
        ("true negatives", errors.true_negative, n_negative, INSIDE_COLOUR),
        ("false positives", threshold + errors.false_positive, n_negative, OUTSIDE_COLOUR),
        ("false negatives", threshold - errors.false_negative, n_positive, OUTSIDE_COLOUR),
        ("true positives", 1.0 - errors.true_positive, n_positive, INSIDE_COLOUR),
    )
    edges = np.linspace(0.0, 1.0, N_BARS + 1)
    for ax, (name, scores, of, colour) in zip(grid.ravel(), cells, strict=True):
        counts = np.histogram(scores, edges)[0]
        ax.bar(edges[:-1], counts / max(len(scores), 1), np.diff(edges), align="edge", color=colour)
        ax.axvline(threshold, color=LINE_COLOUR, linewidth=1, linestyle="--")
        ax.set_title(f"{name}: {len(scores):,} of {of:,}", loc="left")
        ax.set(xlim=(0, 1), xlabel="score", ylabel="proportion of these rows")
    return grid
