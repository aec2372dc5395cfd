"""
Any object that predicts
========================

An object with a method ``predict`` is enough: no base class, no parameters, no
``fit``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)


class Nearest:
    """What happened to the most similar patient."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def predict(self, X):
        distance = ((X[:, None] - self.X) ** 2).sum(axis=2)
        return self.y[distance.argmin(axis=1)]


model = Nearest(X[:200], y[:200])

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
