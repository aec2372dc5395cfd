"""Beside Table 3, the test that the paper lacks: does an interval from a few rows hold the accuracy on all others?

A network is trained on 20 % of the rows. From the others small parts are drawn, again and again; each method makes
an interval for the accuracy from such a part, and the truth is the accuracy on all rows that are not in it. The
calibrated method sees the labels of the part alone and the scores of 2,000 of the other rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.classifiers import LEVEL, median, scores, shuffled
from experiments.data import Array, adult, classification, classification_files
from experiments.protocol import Experiment, Row, Unit
from experiments.table3 import LARGE
from pimeter import CoverageWarning, classification_uncertainty
from pimeter.paper import score_spread

METHODS = {"PIM": "pim", "binomial": "normal", "wilson": "wilson", "bootstrap": "bootstrap", "calibrated": "calibrated"}
VALID = ("wilson", "bootstrap", "calibrated")
RATIOS = ("PIM", "calibrated")  # whose widths stand beside Wilson's
N_UNLABELLED = 2000


@dataclass(frozen=True)
class Settings:
    """Networks for each dataset, rows of the parts, and how many of each are drawn for each network."""

    seed: int = 1
    datasets: tuple[str, ...] = ("spambase", "phoneme", "mammography", "adult")
    n_networks: int = 10
    sizes: tuple[int, ...] = (100, 200, 400)
    n_parts: int = 100
    max_epochs: int = 200
    train: float = 0.2


QUICK = Settings(datasets=("phoneme",), n_networks=1, sizes=(100,), n_parts=20, max_epochs=5)


def units(settings: Settings) -> list[Unit]:
    """One network each."""
    return [(name, i) for name in settings.datasets for i in range(settings.n_networks)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each size and method."""
    name = str(unit[0])
    X, y = adult()[:2] if name == "adult" else classification(name)
    split = shuffled(len(y), 1.0 - settings.train, 0.1 * settings.train, rng)
    how = replace(LARGE, max_epochs=settings.max_epochs)
    score = scores(X, y, [split], how, rng)[0, split.test]
    true = y[split.test]
    found: list[Row] = []
    for size in settings.sizes:
        tried = [_tried(true, score, size, rng) for _ in range(settings.n_parts)]
        for method in METHODS:
            bounds = np.array([one[method] for one in tried])
            truth = np.array([one["truth"] for one in tried])[:, 0]
            known = np.isfinite(bounds).all(axis=1)
            found.append(
                {
                    "dataset": name,
                    "network": int(unit[1]),
                    "part": size,
                    "method": method,
                    "others": len(true) - size,
                    "accuracy": float(np.mean((score > 0.5) == true)),
                    "parts": settings.n_parts,
                    "known": int(known.sum()),
                    "held": int(np.sum((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))),
                    "width": median((bounds[:, 1] - bounds[:, 0]).tolist()),
                }
            )
    return found


def _tried(true: Array, score: Array, size: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Intervals from one part, and the accuracy on all other rows."""
    order = rng.permutation(len(true))
    part, others = order[:size], order[size:]
    truth = float(np.mean((score[others] > 0.5) == true[others]))
    found = {"truth": (truth, truth)}
    for name, method in METHODS.items():
        found[name] = _interval(true[part], score[part], score[others[:N_UNLABELLED]], method, rng)
    return found


def _interval(
    true: Array, score: Array, unlabelled: Array, method: str, rng: np.random.Generator
) -> tuple[float, float]:
    """NaN where the part has rows of one class only, of which most methods say nothing."""
    if true.min() == true.max():
        return float("nan"), float("nan")
    if method == "pim":
        spread = score_spread(true, score, metrics="accuracy", confidence_level=LEVEL)
        return float(spread.lower["accuracy"]), float(spread.upper["accuracy"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        rows = (None, unlabelled) if method == "calibrated" else (true, score)
        found = classification_uncertainty(
            *rows,
            method=method,
            metrics="accuracy",
            confidence_level=LEVEL,
            calibration=(true, score) if method == "calibrated" else None,
            n_resamples=1000,
            random_state=rng,
        )
    return float(found.lower["accuracy"]), float(found.upper["accuracy"])


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Coverage and width by dataset and size of the part."""
    cells = list(dict.fromkeys((str(row["dataset"]), int(row["part"])) for row in rows))
    return {
        f"Proportion of parts whose interval for {LEVEL:.0%} holds the accuracy on all other rows, among those with an "
        "interval; median width": [_line(rows, *cell) for cell in cells]
    }


def brief(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Coverage alone, and the widths of the paper's range and of calibrated intervals beside Wilson's."""
    (table,) = tables(rows).values()
    return {
        f"Proportion of parts whose interval for {LEVEL:.0%} holds the accuracy, and width / Wilson's": [
            {
                **{key: line[key] for key in ("dataset", "part", "PIM", *VALID)},
                **{f"width, {name}": float(line[f"{name}, width"]) / float(line["wilson, width"]) for name in RATIOS},
            }
            for line in table
        ]
    }


def _line(rows: Sequence[Row], name: str, part: int) -> Row:
    held = [row for row in rows if (row["dataset"], row["part"]) == (name, part)]
    line: dict[str, str | int | float] = {"dataset": name, "part": part}
    line["other rows"] = int(held[0]["others"])
    line["accuracy"] = float(np.mean([float(row["accuracy"]) for row in held]))
    line["parts"] = int(sum(int(row["parts"]) for row in held if row["method"] == "wilson"))
    for method in METHODS:
        own = [row for row in held if row["method"] == method]
        known = sum(int(row["known"]) for row in own)
        line[method] = sum(int(row["held"]) for row in own) / known if known else float("nan")
        line[f"{method}, width"] = median([float(row["width"]) for row in own])
        if method in {"PIM", "wilson"}:
            line[f"{method}, none"] = sum(int(row["parts"]) - int(row["known"]) for row in own)
    return line


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    (table,) = tables(rows).values()
    found = [float(line[method]) for line in table for method in VALID]
    paper = [float(line["PIM"]) for line in table if np.isfinite(float(line["PIM"]))]
    return (
        f"Wilson, bootstrap and calibrated intervals hold the accuracy on all other rows in {100 * min(found):.1f} to "
        f"{100 * max(found):.1f} % of parts, PIM's range in "
        + (f"{100 * min(paper):.1f} to {100 * max(paper):.1f} %." if paper else "none, as it has too few rows.")
    )


def finding(rows: Sequence[Row]) -> str:
    """What it means."""
    (table,) = tables(rows).values()
    wide = [float(line["PIM, width"]) / float(line["wilson, width"]) for line in table]
    known = [ratio for ratio in wide if np.isfinite(ratio)]
    gain = [float(line["calibrated, width"]) / float(line["wilson, width"]) for line in table]
    more = f", {min(known):.1f} to {max(known):.1f} times as wide as Wilson's," if known else ""
    return (
        f"{headline(rows)} PIM's range{more} is too wide to decide anything by, and for small parts there is none. "
        f"Calibrated intervals, which use scores of rows without labels, are {min(gain):.2f} to {max(gain):.2f} "
        "times as wide as Wilson's on the same labels."
    )


EXPERIMENT = Experiment(
    name="table3",
    columns="coverage",
    title="does an interval from a few rows hold the accuracy on all others?",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    unpublished="The paper has no such test.",
    reads=lambda settings: classification_files(settings.datasets),
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
