"""The adapter for sktime, by sktime's own checks; runs where that is installed, see `make test-adapters`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm

pytest.importorskip("sktime", reason="no peer: sktime wants an older pandas, make test-adapters runs these tests")
pytestmark = pytest.mark.filterwarnings("ignore")  # of sktime's own
WALK = pd.Series(
    np.cumsum(np.random.default_rng(0).normal(size=400)), pd.period_range("2020-01-01", periods=400, freq="D"), name="y"
)


def fitted(series=WALK[:300], **settings):
    from sktime.forecasting.naive import NaiveForecaster

    from pimeter.integrations.sktime import PimeterForecaster

    return PimeterForecaster(NaiveForecaster(), **settings).fit(series, fh=[1, 2, 3])


def test_their_own_checks():
    from sktime.utils import check_estimator

    from pimeter.integrations.sktime import PimeterForecaster

    found = check_estimator(PimeterForecaster, verbose=False)
    assert len(found) > 200
    assert {name: why for name, why in found.items() if why != "PASSED"} == {}


def test_intervals_are_those_of_the_errors_at_earlier_cutoffs():
    model = fitted(n_windows=100)
    values = WALK[:300].to_numpy()
    cutoffs = np.arange(198, 298)
    targets, said = values[cutoffs[:, None] - 1 + [1, 2, 3]], np.repeat(values[cutoffs - 1][:, None], 3, axis=1)
    expected = pm.ForecastIntervals().fit(targets, said).predict_interval(np.full((1, 3), values[-1]), [0.8, 0.9])
    found = model.predict_interval(coverage=[0.8, 0.9])
    assert_array_equal(found["y"][0.9].to_numpy(), expected[0, :, :, 1])
    assert found.index.equals(WALK.index[300:303])


def test_wider_with_the_step_and_the_level():
    found = fitted(n_windows=150).predict_interval(coverage=[0.5, 0.9])["y"]
    widths = np.stack([found[level]["upper"] - found[level]["lower"] for level in (0.5, 0.9)], axis=1)
    assert (np.diff(widths, axis=0) > 0).all()
    assert (np.diff(widths, axis=1) > 0).all()


def test_variance_and_quantiles():
    model = fitted(n_windows=190, intervals=pm.ForecastIntervals(0.8, tails="equal"))
    assert_allclose(model.predict_var().to_numpy()[0], 1.0, atol=0.3)
    quantiles = model.predict_quantiles(alpha=[0.1, 0.5, 0.9])["y"].to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert_allclose(quantiles[:, [0, 2]], model.predict_interval(coverage=0.8).to_numpy())


def test_too_short():
    with pytest.raises(ValueError, match="Give a longer series"):
        fitted(WALK[:4])
