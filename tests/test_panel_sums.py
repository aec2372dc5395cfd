"""Sums, means and sample paths of a panel, and panels whose errors remember."""

from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import pimeter as pm
from pimeter.forecast.panel_context import _means_of_seasons, _returned
from pimeter.forecast.paths import margins_kept

pytestmark = pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
RHO, H = 0.8, 4


def autoregressive(n_series, n, rng, start=None):
    """Series (n_series, n) of independent steps of size 1."""
    y = np.empty((n_series, n))
    now = rng.standard_normal(n_series) / (1 - RHO**2) ** 0.5 if start is None else start
    for t in range(n):
        now = RHO * now + rng.standard_normal(n_series)
        y[:, t] = now
    return y


def long_frame(y, made, forecast, known=None):
    """A row for each series, cutoff and step, as far as targets are known; `forecast(now, j)` of values (series, n)."""
    parts = []
    for j in range(1, H + 1):
        own = np.array([c for c in made if known is None or c + j <= known])
        if len(own):
            parts.append(
                pl.DataFrame(
                    {
                        "unique_id": np.repeat([f"s{i}" for i in range(len(y))], len(own)),
                        "cutoff": np.tile(own, len(y)),
                        "ds": np.tile(own + j, len(y)),
                        "y": y[:, own + j].ravel() if known is not None else np.nan,
                        "f": forecast(y[:, own], j).ravel(),
                    }
                )
            )
    return pl.concat(parts).sort("unique_id", "cutoff", "ds", maintain_order=True)


def best(now, j):
    return 100.0 + RHO**j * (now - 100.0)


def level(now, _j):
    return np.full_like(now, 100.0)


@cache
def fitted(forecast=best, n_series=60, n=120, confidence_level=0.9, **settings):
    """Intervals of a panel around 100, the forecasts that come next, and many continuations (draws, series, h)."""
    rng = np.random.default_rng(0)
    y = 100.0 + autoregressive(n_series, n, rng)
    intervals = pm.PanelIntervals(confidence_level, **settings).fit(long_frame(y, range(n - 1), forecast, n - 1))
    future = long_frame(y, [n - 1], forecast).drop("y", "cutoff")
    paths = np.stack([100.0 + autoregressive(n_series, H, rng, y[:, -1] - 100.0) for _ in range(200)])
    order = np.argsort([f"s{i}" for i in range(n_series)])
    return intervals, future, paths[:, order], y


def bounds(frame, level=90, name="f"):
    return (frame[f"{name}-{side}-{level}"].to_numpy() for side in ("lo", "hi"))


