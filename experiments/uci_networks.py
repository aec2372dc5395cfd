"""Table 2's networks, trained by ourselves: the paper's neuron around one hidden layer, and quality-driven ensembles.

*tuning* searches the settings of appendix B by Hyperband, once per dataset and protocol, on the training part of the
first split; protocol 2 adds CWC, computed by the neuron, to the squared error. *paper* trains with what was found: 80 %
of the training part for the network, 20 % for the neuron. The network stops early on the neuron's rows, as in the
paper, or on rows of its own; the neuron learns by descent or as the root, for both signs together or for each by
itself. Protocol and signs are chosen by CWC on the neuron's rows, and all variants are in the rows. *qd* trains five
networks with two outputs and the quality-driven loss; bounds are the mean of theirs, farther out by 1.96 standard
deviations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from experiments.data import Array, official, official_files
from experiments.networks import LayerTraining, quality_driven, squared_error, train_layer
from experiments.protocol import Experiment, RefusedError, Row, Store, Unit
from experiments.uci import LEVEL, N_SPLITS, Parts, in_units, judged, tables
from pimeter import QuantileNeuron
from pimeter.paper import DescendingNeuron, coverage_width_criterion, sided_errors

Predict: TypeAlias = Callable[[Array], Array]

RESULTS = Path(__file__).parent / "results"
TUNED = ("learning_rate", "decay", "spread", "dropout", "weight_decay")
BETA = 1000.0  # the paper's, "for most"
LEARNING_RATE = 0.005
ETA = 0.1  # of CWC, the paper's
N_DEVIATIONS = 1.96  # standard deviations of members beyond their mean bound


@dataclass(frozen=True)
class Settings:
    """Which datasets and splits, how long to search, and the quality-driven loss."""

    seed: int = 0
    datasets: tuple[str, ...] = tuple(N_SPLITS)[:-1]
    most_splits: int = 5
    large: tuple[str, ...] = ("protein",)  # 100 hidden units and two splits
    is_tuned: bool = True
    max_epochs: int = 2_000
    max_steps: int = 20_000
    n_trials: int = 20
    n_members: int = 5
    learning_rate: float = 0.02  # of the ensembles
    penalty: float = 0.02
    softening: float = 160.0

    def training(self, name: str, n: int) -> LayerTraining:
        """How a network for n rows of this dataset is trained before anything is tuned."""
        plain = LayerTraining(n_hidden=100 if name in self.large else 50)
        n_epochs = min(self.max_epochs, self.max_steps * plain.batch_size // n)
        return replace(plain, max_epochs=n_epochs, patience=max(2, n_epochs // 10))


def units(settings: Settings) -> list[Unit]:
    """Dataset and split, split by split."""
    return [
        (name, split)
        for split in range(settings.most_splits)
        for name in settings.datasets
        if split < (2 if name in settings.large else settings.most_splits)
    ]


def tuning_units(settings: Settings) -> list[Unit]:
    """Dataset and protocol."""
    return [(name, protocol) for name in settings.datasets for protocol in (1, 2)]


def tune(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """The best settings that Hyperband finds for one dataset and protocol."""
    import optuna

    name, protocol = str(unit[0]), int(unit[1])
    seed = int(rng.integers(2**31))
    parts = scaled(in_units(official(name), 0))
    rows, held_out = train_test_split(np.arange(len(parts.y)), test_size=0.2, random_state=seed)
    known, stop = ((parts.X[part], parts.y[part]) for part in (rows, held_out))
    plain = settings.training(name, len(rows))

    def value(trial: optuna.Trial) -> float:
        how = _suggested(trial, protocol, plain)
        found = [np.inf]

        def watch(epoch: int, predict: Predict) -> None:
            errors = stop[1] - predict(stop[0])[:, 0]
            own = float(np.mean(errors**2))
            if protocol == 2 and np.isfinite(own):
                own += _cwc(stop[1], errors, _radii(errors, "root", "symmetric"))
            found[0] = min(found[0], own)
            trial.report(own, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        train_layer(known, stop, squared_error, how, np.random.default_rng(seed), watch=watch)
        return found[0]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.HyperbandPruner(min_resource=5, max_resource=plain.max_epochs)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    study.optimize(value, n_trials=settings.n_trials)
    how = asdict(_suggested(study.best_trial, protocol, plain))
    best = {key: float(how[key]) for key in TUNED}
    return [{"dataset": name, "protocol": protocol, **best, "value": study.best_value, "n_trials": len(study.trials)}]


def scaled(parts: Parts) -> Parts:
    """Features of mean 0 and standard deviation 1 on the training rows."""
    scaler = StandardScaler().fit(parts.X)
    return parts._replace(X=scaler.transform(parts.X), new=scaler.transform(parts.new))


def _suggested(trial: Any, protocol: int, plain: LayerTraining) -> LayerTraining:
    """Appendix B: Adam with dropout, or AdamW with weight decay and an exponential schedule."""
    shared = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-3, 0.1, log=True),
        "decay": trial.suggest_float("decay", 1e-4, 0.1, log=True),
        "spread": trial.suggest_float("spread", 0.1, 3.0, log=True),
    }
    if protocol == 1:
        return replace(plain, **shared, dropout=trial.suggest_float("dropout", 0.0, 0.3))
    return replace(
        plain, **shared, weight_decay=trial.suggest_float("weight_decay", 1e-5, 0.1, log=True), exponential=True
    )


def measure_paper(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """All variants of the paper's intervals on one split."""
    name, split = str(unit[0]), int(unit[1])
    parts = scaled(in_units(official(name), split))
    found: list[dict[str, Any]] = []
    for stops_on in ("the neuron's rows", "own rows"):
        rows, calibration = train_test_split(np.arange(len(parts.y)), test_size=0.2, random_state=split)
        stop = calibration
        if stops_on == "own rows":
            rows, stop = train_test_split(rows, test_size=0.15, random_state=split)
        for protocol in (1, 2):
            how = tuned(settings, name, protocol, len(rows))
            known, held = ((parts.X[part], parts.y[part]) for part in (rows, stop))
            predict = train_layer(known, held, squared_error, how, rng)
            errors = parts.y[calibration] - predict(parts.X[calibration])[:, 0]
            centre = predict(parts.new)[:, 0]
            for solver in ("descent", "root"):
                for tails in ("symmetric", "sided"):
                    below, above = _radii(errors, solver, tails)
                    bounds = np.column_stack([centre - below, centre + above])
                    row = judged(parts, f"paper: stops on {stops_on}, {solver}", bounds)
                    own = float(np.mean((errors >= -below) & (errors <= above)))
                    cwc = _cwc(parts.y[calibration], errors, (below, above))
                    settled = {"protocol": protocol, "tails": tails, "own_picp": own, "cwc": cwc}
                    found.append({"dataset": name, "split": split, **row, **settled})
    best: dict[str, int] = {}
    for i in sorted(range(len(found)), key=lambda i: -float(found[i]["cwc"])):
        best[found[i]["method"]] = i
    return [{**row, "chosen": int(best[row["method"]] == i)} for i, row in enumerate(found)]


