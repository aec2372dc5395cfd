"""
An exported graph of torch
==========================

``torch.export`` keeps the graph of a module without its code, to be shipped to
other machines. It is calibrated like the module.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
torch.manual_seed(0)
weights = np.linalg.lstsq(X[:200], y[:200] - y[:200].mean(), rcond=None)[0]
module = torch.nn.Linear(10, 1)
with torch.no_grad():
    module.weight.copy_(torch.tensor(weights[None]))
    module.bias.fill_(y[:200].mean())
rows = ({0: torch.export.Dim.AUTO},)  # as many as there are
exported = torch.export.export(
    module.eval(), (torch.zeros(7, 10),), dynamic_shapes=rows
)
model = exported.module()

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
