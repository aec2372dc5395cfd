"""
Mondrian: each category is covered
==================================

Intervals of one width cover 90 % on average: nearly all rows of an easy shop
and too few of a hard one. ``width="grouped"`` has scores of their own for each
(Mondrian, or group-conditional).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pimeter as pm

rng = np.random.default_rng(0)
shop = rng.choice(["village", "town", "city"], p=[0.2, 0.3, 0.5], size=6000)
spread = pd.Series(shop).map({"village": 3.0, "town": 1.5, "city": 0.5})
X = pd.DataFrame({"shop": shop})
y = spread.to_numpy() * rng.normal(size=6000)


def model(X):
    return np.zeros(len(X))


found = {}
for name, width in (
    ("constant", "constant"),
    ("Mondrian", pm.GroupedWidth(by="shop")),
):
    intervals = pm.IntervalRegressor(model, confidence_level=0.9, width=width)
    bounds = intervals.calibrate(X[:3000], y[:3000]).predict_interval(X[3000:])
    inside = pd.Series((bounds[:, 0] <= y[3000:]) & (y[3000:] <= bounds[:, 1]))
    found[name] = inside.groupby(shop[3000:]).mean()
print(pd.DataFrame(found).round(3))

# %%

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, marker in (("constant", "X"), ("Mondrian", "o")):
    ax.plot(found[name], found[name].index, marker, markersize=9, label=name)
ax.axvline(0.9, color="#888888", linestyle="--")
ax.set(xlabel="coverage of new rows")
ax.legend(frameon=False)
plt.show()
