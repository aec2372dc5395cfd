"""Train a network for narrow intervals: their width, through the neuron's quantile, is the loss (conformal training).

The network says a value and a scale for each row; an interval is value -+ radius * scale, the radius a quantile of
|error| / scale on other rows. `pimeter.quantile` of a tensor has a gradient, so that the mean width of intervals whose
radius comes from half a batch can be made small on the other half. The same network trained by likelihood alone is
beside it. Coverage comes from fresh rows, by ranks, and holds for both. The paper's CWC chooses the epoch.

Set PIMETER_DATA to a folder with `regression/concrete.csv.gz` (UCI 165); else it is scikit-learn's diabetes data.
"""

import copy
import os
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_diabetes

import pimeter as pm

LEVEL = 0.9
SEEDS = 2

path = Path(os.environ.get("PIMETER_DATA", "")) / "regression" / "concrete.csv.gz"
if os.environ.get("PIMETER_DATA") and path.exists():
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    features, target, name = table[:, :-1], table[:, -1], "concrete"
else:
    features, target = load_diabetes(return_X_y=True)
    name = "diabetes"


def intervals(network, x, radius):
    value, scale = forward(network, x)
    return np.stack([value - radius * scale, value + radius * scale], axis=1)


def forward(network, x):
    with torch.no_grad():
        value, scale = heads(network, x)
    return value.numpy(), scale.numpy()


def heads(network, x):
    out = network(x)
    return out[:, 0], torch.nn.functional.softplus(out[:, 1]) + 0.01


def scores(network, x, y):
    value, scale = heads(network, x)
    return (y - value).abs() / scale


def likelihood_loss(network, x, y):
    value, scale = heads(network, x)
    return (torch.log(scale) + 0.5 * ((y - value) / scale) ** 2).mean()


def width_loss(network, x, y):
    """Mean width on one half of the batch, with the radius that the other half asks for."""
    half = len(x) // 2
    radius = pm.quantile(scores(network, x[:half], y[:half]), LEVEL)
    _, scale = heads(network, x[half:])
    missed = torch.relu(scores(network, x[half:], y[half:]) - radius) * scale  # the other half shall be covered, too
    return 2.0 * radius * scale.mean() + 2.0 / (1.0 - LEVEL) * missed.mean()


def criterion(network, x, y):
    """The paper's CWC on rows that are not trained on, the radius from half of them."""
    half = len(x) // 2
    radius = float(pm.quantile(scores(network, x[:half], y[:half]).detach(), LEVEL))
    found = intervals(network, x[half:], radius)
    return pm.coverage_width_criterion(y[half:].numpy(), found, confidence_level=LEVEL)


def train(network, loss, x, y, held_out, epochs):
    """The state with the smallest CWC."""
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3, weight_decay=1e-4)
    best, best_criterion = copy.deepcopy(network), criterion(network, *held_out)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(128):
            if len(rows) < 32:
                continue
            optimizer.zero_grad()
            loss(network, x[rows], y[rows]).backward()
            optimizer.step()
        if epoch % 5 == 4:
            now = criterion(network, *held_out)
            if now < best_criterion:
                best, best_criterion = copy.deepcopy(network), now
    return best


results = {"likelihood": [], "width": []}
for seed in range(SEEDS):
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(len(target))
    x = torch.tensor((features - features.mean(0)) / features.std(0), dtype=torch.float32)[order]
    y = torch.tensor((target - target.mean()) / target.std(), dtype=torch.float32)[order]
    n = len(y)
    training, held_out, calibration, new = (
        (x[a:b], y[a:b]) for a, b in ((0, n // 2), (n // 2, 13 * n // 20), (13 * n // 20, 4 * n // 5), (4 * n // 5, n))
    )
    layers = [torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
    start = torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))
    start = train(start, likelihood_loss, *training, held_out, 40)
    for which, loss in (("likelihood", likelihood_loss), ("width", width_loss)):
        network = train(copy.deepcopy(start), loss, *training, held_out, 40)
        fresh = np.sort(scores(network, *calibration).detach().numpy())
        radius = fresh[min(int(np.ceil((len(fresh) + 1) * LEVEL)), len(fresh)) - 1]
        found = intervals(network, new[0], radius)
        observed = new[1].numpy()
        results[which].append((pm.coverage_score(observed, found), pm.mean_width_score(found)))

print(f"{name}: {SEEDS} splits, intervals for {LEVEL:.0%}, calibrated on fresh rows")
for which, rows in results.items():
    covered, width = np.mean(rows, axis=0)
    print(f"trained by {which:<10}  {covered:.1%} covered, mean width {width:.3f} of the target's spread")
