"""
Which rows are covered least?
=============================

Coverage on average hides subgroups. ``worst_subgroup`` finds the one that is
covered least on some rows, and says on other rows how often it is covered.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pimeter as pm

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {"age": rng.uniform(20, 80, 4000), "dose": rng.uniform(0, 9, 4000)}
)
hard = (X["age"] > 65) & (X["dose"] > 6)
y = rng.normal(size=4000) * np.where(hard, 3.0, 1.0)
bounds = np.tile([-1.8, 1.8], (4000, 1))
print(f"{pm.coverage_score(y, bounds):.1%} of all rows are covered")
found = pm.worst_subgroup(X, y, bounds)
print(found)

# %%

missed = np.abs(y) > 1.8
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(*X[~missed].T.to_numpy(), ".", color="#cccccc", markersize=3)
ax.plot(
    *X[missed].T.to_numpy(), "x", color="#d55e00", markersize=4, label="miss"
)
ax.set(xlabel="age", ylabel="dose")
ax.legend(loc="upper left")
plt.show()
