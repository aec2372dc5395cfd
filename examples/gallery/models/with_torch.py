"""
A module of torch
=================

Rows are NumPy's or a frame's; the module sees them as a tensor of its own
precision, on its own device, in evaluation mode and without gradients.
Afterwards it is as it was.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.plotting import IntervalDisplay

X, y = load_diabetes(return_X_y=True)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(10, 32),
    torch.nn.ReLU(),
    torch.nn.Dropout(0.2),
    torch.nn.Linear(32, 1),
)
rows, targets = torch.tensor(X[:200]).float(), torch.tensor(y[:200]).float()
with torch.no_grad():
    model[-1].bias.fill_(targets.mean())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(150):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(rows)[:, 0], targets).backward()
    optimizer.step()

intervals = pm.IntervalRegressor(model, confidence_level=0.9)
intervals.calibrate(X[200:342], y[200:342])  # rows that it was not trained on
bounds = intervals.predict_interval(X[342:])
print(f"{pm.coverage_score(y[342:], bounds):.0%} of new rows are covered")

# %%
# New rows in the order of their predictions, with the targets:

IntervalDisplay.from_estimator(intervals, X[342:], y[342:])
plt.show()
