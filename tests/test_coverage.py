from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, binom, norm
from sklearn.utils.fixes import parse_version, sp_version

from pimeter import IntervalRegressor, rows_needed
from pimeter.conformal.guarantee import (
    Guarantee,
    cross_validated_level,
    effective_counts,
    neuron_level,
    rank,
    rank_below,
    rank_guarantee,
    scores_needed,
    too_few,
)
from pimeter.coverage import binomial_cdf, effective_ranks, percent, percent_range, quantile_ranks, rounded
from pimeter.report.classifier import figure
from pimeter.report.cone import _percent
from pimeter.validation import levels_array

LEVELS = pytest.mark.parametrize("p", [0.01, 0.05, 0.3, 0.5, 0.9, 0.95, 0.999])


@pytest.fixture(autouse=True)
def forgotten():
    """What was asked for before is worked out again, by the code as it is."""
    for remembered in (rank_guarantee, quantile_ranks, scores_needed):
        if hasattr(remembered, "cache_clear"):  # `make mutants` takes memory away
            remembered.cache_clear()


@LEVELS
@pytest.mark.parametrize("m", [1, 2, 5, 6, 20, 59, 60, 100, 1000, 100_000, 10_000_000])
def test_level_is_that_of_the_binomial_distribution(m, p):
    low, high, exact_level = quantile_ranks(m, p)
    assert 1 <= low <= high <= m
    # binom.cdf is accurate to about 1e-11 at m = 1e7.
    assert_allclose(exact_level, binom.cdf(high - 1, m, p) - binom.cdf(low - 1, m, p), atol=1e-10)
    assert exact_level >= 0.95 or (low, high) == (1, m)


@LEVELS
@pytest.mark.parametrize("m", [4 * 10**10, 10**13, 10**15])
def test_ranks_of_more_errors_than_can_be_listed(m, p):
    """They are 1.96 standard deviations of the binomial number away, to four digits."""
    if m > 10**12 and sp_version < parse_version("1.17"):
        pytest.skip("SciPy before 1.17 has two digits of the binomial distribution of so many errors")
    low, high, exact_level = quantile_ranks(m, p)
    assert_allclose([low - m * p, high - m * p], np.sqrt(m * p * (1.0 - p)) * 1.96 * np.array([-1.0, 1.0]), rtol=1e-3)
    assert 0.95 <= exact_level < 0.9501


@LEVELS
@pytest.mark.parametrize("m", [1, 7, 300, 5000])
def test_fractions_are_those_of_the_binomial_distribution(m, p):
    first, below = binomial_cdf(m, p)
    assert_allclose(below, binom.cdf(first - 1 + np.arange(below.size), m, p), atol=1e-13)
    assert_allclose([below[0], below[-1]], [0.0, 1.0], atol=1e-15)


def test_pairs_of_ranks_by_hand():
    assert quantile_ranks(100, 0.5)[:2] == (40, 60)
    assert quantile_ranks(20, 0.95, 0.3)[:2] == (19, 20)  # 19 of 20 are below with probability 20 * .95^19 * .05 = .377


@LEVELS
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_no_other_pair_of_ranks_is_nearer_or_as_near_and_likelier(p, level):
    for m in range(1, 60):
        below = binom.cdf(np.arange(m + 1) - 1, m, p)  # fewer than 0, 1, ..., m errors under the quantile
        pairs = [(low, high) for low in range(1, m + 1) for high in range(low + 1, m + 1)]
        enough = [(high - low, below[low] - below[high]) for low, high in pairs if below[high] - below[low] >= level]
        low, high, exact_level = quantile_ranks(m, p, level)
        if enough:
            distance, minus_level = min(enough)
            assert high - low == distance
            assert_allclose(exact_level, -minus_level, rtol=1e-9)
        else:
            assert (low, high) == (1, m)
            assert exact_level < level


def test_too_few_errors_get_the_widest_pair_and_its_own_level():
    assert quantile_ranks(1, 0.95) == (1, 1, 0.0)
    low, high, exact_level = quantile_ranks(20, 0.95)
    assert (low, high) == (1, 20)
    assert_allclose(exact_level, 1 - 0.95**20 - 0.05**20)


