"""`AutoWidth`: several widths combined, by weights learned on rows that do not calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from pimeter.conformal.quantile import ScoreQuantile
from pimeter.conformal.scores import TAILS
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.quantile_forest import QuantileForestWidth
from pimeter.regression.scaled import MIN_SCALE, ScaledWidth
from pimeter.regression.stacking import Bounds, interval_losses, stacked_weights
from pimeter.regression.width import ConstantWidth, IntervalShape, Width

if TYPE_CHECKING:
    from pimeter.conformal.scores import Tails
    from pimeter.protocols import Array, FeatureTable, Index

FOLDS = 5  # of widths that cannot tell what they would say of rows that they have not seen
MIN_ROWS_TO_LEARN = 60  # rows: with fewer, nothing but a constant width is learned
MAX_ROWS_TO_LEARN = 20_000  # that are enough for all widths
MAX_ROWS_TO_WEIGH = 1000  # that are enough for the weights
PSEUDO_ROWS = 60  # that vote for a constant width alone, beside those that learn
MIN_GAIN = 1.0  # standard errors by which the combination has to be better than a constant width
DEFAULT_CANDIDATES = (ScaledWidth("neighbours", power=1), QuantileWidth(), QuantileForestWidth())
MIN_WEIGHT = 0.02  # widths with less are left out: they cost time and change nothing


class Candidate(NamedTuple):
    """One line of the table of widths that are combined."""

    width: Width
    ratio: float  # mean interval score of this width alone over that of a constant one, on rows that it has not seen
    error: float  # its standard error
    weight: float  # that it has in the combination


class AutoWidth(Width):
    """Several widths at once: bounds are a weighted mean of theirs, which calibration moves as it does any others.

    The interval score is convex in the bounds, so that a mean of bounds is never worse than the widths are on average,
    and mostly better than the best of them. Weights are those with the least interval score on rows that do not
    calibrate, each judged by trees that have not seen it (or, widths without such trees, out of fold). A constant width
    is always among them: weights are shrunk towards it as if 60 more rows had voted for it alone, which was a little
    better on rows set aside, and it remains alone if the combination is not better by a standard error. Calibration
    sees none of these rows, so that the guarantee of coverage holds whatever is combined.

    Parameters
    ----------
    candidates : sequence of widths or None, default=None
        What to combine, beside a constant width. None: ``ScaledWidth("neighbours", power=1)``, `QuantileWidth` and
        `QuantileForestWidth`.

    Attributes
    ----------
    candidates_ : list of Candidate
        Width, ratio of its interval score to that of a constant width, the ratio's standard error, and its weight. A
        frame library makes a table of it, such as ``pandas.DataFrame(model.width_.candidates_)``.
    ratio_, error_ : float
        Ratio of the interval score of the combination, and its standard error; 1 and 0 if a constant width remains.
    reason_ : str
        What was combined, and how much better it is. (With ``joint=True`` all of these are at ``model.width_.width``.)

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = rng.normal(scale=0.1 + X[:, 0])
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width="auto", random_state=0).calibrate(X, y)
    >>> constant, *others = model.width_.candidates_
    >>> sum(one.weight for one in others) > 0.9, model.width_.ratio_ < 0.85
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"candidates": ["array-like", None]}

    learns = True

    def __init__(self, candidates: Sequence[Width] | None = None) -> None:
        self.candidates = candidates

    @property
    def _takes_spread(self) -> bool:
        """Whether `fit` takes `spread`, how far the trees of the model disagree, as a candidate does."""
        given = self.candidates if isinstance(self.candidates, Sequence) else DEFAULT_CANDIDATES
        return any(width._takes_spread for width in given if isinstance(width, Width))

    def of_model(self, model: object, confidence_level: float, tails: str) -> Self:
        """Tell the candidates which model they are about."""
        for one in getattr(self, "_combined", ()):
            one.width.of_model(model, confidence_level, tails)
        return self

    def fit(
        self, X: FeatureTable, prediction: Array, residuals: Array, *, spread: Array | None = None, **wanted: Any
    ) -> Self:
        """Let the candidates learn, and find their weights."""
        widths = [ConstantWidth(), *self._checked_candidates(X, prediction)]
        self.candidates_: list[Candidate] = []
        self.ratio_, self.error_ = 1.0, 0.0
        self._combined: list[_Part] = []
        self._tails, self._least = TAILS[wanted["tails"]], MIN_SCALE * np.abs(residuals).mean(axis=0)
        n = len(residuals)
        self.reason_ = f"constant width: {n} rows are too few to compare others with ({MIN_ROWS_TO_LEARN} are needed)"
        if n < MIN_ROWS_TO_LEARN:
            return self
        if not residuals.any():
            self.reason_ = "constant width: all residuals are 0, which no other width can win over"
            return self
        rng = np.random.default_rng(wanted["random_state"])
        if n > MAX_ROWS_TO_LEARN:
            rows = np.sort(rng.permutation(n)[:MAX_ROWS_TO_LEARN])
            X, prediction, residuals = _safe_indexing(X, rows), prediction[rows], residuals[rows]
            spread = None if spread is None else spread[rows]
        rows = np.sort(rng.permutation(len(residuals))[:MAX_ROWS_TO_WEIGH])
        for width in widths:
            own: dict[str, Any] = {"spread": spread} if width._takes_spread else {}
            width.fit(X, prediction, residuals, **wanted, **own)
        shapes = [_unseen(width, X, prediction, residuals, rows, wanted) for width in widths]
        margins = [_margins(shape, residuals[rows], wanted["confidence_level"], self._tails) for shape in shapes]
        size = residuals[rows].shape
        bounds = [_bounds(shape, margin, size) for shape, margin in zip(shapes, margins, strict=True)]
        self._weigh(widths, margins, bounds, residuals[rows], len(residuals), wanted["confidence_level"])
        return self

    def _weigh(
        self,
        widths: list[Width],
        margins: list[Array],
        bounds: list[Bounds],
        residuals: Array,
        n_learned: int,
        level: float,
    ) -> None:
        """Find weights, by bounds of rows that the widths have not seen, and say what they came to."""
        losses = interval_losses(bounds, residuals, level, self._tails)
        unit = np.maximum(losses[0].mean(axis=0), np.finfo(np.float64).tiny)
        weights = stacked_weights(bounds, residuals, unit, level, self._tails)
        weights[weights < min(MIN_WEIGHT, weights.max())] = 0.0
        weights = weights / weights.sum() * n_learned
        weights[0] += PSEUDO_ROWS
        weights /= weights.sum()
        mixed = Bounds.mean(bounds, weights)
        table = np.concatenate([losses, interval_losses([mixed], residuals, level, self._tails)])
        each = (table / unit).mean(axis=2)
        ratios, gaps = each.mean(axis=1), (each - each[0]).std(axis=1, ddof=1) / each.shape[1] ** 0.5
        if ratios[-1] + MIN_GAIN * gaps[-1] < 1.0:
            self.ratio_, self.error_ = float(ratios[-1]), float(gaps[-1])
            every = zip(widths, margins, weights.tolist(), strict=True)
            self._combined = [_Part(*one) for one in every if one[2] > 0.0]
        else:
            weights = np.eye(len(widths))[0]
        lines = zip(widths, ratios.tolist(), gaps.tolist(), weights.tolist(), strict=False)
        self.candidates_ = [Candidate(*line) for line in lines]
        self.reason_ = self._reason(float(ratios[-1]), float(gaps[-1]))

    def _reason(self, ratio: float, error: float) -> str:
        """What was combined, and what it gained."""
        if not self._combined:
            return (
                f"constant width: others combined have {ratio:.3f} +- {error:.3f} of its interval score, which is no "
                "clear gain"
            )
        parts = (
            f"{one.weight:.0%} {_name(one.width)} ({one.ratio:.3f} alone)" for one in self.candidates_ if one.weight
        )
        return f"interval score {ratio:.3f} +- {error:.3f} of a constant width: {', '.join(parts)}"

    def _checked_candidates(self, X: FeatureTable, prediction: Array) -> list[Width]:
        """Clones of the candidates, each of which may be better than a constant width; or a ValueError."""
        given = DEFAULT_CANDIDATES if self.candidates is None else self.candidates
        if not isinstance(given, Sequence) or not given or not all(isinstance(width, Width) for width in given):
            msg = f"candidates must be a list of widths, such as [ScaledWidth()]; got {given!r}."
            raise ValueError(msg)
        widths: list[Width] = [clone(width) for width in given]
        for width in widths:
            width._validate_params()
            if not width.learns and width.checked_shape(X, prediction).scale is None:
                msg = f"candidates must learn or scale, which {width!r} does not: it cannot win over a constant width."
                raise ValueError(msg)
        return widths

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """The weighted mean of the bounds of all widths, and half of what is between them as scale."""
        if not self._combined:
            return IntervalShape()
        found = [
            _bounds(one.width.checked_shape(X, prediction), one.margin, prediction.shape) for one in self._combined
        ]
        mean = Bounds.mean(found, np.array([one.weight for one in self._combined]))
        short = np.maximum(self._least - (mean.lower + mean.upper) / 2.0, 0.0)
        lower, upper = mean.lower + short, mean.upper + short
        half = (lower + upper) / 2.0
        scale = np.where(half > 0.0, half, 1.0)
        return IntervalShape(scale) if self._tails.is_by_sign else IntervalShape(scale, lower, upper)

    @property
    def takes_sparse(self) -> bool:
        """Whether X may be a sparse matrix, as it may for all candidates."""
        return all(width.takes_sparse for width in self.candidates or ())


