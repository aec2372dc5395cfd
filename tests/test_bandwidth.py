"""The rule's formulas at numbers worked out by hand, and what the plain kernel makes of them.

`GOLDEN` are answers of the rule as it is documented, to 1e-9: a change of the rule has to change them on purpose.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from pimeter import bandwidth as rule
from pimeter._kernels import reference

NONE = np.empty(0)
X = np.array([-3.0, -1.25, -1.0, -0.5, -0.375, 0.0, 0.125, 0.25, 0.5, 1.0, 1.125, 2.0, 4.5])
COUNTS = np.array([1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.25, 1.0, 2.0])
SPIKE = np.sort(np.r_[np.zeros(6), np.linspace(-2, 2, 9) ** 3, 0.3, 0.31, 0.32, 0.33])
LARGE = np.sort(np.sin(np.arange(2500.0)) * np.arange(2500.0))
LEVELS = np.array([0.05, 0.3, 0.5, 0.8, 0.95])

GOLDEN = {
    "plain": (X, NONE, [-2.12265711, -0.5071236877, 0.12644831392, 1.3128709119, 2.8515141554]),
    "counts": (X, COUNTS, [-1.9513270782, -0.53742312886, 0.0038567938809, 1.1561752245, 4.5]),
    "spike": (SPIKE, NONE, [-3.6663607707, -0.023840771368, 0.053949047298, 0.41385337047, 3.6646724711]),
    "large": (LARGE, NONE, [-1782.2897277, -465.86733536, -0.17392273481, 854.62450221, 1780.8764207]),
}


def automatic(x, counts):
    """Quantiles by the rule of one sorted sample."""
    if counts.size:
        return reference.weighted_rows(x, counts[None], counts.sum(), LEVELS)[0]
    return reference.automatic_rows(x[None], LEVELS)[0][0]


def fixed(x, counts, levels, h, starts):
    """Roots for a bandwidth of the caller's, from given starts."""
    counts = counts if counts.size else np.ones(x.size)
    return reference.fixed_weighted(x, counts, np.array(levels), h, np.array(starts))


class TestKnots:
    @pytest.mark.parametrize("m", [3.0, 4.0, 10.0, 57.0, 2000.0, 2001.0, 1e5])
    def test_knots_are_at_equal_angles_between_the_outermost_errors(self, m):
        level, normal, unit = rule.knots(m)
        inner = level[rule.KNOTS : -rule.KNOTS]
        assert_array_equal(level[: rule.KNOTS], inner[0])
        assert_array_equal(level[-rule.KNOTS :], inner[-1])
        assert_allclose(inner[[0, -1]], [0.5 / m, 1 - 0.5 / m], rtol=1e-9)
        angles = np.arccos(1 - 2 * inner)
        assert_allclose(np.diff(angles), (angles[-1] - angles[0]) / unit.size, rtol=1e-6)
        assert_allclose(inner + inner[::-1], 1.0, rtol=1e-15)
        assert_allclose(unit, np.diff(inner) / np.diff(angles), rtol=1e-6)
        # A window of KNOTS cells and half a cell more spans m^(-1/3) of the map, or a little less.
        cell = np.diff(angles).mean()
        assert cell * 3.5 <= m ** (-1 / 3) * (1 + 1e-9) or unit.size == 2
        assert cell * 3.5 * (unit.size / (unit.size - 1)) >= m ** (-1 / 3) * (1 - 1e-9) or unit.size == 2
        assert_allclose(normal, level if m > 2000 else stats.norm.ppf(level), atol=1e-9)

    @pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.99])
    def test_what_affects_a_level_is_near(self, p):
        m = 1e5
        first, last = rule.near(m, p)
        angles = np.arccos(1 - 2 * rule.knots(m).level[rule.KNOTS : -rule.KNOTS])
        extent = 10.0 * 1.45 / math.sqrt(m + 1) + 2 * 0.75 / math.sqrt(m)
        cell = angles[1] - angles[0]
        here = int((math.acos(1 - 2 * p) - angles[0]) / cell)
        n_cells = int(1.3 * extent / cell) + 1  # on either side
        assert (first, last) == (max(here - n_cells, 0), min(here + 1 + n_cells, len(angles) - 1))

    def test_extreme_levels_are_near_themselves(self):
        n_cells = rule.knots(1e5).unit.size
        assert rule.near(1e5, 0.0)[0] == 0
        assert rule.near(1e5, 1.0)[1] == n_cells
        assert rule.near(3.0, 0.0) == rule.near(3.0, 1.0) == (0, rule.knots(3.0).unit.size)


