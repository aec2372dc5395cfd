"""
Conformalised quantile regression (CQR)
=======================================

``width="quantile"`` learns a band between two quantiles and moves it outward or
inward until it covers: skewed targets get skewed intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(3000, 1))
y = np.sin(2 * X[:, 0]) + rng.gamma(1, 0.1 + 0.3 * np.abs(X[:, 0]))
model = pm.IntervalRegressor(
    HistGradientBoostingRegressor(max_iter=40),
    confidence_level=0.9,
    width="quantile",
    random_state=0,
).fit(X[:2000], y[:2000])
bounds = model.predict_interval(X[2000:])
print(f"{pm.coverage_score(y[2000:], bounds):.1%} of new rows are covered")
print(f"guaranteed: {model.guaranteed_level_:.0%} on average")

# %%

new = np.linspace(-3, 3, 300)[:, None]
lower, upper = model.predict_interval(new).T
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(X[2000:], y[2000:], ".", color="#888888", markersize=3)
ax.fill_between(new[:, 0], lower, upper, color="#0072b2", alpha=0.3)
ax.set(xlabel="feature", ylabel="target")
plt.show()
