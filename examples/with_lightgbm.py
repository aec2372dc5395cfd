"""Calibrate a trained LightGBM model as it is, with a neuron for each category."""

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

import pimeter as pm

rng = np.random.default_rng(0)
table = pd.DataFrame({"size": rng.uniform(size=3000), "shop": pd.Categorical(rng.choice(["a", "b", "c"], size=3000))})
sales = 5 * table["size"] + rng.normal(size=3000) * table["shop"].map({"a": 0.2, "b": 1.0, "c": 3.0}).astype(float)

model = LGBMRegressor(n_estimators=50, verbose=-1).fit(table[:1000], sales[:1000])
interval = pm.IntervalRegressor(model, width=pm.GroupedWidth(by="shop")).calibrate(table[1000:2000], sales[1000:2000])
found = interval.predict_interval(table[2000:])
for shop, rows in table[2000:].groupby("shop", observed=True).indices.items():
    covered = pm.coverage_score(sales[2000:].iloc[rows], found[rows])
    print(f"{shop}: {covered:.1%} covered, width {np.ptp(found[rows[0]]):.2f}")
