"""
A model of Keras
================

``predict`` of Keras answers with one column of single precision, which is taken
as it is. The model is never trained by pimeter.
"""

import keras
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.layers.Input((10,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(
            1, bias_initializer=keras.initializers.Constant(y[:200].mean())
        ),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
model.fit(X[:200], y[:200], epochs=50, verbose=0)

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