@LEVELS
def test_rank_forgives_rounding(p):
    for m in range(1, 500):
        exact = -(-(m + 1) * round(p * 1000) // 1000)
        assert rank(m, p) == exact
        assert rank_below(m, p) == max(1, (m + 1) * round(p * 1000) // 1000)


@pytest.mark.parametrize("n_cuts", [1, 2])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_guarantee_is_that_of_the_beta_distribution(p, n_cuts):
    for m in (1, 2, 5, 12, 18, 19, 38, 39, 58, 59, 92, 93, 200, 1000):
        for guarantee in ("marginal", "training-conditional"):
            found = rank_guarantee(m, p, kind=guarantee, n_cuts=n_cuts)
            distribution = beta(found.rank - (n_cuts - 1) * (m + 1 - found.rank), n_cuts * (m + 1 - found.rank))
            if n_cuts == 1 or m > 1:
                assert_allclose(found.coverage_range, distribution.ppf([0.05, 0.95]), rtol=1e-9)
            fewer = found.rank - 1
            if guarantee == "training-conditional" and found.is_enough:
                assert distribution.sf(p) >= 0.95 - 1e-12
                if n_cuts * fewer > (n_cuts - 1) * (m + 1):
                    assert beta(fewer - (n_cuts - 1) * (m + 1 - fewer), n_cuts * (m + 1 - fewer)).sf(p) < 0.95
            elif guarantee == "training-conditional":
                assert found.rank == m
                assert np.isnan(found.level)
            else:
                assert_allclose(found.level, min(p, (m + 1 - n_cuts) / (m + 1)))
                assert distribution.mean() >= found.level - 1e-12 if n_cuts == 1 or m > 1 else found.level == 0


@pytest.mark.parametrize("guarantee", ["marginal", "approximate", "training-conditional"])
def test_nothing_is_guaranteed_without_errors(guarantee):
    nothing = rank_guarantee(0, 0.95, kind=guarantee)
    assert (nothing.m, nothing.rank, nothing.is_enough) == (0.0, 0, False)
    assert nothing.needed == (59 if guarantee == "training-conditional" else 19)
    assert np.isnan([nothing.level, *nothing.coverage_range]).all()


def test_levels_that_are_guaranteed():
    assert [rank_guarantee(m, 0.95, kind="training-conditional").level for m in (59, 60, 1000)] == [0.95] * 3
    assert np.isnan(rank_guarantee(58, 0.95, kind="training-conditional").level)
    assert [rank_guarantee(m, 0.95).level for m in (19, 20, 1000)] == [0.95] * 3
    # A neuron between two ranks covers what the lower one does: 29 of 31, and 95 from either end of 100.
    assert_allclose(rank_guarantee(30, 0.95, kind="approximate").level, 29 / 31)
    assert_allclose(rank_guarantee(100, 0.9, kind="approximate", n_cuts=2).level, (2 * 95 - 101) / 101)


def test_numbers_needed():
    assert [scores_needed(p) for p in (0.5, 0.9, 0.95, 0.99)] == [1, 9, 19, 99]
    assert [scores_needed(p, n_cuts=2) for p in (0.9, 0.95)] == [19, 39]
    assert [scores_needed(p, kind="training-conditional") for p in (0.9, 0.95)] == [29, 59]
    assert scores_needed(0.95, kind="training-conditional", n_cuts=2) == 93


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("confidence", [0.3, 0.75, 0.95, 0.999])
def test_numbers_needed_for_the_set_are_the_fewest(p, confidence):
    for n_cuts in (1, 2):
        needed = scores_needed(p, kind="training-conditional", n_cuts=n_cuts, confidence=confidence)
        # Chance that the outermost errors, n_cuts of them, are not all beyond the quantile.
        misses = binom.cdf(n_cuts - 1, [needed - 1, needed], 1.0 - p)
        assert misses[1] <= (1.0 - confidence) * (1.0 + 1e-9)
        assert needed == n_cuts or misses[0] > 1.0 - confidence


@pytest.mark.parametrize("p", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("within", [0.005, 0.02, 0.1])
def test_rows_needed(p, within):
    def is_enough(m):
        low, high = rank_guarantee(m, p).coverage_range
        return p - low <= within and high - p <= within

    m = rows_needed(p, within)
    assert all(is_enough(n) for n in range(m, m + 300))
    assert m == 1 or not is_enough(m - 1)


def test_rows_needed_refuses_per_cent():
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1; got 95"):
        rows_needed(95, 0.02)
    with pytest.raises(ValueError, match="within must lie"):
        rows_needed(0.95, 2)


def test_levels_of_neurons_and_folds():
    assert neuron_level(19, 0.95) == 1.0
    assert 0.95 < neuron_level(1000, 0.95) < 0.96
    assert cross_validated_level(0.9, 12) == pytest.approx(0.8 - (1 / 6) ** 0.5)
    assert cross_validated_level(0.6, 12) == 0.0


@pytest.mark.parametrize("m", [5, 19, 30, 50, 217.5])
def test_place_of_the_neuron_rises_with_the_level(m):
    levels = np.linspace(0.01, m / (m + 1), 2000)
    places = [np.clip(m * neuron_level(m, p), rank_below(m, p), rank(m, p)) for p in levels]
    assert (np.diff(places) >= 0).all()
    assert len(np.unique(places)) > 500  # it is not always at one of the two errors


@pytest.mark.parametrize(
    ("level", "within", "rows"),
    [(1.0 - 1e-9, 0.02, 149), (0.95, 1e-5, 1_285_235_460), (1e-9, 1e-9, 5_768_424_004)],
)
def test_rows_needed_at_extremes_take_no_time(level, within, rows):
    """Numbers of rows are not tried one by one: a level near 1 took hours and all memory."""
    assert rows_needed(level, within) == rows


def test_rows_that_nobody_has_are_refused():
    with pytest.raises(ValueError, match=r"within=1e-12 takes more than 1e\+12 rows"):
        rows_needed(0.5, 1e-12)


def test_a_guarantee_about_the_set_at_a_level_near_1():
    p = 1.0 - 1e-9
    needed = rank_guarantee(100, p, kind="training-conditional", n_cuts=2).needed
    assert binom.cdf(1, needed, 1.0 - p) == pytest.approx(0.05)  # fewer than two errors beyond the quantile


@pytest.mark.parametrize(("m", "p"), [(30, 0.95), (50, 0.9), (12, 0.8), (217, 0.99), (25.5, 0.9), (7, 0.03)])
def test_place_of_the_neuron(m, p):
    place = (m + 1) * p
    t = place - max(1, np.floor(place + 1e-9))
    moved = 0.15 * np.sqrt(place * (1 - p)) * norm.ppf(t) + 0.2 - 0.45 / (m + 1 - place) if 0 < t < 1 else 0.0
    assert_allclose(neuron_level(m, p), (place + moved) / m, rtol=1e-12)


def test_place_of_the_neuron_at_a_rank_and_beyond_the_last():
    assert_allclose([neuron_level(99, 0.55), neuron_level(19, 0.95)], [55 / 99, 1.0], rtol=1e-14)
    assert (
        neuron_level(5, 0.99) == 0.0
    )  # far behind the only error beyond; it is kept between two ranks where it is used
    assert_allclose(neuron_level(99, 0.005), 0.5 / 99, rtol=1e-12)  # below the first rank it is not moved
    assert neuron_level(25.5, 26 / 26.5) == 1.0  # the place is a rank, and beyond an effective number of errors


def test_weights_carry_ratios_only():
    weights = np.array([2.0, 1.0, 1.0])
    assert_allclose(effective_counts(weights), [4 / 3, 2 / 3, 2 / 3], rtol=1e-14)
    assert_allclose(effective_counts(1e-300 * weights), effective_counts(1e300 * weights), rtol=1e-14)


@pytest.mark.parametrize("guarantee", ["marginal", "approximate", "training-conditional"])
@pytest.mark.parametrize(
    ("m", "p", "n_cuts"), [(100, 0.95, 1), (100, 0.9, 2), (13.5, 0.9, 1), (12, 0.95, 1), (3, 0.1, 2)]
)
def test_range_is_that_of_the_beta_distribution(m, p, n_cuts, guarantee):
    found = rank_guarantee(m, p, kind=guarantee, n_cuts=n_cuts)
    level = (p + n_cuts - 1) / n_cuts
    places = [found.rank] * 2
    if guarantee != "training-conditional":
        places = [np.ceil((m + 1) * level - 1e-9)] * 2
    if guarantee == "approximate":  # a neuron between two ranks covers what they do
        places[0] = max(1, np.floor((m + 1) * level + 1e-9))
    for point, place, end in zip((0.05, 0.95), places, found.coverage_range, strict=True):
        inside = n_cuts * min(place, m) - (n_cuts - 1) * (m + 1)
        if guarantee != "training-conditional" or m >= found.needed:
            assert_allclose(end, beta(inside, m + 1 - inside).ppf(point) if inside > 0 else 0.0, rtol=1e-9)


@pytest.mark.parametrize(("tails", "m"), [("symmetric", 30), ("upper", 30), ("equal", 45)])
def test_range_holds_where_the_neuron_stands_between_two_ranks(tails, m):
    """In 4,000 calibrations at once, each an output of its own."""
    y = np.random.default_rng(m).uniform(-1.0, 1.0, (m, 4000))
    model = IntervalRegressor(
        lambda X: np.zeros((len(X), 4000)), confidence_level=0.95, tails=tails, guarantee="approximate"
    )
    bounds = model.calibrate(np.zeros((m, 1)), y).predict_interval(np.zeros((1, 1)))[0]
    coverage = np.diff(np.clip(bounds, -1.0, 1.0), axis=-1)[..., 0] / 2.0
    low, high = model.coverage_range_
    error = (0.05 * 0.95 / 4000) ** 0.5
    assert (coverage < low).mean() <= 0.05 + 4.0 * error
    assert (coverage > high).mean() <= 0.05 + 4.0 * error


@pytest.mark.parametrize(
    "p", ["0.5", "0.9", "0.95", "0.975", "0.99", "0.999", "0.9999", "0.99995", "0.99999", "0.999999"]
)
@pytest.mark.parametrize("n_cuts", [1, 2])
def test_as_many_rows_are_needed_as_exact_fractions_say(p, n_cuts):
    level = (Fraction(p) + n_cuts - 1) / n_cuts
    assert scores_needed(float(p), n_cuts=n_cuts) == math.ceil(level / (1 - level))


@pytest.mark.parametrize(
    "fraction", [1e-300, 1e-12, 4e-6, 0.00004, 0.5, 0.9999, 0.99996, 0.999999, 1 - 2**-40, 1 - 2**-53]
)
def test_no_fraction_between_0_and_1_reads_as_one_of_them(fraction):
    """In whatever table, sentence or page it stands."""
    for digits in (1, 2, 3, 4, 6):
        assert 0.0 < float(percent(fraction, digits).removesuffix(" %")) < 100.0
        assert 0.0 < float(rounded(fraction, digits)) < 1.0
    assert 0.0 < float(figure(fraction)) < 1.0
    low, high = percent_range(min(fraction, 0.3), max(fraction, 0.7))
    assert 0.0 < float(low) < float(high) < 100.0
    assert 0.0 < float(_percent(fraction).removesuffix(" %")) < 100.0
    few = Guarantee(12.0, 12, fraction, 19, (0.8, 0.9))
    assert " 100 %" not in too_few(few, fraction)
    assert " 0 %" not in too_few(few, fraction)


def test_words_of_too_few_rows():
    assert (
        too_few(rank_guarantee(5000, 0.9999), 0.9999)
        == "5000 scores can guarantee 99.98 %, not 99.99 %; 9999 are needed"
    )
    few = rank_guarantee(12, 0.95)
    assert too_few(few, 0.95) == "12 scores can guarantee 92.3 %, not 95 %; 19 are needed"
    assert too_few(few, 0.95, " of a category").startswith("12 scores of a category can guarantee")
    assert "can guarantee nothing, not 95 %; 59 are" in too_few(
        rank_guarantee(12.5, 0.95, kind="training-conditional"), 0.95
    )


@pytest.mark.parametrize(("level", "n", "n_cuts"), [(0.9, 50, 1), (0.95, 200, 2), (0.5, 10, 1)])
def test_what_is_proven_of_folds(level, n, n_cuts):
    expected = max(0.0, 2 * level - 1 - n_cuts * np.sqrt(2 / n))
    assert_allclose(cross_validated_level(level, n, n_cuts), expected, rtol=1e-14)


@pytest.mark.parametrize(("p", "within"), [(0.5, 0.3), (0.9, 0.0999), (0.99, 0.5), (0.05, 0.2), (0.8, 0.05)])
def test_rows_needed_is_the_last_number_that_is_too_few_and_one_more(p, within):
    m = np.arange(1, 3000)
    k = np.minimum(np.ceil((m + 1) * p - 1e-9), m)
    low, high = (beta.ppf(point, k, m + 1 - k) for point in (0.05, 0.95))
    too_few = (p - low > within) | (high - p > within)
    assert rows_needed(p, within) == (m[too_few][-1] + 1 if too_few.any() else 1)


def test_rows_needed_are_enough_however_few():
    """One row may be near enough where two are not: at 0.34, within 0.625."""
    m = np.arange(1, 400)
    for p in np.linspace(0.02, 0.98, 49):
        k = np.minimum(np.ceil((m + 1) * p - 1e-9), m)
        low, high = beta.ppf([[0.05], [0.95]], k, m + 1 - k)
        away = np.maximum(p - low, high - p)
        for within in np.linspace(0.305, 0.985, 35):
            assert rows_needed(p, within) == np.flatnonzero(np.append(True, away > within))[-1] + 1


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        (0.0, ""),
        (1.0, ""),
        (-0.1, ""),
        ("0.9", ""),
        (True, ""),
        (None, ""),
        (250, ""),
        (95, " For per cent divide by 100."),
        ([0.8, 0.9], " One level is taken here, not a list."),
    ],
)
def test_rows_needed_says_what_is_wrong(value, cure):
    for name, arguments in (("confidence_level", (value, 0.1)), ("within", (0.9, value))):
        with pytest.raises(
            ValueError, match=rf"^{name} must lie between 0 and 1; got {re.escape(repr(value))}.{cure}$"
        ):
            rows_needed(*arguments)


@pytest.mark.parametrize(
    ("levels", "cure"), [([80, 95], " For per cent divide by 100."), ([0.5, 1.0], ""), ([-5, 95], ""), ([0.0], "")]
)
def test_only_levels_in_per_cent_are_to_be_divided(levels, cure):
    with pytest.raises(ValueError, match=rf"^levels must lie between 0 and 1; got {re.escape(repr(levels))}.{cure}$"):
        levels_array("levels", levels)


def test_nothing_is_known_between_two_bounds_of_one_error_and_nothing_needed_if_all_will_do():
    assert rank_guarantee(1, 0.1, n_cuts=2).coverage_range == (0.0, 0.0)
    assert rows_needed(0.5, 0.6) == 1


@pytest.mark.parametrize(
    ("fraction", "digits", "text"),
    [
        (0.95, 4, "95 %"),
        (0.12345678, 4, "12.35 %"),
        (0.12345678, 3, "12.3 %"),
        (0.99996, 4, "99.996 %"),
        (0.9999999, 4, "99.99999 %"),
        (0.99949, 3, "99.9 %"),
        (0.99951, 3, "99.95 %"),
        (1.0, 4, "100 %"),
    ],
)
def test_no_fraction_below_1_reads_100_percent(fraction, digits, text):
    assert percent(fraction, digits) == text
    if digits == 4:
        assert percent(fraction) == text


def test_the_smallest_and_the_largest_of_groups_are_those_of_all_rows():
    """20 groups of 10 rows each: 10 rows or more were above the bound that is meant to be their largest."""
    assert quantile_ranks(20, 0.9)[:2] == (1, 20)
    assert effective_ranks(200, 0.9, 10.0, 0.95)[:2] == (1, 200)
    low, high, level = quantile_ranks(60, 0.9)
    assert effective_ranks(600, 0.9, 10.0, 0.95) == (low * 601 // 61, -(-high * 601 // 61), level)
    assert effective_ranks(50, 0.5, 1.0, 0.95) == quantile_ranks(50, 0.5, 0.95)
