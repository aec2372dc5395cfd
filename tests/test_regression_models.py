"""IntervalRegressor around models of other libraries, and around things that merely predict.

Each kind of model goes the ways that users go: train and calibrate at once, calibrate what is trained, folds, frames
with categories and missing values, inside a pipeline, frozen.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits
from xgboost import XGBRegressor

from pimeter import GroupedWidth, IntervalRegressor, coverage_score

MODELS = {
    "lightgbm": LGBMRegressor(n_estimators=10, num_leaves=7, n_jobs=1, verbose=-1, random_state=0),
    "xgboost": XGBRegressor(n_estimators=10, max_depth=3, n_jobs=1, random_state=0, enable_categorical=True),
    "scikit-learn": HistGradientBoostingRegressor(
        max_iter=10, max_leaf_nodes=7, categorical_features="from_dtype", random_state=0
    ),
}
N = 600
RNG = np.random.default_rng(0)


def table(n=N):
    """A frame with numbers, some missing, and a category that decides how large errors are."""
    kind = RNG.choice(["calm", "wild"], n)
    X = pd.DataFrame({"a": RNG.normal(size=n), "b": RNG.normal(size=n), "kind": pd.Categorical(kind)})
    y = 2.0 * X["a"] + RNG.normal(size=n) * np.where(kind == "wild", 5.0, 0.5)
    X.loc[X.index[::17], "b"] = np.nan
    return X, y


X, Y = table()
NEW, Y_NEW = table(2000)
NUMBERS, NEW_NUMBERS = X[["a", "b"]].to_numpy(), NEW[["a", "b"]].to_numpy()


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run side by side; threads that wait for each other take turns then."""
    with threadpool_limits(1):
        yield


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def assert_covers(regressor, new):
    """Of 2,000 new rows 90 % are covered, but for the luck of one calibration set.

    120 rows that calibrate have a standard deviation of .027 in coverage, the 2,000 rows one of .007.
    """
    bounds = regressor.predict_interval(new)
    assert bounds.shape == (len(new), 2)
    assert abs(coverage_score(Y_NEW, bounds) - 0.9) < 3 * np.hypot(0.027, 0.007)
    return bounds


@pytest.mark.parametrize("cv", [None, 5])
def test_fit(model, cv):
    regressor = IntervalRegressor(model, confidence_level=0.9, cv=cv, random_state=0).fit(NUMBERS, Y)
    bounds = assert_covers(regressor, NEW_NUMBERS)
    with pytest.raises(NotFittedError):
        IntervalRegressor(model).calibrate(NUMBERS, Y)  # the model itself was not touched
    assert_allclose(bounds.mean(axis=1), regressor.predict(NEW_NUMBERS), atol=1e-5 if cv is None else 1.0)


def test_calibrate_uses_what_is_trained(model):
    model.fit(NUMBERS[:400], Y[:400])
    regressor = IntervalRegressor(model, confidence_level=0.9).calibrate(NUMBERS[400:], Y[400:])
    assert regressor.estimator_ is model
    magnitudes = np.sort(np.abs(Y[400:] - model.predict(NUMBERS[400:])))
    assert_allclose(regressor.margin_, magnitudes[[180, 180]])  # ceil(201 * .9) = 181
    assert_covers(regressor, NEW_NUMBERS)
    in_steps = IntervalRegressor(model, confidence_level=0.9).calibrate(NUMBERS[400:500], Y[400:500])
    assert_array_equal(in_steps.update(NUMBERS[500:], Y[500:]).margin_, regressor.margin_)


@pytest.mark.parametrize(
    ("width", "cv"),
    [("constant", None), ("scaled", None), (GroupedWidth(by="kind"), None), (GroupedWidth(by="kind"), 5)],
)
def test_frames_with_categories(model, cv, width):
    regressor = IntervalRegressor(model, confidence_level=0.9, cv=cv, width=width, random_state=0).fit(X, Y)
    bounds = assert_covers(regressor, NEW)
    found = regressor.predict_interval(NEW, as_frame=True)
    assert list(found.columns) == ["prediction", "lower", "upper"]
    assert found.index.equals(NEW.index)
    wild = (NEW["kind"] == "wild").to_numpy()
    wide = np.diff(bounds)[:, 0]
    assert (wide[wild].mean() > 2 * wide[~wild].mean()) == (width != "constant")


def test_pipelines_inside_and_outside(model):
    encoder = make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough")
    inside = IntervalRegressor(make_pipeline(encoder, model), confidence_level=0.9, random_state=0).fit(X, Y)
    assert_covers(inside, NEW)
    outside = make_pipeline(StandardScaler(), IntervalRegressor(model, confidence_level=0.9, random_state=0))
    outside.fit(NUMBERS, Y)
    assert_covers(outside[-1], outside[0].transform(NEW_NUMBERS))
    assert outside.predict(NEW_NUMBERS).shape == (len(NEW),)


def test_frozen_ones_are_not_trained(model):
    frozen = FrozenEstimator(model.fit(X[:400], Y[:400]))
    regressor = IntervalRegressor(frozen, confidence_level=0.9).fit(X[400:], Y[400:])
    assert regressor.n_calibration_ == 200
    assert_array_equal(regressor.predict(NEW), model.predict(NEW))
    assert_array_equal(clone(regressor).fit(X[400:], Y[400:]).margin_, regressor.margin_)
    assert_covers(regressor, NEW)


def test_fit_params_arrive_at_the_model(model):
    late = np.where(np.arange(N) < N // 2, 1e-6, 1.0)
    y = np.where(np.arange(N) < N // 2, 100.0, Y)
    regressor = IntervalRegressor(model, random_state=0).fit(NUMBERS, y, sample_weight=late)
    assert np.abs(regressor.predict(NEW_NUMBERS)).max() < 20


def test_several_outputs(model):
    both = np.column_stack([Y, -3 * Y])
    regressor = IntervalRegressor(MultiOutputRegressor(model), cv=3, random_state=0).fit(NUMBERS, both)
    assert regressor.predict_interval(NEW_NUMBERS).shape == (len(NEW), 2, 2)


class Network:
    """Like a network of another library: `predict` alone, single precision, nothing of scikit-learn."""

    def __init__(self, columns):
        self.columns = columns

    def predict(self, X):
        return np.squeeze(np.asarray(X, np.float32)[:, :1] * 2.0, axis=1).reshape(-1, *self.columns)


@pytest.mark.parametrize("predict", [Network(()), Network(()).predict, lambda X: 2.0 * X[:, 0]])
@pytest.mark.parametrize("call", ["fit", "calibrate"])
def test_things_that_merely_predict(predict, call):
    regressor = IntervalRegressor(predict, confidence_level=0.9, random_state=0)
    regressor = getattr(regressor, call)(NUMBERS, Y)
    assert regressor.n_calibration_ == N
    assert_covers(regressor, NEW_NUMBERS)
    assert clone(regressor).estimator is predict


def test_one_column_is_one_target():
    # Many networks answer with shape (n, 1).
    expected = IntervalRegressor(Network(())).calibrate(NUMBERS, Y).predict_interval(NEW_NUMBERS)
    for model in (Network((1,)), Network((1,)).predict):
        assert_array_equal(IntervalRegressor(model).calibrate(NUMBERS, Y).predict_interval(NEW_NUMBERS), expected)
    assert IntervalRegressor(Network((1,))).calibrate(NUMBERS, Y.to_numpy()[:, None]).margin_.shape == (1, 2)
