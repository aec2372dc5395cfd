from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pimeter as pm
from pimeter.paper import coverage_width_criterion
from pimeter.scorers import coverage_scorer, crps_scorer, interval_scorer

TARGETS = np.array([0.0, 2.0, 6.0, 10.0])
BOUNDS = np.array([[0.0, 4.0], [-3.0, 1.0], [6.0, 7.0], [-np.inf, 12.0]])
LEVELS = st.floats(0.02, 0.98)
OF_INTERVALS = pytest.mark.parametrize(
    "score",
    [
        pytest.param(pm.coverage_score, id="coverage_score"),
        pytest.param(partial(coverage_width_criterion, confidence_level=0.95), id="coverage_width_criterion"),
        pytest.param(partial(pm.interval_score, confidence_level=0.95), id="interval_score"),
    ],
)

values = st.floats(-1e3, 1e3, width=32)
samples = hnp.arrays(float, st.integers(2, 12), elements=values)


@st.composite
def scored(draw):
    """Targets of some outputs and intervals of some levels around anything."""
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=5))
    n_levels = draw(st.integers(1, 3))
    bounds = draw(hnp.arrays(float, (*shape, 2, n_levels), elements=values))
    return draw(hnp.arrays(float, shape, elements=values)), np.sort(bounds, axis=2)


def test_one_row_is_enough():
    assert pm.coverage_score([1.0], [[0.0, 2.0]]) == 1.0
    assert pm.crps_score([1.0], [3.0], 0.5) == 2.0
    with pytest.raises(
        ValueError, match=r"y_true must hold at least one value; got shape \(0,\)\. Give the rows of a held-out set\.$"
    ):
        pm.coverage_score([], np.empty((0, 2)))


def test_a_target_on_a_bound_is_inside_and_bounds_may_be_infinite():
    assert pm.coverage_score(TARGETS, BOUNDS) == 0.75
    for interval in ([[0.0, 1.0], [2.0, 3.0]], [[-1.0, 0.0], [1.0, 2.0]]):
        assert pm.coverage_score([0.0, 2.0], interval) == 1.0
        assert coverage_width_criterion([0.0, 2.0], interval, 0.95) == 0.5
    assert pm.mean_width_score(BOUNDS) == np.inf
    assert pm.interval_score(TARGETS, BOUNDS, 0.95) == np.inf


def test_rows_of_weight_zero_are_ignored_even_if_infinite():
    assert_allclose(pm.mean_width_score(BOUNDS, sample_weight=[1, 1, 2, 0]), 10 / 4)
    assert_allclose(pm.coverage_score(TARGETS, BOUNDS, sample_weight=[1, 1, 2, 0]), 0.75)


@pytest.mark.parametrize("unit", [1.5e308, 1e308, 1e-300, 5e-324])
def test_only_ratios_of_weights_count_however_large_or_small(unit):
    weight = np.array([1.0, 1.0, 1.0, 0.0]) * unit
    assert_allclose(pm.coverage_score(TARGETS, BOUNDS, sample_weight=weight), 2 / 3)
    quantiles = np.tile([0.0, 1.0], (4, 1))
    ones = pm.crps_score(TARGETS, quantiles, [0.3, 0.7], sample_weight=[1, 1, 1, 0])
    assert_allclose(pm.crps_score(TARGETS, quantiles, [0.3, 0.7], sample_weight=weight), ones)


