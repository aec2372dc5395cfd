"""
CV+ runs out of memory
======================

Other implementations of CV+ keep a table of training rows times new rows. Here
bounds are found by bisection over sorted lists, one for each fold: memory grows
with the sum, not with the product.
"""

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(1000, 3))
y = 5 * X[:, 0] + rng.normal(size=1000)
model = pm.IntervalRegressor(Ridge(), cv=10, random_state=0).fit(X, y)

numbers, used = [1_000, 10_000, 100_000], []
for n in numbers:
    new = rng.uniform(size=(n, 3))
    tracemalloc.start()
    model.predict_interval(new)
    used.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    print(f"{n:7,} new rows: {used[-1]:6.1f} MiB")

# %%
# A table of floats beside it:

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
table = [1000 * n * 8 / 2**20 for n in numbers]
ax.loglog(numbers, table, "--", color="#d55e00", label="a table, 1,000 × rows")
ax.loglog(numbers, used, "o-", color="#0072b2", label="predict_interval")
ax.set(xlabel="new rows", ylabel="memory, MiB")
ax.legend(frameon=False)
plt.show()
