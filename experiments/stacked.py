"""Many networks of one hidden layer trained at once, as one stack of layers, and Hyperband, which searches with stacks.

Each network of a stack has rows, settings, batches and a stop of its own; one that has stopped leaves the stack. What
becomes of a network does not depend on its neighbours, but for the masks of dropout, which are drawn for all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from experiments.networks import Loss, StackedAdam, load_torch

Array: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]
T = TypeVar("T")

ETA = 3  # Hyperband keeps one trial of so many


@dataclass(frozen=True)
class LayerTraining:
    """How a hidden layer for many features is trained, as far as the paper's appendix B names it.

    `spread` is the standard deviation of initial weights in units of one over the root of their number of inputs. The
    learning rate of epoch t is ``learning_rate / (1 + decay t)``, or ``learning_rate (1 - decay)^t`` if `exponential`.
    The optimizer is Adam, with a weight decay AdamW.
    """

    n_hidden: int = 50
    learning_rate: float = 0.01
    decay: float = 0.01
    spread: float = 1.0
    dropout: float = 0.0
    weight_decay: float = 0.0
    exponential: bool = False
    batch_size: int = 100
    max_epochs: int = 300
    patience: int = 30
    penalty: float = 0.0  # of the quality-driven loss

    def rate(self, epoch: int) -> float:
        """Learning rate of an epoch."""
        slower = (1.0 - self.decay) ** epoch if self.exponential else 1.0 / (1.0 + self.decay * epoch)
        return self.learning_rate * slower


Losses: TypeAlias = Callable[[Sequence[LayerTraining]], Loss]


class Member(NamedTuple):
    """A network of a stack: which preparation of the data it sees, rows to train and to stop on, settings, a seed."""

    kind: int
    rows: Rows
    stop: Rows
    how: LayerTraining
    seed: int


class Stack:
    """Networks of one hidden layer of rectified units, trained until the loss on the rows of `stop` is least.

    Parameters
    ----------
    features : ndarray of shape (K, N, d)
        All rows as each of K preparations makes them, such as scaled by different training rows.
    targets : ndarray of shape (K, N)
    members : sequence of Member
        They have as many rows, hidden units and batches as one another.
    losses : callable
        From the settings of networks to their loss: a value for each of them.
    start : sequence of float
        First biases of the outputs.

    Attributes
    ----------
    least : tensor of shape (networks,)
        The least loss on the rows of `stop` so far; the weights that had it are those which `outputs` takes.
    """

    def __init__(
        self,
        features: Array,
        targets: Array,
        members: Sequence[Member],
        losses: Losses,
        *,
        start: Sequence[float] = (0.0,),
    ) -> None:
        torch = load_torch()
        self._losses = losses
        self._x = torch.tensor(features, dtype=torch.float32)
        self._y = torch.tensor(targets, dtype=torch.float32).reshape(-1, 1)
        n, d = features.shape[1:]
        self.members = list(members)
        self._rows = np.stack([one.rows + one.kind * n for one in members])
        self._stop = np.stack([one.stop + one.kind * n for one in members])
        self._draws = [np.random.default_rng(one.seed) for one in members]
        self._masks = np.random.default_rng(members[0].seed)
        h = members[0].how.n_hidden
        first = [
            [rng.normal(scale=one.how.spread / n_in**0.5, size=(n_in, n_out)) for n_in, n_out in layers]
            for one, rng in zip(members, self._draws, strict=True)
            for layers in [((d, h), (h, len(start)))]
        ]
        into, out = (torch.tensor(np.stack(layer), dtype=torch.float32) for layer in zip(*first, strict=True))
        bias = torch.tensor(start, dtype=torch.float32).expand(len(members), 1, len(start))
        self._weights = [into, torch.zeros(len(members), 1, h), out, bias.clone()]
        self._best = [one.clone() for one in self._weights]
        self._active = np.arange(len(members))
        self._adam = StackedAdam(self._weights)
        self._waited = np.zeros(len(members), int)
        self.least = torch.full((len(members),), torch.inf)
        self.n_epochs = 0

    def train(self, until: int) -> None:
        """Go on until each network has stopped or has had so many epochs in all."""
        while self.n_epochs < until and len(self._active):
            self._epoch()
            self.n_epochs += 1

    def keep(self, which: Sequence[int]) -> None:
        """Forget the other networks."""
        wanted = list(which)
        place = {old: new for new, old in enumerate(wanted)}
        self._leave(np.isin(self._active, wanted))
        self._active = np.array([place[int(old)] for old in self._active], np.intp)
        self.members = [self.members[i] for i in wanted]
        self._draws = [self._draws[i] for i in wanted]
        self._rows, self._stop, self._waited = (part[wanted] for part in (self._rows, self._stop, self._waited))
        self._best = [part[wanted] for part in self._best]
        self.least = self.least[wanted]

    def outputs(self) -> Array:
        """What each network says of all rows of its preparation, (networks, N, outputs)."""
        return np.stack([self.network(i)(self._x[one.kind]) for i, one in enumerate(self.members)])

    def network(self, i: int) -> Callable[[Any], Array]:
        """One network with its best weights: outputs (n, k) for new features (n, d)."""
        torch = load_torch()
        weights = [part[i : i + 1] for part in self._best]

        def predict(new: Any) -> Array:
            with torch.no_grad():
                found: Array = (
                    self._output(torch.as_tensor(new, dtype=torch.float32)[None], weights)[0].double().numpy()
                )
            return found

        return predict

    def _epoch(self) -> None:
        torch = load_torch()
        active = self._active
        hows = [self.members[i].how for i in active]
        rates = torch.tensor([how.rate(self.n_epochs) for how in hows], dtype=torch.float32)
        decays = torch.tensor([how.weight_decay for how in hows], dtype=torch.float32)
        loss = self._losses(hows)
        dropout = np.array([how.dropout for how in hows], np.float32)[:, None, None]
        order = np.stack([self._draws[i].permutation(self._rows[i]) for i in active])
        flat = self._x.reshape(-1, self._x.shape[2])
        for some in np.array_split(order, max(1, order.shape[1] // hows[0].batch_size), axis=1):
            rows = torch.from_numpy(some)
            weights = [one.requires_grad_() for one in self._weights]
            value = loss(self._y[rows], self._output(flat[rows], weights, dropout)).sum()
            self._adam.step(weights, torch.autograd.grad(value, weights), rates, decays)
        self._weights = [one.detach() for one in self._weights]
        self._settle(hows, loss)

    def _settle(self, hows: Sequence[LayerTraining], loss: Loss) -> None:
        """Keep weights that are better than before, and let networks go that have waited too long."""
        torch = load_torch()
        active = self._active
        with torch.no_grad():
            rows = torch.from_numpy(self._stop[active])
            x = self._x.reshape(-1, self._x.shape[2])[rows]
            value = loss(self._y[rows], self._output(x, self._weights))
        is_better = value < self.least[active]
        better = active[is_better.numpy()]
        self.least[better] = value[is_better]
        for kept, one in zip(self._best, self._weights, strict=True):
            kept[better] = one[is_better]
        self._waited[active] += 1
        self._waited[better] = 0
        limits = np.array([(how.patience, how.max_epochs) for how in hows])
        goes_on = (self._waited[active] < limits[:, 0]) & (self.n_epochs + 1 < limits[:, 1])
        self._leave(goes_on & torch.isfinite(value).numpy())

    def _leave(self, stays: NDArray[np.bool_]) -> None:
        """Networks that are done cost nothing any more."""
        if stays.all():
            return
        self._active = self._active[stays]
        self._weights = [one[stays] for one in self._weights]
        self._adam.keep(stays)

    def _output(self, x: Any, weights: Sequence[Any], dropout: Any = None) -> Any:
        """Outputs (networks, rows, k) for features (networks, rows, d); dropout is a rate for each network."""
        torch = load_torch()
        first, first_bias, last, last_bias = weights
        hidden = torch.relu(torch.baddbmm(first_bias, x, first))
        if dropout is not None and dropout.any():
            kept = self._masks.random(hidden.shape, dtype=np.float32) >= dropout
            hidden = hidden * torch.from_numpy(kept / (1.0 - dropout))
        return torch.baddbmm(last_bias, hidden, last)


def hyperband(
    draw: Callable[[], T], stack: Callable[[Sequence[T]], Stack], score: Callable[[Stack], Array], n_rungs: int
) -> Iterator[tuple[T, float]]:
    """Every trial with its score at last: brackets of successive halving (Li et al., 2018), each run as one stack.

    A bracket begins with many trials of few epochs or with few trials of many. At each rung the best third goes on
    where it stopped. A trial may have several networks, one after the other in the stack; `score` gives a value for
    each trial, the lower the better.
    """
    for rung in reversed(range(n_rungs)):
        trials = [draw() for _ in range(math.ceil(n_rungs / (rung + 1) * ETA**rung))]
        running = stack(trials)
        n_members = len(running.members) // len(trials)
        n_epochs = running.members[0].how.max_epochs
        for left in reversed(range(rung + 1)):
            running.train(max(1, round(n_epochs / ETA**left)))
            values = np.nan_to_num(score(running), nan=np.inf)
            best = np.argsort(values, kind="stable")
            n_kept = len(trials) // ETA if left else 0
            yield from ((trials[i], float(values[i])) for i in best[n_kept:])
            if left:
                running.keep([i * n_members + k for i in best[:n_kept] for k in range(n_members)])
                trials = [trials[i] for i in best[:n_kept]]
