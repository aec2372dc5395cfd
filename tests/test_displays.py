"""Displays in scikit-learn's manner: numbers are right, axes are those given, and everything fits."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import pimeter as pm
from pimeter.plotting import CoverageDisplay, IntervalDisplay, ReliabilityDisplay

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
rng = np.random.default_rng(0)
X = rng.uniform(size=(900, 2))
Y = X @ [100.0, 200.0] + rng.normal(scale=5 + 40 * X[:, 0])
SHOP = np.where(X[:, 0] > 0.5, "a shop with a name that is very long indeed", "$north$")
OLD, NEW = slice(0, 500), slice(500, None)
MODEL = pm.IntervalRegressor(Ridge(), confidence_level=0.9, random_state=0).fit(X[OLD], Y[OLD])
BOUNDS = MODEL.predict_interval(X[NEW])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def texts_that_do_not_fit(figure):
    """What is drawn beyond the figure."""
    figure.canvas.draw()
    renderer, inside = figure.canvas.get_renderer(), figure.bbox
    ax = figure.axes[0]
    low, high = ax.get_ylim()
    ticks = [text for text in ax.get_yticklabels() if low <= text.get_position()[1] <= high]
    found = [*ticks, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in found if text.get_text()]
    beyond = [(text, box.x0 < -1 or box.x1 > inside.width + 1 or box.y1 > inside.height + 1) for text, box in boxes]
    return [text for text, is_beyond in beyond if is_beyond]


MADE = {
    "intervals": lambda **how: IntervalDisplay.from_estimator(MODEL, X[NEW], Y[NEW], **how),
    "intervals without targets": lambda **how: IntervalDisplay.from_predictions(None, BOUNDS, **how),
    "coverage": lambda **how: CoverageDisplay.from_estimator(MODEL, X[NEW], Y[NEW], **how),
    "coverage by": lambda **how: CoverageDisplay.from_predictions(Y[NEW], BOUNDS, 0.9, by=SHOP[NEW], **how),
    "reliability": lambda **how: ReliabilityDisplay.from_estimator(MODEL, X[NEW], Y[NEW], **how),
}


@pytest.mark.parametrize("name", MADE)
def test_on_new_axes_and_those_given(name):
    display = MADE[name]()
    assert display.figure_.get_size_inches()[0] == 4.5
    assert texts_that_do_not_fit(display.figure_) == []
    _, ax = plt.subplots()
    again = MADE[name](ax=ax)
    assert again.ax_ is ax
    assert again.plot().ax_ is not ax


def test_intervals_show_targets_inside_and_outside():
    display = IntervalDisplay.from_predictions(Y[NEW], BOUNDS, max_rows=100)
    assert len(display.y_true) == 100
    assert (np.diff(display.y_pred) >= 0).all()
    drawn = {line.get_label(): len(line.get_xdata()) for line in display.ax_.lines}
    inside = np.count_nonzero((display.lower <= display.y_true) & (display.y_true <= display.upper))
    assert drawn["inside"] == inside
    assert drawn["outside"] == 100 - inside
    assert "100 of 400 rows" in display.ax_.get_xlabel()


def test_infinite_bounds():
    display = IntervalDisplay.from_predictions([1.0, 2.0], [[-np.inf, 2.0], [1.0, np.inf]])
    assert np.isfinite(display.ax_.get_ylim()).all()


def test_coverage_of_subgroups():
    display = MADE["coverage by"]()
    inside = (BOUNDS[:, 0] <= Y[NEW]) & (Y[NEW] <= BOUNDS[:, 1])
    expected = [inside[SHOP[NEW] == one].mean() for one in np.unique(SHOP)]
    assert_allclose(sorted(display.coverage), sorted(expected))
    assert (display.lower < display.coverage).all()
    by_prediction = MADE["coverage"]()
    assert len(by_prediction.labels) == 5
    assert by_prediction.labels[0] == "lowest (80)"


def test_reliability_at_each_level():
    display = ReliabilityDisplay.from_estimator(MODEL, X[NEW], Y[NEW], levels=[0.5, 0.9])
    assert_array_equal(display.coverage, pm.coverage_score(Y[NEW], MODEL.predict_interval(X[NEW], [0.5, 0.9])))
    frame = MODEL.predict_interval(X[NEW], [0.5, 0.9], as_frame=True)
    assert_array_equal(ReliabilityDisplay.from_predictions(Y[NEW], frame, [0.5, 0.9]).coverage, display.coverage)


def test_mistakes():
    with pytest.raises(TypeError, match=r"Wrap it: IntervalRegressor\(Ridge"):
        IntervalDisplay.from_estimator(Ridge(), X, Y)
    with pytest.raises(ValueError, match="shows one output"):
        IntervalDisplay.from_predictions(np.zeros((3, 2)), np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match="with an axis of levels"):
        ReliabilityDisplay.from_predictions(Y[NEW], BOUNDS, [0.9])


def test_estimators_plot_themselves():
    display = MODEL.plot(X[NEW], Y[NEW], confidence_level=0.5)
    assert_array_equal(
        np.sort(display.upper - display.lower).round(9)[[0, -1]], np.ptp(MODEL.predict_interval(X[:1], 0.5)).round(9)
    )
    windows = np.lib.stride_tricks.sliding_window_view(np.cumsum(Y - Y.mean()), 6)
    cone = pm.ForecastIntervals(0.9).fit(windows[:, 1:], np.repeat(windows[:, :1], 5, axis=1))
    ax = cone.plot(np.zeros(5), [1.0, 2.0, np.nan, np.nan, np.nan], confidence_level=[0.5, 0.9])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["90 %", "50 %", "forecast", "target"]
    assert cone.plot(np.zeros(5), ax=ax) is ax
    assert texts_that_do_not_fit(ax.get_figure()) == []


def test_a_measurement_in_a_notebook_has_pictures_and_folds_the_rest():
    found = pm.measure(Y[NEW], MODEL.predict(X[NEW]))
    html = found._repr_html_()
    assert html.count("<img ") == 1
    assert "data:image/png;base64," in html
    assert html.count("<details>") >= 2
    assert html.index("<img ") < html.index("<details>") < html.index("<table>")
    assert not plt.get_fignums()


def test_a_diagnosis_is_a_short_table():
    lines = repr(pm.measure(Y[NEW], MODEL.predict(X[NEW]), X=X[NEW]).diagnosis).splitlines()
    assert lines[0].startswith("Diagnosis: ")
    assert len(lines) > 3
    assert max(map(len, lines)) <= 110
    assert any(line.startswith("! ") for line in lines)
