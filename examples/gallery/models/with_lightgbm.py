"""
A booster of LightGBM
=====================

Models of ``lightgbm.train`` and of ``LGBMRegressor`` are taken, with the frame
that they were trained on.
"""

import lightgbm
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
settings = {
    "num_leaves": 7,
    "learning_rate": 0.05,
    "verbose": -1,
    "num_threads": 1,
}
model = lightgbm.train(settings, lightgbm.Dataset(X[:200], y[:200]), 60)

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
