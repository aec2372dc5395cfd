"""The model whose errors are measured: a regressor to train, a trained one, or a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


REMEDY = "The estimator has no finite answer there: mend it, or leave such rows out."


def is_plain(estimator: Any) -> bool:
    """Whether it is a function, or an object that only predicts: nothing to clone and nothing to train."""
    return not (hasattr(estimator, "fit") and hasattr(estimator, "get_params"))


def is_trainable(estimator: Any) -> bool:
    """Whether `fit` trains a clone of it."""
    return not (is_plain(estimator) or isinstance(estimator, FrozenEstimator))


def trained(estimator: Any) -> Any:
    """The estimator itself, which has to be ready to predict."""
    if not is_plain(estimator):
        try:
            check_is_fitted(estimator)
        except NotFittedError as unfitted:
            msg = (
                f"estimator is a {type(estimator).__name__} that is not fitted, so it has no errors to calibrate with: "
                "call fit(X, y), which trains a clone of it, or fit the estimator first."
            )
            raise NotFittedError(msg) from unfitted
    return estimator


def predictions(model: Any, X: Any, n_outputs: int | None) -> Array:
    """Predictions of shape (n, k), finite, for targets of shape (n,) if `n_outputs` is None, else (n, n_outputs)."""
    predict = getattr(model, "predict", None)
    found = np.asarray(model(X) if predict is None else predict(X))
    if found.dtype.kind not in "fiub":
        msg = f"estimator predicts values of dtype {found.dtype}; intervals need real numbers."
        raise ValueError(msg)
    n = _num_samples(X)
    expected = (n,) if n_outputs is None else (n, n_outputs)
    if found.shape != expected and not (n_outputs == 1 and found.shape == (n,)):
        msg = (
            f"estimator returns predictions of shape {found.shape} for {n} rows of X; expected {expected}, one per "
            "target. Return one column per output; ravel() turns a single column into shape (n,)."
        )
        raise ValueError(msg)
    table: Array = found.reshape(n, n_outputs or 1).astype(np.float64, copy=False)
    return table


def check_finite(name: str, values: Array, remedy: str) -> None:
    """Refuse NaN and infinite values, naming the first."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        kind = "NaN" if np.isnan(values).any() else "infinity"
        msg = f"{name} contains {kind}, first in row {row}. {remedy}"
        raise ValueError(msg)
