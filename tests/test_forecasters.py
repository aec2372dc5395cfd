"""Frames of forecasting libraries as they come: statsforecast's, and sktime's with their index of two levels.

`make bench-forecasters` runs these in an environment of its own.
"""

import numpy as np
import pandas as pd
import pytest

import pimeter as pm

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other libraries
H = 4


def series(n_series=6, n=80):
    """Daily values of some series in a long frame."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2026-01-01", periods=n)
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": 10.0 * (i + 1) + rng.standard_normal(n)})
        for i in range(n_series)
    ]
    return pd.concat(parts, ignore_index=True)


def peer(name):
    return pytest.importorskip(name, reason=f"no peer: {name} is not installed")


class TestStatsforecast:
    @pytest.fixture
    def frames(self):
        statsforecast = peer("statsforecast")
        from statsforecast.models import HistoricAverage, SeasonalNaive

        models = [HistoricAverage(), SeasonalNaive(season_length=7)]
        forecaster = statsforecast.StatsForecast(models=models, freq="D")
        past = forecaster.cross_validation(df=series(), h=H, n_windows=30, step_size=1)
        return past, forecaster.forecast(df=series(), h=H, level=[90])

    def test_frames_as_they_are(self, frames):
        past, future = frames
        intervals = pm.PanelIntervals((0.8, 0.9)).fit(past)
        assert intervals.models_ == ["HistoricAverage", "SeasonalNaive"]
        plain = future[["unique_id", "ds", *intervals.models_]]
        found = intervals.predict_interval(plain)
        theirs = [name for name in future.columns if "-lo-90" in name or "-hi-90" in name]
        assert set(theirs) <= set(found.columns)  # columns are called as theirs are
        width = found["HistoricAverage-hi-90"] - found["HistoricAverage-lo-90"]
        assert width.between(2.0, 6.0).all()  # 3.3 for the true mean
        assert len(intervals.sum_interval(plain)) == 6

    def test_frames_with_their_own_intervals(self, frames):
        """Columns of bounds are no models."""
        past, future = frames
        with_bounds = past.assign(**{"SeasonalNaive-lo-90": 0.0, "SeasonalNaive-hi-90": 1.0})
        assert pm.PanelIntervals(0.9).fit(with_bounds).models_ == ["HistoricAverage", "SeasonalNaive"]
        found = pm.PanelIntervals(0.8).fit(past).predict_interval(future)
        assert {"SeasonalNaive-lo-90", "SeasonalNaive-lo-80"} <= set(found.columns)


class TestSktime:
    def test_forecasts_of_a_panel_and_intervals_as_sktime_has_them(self):
        peer("sktime")
        from sktime.forecasting.naive import NaiveForecaster

        y = series().set_index(["unique_id", "ds"])
        times = y.index.get_level_values("ds")
        forecaster = NaiveForecaster(strategy="mean")
        parts = []
        for made in times.unique()[30:-1:2]:
            said = forecaster.fit(y[times <= made]).predict(fh=range(1, H + 1))
            parts.append(said.rename(columns={"y": "naive"}).assign(cutoff=made).join(y).reset_index())
        past = pd.concat(parts)
        y_pred = forecaster.fit(y).predict(fh=range(1, H + 1)).rename(columns={"y": "naive"})
        intervals = pm.PanelIntervals((0.8, 0.9)).fit(past)
        found = intervals.predict_interval(y_pred.reset_index()).set_index(["unique_id", "ds"])
        pred_int = pd.concat(
            {
                ("y", level / 100, side): found[f"naive-{short}-{level}"]
                for level in (80, 90)
                for side, short in (("lower", "lo"), ("upper", "hi"))
            },
            axis=1,
        )
        theirs = forecaster.predict_interval(fh=range(1, H + 1), coverage=[0.8, 0.9])
        assert pred_int.columns.tolist() == theirs.columns.tolist()
        assert pred_int.index.equals(theirs.index)
        assert (pred_int["y", 0.9, "upper"] > pred_int["y", 0.8, "upper"]).all()
