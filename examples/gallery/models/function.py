"""
A plain function
================

A formula, a call of another program or of a service: whatever returns a number
for each row. It is never trained.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import pimeter as pm

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

order = np.argsort(intervals.predict(X[342:]))
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.vlines(
    range(100),
    *bounds[order].T,
    color="#0072b2",
    alpha=0.5,
    label="90 % interval",
)
ax.plot(y[342:][order], ".", color="#222222", label="target")
ax.set(
    xlabel="new rows, by their predictions", ylabel="progression of diabetes"
)
ax.legend(frameon=False, loc="upper left")
plt.show()
