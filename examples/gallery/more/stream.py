"""
A margin that follows a stream
==============================

``OnlineNeuron`` learns the margin of the next error from each one as it comes,
in a few floats, with a bound on misses whatever the series.
"""

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

rng = np.random.default_rng(0)
spread = 1 + np.abs(np.sin(np.arange(3000) / 300))
errors = np.abs(rng.normal(size=3000) * spread)
neuron = pm.OnlineNeuron(0.9)
margins = np.empty(3000)
for t, error in enumerate(errors):
    margins[t] = neuron.quantile_ if t else np.nan
    neuron.learn_one(error)
print(
    f"{np.mean(errors[1:] <= margins[1:]):.1%} of errors are within the margin"
)

# %%

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(errors, ".", color="#bbbbbb", markersize=2)
ax.plot(margins, color="#0072b2", linewidth=1, label="margin")
ax.plot(1.645 * spread, "--", color="#222222", label="true 90 % quantile")
ax.set(xlabel="time", ylabel="absolute error", ylim=(0, 7))
ax.legend(frameon=False, loc="upper left")
plt.show()
