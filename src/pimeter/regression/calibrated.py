"""What is known once `IntervalRegressor` is calibrated: scores, their quantiles, and what they guarantee."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from pimeter.conformal.groups import TOGETHER, Group
from pimeter.conformal.guarantee import COPIES, rank_guarantee, too_few
from pimeter.conformal.quantile import NEVER_SEEN, ScoreQuantile
from pimeter.conformal.scores import TAILS
from pimeter.coverage import percent, warn_of_coverage
from pimeter.duplicates import UNPROVEN, row_keys
from pimeter.regression.bounds import write_bounds
from pimeter.regression.joint import JointWidth
from pimeter.regression.shift import ShiftWeights, effective_size, importance_weights
from pimeter.regression.training import REMEDY, TrainedIntervals, predictions
from pimeter.regression.width import IntervalShape, Width
from pimeter.validation import check_finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.guarantee import Guarantee, GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]

ENOUGH_ESTIMATED = 5  # times the rows that a guarantee takes: with fewer effective ones estimated weights may fail
LABEL_OF_UNSEEN = "(never seen)"
UNSEEN_ARE_UNKNOWN = (
    "no small ones to learn from: their intervals go as far as the largest score, and nothing is guaranteed"
)


class CalibratedIntervals(TrainedIntervals):
    """The part of `IntervalRegressor` that turns calibration scores into attributes, quantiles and bounds."""

    guarantee: GuaranteeKind

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_scores_seen")

    def _update(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, importance_weight: ArrayLike | ShiftWeights | None
    ) -> None:
        """Add rows to the calibration set."""
        if self._scores_seen.folds is not None:
            msg = "update cannot add rows to folds that are already trained (cv is set); call fit with all rows."
            raise ValueError(msg)
        if self._shaped_by() != self._made_by:
            msg = "width, tails or joint were changed after calibration, and update learns no width; call calibrate."
            raise ValueError(msg)
        target = self._targets(X, y)
        X = self._same_table(X)
        if (None if target.ndim == 1 else target.shape[1]) != self._n_outputs:
            msg = f"y has shape {target.shape}; expected as many outputs as in calibration."
            raise ValueError(msg)
        cuts = (self._cuts, self._cuts_of(target))
        self._cuts = (min(low for low, _ in cuts), max(high for _, high in cuts))
        importance = None if importance_weight is None else importance_weights(importance_weight, X)
        new = replace(
            self._scores(self.estimator_, self.width_, X, target),
            labels=self.width_.labels(X, by),
            importance=importance,
            keys=row_keys(X, target),
            effective_size=effective_size(importance_weight),
        )
        new = new if importance is None else new.rows(importance > 0.0)
        scores = self._scores_seen.joined(new)
        n_copies = 0 if COPIES in scores.doubts else scores.n_copies(len(new))
        if n_copies:
            warn_of_coverage(
                f"{n_copies:,} of {len(scores):,} calibration rows are copies of others, now that those of update "
                f"are among them: {UNPROVEN}. Give update rows that do not calibrate yet."
            )
            scores = replace(scores, doubts=(*scores.doubts, COPIES))
        self._learn(scores)

    def _importance_of_new(self, importance_weight: ArrayLike | ShiftWeights | None, X: FeatureTable) -> Array | None:
        """Importance weights of new rows; or a ValueError if calibration had none."""
        if importance_weight is None:
            return None
        weights = importance_weights(importance_weight, X, are_new=True)
        if self._scores_seen.importance is None:
            msg = "importance_weight is given for new rows, but calibration had none: pass it to calibrate, too."
            raise ValueError(msg)
        return weights

    def _widths(self) -> list[Width]:
        """The widths that have learned, one for each model."""
        return self.width_ if isinstance(self.width_, list) else [self.width_]

    def _shaped_by(self) -> tuple[str, str, bool]:
        """Settings that a width is learned with."""
        return repr(self.width), self.tails, self.joint

    def _quantile_at(self, level: float) -> ScoreQuantile:
        """Quantiles at another level, with the settings and groups of calibration; warns of too few scores."""
        quantile, width = self._quantile, self._widths()[0]
        if level == quantile.level:
            return quantile
        found = ScoreQuantile.of(
            quantile.scores, quantile.tails, level, quantile.kind, min_rows=width.min_rows, like=quantile
        )
        warn_of_few_scores(found)
        return found

    def _one_sided(self, level: float, tails: str) -> ScoreQuantile:
        """Quantiles of signed scores; the same groups have a line at all levels, so that quantiles do not cross."""
        scores, like = self._scores_seen.signed(), self._quantile
        return ScoreQuantile.of(scores, TAILS[tails], level, like.kind, like=like)

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        are_unequal = scores.importance is not None and np.ptp(scores.importance) > 0.0
        if self.guarantee == "training-conditional" and (are_unequal or scores.effective_size is not None):
            msg = (
                'guarantee="training-conditional" takes the distribution of ranks, which is not known for unequal or '
                'estimated importance_weight; set guarantee="marginal".'
            )
            raise ValueError(msg)
        is_joint = isinstance(self._widths()[0], JointWidth)
        level, min_rows = float(self.confidence_level), self._widths()[0].min_rows
        quantile = ScoreQuantile.of(
            scores.jointly() if is_joint else scores, TAILS[self.tails], level, self.guarantee, min_rows=min_rows
        )
        warn_of_few_scores(quantile)
        _warn_of_few_groups(quantile)
        self._scores_seen, self._quantile, self._made_by = scores, quantile, self._shaped_by()
        self.categories_ = _categories(quantile)
        lines = [0] if quantile.groups is None else quantile.groups.lines
        self.guaranteed_level_ = float(np.min([quantile.guaranteed(line) for line in lines]))
        self.guarantee_reason_ = quantile.reason()
        self.guaranteed_ = bool(self.guaranteed_level_ >= self.confidence_level)
        self.coverage_range_ = quantile.per_group(quantile.coverage_ranges())
        margin = quantile.per_group(list(quantile.margins))
        if is_joint:
            margin = margin * np.mean([width.margin_ for width in self._widths()], axis=0)[:, None]
        self.margin_ = margin[..., 0, :] if self._n_outputs is None else margin
        self.n_calibration_ = len(scores)

    def _shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """Shapes of intervals around the predictions of all models."""
        if not prediction.shape[1]:
            return IntervalShape()  # most estimators refuse to shape nothing
        shapes = [width.checked_shape(X, one) for width, one in zip(self._widths(), prediction, strict=True)]
        return IntervalShape.merged(shapes, [one.shape for one in prediction], np.stack)

    def _predictions(self, X: FeatureTable) -> Array:
        """Predictions of all models, (models, n, k)."""
        found = [predictions(model, X, self._n_outputs) for model in self._models()]
        table = found[0][None] if len(found) == 1 else np.stack(found)
        with np.errstate(over="ignore"):
            check_finite("prediction", table[0] if len(found) == 1 else table.mean(axis=0), REMEDY)
        return table

    def _squeezed(self, values: Array) -> Array:
        """Without the axis of outputs if the target has none."""
        return values[:, 0] if self._n_outputs is None else values

    def _write_bounds(
        self,
        quantile: ScoreQuantile,
        prediction: Array,
        shape: IntervalShape,
        lines: NDArray[np.intp] | None,
        importance: Array | None,
        out: Array,
    ) -> None:
        """Bounds of intervals, into `out` (n, k, 2), cut at the least and the largest possible target."""
        try:
            with np.errstate(over="raise"):
                write_bounds(quantile, prediction, shape, lines, importance, out)
        except FloatingPointError as beyond:
            msg = (
                "an interval goes beyond all floats: the prediction or the width is too large. Use a larger unit for y."
            )
            raise ValueError(msg) from beyond
        if np.isfinite(self._cuts).any():
            np.clip(out, *self._cuts, out=out)


def _categories(quantile: ScoreQuantile) -> list[Group]:
    """Rows, guaranteed level and source of each category, and of all those never seen in a last line."""
    table = quantile.groups
    if table is None:
        return []
    found = []
    for label, n in table.rows.items():
        line = table.line_of[label]
        source, note = ("shared", TOGETHER) if line == table.shared else ("own", "")
        found.append(Group(label, n, quantile.guaranteed(line), source, note))
    return [*found, Group(LABEL_OF_UNSEEN, 0, np.nan, "shared" if table.pooled else "none", NEVER_SEEN)]


def _warn_of_few_groups(quantile: ScoreQuantile) -> None:
    """Say that groups of rows which resemble each other are fewer than scores would have to be."""
    n_groups, level = quantile.scores.n_groups, quantile.level
    needed = rank_guarantee(1, level, kind=quantile.kind, n_cuts=quantile.tails.n_cuts).needed
    if n_groups is not None and n_groups < needed:
        warn_of_coverage(
            f"scores of {n_groups} groups calibrate, and rows of one group may resemble each other: nothing is "
            f"guaranteed to rows of new groups, of which {percent(level, 6)} intervals may cover far less. {needed} "
            "groups or more do better."
        )


def warn_of_few_scores(quantile: ScoreQuantile) -> None:
    """Say where scores are too few for a guarantee or, with estimated weights, to come near the level."""
    if quantile.scores.effective_size is not None:
        _warn_of_few_effective(quantile, quantile.scores.effective_size)
        return
    table = quantile.groups
    lines = {0} if table is None else set(table.lines)
    small = set() if table is None else {table.shared}
    own = "" if table is None else " of a category"
    for of, some in ((own, sorted(lines - small)), (" of the smaller categories", sorted(lines & small))):
        weak = [(line, quantile.weakest(line)) for line in some]
        few = [replace(one, level=quantile.guaranteed(line)) for line, one in weak if not one.is_enough]
        if few:
            _warn_of_few(quantile, few, of)


def _warn_of_few(quantile: ScoreQuantile, few: list[Guarantee], of: str) -> None:
    """Say what the fewest scores can guarantee, and how many are needed."""
    several = f" (the smallest of {len(few)} such)" if len(few) > 1 else ""
    side = " on one side of the prediction" if quantile.tails.is_by_sign else ""
    most = "" if quantile.scores.folds is None else " (with cv they guarantee 2 p - 1 at most)"
    least = min(few, key=attrgetter("m"))
    warn_of_coverage(f"{too_few(least, quantile.level, of + several + side)}{most}.")


def _warn_of_few_effective(quantile: ScoreQuantile, size: float) -> None:
    """Say that rows with estimated weights are effectively too few to come near the level."""
    enough = ENOUGH_ESTIMATED * rank_guarantee(1, quantile.level, n_cuts=quantile.tails.n_cuts).needed
    if size < enough:
        warn_of_coverage(
            f"by their estimated weights the calibration rows are about as good as {size:.3g} rows like the new ones: "
            f"{percent(quantile.level, 6)} intervals may cover far less, and nothing is guaranteed. As a rule of thumb "
            f"take {enough} or more: calibrate on more rows, or on rows more like the new ones."
        )
