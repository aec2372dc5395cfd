"""
Inside a pipeline, and a search around it
=========================================

``IntervalRegressor`` is a scikit-learn estimator: pipelines, ``clone`` and grid
searches work, and scorers of ``pimeter.scorers`` choose by the quality of
intervals.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm
from pimeter.scorers import interval_scorer

X, y = load_diabetes(return_X_y=True)
inside = make_pipeline(StandardScaler(), KNeighborsRegressor())
model = pm.IntervalRegressor(inside, confidence_level=0.9, random_state=0)

tried = [1, 2, 4, 8, 16, 32, 64]
name = "estimator__kneighborsregressor__n_neighbors"
search = GridSearchCV(model, {name: tried}, scoring=interval_scorer, cv=5)
search.fit(X, y)
print(search.best_params_)

# %%
# Put the pipeline inside if you can: then intervals are asked for like
# predictions.

print(search.best_estimator_.predict_interval(X[:3]).round())

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.semilogx(tried, -search.cv_results_["mean_test_score"], "o-")
ax.set(xlabel="neighbours", ylabel="interval score\n(smaller is better)")
plt.show()