class TestFormulas:
    def test_errors_near_1_stay(self):
        for size in (0.0, 1.01e-100, 1.0, 0.99e100):
            assert rule.safe_factor(size) == 1.0
        for size in (1e-320, 1e-300, 1e-100, 1e100, 1e300):
            factor = rule.safe_factor(size)
            assert math.frexp(factor)[0] == 0.5  # a power of 2
            assert 1e-25 < size * factor <= 1.0
        assert rule.safe_factor(2.0**400) == 2.0**-401
        assert rule.safe_factor(5e-324) == 2.0**1000

    def test_standard_error_is_that_of_a_proportion(self):
        assert_allclose(rule.standard_error(0.2, 15.0), 0.1, rtol=1e-15)

    def test_shrunk_level(self):
        for p, h in ((0.9, 0.3), (0.2, 0.7), (0.5, 1.0)):
            angle = 0.95 * math.pi * h
            assert_allclose(rule.shrunk(p, h), 0.5 + (p - 0.5) * angle / math.sinh(angle), rtol=2e-3)
        # The first terms of the series of sinh, exactly: h = 1 / (.95 pi).
        h = 1 / (0.95 * math.pi)
        assert_allclose(rule.shrunk(0.9, h), 0.5 + 0.4 / (1 + 1 / 6 * (1 + 1 / 20 * (1 + 1 / 42))), rtol=1e-14)

    def test_windows(self):
        assert rule.both((3.0, 4.0, 2.0)) == 5.0
        assert_allclose(rule.widths(3.0, 4.0, 2.0), [3 + 5e-9, 4 + 5e-9, 2 + 5e-9], rtol=1e-14)
        assert_array_equal(rule.widths(0.0, 0.0, 0.0), [1e-100] * 3)
        assert rule.noise(0.1, 50.0) == 0.2
        assert_allclose(rule.distance_from_normal(3.0, 1.0), 1.0)  # (2 (1 - 3) / 4)^2
        assert rule.distance_from_normal(0.0, 1.0) == 4.0

    def test_roughness_and_isolation(self):
        error, level, normal = (2.0, 3.0, 1.0), (0.1, 0.2, 0.05), (0.5, 0.6, 0.25)
        # Densities left and right of normal's: 1/4 and 1/5, relative difference 2/9; noise 1/10 + 1/20.
        assert_allclose(rule.roughness(error, level, normal, 100.0), (2 / 9) ** 2 - 0.15, rtol=1e-12)
        assert_allclose(rule.roughness(error, level, normal, 100.0, 2.0), (2 / 9) ** 2 - 0.3, rtol=1e-12)
        # Its own and that of all: 1 and .85/4 in units of normal's; noise 1/5 - 1/25.
        own, around = 0.25 / 1.0, 0.85 / 4.0
        expected = (2 * (own - around) / (own + around)) ** 2 - 4 * (0.2 - 0.04)
        assert_allclose(rule.isolation(error, level, normal, 100.0), expected, rtol=1e-12)

    def test_resolution(self):
        h, pseudo_count = rule.resolution(0.01, 0.0, 100.0)
        assert_allclose([h, pseudo_count], [1.45 / math.sqrt(101), 1 / (0.01 + 1e-9)], rtol=1e-12)
        assert_allclose(rule.resolution(1.0, 0.04, 100.0)[0], 1.45 / math.sqrt(2) / math.sqrt(101), rtol=1e-12)
        assert_allclose(rule.resolution(1.0, -5.0, 400.0)[0], 1.45 * 4**0.14 / math.sqrt(401), rtol=1e-12)
        assert_allclose(rule.resolution(1.0, 100.0, 100.0)[0], 0.7 / math.sqrt(101), rtol=1e-12)
        assert_allclose(rule.large_resolution(9999.0), 0.0145, rtol=1e-12)

    def test_slope(self):
        # No noise to speak of, equal on both sides: the mean of two shrunk densities.
        level, normal = (0.2, 0.2, 0.05), (0.5, 0.5, 0.125)
        equal = (2.0, 2.0, 0.5)
        for pseudo_count in (0.0, 20.0):
            density = (20 * 0.1 + pseudo_count * 0.4) / (20 + pseudo_count)
            assert_allclose(rule.slope(equal, level, normal, 0.5, pseudo_count, 100.0), density / 0.5, rtol=1e-12)
        # Five times as dense on the left: the denser side counts by excess / (excess + .1).
        error, m = (1.0, 5.0, 0.9), 1e4
        excess = (2 * (5 - 1) / 6) ** 2 - 1.2 * 2 / (m * 0.2)
        split = excess / (excess + 0.1)
        density = (1 - split) * (0.2 + 0.04) / 2 + split * 0.2
        own = 2 * (0.125 * 5.1 - 0.875 * 0.9) / (0.125 * 5.1 + 0.875 * 0.9)
        excess = own**2 - 4 * (1 / (m * 0.05) - 1 / (m * 0.35))
        alone = max(excess, 0.0) / (max(excess, 0.0) + 0.1)
        expected = ((1 - alone) * density + alone * 0.05 / 0.9) / 0.5
        assert 0 < alone < split < 1
        assert_allclose(rule.slope(error, level, normal, 0.5, 0.0, m), expected, rtol=1e-12)


