"""
New rows come from elsewhere (covariate shift)
==============================================

Calibration rows are mostly easy, new rows mostly hard. Weights say how much
likelier each row is there than here: weighted conformal prediction. Known
ratios keep the guarantee; ``shift_weights`` estimates them from the features.
"""

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

rng = np.random.default_rng(0)
X = rng.uniform(size=(6000, 1))
y = rng.normal(size=6000) * (0.2 + 2 * X[:, 0])  # harder to the right
held_out, new = np.arange(2000), np.arange(2000, 6000)
elsewhere = new[rng.uniform(size=4000) < X[new, 0] ** 2]


def model(X):
    return np.zeros(len(X))


plain = pm.IntervalRegressor(model, confidence_level=0.9)
plain.calibrate(X[held_out], y[held_out])
weights = pm.shift_weights(X[held_out], X[elsewhere], random_state=0)
weighted = pm.IntervalRegressor(model, confidence_level=0.9)
weighted.calibrate(X[held_out], y[held_out], importance_weight=weights)

found = {
    "ignored": plain.predict_interval(X[elsewhere]),
    "weighted": weighted.predict_interval(
        X[elsewhere], importance_weight=weights
    ),
}
for name, bounds in found.items():
    print(f"{name}: {pm.coverage_score(y[elsewhere], bounds):.1%} covered")

# %%

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(X[elsewhere, 0], y[elsewhere], ".", color="#bbbbbb", markersize=3)
for (name, bounds), colour in zip(
    found.items(), ("#d55e00", "#0072b2"), strict=True
):
    order = X[elsewhere, 0].argsort()
    ax.plot(X[elsewhere, 0][order], bounds[order], color=colour)
    ax.plot([], [], color=colour, label=name)
ax.set(xlabel="feature", ylabel="target of rows from elsewhere")
ax.legend(frameon=False, loc="upper left")
plt.show()