@given(scored(), st.sampled_from(["coverage", "criterion", "interval", "width"]))
def test_each_output_and_level_is_scored_by_itself(pair, name):
    y_true, y_interval = pair
    levels = np.linspace(0.5, 0.9, y_interval.shape[-1])

    def score(target, interval, level, **options):
        if name == "coverage":
            return pm.coverage_score(target, interval, **options)
        if name == "width":
            return pm.mean_width_score(interval, bound_axis=target.ndim, **options)
        if name == "interval":
            return pm.interval_score(target, interval, level, **options)
        extent = np.arange(1.0, 1 + target.shape[1]) if target.ndim == 2 else options.pop("extent")
        return coverage_width_criterion(target, interval, level, target_range=extent, **options)

    every = score(y_true, y_interval, levels, multioutput="raw_values")
    assert every.shape == (y_true.shape[1], levels.size)
    for j in range(y_true.shape[1]):
        extra = {"extent": 1.0 + j} if name == "criterion" else {}
        assert_allclose(score(y_true[:, j], y_interval[:, j], levels, **extra), every[j])
        for i, level in enumerate(levels):
            alone = score(y_true[:, j], y_interval[:, j, :, i], level, **extra)
            assert isinstance(alone, float)
            assert_allclose(alone, every[j, i])
    assert_allclose(score(y_true, y_interval, levels), every.mean(axis=0))
    assert_allclose(score(y_true, y_interval[..., 0], levels[0]), every[:, 0].mean())


@given(scored(), st.data())
def test_whole_weights_are_copies(pair, data):
    y_true, y_interval = pair
    weight = data.draw(hnp.arrays(int, len(y_true), elements=st.integers(0, 3)).filter(np.any))
    copies = np.repeat(np.arange(len(y_true)), weight)
    levels = np.linspace(0.5, 0.9, y_interval.shape[-1])
    for score in (pm.coverage_score, lambda *of, **options: pm.interval_score(*of, levels, **options)):
        assert_allclose(
            score(y_true, y_interval, sample_weight=weight), score(y_true[copies], y_interval[copies]), atol=1e-9
        )
    quantiles = np.sort(y_interval[:, :, 0], axis=-1)
    assert_allclose(
        pm.crps_score(y_true, quantiles, levels, sample_weight=weight),
        pm.crps_score(y_true[copies], quantiles[copies], levels),
        atol=1e-9,
    )


@given(scored(), st.integers(-8, 8), st.floats(-100, 100, width=16))
def test_scores_follow_the_unit(pair, power, shift):
    """Scaling by powers of two and shifts of few digits keep floats exact, so that nobody changes sides."""
    y_true, y_interval = np.round(pair[0]), np.round(pair[1])
    levels = np.linspace(0.5, 0.9, y_interval.shape[-1])
    scale, shift = 2.0**power, round(shift)
    moved, moved_interval = scale * (y_true + shift), scale * (y_interval + shift)
    assert_array_equal(pm.coverage_score(moved, moved_interval), pm.coverage_score(y_true, y_interval))
    for score in (pm.interval_score, lambda y, interval, _: pm.mean_width_score(interval, bound_axis=2)):
        assert_allclose(score(moved, moved_interval, levels), scale * score(y_true, y_interval, levels))
    if (np.ptp(y_true, axis=0) > 0).all():
        assert_allclose(
            coverage_width_criterion(moved, moved_interval, levels),
            coverage_width_criterion(y_true, y_interval, levels),
        )
    quantiles = y_interval[:, :, 0]
    assert_allclose(
        pm.crps_score(moved, scale * (quantiles + shift), levels),
        scale * pm.crps_score(y_true, quantiles, levels),
        atol=1e-9 * scale,
    )


# Interval score


@given(scored(), LEVELS)
def test_interval_score_is_the_pinball_loss_of_both_bounds(pair, level):
    y_true, lower, upper = pair[0][:, 0], *pair[1][:, 0, :, 0].T
    below, above = (1 - level) / 2, (1 + level) / 2
    losses = mean_pinball_loss(y_true, lower, alpha=below) + mean_pinball_loss(y_true, upper, alpha=above)
    assert_allclose(pm.interval_score(y_true, pair[1][:, 0, :, 0], level), losses / below, rtol=1e-9, atol=1e-9)


@given(samples, LEVELS, st.tuples(values, values).map(sorted))
def test_no_interval_beats_the_quantiles_of_the_distribution(sample, level, other):
    """The sample is the distribution: its own quantiles have the smallest expectation, exactly."""
    truth = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    scores = [pm.interval_score(sample, np.tile(bounds, (sample.size, 1)), level) for bounds in (truth, other)]
    assert scores[0] <= scores[1] * (1 + 1e-9) + 1e-9


