"""The CRPS as miscalibration, discrimination and uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

import pimeter as pm
from pimeter.evaluation.decomposition import decomposition, isotonic_quantiles
from pimeter.predictive import predictive

LEVELS = np.arange(1, 10) / 10


def pinball(y, quantile, level):
    return np.maximum(level * (y - quantile), (level - 1) * (y - quantile)).sum()


def least_loss(y, by, level):
    """The same by linear programming: a value for each distinct predictor, and what targets are beyond it."""
    distinct, place = np.unique(by, return_inverse=True)
    k, n = len(distinct), len(y)
    rows = np.zeros((n, k))
    rows[np.arange(n), place] = 1.0
    equal = np.hstack([rows, np.eye(n), -np.eye(n)])
    rising = np.hstack([(np.eye(k) - np.eye(k, k=1))[:-1], np.zeros((k - 1, 2 * n))])
    cost = np.concatenate([np.zeros(k), np.full(n, level), np.full(n, 1.0 - level)])
    bounds = [(None, None)] * k + [(0, None)] * (2 * n)
    return linprog(cost, rising, np.zeros(k - 1), equal, y, bounds).fun


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_quantiles_have_the_least_loss(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 50))
    by = rng.normal(size=(2, n)) if seed % 2 else rng.integers(0, 6, (2, n)).astype(float)
    y = by[0] + rng.normal(size=n)
    y = np.round(y) if seed % 3 == 0 else y
    levels = rng.uniform(0.03, 0.97, 2)
    found = isotonic_quantiles(y, by, levels)
    for own, along, level in zip(found, by, levels, strict=True):
        order = np.argsort(along, kind="stable")
        assert (np.diff(own[order]) >= 0).all()
        assert all(np.ptp(own[along == value]) == 0 for value in np.unique(along))
        assert pinball(y, own, level) == pytest.approx(least_loss(y, along, level), abs=1e-9)


def drawn(n, seed, scale=1.0, told=1.0):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=n)
    y = centre + rng.normal(size=n)
    return y, told * centre[:, None] + scale * norm.ppf(LEVELS)


def test_parts_add_up_to_the_crps():
    y, quantiles = drawn(500, 0)
    found = pm.measure(y, quantiles=quantiles, levels=LEVELS)
    parts = found.decomposition
    assert parts.crps == pytest.approx(found.scores["crps"].value)
    assert parts.rows == 500
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0.0
    assert "isotonic quantiles of 500 rows" in found.diagnosis["decomposition"].sentence
    assert not found.diagnosis["decomposition"].raised


def test_each_part_tells_what_it_is_named_after():
    right, narrow, blind = (
        decomposition(y, predictive(quantiles=quantiles, levels=LEVELS))
        for y, quantiles in (drawn(4000, 1), drawn(4000, 1, scale=0.5), drawn(4000, 1, scale=2**0.5, told=0.0))
    )
    assert right.rows == 2000
    assert narrow.miscalibration > 2 * narrow.by_chance
    assert narrow.discrimination == pytest.approx(right.discrimination)
    assert blind.discrimination == pytest.approx(0.0, abs=1e-12)
    assert blind.uncertainty == right.uncertainty


def test_calibrated_distributions_seldom_exceed_what_chance_gives():
    """In 5 % of 60 draws: eight or more have a probability of 2 %."""
    beyond = 0
    for seed in range(60):
        y, quantiles = drawn(100, seed)
        parts = decomposition(y, predictive(quantiles=quantiles, levels=LEVELS))
        beyond += parts.miscalibration > parts.by_chance
    assert beyond < 8


@pytest.mark.parametrize(
    "said",
    [
        {"intervals": np.tile([-1.0, 1.0], (60, 1)), "confidence_level": 0.9},
        {"quantiles": np.tile([-np.inf, -1.0, 0.0, 1.0, 2.0], (60, 1)), "levels": [0.1, 0.2, 0.5, 0.8, 0.9]},
    ],
)
def test_it_takes_a_whole_distribution(said):
    assert pm.measure(np.linspace(-1, 1, 60), **said).decomposition is None


def test_few_rows_have_no_parts():
    assert pm.measure(np.zeros(40), np.zeros(40), std=np.ones(40)).decomposition is None


@pytest.mark.parametrize("n_samples", [5, 40])
def test_normal_distributions_and_samples_have_parts(n_samples):
    y, _ = drawn(300, 2)
    rng = np.random.default_rng(0)
    for said in ({"y_pred": 0 * y, "std": np.full(300, 2**0.5)}, {"samples": rng.normal(size=(300, n_samples))}):
        parts = pm.measure(y, **said).decomposition
        assert parts.crps == pytest.approx(pm.measure(y, **said).scores["crps"].value, rel=0.1)
