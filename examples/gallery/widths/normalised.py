"""
Wide where the model is weak: normalised intervals
==================================================

``width="scaled"`` divides residuals by a learned scale, so that intervals are
narrow where the model is good. The guarantee does not depend on how good the
scale is; the width does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(4000, 1))
y = 4 * X[:, 0] + rng.normal(size=4000) * (0.2 + 2 * X[:, 0])
new = np.linspace(0, 1, 200)[:, None]
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(X[:800], y[:800], ".", color="#bbbbbb", markersize=3)
for width, colour in (("constant", "#d55e00"), ("scaled", "#0072b2")):
    model = pm.IntervalRegressor(
        LinearRegression(), confidence_level=0.9, width=width, random_state=0
    ).fit(X[:2000], y[:2000])
    bounds = model.predict_interval(X[2000:])
    easy = X[2000:, 0] < 0.5
    ax.plot(new, model.predict_interval(new), color=colour)
    ax.plot([], [], color=colour, label=width)
    left = pm.coverage_score(y[2000:][easy], bounds[easy])
    right = pm.coverage_score(y[2000:][~easy], bounds[~easy])
    print(f"{width}: {left:.0%} covered left of .5, {right:.0%} right of it")
ax.set(xlabel="feature", ylabel="target")
ax.legend(frameon=False, loc="upper left")
plt.show()
