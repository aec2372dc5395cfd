"""`ScaledWidth`: residuals normalised by the absolute residual that was to be expected (locally weighted)."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from pimeter.coverage import counted, warn_of_coverage
from pimeter.regression.features import Features
from pimeter.regression.surroundings import Surroundings
from pimeter.regression.width import IntervalShape, Width
from pimeter.validation import check_finite_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]

LEAST_SCALE = 0.05  # smallest scale, in mean absolute errors: a scale of 0 would mean a model without error
STANDS_FOR_ZERO = np.finfo(np.float64).tiny ** 0.25  # a prediction of 0, where relative errors have no meaning
ROWS_IN_LEAF = 20  # at least, and of rows to learn a scale from
ROWS_OF_TREE = 10_000  # that are enough for each tree


class ScaledWidth(Width):
    """Residuals divided by a learned scale to a power: wide where the model is weak, narrow where it is strong.

    The scale is a second model of the absolute residuals that the first one leaves on rows that it has not seen. It
    learns on rows that do not calibrate: in `IntervalRegressor.fit` on the training part, out of fold; in `calibrate`
    on a random half of the rows, so that the other half remains to calibrate. The guarantee of coverage does not depend
    on how good the scale is.

    Parameters
    ----------
    estimator : regressor, "neighbours", "prediction" or None, default=None
        Learns absolute residuals from X. None: a forest with large leaves on X and the prediction, which takes
        categories and missing values as they are. "neighbours": the forest also sees how near each row's nearest known
        rows are, and what their targets and residuals were; better where some rows have near twins and others none, a
        little worse where one column alone tells how large residuals are. "prediction": the absolute value of the
        prediction itself, for relative errors; nothing is learned then, and with ``power=1`` intervals are of the form
        ``f (1 -+ r)``; predictions of 0 bring a `CoverageWarning`.
    power : float, default=0.75
        How far the width follows the scale: 0 not at all, 1 fully. A learned scale is noisy, hence less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor, ScaledWidth
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = 10 * X[:, 0] * np.exp(rng.normal(scale=0.1, size=2000))
    >>> relative = ScaledWidth("prediction", power=1)
    >>> model = IntervalRegressor(lambda X: 10 * X[:, 0], width=relative).calibrate(X, y)
    >>> model.predict_interval(np.array([[0.1], [1.0]])).round(1)
    array([[ 0.8,  1.2],
           [ 8.1, 11.9]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), StrOptions({"neighbours", "prediction"}), None],
        "power": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, estimator: object = None, power: float = 0.75) -> None:
        self.estimator = estimator
        self.power = power

    @property
    def learns(self) -> bool:
        """Whether there is a scale to learn."""
        return not (isinstance(self.estimator, str) and self.estimator == "prediction")

    def fit(self, X: FeatureTable, prediction: Array, residuals: Array, *, random_state: int, **wanted: Any) -> Self:  # noqa: ARG002
        """Learn absolute residuals, one model per output."""
        if not self.learns:
            return self
        absolute = np.abs(residuals)
        self.mean_ = absolute.mean(axis=0)
        known = self._learned(X, prediction, residuals, random_state)
        self.models_: list[Any] = []
        for j, (size, mean) in enumerate(zip(absolute.T, self.mean_, strict=True)):
            # In units of their mean: what is learned does not depend on the unit of y.
            if len(size) < ROWS_IN_LEAF or mean == 0.0:
                self.models_.append(None)
            elif self.estimator is None:
                self.models_.append(grown_forest(known, size / mean, j, self._forests, random_state))
            elif isinstance(self.estimator, str):
                self.models_.append(_forest(len(size), random_state, max_features=0.5).fit(known, size / mean))
            else:
                self.models_.append(clone(self.estimator).fit(known, size / mean))
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """Absolute residual to be expected of each row."""
        if not self.learns:
            rows = np.flatnonzero((prediction == 0.0).any(axis=1))
            if rows.size and self.power > 0.0:
                warn_of_coverage(
                    f"ScaledWidth('prediction') has predictions of 0 in {counted(rows.size, 'row')}, the first one row "
                    f"{rows[0]}, where relative errors have no meaning: calibration takes these rows for missed by "
                    "far, and new ones get intervals without width. Choose another scale, or leave such rows to "
                    "another model."
                )
            return IntervalShape(np.asarray(np.maximum(np.abs(prediction), STANDS_FOR_ZERO) ** self.power))
        if all(model is None for model in self.models_):
            return IntervalShape()
        scales = np.ones(prediction.shape)
        known = self._known(X, prediction)
        for model, column in zip(self.models_, scales.T, strict=True):
            if model is not None:
                column[:] = np.maximum(np.asarray(model.predict(known)).reshape(len(column)), LEAST_SCALE) ** self.power
        check_finite_rows("scale", scales, "ScaledWidth's estimator has no finite answer there; choose another.")
        return IntervalShape(scales)

    def _learned(self, X: FeatureTable, prediction: Array, residuals: Array, random_state: int) -> Any:
        """What the scale is learned from, of rows whose residuals are known."""
        self.features_: Features | Surroundings | None = None
        if isinstance(self.estimator, str) and len(residuals) >= ROWS_IN_LEAF:
            self.features_ = Surroundings(X, prediction, residuals, random_state)
            return self.features_.known(X, prediction)
        if self.estimator is None:
            self.features_ = Features(for_distance=False).fit(X, prediction)
        return self._known(X, prediction)

    def _known(self, X: FeatureTable, prediction: Array) -> Any:
        """What the scale is learned from: X as it is for an estimator of the user's."""
        return X if self.features_ is None else self.features_.transform(X, prediction)

    @property
    def takes_sparse(self) -> bool:
        """Whether the scale's estimator takes sparse matrices."""
        if self.estimator is None or isinstance(self.estimator, str):
            return True
        return bool(get_tags(self.estimator).input_tags.sparse)


def grown_forest(known: Any, absolute: Array, output: int, shared: dict[int, Any] | None, random_state: int) -> Any:
    """Trees with large leaves for the absolute residuals of one output; the one that is there already, if one is.

    On generated data with constant, sloping and jumping scales, 300 to 4,000 rows, its interval score was no worse than
    that of five kinds of boosted trees in all twelve cases (two to four draws each), and clearly better below 1,000
    rows, where those follow the noise.
    """
    forests = {} if shared is None else shared
    if output not in forests:
        forests[output] = _forest(len(absolute), random_state).fit(known, absolute)
    return forests[output]


def _forest(n: int, random_state: int, max_features: float = 1.0) -> RandomForestRegressor:
    """An untrained forest for n rows: large leaves, and trees that learn from no more rows than they need."""
    most = ROWS_OF_TREE if n > ROWS_OF_TREE else None
    return RandomForestRegressor(
        min_samples_leaf=ROWS_IN_LEAF, max_samples=most, max_features=max_features, random_state=random_state
    )
