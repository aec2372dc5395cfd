"""A few models for tables of numbers, and the best of them by cross-validation on training rows alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROWS_TO_CHOOSE = 2000

Table = np.ndarray


def kernel(width: float, penalty: float) -> Callable[[int], Any]:
    """Ridge regression on kernels of 600 rows, standardised."""
    return lambda d: make_pipeline(
        StandardScaler(), Nystroem(gamma=width / d, n_components=600, random_state=0), Ridge(penalty)
    )


MODELS: dict[str, Callable[[int], Any]] = {  # of the number of columns
    "extra trees": lambda _: ExtraTreesRegressor(100, random_state=0),
    "boosted trees": lambda _: HistGradientBoostingRegressor(max_iter=300, learning_rate=0.07, random_state=0),
    "kernel, wide": kernel(0.1, 1e-3),
    "kernel": kernel(0.5, 1e-2),
}
QUANTILE_MODELS: dict[str, dict[str, Any]] = {  # of boosted trees with a quantile loss
    "boosted trees": {},
    "small boosted trees": {"max_leaf_nodes": 6, "learning_rate": 0.05, "max_iter": 150},
}


def quantile_model(options: dict[str, Any], quantile: float = 0.5) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(loss="quantile", quantile=quantile, random_state=0, **options)


def best_model(X: Table, y: Table) -> str:
    """The model with the least squared error, out of fold."""
    X, y, folds = some(X, y)
    errors = {
        name: -cross_val_score(make(X.shape[1]), X, y, scoring="neg_mean_squared_error", cv=folds).mean()
        for name, make in MODELS.items()
    }
    return min(errors, key=errors.__getitem__)


def best_quantile_model(X: Table, y: Table, levels: tuple[float, float]) -> str:
    """The model for quantiles with the least pinball loss at both levels, out of fold."""
    X, y, folds = some(X, y)
    losses = {
        name: sum(
            cross_val_score(
                quantile_model(options, level),
                X,
                y,
                scoring=make_scorer(mean_pinball_loss, alpha=level),
                cv=folds,
            ).mean()
            for level in levels
        )
        for name, options in QUANTILE_MODELS.items()
    }
    return min(losses, key=losses.__getitem__)


def some(X: Table, y: Table) -> tuple[Table, Table, KFold]:
    """Rows that are enough to choose by, and their folds."""
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS_TO_CHOOSE]
    return X[rows], y[rows], KFold(3, shuffle=True, random_state=0)
