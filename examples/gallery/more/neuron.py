"""
A smoothed quantile: the neuron
===============================

``quantile`` is called like ``numpy.quantile`` and is nearer to the truth for
most samples, since it smooths as far as the sample allows.
"""

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

rng = np.random.default_rng(0)
errors = np.abs(rng.standard_normal((2000, 30)))  # 2,000 samples of 30 errors
truth = 1.6449
found = {
    "numpy": np.quantile(errors, 0.9, axis=1),
    "neuron": pm.quantile(errors, 0.9, axis=1, reflect=True),
}
for name, values in found.items():
    print(f"{name}: mean-square error {np.mean((values - truth) ** 2):.4f}")

# %%

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
bins = np.linspace(0.9, 2.6, 45)
for name, values in found.items():
    ax.hist(values, bins, histtype="step", linewidth=2, label=name)
ax.axvline(truth, color="#222222", linestyle="--")
ax.set(xlabel=".9 quantile of 30 absolute errors", ylabel="samples")
ax.legend(frameon=False)
plt.show()
