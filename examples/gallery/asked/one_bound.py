"""
One bound only
==============

For stocks, budgets and service levels: enough in 95 % of cases, whatever lies
below.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(3000, 1))
sold = rng.gamma(2, 5 + 3 * X[:, 0])
model = HistGradientBoostingRegressor(max_iter=40).fit(X[:1000], sold[:1000])

stock = pm.IntervalRegressor(model, tails="upper", width="scaled", y_min=0)
stock.calibrate(X[1000:2000], sold[1000:2000])
order = stock.predict_interval(X[2000:])[:, 1]
print(f"enough in {np.mean(sold[2000:] <= order):.1%} of cases")

# %%

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(X[2000:], sold[2000:], ".", color="#888888", markersize=3)
rank = X[2000:, 0].argsort()
ax.plot(X[2000:, 0][rank], order[rank], color="#0072b2", label="order this")
ax.set(xlabel="price cut, %", ylabel="sold")
ax.legend(frameon=False, loc="upper left")
plt.show()
