"""`IntervalCalibrator`: intervals of any model hold as often as guaranteed, whatever the model says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import pimeter as pm
from pimeter.regression.bands import Additive, Blended

MULTIPLIED = ("multiplicative", "normalised", "distributional")  # a multiple of no width is none
METHODS = ("auto", "additive", *MULTIPLIED)


def drawn(rng, n):
    """Predictions, what their spread should be, and skewed targets."""
    mean, spread = 3.0 * rng.normal(size=n), np.exp(rng.normal(size=n))
    return mean, spread, mean + (rng.exponential(size=n) - 1.0) * spread


def said(kind, mean, spread):
    """A model that is far too sure, and skewed to the wrong side."""
    quantiles = np.stack([mean - spread, mean - 0.2 * spread, mean + 0.3 * spread], axis=1)
    return {
        "normal": {"y_pred": mean, "std": 0.3 * spread},
        "quantiles": {"quantiles": quantiles, "levels": [0.05, 0.5, 0.95]},
        "intervals": {"intervals": quantiles[:, [0, 2]]},
        "levels": {"intervals": {0.9: quantiles[:, [0, 2]], 0.5: quantiles[:, [0, 2]] / 2.0 + quantiles[:, 1:2] / 2.0}},
        "samples": {"samples": mean[:, None] + spread[:, None] * np.linspace(-0.5, 0.4, 21)},
    }[kind]


KINDS = ("normal", "quantiles", "intervals", "levels", "samples")


class TestGroups:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("n_groups", [19, 120])
    def test_rows_of_a_new_group_are_covered(self, method, n_groups):
        """The first groups have one row, the others 10; 300 draws have a standard error of about .006."""
        group = np.concatenate([np.arange(n_groups // 2), np.repeat(np.arange(n_groups // 2, n_groups), 10)])
        inside = []
        for draw in range(300):
            rng = np.random.default_rng([n_groups, draw])
            common, spread = rng.normal(size=n_groups), np.exp(rng.normal(size=len(group)))
            y = spread * (2.0 * common[group] + rng.normal(size=len(group)))
            calibrator = pm.IntervalCalibrator(0.9, method=method, random_state=draw)
            calibrator.fit(y, y_pred=0 * y, std=spread, groups=group)
            new_spread = np.exp(rng.normal(size=100))
            new_y = new_spread * (2.0 * rng.normal(size=100) + rng.normal(size=100))
            bounds = calibrator.predict_interval(y_pred=0 * new_y, std=new_spread)
            inside.append(pm.coverage_score(new_y, bounds))
        assert calibrator.guaranteed_level_ == 0.9
        assert np.isnan(calibrator.coverage_range_).all()
        assert np.mean(inside) > 0.9 - 3 * np.std(inside) / 300**0.5

    def test_each_group_counts_once(self):
        y = np.concatenate([np.full(100, 1.0), np.arange(2.0, 21.0)])
        group = np.concatenate([np.zeros(100), np.arange(1.0, 20.0)])
        y[:100] += np.linspace(0.0, 0.01, 100)
        calibrator = pm.IntervalCalibrator(0.9, method="additive").fit(y, intervals=np.zeros((119, 2)), groups=group)
        assert calibrator.margin_[1] == 19.0  # the 19th of 20, not the 108th of 119
        again = pm.IntervalCalibrator.from_json(calibrator.to_json())
        assert (again.margin_ == calibrator.margin_).all()

    def test_copies_in_a_group_are_one_row(self):
        rng = np.random.default_rng(0)
        mean, spread, y = drawn(rng, 40)
        copied = {name: np.repeat(value, 3, axis=0) for name, value in said("normal", mean, spread).items()}
        calibrator = pm.IntervalCalibrator(0.9, method="additive")
        calibrator.fit(np.repeat(y, 3), **copied, groups=np.repeat(np.arange(40), 3))
        assert calibrator.n_calibration_ == 40
        assert_allclose(
            calibrator.margin_,
            pm.IntervalCalibrator(0.9, method="additive").fit(y, **said("normal", mean, spread)).margin_,
        )
        with pytest.warns(pm.CoverageWarning, match="or give copies the same group"):
            calibrator.fit(np.repeat(y, 3), **copied, groups=np.arange(120) % 20)

    def test_another_number_of_groups(self):
        with pytest.raises(ValueError, match="groups must hold one group for each of the 3 rows"):
            pm.IntervalCalibrator(0.9).fit([1.0, 2.0, 3.0], intervals=np.zeros((3, 2)), groups=[1, 2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 60, 250])
def test_coverage_is_that_of_the_rank_on_average(kind, method, n):
    # The mean of 40 coverages with Beta(k, m + 1 - k): 5 standard errors leave one false alarm in 1e6 of 75 cells.
    covered = []
    for draw in range(40):
        rng = np.random.default_rng([n, draw])
        mean, spread, y = drawn(rng, n)
        new_mean, new_spread, new_y = drawn(rng, 500)
        calibrator = pm.IntervalCalibrator(0.9, method=method, random_state=draw).fit(y, **said(kind, mean, spread))
        covered.append(pm.coverage_score(new_y, calibrator.predict_interval(**said(kind, new_mean, new_spread))))
    m = calibrator.n_calibration_
    rank = np.ceil((m + 1) * 0.9 - 1e-9)
    expected = rank / (m + 1)
    error = np.sqrt(expected * (1 - expected) * (1 / (m + 2) + 1 / 500) / 40)
    assert calibrator.guaranteed_level_ == 0.9
    assert abs(np.mean(covered) - expected) < 5 * error


def test_training_conditional_covers_in_nineteen_sets_of_twenty():
    failed = 0
    for draw in range(100):
        rng = np.random.default_rng(draw)
        mean, spread, y = drawn(rng, 120)
        calibrator = pm.IntervalCalibrator(0.9, guarantee="training-conditional", random_state=draw)
        calibrator.fit(y, **said("normal", mean, spread))
        mean, spread, _ = drawn(rng, 1000)
        low, high = ((calibrator.predict_interval(**said("normal", mean, spread)).T - mean) / spread) + 1.0
        failed += (stats.expon.cdf(high) - stats.expon.cdf(low)).mean() < 0.9
    assert failed <= stats.binom(100, 0.05).ppf(0.9999)


def test_additive_is_conformalised_quantile_regression():
    rng = np.random.default_rng(0)
    low, y = rng.normal(size=(2, 99))
    intervals = np.stack([low, low + 1.0], axis=1)
    margin = np.sort(np.maximum(intervals[:, 0] - y, y - intervals[:, 1]))[89]
    calibrator = pm.IntervalCalibrator(0.9, method="additive").fit(y, intervals=intervals)
    np.testing.assert_allclose(calibrator.margin_, margin)
    np.testing.assert_allclose(calibrator.predict_interval(intervals=[[0.0, 1.0]]), [[-margin, 1.0 + margin]])
    assert pm.coverage_score(y, calibrator.predict_interval(intervals=intervals)) == pytest.approx(90 / 99)


def test_normalised_and_distributional_agree_for_standard_deviations():
    rng = np.random.default_rng(1)
    mean, spread, y = drawn(rng, 99)
    margin = np.sort(np.abs(y - mean) / spread)[89]
    for method in ("normalised", "distributional", "multiplicative"):
        calibrator = pm.IntervalCalibrator(0.9, method=method).fit(y, y_pred=mean, std=spread)
        found = calibrator.predict_interval(y_pred=[5.0], std=[2.0])
        np.testing.assert_allclose(found, [[5.0 - 2.0 * margin, 5.0 + 2.0 * margin]], rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_rounding_loses_no_calibration_target_and_levels_are_nested(method, kind):
    mean, spread, y = drawn(np.random.default_rng(2), 199)
    shift = 1e6
    given = said(kind, mean + shift, spread)
    calibrator = pm.IntervalCalibrator(0.9, method=method, random_state=0).fit(y + shift, **given)
    inside = calibrator.predict_interval(**given)
    if method != "auto":
        assert np.count_nonzero((inside[:, 0] <= y + shift) & (y + shift <= inside[:, 1])) == 180
    several = calibrator.predict_interval(**given, confidence_level=[0.5, 0.8, 0.9])
    assert several.shape == (199, 2, 3)
    np.testing.assert_array_equal(several[..., 2], inside)
    assert (np.diff(several[:, 0]) <= 0.0).all()
    assert (np.diff(several[:, 1]) >= 0.0).all()
    assert (several[:, 0] <= several[:, 1]).all()


def test_auto_learns_as_much_as_rows_allow_and_says_what():
    mean, spread, y = drawn(np.random.default_rng(3), 3000)

    def fitted(n, **options):
        calibrator = pm.IntervalCalibrator(0.9, random_state=0, **options)
        return calibrator.fit(y[:n], y_pred=mean[:n], std=spread[:n])

    assert isinstance(fitted(49).shape_, Additive)
    assert isinstance(fitted(60).shape_, Blended)
    assert (fitted(60).n_calibration_, fitted(60).shape_.moves) == (40, None)
    assert (fitted(200).n_calibration_, fitted(200).shape_.moves.shape) == (100, (2, 3))
    assert fitted(3000).n_calibration_ == 2000
    assert fitted(60, guarantee="training-conditional").guaranteed_


@pytest.mark.parametrize(("useless", "best"), [(False, 1.0), (True, 0.0)])
def test_auto_follows_widths_that_tell_something_and_no_others(useless, best):
    rng = np.random.default_rng(4)
    mean, spread, _ = drawn(rng, 2000)
    y = mean + rng.normal(size=2000) * (1.0 if useless else spread)
    old, new = slice(0, 500), slice(500, None)
    calibrator = pm.IntervalCalibrator(0.9, random_state=0).fit(y[old], y_pred=mean[old], std=spread[old])
    assert calibrator.shape_.blend == best
    wide = np.ptp(calibrator.predict_interval(y_pred=mean[new], std=spread[new]), axis=1)
    ideal = 2 * stats.norm.ppf(0.95) * (1.0 if useless else spread[new])
    assert np.median(np.abs(np.log(wide / ideal))) < 0.15


@pytest.mark.parametrize(("method", "width"), [("auto", 0.0), ("additive", 0.0), *((one, 1e-9) for one in METHODS)])
def test_intervals_without_width_and_infinite_bounds(method, width):
    rng = np.random.default_rng(5)
    y = rng.normal(size=400)
    intervals = np.stack([np.full(400, -1.0), np.full(400, 1.0)], axis=1)
    intervals[:20] = 0.0, width
    intervals[20:60, 0] = -np.inf
    intervals[60:70] = -np.inf, np.inf
    calibrator = pm.IntervalCalibrator(0.8, method=method, random_state=0).fit(y, intervals=intervals)
    found = calibrator.predict_interval(intervals=intervals)
    assert not np.isnan(found).any()
    assert (found[:, 0] <= found[:, 1]).all()
    np.testing.assert_array_equal(found[20:60, 0], -np.inf)
    if method != "distributional":  # which knows nothing of such a distribution beyond its finite bound
        assert np.isfinite(found[20:60, 1]).all()
    np.testing.assert_array_equal(np.isinf(found[60:70]), True)
    assert np.isfinite(found[70:]).all()
    assert pm.coverage_score(y, found) > 0.75


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 30, 250])
def test_rows_of_which_little_is_said_are_covered_all_the_same(method, n):
    y = np.random.default_rng(n).normal(size=n)
    nothing = np.full(n, np.inf)
    for given in (
        {"intervals": np.stack([-nothing, nothing], axis=1)},
        {"intervals": np.stack([-nothing, np.zeros(n)], axis=1)},
        {"quantiles": np.tile([0.0, 0.0, 1e-9 * (method in MULTIPLIED)], (n, 1)), "levels": [0.1, 0.5, 0.9]},
        {"y_pred": np.zeros(n), "std": np.full(n, 1e-12)},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.CoverageWarning)
            calibrator = pm.IntervalCalibrator(0.9, method=method, random_state=0).fit(y, **given)
        found = calibrator.predict_interval(**given)
        assert not np.isnan(found).any()
        assert pm.coverage_score(y, found) > 0.85


def test_targets_that_are_all_predicted_exactly():
    calibrator = pm.IntervalCalibrator(0.9, random_state=0).fit(np.zeros(60), y_pred=np.zeros(60), std=np.ones(60))
    found = calibrator.predict_interval(y_pred=[1.0], std=[1.0])
    assert found[0, 0] <= 1.0 <= found[0, 1]
    assert np.ptp(found) < 0.1


def test_all_intervals_without_width_become_constant_ones():
    rng = np.random.default_rng(6)
    mean = rng.normal(size=300)
    y = mean + rng.normal(size=300)
    points = np.stack([mean, mean], axis=1)
    calibrator = pm.IntervalCalibrator(0.9, random_state=0).fit(y, intervals=points)
    wide = np.ptp(calibrator.predict_interval(intervals=points), axis=1)
    assert 0.8 < np.median(wide) / (2 * stats.norm.ppf(0.95)) < 1.25


def test_too_few_rows_warn_and_say_what_they_guarantee():
    with pytest.warns(pm.CoverageWarning, match=r"12 scores can guarantee 92.3 %, not 95 %; 19 are needed"):
        calibrator = pm.IntervalCalibrator().fit(np.arange(12.0), y_pred=np.zeros(12), std=np.ones(12))
    assert calibrator.guaranteed_level_ == pytest.approx(12 / 13)
    assert not calibrator.guaranteed_
    enough = pm.IntervalCalibrator(0.9).fit(np.arange(12.0), y_pred=np.zeros(12), std=np.ones(12))
    with pytest.warns(pm.CoverageWarning, match="19 are needed"):
        enough.predict_interval(y_pred=[0.0], std=[1.0], confidence_level=0.95)


def test_copies_of_rows_guarantee_nothing():
    mean, spread, y = (np.tile(part, 3) for part in drawn(np.random.default_rng(7), 100))
    with pytest.warns(pm.CoverageWarning, match=r"200 of 300 rows are copies of others, by prediction and target"):
        calibrator = pm.IntervalCalibrator(0.9).fit(y, y_pred=mean, std=spread)
    assert np.isnan(calibrator.guaranteed_level_)
    assert calibrator.guarantee_reason_ == "some rows are copies of others"


def test_what_was_fitted_stays_after_a_failure_and_other_kinds_are_refused():
    mean, spread, y = drawn(np.random.default_rng(8), 100)
    calibrator = pm.IntervalCalibrator(0.9, random_state=0)
    with pytest.raises(NotFittedError):
        calibrator.predict_interval(y_pred=mean, std=spread)
    before = calibrator.fit(y, y_pred=mean, std=spread).predict_interval(y_pred=mean, std=spread)
    with pytest.raises(ValueError, match="std has 100 rows, but there are 50 targets"):
        calibrator.fit(y[:50], y_pred=mean, std=spread)
    with pytest.raises(ValueError, match="y_true must be finite"):
        calibrator.fit(np.where(y > 0, np.nan, y), y_pred=mean, std=spread)
    with pytest.raises(ValueError, match="Calibrate outputs one by one"):
        calibrator.fit(y[:, None], y_pred=mean, std=spread)
    np.testing.assert_array_equal(before, calibrator.predict_interval(y_pred=mean, std=spread))
    with pytest.raises(ValueError, match=r"fit was given normal at levels .* predict_interval intervals at levels"):
        calibrator.predict_interval(intervals=[[0.0, 1.0]])
    quantiles = pm.IntervalCalibrator(0.9).fit(y, quantiles=np.stack([mean, mean + 1.0], axis=1), levels=[0.05, 0.95])
    with pytest.raises(ValueError, match="give both in the same way"):
        quantiles.predict_interval(quantiles=[[0.0, 1.0]], levels=[0.1, 0.9])
    with pytest.raises(ValueError, match="The 'method' parameter"):
        pm.IntervalCalibrator(method="best").fit(y, y_pred=mean, std=spread)


def test_it_clones_and_the_same_seed_gives_the_same_intervals():
    mean, spread, y = drawn(np.random.default_rng(9), 500)
    calibrator = pm.IntervalCalibrator(0.8, guarantee="approximate", random_state=1)
    assert clone(calibrator).get_params() == calibrator.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (
            clone(calibrator).fit(y, y_pred=mean, std=spread).predict_interval(y_pred=mean, std=spread)
            for _ in range(2)
        )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1e9, 1e200])
def test_intervals_follow_the_unit(factor):
    mean, spread, y = drawn(np.random.default_rng(10), 500)
    plain, scaled = (
        pm.IntervalCalibrator(0.9, random_state=0)
        .fit(f * y, y_pred=f * mean, std=f * spread)
        .predict_interval(y_pred=f * mean, std=f * spread)
        for f in (1.0, factor)
    )
    np.testing.assert_allclose(scaled / factor, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", MULTIPLIED)
def test_rows_without_width_are_refused_where_widths_are_multiplied(method):
    # They would move the bounds of all other rows to 1e18 or infinity, with a guarantee and without a warning.
    y = np.random.default_rng(11).normal(size=200)
    intervals = np.tile([-1.0, 1.0], (200, 1))
    calibrator = pm.IntervalCalibrator(0.9, method=method).fit(y, intervals=intervals)
    message = r'no width in 40 of 200 rows, the first is row 160 .*"additive"'
    for point in ([0.25, 0.25], [1e9, 1e9 + 2e-7]):
        some = np.where(np.arange(200)[:, None] < 160, intervals, point)
        with pytest.raises(ValueError, match=message):
            clone(calibrator).fit(y, intervals=some)
        with pytest.raises(ValueError, match=message):
            calibrator.predict_interval(intervals=some)
    assert np.isfinite(calibrator.predict_interval(intervals=[[-np.inf, 1.0]])[0, 1]) == (method != "distributional")


def test_targets_beyond_tied_quantiles_warn_of_infinite_intervals():
    y = np.random.default_rng(12).normal(size=200)
    quantiles = np.tile([-1.0, 0.0, 1.0], (200, 1))
    quantiles[:80, 2] = 0.0
    calibrator = pm.IntervalCalibrator(0.9, method="distributional")
    with pytest.warns(pm.CoverageWarning, match=r'margin is infinite.*tied or infinite.*method="auto"'):
        calibrator.fit(y, quantiles=quantiles, levels=[0.05, 0.5, 0.95])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrator.fit(-np.abs(y), quantiles=quantiles, levels=[0.05, 0.5, 0.95])
    assert np.isfinite(calibrator.margin_).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_few_draws_are_calibrated_at_any_level(method):
    rng = np.random.default_rng(13)
    centre, y = rng.normal(size=(2, 999))
    draws = centre[:, None] + rng.normal(size=(999, 5))
    calibrator = pm.IntervalCalibrator(0.95, method=method, random_state=0).fit(centre + y, samples=draws)
    found = calibrator.predict_interval(samples=draws, confidence_level=[0.9, 0.95, 0.99])
    for i, level in enumerate((0.9, 0.95, 0.99)):
        assert abs(pm.coverage_score(centre + y, found[..., i]) - level) < 0.02
