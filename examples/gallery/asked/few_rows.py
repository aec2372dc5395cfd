"""
Few calibration rows
====================

With too few rows for the level, other libraries answer with infinite intervals
or an exception. Here the largest score is the margin, and what that can
guarantee is stated.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

rng = np.random.default_rng(0)
y = rng.normal(size=60)
numbers = [5, 10, 15, 19, 25, 40, 60]
levels, margins = [], []
for m in numbers:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = pm.IntervalRegressor(lambda X: 0 * X[:, 0], width="constant")
        model.calibrate(np.zeros((m, 1)) + np.arange(m)[:, None], y[:m])
    if m == 10:
        print(caught[0].message)
    levels.append(model.guaranteed_level_)
    margins.append(model.margin_[1])
print(f"with {numbers[0]} rows {levels[0]:.0%} is guaranteed")

# %%

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(numbers, levels, "o-")
axes[0].axhline(0.95, color="#888888", linestyle="--")
axes[0].set(xlabel="calibration rows", ylabel="guaranteed level")
axes[1].plot(numbers, margins, "o-")
axes[1].axhline(1.96, color="#888888", linestyle="--")
axes[1].set(xlabel="calibration rows", ylabel="margin", ylim=(0, 4))
plt.show()
