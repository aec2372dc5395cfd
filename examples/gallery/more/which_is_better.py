"""
Which of two models is better?
==============================

Differences of scores on the same rows, with ranges for all pairs together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV

import pimeter as pm

X, y = load_diabetes(return_X_y=True)
order = np.random.default_rng(0).permutation(442)
train, test = order[:221], order[221:]
models = {"ridge": RidgeCV(), "forest": RandomForestRegressor(random_state=0)}
said = {
    name: model.fit(X[train], y[train]).predict(X[test])
    for name, model in models.items()
}
said["mean"] = np.full(221, y[train].mean())
found = pm.compare(y[test], said)
print(found.headline)

# %%

pairs = [("forest", "mean"), ("ridge", "mean"), ("ridge", "forest")]
fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
for row, pair in enumerate(pairs):
    one = found.contrast("mae", *pair)
    ax.plot([one.lower, one.upper], [row, row], color="#0072b2")
    ax.plot(one.value, row, "o", color="#0072b2")
ax.axvline(0, color="#222222", linewidth=1)
ax.set_yticks(range(3), [" - ".join(pair) for pair in pairs])
ax.set(xlabel="difference of mean absolute errors")
plt.show()
