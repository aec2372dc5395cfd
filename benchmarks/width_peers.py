"""Intervals that follow the rows, by other libraries, on real data: what `adaptive_peers.py` compares pimeter with.

    python benchmarks/width_peers.py [--quick] [--sets NAME ...]

MAPIE (CV+, CQR, cross-CQR and its normalised score), crepes (normalised, Mondrian), quantile-forest, NGBoost and
CatBoost with uncertainty at 90 %, in two tables. "same": one black box for all, boosted trees with scikit-learn's
settings, with a quantile loss where quantiles are wanted. "own": each with its best model, that is for those that take
any model the one with the least squared error (for quantiles: pinball loss) out of fold on training rows, see
`models.py`; quantile forests, NGBoost and CatBoost are models of their own, as they come and made conformal by one
split. Each set has some splits with at most 2,000 training and 2,000 test rows. Rows of the table are kept in
`results/width_peers.csv` as they come and not measured again: they change with the peers, not with pimeter. Infinite
bounds, which some give for want of rows, are cut one range of the training targets beyond these: in their favour.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from models import MODELS, QUANTILE_MODELS, best_model, best_quantile_model, quantile_model
from provenance import RESULTS, save, sessions
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import ShuffleSplit, cross_val_predict, train_test_split

from pimeter.evaluation.conditional import excess_risk_score, worst_slab_coverage_score

LEVEL = 0.9
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
SETS = {  # name: splits
    "yacht": 4,
    "boston": 4,
    "energy": 4,
    "concrete": 4,
    "wine-red": 2,
    "kin8nm": 2,
    "power-plant": 2,
    "naval": 2,
    "protein": 2,
}
MAX_ROWS = 2000  # that train, and as many that test
SEED = 20261200
COLUMNS = ("set", "split", "table", "method", "model", "coverage", "width", "score", "worst_slab", "excess", "seconds")
PACKAGES = ("mapie", "crepes", "quantile-forest", "ngboost", "catboost")

Table = np.ndarray
Row = dict[str, str]


class Models(NamedTuple):
    """What a method may train."""

    name: str
    regressor: Callable[[], Any]
    quantiles: Callable[[float], Any]  # of a level


Method = Callable[[Models, Table, Table, Table, int], Table]  # training rows, targets, new rows, seed -> intervals


def boosted_trees() -> Models:
    """The black box that all get."""
    regressor = partial(HistGradientBoostingRegressor, random_state=0)
    return Models("boosted trees", regressor, partial(quantile_model, QUANTILE_MODELS["boosted trees"]))


def halves(X: Table, y: Table, seed: int) -> list[Table]:
    """Proper training rows and calibration rows."""
    return train_test_split(X, y, test_size=0.2, random_state=seed)


def mapie_normalised(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.conformity_scores import ResidualNormalisedScore
    from mapie.regression import SplitConformalRegressor

    X, X_cal, y, y_cal = halves(X, y, seed)
    scale = RandomForestRegressor(min_samples_leaf=20, random_state=0)
    score = ResidualNormalisedScore(residual_estimator=scale, split_size=0.5, random_state=seed)
    model = SplitConformalRegressor(models.regressor().fit(X, y), confidence_level=LEVEL, conformity_score=score)
    return model.conformalize(X_cal, y_cal).predict_interval(new)[1][:, :, 0]


def mapie_cv_plus(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(models.regressor(), confidence_level=LEVEL, method="plus", cv=5, random_state=seed)
    return model.fit_conformalize(X, y).predict_interval(new)[1][:, :, 0]


def mapie_cqr(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import ConformalizedQuantileRegressor

    X, X_cal, y, y_cal = halves(X, y, seed)
    model = ConformalizedQuantileRegressor(models.quantiles(0.5), confidence_level=LEVEL)
    return model.fit(X, y).conformalize(X_cal, y_cal).predict_interval(new)[1][:, :, 0]


def mapie_cross_cqr(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import CrossConformalizedQuantileRegressor

    model = CrossConformalizedQuantileRegressor(
        models.quantiles(0.5), confidence_level=LEVEL, cv=5, random_state=seed, fit_central_estimator=False
    )
    return model.fit_conformalize(X, y).predict_interval(new)[1][:, :, 0]


def crepes(kind: str) -> Method:
    def intervals(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        from crepes import WrapRegressor
        from crepes.extras import DifficultyEstimator, MondrianCategorizer

        X, X_cal, y, y_cal = halves(X, y, seed)
        model = WrapRegressor(models.regressor())
        model.fit(X, y)
        hard = DifficultyEstimator()
        # Residuals of rows that the model has not seen: more than crepes' own examples give it.
        hard.fit(X, residuals=y - cross_val_predict(models.regressor(), X, y), scaler=True)
        if kind == "normalised":
            model.calibrate(X_cal, y_cal, de=hard)
        else:
            bins = MondrianCategorizer()
            bins.fit(X_cal, de=hard, no_bins=max(2, min(5, len(y_cal) // 40)))
            model.calibrate(X_cal, y_cal, mc=bins)
        return np.asarray(model.predict_int(new, confidence=LEVEL))

    return intervals


def conformal_margin(scores: Table) -> float:
    """The score of the rank that split conformal prediction takes."""
    rank = int(np.ceil((len(scores) + 1) * LEVEL))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.inf


def of_bounds(train: Callable[[Table, Table, int], Callable[[Table], Table]], *, is_conformal: bool) -> Method:
    """Bounds that a model predicts by itself: as they are, or moved by one split (conformalised quantiles)."""

    def intervals(_: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        if not is_conformal:
            return train(X, y, seed)(new)
        X, X_cal, y, y_cal = halves(X, y, seed)
        bounds = train(X, y, seed)
        lower, upper = bounds(X_cal).T
        margin = conformal_margin(np.maximum(lower - y_cal, y_cal - upper))
        return bounds(new) + margin * np.array([-1.0, 1.0])

    return intervals


def of_distribution(train: Callable[[Table, Table, int], Callable[[Table], Table]], *, is_conformal: bool) -> Method:
    """Mean and standard deviation that a model predicts: a normal distribution, or a score normalised by one split."""
    from scipy.stats import norm

    def intervals(_: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        margin, X_cal, y_cal = float(norm.ppf(TAILS[1])), X[:0], y[:0]
        if is_conformal:
            X, X_cal, y, y_cal = halves(X, y, seed)
        predict = train(X, y, seed)
        if is_conformal:
            mean, std = predict(X_cal).T
            margin = conformal_margin(np.abs(y_cal - mean) / std)
        mean, std = predict(new).T
        return mean[:, None] + margin * std[:, None] * np.array([-1.0, 1.0])

    return intervals


def quantile_forest(X: Table, y: Table, seed: int) -> Callable[[Table], Table]:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(200, min_samples_leaf=5, random_state=seed).fit(X, y)
    return lambda new: model.predict(new, quantiles=list(TAILS))


def ngboost(X: Table, y: Table, seed: int) -> Callable[[Table], Table]:
    from ngboost import NGBRegressor

    known, left, y_known, y_left = train_test_split(X, y, test_size=0.15, random_state=seed)
    model = NGBRegressor(n_estimators=500, learning_rate=0.03, verbose=False, random_state=seed)
    model.fit(known, y_known, X_val=left, Y_val=y_left, early_stopping_rounds=20)

    def predict(new: Table) -> Table:
        found = model.pred_dist(new)
        return np.stack([found.loc, found.scale], axis=1)

    return predict


def catboost(X: Table, y: Table, seed: int) -> Callable[[Table], Table]:
    from catboost import CatBoostRegressor

    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": seed}
    known, left, y_known, y_left = train_test_split(X, y, test_size=0.15, random_state=seed)
    model = CatBoostRegressor(loss_function="RMSEWithUncertainty", iterations=1000, **options)
    model.fit(known, y_known, eval_set=(left, y_left), early_stopping_rounds=30)

    def predict(new: Table) -> Table:
        mean, variance = model.predict(new).T
        return np.stack([mean, np.sqrt(variance)], axis=1)

    return predict


ANY_MODEL: dict[str, Method] = {
    "MAPIE CV+": mapie_cv_plus,
    "MAPIE normalised": mapie_normalised,
    "MAPIE CQR": mapie_cqr,
    "MAPIE cross-CQR": mapie_cross_cqr,
    "crepes normalised": crepes("normalised"),
    "crepes Mondrian": crepes("mondrian"),
}
OWN_MODEL: dict[str, Method] = {
    "quantile-forest": of_bounds(quantile_forest, is_conformal=False),
    "quantile-forest, conformal": of_bounds(quantile_forest, is_conformal=True),
    "NGBoost": of_distribution(ngboost, is_conformal=False),
    "NGBoost, conformal": of_distribution(ngboost, is_conformal=True),
    "CatBoost": of_distribution(catboost, is_conformal=False),
    "CatBoost, conformal": of_distribution(catboost, is_conformal=True),
}
PEERS = {"same": ANY_MODEL, "own": ANY_MODEL | OWN_MODEL}


@cache
def read(name: str) -> tuple[Table, Table]:
    """Features and target of a set."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        sys.exit("PIMETER_DATA is not set: these benchmarks need the regression sets.")
    with gzip.open(Path(folder) / "regression" / f"{name}.csv.gz", "rt") as file:
        header = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    features = [i for i, column in enumerate(header) if column.startswith("f")]
    return table[:, features], table[:, header.index("target")]


