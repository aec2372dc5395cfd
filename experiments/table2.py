"""Table 2, regression on public datasets. Here its columns P_SIG and PSE, which need no network.

On each split's validation rows the target is regressed linearly on the features. P_SIG is the proportion of splits
where White's test of the residuals has p < .05, PSE the mean of their power spectral entropy. As in the paper's table,
the spectrum is that of *squared* residuals, and White's test goes without products where it has too many columns for
the rows (Boston). The entropy of the residuals themselves, which is what the paper's formula says, stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.data import Array, paper_split, regression
from experiments.protocol import Experiment, Row, Unit
from pimeter.paper import power_spectral_entropy, white_test

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Dataset:
    """A dataset and how many splits of it the paper took."""

    name: str
    n_splits: int = 20


DATASETS = (
    Dataset("yacht"),
    Dataset("boston"),
    Dataset("energy"),
    Dataset("concrete"),
    Dataset("wine-red"),
    Dataset("kin8nm"),
    Dataset("power-plant"),
    Dataset("naval"),
    Dataset("protein", n_splits=5),
)


@dataclass(frozen=True)
class Settings:
    """Which datasets; the paper's splits have seeds of their own."""

    seed: int = 0
    datasets: tuple[str, ...] = tuple(dataset.name for dataset in DATASETS)


def units(settings: Settings) -> list[Unit]:
    """One unit of work per dataset."""
    return [(dataset.name, dataset.n_splits) for dataset in DATASETS if dataset.name in settings.datasets]


def measure(_settings: Settings, unit: Unit, _rng: np.random.Generator) -> list[Row]:
    """One row per split: White's test and both entropies on its validation rows."""
    X, y = regression(str(unit[0]))
    found: list[Row] = []
    for k in range(int(unit[1])):
        rows = paper_split(len(y), k).validation
        found.append({"dataset": unit[0], "split": k, **_spread(X[rows], y[rows])})
    return found


def _spread(X: Array, y: Array) -> Row:
    """How residuals of a linear regression spread."""
    test = white_test(y, X, residuals="linear")
    exog = np.column_stack([np.ones(len(y)), X])
    residuals = y - exog @ np.linalg.lstsq(exog, y, rcond=None)[0]
    return {
        "rows": test.n_rows,
        "form": test.form,
        "p_value": test.p_value,
        "pse": power_spectral_entropy(residuals, squared=True),
        "pse of residuals": power_spectral_entropy(residuals),
    }


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """One line per dataset."""
    return {
        "P_SIG in per cent, PSE with its standard deviation over splits": [_line(rows, name) for name in _names(rows)]
    }


def _line(rows: Sequence[Row], name: str) -> Row:
    held = [row for row in rows if row["dataset"] == name]
    entropies = np.array([[float(row["pse"]), float(row["pse of residuals"])] for row in held])
    forms = {str(row["form"]) for row in held}
    return {
        "dataset": name,
        "splits": len(held),
        "white": " and ".join(sorted(forms)),
        "psig": round(100 * float(np.mean([float(row["p_value"]) < SIGNIFICANT for row in held])), 6),
        "pse": float(entropies[:, 0].mean()),
        "pse_sd": float(entropies[:, 0].std()),
        "pse of residuals": float(entropies[:, 1].mean()),
    }


def of_noise(rows: Sequence[Row], name: str) -> float:
    """The entropy that independent residuals have on average, as many as a dataset's."""
    return 1 - 0.4228 / float(np.log(next(int(row["rows"]) for row in rows if row["dataset"] == name)))


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["dataset"]) for row in rows))


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    rates = {name: float(_line(rows, name)["psig"]) for name in _names(rows)}
    least = min(rates, key=lambda name: rates[name])
    return (
        f"White's test rejects a constant spread in {rates[least]:.0f} ({least}) to {max(rates.values()):.0f} % of "
        f"the splits of {len(rates)} datasets."
    )


def finding(rows: Sequence[Row]) -> str:
    """What the two columns say about the data."""
    entropies = [_line(rows, name) for name in _names(rows)]
    squared, plain = ([float(line[key]) for line in entropies] for key in ("pse", "pse of residuals"))
    noise = [of_noise(rows, name) for name in _names(rows)]
    return (
        f"{headline(rows)} The entropy of squared residuals lies between {min(squared):.2f} and {max(squared):.2f}: it "
        "follows their kurtosis, and independent normal residuals have about .72. That of the residuals themselves "
        f"lies between {min(plain):.2f} and {max(plain):.2f}; of as many independent ones it is {min(noise):.2f} to "
        f"{max(noise):.2f} (1 - .4228 / log n)."
    )


PSIG = Experiment(
    name="table2",
    columns="psig",
    title="heteroskedasticity of the regression datasets (Table 2, P_SIG and PSE)",
    settings=Settings(),
    quick=Settings(datasets=("yacht", "boston")),
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    keys=("dataset",),
    reads=lambda settings: [f"regression/{name}.csv.gz" for name in settings.datasets],
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "statsmodels"),
)
