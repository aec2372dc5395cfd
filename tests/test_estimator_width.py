"""``width="estimator"``: what models say of their own uncertainty is found, and calibrated."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm

RNG = np.random.default_rng(0)
LEVEL = 0.9


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n) * (0.2 + np.abs(X[:, 1]))


X, Y = drawn(600, 0)
NEW, NEW_Y = drawn(3000, 1)


class Known:
    """Predicts the true centre, and quantiles of twice the true spread."""

    def predict(self, X):
        return X[:, 0]

    def quantiles(self, X, levels):
        from scipy.stats import norm

        return X[:, :1] + 2.0 * (0.2 + np.abs(X[:, 1:2])) * norm.ppf(np.asarray(levels, float))


class SaysIntervals(Known):
    def predict_interval(self, X, coverage=0.5):
        return pd.DataFrame(self.quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2]))


class SaysOneInterval(Known):
    def predict_interval(self, X):
        return self.predict(X), self.quantiles(X, [0.2, 0.8])[:, :, None]


class SaysQuantiles(Known):
    def predict_quantiles(self, X, alpha):
        return self.quantiles(X, alpha)[:, ::-1]  # crossed: put in order


class SaysQuantilesInPredict(Known):
    def predict(self, X, quantiles=None):
        return X[:, 0] if quantiles is None else self.quantiles(X, quantiles)


class SaysDistribution(Known):
    def pred_dist(self, X):
        from scipy.stats import norm

        return norm(X[:, 0], 2.0 * (0.2 + np.abs(X[:, 1])))


class SaysStd(Known):
    def predict(self, X, return_std=False):
        return (X[:, 0], 2.0 * (0.2 + np.abs(X[:, 1]))) if return_std else X[:, 0]


@pytest.mark.parametrize(
    "model",
    [SaysIntervals, SaysOneInterval, SaysQuantiles, SaysQuantilesInPredict, SaysDistribution, SaysStd],
)
def test_every_way_of_saying_it_is_found(model):
    width = pm.EstimatorWidth("multiplicative")
    found = pm.IntervalRegressor(model(), confidence_level=LEVEL, width=width).calibrate(X, Y).predict_interval(NEW)
    same = pm.IntervalRegressor(SaysStd(), confidence_level=LEVEL, width=width).calibrate(X, Y).predict_interval(NEW)
    np.testing.assert_allclose(found, same, rtol=1e-6)
    assert abs(pm.coverage_score(NEW_Y, found) - LEVEL) < 0.04
    assert np.corrcoef(np.ptp(found, axis=1), np.abs(NEW[:, 1]))[0, 1] > 0.99


@pytest.mark.parametrize("method", ["additive", "multiplicative", "normalised"])
def test_it_is_the_calibrator_with_the_same_method(method):
    model = pm.IntervalRegressor(SaysStd(), confidence_level=LEVEL, width=pm.EstimatorWidth(method)).calibrate(X, Y)
    mean, std = SaysStd().predict(X, return_std=True)
    calibrator = pm.IntervalCalibrator(LEVEL, method=method).fit(Y, y_pred=mean, std=std)
    mean, std = SaysStd().predict(NEW, return_std=True)
    expected = calibrator.predict_interval(y_pred=mean, std=std)
    np.testing.assert_allclose(model.predict_interval(NEW), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianRidge(),
        make_pipeline(StandardScaler(), GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None)),
    ],
)
@pytest.mark.parametrize("cv", [None, 4])
def test_models_are_trained_with_their_own_width_in_splits_and_folds(estimator, cv):
    model = pm.IntervalRegressor(estimator, confidence_level=LEVEL, width="estimator", cv=cv, random_state=0)
    model.fit(X[:400], Y[:400])
    assert abs(pm.coverage_score(NEW_Y, model.predict_interval(NEW)) - LEVEL) < 0.06
    assert isinstance(model.width_, list) == (cv is not None)
    assert clone(model).get_params()["width"] == "estimator"
    again = pickle.loads(pickle.dumps(model)).predict_interval(NEW[:5])
    np.testing.assert_array_equal(again, model.predict_interval(NEW[:5]))


@pytest.mark.parametrize("levels", [(0.95, 0.05), (0.05, 0.5, 0.95)])
def test_a_list_of_fitted_quantile_models_is_one_model(levels):
    models = [QuantileRegressor(quantile=level, alpha=0.0).fit(X[:300], Y[:300]) for level in levels]
    model = pm.IntervalRegressor(models, confidence_level=LEVEL, width="estimator").calibrate(X[300:], Y[300:])
    assert abs(pm.coverage_score(NEW_Y, model.predict_interval(NEW)) - LEVEL) < 0.05
    middle = models[1].predict(NEW) if len(levels) == 3 else (models[0].predict(NEW) + models[1].predict(NEW)) / 2
    np.testing.assert_allclose(model.predict(NEW), middle)
    fitted = pm.IntervalRegressor(models, confidence_level=LEVEL, width="estimator").fit(X[300:], Y[300:])
    np.testing.assert_array_equal(fitted.predict_interval(NEW), model.predict_interval(NEW))
    assert clone(model).estimator is models


@pytest.mark.parametrize("tails", ["symmetric", "equal", "sided", "lower", "upper"])
@pytest.mark.parametrize("method", ["additive", "multiplicative", "normalised"])
def test_all_tails_cover(tails, method):
    # 40 calibrations of 60 rows: five standard errors of the mean coverage.
    covered = []
    for draw in range(40):
        old, y = drawn(60, 100 + draw)
        new, new_y = drawn(400, 1000 + draw)
        width = pm.EstimatorWidth(method)
        model = pm.IntervalRegressor(SaysQuantiles(), confidence_level=0.8, width=width, tails=tails).calibrate(old, y)
        low, high = model.predict_interval(new).T
        if tails == "sided":
            covered.append(np.mean((low <= new_y)[new_y < new[:, 0]]))
            covered.append(np.mean((new_y <= high)[new_y > new[:, 0]]))
        else:
            covered.append(np.mean((low <= new_y) & (new_y <= high)))
        assert model.guaranteed_
    error = np.sqrt(0.16 * (1 / 30 + 1 / 200) / 40) if tails == "sided" else np.sqrt(0.16 * (1 / 60 + 1 / 400) / 40)
    assert -5 * error < np.mean(covered) - 0.8 < 5 * error + 2 / 30


def test_models_that_say_nothing_of_their_uncertainty_are_told_what_to_have():
    with pytest.raises(ValueError, match=r'width="estimator" needs .* LinearRegression should have predict_interval'):
        pm.IntervalRegressor(LinearRegression(), width="estimator").fit(X, Y)
    with pytest.raises(ValueError, match="a model of the list is a LinearRegression that does not predict quantiles"):
        pm.IntervalRegressor([LinearRegression(), LinearRegression()], width="estimator").fit(X, Y)
    with pytest.raises(ValueError, match="two quantiles or more"):
        pm.IntervalRegressor([QuantileRegressor()], width="estimator").fit(X, Y)
    with pytest.raises(ValueError, match="one output; this one has 2"):
        pm.IntervalRegressor(LinearRegression(), width="estimator").fit(X, np.stack([Y, Y], axis=1))


def test_infinite_intervals_are_for_the_calibrator():
    class Open(Known):
        def predict_interval(self, X):
            return np.stack([np.full(len(X), -np.inf), X[:, 0] + 1.0], axis=1)

    with pytest.raises(ValueError, match="infinite in 600 rows; IntervalCalibrator takes these"):
        pm.IntervalRegressor(Open(), width="estimator").calibrate(X, Y)


def test_boosted_pairs_of_scikit_learn():
    old = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=30).fit(X[:300], Y[:300])
        for q in (0.05, 0.95)
    ]
    intervals = pm.IntervalRegressor(old, confidence_level=LEVEL, width="estimator").calibrate(X[300:], Y[300:])
    assert abs(pm.coverage_score(NEW_Y, intervals.predict_interval(NEW)) - LEVEL) < 0.05


def test_lightgbm_pairs():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    models = [
        lightgbm.LGBMRegressor(objective="quantile", alpha=q, n_estimators=30, verbose=-1, n_jobs=1)
        for q in (0.05, 0.95)
    ]
    models = [model.fit(pd.DataFrame(X[:300]), Y[:300]) for model in models]
    model = pm.IntervalRegressor(models, confidence_level=LEVEL, width="estimator")
    found = model.calibrate(pd.DataFrame(X[300:]), Y[300:]).predict_interval(pd.DataFrame(NEW))
    assert abs(pm.coverage_score(NEW_Y, found) - LEVEL) < 0.05


@pytest.mark.filterwarnings("ignore")
def test_ngboost():
    ngboost = pytest.importorskip("ngboost", reason="no peer: ngboost is not installed")
    estimator = ngboost.NGBRegressor(n_estimators=50, verbose=False, random_state=0)
    model = pm.IntervalRegressor(estimator, confidence_level=LEVEL, width="estimator", random_state=0).fit(X, Y)
    assert abs(pm.coverage_score(NEW_Y, model.predict_interval(NEW)) - LEVEL) < 0.06


@pytest.mark.filterwarnings("ignore")
def test_quantile_forest():
    forest = pytest.importorskip("quantile_forest", reason="quantile-forest is not installed")
    estimator = forest.RandomForestQuantileRegressor(20, random_state=0)
    model = pm.IntervalRegressor(estimator, confidence_level=LEVEL, width="estimator", random_state=0).fit(X, Y)
    assert abs(pm.coverage_score(NEW_Y, model.predict_interval(NEW)) - LEVEL) < 0.06


@pytest.mark.parametrize("loss", ["RMSEWithUncertainty", "MultiQuantile:alpha=0.05,0.5,0.95"])
def test_catboost(loss):
    catboost = pytest.importorskip("catboost", reason="no peer: catboost is not installed")
    model = catboost.CatBoostRegressor(
        iterations=50, loss_function=loss, verbose=False, thread_count=1, allow_writing_files=False
    )
    model.fit(X[:300], Y[:300])

    def said(rows):
        found = model.predict(rows)
        if loss.startswith("RMSE"):
            return {"y_pred": found[:, 0], "std": found[:, 1] ** 0.5}
        return {"quantiles": np.sort(found, axis=1), "levels": [0.05, 0.5, 0.95]}

    calibrator = pm.IntervalCalibrator(LEVEL, random_state=0).fit(Y[300:], **said(X[300:]))
    assert abs(pm.coverage_score(NEW_Y, calibrator.predict_interval(**said(NEW))) - LEVEL) < 0.06


def test_a_mean_variance_network():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
    optimiser, loss = torch.optim.Adam(network.parameters(), lr=0.02), torch.nn.GaussianNLLLoss()
    features, target = (torch.tensor(part[:300], dtype=torch.float32) for part in (X, Y))
    for _ in range(150):
        out = network(features)
        optimiser.zero_grad()
        loss(out[:, 0], target, torch.nn.functional.softplus(out[:, 1]) + 1e-6).backward()
        optimiser.step()

    class Network(RegressorMixin, BaseEstimator):
        def predict(self, X, return_std=False):
            with torch.no_grad():
                out = network(torch.tensor(X, dtype=torch.float32))
            mean, variance = out[:, 0], torch.nn.functional.softplus(out[:, 1]) + 1e-6
            return (mean.double().numpy(), variance.double().sqrt().numpy()) if return_std else mean.double().numpy()

    model = pm.IntervalRegressor(Network(), confidence_level=LEVEL, width="estimator").calibrate(X[300:], Y[300:])
    assert abs(pm.coverage_score(NEW_Y, model.predict_interval(NEW)) - LEVEL) < 0.06
