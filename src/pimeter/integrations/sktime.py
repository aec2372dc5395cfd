"""sktime: `ForecastIntervals` around any of its forecasters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sktime.forecasting.base import BaseForecaster

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike
    from sktime.forecasting.base import ForecastingHorizon

    from pimeter.forecast import ForecastIntervals
    from pimeter.protocols import Array

LEAST_LEVEL = 1e-6  # of the interval that a median is the middle of
N_QUANTILES = 100  # that a variance is computed from


class PimeterForecaster(BaseForecaster):
    """Intervals around the forecasts of any forecaster of sktime, from its errors at earlier cutoffs.

    `fit` trains clones of the forecaster up to each of the last `n_windows` cutoffs, and learns from their errors, one
    step at a time. As in `ForecastIntervals`, coverage of rows to come is an estimate, not guaranteed.

    Parameters
    ----------
    forecaster : sktime forecaster
        Of one series; with exogenous variables if it takes some.
    intervals : ForecastIntervals, optional
        With the tails and other settings.
    n_windows : int, default=50
        Cutoffs to learn from, as far as the series has so many after its first third.

    Attributes
    ----------
    forecaster_ : sktime forecaster
        The one that forecasts, trained on the whole series.
    intervals_ : ForecastIntervals
        What was learned from the errors.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from sktime.forecasting.naive import NaiveForecaster
    >>> from pimeter.integrations.sktime import PimeterForecaster
    >>> model = PimeterForecaster(NaiveForecaster(sp=12)).fit(load_airline(), fh=[1, 2])
    >>> model.predict_interval(coverage=0.8).round().to_numpy()
    array([[363., 471.],
           [337., 445.]])
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["pimeter developers"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "scitype:y": "univariate",
        "requires-fh-in-fit": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": False,
    }

    def __init__(self, forecaster: Any, intervals: ForecastIntervals | None = None, n_windows: int = 50) -> None:
        self.forecaster = forecaster
        self.intervals = intervals
        self.n_windows = n_windows
        super().__init__()
        self.clone_tags(forecaster, ["capability:exogenous", "X-y-must-have-same-index", "enforce_index_type"])

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: ForecastingHorizon) -> PimeterForecaster:
        """Train the forecaster, and clones of it at earlier cutoffs, whose errors are learned from."""
        from pimeter.forecast import ForecastIntervals

        steps = np.asarray(fh.to_relative(self.cutoff).to_numpy(), np.intp)
        last = len(y) - int(steps.max())
        cutoffs = range(max(len(y) // 3, last - self.n_windows + 1, 2), last + 1)
        if not cutoffs:
            msg = (
                f"y has {len(y)} values, of which none is a cutoff with {int(steps.max())} steps after it and a third "
                "of them before it. Give a longer series, or fewer steps."
            )
            raise ValueError(msg)
        self.forecaster_ = self.forecaster.clone().fit(y, X=X, fh=fh)
        said = [self._forecast_from(n, steps, y, X) for n in cutoffs]
        targets = np.array([y.to_numpy(np.float64)[n - 1 + steps] for n in cutoffs])
        self.intervals_ = clone(self.intervals or ForecastIntervals()).fit(targets, np.array(said))
        return self

    def _forecast_from(self, n: int, steps: Any, y: pd.Series, X: pd.DataFrame | None) -> Any:
        """Forecasts by a clone that knows the first n values."""
        past, future = (None, None) if X is None else (X.iloc[:n], X.iloc[n : n + int(steps.max())])
        found = self.forecaster.clone().fit(y.iloc[:n], X=past, fh=steps)
        return found.predict(X=future).to_numpy(np.float64).ravel()

    def _predict(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> pd.Series:
        """Forecasts of the forecaster itself."""
        return self.forecaster_.predict(fh=fh, X=X)

    def _predict_interval(self, fh: ForecastingHorizon, X: pd.DataFrame | None, coverage: list[float]) -> pd.DataFrame:
        """Intervals at each level."""
        forecast, levels = self._predict(fh, X), np.maximum(coverage, LEAST_LEVEL)
        bounds = self.intervals_.predict_interval(_row(forecast), levels)[0]  # (h, 2, levels)
        middle = bounds.mean(axis=1, keepdims=True)
        bounds = np.where(np.array(coverage) < LEAST_LEVEL, middle, bounds)  # the median is asked for with coverage 0
        columns = self._get_columns(method="predict_interval", coverage=coverage)
        return _frame(np.swapaxes(bounds, 1, 2).reshape(len(forecast), -1), forecast.index, columns)

    def _predict_var(self, fh: ForecastingHorizon, X: pd.DataFrame | None = None, cov: bool = False) -> pd.DataFrame:
        """Variance of the quantiles at 100 levels; of whole paths, that of a normal distribution with the quartiles."""
        if cov or self.intervals_.joint:
            return super()._predict_var(fh=fh, X=X, cov=cov)
        forecast = self._predict(fh, X)
        found = self.intervals_.predict_quantile(_row(forecast), (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)[0]
        return _frame(found.var(axis=-1)[:, None], forecast.index, self._get_columns(method="predict_var"))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003 (sktime's)
        """Settings that sktime's own checks are run with."""
        from sktime.forecasting.naive import NaiveForecaster

        from pimeter.forecast import ForecastIntervals

        return [
            {"forecaster": NaiveForecaster(), "n_windows": 6},
            {
                "forecaster": NaiveForecaster("drift"),
                "intervals": ForecastIntervals(0.8, tails="equal"),
                "n_windows": 9,
            },
        ]


def _row(forecast: pd.Series) -> Array:
    """Forecasts (h,) as those of one window, (1, h)."""
    return np.asarray(forecast, np.float64).reshape(1, -1)


def _frame(values: ArrayLike, index: pd.Index, columns: pd.Index) -> pd.DataFrame:
    """Values of each step, in these columns."""
    import pandas as pd

    return pd.DataFrame(values, index=index, columns=columns)
