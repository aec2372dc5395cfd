"""A short part of the simulation study: every guarantee has its row, none breaks at once, broken ones are noticed."""

from __future__ import annotations

import csv
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pimeter.conformal import guarantee, quantile
from pimeter.regression import nearness

ROOT = Path(__file__).parents[1]
# Anything that a page guarantees: the first cell of each line of its tables.
GUARANTEES = set(re.findall(r"^\| `(.+?)` \|", (ROOT / "docs" / "guarantees.md").read_text(), flags=re.MULTILINE))


@pytest.fixture
def simulate(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(
        nearness, "RandomForestRegressor", nearness.RandomForestRegressor
    )  # the simulation study sets its own
    return importlib.import_module("simulate")


@pytest.mark.filterwarnings("ignore")
def test_quick_run_has_a_row_for_each_guarantee_and_rejects_none(simulate):
    # Seeds are fixed; were they not, one run in a thousand would reject.
    wholes = simulate.tested(
        [(cell, simulate.turn(cell, 0, min(cell.calibrations, 20))) for cell in simulate.quick_cells()]
    )
    assert set(wholes) == GUARANTEES
    assert not simulate.rejected(wholes)
    assert all(f"| {name} |" in simulate.summary(wholes, 1.0) for name in GUARANTEES)
    assert simulate.table(wholes).count("\n") == sum(len(whole.rows) for whole in wholes.values()) + 1


def test_guarantees_that_were_changed_after_a_rejection_are_told(simulate):
    said = (ROOT / "benchmarks" / "results" / "simulate.md").read_text()
    assert set(simulate.REVISED) <= GUARANTEES
    assert all(f"{name}: {what}" in said for name, what in simulate.REVISED.items())
    assert all(f"{name}: {what}" in simulate.summary({}, 1.0) for name, what in simulate.REVISED.items())


def test_committed_rows_are_those_of_the_page_and_reject_none():
    with (ROOT / "benchmarks" / "results" / "simulate.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert {row["guarantee"].replace("'", '"') for row in rows} == GUARANTEES
    assert all(row["test"] == "none" or float(row["holm"]) > 1e-3 for row in rows)


@pytest.mark.parametrize(("guarantee", "ranks"), [("marginal", 1), ("approximate", 2), ("training-conditional", 1)])
def test_margins_of_lower_ranks_are_noticed(simulate, guarantee, ranks, monkeypatch):
    # One rank of 41 is 2.4 % of coverage. An approximate neuron stands between two, so that it takes two.
    settings = {"tails": "symmetric", "guarantee": guarantee}
    cell = simulate.Cell("split", simulate.split, simulate.ALL_NOISES[0], 40, 0.8, 1, settings)
    n = 5000 if guarantee == "training-conditional" else 1000
    assert not simulate.rejected(simulate.tested([(cell, simulate.turn(cell, 0, n))]))
    right = quantile._at_ranks
    monkeypatch.setattr(quantile, "_at_ranks", lambda sample, places: right(sample, places - ranks))
    assert simulate.rejected(simulate.tested([(cell, simulate.turn(cell, 0, n))]))


def test_p_values_of_means(simulate):
    # Coverages of a skewed Beta distribution: where the guarantee is kept, p-values of a or less have at most the
    # probability a; where coverage is .005 short, they are as often below a level as the power says, nearly.
    rng = np.random.default_rng(0)
    for shortfall in (0.0, simulate.SHORTFALL):
        p_values, powers = [], []
        for _ in range(400):
            found = simulate.Found()
            coverage = rng.beta(19, 1, size=2000) - shortfall
            found.means("", "", 0.95, coverage, variance=0.95 * 0.05 / 21)
            (tally,) = found.tallies.values()
            p_values.append(tally.p_value)
            powers.append(tally.power(0.01))
        fraction = np.mean(np.array(p_values) <= 0.01)
        if shortfall:
            assert 0.5 < np.mean(powers) < 0.99
            assert abs(fraction - np.mean(powers)) < 0.05
        else:
            assert fraction <= 0.01


def test_nan_is_no_guarantee(simulate):
    """It passes all tests, and among their p-values it hides those that are rejected."""
    found, hits = simulate.Found(), np.zeros(100)
    for guaranteed, values in ((np.nan, hits), (0.9, np.full(100, np.nan))):
        with pytest.raises(AssertionError):
            found.means("mean", "", guaranteed, values, variance=0.01)
        with pytest.raises(AssertionError):
            found.fractions("fraction", "", guaranteed, values)
    found.fractions("fraction", "", 0.9, hits)
    found.tallies["mean", ""] = simulate.Tally(np.nan, "mean", 1.0, 100, 100, log_fortune=np.nan)  # from another source
    with pytest.raises(AssertionError, match="NaN has no place"):
        simulate.tested([(simulate.cells()[0], found)])


def test_what_a_model_says_of_itself_is_not_what_is_tested(simulate, monkeypatch):
    """A level of less than the page guarantees would be kept by narrower intervals, too."""
    monkeypatch.setattr(guarantee, "cross_validated_level", lambda *_: 0.1)
    cell = simulate.Cell("cv", simulate.shaped, simulate.ALL_NOISES[0], 20, 0.8, 1, {"tails": "symmetric"})
    with pytest.raises(AssertionError):
        simulate.turn(cell, 0, 20)


def test_both_bounds_are_cut(simulate):
    found = [simulate.turn(cell, 0, 2).tallies for cell in simulate.cells() if cell.name == "y_min" and cell.p == 0.5]
    assert {setting for tallies in found for _, setting in tallies} == {"y_min", "y_max"}


def test_p_values_of_fractions_and_bounds(simulate):
    found = simulate.Found()
    found.fractions("fraction", "", 0.9, np.arange(100) < 80)
    found.bounds("bound", "", np.arange(100) < 99)
    found.nothing("nothing", "", np.full(3, 0.1))
    wholes = simulate.tested([(simulate.cells()[0], found)])
    rows = {name: whole.rows[0] for name, whole in wholes.items()}
    assert_allclose(rows["fraction"].tally.p_value, stats.binomtest(80, 100, 0.9, alternative="less").pvalue)
    assert_allclose(rows["fraction"].adjusted, 2 * rows["fraction"].tally.p_value)  # the last but one
    error = (0.8 * 0.2 / 100) ** 0.5
    assert_allclose(wholes["fraction"].adjusted, stats.norm.cdf(-0.1 / error))
    assert rows["bound"].adjusted == 0.0
    assert np.isnan(rows["nothing"].adjusted)
    # All that binomial tests at this level reject, at .005 less.
    most = max(k for k in range(101) if stats.binom.cdf(k, 100, 0.9) <= 0.05)
    assert_allclose(rows["fraction"].tally.power(0.05), stats.binom.cdf(most, 100, 0.895))
