"""Settings of Table 2's networks, by Hyperband: per dataset for each protocol of appendix B, and for the ensembles.

A search has a stated number of trials: four brackets, 49 trials. It sees the training part of the first split alone:
80 % train, 20 % score. Protocol 1 scores by the squared error, protocol 2 adds the CWC of intervals that
the neuron learns from the same rows; both at the best epoch so far. A trial of the quality-driven loss is an ensemble,
its score the interval score. The rows of a search are among the test rows of later splits (`uci_widths.py` says how
many); that its settings are used for all splits is the paper's way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from experiments.data import TURBINE, Array, official, official_files
from experiments.networks import load_torch, quality_driven, squared_error
from experiments.protocol import Experiment, RefusedError, Row, Store, Unit
from experiments.stacked import LayerTraining, Member, Stack, hyperband
from experiments.uci_splits import LEVEL, N_SPLITS, Parts, in_units
from pimeter import QuantileNeuron, interval_score
from pimeter.paper import coverage_width_criterion

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results"
PROTOCOLS = ("protocol 1", "protocol 2")
QD = "QD"
TUNED = ("learning_rate", "decay", "spread", "dropout", "weight_decay", "penalty")
BETA = 1000.0  # the paper's, "for most"
ETA = 0.1  # of CWC, the paper's
SOFTENING = 160.0
START = (-3.0, 3.0)  # of an ensemble's bounds
N_DEVIATIONS = 1.96  # standard deviations of members beyond their mean bound


@dataclass(frozen=True)
class Settings:
    """Which datasets and splits, how long to search and to train."""

    seed: int = 0
    datasets: tuple[str, ...] = (*tuple(N_SPLITS)[:-1], f"naval{TURBINE}")
    most_splits: int = 20
    large: tuple[str, ...] = ("protein",)  # 100 hidden units and five splits
    is_tuned: bool = True
    max_epochs: int = 2_000
    max_steps: int = 10_000
    n_rungs: int = 4  # brackets of 27, 12, 6 and 4 trials
    n_members: int = 5

    def n_splits(self, name: str) -> int:
        """How many splits of a dataset."""
        return min(self.most_splits, 5) if name in self.large else self.most_splits

    def training(self, name: str, method: str, n: int) -> LayerTraining:
        """How a network for n rows of this dataset is trained before anything is tuned."""
        plain = LayerTraining(n_hidden=100 if name in self.large else 50, exponential=method == PROTOCOLS[1])
        n_epochs = max(1, min(self.max_epochs, self.max_steps * plain.batch_size // n))
        plain = replace(plain, max_epochs=n_epochs, patience=max(2, n_epochs // 10))
        return replace(plain, learning_rate=0.02, penalty=0.02) if method == QD else plain


def units(settings: Settings) -> list[Unit]:
    """Dataset and what is tuned."""
    return [(name, method) for name in settings.datasets for method in (*PROTOCOLS, QD)]


def tune(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """The best settings that Hyperband finds."""
    name, method = str(unit[0]), str(unit[1])
    parts = scaled(in_units(official(name), 0))
    rows, held_out = train_test_split(np.arange(len(parts.y)), test_size=0.2, random_state=settings.seed)
    groups = [(rows, held_out)]
    if method == QD:
        groups = member_rows(rows, settings.n_members)
    plain = settings.training(name, method, len(groups[0][0]))

    def stack(hows: Sequence[LayerTraining]) -> Stack:
        members = [Member(0, own, stop, how, int(rng.integers(2**31))) for how in hows for own, stop in groups]
        losses, start = (driven, START) if method == QD else (squared, (0.0,))
        return Stack(parts.X[None], parts.y[None], members, losses, start=start)

    def score(running: Stack) -> Array:
        known, y = running.outputs()[:, held_out], parts.y[held_out]
        if method == QD:
            own = known.reshape(-1, settings.n_members, *known.shape[1:])
            return np.array([interval_score(y, ensemble(one), confidence_level=LEVEL) for one in own])
        least: Array = running.least.double().numpy()
        return least if method == PROTOCOLS[0] else least + _cwc(y, known[:, :, 0])

    found = list(hyperband(lambda: _drawn(plain, method, rng), stack, score, settings.n_rungs))
    how, value = min(found, key=lambda trial: trial[1])
    best = {key: float(getattr(how, key)) for key in TUNED}
    return [{"dataset": name, "method": method, **best, "value": value, "n_trials": len(found)}]


def scaled(parts: Parts) -> Parts:
    """Features of mean 0 and standard deviation 1 on the training rows."""
    scaler = StandardScaler().fit(parts.X)
    return parts._replace(X=scaler.transform(parts.X), new=scaler.transform(parts.new))


def member_rows(rows: NDArray[np.intp], n_members: int) -> list[Any]:
    """What each network of an ensemble is trained on, and the tenth that it stops on."""
    return [train_test_split(rows, test_size=0.1, random_state=member) for member in range(n_members)]


def squared(_hows: Sequence[LayerTraining]) -> Any:
    """Squared error."""
    return squared_error


def driven(hows: Sequence[LayerTraining]) -> Any:
    """The quality-driven loss, with a penalty for each network."""
    penalties = load_torch().tensor([how.penalty for how in hows])
    return quality_driven(LEVEL, penalty=penalties, softening=SOFTENING)


def ensemble(bounds: Array) -> Array:
    """Intervals (n, 2) of members (k, n, 2): the mean of their bounds, farther out by 1.96 standard deviations."""
    spread = np.array([-N_DEVIATIONS, N_DEVIATIONS]) * bounds.std(axis=0)
    found: Array = np.sort(bounds.mean(axis=0) + spread, axis=1)
    return found


def cwc(y: Array, centre: Array, below: float, above: float) -> float:
    """Coverage-width criterion of intervals around predictions."""
    bounds = np.column_stack([centre - below, centre + above])
    return float(coverage_width_criterion(y, bounds, confidence_level=LEVEL, eta=ETA))


def _cwc(y: Array, centres: Array) -> Array:
    """The criterion for intervals that one neuron each learns from the errors of networks, (networks, rows)."""
    margins = QuantileNeuron(LEVEL, beta=BETA).fit(np.abs(y - centres).T).quantile_
    return np.array([cwc(y, centre, margin, margin) for centre, margin in zip(centres, margins, strict=True)])


def _drawn(plain: LayerTraining, method: str, rng: np.random.Generator) -> LayerTraining:
    """Appendix B: Adam with dropout, or AdamW with weight decay; of an ensemble, the penalty."""

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    how = replace(plain, learning_rate=between(1e-3, 0.1), decay=between(1e-4, 0.1), spread=between(0.1, 3.0))
    if method == QD:
        return replace(how, penalty=between(3e-3, 1.0))
    if method == PROTOCOLS[0]:
        return replace(how, dropout=float(rng.uniform(0.0, 0.3)))
    return replace(how, weight_decay=between(1e-5, 0.1))


def tuned(settings: Settings, name: str, method: str, n: int) -> LayerTraining:
    """What the search found."""
    plain = settings.training(name, method, n)
    if not settings.is_tuned:
        return plain
    for row in Store(RESULTS, EXPERIMENT.file_name).rows():
        if (row["dataset"], row["method"]) == (name, method):
            found: dict[str, Any] = {key: float(row[key]) for key in TUNED}
            return replace(plain, **found)
    msg = f"{name} is not tuned yet: python -m experiments run table2 --columns tuning."
    raise RefusedError(msg)


def files(settings: Settings) -> list[str]:
    """Data, and what the search of settings found."""
    found = ["experiments/results/table2-tuning.csv"] if settings.is_tuned else []
    return [*official_files(settings.datasets), *found]


def headline(rows: Sequence[Row]) -> str:
    """How much was searched, in one sentence."""
    return f"{sum(int(row['n_trials']) for row in rows)} trials in {len(rows)} searches."


QUICK = Settings(datasets=("yacht",), most_splits=1, is_tuned=False, max_epochs=3, n_rungs=2, n_members=2)
EXPERIMENT = Experiment(
    name="table2",
    columns="tuning",
    title="settings of the paper's networks (Table 2, tuning)",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=tune,
    tables=lambda rows: {"The best settings of each search": rows},
    headline=headline,
    finding=headline,
    reads=lambda settings: official_files(settings.datasets),
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
