"""The adapter for skpro, by skpro's own checks; runs where that is installed, see `make test-adapters`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

import pimeter as pm

pytest.importorskip("skpro", reason="no peer: skpro wants an older pandas, make test-adapters runs these tests")
pytestmark = pytest.mark.filterwarnings("ignore")  # of skpro's own
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(600, 2)), columns=["a", "b"], index=np.arange(600) + 5)
Y = pd.DataFrame({"price": X["a"] + rng.normal(size=600)})
OLD, NEW = slice(0, 500), slice(500, None)


def fitted(**settings):
    from pimeter.integrations.skpro import PimeterRegressor

    regressor = pm.IntervalRegressor(LinearRegression(), random_state=0, **settings)
    return PimeterRegressor(regressor).fit(X[OLD], Y[OLD])


def test_their_own_checks():
    from skpro.utils import check_estimator

    from pimeter.integrations.skpro import PimeterRegressor

    found = check_estimator(PimeterRegressor, verbose=False)
    assert len(found) > 50
    assert {name: why for name, why in found.items() if why != "PASSED"} == {}


def test_intervals_are_those_of_the_regressor():
    model = fitted()
    found = model.predict_interval(X[NEW], coverage=[0.8, 0.9])
    assert found.columns.tolist()[1] == ("price", 0.8, "upper")
    assert found.index.equals(X[NEW].index)
    expected = pm.IntervalRegressor(LinearRegression(), random_state=0).fit(X[OLD], Y["price"][OLD])
    assert_array_equal(found["price"][0.9], expected.predict_interval(X[NEW], 0.9))


def test_quantiles_are_bounds_of_equal_tails():
    model = fitted(tails="equal")
    assert_allclose(
        model.predict_quantiles(X[NEW], alpha=[0.1, 0.9]).to_numpy(), model.predict_interval(X[NEW], 0.8).to_numpy()
    )


def test_variance_and_distribution():
    model = fitted(cv=5)
    assert_allclose(model.predict_var(X[NEW]).to_numpy(), 1.0, atol=0.2)
    said = model.predict_proba(X[NEW])
    assert_allclose(said.mean().to_numpy()[:, 0], model.predict(X[NEW]).to_numpy()[:, 0], atol=0.2)


def test_update_calibrates():
    model = fitted()
    n = model.regressor_.n_calibration_
    assert model.update(X[NEW], Y[NEW]).regressor_.n_calibration_ == n + 100
