"""`AutoWidth`: the width that wins on rows that do not calibrate."""

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
from pimeter.regression.local import LocalWidth
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.width import ConstantWidth, IntervalShape, Width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.conformal.scores import Tails
    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]

FOLDS = 5
FEWEST = 60  # rows: with fewer, nothing but a constant width is learned
ROWS_TO_DECIDE = 5000  # that are enough to decide
CAUTION = 1.0  # standard errors that a width has to win by over a constant one


class Candidate(NamedTuple):
    """One line of the table of widths to choose from."""

    width: Width
    ratio: float  # mean interval score over that of a constant width, on rows that the width has not seen
    error: float  # its standard error


class AutoWidth(Width):
    """Whichever width has the best interval score on rows that do not calibrate, with a handicap.

    Each candidate learns on four of five folds and is scored on the other one, in turn. Picking the best of many
    by their scores picks the luckiest, too: hence a candidate's score counts with one standard error of its difference
    to the constant width added to it, and the constant width remains if none is better by more than that. Calibration
    sees none of these rows, so that the guarantee of coverage holds whatever is chosen.

    Parameters
    ----------
    candidates : sequence of widths or None, default=None
        What to choose from, beside a constant width. None: `ScaledWidth`, `LocalWidth` and `QuantileWidth` as they
        come.

    Attributes
    ----------
    chosen_ : Width
        The winner, which has learned from all rows.
    candidates_ : list of Candidate
        Width, ratio of its interval score to that of a constant width, and the ratio's standard error. A frame library
        makes a table of it, such as ``pandas.DataFrame(model.width_.candidates_)``.
    reason_ : str
        What was chosen, and by how much it won. (With ``joint=True`` all of these are at ``model.width_.width``.)

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = rng.normal(scale=0.1 + X[:, 0])
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width="auto", random_state=0).calibrate(X, y)
    >>> best = min(model.width_.candidates_, key=lambda candidate: candidate.ratio)
    >>> best.width.learns, best.ratio < 0.85, model.width_.chosen_.learns
    (True, True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"candidates": ["array-like", None]}

    learns = True

    def __init__(self, candidates: Sequence[Width] | None = None) -> None:
        self.candidates = candidates

    def fit(self, X: FeatureTable, prediction: Array, residuals: Array, **wanted: Any) -> Self:
        """Compare the candidates, and let the winner learn from all rows."""
        widths = [ConstantWidth(), *self._checked_candidates(X, prediction)]
        self.candidates_: list[Candidate] = []
        self.chosen_: Width = widths[0]
        self.reason_ = f"constant width: {len(residuals)} rows are too few to compare others with ({FEWEST} are needed)"
        if len(residuals) >= FEWEST:
            rows = np.random.default_rng(wanted["random_state"]).permutation(len(residuals))[:ROWS_TO_DECIDE]
            table = _losses(widths, _safe_indexing(X, rows), prediction[rows], residuals[rows], wanted)
            self._choose(widths, table)
        if self.chosen_.learns:
            self.chosen_.fit(X, prediction, residuals, **wanted)
        return self

    def _checked_candidates(self, X: FeatureTable, prediction: Array) -> list[Width]:
        """Clones of the candidates, each of which can win."""
        given = (ScaledWidth(), LocalWidth(), QuantileWidth()) if self.candidates is None else self.candidates
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

    def _choose(self, widths: list[Width], table: Array) -> None:
        """Set the winner, by interval scores (widths, n, k), and the table of candidates."""
        unit = np.maximum(table[0].mean(axis=0), np.finfo(np.float64).tiny)
        losses = (table / unit).mean(axis=2)
        ratios = losses.mean(axis=1)
        gaps = (losses - losses[0]).std(axis=1, ddof=1) / table.shape[1] ** 0.5
        self.candidates_ = [Candidate(*line) for line in zip(widths, ratios.tolist(), gaps.tolist(), strict=True)]
        best = self.candidates_[int(np.argmin(ratios + CAUTION * gaps))]
        self.chosen_ = clone(best.width)
        self.reason_ = f"{_name(best.width)}: interval score {best.ratio:.3f} +- {best.error:.3f} of a constant width"
        if best.width is widths[0]:
            second = min(self.candidates_[1:], key=lambda line: line.ratio)
            self.reason_ = (
                f"constant width: the next best, {_name(second.width)}, has {second.ratio:.3f} +- {second.error:.3f} "
                "of its interval score"
            )

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """That of the winner."""
        return self.chosen_.checked_shape(X, prediction)

    @property
    def takes_sparse(self) -> bool:
        """Whether all candidates do."""
        return all(width.takes_sparse for width in self.candidates or ())


def _name(width: Width) -> str:
    return repr(width).replace("()", "")


def _losses(
    widths: Sequence[Width], X: FeatureTable, prediction: Array, residuals: Array, wanted: dict[str, Any]
) -> Array:
    """Interval scores (widths, n, k) of rows that the widths have not seen."""
    shapes: list[list[IntervalShape]] = [[] for _ in widths]
    parts = []
    for rows, others in KFold(FOLDS).split(residuals):
        known, new = _safe_indexing(X, rows), _safe_indexing(X, others)
        forests: dict[int, Any] = {}
        for width, found in zip(widths, shapes, strict=True):
            one = clone(width)
            one._forests = forests
            one.fit(known, prediction[rows], residuals[rows], **wanted)
            found.append(one.checked_shape(new, prediction[others]))
        parts.append(residuals[others].shape)
    level, tails = wanted["confidence_level"], TAILS[wanted["tails"]]
    merged = [IntervalShape.merged(found, parts, np.concatenate) for found in shapes]
    return np.stack([_interval_scores(shape, residuals, level, tails) for shape in merged])


def _interval_scores(shape: IntervalShape, residuals: Array, level: float, tails: Tails) -> Array:
    """Interval score of each row and output, for the margin that these residuals call for."""
    margins = ScoreQuantile(shape.scores(residuals), tails, level, "marginal").margins[0]
    present = [tails.has_lower, tails.has_upper]
    penalty = sum(present) / (1.0 - level)
    scores = np.zeros(residuals.shape)
    for sign, band, margin, is_there in zip((-1.0, 1.0), shape[1:], margins.T, present, strict=True):
        if is_there:
            bound = (margin if shape.scale is None else margin * shape.scale) + (0.0 if band is None else band)
            # With both bounds residuals cancel; with one this is the pinball loss, which the unit of y cannot shift.
            scores += bound - sign * residuals + penalty * np.maximum(sign * residuals - bound, 0.0)
    return scores