class TestSums:
    @pytest.mark.parametrize("of", ["sum", "mean"])
    def test_are_covered(self, of):
        intervals, future, paths, _ = fitted()
        found = intervals.sum_interval(future, of=of)
        assert found.columns == ["unique_id", "f", "f-lo-90", "f-hi-90"]
        lower, upper = bounds(found)
        total = getattr(paths, of)(axis=2)
        # Bounds of 60 series from 117 overlapping windows each and from the panel: a standard error of about .01.
        assert abs(np.mean((lower <= total) & (total <= upper)) - 0.9) < 0.03
        assert_allclose(found["f"], getattr(future["f"].to_numpy().reshape(-1, H), of)(axis=1))

    def test_steps_depend_on_each_other(self):
        """Independent steps would have a sum of half the width that four times a step has, and less than these."""
        intervals, future, _, _ = fitted()
        lower, upper = bounds(intervals.predict_interval(future))
        widths = (upper - lower).reshape(-1, H)
        low, high = bounds(intervals.sum_interval(future))
        assert ((high - low) < 0.98 * widths.sum(axis=1)).mean() > 0.9
        assert ((high - low) > 1.1 * (widths**2).sum(axis=1) ** 0.5).mean() > 0.9

    def test_mean_and_weights(self):
        intervals, future, _, _ = fitted()
        total, mean = (intervals.sum_interval(future, of=of) for of in ("sum", "mean"))
        assert_allclose(mean["f-lo-90"], total["f-lo-90"] / H)
        last_two = future.with_columns(cutoff=pl.lit(119)).filter(pl.col("ds") > 121)
        found, whole = (intervals.sum_interval(frame, weights=[0, 0, 1, 1]) for frame in (last_two, future))
        assert_allclose(found["f-hi-90"], whole["f-hi-90"])
        for wrong in ([1.0], [0, 0, 0, 0], [np.nan] * 4):
            with pytest.raises(ValueError, match="weights must hold 4 finite numbers, not all 0; got"):
                intervals.sum_interval(future, weights=wrong)
        with pytest.raises(ValueError, match=r"^of must be \"sum\" or \"mean\"; got 'max'\.$"):
            intervals.sum_interval(future, of="max")
        with pytest.raises(ValueError, match="must add up to more than 0"):
            intervals.sum_interval(future, of="mean", weights=[1, -1, 0, 0])

    def test_a_window_that_lacks_a_step_is_refused_and_a_missing_forecast_has_no_sum(self):
        intervals, future, _, _ = fitted()
        lacks = "1 window lacks rows for some of the 4 steps that count; the first, of 's0', has 3"
        with pytest.raises(ValueError, match=lacks):
            intervals.sum_interval(future.filter((pl.col("unique_id") != "s0") | (pl.col("ds") != 122)))
        with pytest.raises(ValueError, match=r"60 windows lack rows for some of the 2 steps that count; .* has 1"):
            intervals.sum_interval(future.filter(pl.col("ds") != 122), weights=[0, 0, 1, 1])
        holes = future.with_columns(f=pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col("f")))
        found = intervals.sum_interval(holes)
        assert found["f-lo-90"].is_nan().to_list() == [True] + [False] * 59

    def test_a_new_series_is_covered(self):
        """Each series has its own spread; sums of relative errors, in which each series counts once."""
        rng = np.random.default_rng(1)
        covered = []
        for _ in range(30):
            spread = np.exp(0.5 * rng.standard_normal(41))
            y = 100.0 + spread[:, None] * autoregressive(41, 12, rng)
            frame = long_frame(y, range(11), level, 11).filter(pl.col("unique_id") != "s40")
            future = long_frame(y, [11], level).drop("y").filter(pl.col("unique_id") == "s40")
            lower, upper = bounds(pm.PanelIntervals(0.9).fit(frame).sum_interval(future))
            new = spread[40] * autoregressive(200, H, rng).sum(axis=1) + 400.0
            covered.append(np.mean((lower <= new) & (new <= upper)))
        assert np.mean(covered) > 0.9 - 3 * np.std(covered) / 30**0.5

    def test_do_not_depend_on_what_was_asked_before_an_update(self):
        """Errors ten times as large from moment 60 on: the rule of sums learned before that is another."""
        rng = np.random.default_rng(2)
        y = 100.0 + autoregressive(20, 120, rng) * np.where(np.arange(120) < 60, 1.0, 10.0)
        past = long_frame(y, range(119), level, 119)
        older, newer = past.filter(pl.col("ds") < 60), past.filter(pl.col("ds") >= 60)
        early, late = (long_frame(y, [made], level).drop("y", "cutoff") for made in (59, 119))
        asked, unasked = (pm.PanelIntervals(0.9).fit(older) for _ in range(2))
        asked.sum_interval(early)
        assert asked.update(newer).sum_interval(late).equals(unasked.update(newer).sum_interval(late))

    def test_limits_hold_for_sums(self):
        intervals, future, _, _ = fitted(y_min=99.9 - 20)
        low = intervals.sum_interval(future.with_columns(f=pl.lit(79.9)))["f-lo-90"]
        assert_allclose(low, 4 * 79.9)
        assert intervals.sum_interval(future, weights=[-1, 0, 0, 0])["f-hi-90"].max() <= -79.9

    def test_of_each_cutoff(self):
        intervals, future, _, _ = fitted()
        two = pl.concat([future.with_columns(cutoff=119 + i, ds=pl.col("ds") + i) for i in range(2)])
        found = intervals.sum_interval(two)
        assert found.columns[:2] == ["unique_id", "cutoff"]
        assert len(found) == 120


