"""Panels of series in long frames: what they guarantee, how series and panel are mixed, and what frames are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter.conformal.quantile import ScoreQuantile
from pimeter.conformal.scores import TAILS, CalibrationScores
from pimeter.coverage import tail_levels
from pimeter.forecast.panel_bounds import MIN_OWN_WINDOWS, Rule, mixed, new_series_bounds
from pimeter.forecast.window_weights import Weighting, spread

pytestmark = pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
START = np.datetime64("2026-01-01", "us")


def panel(n_series=12, n_windows=40, h=3, seed=0, days=True, levels=None):
    """Noise around 100 times the size of a series, forecast by its mean; a row for each series, cutoff and step."""
    rng = np.random.default_rng(seed)
    levels = np.exp(rng.standard_normal(n_series)) if levels is None else np.asarray(levels)
    y = levels[:, None] * (100.0 + rng.standard_normal((n_series, n_windows + h)))
    made = np.arange(n_windows)
    at = made[:, None] + np.arange(1, h + 1)
    moments = START + np.arange(n_windows + h) * np.timedelta64(1, "D") if days else np.arange(n_windows + h)
    frame = pl.DataFrame(
        {
            "unique_id": np.repeat([f"s{i}" for i in range(n_series)], at.size),
            "ds": np.tile(moments[at.ravel()], n_series),
            "cutoff": np.tile(moments[np.repeat(made, h)], n_series),
            "y": y[:, at].ravel(),
            "mean": np.repeat(100.0 * levels, at.size),
        }
    )
    return frame, moments, y


def future(ids, forecasts, start, h=3):
    ds = start + np.arange(1, h + 1) * (np.timedelta64(1, "D") if isinstance(start, np.datetime64) else 1)
    return pl.DataFrame(
        {"unique_id": np.repeat(ids, h), "ds": np.tile(ds, len(ids)), "mean": np.repeat(forecasts, h).astype(float)}
    )


def fitted(level=0.9, **settings):
    frame, moments, y = panel()
    return pm.PanelIntervals(level, **settings).fit(frame), moments, y


class TestIntervals:
    def test_columns_are_those_of_forecasters(self):
        intervals, moments, _ = fitted((0.8, 0.95))
        found = intervals.predict_interval(future(["s0"], [100.0], moments[-1]))
        assert found.columns == [
            "unique_id", "ds", "mean", "mean-lo-95", "mean-lo-80", "mean-hi-80", "mean-hi-95",
        ]  # fmt: skip
        assert (found["mean-lo-95"] < found["mean-lo-80"]).all()
        assert (found["mean-hi-95"] > found["mean-hi-80"]).all()

    @pytest.mark.parametrize("pooling", ["auto", "series", "panel"])
    def test_coverage_of_independent_errors(self, pooling):
        frame, moments, _ = panel(n_series=60, n_windows=100)
        intervals = pm.PanelIntervals(0.9, pooling=pooling).fit(frame)
        rng = np.random.default_rng(1)
        level = frame.group_by("unique_id", maintain_order=True).first()["mean"].to_numpy()
        found = intervals.predict_interval(future([f"s{i}" for i in range(60)], level, moments[-1]))
        lower, upper = (found[f"mean-{side}-90"].to_numpy().reshape(60, 3) for side in ("lo", "hi"))
        new = level[:, None, None] / 100.0 * (100.0 + rng.standard_normal((60, 3, 400)))
        inside = (lower[..., None] <= new) & (new <= upper[..., None])
        assert abs(inside.mean() - 0.9) < 0.015
        width = (upper - lower)[:, 0] / level
        assert np.ptp(width) < 0.9 * width.mean()  # each in its own scale

    def test_the_panel_steadies_short_series(self):
        """Twelve windows say little of a 95 % interval: with those of other series the score is better."""
        scores = {}
        for pooling in ("series", "auto"):
            frame, moments, _ = panel(n_series=80, n_windows=12, seed=3)
            intervals = pm.PanelIntervals(0.95, pooling=pooling).fit(frame)
            level = frame.group_by("unique_id", maintain_order=True).first()["mean"].to_numpy()
            found = intervals.predict_interval(future([f"s{i}" for i in range(80)], level, moments[-1]))
            bounds = np.stack([found[f"mean-{side}-95"].to_numpy() for side in ("lo", "hi")], axis=1)
            new = np.random.default_rng(1).standard_normal((50, 240))
            unit = np.repeat(level, 3) / 100.0
            scores[pooling] = np.mean([pm.interval_score(100.0 + one, bounds / unit[:, None], 0.95) for one in new])
        assert scores["auto"] < 0.95 * scores["series"]

    @pytest.mark.parametrize("n_series", [40, 80])
    def test_a_new_series_is_covered(self, n_series):
        """Series have different levels and numbers of windows, and errors of one spread within a series."""
        rng = np.random.default_rng(0)
        covered = []
        for _ in range(60):
            size = np.exp(rng.standard_normal(n_series + 1))
            spread_of = np.exp(0.5 * rng.standard_normal(n_series + 1))
            parts = []
            for i in range(n_series):
                n = int(rng.integers(1, 8))
                made = np.arange(n)
                y = 100 * size[i] + size[i] * spread_of[i] * rng.standard_normal(n)
                parts.append(
                    pl.DataFrame({"unique_id": [i] * n, "cutoff": made, "ds": made + 1, "y": y, "m": 100.0 * size[i]})
                )
            intervals = pm.PanelIntervals(0.9).fit(pl.concat(parts))
            f = 100.0 * size[-1]
            found = intervals.predict_interval(pl.DataFrame({"unique_id": [-1], "ds": [99], "m": [f]}))
            new = f + size[-1] * spread_of[-1] * rng.standard_normal(200)
            covered.append(np.mean((found["m-lo-90"][0] <= new) & (new <= found["m-hi-90"][0])))
        assert np.mean(covered) > 0.9 - 3 * np.std(covered) / 60**0.5
        assert np.mean(covered) < 0.97

    def test_new_and_short_series_say_so(self):
        frame, moments, _ = panel()
        few = frame.filter((pl.col("unique_id") != "s0") | (pl.col("cutoff") > moments[36]))
        intervals = pm.PanelIntervals(0.8).fit(few)
        answers = dict(intervals.series_.select("unique_id", "answer").iter_rows())
        assert answers["s0"] == "panel"
        assert answers["s1"] == "own"
        with pytest.warns(pm.CoverageWarning, match=r"2 of 3 series are new or have fewer than 5 windows"):
            found = intervals.predict_interval(future(["s0", "new", "s1"], [100.0, 100.0, 100.0], moments[-1]))
        assert_allclose(found["mean-lo-80"][:3], found["mean-lo-80"][3:6])
        assert MIN_OWN_WINDOWS == 5

    def test_a_panel_that_is_too_small_for_a_new_series_says_so(self):
        intervals, moments, _ = fitted()
        with pytest.warns(pm.CoverageWarning, match="of 12 series. These are too few: 90 % takes 19"):
            intervals.predict_interval(future(["new"], [100.0], moments[-1]))

    def test_a_higher_level_holds_a_lower_one(self):
        of_panel = np.array([-1.5, -1.0, 1.0, 1.5])  # lower bounds at 50 and 60 %, then upper ones
        found = spread(np.arange(9.0)[None, None], np.ones((1, 9)), tail_levels(np.array([0.5, 0.6])))
        bounds = mixed(found, of_panel[[1, 0, 2, 3]], Rule(Weighting(), 10.0, (2.0, 0.5)))
        assert (bounds.lower[..., 1] <= bounds.lower[..., 0]).all()
        assert (bounds.upper[..., 1] >= bounds.upper[..., 0]).all()

    def test_a_long_gap_before_a_forecast_leaves_a_series_its_own_answer(self):
        ages = np.array([[1.0, 5.0, 9.0]])
        weighting = Weighting(half_life=4.0)
        assert_allclose(weighting(ages + 1e6), weighting(ages))

    def test_the_unit_of_a_series_does_not_matter(self):
        one, moments, _ = panel(levels=np.ones(12))
        other = one.with_columns(
            pl.when(pl.col("unique_id") == "s3").then(pl.col(name) * 1e4).otherwise(pl.col(name)).alias(name)
            for name in ("y", "mean")
        )
        found = [
            pm.PanelIntervals(0.9).fit(frame).predict_interval(future(["s3"], [unit * 100.0], moments[-1]))
            for frame, unit in ((one, 1.0), (other, 1e4))
        ]
        assert_allclose(found[1]["mean-hi-90"], 1e4 * found[0]["mean-hi-90"], rtol=1e-9)

    def test_limits(self):
        intervals, moments, _ = fitted(0.95, y_min=0.0, y_max=1e6)
        found = intervals.predict_interval(future(["s0"], [1e-3], moments[-1]))
        assert (found["mean-lo-95"] == 0.0).all()
        with pytest.raises(ValueError, match="targets lie beyond"):
            pm.PanelIntervals(y_max=1.0).fit(panel()[0])

    def test_a_season_whose_errors_differ(self):
        """Errors are ten times as large on every seventh day."""
        frame, moments, _ = panel(n_series=30, n_windows=140, h=1, levels=np.ones(30))
        day = (pl.col("ds") - pl.lit(START)).dt.total_days() % 7
        frame = frame.with_columns(y=100 + (pl.col("y") - 100) * pl.when(day == 0).then(10.0).otherwise(1.0))
        intervals = pm.PanelIntervals(0.9, season_length=7).fit(frame)
        assert intervals.rules_["mean"].weighting.season_length == 7
        made = moments[-1]
        widths = []
        for ahead in range(7):
            start = made + ahead * np.timedelta64(1, "D")
            found = intervals.predict_interval(future(["s0"], [100.0], start, h=1))
            widths.append((found["mean-hi-90"] - found["mean-lo-90"])[0])
        loud = [(i + 141) % 7 == 0 for i in range(7)]
        assert np.mean(np.array(widths)[loud]) > 4 * np.mean(np.array(widths)[~np.array(loud)])


class TestFrames:
    def test_libraries_agree(self):
        frame, moments, _ = panel()
        ahead = future(["s0", "s5"], [100.0, 50.0], moments[-1])
        one = pm.PanelIntervals(0.9).fit(frame).predict_interval(ahead)
        other = pm.PanelIntervals(0.9).fit(frame.to_pandas()).predict_interval(ahead.to_pandas())
        assert isinstance(other, pd.DataFrame)
        assert_array_equal(one["mean-lo-90"].to_numpy(), other["mean-lo-90"].to_numpy())
        lazy = pm.PanelIntervals(0.9).fit(frame.lazy()).predict_interval(ahead.lazy())
        assert_array_equal(one["mean-lo-90"].to_numpy(), lazy["mean-lo-90"].to_numpy())

    def test_dask(self):
        dd = pytest.importorskip("dask.dataframe")
        frame, moments, _ = panel()
        ahead = future(["s0"], [100.0], moments[-1])
        one = pm.PanelIntervals(0.9).fit(frame).predict_interval(ahead)
        other = pm.PanelIntervals(0.9).fit(dd.from_pandas(frame.to_pandas(), npartitions=3)).predict_interval(ahead)
        assert_array_equal(one["mean-lo-90"].to_numpy(), other["mean-lo-90"].to_numpy())

    def test_the_order_of_rows_does_not_matter(self):
        frame, moments, _ = panel()
        ahead = future(["s0", "s5"], [100.0, 50.0], moments[-1])
        one = pm.PanelIntervals(0.9, pooling="series").fit(frame).predict_interval(ahead)
        mixed = frame.sample(fraction=1.0, shuffle=True, seed=0)
        other = pm.PanelIntervals(0.9, pooling="series").fit(mixed).predict_interval(ahead.reverse()).reverse()
        # The rule is learned on series drawn at random, here all of them: sums differ by rounding alone.
        assert_allclose(one["mean-lo-90"].to_numpy(), other["mean-lo-90"].to_numpy(), rtol=1e-9)

    def test_numbers_and_dates_agree(self):
        found = []
        for days in (True, False):
            frame, moments, _ = panel(days=days)
            ahead = future(["s0"], [100.0], moments[-1])
            found.append(pm.PanelIntervals(0.9).fit(frame).predict_interval(ahead)["mean-lo-90"].to_numpy())
        assert_array_equal(*found)

    def test_time_zones(self):
        frame, moments, _ = panel()
        zoned = frame.with_columns(
            pl.col("ds", "cutoff").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        )
        plain = future(["s0"], [100.0], moments[-1])
        ahead = plain.with_columns(pl.col("ds").dt.replace_time_zone("UTC"))
        one = pm.PanelIntervals(0.9).fit(frame).predict_interval(plain)
        other = pm.PanelIntervals(0.9).fit(zoned).predict_interval(ahead)
        assert_array_equal(one["mean-lo-90"].to_numpy(), other["mean-lo-90"].to_numpy())
        with pytest.raises(ValueError, match="'ds' holds dates; in fit it held dates in a time zone"):
            pm.PanelIntervals(0.9).fit(zoned).predict_interval(plain)
        with pytest.raises(ValueError, match="'ds' holds dates in a time zone, 'cutoff' dates"):
            pm.PanelIntervals(0.9).fit(frame.with_columns(pl.col("ds").dt.replace_time_zone("UTC")))

    @pytest.mark.parametrize("freq", ["MS", "B"])
    def test_months_and_working_days_are_steps(self, freq):
        frame, _, _ = panel(days=False)
        dates = pd.date_range("2020-01-01", periods=60, freq=freq)
        named = frame.to_pandas()
        named["ds"], named["cutoff"] = dates[named["ds"]], dates[named["cutoff"]]
        ahead = pd.DataFrame({"unique_id": "s0", "ds": dates[43:46], "mean": 100.0})
        one = pm.PanelIntervals(0.9).fit(named).predict_interval(ahead)
        other = pm.PanelIntervals(0.9).fit(frame).predict_interval(future(["s0"], [100.0], 42))
        assert_array_equal(one["mean-lo-90"].to_numpy(), other["mean-lo-90"].to_numpy())

    @pytest.mark.parametrize(("freq", "h"), [("B", 12), ("MS", 30)])
    def test_steps_to_come_are_counted_as_those_of_the_past(self, freq, h):
        """Over weekends, and over many months: as with times that are numbers; also after an update."""
        frame, _, _ = panel(n_series=3, n_windows=70, h=h, days=False)
        moments = pd.Series(pd.date_range("2020-01-01", periods=140, freq=freq))
        plain = frame.to_pandas()
        dated = plain.assign(ds=plain["ds"].map(moments), cutoff=plain["cutoff"].map(moments))
        to_come = future(["s0"], [100.0], 69 + h, h=h).to_pandas()
        bounds = []
        for past, ahead in ((plain, to_come), (dated, to_come.assign(ds=to_come["ds"].map(moments)))):
            is_old = plain["cutoff"] < 60
            intervals = pm.PanelIntervals(0.9).fit(past[is_old]).update(past[~is_old])
            bounds.append(intervals.predict_interval(ahead)[["mean-lo-90", "mean-hi-90"]].to_numpy())
        assert_array_equal(*bounds)

    def test_a_time_farther_away_than_any_is_no_next_step(self):
        from pimeter.forecast.long_frames import Clock

        months = np.cumsum([0.0, *[31.0, 28.0, 31.0, 30.0] * 5])
        clock = Clock.of(months, "numbers", lambda: [months]).extended(months[-1] + np.array([31.0, 152.0]))
        assert_array_equal(clock.numbers(months[-1] + np.array([0.0, 31.0, 152.0])) - 20, [0, 1, 5])

    def test_windows_far_apart_are_counted_by_the_time_between_them(self):
        frame, *_ = panel(n_windows=400, h=5, days=False)
        weekly = frame.filter(pl.col("cutoff") % 24 == 0)
        intervals = pm.PanelIntervals(0.9, season_length=24).fit(weekly)
        assert_array_equal(np.diff(intervals._windows.cutoffs[0]), 24.0)

    @pytest.mark.parametrize("freq", ["h", "MS"])
    def test_times_between_two_steps_are_refused(self, freq):
        frame, _, _ = panel(days=False)
        moments = pd.date_range("2026-01-01", periods=60, freq=freq)
        plain = frame.to_pandas()
        past = plain.assign(ds=moments[plain["ds"]], cutoff=moments[plain["cutoff"]])
        intervals = pm.PanelIntervals(0.9).fit(past)
        minutes = pd.Timedelta("20min")
        between = past.assign(unique_id="new", ds=past["ds"] - minutes, cutoff=past["cutoff"] - minutes)
        with pytest.raises(ValueError, match=r"156 rows have a 'cutoff' .* the first is 2025-12-31 23:40"):
            intervals.update(between[:156].assign(ds=past["ds"]))

    def test_gaps_and_missing_targets_are_counted(self):
        frame, moments, _ = panel()
        holes = frame.with_columns(y=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("y")))
        intervals = pm.PanelIntervals(0.9).fit(holes)
        assert intervals.n_missing_ == holes["y"].null_count()
        fewer = frame.filter(pl.int_range(pl.len()) % 7 != 0)
        again = pm.PanelIntervals(0.9).fit(fewer)
        assert again.n_missing_ == len(frame) - len(fewer)
        ahead = future(["s0"], [100.0], moments[-1])
        assert_allclose(
            intervals.predict_interval(ahead)["mean-lo-90"], again.predict_interval(ahead)["mean-lo-90"], rtol=1e-9
        )

    def test_a_series_without_a_known_target_gets_the_answer_of_the_panel(self):
        frame, moments, _ = panel(n_series=30)
        unknown = frame.with_columns(y=pl.when(pl.col("unique_id") == "s3").then(None).otherwise(pl.col("y")))
        found = pm.PanelIntervals(0.9).fit(unknown).predict_interval(future(["s3"], [100.0], moments[-1]))
        assert (found["mean-lo-90"] < found["mean-hi-90"]).all()

    def test_a_panel_of_one_window_each(self):
        """Nothing is learned of a series by itself: all get the answer of the panel, and say so."""
        frame, moments, _ = panel(n_series=40, n_windows=1)
        intervals = pm.PanelIntervals(0.9).fit(frame)
        assert set(intervals.series_["answer"]) == {"panel"}
        with pytest.warns(pm.CoverageWarning, match="1 of 1 series is new or has fewer than 5 windows: it gets the"):
            found = intervals.predict_interval(future(["s0"], [100.0], moments[-1]))
        assert (found["mean-lo-90"] < found["mean-hi-90"]).all()

    def test_several_models_and_one_without_forecasts(self):
        frame, moments, _ = panel()
        more = frame.with_columns(high=pl.col("mean") + 1.0, none=pl.lit(None, pl.Float64), shop=pl.lit("x"))
        with pytest.warns(pm.CoverageWarning, match="1 model was left out, since none of its errors is known: 'none'"):
            intervals = pm.PanelIntervals(0.9).fit(more)
        assert intervals.models_ == ["mean", "high"]
        assert list(intervals.excluded_) == ["none"]
        ahead = future(["s0"], [100.0], moments[-1]).with_columns(high=pl.col("mean") + 1.0)
        found = intervals.predict_interval(ahead)
        assert_allclose(found["mean-lo-90"], found["high-lo-90"], rtol=2e-3)  # errors tell that it is too high by 1
        assert pm.PanelIntervals(models=["high"]).fit(more).models_ == ["high"]

    def test_other_names_of_columns(self):
        frame, moments, _ = panel()
        names = {"unique_id": "shop", "ds": "day", "y": "sold", "cutoff": "made"}
        intervals = pm.PanelIntervals(0.9, id_col="shop", time_col="day", target_col="sold", cutoff_col="made")
        found = intervals.fit(frame.rename(names)).predict_interval(
            future(["s0"], [100.0], moments[-1]).rename({"unique_id": "shop", "ds": "day"})
        )
        assert "mean-lo-90" in found.columns

    def test_missing_forecasts_have_no_interval(self):
        intervals, moments, _ = fitted()
        ahead = future(["s0"], [100.0], moments[-1]).with_columns(
            mean=pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col("mean"))
        )
        found = intervals.predict_interval(ahead)["mean-lo-90"].to_numpy()
        assert np.isnan(found).tolist() == [False, True, False]


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda f: pl.concat([f, f[5:7]]), "2 combinations of 'unique_id', 'cutoff' and 'ds' occur in several"),
            (lambda f: pl.concat([f, f[5:6]]), "1 combination of 'unique_id', 'cutoff' and 'ds' occurs in several"),
            (lambda f: f.with_columns(y=pl.col("y") + pl.int_range(pl.len())), "the target of .* Were targets revised"),
            (lambda f: f.with_columns(y=pl.col("y") + (pl.int_range(pl.len()) == 4)), "the target of 1 row differs"),
            (lambda f: f.with_columns(ds=pl.col("cutoff")), "rows have a 'ds' that is not after their 'cutoff'; the"),
            (
                lambda f: f.with_columns(ds=pl.when(pl.int_range(pl.len()) == 7).then("cutoff").otherwise("ds")),
                r"1 row has a 'ds' that is not after its 'cutoff'; the first is row 7 \('s0'\)",
            ),
            (lambda f: f.drop("cutoff"), "frame has no column 'cutoff'"),
            (lambda f: f.with_columns(ds=pl.col("ds").cast(str)), "must hold dates or numbers"),
            (lambda f: f.with_columns(y=pl.lit("a")), "column 'y' must hold numbers"),
            (lambda f: f.with_columns(y=pl.lit(np.inf)), "column 'y' is infinite, or beyond 1e\\+150, in row 0"),
            (lambda f: f.with_columns(unique_id=pl.lit(None, pl.String)), "Each row needs its series"),
            (lambda f: f.with_columns(ds=pl.col("ds").shift(1)), "column 'ds' is missing in 1 row"),
            (lambda f: f.drop("mean"), "has no column of forecasts"),
            (lambda f: f.with_columns(mean=pl.lit(None, pl.Float64)), "has a forecast whose target is known"),
            (lambda f: f[:0], "frame has no rows"),
            (lambda f: f.to_numpy(), "must be a frame of pandas, polars, dask or pyarrow; got ndarray"),
        ],
    )
    def test_frames_that_cannot_be_meant(self, change, message):
        with pytest.raises(ValueError, match=message):
            pm.PanelIntervals().fit(change(panel()[0]))

    def test_steps_that_fit_has_not_seen(self):
        intervals, moments, _ = fitted()
        with pytest.raises(ValueError, match="holds a forecast of step 4; windows of fit have 3"):
            intervals.predict_interval(future(["s0"], [100.0], moments[-1], h=4))

    def test_forecasts_from_before_what_is_known(self):
        intervals, moments, _ = fitted()
        with pytest.raises(ValueError, match="from before targets that fit or update was given, the first of 's0'"):
            intervals.predict_interval(future(["s0"], [100.0], moments[-2]))

    def test_a_failed_fit_changes_nothing(self):
        intervals, moments, _ = fitted()
        ahead = future(["s0"], [100.0], moments[-1])
        before = intervals.predict_interval(ahead)
        with pytest.raises(ValueError, match="no rows"):
            intervals.fit(panel()[0][:0])
        assert intervals.predict_interval(ahead).equals(before)


class TestUpdate:
    def test_is_fitting_to_all_with_the_rule_that_was_learned(self):
        frame, moments, _ = panel()
        older = frame.filter(pl.col("cutoff") < moments[30])
        known = older.with_columns(y=pl.when(pl.col("ds") <= moments[30]).then(pl.col("y")))
        ahead = future(["s0", "s7"], [100.0, 30.0], moments[-1])
        updated = pm.PanelIntervals(0.9).fit(known)
        updated.update(frame.filter(pl.col("ds") > moments[30]))
        whole = pm.PanelIntervals(0.9).fit(frame)
        whole.rules_ = updated.rules_
        whole._after_windows()
        for side in ("lo", "hi"):
            assert_allclose(
                updated.predict_interval(ahead)[f"mean-{side}-90"], whole.predict_interval(ahead)[f"mean-{side}-90"]
            )

    def test_what_was_given_may_come_again_unless_it_changed(self):
        intervals, moments, _ = fitted()
        frame, _, _ = panel()
        ahead = future(["s0"], [100.0], moments[-1])
        before = intervals.predict_interval(ahead)
        assert intervals.update(frame[:30]).predict_interval(ahead).equals(before)
        with pytest.raises(ValueError, match="given before with other values, the first of 's0'"):
            intervals.update(frame[:30].with_columns(pl.col("y") + 1.0))
        assert intervals.predict_interval(ahead).equals(before)

    def test_windows_that_come_step_by_step_have_the_level_of_all_their_forecasts(self):
        frame, *_ = panel(days=False)
        frame = frame.with_columns(mean=pl.col("mean") * (1.0 + 0.1 * (pl.col("ds") - pl.col("cutoff"))))
        frame = frame.with_columns(none=pl.when(pl.col("ds") <= 20).then(pl.col("mean")))
        whole = pm.PanelIntervals(0.9).fit(frame)
        parts = pm.PanelIntervals(0.9).fit(frame.filter(pl.col("ds") <= 20))
        for now in range(21, 43):
            parts.update(frame.filter(pl.col("ds") == now))
        for model in ("mean", "none"):
            assert_allclose(parts._windows.levels[model], whole._windows.levels[model], rtol=1e-12)

    def test_new_series_join(self):
        intervals, moments, _ = fitted()
        more, _, _ = panel(seed=5)
        intervals.update(more.with_columns(unique_id=pl.col("unique_id") + "x"))
        assert len(intervals.series_) == 24
        found = intervals.predict_interval(future(["s3x"], [100.0], moments[-1]))
        assert found["mean-lo-90"].is_finite().all()

    def test_longer_windows_and_other_models_are_refused(self):
        intervals, _, _ = fitted()
        with pytest.raises(ValueError, match="update holds step 5"):
            intervals.update(panel(h=5, seed=1)[0].with_columns(unique_id=pl.lit("n") + pl.col("unique_id")))
        with pytest.raises(ValueError, match="has no column 'mean'"):
            intervals.update(panel()[0].rename({"mean": "other"}))


def test_weighted_quantiles_are_those_of_repeated_values():
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((3, 2, 50))
    errors[0, 0, :20] = np.nan
    found = spread(errors, np.ones((3, 50)), np.array([0.1, 0.9]))
    for i in range(3):
        for j in range(2):
            known = errors[i, j][~np.isnan(errors[i, j])]
            assert_allclose(found.quantiles[i, j], np.quantile(known, [0.1, 0.9], method="hazen"))
            assert_allclose(found.n_effective[i, j], len(known))


def test_windows_of_no_weight_do_not_count():
    rng = np.random.default_rng(0)
    errors, ages = rng.standard_normal((2, 1, 60)), np.tile(np.arange(60.0)[::-1], (2, 1))
    weights = Weighting(season_length=6)(ages)
    found = spread(errors, weights, np.array([0.25]))
    assert_allclose(found.quantiles[0, 0, 0], np.quantile(errors[0, 0, 5::6], 0.25, method="hazen"))
    assert_allclose(Weighting(half_life=3.0)(ages)[0, -7:-1:3], [0.25, 0.5])


def test_bounds_of_a_new_series_are_those_of_the_conformal_core():
    """Also at levels that are ranks, and at those that so few series cannot give."""
    rng = np.random.default_rng(0)
    errors, levels = rng.standard_normal((39, 2, 6)), np.array([0.5, 0.8, 0.9, 0.95, 0.99])
    errors[rng.random(errors.shape) < 0.4] = np.nan
    errors[7, 1] = np.nan
    forecasts = 1.0 + rng.random((39, 6))
    found = new_series_bounds(errors, forecasts, levels)
    for j in range(2):
        relative = errors[:, j] / forecasts
        is_known = ~np.isnan(relative)
        scores = CalibrationScores(relative[is_known][:, None], groups=np.nonzero(is_known)[0])
        assert found.n_series[j] == scores.n_counted == 39 - j
        for i, level in enumerate(levels.tolist()):
            below, above = ScoreQuantile(scores, TAILS["equal"], level, "marginal").margins[0, 0]
            assert (found.lower[j, i], found.upper[j, i]) == (-below, above)


def test_plot(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    intervals, moments, _ = fitted((0.8, 0.95))
    axes = intervals.plot(future(["s0", "s1"], [100.0, 100.0], moments[-1]))
    assert [ax.get_title(loc="left") for ax in axes] == ["s0", "s1"]
    axes[0].figure.savefig(tmp_path / "panel.png")
    plt.close("all")
