"""Predictions, and how intervals lie around them: their shape, the base class of all widths, and bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples

from pimeter.conformal.scores import CalibrationScores
from pimeter.interval_arrays import uncrossed
from pimeter.prediction import predicted
from pimeter.validation import check_finite_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.protocols import Array, FeatureTable, Flags, Index

REMEDY = "The estimator has no finite answer there: fix it, or leave such rows out."
LARGEST_TO_SQUARE = 1e150  # prediction or residual of which squares can be added up
NEUTRAL_PARTS = (1.0, 0.0, 0.0)  # what None stands for in a shape
ROUNDINGS = 6.0  # units in the last place that difference, quotient, product and sum may take from a bound


class IntervalShape(NamedTuple):
    """How an interval with margin r lies around a prediction f: ``[f - lower - scale r, f + upper + scale r]``.

    All are of shape (n, k), or None: a scale of 1, no band between `-lower` and `upper`. A band has both of its bounds,
    which do not cross.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.regression import IntervalShape
    >>> shape = IntervalShape(scale=np.array([[1.0], [4.0]]))
    >>> shape.scores(np.array([[2.0], [2.0]])).above.ravel()
    array([2. , 0.5])
    """

    scale: Array | None = None
    lower: Array | None = None
    upper: Array | None = None

    def scores(self, residuals: Array) -> CalibrationScores:
        """How far residuals (n, k) lie beyond the upper and the lower bound, in units of the scale."""
        above, below = residuals, None
        if self.lower is not None and self.upper is not None:
            above, below = residuals - self.upper, -residuals - self.lower
        if self.scale is not None:
            with np.errstate(over="ignore"):
                above, below = above / self.scale, None if below is None else below / self.scale
        return CalibrationScores(above, below)

    def middle(self, prediction: Array) -> Array:
        """Centre of the band; where there is none, the prediction."""
        if self.lower is None or self.upper is None:
            return prediction
        return prediction + (self.upper - self.lower) / 2.0

    def without_band(self) -> IntervalShape:
        """Around the middle of the band, with half its width as scale."""
        if self.lower is None or self.upper is None:
            return self
        half, scale = (self.upper + self.lower) / 2.0, 1.0 if self.scale is None else self.scale
        return IntervalShape(np.where(half > 0.0, half, scale))

    def each(self, change: Callable[[Array], Array]) -> IntervalShape:
        """Parts that are not None, changed, such as to those of one output."""
        return IntervalShape(*(None if part is None else change(part) for part in self))

    @classmethod
    def merged(
        cls, shapes: Sequence[IntervalShape], extents: Sequence[tuple[int, ...]], how: Callable[..., Array]
    ) -> IntervalShape:
        """Several shapes, whose parts are of these extents, as one: stacked, or one after the other."""

        def part(parts: Sequence[Array | None], missing: float) -> Array | None:
            if all(one is None for one in parts):
                return None
            return how(
                [np.full(size, missing) if one is None else one for one, size in zip(parts, extents, strict=True)]
            )

        return cls(*map(part, zip(*shapes, strict=True), NEUTRAL_PARTS))


class Width(BaseEstimator, ABC):
    """What makes one row's interval wider than another's: the base class for widths of your own.

    A subclass says in `shape` how intervals lie around predictions. `IntervalRegressor` then finds the margin: coverage
    is guaranteed however good or bad the shape is, as long as it does not depend on the rows that calibrate. What a
    width learns, it learns in `fit`, on rows that do not calibrate: a scale that knows the calibration rows makes their
    residuals look smaller than those of new rows. Parameters of ``__init__`` are stored as given, as in scikit-learn.

    Attributes
    ----------
    learns : bool
        Whether `fit` needs rows that do not calibrate; False for a shape that is known beforehand.

    Examples
    --------
    A width that follows a column of X, such as the standard deviation that a device reports:

    >>> import numpy as np
    >>> import pimeter as pm
    >>> class ColumnWidth(pm.Width):
    ...     learns = False
    ...
    ...     def __init__(self, column=0):
    ...         self.column = column
    ...
    ...     def shape(self, X, prediction):
    ...         return pm.IntervalShape(scale=X[:, [self.column]])
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.1, 1, size=(1000, 1))
    >>> y = rng.normal(scale=X[:, 0])
    >>> model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), width=ColumnWidth()).calibrate(X, y)
    >>> model.predict_interval(np.array([[0.1], [1.0]])).round(1)
    array([[-0.2,  0.2],
           [-2. ,  2. ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @property
    def _takes_spread(self) -> bool:
        """Whether `fit` takes `spread`, (n, k): how far the trees of the model, if it has some, disagree."""
        return False

    @property
    def learns(self) -> bool:
        """Whether `fit` needs rows that do not calibrate."""
        return True

    def fit(
        self,
        X: FeatureTable,
        prediction: Array,
        residuals: Array,
        *,
        confidence_level: float,
        tails: str,
        random_state: int,
    ) -> Self:
        """Learn from a model's residuals on rows that it had not seen, and that do not calibrate.

        Parameters
        ----------
        X : whatever the estimator takes, of n rows
            Features.
        prediction : ndarray of shape (n, k)
            Predictions, a column for each output.
        residuals : ndarray of shape (n, k)
            Targets minus predictions.
        confidence_level : float
            Level that intervals are wanted for.
        tails : {"symmetric", "equal", "sided", "lower", "upper"}
            Tails that are wanted, a parameter of `IntervalRegressor`.
        random_state : int
            Seed for all that is random.

        Returns
        -------
        Width
            Itself.
        """
        del X, prediction, residuals, confidence_level, tails, random_state
        return self

    @abstractmethod
    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """How intervals lie around predictions (n, k); scales and bounds are finite, scales positive."""

    def checked_shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """What `shape` says, or a ValueError that says what is wrong with it."""
        found = self.shape(X, prediction)
        name = type(self).__name__
        if not isinstance(found, IntervalShape) or (found.lower is None) != (found.upper is None):
            given = "one of them" if isinstance(found, IntervalShape) else type(found).__name__
            msg = f"{name}.shape must give an IntervalShape, with both lower and upper or neither; got {given}."
            raise ValueError(msg)
        for what, part in zip(found._fields, found, strict=True):
            if part is not None and (wrong := _fault(what, part, prediction.shape)):
                msg = f"{name}.shape {wrong}."
                raise ValueError(msg)
        return found

    def shape_unseen(self, X: FeatureTable, prediction: Array, rows: Index) -> IntervalShape | None:  # noqa: ARG002
        """The shape of some of the rows of `fit`, whose `X` and `prediction` are given, as if they were new.

        None, the default, if this width cannot tell. One that can, as forests by trees that have not seen a row, is
        learned once by `AutoWidth`, not six times.
        """
        return None

    def of_model(self, model: object, confidence_level: float, tails: str) -> Self:  # noqa: ARG002
        """Set the trained model, for widths that follow what the model says about its own uncertainty."""
        return self

    def labels(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any] | None:  # noqa: ARG002
        """Category of each row; None: all are of one."""
        if by is not None:
            msg = 'by is given, but this width has no categories; set width="grouped" or leave by out.'
            raise ValueError(msg)
        return None

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category has scores of its own; None: as many as the guarantee takes."""
        return None

    @property
    def grouping_names(self) -> tuple[str, ...] | None:
        """What each of several groupings is called; None: they have no names."""
        return None

    @property
    def is_randomized(self) -> bool:
        """Whether intervals for groups that overlap are drawn at random."""
        return False

    @property
    def takes_sparse(self) -> bool:
        """Whether X may be a sparse matrix."""
        return True


class ConstantWidth(Width):
    """Intervals that are equally wide for all rows."""

    learns = False

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:  # noqa: ARG002
        """No scale and no band."""
        return IntervalShape()


def _fault(what: str, part: Any, expected: tuple[int, ...]) -> str:
    """What is wrong with a part of the shape of intervals; empty if nothing is."""
    if not isinstance(part, np.ndarray):
        return f"must give {what} as a NumPy array; got {type(part).__name__}"
    if part.shape != expected:
        rows = "a row for each row of X, a column for each output"
        return (
            f"gives {what} of shape {part.shape} for this width, expected that of the predictions, {expected}: {rows}"
        )
    is_scale = what == "scale"
    if np.isfinite(part).all() and (not is_scale or (part > 0.0).all()):
        return ""
    return f"must give {what} with values that are {'finite and positive' if is_scale else 'finite'}; some are not"


def predictions(model: Any, X: FeatureTable, n_outputs: int | None) -> Array:
    """Predictions of shape (n, k), finite, for targets of shape (n,) if `n_outputs` is None, else (n, n_outputs)."""
    found = predicted(model, X)
    if found.dtype.kind not in "fiub":
        msg = f"estimator predicts values of dtype {found.dtype}; intervals need real numbers."
        raise ValueError(msg)
    n = _num_samples(X)
    expected = (n,) if n_outputs is None else (n, n_outputs)
    if found.shape != expected and not ((n_outputs or 1) == 1 and found.shape in {(n,), (n, 1)}):
        msg = (
            f"estimator returns predictions of shape {found.shape} for {n} rows of X; expected {expected}, one per "
            "target. Return one column per output. A calibration without its model (from_json) takes predictions as X."
        )
        raise ValueError(msg)
    return np.asarray(found.reshape(n, n_outputs or 1), np.float64)


def checked_residuals(width: Width | None, target: Array, prediction: Array) -> Array:
    """Residuals (n, k), finite, and small enough to learn from where a width learns from them."""
    with np.errstate(over="ignore"):
        residuals = target.reshape(prediction.shape) - prediction
    check_finite_rows("prediction", residuals, REMEDY)
    largest = np.maximum(np.abs(prediction), np.abs(residuals)).max(initial=0.0) if width and width.learns else 0.0
    if largest > LARGEST_TO_SQUARE:
        limit = f"{LARGEST_TO_SQUARE:g} in size to learn a width"
        msg = f"predictions and residuals must not exceed {limit}. Use a larger unit for y."
        raise ValueError(msg)
    return residuals


def write_bounds(
    quantile: ScoreQuantile,
    prediction: Array,
    shape: IntervalShape,
    lines: Index | None,
    importance: Array | None,
    out: Array,
) -> None:
    """Lower and upper bounds of intervals, into `out` (n, k, 2).

    Predictions and the parts of their shape are those of all models, (models, n, k); `lines`, of the table of
    categories, and importance weights are those of the rows, (n,).
    """
    try:
        with np.errstate(over="raise"):
            if quantile.scores.folds is None:
                _write_around_one(quantile, prediction[0], shape, lines, importance, out)
            else:
                _write_among_folds(quantile, prediction, shape, lines, out)
    except FloatingPointError as beyond:
        msg = "an interval goes beyond all floats: the prediction or the width is too large. Use a larger unit for y."
        raise ValueError(msg) from beyond


def _write_around_one(
    quantile: ScoreQuantile,
    prediction: Array,
    shape: IntervalShape,
    lines: Index | None,
    importance: Array | None,
    out: Array,
) -> None:
    """Bounds around the predictions (n, k) of one model."""
    margins = np.broadcast_to(quantile.margins, (len(quantile.margins), *out.shape[1:]))
    for j in range(out.shape[1]):
        if importance is not None:
            every = np.zeros(len(importance), np.intp) if lines is None else lines
            own = quantile.weighted_margins(every, j, importance)
        else:
            own = margins[0 if lines is None else lines, j].T
        around = of_output(shape, j)
        for side, band in enumerate((around.lower, around.upper)):
            _write_side(out[:, j, side], prediction[:, j], own[side], around.scale, band, side)
        if around.lower is not None or quantile.tails.n_cuts > 1:
            out[:, j, 0], out[:, j, 1] = uncrossed(*out[:, j].T)


def of_output(shape: IntervalShape, output: int) -> IntervalShape:
    """The shape around the predictions of the only model for one output, with parts of shape (n,)."""
    return shape.each(lambda part: part[0, :, output])


def _write_side(
    bound: Array, prediction: Array, margin: Array, scale: Array | None, band: Array | None, side: int
) -> None:
    """Lower (0) or upper (1) bounds, into `bound`: no target whose score is within the margin is lost by rounding."""
    # If a difference, rounded, is at most r, then the difference is less than the next float above r, and what is less
    # than a number is at most that number rounded: so nothing is lost by going back.
    distance = np.nextafter(margin, np.inf)
    if scale is not None:
        distance = np.nextafter(distance * scale, np.inf)
    if band is not None:
        distance = np.nextafter(distance + band, np.inf)
    (np.add if side else np.subtract)(prediction, distance, out=bound)
    if band is None:
        # Coming back from the bound, rounding may leave less than the margin, whose score the cdf would miss.
        move_out(bound, score_at(bound, prediction, scale, side) < margin, side)


def score_at(bound: Array, prediction: Array, scale: Array | None, side: int) -> Array:
    """How far the cdf takes a bound to be from the prediction, in units of the scale, towards its side."""
    with np.errstate(over="ignore"):
        residual = bound - prediction if side else prediction - bound
        return residual if scale is None else residual / scale


def move_out(bounds: Array, where: Flags, side: int) -> None:
    """Move some of the bounds by one float away from the middle, in place."""
    bounds[where] = np.nextafter(bounds[where], np.inf if side else -np.inf)


def _write_among_folds(
    quantile: ScoreQuantile, prediction: Array, shape: IntervalShape, lines: Index | None, out: Array
) -> None:
    """Bounds among the predictions (models, n, k) of all folds."""
    folds = quantile.scores.folds
    assert folds is not None
    for j in range(out.shape[1]):
        centres = folds.averaged(prediction[:, :, j])
        of_lists = IntervalShape(*(None if part is None else folds.averaged(part[..., j]) for part in shape))
        for line, rows in rows_of_lines(lines):
            centre, own = centres[:, rows], IntervalShape(*(None if a is None else a[:, rows] for a in of_lists))
            start, end = (0.0 if band is None else band for band in (own.lower, own.upper))
            found = np.empty((centre.shape[1], 2))
            found[:, 0] = -quantile.fold_bound(line, j, 0, start - centre, own.scale)
            found[:, 1] = quantile.fold_bound(line, j, 1, centre + end, own.scale)
            found[:, 0], found[:, 1] = uncrossed(*found.T)
            largest = np.maximum(np.abs(centre).max(axis=0)[:, None], np.abs(found))
            slack = np.spacing(largest, where=np.isfinite(found), out=np.zeros_like(found))
            out[rows, j] = found + np.array([-ROUNDINGS, ROUNDINGS]) * slack


def rows_of_lines(lines: Index | None) -> list[tuple[int, Any]]:
    """Each line of the table of categories, and the new rows of it."""
    if lines is None:
        return [(0, slice(None))]
    return [(line, np.flatnonzero(lines == line)) for line in np.unique(lines).tolist()]
