"""
Do anyone's intervals hold?
===========================

Two quantile models say that they hold 90 % of targets. On rows that they were
not trained on, ``measure`` says how often they do, and ``IntervalCalibrator``
makes them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(2400, 4))
y = 5 * X[:, 0] + rng.normal(size=2400) * (0.3 + X[:, 1])
given = np.column_stack(
    [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=80)
        .fit(X[:400], y[:400])
        .predict(X)
        for q in (0.05, 0.95)
    ]
)
half, new = slice(400, 1400), slice(1400, 2400)
print(pm.measure(y[half], intervals=given[half], confidence_level=0.9).headline)

# %%

calibrator = pm.IntervalCalibrator(0.9).fit(y[half], intervals=given[half])
better = calibrator.predict_interval(intervals=given[new])
found = {"as given": given[new], "calibrated": better}
coverage = [pm.coverage_score(y[new], one) for one in found.values()]
for name, one in zip(found, coverage, strict=True):
    print(f"{name}: {one:.1%} of new rows are covered")

fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(list(found), coverage, color=["#d55e00", "#0072b2"], height=0.6)
ax.axvline(0.9, color="#222222", linestyle="--")
ax.invert_yaxis()
ax.set(xlabel="coverage of new rows", xlim=(0.5, 1))
plt.show()