def test_interval_score_finds_the_true_bounds_of_normal_errors():
    y_true = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    radii = np.linspace(1.0, 3.0, 201)
    scores = [pm.interval_score(y_true, np.tile([-r, r], (y_true.size, 1)), 0.9) for r in radii]
    assert_allclose(radii[np.argmin(scores)], norm.ppf(0.95), atol=0.01)  # the grid's step


def test_a_scalar_level_goes_with_an_axis_of_one_level():
    assert_array_equal(
        pm.interval_score(TARGETS, BOUNDS[:3].repeat([1, 1, 2], axis=0)[..., None], 0.9),
        [pm.interval_score(TARGETS, BOUNDS[:3].repeat([1, 1, 2], axis=0), 0.9)],
    )


# The paper's criterion


def test_criterion_as_in_the_appendix():
    narrow = np.stack([TARGETS, TARGETS + 1], axis=1)
    narrow[1] += 1  # one of four is missed
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.95), 0.1 * (1 + np.exp(-0.1 * (0.75 - 0.95))))
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.75), 0.1)
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.95, eta=50), 0.1 * (1 + np.exp(50 * 0.2)))
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.75, target_range=20), 0.05)
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.95, eta=0), 0.2)  # doubled, however much is missing


def test_rows_of_weight_zero_have_no_range():
    narrow = np.stack([TARGETS, TARGETS + 1], axis=1)
    assert_allclose(coverage_width_criterion(TARGETS, narrow, 0.95, sample_weight=[0.5, 1, 3, 0]), 1 / 6)
    assert_allclose(coverage_width_criterion(TARGETS / 20, narrow / 20, 0.95, sample_weight=[0.5, 1, 3, 0]), 1 / 6)


def test_coverage_and_width_of_the_criterion_are_weighted():
    """Coverage 3/4 and width (3 * 2 + 6) / 4 of 10."""
    assert coverage_width_criterion([0, 10], [[0, 2], [20, 26]], 0.7, sample_weight=[3, 1]) == pytest.approx(0.3)


def test_one_range_is_that_of_all_outputs():
    y_true = np.stack([TARGETS, 10 * TARGETS], axis=1)
    interval = y_true[..., None] + [0, 2]
    for found in (
        coverage_width_criterion(y_true, interval, 0.95, target_range=4, multioutput="raw_values"),
        coverage_width_criterion(y_true, interval[..., None], 0.95, target_range=4, multioutput="raw_values")[:, 0],
    ):
        assert_allclose(found, [0.5, 0.5])
    each = coverage_width_criterion(y_true, interval, 0.95, target_range=[4, 8], multioutput="raw_values")
    assert_allclose(each, [0.5, 0.25])
    assert_allclose(coverage_width_criterion(y_true, interval, 0.95, multioutput="raw_values"), [0.2, 0.02])


@pytest.mark.parametrize("bounds", [[-np.inf, 9.0], [1.0, np.inf]])
def test_half_lines_are_infinitely_wide(bounds):
    for score in (coverage_width_criterion, pm.interval_score):
        assert score([2.0, 3.0], [bounds, [0.0, 4.0]], 0.95) == np.inf


@given(st.integers(1, 60), st.floats(0.1, 9))
def test_coverage_equal_to_its_level_is_not_fined(n, weight):
    y_true = np.arange(n + 1.0)
    interval = np.stack([y_true, y_true + 0.5], axis=1)
    interval[0] += 0.25
    for weights in (None, np.full(n + 1, weight)):
        score = coverage_width_criterion(y_true, interval, n / (n + 1), sample_weight=weights)
        assert_allclose(score, 0.5 / n)


# CRPS


@given(samples, hnp.arrays(float, st.integers(1, 6), elements=values))
def test_crps_on_middles_is_that_of_the_ensemble(sample, ensemble):
    """E|X - y| - E|X - X'| / 2, X and X' drawn from the members."""
    ensemble = np.sort(ensemble)
    levels = (np.arange(ensemble.size) + 0.5) / ensemble.size
    exact = np.abs(sample[:, None] - ensemble).mean() - np.abs(ensemble[:, None] - ensemble).mean() / 2
    score = pm.crps_score(sample, np.tile(ensemble, (sample.size, 1)), levels)
    assert_allclose(score, exact, rtol=1e-9, atol=1e-9)


