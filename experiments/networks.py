"""The paper's networks in PyTorch: one hidden layer with its losses, stacks of such networks, an LSTM for windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

Array: TypeAlias = NDArray[np.float64]
# Targets (n, 1), outputs (n, k) -> a scalar tensor; of a stack, (networks, n, 1), (networks, n, k) -> (networks,)
Loss: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Training:
    """How a network of one hidden layer is trained; the numbers are those of the paper's Table 1.

    The learning rate of step t is ``learning_rate / (1 + decay t)``. Training stops when the loss of an epoch has not
    been the least for `patience` epochs, and the weights of the least one are kept.
    """

    n_hidden: int = 100
    learning_rate: float = 0.02
    decay: float = 0.01
    batch_size: int = 100
    max_epochs: int = 2000
    patience: int = 100


def load_torch() -> Any:
    """PyTorch on one thread: such small layers gain nothing from more, and their sums keep their order."""
    try:
        import torch
    except ModuleNotFoundError as missing:
        msg = "This experiment trains networks with PyTorch: pip install 'pimeter[experiments]'."
        raise ImportError(msg) from missing
    torch.set_num_threads(1)
    return torch


def squared_error(target: Any, output: Any) -> Any:
    """Mean squared error."""
    return ((target - output) ** 2).mean(dim=(-2, -1))


def pinball(levels: Sequence[float]) -> Loss:
    """Sum over outputs of the mean pinball loss, each at its own level (SQR)."""

    def loss(target: Any, output: Any) -> Any:
        torch = load_torch()
        at = torch.tensor(levels, dtype=output.dtype)
        error = target - output
        return torch.maximum(at * error, (at - 1.0) * error).mean(dim=-2).sum(dim=-1)

    return loss


def quality_driven(level: float, *, penalty: Any = 0.01, softening: float = 160.0) -> Loss:
    """Mean width of the intervals that hold their target, and a penalty for a smoothed coverage below the level (QD).

    ``MPIW_captured + penalty n / ((1 - p) p) max(0, p - PICP)^2``, n being the size of the batch. In a stack each
    network may have its own penalty.
    """

    def loss(target: Any, output: Any) -> Any:
        torch = load_torch()
        lower, upper = output[..., :1], output[..., 1:]
        inside = ((target >= lower) & (target <= upper)).to(output.dtype)
        width = ((upper - lower) * inside).sum(dim=(-2, -1)) / inside.sum(dim=(-2, -1)).clamp(min=1.0)
        soft = torch.sigmoid(softening * (upper - target)) * torch.sigmoid(softening * (target - lower))
        short = torch.clamp(level - soft.mean(dim=(-2, -1)), min=0.0)
        return width + penalty * target.shape[-2] / (level * (1.0 - level)) * short**2

    return loss


def train(
    x: Array, y: Array, loss: Loss, how: Training, rng: np.random.Generator, *, start: Sequence[float] = (0.0,)
) -> tuple[Callable[[Array], Array], int]:
    """Train one hidden layer of rectified units on x (n,) and y (n,), one output for each of the biases in `start`.

    Returns what it predicts, (n, outputs) for new x, and the number of its parameters.
    """
    torch = load_torch()
    with torch.random.fork_rng(devices=[]):  # the layers' own initial values come from torch's global stream
        torch.manual_seed(int(rng.integers(2**31)))
        layers = [torch.nn.Linear(1, how.n_hidden), torch.nn.ReLU(), torch.nn.Linear(how.n_hidden, len(start))]
    with torch.no_grad():
        layers[2].bias += torch.tensor(start)
    network = torch.nn.Sequential(*layers)
    inputs, targets = (torch.tensor(a, dtype=torch.float32)[:, None] for a in (x, y))
    optimizer = torch.optim.Adam(network.parameters(), lr=how.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1.0 + how.decay * step))
    best, least, waited = network.state_dict(), np.inf, 0
    for _ in range(how.max_epochs):
        total = 0.0
        for rows in np.array_split(rng.permutation(len(x)), max(1, len(x) // how.batch_size)):
            optimizer.zero_grad()
            value = loss(targets[rows], network(inputs[rows]))
            value.backward()
            optimizer.step()
            schedule.step()
            total += value.item() * len(rows)
        if total < least:
            best, least, waited = deepcopy(network.state_dict()), total, 0
        else:
            waited += 1
        if waited == how.patience:
            break
    network.load_state_dict(best)

    def predict(new: Array) -> Array:
        with torch.no_grad():
            found: Array = network(torch.tensor(new, dtype=torch.float32)[:, None]).double().numpy()
        return found

    return predict, sum(weights.numel() for weights in network.parameters())


class Network(RegressorMixin, BaseEstimator):
    """The hidden layer as a scikit-learn regressor of one feature, for `IntervalRegressor`."""

    def __init__(self, training: Training = Training(), random_state: int = 0) -> None:  # noqa: B008
        self.training = training
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> Self:
        rng = np.random.default_rng(self.random_state)
        self.predict_, _ = train(X[:, 0], y, squared_error, self.training, rng)
        return self

    def predict(self, X: Array) -> Array:
        return self.predict_(X[:, 0])[:, 0]


@dataclass(frozen=True)
class RecurrentTraining:
    """How the LSTM is trained; the paper names its input and output lengths only.

    Adam on the mean squared error, stopped when the windows of `held_out`, the latest ones, have not improved for
    `patience` epochs; the weights of the best epoch are kept. With `residual` the last layer says by how much targets
    differ from the last value of the last feature, which is the target's past.
    """

    n_hidden: int = 32
    learning_rate: float = 0.002
    batch_size: int = 128
    max_epochs: int = 30
    patience: int = 5
    held_out: float = 0.1
    residual: bool = False


def train_lstm(
    x: Array, y: Array, how: RecurrentTraining, rng: np.random.Generator
) -> tuple[Callable[[Array], Array], int]:
    """Train an LSTM with a linear layer from windows x (n, T, features) to y (n, h), the oldest window first.

    Returns what it predicts, (n, h) for new x, and the number of epochs.
    """
    torch = load_torch()
    h = y.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        recurrent = torch.nn.LSTM(x.shape[2], how.n_hidden, batch_first=True)
        last = torch.nn.Linear(how.n_hidden, h)
    model = torch.nn.ModuleList([recurrent, last])
    inputs, targets = (torch.tensor(a, dtype=torch.float32) for a in (x, y))
    # Windows overlap: those between the two parts have targets in common with both and belong to neither.
    n_held_out = int(how.held_out * len(x))
    n_train = len(x) - n_held_out - h + 1
    optimizer = torch.optim.Adam(model.parameters(), lr=how.learning_rate, fused=True)

    def output(rows: Any) -> Any:
        found = last(recurrent(rows)[0][:, -1])
        return rows[:, -1, -1:] + found if how.residual else found

    best, least, waited, n_epochs = deepcopy(model.state_dict()), np.inf, 0, 0
    while n_epochs < how.max_epochs and waited < how.patience:
        n_epochs += 1
        for rows in np.array_split(rng.permutation(n_train), max(1, n_train // how.batch_size)):
            optimizer.zero_grad()
            squared_error(targets[rows], output(inputs[rows])).backward()
            optimizer.step()
        with torch.no_grad():
            value = squared_error(targets[-n_held_out:], output(inputs[-n_held_out:])).item()
        waited += 1
        if value < least:
            best, least, waited = deepcopy(model.state_dict()), value, 0
    model.load_state_dict(best)

    def predict(new: Array) -> Array:
        with torch.no_grad():
            found: Array = output(torch.tensor(new, dtype=torch.float32)).double().numpy()
        return found

    return predict, n_epochs


@dataclass(frozen=True)
class ClassifierTraining:
    """How classifiers of one hidden layer are trained; the paper says only that nothing was tuned.

    Adam on the cross entropy; each network stops when its loss on the rows held out for that has not improved for
    `patience` epochs, and keeps the weights of its best epoch.
    """

    activation: str = "relu"
    learning_rate: float = 0.005
    batch_size: int = 64
    max_epochs: int = 200
    patience: int = 15


def train_classifiers(
    features: Array,
    kind: NDArray[np.intp],
    rows: NDArray[np.intp],
    labels: Array,
    held_out: tuple[NDArray[np.intp], Array],
    how: ClassifierTraining,
    rng: np.random.Generator,
) -> Array:
    """Train many networks at once, as one stack of layers, and give their probabilities of 1 for all rows.

    Parameters
    ----------
    features : ndarray of shape (K, N, d)
        Rows as each of K preparations makes them (such as scaled by different training rows).
    kind : ndarray of int, shape (E,)
        Which preparation each network sees.
    rows, labels : ndarray of shape (E, n)
        Rows that each network is trained on, with repetition as it may be, and their labels.
    held_out : tuple of ndarrays of shape (K, v)
        Rows of each preparation that say when to stop, and their labels.
    how : ClassifierTraining
        The networks have as many hidden units as features.
    rng : Generator
        Initial weights, and the order of rows.

    Returns
    -------
    ndarray of shape (E, N)
    """
    torch = load_torch()
    draw = torch.Generator().manual_seed(int(rng.integers(2**31)))
    n_networks, n = rows.shape
    d = features.shape[2]
    inputs = torch.tensor(features, dtype=torch.float32)
    kinds, at, y = torch.tensor(kind), torch.tensor(rows), torch.tensor(labels, dtype=torch.float32)
    stop_inputs = torch.stack([inputs[k, torch.tensor(part)] for k, part in enumerate(held_out[0])])
    stop_labels = torch.tensor(held_out[1], dtype=torch.float32)
    shapes = ((d, d), (1, d), (d, 1), (1, 1))
    weights = [(2.0 * torch.rand(n_networks, *shape, generator=draw) - 1.0) / d**0.5 for shape in shapes]
    best = [one.clone() for one in weights]
    least, waited = torch.full((n_networks,), torch.inf), torch.zeros(n_networks, dtype=torch.int64)
    active = torch.arange(n_networks)
    adam = StackedAdam(weights)
    rates = torch.full((n_networks,), how.learning_rate)
    for _ in range(how.max_epochs):
        for some in torch.tensor_split(torch.randperm(n, generator=draw), max(1, n // how.batch_size)):
            x = inputs[kinds[active, None], at[active][:, some]]
            weights = [one.requires_grad_() for one in weights]
            loss = _entropy(x, y[active][:, some], weights, how).sum()
            adam.step(weights, torch.autograd.grad(loss, weights), rates[active])
        with torch.no_grad():
            value = _entropy(stop_inputs[kinds[active]], stop_labels[kinds[active]], weights, how)
            is_better = value < least[active]
            better = active[is_better]
            least[better] = value[is_better]
            for kept, one in zip(best, weights, strict=True):
                kept[better] = one[is_better]
        waited[active] += 1
        waited[better] = 0
        goes_on = waited[active] < how.patience
        if not goes_on.any():
            break
        if not goes_on.all():  # networks that are done cost nothing any more
            active = active[goes_on]
            weights = [one[goes_on].detach() for one in weights]
            adam.keep(goes_on)
    with torch.no_grad():
        alone = [(inputs[kind[i] : kind[i] + 1], [one[i : i + 1] for one in best]) for i in range(n_networks)]
        return np.stack([torch.sigmoid(_output(*one, how))[0].double().numpy() for one in alone])


def _output(x: Any, weights: Sequence[Any], how: ClassifierTraining) -> Any:
    """Log-odds of 1, (networks, rows), from features (networks, rows, d)."""
    torch = load_torch()
    first, first_bias, last, last_bias = weights
    hidden = getattr(torch, how.activation)(torch.baddbmm(first_bias, x, first))
    return torch.baddbmm(last_bias, hidden, last)[:, :, 0]


def _entropy(x: Any, y: Any, weights: Sequence[Any], how: ClassifierTraining) -> Any:
    """Mean cross entropy of each network."""
    odds = _output(x, weights, how)
    return load_torch().nn.functional.binary_cross_entropy_with_logits(odds, y, reduction="none").mean(dim=1)


class StackedAdam:
    """Adam and AdamW for stacks of weights, of which some can be dropped on the way, which torch's own cannot do."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self.moments = [[one * 0.0, one * 0.0] for one in weights]
        self.n_steps = 0

    def step(self, weights: Sequence[Any], slopes: Sequence[Any], rates: Any, decays: Any = None) -> None:
        """Change the weights in place, with a learning rate and a weight decay for each network."""
        self.n_steps += 1
        with load_torch().no_grad():
            rate = rates[:, None, None]
            for one, slope, (mean, square) in zip(weights, slopes, self.moments, strict=True):
                if decays is not None:
                    one.mul_(1.0 - rate * decays[:, None, None])
                mean.mul_(0.9).add_(slope, alpha=0.1)
                square.mul_(0.999).addcmul_(slope, slope, value=0.001)
                size = (square / (1.0 - 0.999**self.n_steps)).sqrt_().add_(1e-8)
                one.addcmul_(mean / size, rate, value=-1.0 / (1.0 - 0.9**self.n_steps))

    def keep(self, which: Any) -> None:
        """Forget the other networks."""
        self.moments = [[part[which] for part in pair] for pair in self.moments]
