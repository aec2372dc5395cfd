"""How far the trees of a forest disagree about a row: what the model does not know, beside the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pimeter.protocols import Array, FeatureTable


def tree_spread(model: object, X: FeatureTable) -> Array | None:
    """Standard deviation of what the trees of scikit-learn's forests predict, (n, k); None for other models."""
    from sklearn.ensemble._forest import ForestRegressor
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline) and len(model.steps) > 1:
        if not isinstance(model.steps[-1][1], ForestRegressor):
            return None
        return tree_spread(model.steps[-1][1], model[:-1].transform(X))
    if not isinstance(model, ForestRegressor):
        return None
    table = model._validate_X_predict(X)
    centre = np.asarray(model.predict(X), np.float64)
    squares = np.zeros(centre.shape)
    for tree in model.estimators_:
        squares += (tree.predict(table, check_input=False) - centre) ** 2
    spread: Array = np.sqrt(squares / len(model.estimators_))
    return spread.reshape(len(spread), -1)