def _radii(errors: Array, solver: str, tails: str) -> tuple[float, float]:
    """How far intervals extend down and up, by the paper's neurons."""
    sides = [np.abs(errors)] if tails == "symmetric" else list(sided_errors(errors, np.zeros(len(errors))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trained = DescendingNeuron(LEVEL, beta=BETA, learning_rate=LEARNING_RATE)
        neuron = trained if solver == "descent" else QuantileNeuron(LEVEL, beta=BETA)
        found = [float(neuron.fit(side).quantile_) if len(side) else 0.0 for side in sides]
    return found[0], found[-1]


def _cwc(y: Array, errors: Array, radii: tuple[float, float]) -> float:
    """Coverage-width criterion of intervals on rows with these targets and errors."""
    bounds = np.column_stack([y - errors - radii[0], y - errors + radii[1]])
    return float(coverage_width_criterion(y, bounds, confidence_level=LEVEL, eta=ETA))


def tuned(settings: Settings, name: str, protocol: int, n: int) -> LayerTraining:
    """What the search found."""
    plain = replace(settings.training(name, n), exponential=protocol == 2)
    if not settings.is_tuned:
        return plain
    for row in Store(RESULTS, TUNING.file_name).rows():
        if (row["dataset"], row["protocol"]) == (name, protocol):
            found: dict[str, Any] = {key: float(row[key]) for key in TUNED}
            return replace(plain, **found)
    msg = f"{name} is not tuned yet: python -m experiments run table2 --columns tuning."
    raise RefusedError(msg)


def measure_qd(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A quality-driven ensemble on one split."""
    name, split = str(unit[0]), int(unit[1])
    parts = scaled(in_units(official(name), split))
    loss = quality_driven(LEVEL, penalty=settings.penalty, softening=settings.softening)
    members = []
    for member in range(settings.n_members):
        rows, stop = train_test_split(np.arange(len(parts.y)), test_size=0.1, random_state=member)
        known, held = ((parts.X[part], parts.y[part]) for part in (rows, stop))
        how = replace(settings.training(name, len(rows)), learning_rate=settings.learning_rate)
        members.append(train_layer(known, held, loss, how, rng, start=(-3.0, 3.0))(parts.new))
    mean, spread = np.mean(members, axis=0), np.std(members, axis=0)
    bounds = np.sort(mean + np.array([-N_DEVIATIONS, N_DEVIATIONS]) * spread, axis=1)
    return [{"dataset": name, "split": split, **judged(parts, "QD-Ens, ours", bounds)}]


def chosen_tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The variants that were chosen on the neuron's rows, then the coverage of its own errors."""
    chosen = [row for row in rows if row["chosen"]]
    own: list[Row] = [
        {
            "dataset": name,
            "method": method,
            "own errors covered": float(np.mean([float(row["own_picp"]) for row in held])),
        }
        for name, method in dict.fromkeys((str(row["dataset"]), str(row["method"])) for row in chosen)
        for held in [[row for row in chosen if (row["dataset"], row["method"]) == (name, method)]]
    ]
    return {**tables(chosen), "Share of its own calibration errors that the neuron covers": own}


def paper_headline(rows: Sequence[Row]) -> str:
    """What the root does beside descent, in one sentence."""

    def covered(solver: str) -> float:
        method = f"paper: stops on own rows, {solver}"
        return float(np.mean([float(row["picp"]) for row in rows if row["chosen"] and row["method"] == method]))

    return (
        f"With rows of their own to stop on, intervals by the root cover {covered('root'):.3f} of the test rows on "
        f"average, those by descent {covered('descent'):.3f}."
    )


def qd_headline(rows: Sequence[Row]) -> str:
    """What the ensembles do, in one sentence."""
    return f"Quality-driven ensembles cover {np.mean([float(row['picp']) for row in rows]):.3f} of the test rows."


def tuning_headline(rows: Sequence[Row]) -> str:
    """How much was searched, in one sentence."""
    return f"{sum(int(row['n_trials']) for row in rows)} trials in {len(rows)} searches."


def paper_files(settings: Settings) -> list[str]:
    """Data, and what the search of settings found."""
    return [
        *official_files(settings.datasets),
        *(["experiments/results/table2-tuning.csv"] if settings.is_tuned else []),
    ]


QUICK = Settings(datasets=("yacht",), most_splits=1, is_tuned=False, max_epochs=3, n_trials=2, n_members=2)
PACKAGES = ("pimeter", "numpy", "scipy", "scikit-learn", "torch")
TUNING = Experiment(
    name="table2",
    columns="tuning",
    title="settings of the paper's networks (Table 2, tuning)",
    settings=Settings(),
    quick=QUICK,
    units=tuning_units,
    measure=tune,
    tables=lambda rows: {"The best settings of each search": rows},
    headline=tuning_headline,
    finding=tuning_headline,
    reads=lambda settings: official_files(settings.datasets),
    packages=(*PACKAGES, "optuna"),
)
PAPER = replace(
    TUNING,
    columns="paper",
    title="the paper's neuron around its network (Table 2, paper)",
    units=units,
    measure=measure_paper,
    tables=chosen_tables,
    headline=paper_headline,
    finding=paper_headline,
    reads=paper_files,
    by_split=True,
    packages=PACKAGES,
)
QD = replace(
    PAPER,
    columns="qd",
    title="quality-driven ensembles (Table 2, QD-Ens, ours)",
    measure=measure_qd,
    reads=TUNING.reads,
    tables=tables,
    headline=qd_headline,
    finding=qd_headline,
)
