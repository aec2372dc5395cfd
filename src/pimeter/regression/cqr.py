"""`QuantileWidth`: a band between learned quantiles, moved by calibration (conformalised quantile regression)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from pimeter.conformal.scores import TAILS
from pimeter.regression.features import Features
from pimeter.regression.nearness import local_bounds, local_bounds_unseen, local_neurons
from pimeter.regression.scaled import MIN_SCALE, ROWS_IN_LEAF
from pimeter.regression.width import IntervalShape, Width
from pimeter.validation import check_finite_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from pimeter.protocols import Array, FeatureTable, Index

LEVEL_NAMES = ("quantile", "quantile_alpha", "alpha")  # what regressors call the level; the first one that they have
LOSS_NAMES = ("loss", "objective")  # what they call their loss


class QuantileWidth(Width):
    """A band between two quantiles of the residuals given X, moved by calibration as far as the guarantee takes.

    How far targets lie below and above the prediction is learned at the levels between which a band of the confidence
    level lies, on rows that do not calibrate. Scores say how far calibration targets lie beyond the band, and their
    quantile moves both of its bounds (with signed tails each of them) out or in. At another confidence level it is the
    same band, moved farther. Bounds that would cross meet in the middle.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Any regressor for quantiles whose level is a parameter called "quantile", "quantile_alpha" or "alpha", also
        within a pipeline. None: local neurons, as in `LocalWidth`, on X and the prediction; they take categories and
        missing values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import QuantileRegressor
    >>> from pimeter import IntervalRegressor, QuantileWidth
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = rng.exponential(scale=0.1 + X[:, 0])
    >>> width = QuantileWidth(QuantileRegressor(alpha=0))
    >>> model = IntervalRegressor(lambda X: X[:, 0], width=width, tails="equal", random_state=0).calibrate(X, y)
    >>> model.predict_interval(np.array([[0.0], [1.0]])).round(1)
    array([[0. , 0.4],
           [0. , 4.3]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"estimator": [HasMethods(["fit", "predict"]), None]}

    learns = True

    def __init__(self, estimator: object = None) -> None:
        self.estimator = estimator

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
        """Learn both quantiles of the residuals of each output."""
        wanted = TAILS[tails]
        self.levels_, self.has_band_ = wanted.bound_levels(confidence_level), not wanted.is_by_sign
        if self.estimator is None:
            self.features_ = Features(for_distance=False).fit(X, prediction)
            known = self.features_.transform(X, prediction)
            self.neurons_ = local_neurons(known, residuals, "forest", True, random_state)
            return self
        name = level_name(self.estimator, "QuantileWidth's estimator")
        self.mean_ = np.abs(residuals).mean(axis=0)
        self.models_: list[list[Any]] = []
        for column, mean in zip(residuals.T, self.mean_, strict=True):
            # In units of their mean: what is learned does not depend on the unit of y.
            levels = self.levels_ if len(column) >= ROWS_IN_LEAF and mean > 0.0 else ()
            learners = [clone(self.estimator).set_params(**{name: level}) for level in levels]
            self.models_.append([one.fit(X, column / mean) for one in learners])
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """A band between the learned quantiles."""
        if self.estimator is None:
            found = local_bounds(self.neurons_, self.features_, X, prediction, self.levels_)
            return IntervalShape() if found is None else self._shape(found)
        bounds = np.zeros((2, *prediction.shape))
        for j, models in enumerate(self.models_):
            if models:
                low, high = (np.asarray(model.predict(X)).reshape(len(prediction)) for model in models)
                middle, half = (low + high) / 2.0, np.maximum((high - low) / 2.0, MIN_SCALE)
                bounds[..., j] = np.stack([half - middle, half + middle]) * self.mean_[j]
        check_finite_rows(
            "quantile", bounds.sum(axis=0), "QuantileWidth's estimator has no finite answer; choose another."
        )
        return self._shape(bounds)

    def shape_unseen(self, X: FeatureTable, prediction: Array, rows: Index) -> IntervalShape | None:
        """The band of rows that it learned from, by trees that have not seen them."""
        if self.estimator is not None:
            return None
        found = local_bounds_unseen(self.neurons_, self.features_, X, prediction, rows, self.levels_)
        return None if found is None else self._shape(found)

    def _shape(self, bounds: Array) -> IntervalShape:
        """The band; where each sign is taken separately, around the prediction, half its width as scale."""
        if self.has_band_:
            return IntervalShape(None, *bounds)
        half = bounds.mean(axis=0)
        return IntervalShape(np.where(half > 0.0, half, 1.0))

    @property
    def takes_sparse(self) -> bool:
        """Whether the estimator takes sparse matrices."""
        return self.estimator is None or bool(get_tags(self.estimator).input_tags.sparse)


def level_name(learner: BaseEstimator, what: str) -> str:
    """The parameter that holds the level of a regressor for quantiles, within a pipeline with the step's name."""
    params = learner.get_params()
    for wanted in LEVEL_NAMES:
        for name in params:
            owner, _, last = name.rpartition("__")
            kinds = [
                params[key] for key in (f"{owner}__{kind}" if owner else kind for kind in LOSS_NAMES) if key in params
            ]
            # A penalty may be called alpha, too, and a level without its loss does nothing.
            if last == wanted and (any("quantile" in str(kind) for kind in kinds) if kinds else wanted != "alpha"):
                return str(name)
    msg = (
        f"{what} is a {type(learner).__name__} that does not predict quantiles: it has no parameter "
        f"called {', '.join(LEVEL_NAMES[:-1])} or {LEVEL_NAMES[-1]} with a quantile loss. Pass a regressor for "
        'quantiles, such as HistGradientBoostingRegressor(loss="quantile", quantile=0.5).'
    )
    raise ValueError(msg)
