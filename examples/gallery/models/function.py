"""
A plain function
================

A formula, a call of another program or of a service: whatever returns a number
for each row. It is never trained.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)


def rule_of_thumb(X):
    """By body-mass index (the third column) alone."""
    return 150 + 950 * X[:, 2]


intervals = pm.IntervalRegressor(rule_of_thumb, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
