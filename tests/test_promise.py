from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from pimeter.promise import quantile_ranks

LEVELS = pytest.mark.parametrize("p", [0.01, 0.05, 0.3, 0.5, 0.9, 0.95, 0.999])


@LEVELS
@pytest.mark.parametrize("m", [1, 2, 5, 6, 20, 59, 60, 100, 1000, 100_000, 10_000_000])
def test_level_is_that_of_the_binomial_law(m, p):
    low, high, exact_level = quantile_ranks(m, p)
    assert 1 <= low <= high <= m
    # binom.cdf is accurate to about 1e-11 at m = 1e7.
    assert_allclose(exact_level, binom.cdf(high - 1, m, p) - binom.cdf(low - 1, m, p), atol=1e-10)
    assert exact_level >= 0.95 or (low, high) == (1, m)


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