class TestPaths:
    @pytest.mark.parametrize("context", [None, "recent"])
    @pytest.mark.parametrize("n_paths", [137, 200])
    def test_have_the_margins_of_the_intervals(self, context, n_paths):
        intervals, future, _, _ = fitted(confidence_level=(0.8, 0.9), context=context)
        some = pl.concat([future[:40], future[:H].with_columns(unique_id=pl.lit("new"))])
        paths = intervals.sample_paths(some, n_paths, random_state=0)
        assert paths.columns == ["unique_id", "ds", "f", "sample_id"]
        values = paths["f"].to_numpy().reshape(n_paths, len(some))
        expected = intervals.predict_interval(some)
        for level in (80, 90):
            tails = np.quantile(values, [(100 - level) / 200, (100 + level) / 200], axis=0, method="hazen")
            assert_allclose(tails, [*bounds(expected, level)], rtol=1e-12)

    def test_depend_on_each_other_as_the_past_did(self):
        intervals, future, happened, _ = fitted()
        paths = intervals.sample_paths(future, 300, random_state=1)["f"].to_numpy().reshape(300, -1, H)
        for reduce in (np.max, np.min, np.sum):
            lower, upper = np.quantile(reduce(paths, axis=2), [0.05, 0.95], axis=0)
            seen = reduce(happened, axis=2)
            assert abs(np.mean((lower <= seen) & (seen <= upper)) - 0.9) < 0.03
        off = paths - paths.mean(axis=0)
        assert_allclose(np.corrcoef(off.reshape(-1, H).T)[0, 1], 0.62, atol=0.05)  # RHO / (1 + RHO^2)^.5

    def test_are_the_same_with_the_same_seed_and_of_the_library_that_was_given(self):
        intervals, future, _, _ = fitted(n_series=5)
        one, other = (intervals.sample_paths(future, 10, random_state=3) for _ in range(2))
        assert one.equals(other)
        assert isinstance(intervals.sample_paths(future.to_pandas(), 2), pd.DataFrame)
        with pytest.raises(ValueError, match="n_paths must be an integer"):
            intervals.sample_paths(future, 0)

    def test_a_single_path_is_one_of_many(self):
        intervals, future, _, _ = fitted(n_series=5)
        single = [intervals.sample_paths(future, 1, random_state=seed)["f"].to_numpy() for seed in range(20)]
        assert np.std(single, axis=0).min() > 0.3

    @pytest.mark.parametrize("pooling", ["auto", "series", "panel"])
    def test_of_new_and_short_series_have_the_margins_of_the_panel(self, pooling):
        rng = np.random.default_rng(5)
        y = 100.0 + autoregressive(30, 60, rng)
        past = long_frame(y, range(55), best, known=55)
        past = past.filter((pl.col("unique_id") != "s0") | (pl.col("cutoff") > 50))
        intervals = pm.PanelIntervals(0.8, pooling=pooling).fit(past)
        ahead = long_frame(y, [55], best).drop("y").filter(pl.col("unique_id").is_in(["s0", "s1"]))
        ahead = pl.concat([ahead, ahead.filter(pl.col("unique_id") == "s0").with_columns(unique_id=pl.lit("new"))])
        paths = intervals.sample_paths(ahead, 200, random_state=0)
        drawn = np.quantile(paths["f"].to_numpy().reshape(200, -1), 0.9, axis=0, method="hazen")
        assert_allclose(drawn, intervals.predict_interval(ahead)["f-hi-80"].to_numpy(), rtol=1e-9)

    def test_need_whole_windows(self):
        rng = np.random.default_rng(0)
        y = 100.0 + autoregressive(5, 60, rng)
        frame = long_frame(y, range(59), best, 59).filter(
            pl.col("cutoff") % 4 != pl.col("ds") % 2 + pl.col("ds") // 2 % 2
        )
        frame = frame.filter((pl.col("ds") - pl.col("cutoff") - 1) != pl.col("cutoff") % 4)
        intervals = pm.PanelIntervals(0.9).fit(frame)
        future = long_frame(y, [59], best).drop("y", "cutoff")
        with pytest.raises(ValueError, match="sample paths need windows of which all steps are known"):
            intervals.sample_paths(future, 10)
        with pytest.raises(ValueError, match="sums need windows of which all steps that count are known"):
            intervals.sum_interval(future)

    def test_values_keep_quantiles_at_exact_levels(self):
        at = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
        for n in (1, 2, 7, 100):
            values = margins_kept(np.array([-9.0, -1.0, 0.0, 1.0, 30.0]), at, np.array([0.05, 0.95]), n)
            assert (np.diff(values) >= 0.0).all()
            if n > 1:
                assert_allclose(np.quantile(values, [0.05, 0.95], method="hazen"), [-1.0, 1.0])


