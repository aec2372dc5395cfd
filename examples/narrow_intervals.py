"""Train a network for narrow intervals: width, through the neuron's quantile, is in the loss (conformal training).

The network says a value and a scale for each row; an interval is value -+ margin * scale, the margin a quantile of
|error| / scale. `pimeter.quantile` of a tensor has a gradient, so the intervals of a batch, with the margin that the
batch itself asks for, can be made narrow while the network learns. Beside it is the same network without that: by
squared error alone (one width for all), and by likelihood (a scale, but no quantile). The paper's CWC on rows held out
chooses when to stop. Coverage comes from fresh rows, by ranks, and holds for all: their halves calibrate each other.

    python examples/narrow_intervals.py [SPLITS [FIRST]]

Set PIMETER_DATA to a folder with `regression/protein.csv.gz` (UCI 265); else it is scikit-learn's diabetes data.
"""

import copy
import os
import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_diabetes

import pimeter as pm
from pimeter.paper import coverage_width_criterion

LEVEL = 0.9
STEPS, BATCH = 360, 512
ROWS = 16_000  # of a split, at most

splits, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 4), (2, 0)))
path = Path(os.environ.get("PIMETER_DATA", "")) / "regression" / "protein.csv.gz"
if os.environ.get("PIMETER_DATA") and path.exists():
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    features, target, name = table[:, :-1], table[:, -1], "protein"
else:
    features, target = load_diabetes(return_X_y=True)
    name = "diabetes"


def heads(network, x):
    out = network(x)
    return out[:, 0], torch.nn.functional.softplus(out[:, 1]) + 0.01


def one_width(network, x):
    value, scale = heads(network, x)
    return value, torch.ones_like(scale)


def squares(value, _scale, y):
    return torch.log(((y - value) ** 2).mean())


def likelihood(value, scale, y):
    return (torch.log(scale) + 0.5 * ((y - value) / scale) ** 2).mean()


def squares_and_width(value, scale, y):
    """Squared error, and the interval score: width and penalty for misses, with the margin that this batch asks for."""
    errors = (y - value).abs()
    margin = pm.quantile(errors / scale, LEVEL) * scale
    return squares(value, scale, y) + torch.log((margin + torch.relu(errors - margin) / (1.0 - LEVEL)).mean())


def intervals(network, outputs, x, y, new):
    """Intervals for new rows, with the margin that some rows and their targets ask for: by ranks."""
    with torch.no_grad():
        value, scale = outputs(network, x)
        fresh = ((y - value).abs() / scale).sort().values
        margin = fresh[min(int(np.ceil((len(fresh) + 1) * LEVEL)), len(fresh)) - 1]
        value, scale = outputs(network, new)
    return torch.stack([value - margin * scale, value + margin * scale], dim=1).numpy()


def train(network, loss, outputs, x, y, held_out):
    """The state with the smallest CWC on rows held out, and that CWC."""
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3, weight_decay=1e-5)
    best, least = network, np.inf
    for step in range(STEPS):
        rows = torch.randperm(len(x))[:BATCH]
        optimizer.zero_grad()
        loss(*outputs(network, x[rows]), y[rows]).backward()
        optimizer.step()
        if step % 20 == 19:
            found = intervals(network, outputs, *held_out, held_out[0])
            criterion = coverage_width_criterion(held_out[1].numpy(), found, confidence_level=LEVEL)
            if criterion < least:
                best, least = copy.deepcopy(network), criterion
    return best, least


ways = {
    "squared error": (squares, one_width),
    "likelihood": (likelihood, heads),
    "squared error and width": (squares_and_width, heads),
}
results = {way: [] for way in ways}
for seed in range(first, first + splits):
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(len(target))[:ROWS]
    a, b, c = (int(part * len(order)) for part in (0.5, 0.65, 0.825))
    x, y = features[order], target[order, None]
    x, y = ((t - t[:a].mean(0)) / t[:a].std(0) for t in (x, y))
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y[:, 0], dtype=torch.float32)
    training, held_out, one, other = ((x[rows], y[rows]) for rows in map(slice, (0, a, b, c), (a, b, c, None)))
    layers = [torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
    start = torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))
    for way, (loss, outputs) in ways.items():
        torch.manual_seed(seed)
        network, criterion = train(copy.deepcopy(start), loss, outputs, *training, held_out)
        found = [intervals(network, outputs, *known, new[0]) for known, new in ((one, other), (other, one))]
        found, observed = np.concatenate(found), torch.cat([other[1], one[1]]).numpy()
        results[way].append((pm.coverage_score(observed, found), pm.mean_width_score(found), criterion))

print(f"{name}: {splits} splits, intervals for {LEVEL:.0%}, widths in units of the target's spread")
ours = np.array(results["squared error and width"])[:, 1]
for way, rows in results.items():
    covered, width, criterion = np.mean(rows, axis=0)
    print(f"{way:<24} {covered:.1%} covered, mean width {width:.3f}, CWC on rows held out {criterion:.3f}")
for way in list(ways)[:2]:
    less = ours / np.array(results[way])[:, 1] - 1.0
    error = less.std(ddof=1) / np.sqrt(splits) if splits > 1 else np.nan
    print(f"width in the loss against {way}: {less.mean():+.1%} width (standard error {error:.1%})")
