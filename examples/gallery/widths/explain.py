"""
Why is this interval wide?
==========================

``explain`` says which features make the interval of a row wider or narrower
than others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

import pimeter as pm

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(2000, 3)), columns=["area", "age", "noise"])
y = 5 * X["area"] + rng.normal(size=2000) * (0.2 + 2 * X["age"])
model = pm.IntervalRegressor(Ridge(), width="scaled", random_state=0)
model.fit(X[:1500], y[:1500])
row = X[1500:].nlargest(1, "age")
why = model.explain(row)
print(why)

# %%

parts = {one.feature: one.value for one in why.contributions}
fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(parts), list(parts.values()), color="#0072b2", height=0.6)
ax.axvline(0, color="#222222", linewidth=1)
ax.invert_yaxis()
ax.set(xlabel=f"added to the typical width of {why.typical_width:.2f}")
plt.show()
