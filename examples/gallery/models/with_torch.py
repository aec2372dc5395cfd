"""
A module of torch
=================

Rows are NumPy's or a frame's; the module sees them as a tensor of its own
precision, on its own device, in evaluation mode and without gradients.
Afterwards it is as it was.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_diabetes

import pimeter as pm

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

order = np.argsort(intervals.predict(X[342:]))
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.vlines(
    range(100),
    *bounds[order].T,
    color="#0072b2",
    alpha=0.5,
    label="90 % interval",
)
ax.plot(y[342:][order], ".", color="#222222", label="target")
ax.set(
    xlabel="new rows, by their predictions", ylabel="progression of diabetes"
)
ax.legend(frameon=False, loc="upper left")
plt.show()
