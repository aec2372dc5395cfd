"""
A regressor of scikit-learn
===========================

A fitted regressor, here a random forest, is calibrated as it is: conformal
prediction from the residuals of rows that it was not trained on.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
model = RandomForestRegressor(random_state=0).fit(X[:200], y[:200])

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
