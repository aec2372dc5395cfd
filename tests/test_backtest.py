"""Cones tried on windows that they were not fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pimeter import ForecastIntervals, backtest

pytestmark = pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")


def walk(n, h, seed=0, scale=None):
    """Windows over a random walk, of which the forecast is its last value."""
    rng = np.random.default_rng(seed)
    series = np.cumsum(rng.standard_normal(n) * (1.0 if scale is None else scale))
    windows = np.lib.stride_tricks.sliding_window_view(series, h + 1)
    return windows[:, 1:], np.repeat(windows[:, :1], h, axis=1)


def test_static_cone_knows_the_older_half_alone():
    y_true, y_pred = walk(803, 3)
    found = backtest(y_true, y_pred, confidence_level=0.9)
    assert (found.n_fitted, found.n_tested) == (400, 400)
    known = y_true[:400].copy()
    known[-1, 1:], known[-2, 2] = np.nan, np.nan  # their time had not come
    cone = ForecastIntervals(0.9).fit(known, y_pred[:400])
    low, high = np.moveaxis(cone.predict_interval(y_pred[400:]), 2, 0)
    inside = (low <= y_true[400:]) & (y_true[400:] <= high)
    assert_allclose(found.static.by_step, inside.mean(axis=0))
    assert_allclose(found.static.width, (high - low).mean(axis=0))
    assert_allclose(found.static.coverage, inside.mean())


def test_nothing_of_the_future_is_known():
    # Targets far from everything, at the end: intervals made before them are the same without them.
    y_true, y_pred = walk(203, 3)
    other = y_true.copy()
    other[-1] += 1e6
    found, changed = backtest(y_true, y_pred), backtest(other, y_pred)
    assert found.newest["upper"] == changed.newest["upper"]
    assert found.static.width == changed.static.width


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 0.5, 1 / 3])
def test_a_target_is_known_when_its_time_has_come(stride):
    """Targets that come after the newest window do not change its interval, and the one before it does."""
    n, h = 60, 4
    rng = np.random.default_rng(0)
    y_pred = np.zeros((n, h))
    y_true = rng.standard_normal((n, h))
    newest = (n - 1) * stride
    when = stride * np.arange(n)[:, None] + np.arange(1, h + 1)
    later = np.where(when > newest + 1e-9, 1e6, y_true)
    assert (later != y_true).any()
    plain = backtest(y_true, y_pred, stride=stride)
    assert backtest(later, y_pred, stride=stride).newest["upper"] == plain.newest["upper"]
    for step in range(h):  # the last that is known of each step is used
        i = np.flatnonzero(when[:, step] <= newest + 1e-9)[-1]
        known = y_true.copy()
        known[i, step] = 1e6
        assert backtest(known, y_pred, stride=stride).newest["upper"][step] != plain.newest["upper"][step]


def test_targets_far_ahead_are_not_used_before_they_are_known():
    """A forecast each hour for the hour a day later: 23 targets of earlier windows are still to come."""
    y_true, y_pred, until_known = np.random.default_rng(0).standard_normal((200, 1)), np.zeros((200, 1)), np.array([24])
    plain = backtest(y_true, y_pred, until_known=until_known)
    for first, is_used in ((-24, False), (-25, True)):  # the newest window is the last one
        changed = y_true.copy()
        changed[first:] = 1e6
        found = backtest(changed, y_pred, until_known=until_known)
        assert (found.newest["upper"] != plain.newest["upper"]) == is_used
    changed = y_true.copy()
    changed[77:100] = 1e6  # not known to window 100, the first that the cone is tried on
    assert backtest(changed, y_pred, until_known=until_known).static.width == plain.static.width
    assert backtest(changed, y_pred).static.width != plain.static.width


def test_updates_follow_a_change():
    y_true, y_pred = walk(3000, 2, scale=np.repeat([1.0, 4.0], 1500))
    found = backtest(y_true, y_pred, confidence_level=0.9)
    assert found.static.coverage < 0.6
    assert abs(found.updated.coverage - 0.9) < 0.03
    assert found.margin[0] == pytest.approx(1.645 * 4.0, rel=0.25)
    assert "90 % of targets" in found.headline.claim


def test_unknown_targets_and_steps():
    y_true, y_pred = walk(203, 3)
    y_true = y_true.copy()
    y_true[-1, 1:] = np.nan
    y_true[150] = np.nan
    found = backtest(y_true, y_pred).to_dict()
    assert found["newest"]["target"][1:] == [None, None]
    assert 0.5 < found["updated"]["coverage"] <= 1.0


def test_too_few_windows():
    with pytest.raises(ValueError, match=r"7 windows of 3 steps are too few .* at least 8 are needed"):
        backtest(*walk(10, 3))
    y_true, y_pred = walk(10, 3)
    assert backtest(y_true[:5], y_pred[:5], stride=3).n_tested == 3
    with pytest.raises(ValueError, match=r"3 windows of 3 steps are too few .* at least 4 are needed"):
        backtest(y_true[:3], y_pred[:3], stride=3)
    with pytest.raises(ValueError, match="stride must be how many steps"):
        backtest(y_true, y_pred, stride=0)


def test_what_is_masked_is_not_known_and_what_is_wrong_is_refused():
    y_true, y_pred = walk(203, 3)
    mask = np.zeros(y_true.shape, bool)
    mask[::7] = True
    masked = np.ma.masked_array(np.where(mask, 1e6, y_true), mask)
    assert backtest(masked, y_pred).margin == backtest(np.where(mask, np.nan, y_true), y_pred).margin
    with pytest.raises(
        ValueError, match=r"same shape, \(windows, steps\); got \(200,\) and \(200,\)\. One-step forecasts"
    ):
        backtest(y_true[:, 0], y_pred[:, 0])
    with pytest.raises(ValueError, match=r"got \(200, 3\) and \(100, 3\)"):
        backtest(y_true, y_pred[:100])
    with pytest.raises(ValueError, match="holds infinities; write NaN"):
        backtest(np.where(mask, np.inf, y_true), y_pred)


def test_windows_without_targets_are_not_counted_as_tried():
    y_true, y_pred = walk(203, 3)
    y_true = y_true.copy()
    y_true[-20:] = np.nan
    found = backtest(y_true, y_pred)
    assert (found.n_tested, found.n_scored) == (100, 80)
    assert (
        "Over 80 of 100 windows that it had not seen, which have targets and forecasts, the" in found.headline.evidence
    )
    assert "over 80 windows" in found.to_html()


def test_residuals_that_are_all_equal_are_not_enough():
    found = backtest(np.full((50, 1), 3.0), np.ones((50, 1)))
    assert found.diagnosis.raised == ("errors",)
    assert "as good as about 1 independent residual; 95 % takes 19." in found.diagnosis["errors"].sentence
    assert not any("Nothing to do" in line for line in found.advice)


def test_one_window_is_not_windows():
    with pytest.raises(ValueError, match="1 window of 1 step is too few to fit"):
        backtest([[1.0]], [[2.0]])


def test_margins_are_those_of_the_updated_cone_and_it_says_so():
    y_true, y_pred = walk(803, 1)
    found = backtest(y_true, y_pred, confidence_level=0.9)
    cone = ForecastIntervals(0.9).fit(y_true[: found.n_fitted], y_pred[: found.n_fitted])
    cone.update(y_true[found.n_fitted :], y_pred[found.n_fitted :])
    assert_allclose(found.margin, cone.margin_[:, 1])
    assert found.headline.evidence.endswith("The margins are those of the updated cone.")


def test_coverage_is_drawn_in_per_cent_with_titles_at_the_axes():
    page = backtest(*walk(203, 3)).to_html()
    assert "targets inside, %</text>" in page
    assert "steps ahead</text>" in page
    assert "Horizontal" not in page