# Whole per cent: levels that differ by a rounding error have mirror images that do not differ.
@given(samples, values, st.sets(st.integers(1, 49), min_size=1, max_size=4).map(lambda s: np.array(sorted(s)) / 100))
def test_crps_of_a_point_is_its_absolute_error(sample, point, half):
    levels = np.concatenate([half, 1 - half])
    score = pm.crps_score(sample, np.full((sample.size, levels.size), point), levels)
    assert_allclose(score, mean_absolute_error(sample, np.full(sample.size, point)), rtol=1e-9, atol=1e-9)


@given(samples, hnp.arrays(float, 3, elements=LEVELS, unique=True), hnp.arrays(float, 3, elements=values))
def test_no_quantiles_beat_those_of_the_distribution(sample, levels, others):
    truth = np.quantile(sample, levels, method="inverted_cdf")
    scores = [pm.crps_score(sample, np.tile(row, (sample.size, 1)), levels) for row in (truth, others)]
    assert scores[0] <= scores[1] * (1 + 1e-9) + 1e-9
    shuffled = pm.crps_score(sample, np.tile(truth[[2, 0, 1]], (sample.size, 1)), levels[[2, 0, 1]])
    assert_allclose(shuffled, scores[0])


@pytest.mark.parametrize(
    ("levels", "tolerance"),
    [
        (np.arange(1, 100) / 100, 0.002),
        ((np.arange(20) + 0.5) / 20, 0.003),
        (np.arange(1, 10) / 10, 0.05),
        (np.array([0.05, 0.25, 0.5, 0.75, 0.95]), 0.03),
        (np.concatenate([[0.01, 0.025], np.arange(1, 20) / 20, [0.975, 0.99]]), 0.003),
        (np.concatenate([np.linspace(0.5, 0.6, 50), np.arange(1, 10) / 20, np.arange(13, 20) / 20]), 0.02),
    ],
)
def test_crps_of_a_normal_forecast_however_the_levels_are_spaced(levels, tolerance):
    y_true = norm.ppf((np.arange(5000) + 0.5) / 5000)
    exact = np.mean(y_true * (2 * norm.cdf(y_true) - 1) + 2 * norm.pdf(y_true) - 1 / np.sqrt(np.pi))
    score = pm.crps_score(y_true, np.tile(norm.ppf(levels), (y_true.size, 1)), levels)
    assert_allclose(score, exact, rtol=tolerance)


def test_crps_scores_each_output_by_itself():
    y_true, quantiles = np.array([[1.0, 10.0], [2.0, 30.0]]), np.array([[[0, 2], [9, 10]], [[2, 2], [10, 20]]])
    raw = pm.crps_score(y_true, quantiles, [0.25, 0.75], multioutput="raw_values")
    assert_allclose(raw, [pm.crps_score(y_true[:, j], quantiles[:, j], [0.25, 0.75]) for j in range(2)])
    assert_allclose(pm.crps_score(y_true, quantiles, [0.25, 0.75]), raw.mean())


# Input that cannot be scored


