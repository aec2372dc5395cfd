"""The classification datasets of Tables 3 and 4 and the prices of Figure 3, for those who do not have them.

As for regression (`download.py`), what comes must be what the results were made with: rows and, for each column of
numbers, mean, standard deviation and correlation with the row number; of Adult, rows and the fraction of each label.
General Electric's prices are on Kaggle, which asks for an account: `ge.us.txt`, once it is in the folder, is arranged.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.download import UCI, Source, _fetched, _write, check
from experiments.protocol import RefusedError

OPENML = "https://www.openml.org/data/download"
ADULT_ROWS = {"adult-train": (32561, 24720), "adult-test": (16281, 12435)}  # rows, and those of at most 50K
SERIES = "ge"
N_DAYS = 14_058


@dataclass(frozen=True)
class Labelled:
    """Where a table with labels is: columns left out, which one is the label, and what is coded as 1."""

    url: str
    positive: tuple[str, ...]
    member: str = ""
    left_out: int = 0  # columns at the front


SOURCES = {
    "sonar": Labelled(f"{UCI}/151/connectionist+bench+sonar+mines+vs+rocks.zip", ("M",), "sonar.all-data"),
    "heart_disease": Labelled(f"{UCI}/45/heart+disease.zip", ("0",), "processed.cleveland.data"),
    "ionosphere": Labelled(f"{UCI}/52/ionosphere.zip", ("g",), "ionosphere.data"),
    "musk1": Labelled(f"{UCI}/74/data.csv", ("0", "0."), left_out=2),
    "breast_cancer": Labelled(
        f"{UCI}/15/breast+cancer+wisconsin+original.zip", ("2",), "breast-cancer-wisconsin.data", left_out=1
    ),
    "pima_diabetes": Labelled(f"{OPENML}/37/dataset_37_diabetes.arff", ("tested_negative",)),
    "spambase": Labelled(f"{UCI}/94/spambase.zip", ("0",), "spambase.data"),
    "phoneme": Labelled(f"{OPENML}/1592281/php8Mz7BG", ("1",)),
    "mammography": Labelled(f"{OPENML}/52214/phpn1jVwe", ("-1",)),
}
ADULT = {
    "adult-train": Source(f"{UCI}/2/adult.zip", 15, "adult.data"),
    "adult-test": Source(f"{UCI}/2/adult.zip", 15, "adult.test"),
}
COLUMNS = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,target"
)


def download(name: str, folder: Path, sources: Mapping[str, Labelled] = SOURCES) -> None:
    """Write one dataset as the experiments want it; it appears whole or not at all."""
    if name == SERIES:
        _arrange_prices(folder)
        return
    target = folder / "classification" / f"{name}.csv.gz"
    if name in ADULT:
        text = _adult(name, _fetched(name, ADULT[name]))
    else:
        source = sources[name]
        text = _numbers(name, _fetched(name, Source(source.url, 0, source.member)), source)
    _write(target, gzip.compress(text.encode(), mtime=0))


def _lines(text: str) -> Iterable[list[str]]:
    """Rows of a CSV, or of the data of an ARFF, blanks and quotes taken off."""
    for line in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(line) > 1 and not line[0].startswith(("@", "%", "|")):
            yield [word.strip().strip("'\"") for word in line]


def _numbers(name: str, text: str, source: Labelled) -> str:
    """Features as numbers, empty where missing, and labels; refused where it is not the known table."""
    rows = []
    for line in _lines(text):
        *features, label = line[source.left_out :]
        try:
            numbers = [np.nan if word in {"", "?"} else float(word) for word in features]
        except ValueError:
            continue  # a title
        rows.append([*numbers, float(label in source.positive)])
    if not rows or len({len(row) for row in rows}) > 1:
        msg = f"{name}: what came is no table of features and labels."
        raise RefusedError(msg)
    table = np.array(rows)
    check(name, np.nan_to_num(table))
    header = [*(f"f{i}" for i in range(table.shape[1] - 1)), "target"]
    lines = [["" if np.isnan(x) else f"{x:.10g}" for x in row] for row in table]
    return "\n".join(",".join(line) for line in [header, *lines]) + "\n"


def _adult(name: str, text: str) -> str:
    """Words as they are, without blanks; the label is 1 for an income of at most 50K."""
    rows = [line for line in _lines(text) if len(line) == len(COLUMNS.split(","))]
    lines = [[*("" if word == "?" else word for word in row[:-1]), str(int(row[-1].startswith("<=")))] for row in rows]
    found = len(lines), sum(line[-1] == "1" for line in lines)
    if found != ADULT_ROWS[name]:
        msg = f"{name} has {ADULT_ROWS[name]} rows and labels 1; what came has {found}."
        raise RefusedError(msg)
    return "\n".join([COLUMNS, *(",".join(line) for line in lines)]) + "\n"


def _arrange_prices(folder: Path) -> None:
    """The prices, from the file that was fetched by hand."""
    source = folder / "time_series" / "ge.us.txt"
    if not source.exists():
        msg = (
            'General Electric\'s prices are on Kaggle ("Huge Stock Market Dataset", Stocks/ge.us.txt), which asks for '
            f"an account: put that file into {source.parent} and ask again."
        )
        raise RefusedError(msg)
    text = source.read_text()
    n = len(text.splitlines()) - 1
    if n != N_DAYS or not text.startswith("Date,Open,High,Low,Close"):
        msg = f"ge.us.txt has {n:,} days or other columns; the results were made with {N_DAYS:,}."
        raise RefusedError(msg)
    _write(source.with_name("ge.csv.gz"), gzip.compress(text.encode(), mtime=0))


NAMES = (*SOURCES, *ADULT, SERIES)
