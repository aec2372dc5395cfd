"""
How many rows should I hold out?
================================

Split conformal intervals cover the level on average over calibration sets;
those of the set at hand cover a little more or less. How much is known
beforehand, for any model and any distribution.
"""

import matplotlib.pyplot as plt

import pimeter as pm

for within in (0.05, 0.02, 0.01):
    n = pm.rows_needed(0.9, within=within)
    print(f"90 % ± {within:.0%}, nine times in ten: {n:,} rows")

# %%

distances = [0.1, 0.07, 0.05, 0.03, 0.02, 0.015, 0.01]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for level in (0.8, 0.9, 0.95):
    needed = [pm.rows_needed(level, within=one) for one in distances]
    ax.loglog(distances, needed, "o-", label=f"level {level:.0%}")
ax.set(xlabel="distance from the level", ylabel="rows to hold out")
ax.legend(frameon=False)
plt.show()