@OF_INTERVALS
@pytest.mark.parametrize(
    ("y_true", "y_interval", "message"),
    [
        (TARGETS, BOUNDS[:3], "For y_true of shape (4,) y_interval must have shape (4, 2), or (4, 2, L)"),
        (TARGETS[:, None], BOUNDS, "ravel() makes a single column of targets (n,)"),
        (TARGETS, np.zeros((4, 3)), "of a frame take the columns lower and upper"),
        (TARGETS, BOUNDS[:, ::-1], "at [0] they are 4.0 and 0.0 (4 such of 4). Check the order of the bounds."),
        (TARGETS, np.full((4, 2), np.inf), "at [0] they are inf and inf"),
        (TARGETS, [[0, 1], [0, np.nan], [0, 1], [0, 1]], "y_interval must not be NaN; y_interval[1, 1] is nan"),
        ([0, np.inf, 1, 2], BOUNDS, "y_true must be finite; y_true[1] is inf (1 such of 4 values)"),
        ([], np.empty((0, 2)), "y_true must hold at least one value"),
        (["a", "b", "c", "d"], BOUNDS, "y_true must hold real numbers; got dtype <U1"),
        (np.zeros((4, 1, 1)), BOUNDS, "y_true must have shape (n,) or (n, k); got (4, 1, 1)"),
        (TARGETS, np.zeros((4, 2, 3, 2)), "or (4, 2, L) for L levels; got (4, 2, 3, 2). Give the lower and the upper"),
        (np.zeros((4, 3)), BOUNDS, "must have shape (4, 3, 2), or (4, 3, 2, L) for L levels; got (4, 2)."),
        (TARGETS, np.full((4, 2), -np.inf), "at [0] they are -inf and -inf (4 such of 4)"),
        (np.zeros((2, 2)), [[[0, 1], [0, 1]], [[0, 1], [2, 1]]], "at [1, 1] they are 2.0 and 1.0 (1 such of 4)"),
        ([0, np.inf, -np.inf, 2], BOUNDS, "y_true[1] is inf (2 such of 4 values). Leave these rows out."),
    ],
)
def test_bad_arrays_are_named(score, y_true, y_interval, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        score(y_true, y_interval)


@OF_INTERVALS
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], "hold one weight for each of the 4 rows; got shape (3,)."),
        ([1, 1, 3, -1], "be not negative and not all 0; got -1 to 3."),
        ([0, 0, 0, 0], "be not negative and not all 0; got 0 to 0."),
        ([1, 1, 1, np.nan], "be finite; sample_weight[3] is nan"),
        (np.ones((4, 1)), "hold one weight for each of the 4 rows; got shape (4, 1)."),
    ],
)
def test_bad_weights_are_named(score, weight, message):
    with pytest.raises(ValueError, match=rf"^sample_weight must {re.escape(message)}"):
        score(TARGETS, BOUNDS, sample_weight=weight)


@OF_INTERVALS
def test_bad_multioutput_is_named(score):
    with pytest.raises(ValueError, match="multioutput must be 'uniform_average' or 'raw_values'; got 'mean'"):
        score(TARGETS, BOUNDS, multioutput="mean")


@pytest.mark.parametrize("score", [coverage_width_criterion, pm.interval_score])
def test_no_level_is_assumed(score):
    """At .95 the intervals of a model for .8 would be judged by another score than the one that they aim at."""
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'confidence_level'"):
        score(TARGETS, BOUNDS)


