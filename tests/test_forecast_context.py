"""Cones with a context: what was known when a forecast was made moves and scales its interval."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pimeter as pm
from pimeter.forecast.context import LAGS, Context

pytestmark = pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")


def lasting(n, rho=0.9, seed=0):
    rng = np.random.default_rng(seed)
    series = np.zeros(n)
    for t in range(1, n):
        series[t] = rho * series[t - 1] + rng.standard_normal()
    return series


def windows(series, h):
    """A forecast of 0 for all steps, made at each moment."""
    y_true = np.lib.stride_tricks.sliding_window_view(series, h)
    return y_true.copy(), np.zeros_like(y_true)


def recent(level=0.9, **settings):
    return pm.ForecastIntervals(level, tails="equal", context="recent", **settings)


@pytest.mark.parametrize("h", [1, 5])
def test_coverage_holds_and_intervals_are_as_narrow_as_the_memory_allows(h):
    y_true, y_pred = windows(lasting(4000), h)
    cone = recent().fit(y_true[:2000], y_pred[:2000])
    bounds = cone.follow(y_true[2000:], y_pred[2000:])
    inside = (bounds[..., 0] <= y_true[2000:]) & (y_true[2000:] <= bounds[..., 1])
    # Errors of step j last: the standard error of the coverage of 2,000 is .007 at step 1, and .015 at step 5.
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.03)
    steps = np.arange(1, h + 1)
    best = 2 * 1.645 * np.sqrt((1 - 0.81**steps) / (1 - 0.81))  # knowing the series
    width = np.diff(bounds)[..., 0].mean(axis=0)
    assert (width < 1.1 * best).all()
    assert (width > 0.9 * best).all()


@pytest.mark.parametrize(("h", "stride"), [(1, 1), (4, 1), (4, 2), (4, 4), (3, 5)])
def test_following_is_predicting_and_updating_in_turn(h, stride):
    y_true, y_pred = (each[::stride] for each in windows(lasting(900), h))
    y_pred = y_pred + np.random.default_rng(1).standard_normal(y_pred.shape)
    n, more = 120, 30
    until_known = -(-np.arange(1, h + 1) // stride)
    one, other = (recent().fit(y_true[:n], y_pred[:n], stride=stride) for _ in range(2))
    followed = one.follow(y_true[n : n + more], y_pred[n : n + more])
    steps = np.arange(h)
    for i in range(n, n + more):
        np.testing.assert_allclose(other.predict_interval(y_pred[i : i + 1])[0], followed[i - n], rtol=1e-12)
        made = i + 1 - until_known
        other.update(y_true[made, steps][None], y_pred[made, steps][None])
    newest = y_pred[n + more : n + more + 1]
    np.testing.assert_allclose(one.predict_interval(newest), other.predict_interval(newest), rtol=1e-12)


@pytest.mark.parametrize("context", [None, "recent"])
def test_no_interval_knows_targets_that_come_later(context):
    y_true, y_pred = windows(lasting(400), 3)
    changed = y_true.copy()
    for step in range(3):  # all values from moment 350 on
        changed[350 - step :, step] += 100.0
    cones = [pm.ForecastIntervals(0.9, context=context).fit(each[:200], y_pred[:200]) for each in (y_true, changed)]
    one, other = (cone.follow(each[200:], y_pred[200:]) for cone, each in zip(cones, (y_true, changed), strict=True))
    np.testing.assert_array_equal(one[:151], other[:151])
    assert (one[151:] != other[151:]).any()


def test_fit_leaves_out_what_was_not_known_when_the_next_window_was_made():
    y_true, y_pred = windows(lasting(300), 3)
    changed = y_true[:200].copy()
    changed[-1, 1:], changed[-2, 2:] = 1e3, np.nan
    one, other = (recent().fit(each, y_pred[:200]) for each in (y_true[:200], changed))
    np.testing.assert_array_equal(one.predict_interval(y_pred[:1]), other.predict_interval(y_pred[:1]))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_does_not_matter(unit):
    y_true, y_pred = windows(lasting(300), 2)
    y_pred = y_pred + np.sin(np.arange(len(y_pred)))[:, None]
    one, other = (
        recent().fit(factor * y_true[:200], factor * y_pred[:200]).follow(factor * y_true[200:], factor * y_pred[200:])
        for factor in (1.0, unit)
    )
    np.testing.assert_allclose(other, unit * one, rtol=1e-6)


def test_several_series_are_each_as_alone():
    pairs = [windows(lasting(300, seed=seed), 3) for seed in (0, 1)]
    y_true, y_pred = (np.stack(each) for each in zip(*pairs, strict=True))
    both = recent().fit(y_true[:, :200], y_pred[:, :200]).follow(y_true[:, 200:], y_pred[:, 200:])
    for own, (true, predicted) in zip(both, pairs, strict=True):
        alone = recent().fit(true[:200], predicted[:200]).follow(true[200:], predicted[200:])
        np.testing.assert_allclose(own, alone, rtol=1e-9)


def test_features_that_tell_the_scale_and_the_level():
    rng = np.random.default_rng(0)
    told = rng.uniform(-1.0, 1.0, (3000, 2))
    y = 3.0 * told[:, :1] + np.exp(1.5 * told[:, 1:]) * rng.standard_normal((3000, 1))
    zeros = np.zeros_like(y)
    scores = []
    for features in (None, told):
        known = [{} if features is None else {"features": features[part]} for part in (slice(2000), slice(2000, None))]
        cone = recent().fit(y[:2000], zeros[:2000], **known[0])
        scores.append(pm.interval_score(y[2000:, 0], cone.follow(y[2000:], zeros[2000:], **known[1])[:, 0], 0.9))
    assert scores[1] < 0.75 * scores[0]


@pytest.mark.parametrize("library", [pd, pl])
def test_dates_in_a_frame_are_times_of_the_day(library):
    hours = np.datetime64("2026-01-01", "us") + np.arange(1500) * np.timedelta64(1, "h")
    rng = np.random.default_rng(0)
    y = ((1.0 + 0.9 * np.sin(2.0 * np.pi * np.arange(1500) / 24)) * rng.standard_normal(1500))[:, None]
    frame = library.DataFrame({"made": hours})
    cone = recent().fit(y[:1400], 0 * y[:1400], features=frame[:1400])
    width = np.diff(cone.follow(y[1400:], 0 * y[1400:], features=frame[1400:]))[:, 0, 0]
    loud = (1400 + np.arange(100)) % 24 < 12
    assert width[loud].mean() > 1.5 * width[~loud].mean()


def test_features_of_each_step():
    rng = np.random.default_rng(0)
    told = rng.standard_normal((600, 3, 1))
    y = 2.0 * told[..., 0] + 0.1 * rng.standard_normal((600, 3))
    cone = recent().fit(y[:500], 0 * y[:500], features=told[:500])
    bounds = cone.predict_interval(np.zeros((1, 3)), features=np.array([[[-1.0], [0.0], [1.0]]]))
    np.testing.assert_allclose(bounds.mean(axis=-1)[0], [-2.0, 0.0, 2.0], atol=0.2)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((9, 2)), r"features must have shape \(100, q\) or \(100, 3, q\)"),
        (np.zeros((100, 2, 4)), "a row for each window; got"),
        (np.full((100, 1), np.inf), "write NaN for what is not known"),
        (pd.DataFrame({"shop": ["a"] * 100}), "column 'shop' that holds neither numbers nor dates"),
    ],
)
def test_features_that_do_not_fit(features, message):
    y_true, y_pred = windows(lasting(102), 3)
    with pytest.raises(ValueError, match=message):
        recent().fit(y_true, y_pred, features=features)


def test_features_have_to_be_those_of_fit():
    y_true, y_pred = windows(lasting(102), 3)
    cone = recent().fit(y_true, y_pred, features=np.zeros((100, 2)))
    with pytest.raises(ValueError, match="must have 2 columns, as in fit; got 0"):
        cone.predict_interval(y_pred[:1])
    with pytest.raises(ValueError, match="must have 2 columns, as in fit; got 1"):
        cone.update(y_true[:1], y_pred[:1], features=np.zeros((1, 1)))
    plain = pm.ForecastIntervals().fit(y_true, y_pred)
    for act in (plain.predict_interval, lambda y, **known: plain.update(y, y, **known)):
        with pytest.raises(ValueError, match="features are for a cone with a context"):
            act(y_pred[:1], features=np.zeros((1, 1)))


def test_a_context_is_not_for_whole_paths():
    with pytest.raises(ValueError, match="leave out joint=True"):
        recent(joint=True).fit(*windows(lasting(100), 2))


@pytest.mark.parametrize("delay", [1, 6])
def test_the_bound_on_misses_holds_against_an_opponent(delay):
    """Every error lies beyond the bound, doubling up to a million: most of them cannot."""
    rng = np.random.default_rng(0)
    n, h = 3000, delay
    fitted = rng.standard_normal((200, h))
    cone = recent(0.9).fit(fitted, 0 * fitted)
    b = cone._memory.largest[-1]
    waiting, n_missed, largest = [], 0, b
    for _ in range(n):
        lower, upper = cone.predict_interval(np.zeros((1, h)))[0, -1]
        said = cone._memory._context.now(np.zeros(h), np.zeros((h, 0)))
        error = min(1.01 * upper + 0.01, 1e6)
        waiting.append((error, not lower <= error <= upper, abs(error - said.centre[-1]) / said.scale[-1]))
        row = np.full((1, h), np.nan)
        if len(waiting) >= delay:
            error, missed, score = waiting[-delay]
            row[0, -1] = error
            n_missed += missed
            largest = max(largest, score)
        cone.update(row, np.zeros((1, h)))
    assert n_missed <= 0.1 * n + 2 * (101 + delay * (2 + np.log2(largest / b)))
    assert n_missed > 0.05 * n  # the opponent is one


def test_missing_targets_leave_the_others_alone():
    y_true, y_pred = windows(lasting(1500), 2)
    holes = np.where(np.random.default_rng(0).random(y_true.shape) < 0.2, np.nan, y_true)
    cone = recent().fit(holes[:1000], y_pred[:1000])
    bounds = cone.follow(holes[1000:], y_pred[1000:])
    assert np.isfinite(bounds).all()
    inside = (bounds[..., 0] <= y_true[1000:]) & (y_true[1000:] <= bounds[..., 1])
    assert abs(inside.mean() - 0.9) < 0.04


@pytest.mark.parametrize("n", [4, LAGS + 2, 30])
def test_few_windows(n):
    y_true, y_pred = windows(lasting(n), 1)
    bounds = recent(0.8).fit(y_true, y_pred).follow(y_true, y_pred)
    assert np.isfinite(bounds).all()


@pytest.mark.parametrize("tails", ["symmetric", "equal", "sided", "lower", "upper"])
def test_all_tails(tails):
    y_true, y_pred = windows(lasting(2000), 1)
    cone = pm.ForecastIntervals(0.9, tails=tails, context="recent").fit(y_true[:1000], y_pred[:1000])
    bounds = cone.follow(y_true[1000:], y_pred[1000:])
    assert abs(pm.coverage_score(y_true[1000:], bounds) - 0.9) < 0.03


def test_other_levels_until_it_is_updated():
    y_true, y_pred = windows(lasting(500), 2)
    cone = recent(0.9).fit(y_true, y_pred)
    narrow, wide = np.moveaxis(cone.predict_interval(y_pred[:1], [0.5, 0.95]), -1, 0)
    assert (np.diff(narrow) < np.diff(wide)).all()
    cone.update(y_true[:1], y_pred[:1])
    with pytest.raises(ValueError, match="Fit a second ForecastIntervals"):
        cone.predict_interval(y_pred[:1], 0.5)


def test_wrong_updates_change_nothing():
    y_true, y_pred = windows(lasting(200), 2)
    cone = recent().fit(y_true, y_pred)
    before = cone.predict_interval(y_pred[:1])
    for wrong in (np.full((1, 2), np.inf), np.zeros((1, 3))):
        with pytest.raises(ValueError, match=r"finite|update takes windows"):
            cone.update(wrong, np.zeros_like(wrong))
    np.testing.assert_array_equal(cone.predict_interval(y_pred[:1]), before)


class TestLimits:
    @pytest.mark.parametrize("context", [None, "recent"])
    def test_intervals_end_there(self, context):
        y = np.abs(lasting(300))[:, None]
        cone = pm.ForecastIntervals(0.9, context=context, y_min=0.0, y_max=2 * y.max()).fit(y, 0 * y + 0.1)
        free = pm.ForecastIntervals(0.9, context=context).fit(y, 0 * y + 0.1)
        forecast = np.array([[0.1], [2 * y.max()]])
        np.testing.assert_array_equal(
            cone.predict_interval(forecast), np.clip(free.predict_interval(forecast), 0.0, 2 * y.max())
        )

    def test_targets_beyond_are_refused(self):
        y = np.arange(100.0)[:, None]
        with pytest.raises(ValueError, match=r"10 of 100 targets lie beyond y_min=10\.0"):
            pm.ForecastIntervals(y_min=10.0).fit(y, y)
        cone = pm.ForecastIntervals(y_max=200.0).fit(y, y)
        with pytest.raises(ValueError, match="the first is 201"):
            cone.update([[201.0]], [[200.0]])

    @pytest.mark.parametrize("limits", [(1.0, 1.0), (2.0, 1.0), (np.nan, None), (None, np.inf)])
    def test_limits_that_are_none(self, limits):
        with pytest.raises(ValueError, match=r"y_m(in|ax) must be"):
            pm.ForecastIntervals(y_min=limits[0], y_max=limits[1]).fit(np.zeros((9, 1)), np.zeros((9, 1)))


def test_what_is_missing_leaves_the_newest_residuals_as_they_were():
    context = Context(np.ones(1), np.zeros((5, 1)), np.array([0]), np.array([1]), 0)
    for residual in (1.0, 2.0, np.nan, 3.0, np.nan):
        context.make_window(np.zeros((1, 0)))
        context.learn(np.array([residual]), np.zeros(1))
    assert context._residuals[context._now, :, 0].tolist() == [3.0, 2.0, 1.0]
