"""
Targets with several columns
============================

Each column is covered by itself, or, with ``joint=True``, all of them at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(3000, 2))
y = 3 * X + rng.normal(size=(3000, 2)) @ [[1.0, 0.5], [0.0, 1.5]]
new = slice(2000, 3000)
found = {}
for joint in (False, True):
    model = pm.IntervalRegressor(
        Ridge(), confidence_level=0.9, joint=joint, random_state=0
    )
    bounds = model.fit(X[:2000], y[:2000]).predict_interval(X[new])
    inside = (bounds[..., 0] <= y[new]) & (y[new] <= bounds[..., 1])
    print(f"joint={joint}: each {inside.mean(axis=0).round(3)}", end=", ")
    print(f"both at once {inside.all(axis=1).mean():.3f}")
    found[joint] = bounds[0]

# %%
# The two boxes of the first new row, and what it could have been:

fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
at = model.predict(X[new])[0] + y[new] - model.predict(X[new])
ax.plot(*at.T, ".", color="#bbbbbb", markersize=3)
for joint, colour in ((False, "#d55e00"), (True, "#0072b2")):
    (a, b), (c, d) = found[joint]
    ax.plot([a, b, b, a, a], [c, c, d, d, c], color=colour)
    ax.plot([], [], color=colour, label=f"joint={joint}")
ax.set(xlabel="first target", ylabel="second target")
ax.legend(frameon=False)
plt.show()
