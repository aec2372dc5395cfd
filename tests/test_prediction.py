"""Models of many libraries are wrapped as they are: trained, handed over, calibrated."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pimeter import IntervalRegressor, coverage_score
from pimeter.prediction import predicted

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(900, 3)), columns=["a", "b", "c"])
Y = (X["a"] - 2.0 * X["b"] + 0.5 * RNG.normal(size=900)).to_numpy()
TRAIN, CALIBRATE, NEW = X[:300], X[300:600], X[600:]


def library(name):
    return pytest.importorskip(name, reason=f"no peer: {name} is not installed")


def line(table):
    """What a good model says, and the only one whose answer is known."""
    table = np.asarray(table, np.float64)
    return table[:, 0] - 2.0 * table[:, 1]


class OnlyPredicts:
    def predict(self, table):
        return line(table)


class OneColumn:
    def predict(self, table):
        return line(table)[:, None]


class KerasLike:
    """Another library's model with `predict`, `fit` and no parameters."""

    def fit(self, table, target, **_):
        raise AssertionError

    def predict(self, table, verbose="auto"):
        return line(table)[:, None].astype(np.float32)


def torch_module():
    torch = library("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Dropout(0.5))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[1.0, -2.0, 0.0]]))
        module[0].bias.zero_()
    return module


def exported_module():
    """A graph of the module alone, as it is shipped to other machines."""
    torch = library("torch")
    return torch.export.export(
        torch_module().eval(), (torch.zeros(7, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    ).module()


def xgboost_booster():
    xgboost = library("xgboost")
    return xgboost.train({"max_depth": 3, "eta": 0.3, "nthread": 1}, xgboost.DMatrix(TRAIN, Y[:300]), 30)


def lightgbm_booster():
    lightgbm = library("lightgbm")
    return lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(TRAIN, Y[:300]), 30)


def catboost_frame():
    catboost = library("catboost")
    return catboost.CatBoostRegressor(
        iterations=50, verbose=False, allow_writing_files=False, thread_count=1, random_state=0
    ).fit(TRAIN, Y[:300])


def keras_model():
    keras = library("keras")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.layers[0].set_weights([np.array([[1.0], [-2.0], [0.0]]), np.zeros(1)])
    return model


def onnx_session():
    onnx, runtime = library("onnx"), library("onnxruntime")
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(np.array([[1.0], [-2.0], [0.0]], np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "line",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def statsmodels_results():
    return library("statsmodels.api").OLS(Y[:300], TRAIN).fit()


def statsmodels_formula():
    frame = TRAIN.assign(y=Y[:300])
    return library("statsmodels.formula.api").ols("y ~ a + b + c", frame).fit()


KINDS = {
    "regressor": lambda: LinearRegression().fit(TRAIN, Y[:300]),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearRegression()).fit(TRAIN, Y[:300]),
    "one column": lambda: LinearRegression().fit(TRAIN, Y[:300, None]),
    "partial least squares": lambda: PLSRegression(2).fit(TRAIN, Y[:300]),
    "function": lambda: line,
    "object that predicts": OnlyPredicts,
    "object that predicts one column": OneColumn,
    "object that fits and predicts": KerasLike,
    "Keras": keras_model,
    "torch": torch_module,
    "torch, exported": exported_module,
    "XGBoost booster": xgboost_booster,
    "LightGBM booster": lightgbm_booster,
    "CatBoost": catboost_frame,
    "ONNX Runtime": onnx_session,
    "statsmodels": statsmodels_results,
    "statsmodels, formula": statsmodels_formula,
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_model_is_calibrated_as_it_is(kind):
    intervals = IntervalRegressor(KINDS[kind](), confidence_level=0.9).calibrate(CALIBRATE, Y[300:600])
    bounds = intervals.predict_interval(NEW)
    assert bounds.shape == (300, 2)
    assert intervals.predict(NEW).shape == (300,)
    assert coverage_score(Y[600:], bounds) == pytest.approx(0.9, abs=0.075)  # three standard deviations of both sets
    assert np.ptp(bounds, axis=1).mean() < 0.7 * 2 * 1.645 * Y.std()  # nowhere near a model that knows nothing


@pytest.mark.parametrize("kind", ["torch", "XGBoost booster", "LightGBM booster", "CatBoost", "statsmodels, formula"])
def test_wrapped_models_are_pickled(kind):
    intervals = IntervalRegressor(KINDS[kind](), confidence_level=0.9).calibrate(CALIBRATE, Y[300:600])
    again = pickle.loads(pickle.dumps(intervals))
    assert_allclose(again.predict_interval(NEW), intervals.predict_interval(NEW))


def test_torch_modules_keep_their_modes():
    module = torch_module()
    module.train()
    module[1].eval()
    assert_allclose(predicted(module, NEW)[:, 0], line(NEW), atol=1e-5)  # Dropout is off
    assert module.training
    assert not module[1].training


def test_torch_modules_predict_in_their_precision():
    module = torch_module().double()
    assert_allclose(predicted(module, NEW)[:, 0], line(NEW), rtol=1e-13)


def test_strings_are_refused_where_a_model_takes_numbers():
    with pytest.raises(ValueError, match="takes numbers, but X has dtype object"):
        predicted(torch_module(), NEW.assign(c="blue"))


def test_columns_without_numbers_are_named_in_a_note():
    frame = CALIBRATE.assign(c="blue", made=pd.date_range("2026-01-01", periods=300))
    for act in (
        lambda: IntervalRegressor(LinearRegression(), shuffle=False).fit(frame, Y[300:600]),
        lambda: IntervalRegressor(lambda table: table.to_numpy().astype(float)[:, 0]).calibrate(frame, Y[300:600]),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            act()
        (note,) = caught.value.__notes__
        assert "hold no numbers: 'c', 'made'" in note
        assert "OneHotEncoder(), ['c', 'made']" in note


def test_errors_about_numbers_have_no_note():
    with pytest.raises(ValueError, match="Input X contains NaN") as caught:
        IntervalRegressor(LinearRegression(), random_state=0).fit(TRAIN.mask(TRAIN > 2), Y[:300])
    assert not hasattr(caught.value, "__notes__")


def test_two_outputs_for_one_target_are_refused():
    with pytest.raises(ValueError, match=r"shape \(300, 2\) for 300 rows"):
        IntervalRegressor(lambda table: np.asarray(table)[:, :2]).calibrate(CALIBRATE, Y[300:600])
