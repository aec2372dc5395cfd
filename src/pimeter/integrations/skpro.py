"""skpro: `IntervalRegressor` as one of its probabilistic regressors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from skpro.regression.base import BaseProbaRegressor

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array
    from pimeter.regression import IntervalRegressor

MOST_QUANTILES = 100  # that a predictive distribution consists of


class PimeterRegressor(BaseProbaRegressor):
    """Conformal prediction as a probabilistic regressor of skpro.

    ``predict_interval(X, coverage)`` are the intervals of an `IntervalRegressor`, with its guarantee at each coverage.
    ``predict_quantiles(X, alpha)`` are its one-sided bounds, equal to those of intervals with ``tails="equal"``.
    ``predict_proba`` has equally many quantiles between all levels, at most 100 and half as many as there are
    calibration rows, each with the same probability; ``predict_var`` is the variance of that.

    Parameters
    ----------
    regressor : IntervalRegressor
        With the model, the width and all other settings; `fit` trains a clone of it.

    Attributes
    ----------
    regressor_ : IntervalRegressor
        The one that is fitted, which says what is guaranteed.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from pimeter import IntervalRegressor
    >>> from pimeter.integrations.skpro import PimeterRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = PimeterRegressor(IntervalRegressor(LinearRegression(), random_state=0)).fit(X, y)
    >>> model.predict_interval(X[:1], coverage=0.8).round().to_numpy()
    array([[140., 264.]])
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["pimeter developers"],
        "capability:multioutput": True,
        "capability:missing": True,  # as the model inside
        "capability:update": True,
    }

    def __init__(self, regressor: IntervalRegressor) -> None:
        self.regressor = regressor
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> PimeterRegressor:
        """Train a clone, and calibrate it."""
        self._names = y.columns
        self.regressor_ = clone(self.regressor).fit(_with_names(X), _targets(y))
        return self

    def _update(self, X: pd.DataFrame, y: pd.DataFrame) -> PimeterRegressor:
        """Add rows to the calibration set; nothing is trained."""
        self.regressor_.update(_with_names(X), _targets(y))
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """What the model predicts."""
        return self._frame(X, self.regressor_.predict(_with_names(X)), self._names)

    def _predict_interval(self, X: pd.DataFrame, coverage: list[float]) -> pd.DataFrame:
        """Intervals at each level."""
        bounds = self.regressor_.predict_interval(_with_names(X), coverage)  # (n[, k], 2, levels)
        columns = self._get_columns(method="predict_interval", coverage=coverage)
        return self._frame(X, np.swapaxes(bounds, -1, -2), columns)

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        """Quantiles at each level."""
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return self._frame(X, self.regressor_.predict_quantile(_with_names(X), alpha), columns)

    def _predict_proba(self, X: pd.DataFrame) -> Any:
        """Quantiles at equal distances between levels 0 and 1, each as likely as the others."""
        import pandas as pd
        from skpro.distributions import Empirical

        n = max(2, min(MOST_QUANTILES, (self.regressor_.n_calibration_ + 1) // 2))
        found = self.regressor_.predict_quantile(_with_names(X), (np.arange(n) + 0.5) / n)  # (n[, k], levels)
        draws = np.moveaxis(found.reshape(len(X), len(self._names), n), -1, 0).reshape(n * len(X), -1)
        rows = pd.MultiIndex.from_product([range(n), X.index])
        return Empirical(pd.DataFrame(draws, index=rows, columns=self._names), index=X.index, columns=self._names)

    def _frame(self, X: pd.DataFrame, values: ArrayLike, columns: pd.Index) -> pd.DataFrame:
        """Values of each row, in these columns."""
        import pandas as pd

        return pd.DataFrame(np.asarray(values).reshape(len(X), -1), index=X.index, columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003 (skpro's)
        """Settings that skpro's own checks are run with."""
        from sklearn.linear_model import LinearRegression

        from pimeter.regression import IntervalRegressor

        return [
            {"regressor": IntervalRegressor(LinearRegression(), random_state=0)},
            {"regressor": IntervalRegressor(LinearRegression(), tails="equal", confidence_level=0.8, random_state=0)},
            {"regressor": IntervalRegressor(LinearRegression(), width="scaled", random_state=0)},
        ]


def _with_names(X: pd.DataFrame) -> pd.DataFrame:
    """Columns with strings as names, which scikit-learn takes."""
    return X.set_axis([str(name) for name in X.columns], axis=1)


def _targets(y: pd.DataFrame) -> Array:
    """Targets (n,), or (n, k) of several outputs."""
    values: Array = y.to_numpy()
    return values[:, 0] if values.shape[1] == 1 else values
