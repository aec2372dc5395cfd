"""Any function that predicts will do: here a small network in PyTorch."""

import numpy as np
import torch

import pimeter as pm

torch.manual_seed(0)
X = torch.rand(3000, 1)
y = torch.sin(6 * X[:, 0]) + 0.3 * torch.randn(3000)
train, held_out, new = slice(0, 1000), slice(1000, 2000), slice(2000, 3000)

network = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
for _ in range(300):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(network(X[train])[:, 0], y[train]).backward()
    optimizer.step()


def predict(features):
    with torch.no_grad():
        return network(torch.as_tensor(np.asarray(features), dtype=torch.float32))[:, 0].numpy()


interval = pm.IntervalRegressor(predict, confidence_level=0.9).calibrate(X[held_out].numpy(), y[held_out].numpy())
found = interval.predict_interval(X[new].numpy())
print(f"{pm.coverage_score(y[new].numpy(), found):.1%} covered, width {np.diff(found).mean():.2f}")
print(pm.measure(y[held_out].numpy(), predict(X[held_out])))
