"""Every estimator is written and read by skops with the published list of types, and answers as before."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import skops.io as sio
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import BayesianRidge, LogisticRegression, QuantileRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.fixes import parse_version

import pimeter as pm
from pimeter.integrations.skops import trusted_types
from pimeter.paper import DescendingNeuron
from pimeter.regression import OnlineIntervals

rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 3))
Y = X @ [1.0, 2.0, 3.0] + rng.normal(scale=0.1 + X[:, 0])
BY = np.array(["north", "south"])[(X[:, 2] > 0.5).astype(int)]
CLASSES = np.array(["low", "middle", "high"])[np.digitize(Y, [2.5, 3.5])]
NEW, NEW_BY = 0.99 * X[:20], BY[:20]
WALK = np.lib.stride_tricks.sliding_window_view(np.cumsum(Y - Y.mean()), 4)
TARGETS, FORECASTS = WALK[:, 1:], np.repeat(WALK[:, :1], 3, axis=1)
INTERVALS = np.stack([Y - 0.8, Y + rng.normal(1.0, 1.0, len(Y)).clip(-0.7)], axis=1)


def panel(start="2024-01-01"):
    ids, days = np.repeat(["a", "b", "c"], 60), np.tile(pd.date_range(start, periods=60), 3)
    y = np.random.default_rng(0).normal(size=180)
    return pd.DataFrame({"unique_id": ids, "ds": days, "cutoff": days - pd.Timedelta("1D"), "y": y, "naive": y + 0.3})


def intervals(width, by=None, estimator=None, **settings):
    model = pm.IntervalRegressor(estimator or Ridge(), width=width, random_state=0, **settings).fit(X, Y, by=by)
    return model, lambda one: one.predict_interval(NEW, [0.8, 0.9], by=None if by is None else by[:20])


def several_outputs():
    both = np.stack([Y, -Y], axis=1)
    model = pm.IntervalRegressor(Ridge(), joint=True, width="scaled", random_state=0).fit(X, both)
    return model, lambda one: one.predict_interval(NEW)


def weighted():
    model = pm.IntervalRegressor(Ridge().fit(X, Y)).calibrate(X, Y, importance_weight=1.0 + X[:, 0])
    return model, lambda one: one.predict_interval(NEW, importance_weight=1.0 + NEW[:, 0])


def read_from_json():
    text = pm.IntervalRegressor(Ridge().fit(X, Y)).calibrate(X, Y).to_json()
    return pm.IntervalRegressor.from_json(text), lambda one: one.predict_interval(NEW[:, 0])


def updated():
    model = pm.IntervalRegressor(Ridge().fit(X[:50], Y[:50])).calibrate(X[50:150], Y[50:150])
    return model, lambda one: one.update(X[150:], Y[150:]).predict_interval(NEW)


def of_quantiles():
    models = [QuantileRegressor(quantile=q, alpha=0.0).fit(X[:50], Y[:50]) for q in (0.05, 0.5, 0.95)]
    model = pm.IntervalRegressor(models, width="estimator").calibrate(X[50:], Y[50:])
    return model, lambda one: one.predict_interval(NEW)


def following():
    model = OnlineIntervals(pm.IntervalRegressor(Ridge(), shuffle=False).fit(X, Y)).fit(X[100:], Y[100:])
    return model, lambda one: one.predict_interval(NEW)


def sets(**settings):
    by = settings.pop("labels", None)
    model = pm.SetClassifier(LogisticRegression(), confidence_level=0.8, random_state=0, **settings)
    return model.fit(X, CLASSES, by=by), lambda one: one.predict_set(NEW, by=None if by is None else by[:20])


def cone(**settings):
    model = pm.ForecastIntervals(0.8, **settings).fit(TARGETS[:150], FORECASTS[:150])
    return model, lambda one: one.update(TARGETS[150:], FORECASTS[150:]).predict_interval(FORECASTS[:2])


def monitor():
    found = pm.CoverageMonitor(0.9, watch=("misses", "bounds", "widths", "residuals")).update(Y, INTERVALS, by=BY)
    return found, lambda one: one.update(Y[:50], INTERVALS[:50] - 2.0, by=BY[:50]).explain().to_json()


def recalibrated():
    found, model = pm.CoverageMonitor(0.9).update(Y, INTERVALS - 2.0), pm.IntervalRegressor(Ridge().fit(X, Y))
    found.recalibrate(model.calibrate(X, Y), X, Y)
    return found, lambda one: one.update(Y[:50], INTERVALS[:50]).explain().to_json()


def calibrator(method):
    said = {"y_pred": X @ [1.0, 2.0, 3.0], "std": np.full(len(Y), 0.3)}
    new = {name: values[:9] for name, values in said.items()}
    model = pm.IntervalCalibrator(0.9, method=method, random_state=0).fit(Y, **said)
    return model, lambda one: one.predict_interval(**new)


def risk(metric, level):
    return pm.RiskController(metric, level).fit(Y > 3, X[:, 2]), lambda one: one.predict(NEW[:, 2])


def of_frames(**settings):
    model = pm.PanelIntervals(0.8, **settings).fit(panel())
    model.sum_interval(panel("2024-06-01").drop(columns="y"))
    return model, lambda one: one.predict_interval(panel("2024-06-01").drop(columns="y")).iloc[:, 4:].to_numpy()


CASES = {
    "constant": lambda: intervals("constant"),
    "scaled": lambda: intervals("scaled"),
    "grouped": lambda: intervals("grouped", BY),
    "groups that overlap": lambda: intervals("grouped", np.stack([BY, X[:, 0] > 0.5], axis=1, dtype=object)),
    "local": lambda: intervals("local"),
    "local, kernel": lambda: intervals(pm.LocalWidth("kernel")),
    "quantile": lambda: intervals("quantile"),
    "auto": lambda: intervals("auto"),
    "estimator": lambda: intervals("estimator", estimator=BayesianRidge()),
    "cv": lambda: intervals("constant", cv=5),
    "approximate": lambda: intervals("constant", guarantee="approximate", tails="sided"),
    "several outputs": several_outputs,
    "weighted": weighted,
    "updated": updated,
    "read from JSON": read_from_json,
    "of quantiles": of_quantiles,
    "OnlineIntervals": following,
    "IntervalCalibrator, auto": lambda: calibrator("auto"),
    "IntervalCalibrator, additive": lambda: calibrator("additive"),
    "IntervalCalibrator, multiplicative": lambda: calibrator("multiplicative"),
    "IntervalCalibrator, normalised": lambda: calibrator("normalised"),
    "IntervalCalibrator, distributional": lambda: calibrator("distributional"),
    "SetClassifier": sets,
    "SetClassifier, raps": lambda: sets(conformity_score="raps", randomized=True),
    "SetClassifier, by": lambda: sets(labels=BY),
    "SetClassifier, cv": lambda: sets(cv=5, by="class"),
    "ScalingBinning": lambda: (pm.ScalingBinning().fit(X[:, 2], Y > 3), lambda one: one.predict(NEW[:, 2])),
    "ForecastIntervals": cone,
    "ForecastIntervals, joint": lambda: cone(joint=True),
    "ForecastIntervals, recent": lambda: cone(context="recent"),
    "ForecastIntervals, adaptive": lambda: cone(learning_rate="adaptive"),
    "PanelIntervals": of_frames,
    "PanelIntervals, recent": lambda: of_frames(context="recent"),
    "QuantileNeuron": lambda: (pm.QuantileNeuron().fit(X), lambda one: one.quantile_),
    "DescendingNeuron": lambda: (DescendingNeuron().fit(X), lambda one: one.quantile_),
    "OnlineNeuron": lambda: (pm.OnlineNeuron().learn_many(X[:, 0]), lambda one: one.learn_many(X[:, 1]).quantile_),
    "QuantileSketch": lambda: (pm.QuantileSketch().update(Y), lambda one: one.update(X[:, 0]).quantile(0.9)),
    "RiskController": lambda: risk("precision", 0.8),
    "RiskController, triage": lambda: risk(("npv", "precision"), 0.7),
    "CoverageMonitor": monitor,
    "CoverageMonitor, recalibrated": recalibrated,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_answers_after_the_reload(name):
    model, answer = CASES[name]()
    found = sio.loads(sio.dumps(model), trusted=trusted_types())
    assert type(found) is type(model)
    assert_array_equal(answer(found), answer(model))


def estimators():
    """Public names of classes that learn or watch, widths and results left out."""
    return {
        name
        for name in pm.__all__
        if isinstance(one := getattr(pm, name), type)
        and any(hasattr(one, method) for method in ("fit", "update"))
        and not issubclass(one, pm.Width)
    }


def test_every_estimator_is_among_them():
    assert estimators() - {"IntervalRegressor"} <= {name.partition(",")[0] for name in CASES}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_published_types_are_those_that_occur():
    occurring = {one for name in CASES for one in sio.get_untrusted_types(data=sio.dumps(CASES[name]()[0]))}
    assert occurring == set(trusted_types())


def test_published_types_exist():
    for name in trusted_types():
        module, _, attribute = name.rpartition(".")
        assert callable(getattr(import_module(module), attribute))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("width", ["constant", "scaled", pm.GroupedWidth(by="c"), "auto"])
def test_frames(library, width):
    if library is pl and parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("scikit-learn before 1.9 finds no columns of polars by name")
    table = library.DataFrame({"a": X[:, 0], "n": np.arange(200), "c": BY})
    encoded = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = pm.IntervalRegressor(make_pipeline(encoded, Ridge()), width=width, random_state=0).fit(table, Y)
    found = sio.loads(sio.dumps(model), trusted=trusted_types())
    assert_array_equal(found.predict_interval(table), model.predict_interval(table))
    assert found.explain(table[:1]) == model.explain(table[:1])
