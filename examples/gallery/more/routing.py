"""
Categories through scikit-learn's metadata routing
==================================================

Categories that are no column of X come to ``fit``, ``predict_interval`` and the
scorer of ``cross_validate`` by scikit-learn's metadata routing.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate

import pimeter as pm
from pimeter.scorers import interval_scorer

rng = np.random.default_rng(0)
shop = rng.choice(["village", "city"], size=2000)
X = rng.uniform(size=(2000, 2))
y = X[:, 0] + rng.normal(size=2000) * np.where(shop == "village", 2.0, 0.5)

found = {}
with sklearn.config_context(enable_metadata_routing=True):
    for width in ("constant", "grouped"):
        model = pm.IntervalRegressor(
            Ridge(), confidence_level=0.9, width=width, random_state=0
        ).set_fit_request(by=width == "grouped")
        scorer = interval_scorer.set_score_request(by=width == "grouped")
        params = {"by": shop} if width == "grouped" else None
        scores = cross_validate(model, X, y, scoring=scorer, params=params)
        found[width] = -scores["test_score"]
        print(f"{width}: interval score {found[width].mean():.2f}")

# %%

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
for name, values in found.items():
    ax.plot(values, [name] * len(values), "o", alpha=0.6)
ax.margins(y=0.4)
ax.set(xlabel="interval score of each fold (smaller is better)")
plt.show()
