"""
Log intervals and a report to MLflow
====================================

The logged model answers with intervals, at the level that ``params`` ask for,
and holds no pickle; a report becomes an artifact, its scores metrics.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import mlflow
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

import pimeter as pm
from pimeter.integrations.mlflow import log_model, log_result

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = pm.IntervalRegressor(RidgeCV(), confidence_level=0.9, random_state=0)
model.fit(X[:342], y[:342])
result = pm.measure(y[342:], model.predict(X[342:]), X=X[342:])

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a folder, for this example
mlflow.set_tracking_uri(Path(tempfile.mkdtemp()).as_uri())
mlflow.set_experiment("intervals")
with mlflow.start_run():
    logged = log_model(model, "intervals", input_example=X[:3])
    log_result(result)

# %%
# Elsewhere, without the code that trained it:

served = mlflow.pyfunc.load_model(logged.model_uri)
print(served.predict(X[342:345]).round(1))
levels = [0.5, 0.8, 0.9, 0.95]
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for row, level in enumerate(levels):
    answer = served.predict(X[342:343], params={"confidence_level": level})
    ax.plot(answer[["lower", "upper"]].to_numpy()[0], [row, row], "|-")
ax.set_yticks(range(4), [f"{level:.0%}" for level in levels])
ax.set(xlabel="progression of one patient", ylabel="level asked for")
plt.show()
