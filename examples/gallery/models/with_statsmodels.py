"""
Results of statsmodels
======================

What ``fit`` of statsmodels returns predicts rows of the same columns, the
constant among them.
"""

import matplotlib.pyplot as plt
import statsmodels.api as sm
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
X = sm.add_constant(X)
model = sm.OLS(y[:200], X[:200]).fit()

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
