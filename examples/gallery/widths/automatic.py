"""
Let the data choose the width
=============================

``width="auto"`` combines a constant width, a learned scale, a band of quantiles
and a quantile forest, with weights that are learned on rows that do not
calibrate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(3000, 2))
y = 5 * X[:, 0] + rng.normal(size=3000) * (0.2 + 2 * X[:, 1])
names = ["constant", "scaled", "quantile", "auto"]
scores = []
for width in names:
    model = pm.IntervalRegressor(
        Ridge(), confidence_level=0.9, width=width, random_state=0
    ).fit(X[:2000], y[:2000])
    bounds = model.predict_interval(X[2000:])
    scores.append(pm.interval_score(y[2000:], bounds, 0.9))
    print(
        f"{width:8}: {pm.coverage_score(y[2000:], bounds):.1%}",
        end=" covered, ",
    )
    print(f"mean width {pm.mean_width_score(bounds):.2f}")

# %%

fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.barh(names, scores, color="#0072b2", height=0.6)
ax.invert_yaxis()
ax.set(xlabel="interval score (smaller is better)")
plt.show()
