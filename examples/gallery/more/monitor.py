"""
Monitor that intervals go on holding
====================================

Targets begin to spread more after 2,000 rows. The monitor may be looked at as
often as you like: while intervals hold, the probability of *ever* a false alarm
is at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

rng = np.random.default_rng(0)
y = rng.standard_normal(4000) * np.where(np.arange(4000) < 2000, 1.0, 1.6)
bounds = np.tile([-1.645, 1.645], (4000, 1))
monitor = pm.CoverageMonitor(0.9)
seen, low, high = [], [], []
for start in range(0, 4000, 50):  # a day
    monitor.update(y[start : start + 50], bounds[start : start + 50])
    seen.append(monitor.n_seen_)
    low.append(monitor.estimate_.lower)
    high.append(monitor.estimate_.upper)
    if monitor.alarm_:
        break
print(
    f"alarm after {monitor.n_seen_:,} rows; the change came at", monitor.since_
)

# %%
# The mean coverage so far, within bounds that hold at all times together:

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.fill_between(seen, low, high, color="#0072b2", alpha=0.3)
ax.axhline(0.9, color="#888888", linestyle="--")
ax.axvline(2000, color="#d55e00", label="change")
ax.axvline(monitor.n_seen_, color="#222222", label="alarm")
ax.set(xlabel="rows", ylabel="mean coverage", ylim=(0.75, 1))
ax.legend(frameon=False)
plt.show()
