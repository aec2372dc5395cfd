"""Autocorrelation, and what it does to the variance of a mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

from pimeter.dependence import autocorrelation, variance_inflation


def direct(values):
    known = ~np.isnan(values)
    centred = np.where(known, values - values[known].mean(), 0.0)
    return np.array([centred[: len(values) - k] @ centred[k:] for k in range(len(values))]) / (centred @ centred)


@pytest.mark.parametrize("n", [2, 3, 7, 64, 101])
def test_autocorrelation_is_the_sum_of_products(n):
    values = np.random.default_rng(n).standard_normal((3, n))
    assert_allclose(autocorrelation(values), [direct(row) for row in values], atol=1e-12)
    values[:, 1::3] = np.nan if n > 3 else values[:, 1::3]
    assert_allclose(autocorrelation(values), [direct(row) for row in values], atol=1e-12)


def test_tied_values_are_like_independent_ones():
    found = autocorrelation(np.ones((2, 40)))
    assert_allclose(1.0 + 2.0 * found[:, 1:].sum(axis=1), 0.0, atol=1e-12)  # as of all values around their own mean
    assert_allclose(variance_inflation(found), 1.0, atol=0.1)
    nothing = autocorrelation(np.full((1, 40), np.nan))
    assert_allclose(nothing, found[:1])


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ([1.0], 1.0),
        ([1.0, -0.5], 3.0),
        ([1.0, -0.9], 19.0),
        ([1.0, 0.7], 1.0),  # values that alternate count more, which does not count
        ([1.0, *[0.0] * 6, -0.5], 3.0),  # a rhythm of seven
    ],
)
def test_means_vary_as_much_more(filter_, expected):
    """200 series, averaged: the estimate is within 10 % (one series alone: 30 to 60 %)."""
    noise = np.random.default_rng(0).standard_normal((200, 2500))
    values = lfilter([1.0], filter_, noise, axis=1)[:, 500:]
    assert variance_inflation(autocorrelation(values).mean(axis=0)) == pytest.approx(expected, rel=0.1)
    # What it is for: the variance of the mean of each series, with a standard error of 10 %.
    measured = 2000 * values.mean(axis=1).var() / values.var()
    assert measured < 1.3 * variance_inflation(autocorrelation(values).mean(axis=0))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_values_tell_nothing_and_count_as_one(n):
    assert_allclose(variance_inflation(autocorrelation(np.random.default_rng(n).standard_normal((2, n)))), n)


@pytest.mark.parametrize("n", [4, 5, 40])
def test_a_mean_of_values_varies_no_more_than_one_of_them(n):
    assert_allclose(variance_inflation(1.0 - np.arange(n) / n), n)  # all tied; it was 5 n


def test_pairs_that_are_not_known_do_not_count():
    """Every other value of AR(.9) is AR(.81), with half as many: (1 + .81) / (1 - .81) = 9.5."""
    noise = np.random.default_rng(0).standard_normal((200, 2500))
    values = lfilter([1.0], [1.0, -0.9], noise, axis=1)[:, 500:]
    values[:, 1::2] = np.nan
    assert variance_inflation(autocorrelation(values).mean(axis=0)) == pytest.approx(9.5, rel=0.1)
