"""What does recalibration do for the intervals of six kinds of model on real data? Interval scores before and after.

    python benchmarks/recalibration.py [--quick]

Each model is trained on half of the rows, with the settings below, which were written down before any result was seen;
a quarter calibrates and a quarter tests. Rows that are copies of others are left out first; large sets give 800 rows to
train, 1,000 to calibrate and 2,000 to test. "Before" are the model's own 90 % intervals, "after" those of
`IntervalCalibrator(0.9)`, and MAPIE calibrates the same predictions: `ConformalizedQuantileRegressor` those of quantile
models, `StdConformityScore` those of models with a standard deviation. All choices inside of the calibrator were made
on generated data. The sets are found through PIMETER_DATA.

Models need `pip install mapie ngboost quantile-forest catboost torch`; those not installed are left out. Predictions
are kept in `benchmarks/.parts/recalibration`, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import math
import platform
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from provenance import ROOT, save
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin

import pimeter as pm

LEVEL = 0.9
LEVELS = (0.05, 0.5, 0.95)
SEED = 20261300
SETS = ("yacht", "boston", "energy", "concrete", "wine-red", "kin8nm", "power-plant", "naval", "protein")
SPLITS = 3
N_TRAIN, N_CALIBRATE, N_TEST = 800, 1000, 2000  # at most
MOST_FOR_PROCESS = 500  # training rows of a Gaussian process
EPOCHS, BATCH, HIDDEN, LEARNING_RATE = 100, 64, 50, 0.01  # of the network
PARTS = ROOT / "benchmarks" / ".parts" / "recalibration"

Table = np.ndarray
Predict = Callable[[Table], Table]  # rows -> mean and standard deviation (n, 2), or quantiles at LEVELS (n, 3)


def gaussian_process(X: Table, y: Table, seed: int) -> Predict:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF() + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model = make_pipeline(StandardScaler(), process).fit(X[:MOST_FOR_PROCESS], y[:MOST_FOR_PROCESS])
    return lambda rows: np.stack(model.predict(rows, return_std=True), axis=1)


def boosted_quantiles(X: Table, y: Table, seed: int) -> Predict:
    from sklearn.ensemble import HistGradientBoostingRegressor

    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=seed).fit(X, y) for level in LEVELS
    ]
    return lambda rows: np.sort(np.stack([model.predict(rows) for model in models], axis=1), axis=1)


def natural_gradient_boosting(X: Table, y: Table, seed: int) -> Predict:
    from ngboost import NGBRegressor

    model = NGBRegressor(verbose=False, random_state=seed).fit(X, y)
    return lambda rows: np.stack([(said := model.pred_dist(rows)).loc, said.scale], axis=1)


def quantile_forest(X: Table, y: Table, seed: int) -> Predict:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(random_state=seed).fit(X, y)
    return lambda rows: model.predict(rows, quantiles=list(LEVELS))


def catboost(X: Table, y: Table, seed: int) -> Predict:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(loss_function="RMSEWithUncertainty", random_seed=seed, allow_writing_files=False)
    model.set_params(verbose=False, thread_count=1).fit(X, y)
    return lambda rows: model.predict(rows) ** [1.0, 0.5]


def mean_variance_network(X: Table, y: Table, seed: int) -> Predict:
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    mean, spread = X.mean(axis=0), X.std(axis=0) + 1e-12
    features, target = (torch.tensor(a, dtype=torch.float32) for a in ((X - mean) / spread, (y - y.mean()) / y.std()))
    network = torch.nn.Sequential(torch.nn.Linear(X.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 2))
    optimiser, loss = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE), torch.nn.GaussianNLLLoss()

    def moments(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = network(rows)
        return out[:, 0], torch.nn.functional.softplus(out[:, 1]) + 1e-6

    for _ in range(EPOCHS):
        for batch in torch.randperm(len(target)).split(BATCH):
            centre, variance = moments(features[batch])
            optimiser.zero_grad()
            loss(centre, target[batch], variance).backward()
            optimiser.step()

    def predict(rows: Table) -> Table:
        with torch.no_grad():
            centre, variance = moments(torch.tensor((rows - mean) / spread, dtype=torch.float32))
        found = np.stack([centre.numpy(), variance.numpy() ** 0.5], axis=1).astype(float)
        return found * y.std() + [y.mean(), 0.0]

    return predict


MODELS: dict[str, tuple[str, Callable[[Table, Table, int], Predict]]] = {
    "Gaussian process": ("sklearn", gaussian_process),
    "boosted quantiles": ("sklearn", boosted_quantiles),
    "quantile forest": ("quantile_forest", quantile_forest),
    "NGBoost": ("ngboost", natural_gradient_boosting),
    "CatBoost": ("catboost", catboost),
    "mean-variance network": ("torch", mean_variance_network),
}


class Part(NamedTuple):
    """What a model said of rows, and their targets."""

    said: Table
    y: Table

    def given(self) -> dict[str, Any]:
        """As `IntervalCalibrator` takes it."""
        if self.said.shape[1] == 2:
            return {"y_pred": self.said[:, 0], "std": self.said[:, 1]}
        return {"quantiles": self.said, "levels": LEVELS}

    def intervals(self) -> Table:
        """The model's own."""
        if self.said.shape[1] == 3:
            return self.said[:, [0, 2]]
        return self.said[:, :1] + stats.norm.ppf(LEVELS)[[0, 2]] * self.said[:, 1:]