def parts(name: str, split: int) -> tuple[Table, Table, Table, Table]:
    """Training rows and targets, test rows and targets."""
    X, y = read(name)
    limits = {"train_size": min(MAX_ROWS, int(0.8 * len(y))), "test_size": min(MAX_ROWS, len(y) - int(0.8 * len(y)))}
    train, test = next(ShuffleSplit(1, random_state=SEED + split, **limits).split(X))
    return X[train], y[train], X[test], y[test]


@cache
def best_models(name: str, split: int) -> Models:
    """The best models for the training rows of a split."""
    X, y, _, _ = parts(name, split)
    regressor, quantiles = best_model(X, y), best_quantile_model(X, y, TAILS)
    return Models(
        f"{regressor} (quantiles: {quantiles})",
        partial(MODELS[regressor], X.shape[1]),
        partial(quantile_model, QUANTILE_MODELS[quantiles]),
    )


def measured(name: str, split: int, table: str, method: str, run: Method) -> Row:
    """One line of the table."""
    X, y, X_test, y_test = parts(name, split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = boosted_trees() if table == "same" else best_models(name, split)
        start = time.process_time()
        intervals = run(models, X, y, X_test, split)
        seconds = time.process_time() - start
    intervals = np.sort(np.clip(intervals, y.min() - np.ptp(y), y.max() + np.ptp(y)), axis=1)
    lower, upper = intervals.T
    misses = np.maximum(lower - y_test, 0.0) + np.maximum(y_test - upper, 0.0)
    values = (
        np.mean((lower <= y_test) & (y_test <= upper)),
        np.mean(upper - lower),
        np.mean(upper - lower + 2.0 / (1.0 - LEVEL) * misses),
        worst_slab_coverage_score(X_test, y_test, intervals),
        excess_risk_score(X_test, y_test, intervals, LEVEL),
        seconds,
    )
    own = "its own" if method in OWN_MODEL else models.name
    return dict(
        zip(COLUMNS, (name, str(split), table, method, own, *(f"{value:.6g}" for value in values)), strict=True)
    )


def lines(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def csv_text(table: Iterable[Row]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return file.getvalue()


def complete(
    rows: list[Row],
    wanted: dict[str, int],
    methods: dict[str, dict[str, Method]],
    keep: Callable[[list[Row]], None],
) -> None:
    """Measure what is missing of sets with splits and of tables with methods; each row is kept as it comes."""
    have = {(row["set"], int(row["split"]), row["table"], row["method"]) for row in rows}
    for split in range(max(wanted.values())):
        for name in (name for name, n_splits in wanted.items() if split < n_splits):
            for table, every in methods.items():
                for method, run in every.items():
                    if (name, split, table, method) not in have:
                        rows.append(measured(name, split, table, method, run))
                        print(*rows[-1].values(), flush=True)
                        keep(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small set, one split, nothing saved")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    arguments = parser.parse_args()
    missing = [name for name in PACKAGES if find_spec(name.replace("-", "_")) is None]
    if missing and not arguments.quick:
        sys.exit(f"Not installed: {', '.join(missing)}. `make bench-peers` installs them.")
    if arguments.quick:
        prefixes = tuple({"mapie": "MAPIE", "ngboost": "NGBoost", "catboost": "CatBoost"}.get(n, n) for n in missing)
        there = {
            table: {name: run for name, run in every.items() if not name.startswith(prefixes)}
            for table, every in PEERS.items()
        }
        complete([], {"diabetes": 1}, there, lambda _: None)
        print(f"numpy {version('numpy')}. Nothing saved.")
        return
    path = RESULTS / "width_peers.csv"
    data = [f"regression/{name}.csv.gz" for name in SETS]
    kept = partial(save, __file__, packages=PACKAGES, data=data, earlier=sessions(path.with_suffix(".json")))
    rows = lines(path)
    complete(rows, {name: SETS[name] for name in arguments.sets}, PEERS, lambda found: kept({".csv": csv_text(found)}))
    versions = ", ".join(f"{name} {version(name)}" for name in (*PACKAGES, "scikit-learn"))
    text = (
        f"# Intervals of other libraries\n\n{versions}, Python {platform.python_version()}, {LEVEL:.0%}.\n"
        f"{len(rows)} rows in width_peers.csv; compared with pimeter's in adaptive_peers.md.\n"
    )
    kept({".md": text, ".csv": csv_text(rows)})


if __name__ == "__main__":
    main()
