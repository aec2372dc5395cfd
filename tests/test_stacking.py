"""Stacking: weights of bounds by their interval score."""

from __future__ import annotations

import numpy as np
import pytest

from pimeter.conformal.scores import TAILS
from pimeter.regression.stacking import Bounds, interval_losses, stacked_weights

LEVEL, TWO_TAILS = 0.9, TAILS["symmetric"]


def drawn(n=400):
    """Residuals whose scale is known, bounds by that scale, and a constant one."""
    rng = np.random.default_rng(0)
    scale = np.exp(rng.normal(size=(n, 1)))
    residuals = scale * rng.normal(size=(n, 1))
    flat = np.full((n, 1), np.quantile(np.abs(residuals), LEVEL))
    return residuals, [Bounds(flat, flat), Bounds(1.645 * scale, 1.645 * scale)]


def test_finds_the_bounds_that_are_right():
    residuals, bounds = drawn()
    unit = interval_losses(bounds, residuals, LEVEL, TWO_TAILS)[0].mean(axis=0)
    weights = stacked_weights(bounds, residuals, unit, LEVEL, TWO_TAILS)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] > 0.9


def test_is_about_as_good_as_the_best_mean():
    residuals, bounds = drawn()
    bounds.append(Bounds(bounds[0].lower * 0.3, bounds[0].upper * 3))
    others = np.random.default_rng(1).dirichlet([1] * 3, 300)
    tried = [stacked_weights(bounds, residuals, np.ones(1), LEVEL, TWO_TAILS), *others]
    means = [Bounds.mean(bounds, weights) for weights in tried]
    losses = interval_losses(means, residuals, LEVEL, TWO_TAILS).mean(axis=(1, 2))
    assert losses[0] < 1.02 * losses.min()


@pytest.mark.parametrize("factor", [1e-9, 1e6, 1e100])
def test_absurd_bounds_get_no_weight(factor):
    # Their gradients are beyond what exponents can take in one step.
    residuals, bounds = drawn()
    n = len(residuals)
    odd = factor * np.where(np.arange(n)[:, None] % 7, 1.0, 1e-3)
    weights = stacked_weights([*bounds, Bounds(odd, odd)], residuals, np.ones(1), LEVEL, TWO_TAILS)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[2] < 0.05


def test_one_bound_is_judged_by_the_pinball_loss():
    residuals, bounds = drawn(5)
    found = interval_losses(bounds, residuals, LEVEL, TAILS["upper"])[1]
    beyond = residuals - bounds[1].upper
    np.testing.assert_allclose(found, np.where(beyond > 0, 9 * beyond, -beyond))
