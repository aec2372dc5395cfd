"""`QuantileSketch`: bounded, mergeable in any order, and bytes that are checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter.sketch import CHECKSUM, HEADER

LEVELS = np.array([0.001, 0.05, 0.5, 0.9, 0.99])


def distance(sketch: pm.QuantileSketch, x: np.ndarray) -> np.ndarray:
    """How far off it is, in steps of the map: sqrt(u (1 - u)) pi/size of level."""
    ordered = np.sort(x)
    off = np.abs(np.searchsorted(ordered, sketch.quantile(LEVELS)) / x.size - LEVELS)
    return off / (np.sqrt(LEVELS * (1.0 - LEVELS)) * np.pi / sketch.size)


def test_few_errors_are_all_kept():
    x = np.random.default_rng(0).standard_cauchy(500)
    sketch = pm.QuantileSketch(512).update(x[:200]).update(x[200:])
    assert_allclose(sketch.quantile(LEVELS), pm.quantile(x, LEVELS), rtol=1e-12)
    assert sketch.count == 500.0


@pytest.mark.parametrize("distribution", ["standard_normal", "standard_cauchy", "standard_exponential"])
def test_many_errors(distribution):
    x = getattr(np.random.default_rng(1), distribution)(300_000)
    sketch = pm.QuantileSketch(512)
    for part in np.array_split(x, 37):
        sketch.update(part)
    assert (distance(sketch, x) < 1.0).all()  # within one cell, whatever was merged meanwhile
    assert len(sketch.to_bytes()) <= HEADER.size + CHECKSUM + 16 * 512
    assert_array_equal(sketch.quantile([0.0, 1.0]), [x.min(), x.max()])


def test_merging_in_any_order():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(200_000)
    parts = [pm.QuantileSketch(512).update(part) for part in np.array_split(x, 20)]
    before = [part.to_bytes() for part in parts]
    for order in (range(20), range(19, -1, -1), rng.permutation(20)):
        merged = pm.QuantileSketch(512)
        for i in order:
            merged = merged.merge(parts[i])
        assert merged.count == 200_000.0
        assert (distance(merged, x) < 1.0).all()
    assert [part.to_bytes() for part in parts] == before


def test_sorted_streams():
    x = np.sort(np.random.default_rng(3).standard_normal(100_000))
    sketch = pm.QuantileSketch(512)
    for part in np.array_split(x, 50):
        sketch.update(part)
    assert (distance(sketch, x) < 2.0).all()


def test_weights_are_counts():
    x = np.random.default_rng(4).standard_normal(300)
    counts = np.random.default_rng(5).integers(0, 4, 300)
    ours = pm.QuantileSketch(2048).update(x, counts)
    assert ours.count == counts.sum()
    copies = pm.QuantileSketch(2048).update(np.repeat(x, counts))
    assert_allclose(ours.quantile(LEVELS), copies.quantile(LEVELS), rtol=1e-9)
    assert pm.QuantileSketch().update([0.0, 10.0], weights=[99, 1]).quantile(0.95) == 0.0


@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_weighted_errors_are_all_kept_until_some_are_merged(scale):
    rng = np.random.default_rng(6)
    x, counts = rng.standard_normal(60), scale * rng.uniform(0.5, 2.0, 60)
    one, two = (pm.QuantileSketch(64).update(x[half], counts[half]) for half in (slice(30), slice(30, 60)))
    sketch = one.merge(pm.QuantileSketch.from_bytes(two.to_bytes()))
    for kept in (sketch, pm.QuantileSketch.from_bytes(sketch.to_bytes())):
        assert_allclose(kept.quantile(LEVELS), pm.quantile(x, LEVELS, weights=counts), rtol=1e-9)
    small = pm.QuantileSketch(16).update(x, counts)  # a mean for each four errors: quantiles lie between means
    for merged in (small, pm.QuantileSketch.from_bytes(small.to_bytes()), pm.QuantileSketch(64).merge(small)):
        means, sums = merged._merged()
        cumulative = np.cumsum(sums)
        places, known = [0.0, *(cumulative - sums / 2.0), cumulative[-1]], [x.min(), *means, x.max()]
        assert_allclose(merged.quantile(LEVELS), np.interp(LEVELS * cumulative[-1], places, known), rtol=1e-12)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60), st.integers(16, 40))
def test_bytes_come_back(values, size):
    sketch = pm.QuantileSketch(size).update(values)
    back = pm.QuantileSketch.from_bytes(sketch.to_bytes())
    assert back.to_bytes() == sketch.to_bytes()
    assert_array_equal(back.quantile(LEVELS), sketch.quantile(LEVELS))
    assert min(values) <= back.quantile(0.3) <= max(values)


@pytest.mark.parametrize("size", [16, 128])
def test_tiny_weights(size):
    x = np.random.default_rng(12).standard_normal(100)
    tiny, plain = (pm.QuantileSketch(size).update(x, np.full(100, w)).quantile([0.0, 0.5, 1.0]) for w in (1e-320, 1e-3))
    assert_allclose(tiny, plain, rtol=1e-6)


def level_error(sketch: pm.QuantileSketch, x: np.ndarray, weights: np.ndarray) -> float:
    """Largest distance of a level from those that its answer has among all values, in units of pi/size."""
    levels, order = np.linspace(0.001, 0.999, 499), np.argsort(x)
    cumulative = np.concatenate([[0.0], np.cumsum(weights[order])])
    found = sketch.quantile(levels)
    assert (np.diff(found) >= 0.0).all()
    below, up_to = (cumulative[np.searchsorted(x[order], found, side)] / cumulative[-1] for side in ("left", "right"))
    return float(np.maximum(below - levels, levels - up_to).max() * sketch.size / np.pi)


WILD = {
    "decades": lambda rng, n: 10.0 ** rng.uniform(-100, 100, n),
    "signed": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-100, 100, n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 50.0, n),
    "scales": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-100, 101, n),
    "half zero": lambda rng, n: rng.integers(0, 2, n) * 10.0 ** rng.uniform(-100, 100, n),
    "tied decades": lambda rng, n: 10.0 ** rng.integers(-100, 101, n),
    "falling scale": lambda rng, n: rng.standard_normal(n) * np.exp(np.linspace(200, -200, n)),
}


class TestAnySpread:
    """Sums of values lose all but the largest; ranks know nothing of spread. Bounds: `benchmarks/sketch_spread.py`."""

    @pytest.mark.parametrize("distribution", WILD)
    def test_streams(self, distribution):
        rng = np.random.default_rng(20)
        x = WILD[distribution](rng, 20_000)
        for order in (np.arange(x.size), np.argsort(x)):
            sketch = pm.QuantileSketch(64)
            for part in np.array_split(x[order], 100):
                sketch = pm.QuantileSketch.from_bytes(sketch.update(part).to_bytes())
            assert level_error(sketch, x, np.ones(x.size)) < 2.0

    @pytest.mark.parametrize("distribution", WILD)
    def test_merged_in_any_order(self, distribution):
        rng = np.random.default_rng(21)
        x = WILD[distribution](rng, 10_000)
        for n_parts, most in ((7, 1.0), (100, 2.0)):
            parts = [pm.QuantileSketch(64).update(part) for part in np.array_split(x, n_parts)]
            merged = parts[0]
            for i in rng.permutation(np.arange(1, n_parts)):
                merged = merged.merge(parts[i])
            assert level_error(merged, x, np.ones(x.size)) < most

    @pytest.mark.parametrize("n", [100, 5000])
    @pytest.mark.parametrize("fraction", [0.02, 0.5, 0.99])
    def test_a_weight_of_many_cells_is_one_value(self, fraction, n):
        """Answers left a value with half of the weight in the middle of its levels, a quarter of all too early."""
        rng = np.random.default_rng(22)
        x, weights = rng.standard_normal(n), rng.uniform(0.5, 1.0, n)
        weights[7] = fraction / (1.0 - fraction) * (weights.sum() - weights[7])
        sketch = pm.QuantileSketch(64).update(x, weights)
        assert level_error(sketch, x, weights) < 1.0
        assert level_error(sketch.merge(pm.QuantileSketch(64).update(x, weights)), x, weights) < 1.0

    def test_a_single_cell(self):
        assert pm.QuantileSketch(16).update(np.arange(40.0), [1e299] + [1.0] * 39).quantile(0.5) == 0.0


def test_order_within_an_update_leaves_no_trace():
    rng = np.random.default_rng(23)
    x, weights, order = rng.integers(0, 40, 500) + 0.0, 2.0 * rng.random(500), rng.permutation(500)
    for size in (64, 512):
        one, two = pm.QuantileSketch(size).update(x, weights), pm.QuantileSketch(size).update(x[order], weights[order])
        assert one.to_bytes() == two.to_bytes()


class TestBadInput:
    @pytest.mark.parametrize("size", [0, 15, 2.5, "big"])
    def test_size(self, size):
        with pytest.raises(ValueError, match="size must be"):
            pm.QuantileSketch(size)

    @pytest.mark.parametrize(
        ("values", "weights", "message"),
        [
            ([1.0, np.nan], None, "finite"),
            ([1.0], [-1.0], "counts"),
            ([1.0], [1.0, 2.0], "one for each value"),
            (np.ones((2, 3)), np.ones((3, 2)), "same shape"),
        ],
    )
    def test_nothing_changes(self, values, weights, message):
        sketch = pm.QuantileSketch(16).update([1.0, 2.0])
        before = sketch.to_bytes()
        with pytest.raises(ValueError, match=message):
            sketch.update(values, weights)
        assert sketch.to_bytes() == before

    def test_merge(self):
        with pytest.raises(TypeError, match="other must be a QuantileSketch; got a int"):
            pm.QuantileSketch().merge(3)

    def test_empty(self):
        with pytest.raises(ValueError, match="empty"):
            pm.QuantileSketch().update([]).quantile(0.5)

    def test_levels(self):
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            pm.QuantileSketch().update([1.0]).quantile(95)

    def test_bytes(self):
        data = pm.QuantileSketch(16).update(np.arange(30.0)).to_bytes()
        for broken in (b"", b"x" * 60, data[:-1], data[:-1] + b"\0", data + b"\0"):
            with pytest.raises(ValueError, match=r"not a QuantileSketch|broken"):
                pm.QuantileSketch.from_bytes(broken)
        for place in range(len(data)):  # extremes and size are under the checksum, too
            broken = bytearray(data)
            broken[place] ^= 1 << place % 8
            with pytest.raises(ValueError, match=r"QuantileSketch"):
                pm.QuantileSketch.from_bytes(bytes(broken))
        with pytest.raises(ValueError, match="version 2"):
            pm.QuantileSketch.from_bytes(data[:4] + b"\2\0" + data[6:])


def test_a_masked_value_is_refused():
    with pytest.raises(ValueError, match="values must be finite"):
        pm.QuantileSketch().update(np.ma.MaskedArray([1.0, 1e9], mask=[False, True]))


@pytest.mark.parametrize("values", [np.array(["2024-01-01"], "datetime64[D]"), [1j], ["1.0"]])
def test_what_is_no_number_is_refused(values):
    with pytest.raises(ValueError, match="values must hold real numbers"):
        pm.QuantileSketch().update(values)


def test_means_of_far_apart_values_and_large_weights_stay_finite():
    x = np.tile([-1e300, 1e300], 50)
    sketch = pm.QuantileSketch(16).update(x, np.full(100, 1e290))
    found = sketch.quantile([0.1, 0.5, 0.9])
    assert np.isfinite(found).all()
    assert_allclose(found[[0, 2]], [-1e300, 1e300])
