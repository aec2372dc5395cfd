"""Intervals of other libraries around the black box of Table 2: MAPIE and crepes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.model_selection import cross_val_predict, train_test_split

from experiments.blackbox import Blend, boosted

if TYPE_CHECKING:
    from experiments.data import Array

    Method: TypeAlias = Callable[[Array, Array, Array, float, int], Array]

N_FOLDS = 10  # as ours below 3,000 rows; above that ours has a split, and these half as many folds
ROWS_FOR_PEERS = 3_000
LEAF = 20  # rows in a leaf of trees that learn quantiles


def _folds(y: Array) -> int:
    return N_FOLDS if len(y) < ROWS_FOR_PEERS else N_FOLDS // 2


def _parts(X: Array, y: Array, seed: int) -> list[Array]:
    """Rows to train on and rows to calibrate with, then the targets of both: 80 and 20 % as for our own split."""
    parts: list[Array] = train_test_split(X, y, test_size=0.2, random_state=seed)
    return parts


def mapie_split(X: Array, y: Array, new: Array, level: float, seed: int) -> Array:
    """MAPIE's split conformal intervals, of constant width."""
    from mapie.regression import SplitConformalRegressor

    X, X_cal, y, y_cal = _parts(X, y, seed)
    model = SplitConformalRegressor(Blend(seed), confidence_level=level, prefit=False)
    return _bounds(model.fit(X, y).conformalize(X_cal, y_cal).predict_interval(new))


def mapie_cv_plus(X: Array, y: Array, new: Array, level: float, seed: int) -> Array:
    """MAPIE's CV+, of constant width; below 3,000 rows in as many folds as ours."""
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(Blend(seed), confidence_level=level, method="plus", cv=_folds(y), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return _bounds(model.fit_conformalize(X, y).predict_interval(new))


def mapie_cqr(X: Array, y: Array, new: Array, level: float, seed: int) -> Array:
    """MAPIE's conformalized quantile regression: the boosted trees of the black box with a quantile loss.

    Leaves are larger than those of the black box: of three rows in a leaf no quantile far out can be told, and on
    training parts the interval score was the worse for it on each of four datasets.
    """
    from mapie.regression import ConformalizedQuantileRegressor

    X, X_cal, y, y_cal = _parts(X, y, seed)
    trees = boosted(seed, objective="quantile", alpha=0.5, min_child_samples=LEAF)
    model = ConformalizedQuantileRegressor(trees, confidence_level=level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return _bounds(model.fit(X, y).conformalize(X_cal, y_cal).predict_interval(new))


def crepes_normalised(X: Array, y: Array, new: Array, level: float, seed: int) -> Array:
    """crepes' normalised intervals: wide where errors of the nearest rows, made out of fold, are large."""
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    X, X_cal, y, y_cal = _parts(X, y, seed)
    model = WrapRegressor(Blend(seed))
    model.fit(X, y)
    hard = DifficultyEstimator()
    hard.fit(X, residuals=y - cross_val_predict(Blend(seed), X, y, cv=_folds(y)), scaler=True)
    model.calibrate(X_cal, y_cal, de=hard)
    return np.asarray(model.predict_int(new, confidence=level))


def _bounds(answer: Any) -> Array:
    """Lower and upper bounds from what MAPIE returns; those of quantile regression may cross and are put in order."""
    return np.sort(answer[1][:, :, 0], axis=1)


METHODS: dict[str, Method] = {
    "MAPIE split": mapie_split,
    "MAPIE CV+": mapie_cv_plus,
    "MAPIE CQR": mapie_cqr,
    "crepes normalised": crepes_normalised,
}