class Row(NamedTuple):
    """One model on one split of one set."""

    set: str
    model: str
    split: int
    m: int  # calibration rows
    n: int  # test rows
    before: float
    after: float
    mapie: float
    coverage_before: float
    coverage: float
    coverage_mapie: float
    guaranteed: float


class Lookup(RegressorMixin, BaseEstimator):
    """Predictions as a model for MAPIE: rows are numbers of rows."""

    fitted_ = True

    def __init__(self, said: Table, column: int = 0) -> None:
        self.said = said
        self.column = column

    def fit(self, _X: Table, _y: Table) -> Lookup:
        return self

    def predict(self, X: Table, *, return_std: bool = False) -> Any:
        rows = self.said[X[:, 0].astype(int)]
        return (rows[:, 0], rows[:, 1]) if return_std else rows[:, self.column]


def mapie_intervals(old: Part, new: Part) -> Table:
    from mapie.conformity_scores import StdConformityScore
    from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor

    said = np.concatenate([old.said, new.said])
    X = np.arange(len(said), dtype=float)[:, None]
    if said.shape[1] == 3:
        models = [Lookup(said, column) for column in (0, 2, 1)]
        model = ConformalizedQuantileRegressor(models, confidence_level=LEVEL, prefit=True)
    else:
        score = StdConformityScore()
        model = SplitConformalRegressor(Lookup(said), confidence_level=LEVEL, conformity_score=score, prefit=True)
    model.conformalize(X[: len(old.y)], old.y)
    return model.predict_interval(X[len(old.y) :])[1][:, :, 0]


def table(name: str) -> tuple[Table, Table]:
    """Rows without copies; the quick run has a set that ships with scikit-learn."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        return load_diabetes(return_X_y=True)
    from experiments.data import official

    X, y = official(name)[:2]
    first = np.unique(pm.duplicate_groups(X, y), return_index=True)[1]
    return X[first], y[first]


def parts(name: str, model: str, split: int) -> tuple[Part, Part]:
    """Predictions for rows that calibrate and rows that test; kept on disk."""
    path = PARTS / f"{name}-{model.replace(' ', '_')}-{split}.npz"
    if path.exists():
        held = np.load(path)
        return Part(held["old"], held["y_old"]), Part(held["new"], held["y_new"])
    X, y = table(name)
    rows = np.random.default_rng([SEED, split, len(y)]).permutation(len(y))
    train, calibrate, test = np.split(rows, [len(y) // 2, 3 * len(y) // 4])
    train, calibrate, test = train[:N_TRAIN], calibrate[:N_CALIBRATE], test[:N_TEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predict = MODELS[model][1](X[train], y[train], split)
        old, new = Part(predict(X[calibrate]), y[calibrate]), Part(predict(X[test]), y[test])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft.npz")
    np.savez(draft, old=old.said, y_old=old.y, new=new.said, y_new=new.y)
    draft.replace(path)
    return old, new


def measured(name: str, model: str, split: int) -> Row:
    old, new = parts(name, model, split)
    calibrator = pm.IntervalCalibrator(LEVEL, random_state=split).fit(old.y, **old.given())
    found = {"before": new.intervals(), "after": calibrator.predict_interval(**new.given())}
    if find_spec("mapie"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["mapie"] = np.sort(mapie_intervals(old, new), axis=1)  # a few of its bounds cross
    score, coverage = (
        {key: float(how(new.y, one)) for key, one in found.items()}
        for how in (lambda y, one: pm.interval_score(y, one, confidence_level=LEVEL), pm.coverage_score)
    )
    return Row(
        name,
        model,
        split,
        len(old.y),
        len(new.y),
        score["before"],
        score["after"],
        score.get("mapie", math.nan),
        coverage["before"],
        coverage["after"],
        coverage.get("mapie", math.nan),
        calibrator.guaranteed_level_,
    )


def ratio(rows: Sequence[Row], above: str, below: str) -> float:
    """Of interval scores: in each cell of a set and a model of sums over splits, over cells their geometric mean."""
    cells = dict.fromkeys((row.set, row.model) for row in rows)
    logs = []
    for cell in cells:
        own = [row for row in rows if (row.set, row.model) == cell]
        logs.append(math.log(sum(getattr(row, above) for row in own) / sum(getattr(row, below) for row in own)))
    return math.exp(float(np.mean(logs)))


def shortfalls(rows: Sequence[Row]) -> tuple[list[str], float]:
    """Cells that cover less than the level by Holm's test at 5 %, and the least mean coverage of all."""
    found = []
    for cell in dict.fromkeys((row.set, row.model) for row in rows):
        own = [row for row in rows if (row.set, row.model) == cell]
        error = math.sqrt(sum(LEVEL * (1 - LEVEL) * (2 / row.m + 1 / row.n) for row in own)) / len(own)
        mean = float(np.mean([row.coverage for row in own]))
        found.append((float(stats.norm.cdf((mean - LEVEL) / error)), " ".join(cell), mean))
    found.sort()
    short = []
    for i, (p, cell, mean) in enumerate(found):
        if p > 0.05 / (len(found) - i):
            break
        short.append(f"{cell} {mean:.3f}")
    return short, min(mean for _, _, mean in found)