class TestPlainKernel:
    def test_activation_is_a_sigmoid_that_saturates(self):
        z = np.array([-50.0, -10.0, -1.0, 0.0, 1.0, 10.0, 50.0])
        found = reference.activation(z, 10.0)
        assert_allclose(found[[0, 1, 3, 5, 6]], [0.0, 0.0, 0.5, 1.0, 1.0], rtol=1e-15)
        floor = 1 / (1 + math.exp(10))
        assert_allclose(found[4], (1 / (1 + math.exp(-1)) - floor) / (1 - 2 * floor), rtol=1e-14)

    def test_hazen(self):
        assert_allclose(reference.hazen(X, NONE, LEVELS), np.quantile(X, LEVELS, method="hazen"), rtol=1e-14)
        whole = np.array([1, 3, 0, 2, 1, 1, 4, 1, 1, 1, 2, 1, 1])
        copies = np.repeat(X, whole)
        held = whole > 0
        found = reference.hazen(X[held], whole[held].astype(float), LEVELS)
        assert_allclose(found, np.quantile(copies, LEVELS, method="hazen"), rtol=1e-12)
        assert_allclose(reference.hazen(np.array([0.0, 1.0]), np.array([0.5, 1.5]), np.array([0.125, 0.5])), [0.0, 1.0])
        assert_allclose(reference.hazen(np.array([0.0, 1.0]), np.array([0.5, 1.5]), np.array([0.25])), [1 / 3])

    def test_spread_is_the_smaller_of_two(self):
        quartiles = np.diff(np.quantile(X, [0.25, 0.75], method="hazen"))[0] / 1.349
        assert_allclose(reference.spread(X, NONE, 1e-100), min(X.std(ddof=1), quartiles), rtol=1e-12)
        humps = np.r_[-1.0, -1.0, -1.0, -0.9, 0.9, 1.0, 1.0, 1.0]
        assert_allclose(reference.spread(humps, NONE, 1e-100), humps.std(ddof=1), rtol=1e-12)
        doubled = np.repeat(humps, 2)
        found = reference.spread(humps, np.full(8, 2.0), 1e-100)
        assert_allclose(found, doubled.std(ddof=1), rtol=1e-12)
        assert reference.spread(X[:2], NONE, 1e-100) == 0.0
        assert reference.spread(X[:3], NONE, 1e-100) > 0.0
        assert reference.spread(X[:1], np.array([5.0]), 1e-100) == 0.0
        assert reference.spread(X[:2], np.array([2.0, 1.0]), 1e-100) > 0.0
        assert reference.spread(X, NONE, 1.0) == 0.0
        far = X + 100.0
        least = quartiles / (X[-1] - X[0])
        assert reference.spread(far, NONE, least * (1 + 1e-9)) == 0.0
        assert reference.spread(far, NONE, least * (1 - 1e-9)) > 0.0
        assert_allclose(reference.spread(humps + 2.0**30, NONE, 1e-100), humps.std(ddof=1), rtol=1e-6)

    def test_map_goes_there_and_back(self):
        for x in (X, SPIKE):
            fitted = reference.fit_map(x, NONE)
            wide = np.linspace(x[0] - 5, x[-1] + 5, 101)
            assert_allclose(fitted.error(fitted.position(wide)), wide, atol=1e-9)
            assert fitted.position(fitted.knots[:1]) == 0.0
            assert_allclose(fitted.position(fitted.knots), fitted.at, atol=1e-12)
        assert reference.fit_map(np.zeros(5), NONE) is None
        assert reference.fit_map(X, NONE).m == 13.0
        assert reference.fit_map(X, COUNTS).m == COUNTS.sum()

    def test_no_spread_is_no_reason_to_smooth(self):
        tied = np.r_[np.zeros(9), 1.0]
        assert_allclose(automatic(tied, NONE), reference.hazen(tied, NONE, LEVELS), rtol=1e-15)
        counts = np.array([9.0, 1.0])
        assert_array_equal(automatic(tied[-2:], counts), reference.hazen(tied[-2:], counts, LEVELS))

    def test_root_of_a_flat_distribution_function(self):
        far = np.array([0.0, 1e6])
        assert fixed(far, NONE, [0.5], 1.0, [3e5])[0] == 3e5
        assert_array_equal(fixed(far, NONE, [0.01, 0.99], 1.0, [5.0, 5.0]), far)
        assert_array_equal(reference.fixed_rows(far[None], np.array([0.5]), 1.0)[0], [[5e5]])

    def test_root_of_a_flat_distribution_function_of_many(self):
        """Where activations are 0 and 1, its values are quotients of integers."""
        far = 1e6 * np.arange(30_000)
        start = [1e6 * 26_999.3]
        assert_array_equal(fixed(far, NONE, [0.9], 1.0, start), start)

    def test_counts_next_to_nothing(self):
        plain, tiny = (reference.hazen(X, np.full(X.size, count), LEVELS) for count in (2.0**-10, 2.0**-1060))
        assert_allclose(tiny, plain, rtol=1e-2, atol=1e-2)

    def test_rows_have_roots_of_their_own(self):
        rows = np.stack([X[::-1], 2.0 * X, X + 1.0])
        found, odd = reference.fixed_rows(rows, LEVELS[1:3], 0.5)
        assert odd is None
        alone = [reference.fixed_rows(row[None], LEVELS[1:3], 0.5)[0][0] for row in rows]
        assert_allclose(found, alone, rtol=1e-14)
        assert reference.fixed_rows(rows[:0], LEVELS[1:3], 0.5)[0].shape == (0, 2)

    def test_root_solves_the_papers_equation(self):
        found = fixed(X, NONE, LEVELS[1:4], 0.5, np.zeros(3))
        assert_allclose(reference.activation((found[:, None] - X) / 0.5, 40.0).mean(axis=1), LEVELS[1:4], rtol=1e-12)
        found = fixed(X, COUNTS, LEVELS[1:4], 0.5, np.zeros(3))
        cdf = reference.activation((found[:, None] - X) / 0.5, 40.0) @ COUNTS / COUNTS.sum()
        assert_allclose(cdf, LEVELS[1:4], rtol=1e-12)

    @pytest.mark.parametrize("name", ["plain", "counts", "spike", "large"])
    def test_golden_numbers(self, name):
        x, counts, expected = GOLDEN[name]
        assert_allclose(automatic(x, counts), expected, rtol=1e-9)

    def test_rows_say_what_they_hold_and_do_not_depend_on_size(self):
        rows = np.stack([X[::-1], X * 1e-300, X * 1e300, np.r_[np.nan, X[1:]], np.r_[X[1:], np.inf]])
        found, odd = reference.automatic_rows(rows, LEVELS)
        assert_array_equal(odd, [0, 0, 0, 1, 2])
        assert_allclose(found[:3], np.outer([1.0, 1e-300, 1e300], GOLDEN["plain"][2]), rtol=1e-9)
        assert reference.automatic_rows(rows[:3], LEVELS)[1] is None
        counts = np.stack([COUNTS, np.where(X > 0, 2.0, 0.0)])
        held = X[X > 0]
        expected = [automatic(X, COUNTS), automatic(np.repeat(held, 2), NONE)]
        assert_allclose(reference.weighted_rows(X, counts, 0.0, LEVELS), expected, rtol=1e-9)


def test_counts_of_tied_values_are_their_mean():
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0])
    counts, means = np.array([0.5, 0.2, 0.4, 1.5, 0.1, 0.3, 0.8]), np.array([0.5, 0.3, 0.3, 1.5, 0.4, 0.4, 0.4])
    assert_allclose(reference.even(x, counts), means, rtol=1e-14)
    assert_allclose(reference.even(x[1:], counts[1:]), means[1:], rtol=1e-14)
    assert_allclose(reference.even(x, np.stack([counts, 2.0 * counts])), np.stack([means, 2.0 * means]), rtol=1e-14)
    assert reference.even(np.arange(7.0), counts) is counts
    copies = np.array([1.0, 2.0, 3.0, 1.0, 4.0, 2.0, 1.0])
    assert reference.even(x, copies) is copies
    assert_allclose(reference.even(np.zeros(3), np.array([1.0, 1.0, 0.4])), np.full(3, 0.8), rtol=1e-14)
