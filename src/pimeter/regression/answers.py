"""What a calibrated `IntervalRegressor` answers beside intervals: distributions, plots, explanations, and JSON text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from pimeter.arrays import is_sparse
from pimeter.conformal.estimator import check_calibrated
from pimeter.conformal.overlapping import OverlappingQuantile
from pimeter.conformal.portable import calibration_body, calibration_text, plain_scores, scores_of
from pimeter.conformal.scores import TAILS
from pimeter.regression.distribution import cdf_values, move_beyond, places_asked
from pimeter.regression.explanation import explanation_of
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.training import TrainedIntervals
from pimeter.regression.width import ConstantWidth, write_bounds
from pimeter.validation import one_or_more_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.plotting import IntervalDisplay
    from pimeter.protocols import Array, FeatureTable
    from pimeter.regression.explanation import WidthExplanation
    from pimeter.regression.width import IntervalShape


def predictions_themselves(X: ArrayLike) -> Array:
    """The model of a calibration that was read from a file: what is given are predictions."""
    return np.asarray(X, np.float64)


class IntervalAnswers(TrainedIntervals):
    """The methods of `IntervalRegressor` beside those that fit, calibrate and predict intervals."""

    def predict_quantile(self, X: FeatureTable, q: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Quantiles of the target's distribution, from signed scores; after weights, of rows of average importance.

        Each is the bound of a one-sided interval: a proportion q of targets or more lies below it for q of .5 and more,
        a proportion 1 - q or more above it for a smaller one, as `guarantee` says. So it is the upper bound of
        ``tails="upper"`` at level q, or the lower bound of ``tails="lower"`` at level 1 - q, and the quantiles at (1 -
        p)/2 and (1 + p)/2 are the bounds of ``tails="equal"`` at level p (not with ``guarantee="training-conditional"``
        or `joint`, which look at both tails or all outputs at once), to the last bit or the next float beyond:
        `predict_cdf` there is q or more for q of .5 and more, q or less for a smaller one, if there are enough rows for
        the level and `guarantee` is not "approximate". A band of quantiles is not moved here, as it is in
        `predict_interval`, but stretched: widths "quantile" and, with signed tails, "local".

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        q : float or array-like of shape (L,)
            Levels between 0 and 1. Quantiles of a higher level are never lower.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of shape (n[, k][, L])
        """
        check_calibrated(self)
        levels = one_or_more_levels("q", q)
        labels, prediction, shape = self._around_middles(X, by)
        out = np.empty((*prediction.shape[1:], levels.size))
        both = np.empty((*out.shape[:2], 2))
        for i, level in enumerate(levels.ravel().tolist()):
            side = int(level >= 0.5)
            quantile = self._one_sided(max(level, 1.0 - level), "upper" if side else "lower")
            self._warn_of_few(quantile)
            quantile = quantile.for_rows(labels)
            lines = quantile.lines(labels)
            write_bounds(quantile, prediction, shape, lines, None, both)
            out[..., i] = both[..., side]
            move_beyond(quantile, prediction, shape, lines, out[..., i], side)
        np.clip(out, *self._cuts, out=out)
        return self._squeezed(out if levels.ndim else out[..., 0])

    def predict_cdf(self, X: FeatureTable, y: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Probability that the target lies below y, from signed scores; after weights, in rows of average importance.

        Of m calibration scores, those less than that of y count 1 and equal ones 1/2, as does the new row itself, out
        of m + 1. Of observed targets these are p-values: for exchangeable rows without ties they are spread evenly
        between 0 and 1, so that ``F + 1/(2m + 2) <= a`` has at most probability a.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : float or array-like of shape (n,) or (n, g)
            Where to ask: at one value for all rows, at one for each row, or at g for each row. For k outputs of shape
            (n, k) or (n, k, g).
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of the shape of y; for a scalar (n,) or (n, k)
        """
        check_calibrated(self)
        labels, prediction, shape = self._around_middles(X, by)
        size = prediction.shape[1:]
        asked = places_asked(y, size if self._n_outputs is not None else size[:1])
        quantile = self._one_sided(self._quantile.level, "upper")
        if isinstance(quantile, OverlappingQuantile):
            msg = "predict_cdf is not known for groups that overlap; ask predict_quantile, or give one grouping."
            raise ValueError(msg)  # noqa: TRY004
        table = asked.reshape(*size, -1)
        found = cdf_values(quantile, prediction, shape, quantile.lines(labels), table)
        low, high = self._cuts
        found[table < low] = 0.0
        found[table >= high] = 1.0
        return found.reshape(asked.shape)

    def plot(
        self,
        X: FeatureTable,
        y: ArrayLike | None = None,
        *,
        confidence_level: float | None = None,
        by: ArrayLike | None = None,
        max_rows: int = 60,
        ax: Axes | None = None,
    ) -> IntervalDisplay:
        """Intervals of some rows, in the order of the predictions.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : array-like of shape (n,), optional
            Targets, which are shown inside or outside of their intervals.
        confidence_level : float, optional
            Another level than that of the estimator.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        max_rows : int, default=60
            Rows that are shown; of more, some at random.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        pimeter.plotting.IntervalDisplay
            With the axes as `ax_`.
        """
        from pimeter.plotting import IntervalDisplay

        asked: Any = {"confidence_level": confidence_level, "by": by}
        return IntervalDisplay.from_estimator(self, X, y, **asked, max_rows=max_rows, ax=ax)

    def explain(self, X_row: FeatureTable) -> WidthExplanation:
        """Why the interval of a row is as wide as it is.

        Parameters
        ----------
        X_row : array or frame of one row
            Features, as for `predict_interval`; of one output, and for widths that take no `by` in methods.

        Returns
        -------
        WidthExplanation
            The width beside the typical one, what each feature adds to it, and hard calibration rows like it. It prints
            as a few lines.

        Raises
        ------
        ValueError
            If X_row has more than one row, is sparse, or the interval is infinite.

        Notes
        -----
        Contributions are Shapley values: features of calibration rows (up to 500 are remembered) are exchanged for
        those of the row one by one, in 80 orders drawn with a fixed seed, and each is given the change of the width at
        its turn, on average. They explain the width that the model gives, not what causes residuals to be large.

        Examples
        --------
        >>> import numpy as np
        >>> from pimeter import IntervalRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(2000, 3))
        >>> y = rng.normal(scale=0.5 + 2.0 * X[:, 1])
        >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width="scaled", random_state=0).calibrate(X, y)
        >>> found = model.explain([[0.5, 0.95, 0.5]])
        >>> found.contributions[0].feature, found.width > 1.3 * found.typical_width
        ('column 1', True)
        """
        check_calibrated(self)
        row = self._same_table(X_row)
        if _num_samples(row) != 1 or is_sparse(row) or self._n_outputs is not None:
            msg = f"explain takes one row of a model with one output, not sparse; got {_num_samples(row)} rows."
            raise ValueError(msg)
        return explanation_of(row, self._remembered, self)

    def to_json(self) -> str:
        """What was calibrated as text: scores, categories and level, in a few kilobytes, without the model.

        Returns
        -------
        str
            JSON with a version and a check sum, for `from_json` and ``pimeter apply``. It holds residuals of the
            calibration rows and their categories, and nothing else of them.

        Raises
        ------
        ValueError
            If intervals need more than predictions: widths that learned, `joint`, and models of several folds.
            ``pimeter.integrations.skops`` says how to save these whole.
        """
        check_calibrated(self)
        width, scores = self._widths()[0], self._scores_seen
        if scores.folds is not None or not isinstance(width, ConstantWidth | GroupedWidth) or width.is_randomized:
            what = "models of several folds" if scores.folds is not None else f"a {type(width).__name__} that learned"
            msg = (
                f'intervals of {what} need more than predictions; to_json takes width="constant" or "grouped", joint='
                "False and cv=None. Save the whole estimator with skops instead (pimeter.integrations.skops)."
            )
            raise ValueError(msg)
        settings = {  # of the calibration: parameters may have been changed since
            "confidence_level": self._quantile.level,
            "tails": self._settings["tails"],
            "guarantee": self._quantile.kind,
            "y_min": self.y_min,
            "y_max": self.y_max,
        }
        body = {
            "settings": settings,
            "grouped": {"min_size": width.min_size} if isinstance(width, GroupedWidth) else None,
            "n_outputs": self._n_outputs,
            "cuts": list(self._cuts),
            "scores": plain_scores(scores),
        }
        return calibration_text("IntervalRegressor", body)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Intervals around predictions, by a calibration that `to_json` wrote; the model is not needed.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        IntervalRegressor
            Its methods take predictions, of shape (n,) or (n, n_outputs), in the place of X, and categories as `by`.

        Raises
        ------
        ValueError
            If the text is not a complete calibration, was changed, or is of another version.

        Examples
        --------
        >>> import numpy as np
        >>> from pimeter import IntervalRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(999, 1))
        >>> y = X[:, 0] + rng.normal(size=999)
        >>> text = IntervalRegressor(lambda X: X[:, 0]).calibrate(X, y).to_json()
        >>> IntervalRegressor.from_json(text).predict_interval([0.0, 10.0]).round(2)
        array([[-1.98,  1.98],
               [ 8.02, 11.98]])
        """
        body = calibration_body(text, "IntervalRegressor")
        grouped: Any = body["grouped"]
        width = "constant" if grouped is None else GroupedWidth(min_size=grouped["min_size"])
        found = cls(predictions_themselves, width=width, **body["settings"])
        found._validate_params()
        low, high = body["cuts"]
        found._settings, found._columns, found._cuts = found._settings_now(), [], (float(low), float(high))
        found._n_outputs = body["n_outputs"]
        found.estimator_, found.width_ = predictions_themselves, found._new_width()
        found._learn(scores_of(body["scores"]))
        return found

    def _around_middles(
        self, X: FeatureTable, by: ArrayLike | None
    ) -> tuple[NDArray[Any] | None, Array, IntervalShape]:
        """Categories of new rows, middles of the bands around predictions of all models, and shapes around these."""
        X = self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        prediction = self._predictions(X)
        band = self._shape(X, prediction)
        return labels, band.middle(prediction), band.without_band()

    def _one_sided(self, level: float, tails: str) -> ScoreQuantile:
        """Quantiles of signed scores; the same categories have a line at all levels, so that quantiles do not cross."""
        return replace(self._quantile, scores=self._scores_seen.signed(), tails=TAILS[tails], level=level)
