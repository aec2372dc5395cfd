"""MLflow, against a local file store; runs where it is installed, see `make test-adapters`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm
from pimeter.integrations.skops import trusted_types

mlflow = pytest.importorskip("mlflow", reason="no peer: mlflow is large, make test-adapters runs these tests")
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(300, 3)), columns=list("abc"))
Y = X.to_numpy() @ [1.0, 2.0, 3.0] + rng.normal(scale=0.1 + X["a"])
MODEL = pm.IntervalRegressor(Ridge(), confidence_level=0.9, random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_experiment("intervals")
    with mlflow.start_run():
        yield


def of_run(name):
    from mlflow.artifacts import load_text

    return load_text(f"{mlflow.active_run().info.artifact_uri}/{name}")


@pytest.mark.parametrize("width", ["constant", "scaled"])
def test_flavour_of_sklearn_in_skops_format(width):
    model = pm.IntervalRegressor(Ridge(), width=width, random_state=0).fit(X, Y)
    info = mlflow.sklearn.log_model(model, name="model", skops_trusted_types=trusted_types())
    assert info.flavors["sklearn"]["serialization_format"] == "skops"
    found = mlflow.sklearn.load_model(info.model_uri)
    assert_array_equal(found.predict_interval(X), model.predict_interval(X))


def test_intervals_through_params():
    from pimeter.integrations.mlflow import log_model

    info = log_model(MODEL, input_example=X[:3])
    served = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(served.predict(X), MODEL.predict_interval(X, as_frame=True))
    wide = served.predict(X, params={"confidence_level": 0.99})
    assert_array_equal(wide[["lower", "upper"]], MODEL.predict_interval(X, 0.99))


def test_pipelines_and_sets():
    from pimeter.integrations.mlflow import log_model

    inside = make_pipeline(StandardScaler(), pm.IntervalRegressor(Ridge(), random_state=0)).fit(X, Y)
    served = mlflow.pyfunc.load_model(log_model(inside, "pipeline").model_uri)
    expected = inside[-1].predict_interval(inside[:-1].transform(X))
    assert_array_equal(served.predict(X)[["lower", "upper"]], expected)
    sets = pm.SetClassifier(LogisticRegression(), random_state=0).fit(X, Y > 3)
    served = mlflow.pyfunc.load_model(log_model(sets, "sets", input_example=X[:3]).model_uri)
    assert_array_equal(served.predict(X, params={"confidence_level": 0.8}), sets.predict_set(X, 0.8))


def test_evaluate_with_our_metrics():
    from pimeter.integrations.mlflow import interval_metrics, log_model

    data = X.assign(y=Y)
    uri = log_model(MODEL, input_example=X[:3]).model_uri
    found = mlflow.models.evaluate(
        uri, data, targets="y", predictions="prediction", extra_metrics=interval_metrics(0.9), evaluators="default"
    ).metrics
    bounds = MODEL.predict_interval(X)
    assert found["coverage_score"] == pm.coverage_score(Y, bounds)
    assert found["mean_width_score"] == pytest.approx(pm.mean_width_score(bounds))
    assert found["interval_score"] == pytest.approx(pm.interval_score(Y, bounds, 0.9))


def test_report_is_an_artifact():
    from pimeter.integrations.mlflow import log_result

    result = pm.measure(Y, MODEL.predict(X), X=X)
    log_result(result)
    assert pm.Measurement.from_json(of_run("report.json")) == result
    assert of_run("report.html").startswith("<!")
    metrics = mlflow.get_run(mlflow.active_run().info.run_id).data.metrics
    first, score = next(iter(result.scores.items()))
    assert metrics[first] == score.value
    log_result(pm.compare(Y, {"a": MODEL.predict(X), "b": np.zeros(300)}), "two")
    assert of_run("two.html").startswith("<!")
