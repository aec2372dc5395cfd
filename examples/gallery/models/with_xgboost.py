"""
A booster of XGBoost
====================

A ``Booster`` wants a ``DMatrix``; it is made of the rows that you hand over.
``XGBRegressor`` is taken as well.
"""

import matplotlib.pyplot as plt
import xgboost
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
settings = {"max_depth": 2, "eta": 0.1, "nthread": 1}
model = xgboost.train(settings, xgboost.DMatrix(X[:200], y[:200]), 60)

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