@pytest.mark.parametrize("score", [coverage_width_criterion, pm.interval_score])
@pytest.mark.parametrize(
    ("level", "interval", "message"),
    [
        (95, BOUNDS, "confidence_level must lie between 0 and 1; got 95. For per cent divide by 100."),
        ([0.8, 0.9], BOUNDS, "confidence_level must be a number, as y_interval has no axis of levels; got [0.8, 0.9]"),
        (0.9, np.stack([BOUNDS, BOUNDS], axis=2), "confidence_level must be 2 numbers; got 0.9. Give the levels that"),
        (0.0, BOUNDS, "confidence_level must lie between 0 and 1; got 0.0."),
        (1.0, BOUNDS, "confidence_level must lie between 0 and 1; got 1.0."),
        ("high", BOUNDS, "confidence_level must hold real numbers"),
    ],
)
def test_bad_levels_are_named(score, level, interval, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        score(TARGETS, interval, level)


@pytest.mark.parametrize(
    ("y_true", "options", "message"),
    [
        (np.ones(4), {}, "range, positive and finite; that of y_true is 0.0. Give target_range"),
        (TARGETS, {"target_range": -1}, "that of target_range is -1.0"),
        (TARGETS, {"target_range": [1, 2]}, "target_range must be a number or one per output; got shape (2,)"),
        (TARGETS, {"target_range": "all"}, "target_range must hold real numbers"),
        (TARGETS, {"eta": -1}, "eta must be a finite number, at least 0; got -1. The paper takes 0.1."),
        (TARGETS, {"eta": np.inf}, "eta must be a finite number, at least 0; got inf"),
    ],
)
def test_bad_options_of_the_criterion_are_named(y_true, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        coverage_width_criterion(y_true, BOUNDS, 0.95, **options)


def test_bounds_are_found_by_their_axis():
    interval = np.sort(np.random.default_rng(0).normal(size=(5, 3, 2, 4)), axis=2)
    assert pm.mean_width_score(interval).shape == (4,)
    assert isinstance(pm.mean_width_score(interval[..., 0]), float)
    assert pm.mean_width_score(interval[:, 0]).shape == (4,)
    shape = "y_interval must have shape (n, 2) or (n, k, 2), or (n, 2, L) or (n, k, 2, L) with L levels; got "
    for wrong, axis, message in (
        (interval[:, :2, :, 0], None, "y_interval of shape (5, 2, 2) may be two outputs or two levels. Say which axis"),
        (interval[:, :2, :, 0], None, "holds the bounds: bound_axis=2 for outputs, bound_axis=1 for levels."),
        (interval, 3, f"{shape}(5, 3, 2, 4) and bound_axis=3."),
        (interval, 1, f"{shape}(5, 3, 2, 4) and bound_axis=1."),
        (interval[:, 0, :, 0], 2, f"{shape}(5, 2) and bound_axis=2."),
        (interval[0, 0, 0], None, f"{shape}(4,)."),
        (interval[:, :, 0], None, f"{shape}(5, 3, 4)."),
        (interval[:, :, :, None], None, f"{shape}(5, 3, 2, 1, 4)."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            pm.mean_width_score(wrong, bound_axis=axis)


def test_bad_widths_are_named():
    with pytest.raises(ValueError, match=r"^y_interval must not be NaN; y_interval\[1, 0\] is nan"):
        pm.mean_width_score([[0, 1], [np.nan, 1]])
    with pytest.raises(
        ValueError, match=r"^A lower bound must not exceed its upper bound; at \[1\] they are 3.0 and 1.0"
    ):
        pm.mean_width_score([[0, 1], [3, 1]])


@pytest.mark.parametrize(
    ("quantiles", "levels", "message"),
    [
        (
            np.zeros((4, 2)),
            [0.1, 0.5, 0.9],
            "quantiles must have shape (4, 3), a value per target and level, the levels",
        ),
        (np.zeros((4, 2)), [0.1, 0.5, 0.9], "levels last; got (4, 2)."),
        (
            np.zeros((4, 2)),
            [0.5, 0.5],
            "levels must be one row of different numbers; got [0.5, 0.5]. Give each level once",
        ),
        (np.zeros((4, 2)), [], "levels must be one row of different numbers; got []"),
        (np.zeros((4, 1, 2)), [[0.2, 0.5]], "levels must be one row of different numbers; got [[0.2, 0.5]]"),
        (np.zeros((4, 2)), ["a", "b"], "levels must hold real numbers"),
        (np.zeros((4, 2)), [0.5, 1.0], "levels must lie between 0 and 1; got [0.5, 1.0]"),
        (np.full((4, 2), np.inf), [0.2, 0.5], "quantiles must be finite; quantiles[0, 0] is inf"),
    ],
)
def test_bad_quantiles_are_named(quantiles, levels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        pm.crps_score(TARGETS, quantiles, levels)


# Scorers


class Band(BaseEstimator):
    """The first column plus and minus a radius; its quantiles are those of the matching uniform distribution."""

    def __init__(self, radius=1.0, confidence_level=0.95):
        self.radius = radius
        self.confidence_level = confidence_level

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = True
        return self

    def predict_interval(self, X):
        return X[:, :1] + self.radius * np.array([-1, 1])

    def predict_quantile(self, X, q):
        return X[:, :1] + self.radius * (2 * np.asarray(q) - 1)


@pytest.fixture
def noisy():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    return X, X[:, 0] + rng.uniform(-2, 2, size=400)


def test_scorers_are_the_scores_with_greater_as_better(noisy):
    X, y = noisy
    weight = np.arange(y.size)
    band, interval = Band(1.5, 0.8), Band(1.5).predict_interval(X)
    levels = (np.arange(20) + 0.5) / 20
    for options in ({}, {"sample_weight": weight}):
        assert interval_scorer(band, X, y, **options) == -pm.interval_score(y, interval, 0.8, **options)
        assert coverage_scorer(band, X, y, **options) == pm.coverage_score(y, interval, **options)
        crps = pm.crps_score(y, band.predict_quantile(X, levels), levels, **options)
        assert_allclose(crps_scorer(band, X, y, **options), -crps)


def test_intervals_are_scored_at_the_level_that_they_are_asked_for(noisy):
    X, y = noisy
    model = pm.IntervalRegressor(lambda X: X[:, 0]).calibrate(X, y)
    other = pm.IntervalRegressor(lambda X: X[:, 0], confidence_level=0.5).calibrate(X, y)
    assert interval_scorer(model.set_params(confidence_level=0.5), X, y) == interval_scorer(other, X, y)


@pytest.mark.parametrize("scorer", [interval_scorer, crps_scorer])
def test_a_search_finds_the_true_radius_also_behind_other_steps(noisy, scorer):
    X, y = noisy
    grid = {"radius": [0.5, 1, 2, 4, 8]}
    search = GridSearchCV(Band(), grid, scoring=scorer).fit(X, y)
    assert search.best_params_ == {"radius": 2}
    assert scorer(search, X, y) == scorer(Band(2), X, y)
    scaled = make_pipeline(StandardScaler(with_mean=False, with_std=False), Band())
    deep = GridSearchCV(scaled, {f"band__{name}": radii for name, radii in grid.items()}, scoring=scorer).fit(X, y)
    assert deep.best_params_ == {"band__radius": 2}
    assert scorer(make_pipeline(Band(2)).fit(X, y), X, y) == scorer(Band(2), X, y)


def test_several_scorers_at_once(noisy):
    X, y = noisy
    scores = cross_validate(Band(2), X, y, scoring={"interval": interval_scorer, "coverage": coverage_scorer})
    assert_array_equal(scores["test_coverage"], np.ones(5))
    assert_allclose(scores["test_interval"], np.full(5, -4.0))


@pytest.mark.parametrize("scorer", [interval_scorer, coverage_scorer, crps_scorer])
def test_features_pass_through_all_steps_before_the_scored_one(noisy, scorer):
    X, y = noisy
    minus, bent = FunctionTransformer(np.negative), FunctionTransformer(np.sinh)
    assert scorer(make_pipeline(minus, bent, Band(0.5)).fit(X, y), X, y) == scorer(Band(0.5), np.sinh(-X), y)
    assert scorer(make_pipeline(minus, Band(0.5)).fit(X, y), X, y) == scorer(Band(0.5), -X, y)


def test_estimators_that_cannot_be_scored_are_told_what_to_do(noisy):
    X, y = noisy
    line = LinearRegression().fit(X, y)

    class Intervals:
        def predict_interval(self, X):
            return Band().predict_interval(X)

    wrap = "LinearRegression does not have. Wrap it: IntervalRegressor(LinearRegression(...))."
    score = "Intervals does not have. Score its intervals with interval_scorer instead."
    level = "Intervals has no confidence_level. Use an IntervalRegressor, or call interval_score with the level."
    for scorer, model, message in (
        (interval_scorer, line, f"A scorer of intervals calls predict_interval, which {wrap}"),
        (coverage_scorer, line, f"A scorer of intervals calls predict_interval, which {wrap}"),
        (crps_scorer, make_pipeline(line), f"A scorer of quantiles calls predict_quantile, which {wrap}"),
        (crps_scorer, Intervals(), f"crps_scorer calls predict_quantile, which {score}"),
        (interval_scorer, Intervals(), f"interval_scorer needs to know the level of the intervals, but {level}"),
    ):
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            scorer(model, X, y)


# The search that users make


def spread_out(power):
    """A line from 1 to 30 whose errors grow with its height to a power."""
    rng = np.random.default_rng(5)
    X = rng.uniform(1, 30, size=(2000, 1))
    return X, X[:, 0] + 0.1 * X[:, 0] ** power * rng.normal(size=2000)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_search_over_widths_finds_how_errors_grow(power):
    """Errors as large as the prediction to a power: that power is best (and found with 12 of 12 other seeds)."""
    X, y = spread_out(power)
    grid = [
        {"width": ["constant"]},
        {"width": [pm.ScaledWidth(estimator="prediction")], "width__power": [0.25, 0.5, 0.75, 1.0, 1.5]},
    ]
    model = pm.IntervalRegressor(LinearRegression(), random_state=0)
    search = GridSearchCV(model, grid, scoring=interval_scorer, cv=3).fit(X, y)
    assert isinstance(search.best_params_["width"], pm.ScaledWidth)
    assert search.best_params_["width__power"] == power
    coverage = cross_validate(search.best_estimator_, X, y, scoring=coverage_scorer, cv=3)["test_score"].mean()
    assert coverage > 0.95 - 0.027  # 3 standard errors: 267 rows calibrate and 667 are covered, three times


@pytest.mark.parametrize(("power", "best"), [(0.0, "constant"), (1.0, "scaled")])
def test_a_search_over_words_takes_a_learned_scale_only_where_it_helps(power, best):
    X, y = spread_out(power)
    model = pm.IntervalRegressor(LinearRegression(), random_state=0)
    search = GridSearchCV(model, {"width": ["constant", "scaled"]}, scoring=interval_scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"width": best}


HUGE = np.array([[-1.7e308, 1.7e308], [-1.7e308, 1.7e308]])


@pytest.mark.parametrize(
    "score",
    [
        lambda: pm.mean_width_score(HUGE),
        lambda: pm.interval_score([0.0, 1.0], HUGE, 0.95),
        lambda: coverage_width_criterion([0.0, 1.0], HUGE, 0.95),
        lambda: pm.crps_score([-1.7e308, -1.7e308], [1.7e308, 1.7e308], 0.5),
        lambda: pm.mean_width_score([[[0.0, 1.7e308], [0.0, 1.7e308]]], bound_axis=2),
    ],
)
def test_a_score_that_no_float_holds_is_refused(score):
    with pytest.raises(ValueError, match=r"^The score is too large for float64: measure .* in a larger unit\.$"):
        score()


def test_widths_of_outputs_that_have_no_mean_are_there_by_themselves():
    widths = pm.mean_width_score([[[0.0, 1.7e308], [0.0, 1.7e308]]], bound_axis=2, multioutput="raw_values")
    assert_array_equal(widths, [1.7e308, 1.7e308])


def test_a_range_that_no_float_holds_is_no_unit():
    with pytest.raises(ValueError, match=r"range, positive and finite; that of y_true is inf\. Give target_range"):
        coverage_width_criterion(HUGE[0], [[0.0, 1e308], [0.0, 1e308]], 0.95)


def test_a_fine_that_no_float_holds_is_infinite_unless_there_is_no_width_to_be_fined():
    assert coverage_width_criterion([0.0, 1.0], [[2.0, 3.0], [2.0, 3.0]], 0.95, eta=1e4) == np.inf
    assert coverage_width_criterion([0.0, 1.0], [[2.0, 2.0], [2.0, 2.0]], 0.95, eta=1e4) == 0.0


def test_only_ratios_of_weights_count():
    """The sum of the large ones is no float."""
    for unit in (5e-324, 1.0, 5e307):
        weight = unit * np.array([1.0, 1.0, 2.0, 0.0])
        assert pm.coverage_score(TARGETS, BOUNDS, sample_weight=weight) == 0.75
        assert pm.mean_width_score(BOUNDS, sample_weight=weight) == 2.5
        assert pm.crps_score(TARGETS, TARGETS + np.array([4, 8, 2, 100]), 0.5, sample_weight=weight) == 4.0


def test_masked_targets_are_missing():
    y = np.ma.MaskedArray([0.0, 1e9], mask=[False, True])
    with pytest.raises(ValueError, match=r"y_true must be finite; y_true\[1\] is nan"):
        pm.coverage_score(y, [[-1.0, 1.0], [-1.0, 1.0]])
