"""Scorers for scikit-learn's searches: they ask an estimator for its intervals or quantiles and score these.

Each can be called with weights and categories of the rows. With scikit-learn's metadata routing, searches and
``cross_validate`` hand these over to what ``set_score_request`` returns, such as
``interval_scorer.set_score_request(by=True)``.
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.scores import coverage_score, crps_score, interval_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from sklearn.utils.metadata_routing import MetadataRequest

# Middles of 20 equal cells: the outermost two are the bounds of the central 95 % interval.
CRPS_LEVELS = tuple((2 * i + 1) / 40 for i in range(20))


class RoutedScorer:
    """A function that scores, which says to scikit-learn's metadata routing what it wants to know of the rows."""

    __name__: str
    __doc__: str | None

    def __init__(self, score: Callable[..., float], requests: dict[str, bool | str | None] | None = None) -> None:
        update_wrapper(self, score)
        self._score, self._requests = score, requests or {}

    def __call__(
        self,
        estimator: object,
        X: object,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> float:
        """The score, greater is better."""
        return self._score(estimator, X, y, sample_weight=sample_weight, by=by)

    def set_score_request(
        self, *, sample_weight: bool | str | None = None, by: bool | str | None = None
    ) -> RoutedScorer:
        """A scorer that is handed weights or categories of the rows.

        Parameters
        ----------
        sample_weight, by : bool, str or None, default=None
            True: it is handed over if it is given; False: it is not; None: it is an error if it is given; a string: the
            name under which it is given.

        Returns
        -------
        RoutedScorer
            Another one; this one stays as it is.

        Raises
        ------
        RuntimeError
            If metadata routing is not enabled.
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            msg = "set_score_request needs metadata routing: call sklearn.set_config(enable_metadata_routing=True)."
            raise RuntimeError(msg)
        return RoutedScorer(self._score, {"sample_weight": sample_weight, "by": by})

    def get_metadata_routing(self) -> MetadataRequest:
        """What it asks for, as scikit-learn's searches want to know."""
        from sklearn.utils.metadata_routing import MetadataRequest

        found = MetadataRequest(owner=self.__name__)
        for name in ("sample_weight", "by"):
            found.score.add_request(param=name, alias=self._requests.get(name))
        return found

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value!r}" for name, value in self._requests.items() if value is not None)
        return self.__name__ + (f".set_score_request({asked})" if asked else "")

    def __reduce__(self) -> tuple[Callable[..., RoutedScorer], tuple[str, dict[str, bool | str | None]]]:
        return _scorer_of, (self.__name__, self._requests)


def _scorer_of(name: str, requests: dict[str, bool | str | None]) -> RoutedScorer:
    """One of the scorers below, by its name, with what it asks for."""
    return RoutedScorer(globals()[name]._score, requests)


@RoutedScorer
def interval_scorer(
    estimator: object, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, by: ArrayLike | None = None
) -> float:
    """Score an estimator by its intervals, for `GridSearchCV`, by minus the interval score, so that greater is better.

    Parameters
    ----------
    estimator : object with `predict_interval` and `confidence_level`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.
    by : array-like of shape (n,), optional
        Categories of the rows, for ``width="grouped"``.

    Returns
    -------
    float
        ``-interval_score(y, estimator.predict_interval(X), estimator.confidence_level)``, where `predict_interval` is
        asked for that level if it takes one. Only scores at the same level can be compared, so do not search over
        `confidence_level`.

    Raises
    ------
    TypeError
        If the estimator has no `predict_interval` or no `confidence_level`.

    Examples
    --------
    Errors that grow with the target want intervals that do, too:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pimeter import IntervalRegressor
    >>> from pimeter.scorers import interval_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 9, size=(600, 1))
    >>> y = X[:, 0] * rng.normal(1, 0.1, size=600)
    >>> model = IntervalRegressor(LinearRegression(), random_state=0)
    >>> search = GridSearchCV(model, {"width": ["constant", "scaled"]}, scoring=interval_scorer)
    >>> search.fit(X, y).best_params_
    {'width': 'scaled'}
    """
    holder = holder_of(estimator, X, "predict_interval")
    model, features = holder.estimator, holder.X
    level = getattr(model, "confidence_level", None)
    if level is None:
        msg = (
            f"interval_scorer needs to know the level of the intervals, but {type(model).__name__} has no "
            f"confidence_level. Use an IntervalRegressor, or call interval_score with the level."
        )
        raise TypeError(msg)
    # An estimator that is told another level after its fit goes on with the old one unless it is asked for it.
    asked: dict[str, Any] = _given(by)
    asked |= {"confidence_level": level} if "confidence_level" in signature(model.predict_interval).parameters else {}
    return -float(interval_score(y, model.predict_interval(features, **asked), level, sample_weight=sample_weight))


