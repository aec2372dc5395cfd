"""Same input, same bits: again, elsewhere, with other threads, after a trip through bytes; 1e-9 without native code."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

import pimeter as pm
from pimeter import paper
from pimeter.paper import DescendingNeuron

ROOT = Path(__file__).parents[1]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.standard_normal(200) * (1.0 + X[:, 0] ** 2)
LABELS, SCORES = (Y > 0.0).astype(int), 1.0 / (1.0 + np.exp(-Y))
BY = np.array(["north", "south"])[(X[:, 1] > 0.0).astype(int)]


def estimators() -> dict[str, tuple[Any, Any, Any]]:
    """Unfitted estimators, how they learn and what they then say."""

    def interval(model: Any) -> Any:
        return model.predict_interval(X, [0.5, 0.9])

    def regressor(**settings: Any) -> tuple[Any, Any, Any]:
        model = pm.IntervalRegressor(LinearRegression(), random_state=0, **settings)
        return model, lambda model: model.fit(X, Y), interval

    grouped = pm.IntervalRegressor(LinearRegression(), width="grouped", random_state=0)
    cone = pm.ForecastIntervals(0.5, tails="equal", smooth=True)
    return {
        "constant": regressor(),
        "folds": regressor(cv=3),
        "scaled": regressor(width=pm.ScaledWidth(LinearRegression()), guarantee="approximate", tails="equal"),
        "local": regressor(width=pm.LocalWidth("kernel")),
        "grouped": (grouped, lambda model: model.fit(X, Y, by=BY), lambda model: model.predict_interval(X, by=BY)),
        "sets": (
            pm.SetClassifier(LogisticRegression(), conformity_score="raps", randomized=True, random_state=0),
            lambda model: model.fit(X, LABELS),
            lambda model: model.predict_set(X).astype(float),
        ),
        "cone": (
            cone,
            lambda cone: cone.fit(Y.reshape(50, 4), np.zeros((50, 4))),
            lambda cone: cone.predict_interval(np.zeros((2, 4))),
        ),
        "neuron": (
            DescendingNeuron(0.9),
            lambda neuron: neuron.fit(X),
            lambda neuron: neuron.quantile_,
        ),
        "online": (pm.OnlineNeuron(0.9), lambda neuron: neuron.learn_many(Y), lambda neuron: neuron.quantile_),
        "binning": (
            pm.ScalingBinning(),
            lambda binning: binning.fit(SCORES, LABELS),
            lambda binning: binning.transform(SCORES),
        ),
    }


def learned() -> dict[str, tuple[Any, Any]]:
    """Fitted estimators, and what they say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)
        return {name: (learn(clone(model)), say) for name, (model, learn, say) in estimators().items()}


def answers() -> dict[str, list[float]]:
    """Of everything that is public and computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)
        found = {name: say(model) for name, (model, say) in learned().items()}
        judged = pm.classification_uncertainty(LABELS, SCORES, method="bootstrap", n_resamples=200, random_state=0)
        measured = pm.measure(Y, X @ [1.0, 2.0, 3.0], X=X, by=BY)
    sketch = pm.QuantileSketch(32).update(Y)
    many = np.tile(Y, (1200, 1)) * np.arange(1.0, 1201.0)[:, None]  # enough for several threads
    curves = measured.curves
    found |= {
        "quantile": pm.quantile(X, [0.0, 0.1, 0.9, 1.0], axis=0, weights=np.arange(200)),
        "threads": pm.quantile(many, 0.9, axis=1),
        "judged": [bounds[name] for bounds in (judged.lower, judged.upper) for name in sorted(judged.value)],
        "measured": [*curves.margin, *curves.interval_score, *(score.value for score in measured.scores.values())],
        "sketch": sketch.quantile([0.1, 0.9]),
        "white": paper.white_test(Y, X).statistic,
        "entropy": paper.power_spectral_entropy(Y),
        "shift": pm.shift_weights(X[:100], X[100:], random_state=0).calibration,
        "scores": [pm.crps_score(Y, X, [0.1, 0.5, 0.9]), pm.calibration_error(LABELS, SCORES)],
    }
    return {name: np.ravel(values).astype(float).tolist() for name, values in found.items()}


@pytest.fixture(scope="module")
def here() -> dict[str, list[float]]:
    return answers()


def elsewhere(before: str = "", **environment: str) -> dict[str, list[float]]:
    """Answers of another process."""
    code = f"{before}\nimport json; from tests.test_determinism import answers; print(json.dumps(answers()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, list[float]] = json.loads(run.stdout)
    return found


def test_again(here):
    assert answers() == here


def test_in_another_process_with_other_threads(here):
    """One core instead of all, another order of hashes."""
    one_core = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    alone = elsewhere(one_core, PYTHONHASHSEED="7", OMP_NUM_THREADS="1")
    assert {name for name in here if alone[name] != here[name]} == set()


def test_without_native_code(here):
    plain = elsewhere("import sys, warnings; sys.modules['pimeter._native'] = None; warnings.simplefilter('ignore')")
    for name, values in here.items():
        assert_allclose(plain[name], values, rtol=1e-9, atol=1e-12, err_msg=name)


def test_after_a_trip_through_bytes(here, tmp_path):
    for name, (model, say) in learned().items():
        joblib.dump(model, tmp_path / "model")
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model")):
            assert np.ravel(say(twin)).astype(float).tolist() == here[name], name


def test_measurement_through_json():
    found = pm.measure(Y, np.zeros(200), by=BY)
    text = found.to_json()
    assert pm.Measurement.from_json(text).to_json() == text
    assert pm.measure(Y, np.zeros(200), by=BY).to_json() == text


def test_sketch_through_bytes():
    sketch = pm.QuantileSketch(32).update(Y)
    sent = sketch.to_bytes()
    assert pm.QuantileSketch.from_bytes(sent).to_bytes() == sent
    assert pm.QuantileSketch(32).update(Y).to_bytes() == sent
