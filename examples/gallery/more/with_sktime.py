"""
Intervals around a forecaster of sktime
=======================================

``PimeterForecaster`` puts ``ForecastIntervals`` around any forecaster of sktime
and is one itself; ``PimeterRegressor`` of ``pimeter.integrations.skpro`` does
so for probabilistic regression.
"""

import matplotlib.pyplot as plt
from sktime.datasets import load_airline
from sktime.forecasting.naive import NaiveForecaster

from pimeter.integrations.sktime import PimeterForecaster

y = load_airline()
ahead = list(range(1, 13))
model = PimeterForecaster(NaiveForecaster(sp=12)).fit(y[:-12], fh=ahead)
bounds = model.predict_interval(coverage=0.9)
print(bounds.head(3).round())

# %%

months = y.index[-12:].to_timestamp()
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(y.index[-60:].to_timestamp(), y[-60:], color="#222222")
ax.fill_between(months, *bounds.to_numpy().T, alpha=0.3, label="90 % interval")
ax.plot(months, model.predict(), label="as last year")
ax.set(ylabel="passengers, thousands")
ax.legend(frameon=False, loc="upper left")
plt.show()
