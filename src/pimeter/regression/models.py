"""What models say of their own uncertainty, however they say it, which `EstimatorWidth` calibrates."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from pimeter.arrays import as_frame
from pimeter.conformal.scores import TAILS
from pimeter.frames import named_columns
from pimeter.predictive import predictive
from pimeter.regression.bands import Additive, Multiplicative, Normalised
from pimeter.regression.cqr import level_name
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pimeter.predictive import Predictive
    from pimeter.protocols import Array, FeatureTable, Table
    from pimeter.regression.bands import MovedBand

BANDS: dict[str, type[MovedBand]] = {
    "additive": Additive,
    "multiplicative": Multiplicative,
    "normalised": Normalised,
}
LEVEL_NAMES = ("confidence_level", "coverage")  # of intervals
QUANTILE_NAMES = ("quantiles", "levels", "q", "alpha")  # levels of quantiles
WAYS = (
    "predict_interval(X), predict_quantiles(X, levels), predict(X, quantiles=levels), predict(X, return_std=True) or "
    "pred_dist(X), or be a list of fitted regressors for quantiles"
)


class EstimatorWidth(Width):
    """The intervals, quantiles or standard deviations that the model predicts itself, moved by calibration.

    What the model has is found by looking at it, the first of: a list of fitted regressors for quantiles; the methods
    ``predict_interval``, ``predict_quantiles`` and ``pred_dist``; ``predict`` with an argument ``quantiles`` or
    ``return_std``, also of the last step of a pipeline. Nothing is learned, so that all rows calibrate.

    Parameters
    ----------
    method : {"additive", "multiplicative", "normalised"}, default="additive"
        Bounds move by the same distance (conformalised quantile regression), by the same multiple of the width, or lie
        at a multiple of half the width around the prediction. `IntervalCalibrator` has more.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from pimeter import IntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X[:, 0] + rng.normal(size=500)
    >>> model = IntervalRegressor(BayesianRidge(), width="estimator", random_state=0).fit(X, y)
    >>> model.predict_interval([[0.0, 0.0]]).round(1)
    array([[-2.3,  2.4]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"method": [StrOptions(set(BANDS))]}

    learns = False

    def __init__(self, method: Literal["additive", "multiplicative", "normalised"] = "additive") -> None:
        self.method = method

    def of_model(self, model: object, confidence_level: float, tails: str) -> Self:
        """The width of what this model says at this level; where each sign is taken separately, there is no band."""
        self.model_, self.confidence_level_, self.has_band_ = model, confidence_level, not TAILS[tails].is_by_sign
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """The model's own band around its prediction."""
        if prediction.shape[1] != 1:
            msg = f'width="estimator" takes models of one output; this one has {prediction.shape[1]}.'
            raise ValueError(msg)
        said = own_predictive(self.model_, X, self.confidence_level_)
        if said.n_infinite:
            msg = f"the estimator's intervals are infinite in {said.n_infinite} rows; IntervalCalibrator takes these."
            raise ValueError(msg)
        band = BANDS[self.method](self.confidence_level_).band(said)
        if not self.has_band_:
            return IntervalShape(Normalised(self.confidence_level_).band(said).scale[:, None])
        lower, upper = (prediction[:, 0] - band.lower)[:, None], (band.upper - prediction[:, 0])[:, None]
        return IntervalShape(band.scale[:, None], lower, upper)


class QuantileModels:
    """Fitted regressors for quantiles as one model, which predicts the median, or what is nearest to it."""

    def __init__(self, models: Sequence[Any]) -> None:
        if len(models) < 2:
            msg = f"a list of models needs regressors for two quantiles or more, such as 0.05 and 0.95; got {models!r}."
            raise ValueError(msg)
        levels = [float(one.get_params()[level_name(one, "a model of the list")]) for one in models]
        order = np.argsort(levels)
        self.levels, self.models = np.asarray(levels)[order], [models[i] for i in order]

    def predict(self, X: FeatureTable) -> Array:
        """Medians between the quantiles that the models predict."""
        return self.predictive(X).centre

    def predictive(self, X: FeatureTable) -> Predictive:
        """Quantiles of all models; where they cross, in order."""
        table = np.stack([np.asarray(one.predict(X), np.float64).ravel() for one in self.models], axis=1)
        return predictive(quantiles=np.sort(table, axis=1), levels=self.levels)


def own_predictive(model: Any, X: FeatureTable, level: float) -> Predictive:
    """What a model says of rows about its own uncertainty, at a confidence level where it takes one."""
    tails = [(1.0 - level) / 2.0, 0.5, (1.0 + level) / 2.0]
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if isinstance(model, QuantileModels):
        return model.predictive(X)
    if hasattr(model, "predict_interval"):
        found = _asked(model.predict_interval, X, LEVEL_NAMES, level)
        return predictive(intervals=_pair(found), confidence_level=level)
    if hasattr(model, "predict_quantiles"):
        return _in_order(_asked(model.predict_quantiles, X, QUANTILE_NAMES, tails), tails)
    if hasattr(model, "pred_dist"):
        said = model.pred_dist(X)
        return _in_order(np.stack([said.ppf(tail) for tail in tails], axis=1), tails)
    if "quantiles" in _arguments(getattr(last, "predict", last)):
        return _in_order(model.predict(X, quantiles=tails), tails)
    if "return_std" in _arguments(getattr(last, "predict", last)):
        mean, std = model.predict(X, return_std=True)
        return predictive(y_pred=mean, std=std)
    name = type(last).__name__
    msg = f'width="estimator" needs a model that predicts its own uncertainty: {name} should have {WAYS}.'
    raise ValueError(msg)


def _arguments(method: Callable[..., Any]) -> list[str]:
    """Names of the arguments of a method; none where Python cannot tell."""
    try:
        return list(signature(method).parameters)
    except (TypeError, ValueError):
        return []


def _asked(method: Callable[..., Any], X: FeatureTable, names: tuple[str, ...], value: object) -> Any:
    """What a method says at a level or levels, by the first of these names that it has for them."""
    name = next((name for name in names if name in _arguments(method)), None)
    return method(X) if name is None else method(X, **{name: value})


def _numbers(found: Table) -> Array:
    """An array of numbers, also of a frame."""
    frame = as_frame(found)
    return np.asarray(found if frame is None else named_columns("what the estimator predicts", frame), np.float64)


def _pair(found: Table | tuple[Table, Table]) -> Array:
    """Lower and upper bounds (n, 2), also where they come with predictions or an axis of levels."""
    table = _numbers(found[1] if isinstance(found, tuple) and len(found) == 2 else found)
    return table[..., 0] if table.ndim == 3 else table


def _in_order(found: Table, levels: list[float]) -> Predictive:
    """Quantiles, in order where they cross."""
    return predictive(quantiles=np.sort(_numbers(found), axis=1), levels=levels)
