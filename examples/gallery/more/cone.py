"""
A cone around forecasts
=======================

A forecaster predicts seven steps ahead. A neuron for each step learns how far
targets lie from the forecast: a cone that opens as far as the errors do.
"""

import matplotlib.pyplot as plt
import numpy as np

import pimeter as pm

walk = np.cumsum(np.random.default_rng(1).normal(size=1000))
windows = np.lib.stride_tricks.sliding_window_view(walk, 15)
y_true = windows[:, 1:]  # what happened in the next 14 days
y_pred = np.repeat(windows[:, :1], 14, axis=1)  # "the last value stays"
cone = pm.ForecastIntervals(0.9).fit(y_true[:700], y_pred[:700])
bounds = cone.predict_interval(y_pred[700:])
print(
    f"{pm.coverage_score(y_true[700:], bounds):.1%} of later days are covered"
)
print(
    f"{cone.n_effective_:.0f} windows would tell as much, were they independent"
)

# %%

days = np.arange(1, 15)
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(np.arange(-40, 1), walk[900 - 40 : 901], color="#222222")
ax.plot(days, walk[901:915], ".", color="#222222", label="what happened")
ax.plot(days, np.full(14, walk[900]), color="#0072b2")
lower, upper = cone.predict_interval(np.full((1, 14), walk[900]))[0].T
ax.fill_between(days, lower, upper, color="#0072b2", alpha=0.3, label="90 %")
ax.set(xlabel="days from the forecast", ylabel="value")
ax.legend(frameon=False, loc="upper left")
plt.show()