class _Part(NamedTuple):
    """A width of the combination."""

    width: Width
    margin: Array  # (k, 2): below and above, that its scores call for by itself
    weight: float


def _name(width: Width) -> str:
    return repr(width).replace("()", "")


def _bounds(shape: IntervalShape, margin: Array, size: tuple[int, ...]) -> Bounds:
    """How far bounds with this margin (k, 2) lie below and above the prediction, (n, k) each."""
    sides = []
    for band, own in zip((shape.lower, shape.upper), margin.T, strict=True):
        side = np.broadcast_to(own, size) if shape.scale is None else own * shape.scale
        sides.append(side if band is None else side + band)
    return Bounds(*sides)


def _margins(shape: IntervalShape, residuals: Array, level: float, tails: Tails) -> Array:
    """Margins (k, 2) that residuals call for; with one bound alone the other is as far as it would be by itself."""
    scores = shape.scores(residuals)
    if tails.has_lower and tails.has_upper:
        return np.asarray(ScoreQuantile(scores, tails, level, "marginal").margins[0])
    both = (ScoreQuantile(scores, TAILS[side], level, "marginal").margins[0] for side in ("lower", "upper"))
    return np.stack([margins[:, i] for i, margins in enumerate(both)], axis=1)


def _unseen(
    width: Width, X: FeatureTable, prediction: Array, residuals: Array, rows: Index, wanted: dict[str, Any]
) -> IntervalShape:
    """Shapes of some rows that a width would give if it had not seen them: it may know, or learns out of fold."""
    if not width.learns:
        return width.checked_shape(_safe_indexing(X, rows), prediction[rows])
    found = width.shape_unseen(X, prediction, rows)
    if found is not None:
        return found
    shapes, extents = [], []  # folds and rows are in order
    for known, others in KFold(FOLDS).split(residuals):
        asked = np.intersect1d(others, rows)
        one = clone(width).fit(_safe_indexing(X, known), prediction[known], residuals[known], **wanted)
        shapes.append(one.checked_shape(_safe_indexing(X, asked), prediction[asked]))
        extents.append(residuals[asked].shape)
    return IntervalShape.merged(shapes, extents, np.concatenate)
