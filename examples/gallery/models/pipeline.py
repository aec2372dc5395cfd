"""
A pipeline of scikit-learn
==========================

Whatever the first step of a pipeline takes is handed over: here a frame with a
column of words and gaps.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X["sex"] = np.where(X["sex"] > 0, "female", "male")
X.loc[::7, "bmi"] = np.nan
columns = make_column_transformer(
    (OneHotEncoder(), ["sex"]), remainder=SimpleImputer()
)
model = make_pipeline(columns, RidgeCV()).fit(X[:200], y[:200])

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
