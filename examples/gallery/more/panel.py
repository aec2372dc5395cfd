"""
A panel of many series
======================

Forecasters keep many series in one long frame: ``unique_id``, ``ds``,
``cutoff``, ``y`` and a column for each model. ``PanelIntervals`` takes past
forecasts in that form and adds bounds to those to come.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pimeter as pm

rng = np.random.default_rng(0)
days = pd.date_range("2026-01-01", periods=90, freq="D")
parts = []
for i in range(30):  # small and large shops, seven days ahead
    sold = np.exp(rng.normal(3, 1)) * (10 + rng.standard_normal(90))
    for made in range(7, 83):
        part = {
            "unique_id": f"shop {i}",
            "ds": days[made : made + 7],
            "cutoff": days[made - 1],
            "y": sold[made : made + 7],
            "mean7": sold[made - 7 : made].mean(),
        }
        parts.append(pd.DataFrame(part))
past = pd.concat(parts)
last = past[past["cutoff"] == past["cutoff"].max()]
earlier = past[past["ds"] < last["ds"].min()]

intervals = pm.PanelIntervals((0.8, 0.95)).fit(earlier)
answer = intervals.predict_interval(last.drop(columns="y"))
print(answer.head(3).T)

# %%

intervals.plot(last.drop(columns="y"), n_series=4)
plt.show()
