"""
A model of CatBoost
===================

Categories stay columns of words, and gaps stay gaps: the frame goes to CatBoost
as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from catboost import CatBoostRegressor
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X["sex"] = np.where(X["sex"] > 0, "female", "male")
model = CatBoostRegressor(
    iterations=100,
    cat_features=["sex"],
    verbose=False,
    allow_writing_files=False,
    thread_count=1,
    random_state=0,
).fit(X[:200], y[:200])

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