def lines(rows: Sequence[Row]) -> list[str]:
    sets, models = (list(dict.fromkeys(getattr(row, key) for row in rows)) for key in ("set", "model"))
    of_sets = {name: ratio([row for row in rows if row.set == name], "after", "before") for name in sets}
    worst = max(of_sets, key=lambda name: of_sets[name])
    short, least = shortfalls(rows)
    kept = all(row.guaranteed == LEVEL for row in rows) and not short
    verdict = f"{'kept' if kept else 'not kept: ' + ', '.join(short)}; least mean coverage {least:.3f}"
    out = [
        "| what | measured | at most | aim |",
        "|---|---|---|---|",
        f"| guarantee (covered but for chance, Holm over {len(sets) * len(models)} cells) | {verdict} | kept | kept |",
        f"| interval score after / before, geometric mean | {ratio(rows, 'after', 'before'):.3f} | .97 | .92 |",
        f"| the worst set ({worst}) | {of_sets[worst]:.3f} | 1.03 | 1.01 |",
        f"| after / MAPIE, geometric mean | {ratio(rows, 'after', 'mapie'):.3f} | .98 | .95 |",
        "",
        "After / before, after / MAPIE, and coverage before, after and by MAPIE, by set and by model:",
        "",
        "| | after / before | after / MAPIE | coverage before | after | MAPIE |",
        "|---|---|---|---|---|---|",
    ]
    for key, names in (("set", sets), ("model", models)):
        for name in names:
            own = [row for row in rows if getattr(row, key) == name]
            means = (np.mean([getattr(row, one) for row in own]) for one in Row._fields[8:11])
            scores = (ratio(own, "after", other) for other in ("before", "mapie"))
            out.append(f"| {name} | {' | '.join(f'{one:.3f}' for one in (*scores, *means))} |")
    out += ["", "After / before and after / MAPIE of each cell:", "", f"| set | {' | '.join(models)} |"]
    out.append("|---" * (len(models) + 1) + "|")
    for name in sets:
        cells = []
        for model in models:
            own = [row for row in rows if (row.set, row.model) == (name, model)]
            cells.append(f"{ratio(own, 'after', 'before'):.3f}, {ratio(own, 'after', 'mapie'):.3f}" if own else "")
        out.append(f"| {name} | {' | '.join(cells)} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small set, models of scikit-learn, nothing saved")
    parser.add_argument("--models", nargs="*", help="some of the models, nothing saved")
    options = parser.parse_args()
    global PARTS
    wanted = [name for name, (module, _) in MODELS.items() if find_spec(module)]
    for name in MODELS.keys() - set(wanted):
        print(f"{name} is left out: {MODELS[name][0]} is not installed.")
    if options.quick:
        wanted, PARTS = wanted[:2], PARTS.with_name("recalibration_quick")
    wanted = options.models or wanted
    sets, splits = (("diabetes",), 1) if options.quick else (SETS, SPLITS)
    rows = []
    for split in range(splits):
        for name in sets:
            for model in wanted:
                rows.append(measured(name, model, split))
                print(f"{name}, {model}, split {split}: {rows[-1].after / rows[-1].before:.3f}", flush=True)
    packages = ("MAPIE", "ngboost", "quantile-forest", "catboost", "torch")
    known = [f"{name} {version(name)}" for name in ("numpy", "scikit-learn", *packages) if find_spec(module_of(name))]
    how = f"`python benchmarks/recalibration.py`, level {LEVEL}, {splits} splits of each set, seed {SEED}"
    with_what = f"Python {platform.python_version()}, {', '.join(known)}"
    text = ["# Recalibrated intervals", "", f"{how}; {with_what}.", "", *lines(rows)]
    print("\n".join(text))
    if not options.quick and not options.models and len(wanted) == len(MODELS) and find_spec("mapie"):
        header = ",".join(Row._fields)
        table = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
        data = [f"regression/{name}.csv.gz" for name in SETS]
        save(__file__, {".md": "\n".join(text) + "\n", ".csv": table + "\n"}, packages=packages, data=data)


def module_of(package: str) -> str:
    return {"scikit-learn": "sklearn", "MAPIE": "mapie"}.get(package, package.replace("-", "_"))


if __name__ == "__main__":
    main()
