"""Wrap a scikit-learn pipeline, and let a grid search choose how widths follow the features."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm
from pimeter.scorers import interval_scorer

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)

model = pm.IntervalRegressor(make_pipeline(StandardScaler(), Ridge()), confidence_level=0.9, random_state=0)
search = GridSearchCV(model, {"width": ["constant", pm.ScaledWidth(Ridge())]}, scoring=interval_scorer, cv=3)
best = search.fit(X_train, y_train).best_estimator_

intervals = best.predict_interval(X_new)
print(best.predict_interval(X_new.head(3), as_frame=True))
print(f"{best.width}: {pm.coverage_score(y_new, intervals):.0%} covered, width {np.diff(intervals).mean():.0f}")