class TestContext:
    def test_errors_that_remember_are_covered_by_narrower_intervals(self):
        widths = {}
        for context in (None, "recent"):
            intervals, future, happened, _ = fitted(level, context=context)
            lower, upper = (one.reshape(-1, H) for one in bounds(intervals.predict_interval(future)))
            inside = (lower <= happened) & (happened <= upper)
            widths[context] = (upper - lower).mean(axis=0)
            if context:
                assert_allclose(inside.mean(axis=(0, 1)), 0.9, atol=0.035)
                low, high = bounds(intervals.sum_interval(future))
                total = happened.sum(axis=2)
                assert abs(np.mean((low <= total) & (total <= high)) - 0.9) < 0.03
        assert_allclose((widths["recent"] / widths[None])[0], (1 - RHO**2) ** 0.5, rtol=0.1)
        assert (widths["recent"][1:] < widths[None][1:]).all()

    def test_scales_that_last(self):
        """The size of errors changes every thirty moments; intervals are narrow where the last errors were small."""
        rng = np.random.default_rng(0)
        size = np.where(rng.random((80, 5)) < 0.5, 0.3, 3.0).repeat(30, axis=1)
        y = 100.0 + size * rng.standard_normal((80, 150))
        frame = long_frame(y, range(149), level, 149)
        intervals = pm.PanelIntervals(0.9, context="recent").fit(frame)
        lower, upper = bounds(intervals.predict_interval(long_frame(y, [149], level).drop("y")))
        ids = long_frame(y, [149], level)["unique_id"].to_list()[::H]
        is_small = np.array([size[int(one[1:]), -1] < 1.0 for one in ids])
        width = (upper - lower)[::H]
        assert np.median(width[~is_small]) > 3.0 * np.median(width[is_small])

    def test_features(self):
        rng = np.random.default_rng(0)
        promo = (rng.random((40, 100)) < 0.3).astype(float)
        y = 100.0 + 5.0 * promo + rng.standard_normal((40, 100))
        frame = long_frame(y, range(99 - H), level, 99)
        number = frame["unique_id"].str.slice(1).cast(int).to_numpy()
        frame = frame.with_columns(promo=promo[number, frame["ds"].to_numpy()])
        intervals = pm.PanelIntervals(0.9, context="recent", features=["promo"]).fit(frame)
        assert intervals.models_ == ["f"]
        future = long_frame(y, [99], level).drop("y").with_columns(promo=pl.col("ds") % 2.0)
        lower, upper = bounds(intervals.predict_interval(future))
        centre = (lower + upper) / 2
        is_promo = future["promo"].to_numpy() == 1.0
        assert_allclose(centre[is_promo].mean() - centre[~is_promo].mean(), 5.0, atol=0.3)
        assert (upper - lower).mean() < 4.2  # 3.3 if all were known of promotions
        with pytest.raises(ValueError, match="has no column 'promo'"):
            intervals.predict_interval(future.drop("promo"))
        with pytest.raises(ValueError, match="features are for a panel with a context"):
            pm.PanelIntervals(features=["promo"]).fit(frame)

    def test_an_update_moves_the_next_interval(self):
        intervals, _, _, y = deepcopy(fitted(level, context="recent"))
        later = np.concatenate([y, np.full((60, 1), 110.0)], axis=1)
        ahead = long_frame(later, [120], level).drop("y")
        before = intervals.predict_interval(ahead)
        newest = long_frame(later, range(116, 120), level, 120).filter(pl.col("ds") == 120)
        after = intervals.update(newest).predict_interval(ahead)
        assert (after["f-lo-90"] > before["f-lo-90"] + 1.0).mean() > 0.95

    def test_series_whose_forecasts_go_back_to_the_season_are_told_from_others(self):
        rng = np.random.default_rng(6)
        season, n = 6, 600
        around = rng.standard_normal((4, n))  # noise around the same values: a naive forecast is off by its own noise
        following = np.cumsum(rng.standard_normal((4, n // season, season)), axis=1).reshape(4, n)
        y = np.concatenate([around, following])
        forecasts = np.concatenate([np.full((8, season), np.nan), y[:, :-season]], axis=1)
        means = _means_of_seasons(y, season)
        found = _returned(y - forecasts, forecasts, means, season)
        assert_allclose(found[:, -1], np.repeat([-1.0, 0.0], 4), atol=0.15)
        y[:, 300:] = np.nan  # what comes later does not count
        assert_allclose(_returned(y - forecasts, forecasts, means, season)[:, :300], found[:, :300])

    def test_few_windows_are_refused(self):
        with pytest.raises(ValueError, match="takes 50 windows, of all series together, with a known target of step 1"):
            fitted(n_series=2, n=20, context="recent")

    def test_new_series_have_the_answer_without_a_context(self):
        intervals, future, _, _ = fitted(level, context="recent")
        plain, _, _, _ = fitted(level)
        new = future[:H].with_columns(unique_id=pl.lit("new"))
        assert intervals.predict_interval(new).equals(plain.predict_interval(new))


def test_a_target_that_changed_in_another_window_is_refused_by_update():
    intervals, _, _, y = fitted()
    changed = y.copy()
    changed[3, 118] += 1.0
    with pytest.raises(ValueError, match="targets or forecasts were given before with other values, the first of 's3'"):
        intervals.update(long_frame(changed, [114], best, 119))
