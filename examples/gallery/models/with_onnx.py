"""
A session of ONNX Runtime
=========================

A model that was exported from any library, without that library: its single
input is filled with the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnxruntime
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
weights = np.linalg.lstsq(X[:200], y[:200] - y[:200].mean(), rcond=None)[0]
parts = {"weights": weights[:, None], "mean": y[:200].mean(keepdims=True)}
graph = onnx.helper.make_graph(
    [
        onnx.helper.make_node("MatMul", ["rows", "weights"], ["sum"]),
        onnx.helper.make_node("Add", ["sum", "mean"], ["prediction"]),
    ],
    "line",
    [
        onnx.helper.make_tensor_value_info(
            "rows", onnx.TensorProto.FLOAT, [None, 10]
        )
    ],
    [
        onnx.helper.make_tensor_value_info(
            "prediction", onnx.TensorProto.FLOAT, [None, 1]
        )
    ],
    [
        onnx.numpy_helper.from_array(part.astype(np.float32), name)
        for name, part in parts.items()
    ],
)
file = onnx.helper.make_model(
    graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8
)
model = onnxruntime.InferenceSession(
    file.SerializeToString(), providers=["CPUExecutionProvider"]
)

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
