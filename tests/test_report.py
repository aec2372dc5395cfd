"""Plots of a measurement: what they show is read back from the axes."""

from __future__ import annotations

import re
import sys

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

from pimeter import measure
from pimeter.coverage import rounded
from pimeter.report import plots

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    y_pred = rng.uniform(10, 20, size=442)
    by = np.where(np.arange(442) % 3, "$often$", "a very long name of a category that has to be cut")
    return measure(y_pred + rng.normal(scale=1.6, size=442), y_pred, by=by)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_overview_on_new_and_on_given_axes(result):
    grid = result.plot()
    assert grid.shape == (2, 2)
    titles = [ax.get_title(loc="left") for ax in grid.ravel()]
    assert titles == [
        f"95 % of residuals expected within ±{result.margin[0]:.3g}",
        "Coverage against the level asked for",
        "Cross-fitted coverage in subgroups of the rows",
        "Residuals by prediction",
    ]
    own = plt.figure().subplots(1, 4)
    assert result.plot(own).ravel().tolist() == own.tolist()
    grid[0, 0].figure.canvas.draw()
    with pytest.raises(ValueError, match="axes must be four; got 2"):
        result.plot(own[:2])


def test_levels_near_1_are_not_100_percent():
    y_pred = np.arange(100_000.0)
    result = measure(y_pred + np.random.default_rng(0).normal(size=100_000), y_pred, confidence_level=0.99996)
    assert result.headline.claim.startswith("99.996 % of future residuals")
    assert "enough to guarantee 99.996 % on average" in result.diagnosis["rows"].sentence
    assert plots.draw_residuals(result.to_dict()).get_title(loc="left").startswith("99.996 % of residuals")
    assert plots.draw_intervals(result.to_dict()).get_title(loc="left") == "Intervals for 99.996 %"
    assert "99.996 % asked for" in result.to_html()
    row = re.search(r'<tr data-score="coverage">.*?</tr>', result.to_html(), re.DOTALL)[0]
    assert_allclose(float(re.search(r'"figure">([\d.]+)<', row)[1]), result.coverage, atol=1e-5)
    assert "at 99.996 %" in row
    assert "1 to" not in row
    assert "to 1<" not in row
    assert f"<td>{rounded(result.coverage)}</td>" in result._repr_html_()
    assert rounded(result.coverage) != "1"


def test_coverage_shows_the_curves(result):
    ax = plt.figure().subplots()
    assert result.plot_coverage(ax) is ax
    line = next(line for line in ax.lines if line.get_label() == "measured (cross-fitted)")
    assert_allclose(line.get_ydata(), 100 * np.array(result.curves.coverage))
    assert result.plot_coverage() is not ax


def test_intervals_show_every_target_once(result):
    ax = result.plot_intervals()
    points = {line.get_label(): line.get_xdata() for line in ax.lines}
    assert len(points["inside"]) + len(points["outside"]) == len(points["prediction"]) <= plots.N_INTERVALS
    bounds = ax.collections[0].get_segments()[0][:, 1]
    assert_allclose(np.diff(bounds), 2 * result.margin[0])


def test_labels_are_cut_and_are_no_formulas(result):
    ax = plots.draw_subgroups(result.to_dict())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert any(label.startswith(r"\$often\$") for label in labels)
    assert max(len(label.split("\n")[0]) for label in labels) <= len("prediction ") + plots.LONGEST
    ax.figure.canvas.draw()


@pytest.mark.parametrize("m", [1, 2, 12])
def test_few_rows_are_drawn_too(m):
    found = measure(np.arange(m) * 1.5, np.arange(m)[::-1])
    found.plot()[0, 0].figure.canvas.draw()
    found.plot_intervals().figure.canvas.draw()


def test_constant_errors_are_drawn_too():
    measure(np.ones(30), np.ones(30)).plot()[0, 0].figure.canvas.draw()


def test_without_matplotlib_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'pimeter\[plot\]'"):
        result.plot()