@RoutedScorer
def coverage_scorer(
    estimator: object, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, by: ArrayLike | None = None
) -> float:
    """Coverage of an estimator's intervals, for `cross_validate` and as a second metric of `GridSearchCV`.

    A search that maximises coverage alone takes the widest intervals: let it refit by `interval_scorer`.

    Parameters
    ----------
    estimator : object with `predict_interval`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.
    by : array-like of shape (n,), optional
        Categories of the rows, for ``width="grouped"``.

    Returns
    -------
    float
        ``coverage_score(y, estimator.predict_interval(X))``.

    Raises
    ------
    TypeError
        If the estimator has no `predict_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from pimeter import IntervalRegressor
    >>> from pimeter.scorers import coverage_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 9, size=(600, 1))
    >>> y = X[:, 0] + rng.normal(size=600)
    >>> model = IntervalRegressor(LinearRegression(), confidence_level=0.9, random_state=0)
    >>> round(float(cross_val_score(model, X, y, scoring=coverage_scorer).mean()), 2)
    0.91
    """
    holder = holder_of(estimator, X, "predict_interval")
    intervals = holder.estimator.predict_interval(holder.X, **_given(by))
    return float(coverage_score(y, intervals, sample_weight=sample_weight))


@RoutedScorer
def crps_scorer(
    estimator: object, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, by: ArrayLike | None = None
) -> float:
    """Score an estimator by its predictive distribution, by minus the CRPS, so that greater is better.

    Parameters
    ----------
    estimator : object with `predict_quantile`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.
    by : array-like of shape (n,), optional
        Categories of the rows, for ``width="grouped"``.

    Returns
    -------
    float
        Minus `crps_score` of the quantiles at 20 levels, .025, .075, ... .975.

    Raises
    ------
    TypeError
        If the estimator has no `predict_quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.scorers import crps_scorer
    >>> class Uniform:
    ...     def predict_quantile(self, X, q):
    ...         return np.tile(q, (len(X), 1))
    >>> X, y = np.zeros((3, 1)), [0.2, 0.5, 0.8]
    >>> round(crps_scorer(Uniform(), X, y), 4)  # the exact CRPS is 0.1433
    -0.1437
    """
    holder = holder_of(estimator, X, "predict_quantile")
    levels = np.array(CRPS_LEVELS)
    quantiles = holder.estimator.predict_quantile(holder.X, levels, **_given(by))
    return -float(crps_score(y, quantiles, levels, sample_weight=sample_weight))


def _given(by: ArrayLike | None) -> dict[str, ArrayLike]:
    """Categories as a keyword, where there are some: other estimators do not know the word."""
    return {} if by is None else {"by": by}


class Holder(NamedTuple):
    """The estimator that has a method, inside of pipelines and searches, and features as they arrive there."""

    estimator: Any
    X: Any


def holder_of(estimator: object, X: object, method: str) -> Holder:
    """The estimator that has the method, or a TypeError if none has it."""
    if hasattr(estimator, method):
        return Holder(estimator, X)
    if hasattr(estimator, "best_estimator_"):
        return holder_of(estimator.best_estimator_, X, method)
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return holder_of(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X, method)
    scorer, remedy = (
        ("crps_scorer", "Score its intervals with interval_scorer instead")
        if method == "predict_quantile" and hasattr(estimator, "predict_interval")
        else (
            f"A scorer of {method.removeprefix('predict_')}s",
            f"Wrap it: IntervalRegressor({type(estimator).__name__}(...))",
        )
    )
    msg = f"{scorer} calls {method}, which {type(estimator).__name__} does not have. {remedy}."
    raise TypeError(msg)
