"""The calibration of an `IntervalRegressor` without its model, which applies to predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pimeter.conformal.estimator import check_calibrated
from pimeter.conformal.portable import calibration_body, calibration_text, plain_scores, scores_of
from pimeter.regression.explanation import ExplainedIntervals
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.width import ConstantWidth

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array

SETTINGS = ("confidence_level", "tails", "guarantee", "y_min", "y_max")


def predictions_themselves(X: ArrayLike) -> Array:
    """The model of a calibration that was read from a file: what is given are predictions."""
    return np.asarray(X, np.float64)


class PortableIntervals(ExplainedIntervals):
    """The part of `IntervalRegressor` that writes its calibration, and reads it without the model."""

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
        body = {
            "settings": {name: getattr(self, name) for name in SETTINGS} | {"confidence_level": self._quantile.level},
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
