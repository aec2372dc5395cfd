"""`IntervalCalibrator`: the intervals of any probabilistic model, made to hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.clusters import group_numbers
from pimeter.conformal.estimator import Replaceable
from pimeter.conformal.guarantee import COPIES, GUARANTEES, scores_needed
from pimeter.conformal.portable import calibration_body, calibration_text, plain_scores, scores_of
from pimeter.conformal.quantile import Calibrated, ScoreQuantile
from pimeter.conformal.scores import TAILS
from pimeter.constraints import Level
from pimeter.coverage import ROUNDING, warn_of_coverage
from pimeter.duplicates import are_copies, copies
from pimeter.frames import refuse_other_orders
from pimeter.predictive import Predictive, predictive
from pimeter.regression.bands import Additive, Blended, Distributional, Multiplicative, Normalised
from pimeter.row_hashes import row_keys
from pimeter.validation import finite_numbers, one_or_more_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, GivenIntervals, Index, Table
    from pimeter.regression.bands import Shape

SHAPES: dict[str, type[Additive | Multiplicative | Normalised | Distributional]] = {
    "additive": Additive,
    "multiplicative": Multiplicative,
    "normalised": Normalised,
    "distributional": Distributional,
}
MIN_ROWS_TO_SPARE = 50  # calibration rows of which some can be spared to learn from
MIN_MISSES_TO_BLEND = 5  # rows to be missed from which on a third of the rows learns a blend ...
MIN_MISSES_TO_MOVE = 20  # ... and half of them how both bounds move with the centre and the width
MAX_ROWS_TO_SPARE = 1000  # that are enough


class IntervalCalibrator(Replaceable, Calibrated, BaseEstimator):
    """Intervals of any probabilistic model, made to hold on rows that it was not trained on: conformal prediction.

    Give `fit` the targets of rows that the model was not trained on and what it said of them, in one of four ways, and
    `predict_interval` what it says of new rows, in the same way. If these rows are exchangeable with the calibration
    rows (such as independent draws from one source), the interval covers the new target with the confidence level or
    more, on average over calibration sets and new rows, however wrong the model is.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Proportion of new targets that intervals should cover, between 0 and 1. Bare `intervals` may have been made for
        any level.
    method : {"auto", "additive", "multiplicative", "normalised", "distributional"}, default="auto"
        "additive": both bounds move by the same distance (conformalised quantile regression). "multiplicative": by the
        same multiple of the width. "normalised": a multiple of the half-width around the centre.
        "distributional": between two quantiles of each row's distribution, the same two for all rows, which never cross
        and serve every level at once. "auto": learned on rows that do not calibrate, as said below.
    guarantee : {"marginal", "training-conditional", "approximate"}, default="marginal"
        "marginal": the margin is the score of rank ``ceil((m + 1) p)``. "training-conditional": the least rank that
        covers p with 95 % confidence for the calibration rows at hand. "approximate": the neuron between the two
        scores next to rank ``(m + 1) p``.
    random_state : int, RandomState or None, default=None
        Chooses the rows that ``method="auto"`` learns from.

    Attributes
    ----------
    shape_ : object
        How intervals lie around predictions, with what was learned.
    margin_ : ndarray of shape (2,)
        How far bounds move out, below and above, in units of the shape's scale; may be negative.
    guaranteed_level_ : float
        Coverage that is guaranteed: the confidence level; with too few rows what they can guarantee; with
        ``guarantee="approximate"`` that of the score below; NaN where nothing is.
    guarantee_reason_ : str
        Why that is NaN; empty where something is guaranteed.
    guaranteed_ : bool
        Whether the guaranteed level is the confidence level.
    coverage_range_ : ndarray of shape (2,)
        5 % and 95 % points of the coverage of this calibration set, by the Beta distribution of ranks; NaN with
        `groups`.
    n_calibration_ : int
        Number of rows that calibrate.

    Notes
    -----
    With "auto" some of the rows, drawn at random, decide how widths follow those of the model, and the others
    calibrate, so that the guarantee is the same. Where n rows at a level p are to be missed at least 5 times, which is
    n (1 - p), a third of them (of 50 or more) finds the blend of the model's half-widths and a constant one with the
    best interval score. From 20 such rows on half of them, 1,000 at most, also learn where either bound lies, by linear
    quantile regression on centre and width. If there are fewer, all calibrate, and the method is additive. Numbers, the
    penalty and the features were chosen on generated data.

    With `groups` each of them counts once, whatever its size, and these numbers are those of groups.

    Infinite bounds stay infinite. Rows without width get some with "additive" and "auto"; the other methods refuse
    them, in `fit` and in `predict_interval`, since no multiple of such a width covers anything.

    References
    ----------
    Y. Romano, E. Patterson, E. Candès (2019), Conformalized quantile regression; M. Sesia, E. Candès (2020), A
    comparison of some conformal quantile regression methods; V. Chernozhukov, K. Wüthrich, Y. Zhu (2021),
    Distributional conformal prediction.

    See Also
    --------
    IntervalRegressor : Intervals for a model, with ``width="estimator"`` those that it predicts itself.

    Examples
    --------
    A model whose standard deviations are too small:

    >>> import numpy as np
    >>> from pimeter import IntervalCalibrator, coverage_score
    >>> rng = np.random.default_rng(0)
    >>> mean, std = rng.uniform(1, 3, size=(2, 4000))
    >>> y = rng.normal(mean, std)
    >>> old, new = slice(0, 2000), slice(2000, None)
    >>> calibrator = IntervalCalibrator(0.9, random_state=0).fit(y[old], y_pred=mean[old], std=std[old] / 2)
    >>> intervals = calibrator.predict_interval(y_pred=mean[new], std=std[new] / 2)
    >>> coverage_score(y[new], intervals), calibrator.guaranteed_level_
    (0.9005, 0.9)
    >>> calibrator.predict_interval(y_pred=[2.0], std=[1.0]).round(1)
    array([[-1.2,  5.3]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Level()],
        "method": [StrOptions({"auto", *SHAPES})],
        "guarantee": [StrOptions(set(GUARANTEES))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        method: Literal["auto", "additive", "multiplicative", "normalised", "distributional"] = "auto",
        guarantee: GuaranteeKind = "marginal",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.confidence_level = confidence_level
        self.method = method
        self.guarantee = guarantee
        self.random_state = random_state

    def fit(
        self,
        y_true: ArrayLike,
        *,
        intervals: GivenIntervals | None = None,
        quantiles: Table | None = None,
        levels: ArrayLike | None = None,
        y_pred: ArrayLike | None = None,
        std: ArrayLike | None = None,
        samples: Table | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Calibrate on rows that the model was not trained on.

        Parameters
        ----------
        y_true : array-like of shape (m,)
            Targets.
        intervals : array-like of shape (m, 2), frame with columns lower and upper, or mapping of these by level
            Central intervals; without a mapping they are taken for intervals at the confidence level.
        quantiles : array-like or frame of shape (m, q)
            Quantiles, a column for each of `levels`, which do not cross.
        levels : array-like of shape (q,)
            Levels of the quantiles.
        y_pred, std : array-like of shape (m,)
            Predictions and their standard deviations.
        samples : array-like or frame of shape (m, s)
            Draws from each row's predictive distribution.
        groups : array-like of shape (m,), optional
            Rows that belong together, such as those of one patient: each group counts once, and rows of new groups are
            covered with the guaranteed level (hierarchical conformal prediction).

        Returns
        -------
        IntervalCalibrator
            Itself; as it was before if anything is wrong with the input.
        """
        draft = self._draft()
        draft._validate_params()
        said = {"intervals": intervals, "quantiles": quantiles, "y_pred": y_pred, "std": std, "samples": samples}
        refuse_other_orders({"y_true": y_true, **said, "groups": groups})
        y = finite_numbers("y_true", y_true)
        if y.ndim != 1:
            msg = f"y_true must have shape (m,), one target for each row; got {y.shape}. Calibrate outputs one by one."
            raise ValueError(msg)
        draft._fit(
            predictive(
                intervals=intervals,
                quantiles=quantiles,
                levels=levels,
                y_pred=y_pred,
                std=std,
                samples=samples,
                confidence_level=float(self.confidence_level),
                n=len(y),
            ),
            y,
            None if groups is None else group_numbers(groups, len(y)),
        )
        return self._become(draft)

    def predict_interval(
        self,
        *,
        intervals: GivenIntervals | None = None,
        quantiles: Table | None = None,
        levels: ArrayLike | None = None,
        y_pred: ArrayLike | None = None,
        std: ArrayLike | None = None,
        samples: Table | None = None,
        confidence_level: ArrayLike | None = None,
    ) -> Array:
        """Calibrated intervals of new rows.

        Parameters
        ----------
        intervals, quantiles, levels, y_pred, std, samples
            What the model says of n new rows, in the way in which `fit` was given what it said.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the calibrator; intervals of a higher level are never narrower.

        Returns
        -------
        ndarray of shape (n, 2) or (n, 2, L)
            Lower and upper bounds.
        """
        check_is_fitted(self, "margin_")
        said = predictive(
            intervals=intervals,
            quantiles=quantiles,
            levels=levels,
            y_pred=y_pred,
            std=std,
            samples=samples,
            confidence_level=self._quantile.level,
        )
        self._refuse_another_kind(said)
        asked = self._quantile.level if confidence_level is None else confidence_level
        wanted = one_or_more_levels("confidence_level", asked)
        found = [self.shape_.bounds(said, self._quantile_at(level).margins[0, 0]) for level in wanted.ravel().tolist()]
        return np.stack(found, axis=-1) if wanted.ndim else found[0]

    def to_json(self) -> str:
        """What was calibrated as text: the shape, scores and level, without the model.

        Returns
        -------
        str
            JSON with a version and a check sum, for `from_json` and ``pimeter apply``.
        """
        check_is_fitted(self, "margin_")
        shape, before = self.shape_, self._said_before
        fields = {name: np.asarray(one).tolist() for name, one in vars(shape).items() if one is not None}
        body = {
            "settings": {
                "confidence_level": self._quantile.level,
                "method": self.method,
                "guarantee": self._quantile.kind,
            },
            "shape": {"name": type(shape).__name__, "fields": fields},
            "said": {"kind": before.kind, "levels": before.levels.tolist(), "knots": before.knots.tolist()},
            "scores": plain_scores(self._quantile.scores),
        }
        return calibration_text("IntervalCalibrator", body)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a calibrator that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        IntervalCalibrator
            With the same answers.

        Raises
        ------
        ValueError
            If the text is not a complete calibration, was changed, or is of another version.
        """
        body = calibration_body(text, "IntervalCalibrator")
        found = cls(**body["settings"])
        found._validate_params()
        fields = dict(body["shape"]["fields"])
        if "moves" in fields:
            fields["moves"] = np.array(fields["moves"], np.float64)
        kinds = {one.__name__: one for one in (*SHAPES.values(), Blended)}
        found.shape_ = kinds[body["shape"]["name"]](**fields)
        said = body["said"]
        levels, knots = (np.array(said[name], np.float64) for name in ("levels", "knots"))
        found._said_before = Predictive(said["kind"], levels, knots, np.empty((0, len(levels))))
        found._learn(scores_of(body["scores"]))
        return found

    def _fit(self, said: Predictive, y: Array, groups: Index | None) -> None:
        """Learn a shape on some of the rows if there is one to learn, and calibrate on the others."""
        keys = row_keys(said.values, y)
        found = copies(keys, None, y, groups, prediction=said.centre)
        if found.n:
            warn_of_coverage(found.warning("calibrate", has_groups=groups is not None, has_features=False))
        p = float(self.confidence_level)
        rest: Any = slice(None)
        if self.method == "auto":
            units = np.arange(len(y)) if groups is None else groups
            n_units = int(units.max()) + 1
            n_learn, has_moves = _rows_to_learn(n_units, p, self.guarantee)
            drawn = check_random_state(self.random_state).permutation(n_units)
            learn, rest = drawn[:n_learn], drawn[n_learn:]
            if groups is not None:
                learn, rest = (np.flatnonzero(np.isin(groups, some)) for some in (learn, rest))
            self.shape_: Shape = Additive(p)
            if n_learn:
                self.shape_ = Blended.learned(said.rows(learn), y[learn], p, moves=has_moves)
        else:
            self.shape_ = SHAPES[self.method](p)
        scores = replace(self.shape_.scores(said.rows(rest), y[rest]), doubts=(COPIES,) if found.n else ())
        self._said_before = said.rows(slice(0))
        codes = None if groups is None else groups[rest]
        self._learn(scores.in_groups(codes, are_copies=are_copies(groups, keys)))

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        p = float(self.confidence_level)
        self._know(ScoreQuantile(scores, TAILS["symmetric"], p, self.guarantee))
        self.margin_ = self._quantile.margins[0, 0]
        if self._quantile.weakest(0).is_enough and np.isposinf(self.margin_).any():
            warn_of_coverage(
                "the margin is infinite, and so are intervals: too many targets lie beyond quantiles that are tied or "
                'infinite, so that nothing says how far. Use method="auto" or "additive".'
            )
        self.guaranteed_ = bool(self.guaranteed_level_ >= p)

    def _refuse_another_kind(self, said: Predictive) -> None:
        """A ValueError if new rows are described in another way than those that calibrated."""
        before = self._said_before
        is_same = said.kind == before.kind and (said.kind == "samples" or np.array_equal(said.levels, before.levels))
        if not is_same:
            msg = (
                f"fit was given {before.kind} at levels {before.levels.round(6).tolist()[:9]}, predict_interval "
                f"{said.kind} at levels {said.levels.round(6).tolist()[:9]}; give both in the same way."
            )
            raise ValueError(msg)


def _rows_to_learn(n: int, p: float, guarantee: GuaranteeKind) -> tuple[int, bool]:
    """How many of n rows or groups ``method="auto"`` learns from, and whether they are enough to move both bounds."""
    misses, needed = n * (1.0 - p) + ROUNDING, scores_needed(p, kind=guarantee)
    if n < MIN_ROWS_TO_SPARE or misses < MIN_MISSES_TO_BLEND or n - n // 3 < needed:
        return 0, False
    if misses < MIN_MISSES_TO_MOVE or n - n // 2 < needed:
        return n // 3, False
    return min(n // 2, MAX_ROWS_TO_SPARE), True
