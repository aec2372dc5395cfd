"""The field's words stand in names, docstrings, messages and docs, and none of our own in their place."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Allowed(NamedTuple):
    """A house word that may stay within a phrase of a file."""

    path: str
    word: str
    phrase: str
    reason: str


STORED = "a column or setting of stored rows, which are read back"
PRINTED = "a sentence of a stored page, which has to stay what the code prints"
EXCEPTIONS = [
    Allowed("src/pimeter/_kernels/dask/quantiles.py", "sizes", "compute_chunk_sizes()", "a method of dask's arrays"),
    Allowed("docs/forecasts.md", "worth", "forecast_worth", "the name of a stored result"),
    Allowed("docs/guarantees.md", "worth", "forecast_worth", "the name of a stored result"),
    Allowed("docs/forecasts.md", "share", "share price", "the price of a share"),
    Allowed("benchmarks/quantile_accuracy.py", "law", '"law"', STORED),
    Allowed("benchmarks/quantile_accuracy.py", "law", "row['law']", STORED),
    Allowed("benchmarks/forecast_worth.py", "worth", "forecast_worth", "the name of a stored result"),
    Allowed("benchmarks/designs.py", "law", "Zipf's law", "a name of the field"),
    Allowed("experiments/coverage.py", "sizes", "sizes: tuple", STORED),
    Allowed("experiments/coverage.py", "sizes", "sizes=(", STORED),
    Allowed("experiments/coverage.py", "sizes", "settings.sizes", STORED),
    Allowed("experiments/fig1.py", "sizes", "sizes: tuple", STORED),
    Allowed("experiments/fig1.py", "sizes", "sizes=(", STORED),
    Allowed("experiments/fig1.py", "sizes", "settings.sizes", STORED),
    Allowed("experiments/fig1.py", "sizes", "{len(ours)} sizes", PRINTED),
    Allowed("experiments/fig3.py", "share", "`share`", STORED),
    Allowed("experiments/fig3.py", "share", "share: float", STORED),
    Allowed("experiments/fig3.py", "share", "settings.share", STORED),
    Allowed("experiments/fig3.py", "share", "share price", "the price of a share"),
    Allowed("tests/test_classifiers.py", "sizes", "sizes=(60,)", STORED),
    Allowed("tests/test_dask.py", "sizes", "compute_chunk_sizes", "a method of dask's arrays"),
    Allowed("tests/test_experiments.py", "sizes", "sizes=", STORED),
    Allowed("tests/test_experiments.py", "sizes", "of 2 sizes", PRINTED),
    Allowed("tests/test_forecast.py", "worth", "forecast_worth", "the name of a stored result"),
]
# How many are left, by file. A file that gets better shrinks its number here; none is added.
LEFT: dict[str, int] = {}


def is_excepted(found) -> bool:
    return any((own.path, own.word) == (found.path, found.word) and own.phrase in found.line for own in EXCEPTIONS)


@pytest.fixture
def metrics(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("code_metrics")


@pytest.fixture
def found(metrics):
    patterns = (
        *metrics.READ,
        "benchmarks/*.py",
        "experiments/*.py",
        "examples/**/*.py",
        "tests/*.py",
        "CONTRIBUTING.md",
        "src/**/*.md",
    )
    lists = {"benchmarks/code_metrics.py", "tests/test_words.py"}
    return [own for own in metrics.house_words(patterns) if own.path not in lists]


def test_house_words_are_where_they_are_listed(found):
    ours = [own for own in found if not is_excepted(own)]
    counts = Counter(own.path for own in ours)
    new = [own for own in ours if counts[own.path] > LEFT.get(own.path, 0)]
    listed = "\n".join(f"{own.path}:{own.number}: {own.word}: {own.line}" for own in new)
    assert not new, f"Use the field's words of docs/glossary.md instead of these:\n{listed}"
    fewer = {path: counts[path] for path, n in LEFT.items() if counts[path] < n}
    assert not fewer, (
        f"fewer house words are left than LEFT says; put these numbers there, and drop those of 0: {fewer}"
    )


def test_exceptions_are_needed(found):
    for own in EXCEPTIONS:
        matches = [one for one in found if (one.path, one.word) == (own.path, own.word) and own.phrase in one.line]
        assert matches, f"no {own.word!r} stands in {own.phrase!r} of {own.path} any more; drop the exception"


def test_constants_say_what_they_limit(metrics):
    assert not metrics.repeated_constants(), "Name each by what it limits: MAX_ROWS_FOR_FEATURES, not a third MAX_ROWS."


def test_words_are_found_in_names_and_sentences(metrics, tmp_path, monkeypatch):
    """Also within names with underscores and capitals, and not within longer words."""
    monkeypatch.setattr(metrics, "ROOT", tmp_path)
    (tmp_path / "one.md").write_text(
        "own_share, SMALL_SIZES\nTheLaw of a whole number\nshared resizes lawful sends ends"
    )
    lines = [(own.number, own.word) for own in metrics.house_words(["*.md"])]
    assert lines == [(1, "share"), (1, "sizes"), (2, "law"), (2, "whole number"), (3, "ends")]


def test_package_and_docs_are_read(metrics):
    assert {"law", "share", "promise", "reach", "ends", "sizes"} <= set(metrics.WORDS)
    for pattern in metrics.READ:
        assert any(metrics.ROOT.glob(pattern)), pattern
