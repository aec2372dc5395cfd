"""A neuron for each group: the answers of `quantile`, group by group, in memory and from dask collections."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter._kernels.dask import groups as lazy_groups


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def draw(n: int, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    by = rng.integers(n_groups, size=n)
    return np.abs(rng.standard_normal(n)) * (1.0 + by % 7), by


@pytest.mark.parametrize("options", [{}, {"beta": 3.0}, {"reflect": True}])
@pytest.mark.parametrize("q", [0.9, [[0.0], [0.5], [1.0]]])
def test_each_group_is_a_sample(q, options):
    errors, by = draw(500, 9)
    names = np.array(["store " + str(code) for code in by])
    found = pm.grouped_quantile(errors, names, q, **options)
    assert list(found.labels) == sorted(set(names))
    assert found.quantiles.shape == (*np.shape(q), 9)
    for i, label in enumerate(found.labels):
        own = errors[names == label]
        assert found.rows[i] == own.size
        assert_array_equal(found.quantiles[..., i], pm.quantile(own, q, **options))


@pytest.mark.parametrize("kind", ["array", "series", "words"])
def test_dask_collections(kind):
    errors, by = draw(5000, 300)
    frame = pd.DataFrame({"error": errors, "by": by if kind != "words" else np.char.add("s", by.astype(str))})
    parts = dd.from_pandas(frame, npartitions=4)
    given = parts["error"], parts["by"]
    if kind == "array":
        given = da.from_array(errors, chunks=1300), da.from_array(by, chunks=1300)
    found = pm.grouped_quantile(*given, [0.1, 0.9])
    for ours, expected in zip(found, pm.grouped_quantile(frame["error"], frame["by"], [0.1, 0.9]), strict=True):
        assert_array_equal(ours, expected)


def test_a_hundred_thousand_groups():
    errors, by = draw(500_000, 100_000)
    found = pm.grouped_quantile(da.from_array(errors, chunks=130_000), da.from_array(by, chunks=130_000), 0.9)
    expected = pm.grouped_quantile(errors, by, 0.9)
    assert len(found.labels) > 99_000
    for ours, others in zip(found, expected, strict=True):
        assert_array_equal(ours, others)


@pytest.mark.parametrize("options", [{}, {"beta": 20.0}, {"reflect": True}])
def test_large_groups_are_counted_not_moved(monkeypatch, options):
    errors, by = draw(400_000, 2000)
    by[by % 2 == 0] = 5
    by[:90_000] = 3
    reads = []

    def made(block_id):
        reads.append(block_id[0])
        return errors[100_000 * block_id[0] :][:100_000]

    lazy = da.map_blocks(lambda block_id=None: made(block_id), chunks=((100_000,) * 4,), dtype=float, meta=np.empty(0))
    reads.clear()
    monkeypatch.setattr(lazy_groups, "MAX_GROUP_ROWS", 80_000)
    moved = []
    solved = lazy_groups._solved
    monkeypatch.setattr(lazy_groups, "_solved", lambda frame, *more: moved.append(len(frame)) or solved(frame, *more))
    found = pm.grouped_quantile(lazy, da.from_array(by, chunks=100_000), [0.05, 0.95], **options)
    assert sorted(reads) == sorted([0, 1, 2, 3] * 2)  # labels are read once more
    expected = pm.grouped_quantile(errors, by, [0.05, 0.95], **options)
    assert_array_equal(found.rows, expected.rows)
    is_large = found.rows > 80_000
    assert is_large.sum() == 2
    assert max(moved) <= errors.size - found.rows[is_large].sum()
    assert_array_equal(found.quantiles[:, ~is_large], expected.quantiles[:, ~is_large])
    # What bins of the second read cost, a five-hundredth of a standard error: groups are in truth fifty times as large.
    assert_allclose(found.quantiles[:, is_large], expected.quantiles[:, is_large], rtol=5e-6)


def test_on_a_cluster_with_empty_and_missing_values():
    errors, by = draw(3000, 50)
    errors[by == 7] = np.nan
    lazy = [
        da.concatenate([da.from_array(a, chunks=-1) for a in (x[:0], x[:900], x[:0], x[900:])]) for x in (errors, by)
    ]
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        dask.config.set(scheduler=None),
    ):
        found = pm.grouped_quantile(*lazy, 0.9)
    assert_array_equal(found.quantiles, pm.grouped_quantile(errors, by, 0.9).quantiles)
    assert np.isnan(found.quantiles[7])


def test_bad_input():
    x = da.from_array(np.ones(10), chunks=5)
    with pytest.raises(TypeError, match="dask collection"):
        pm.grouped_quantile(x, np.ones(10), 0.5)
    with pytest.raises(ValueError, match="partitions"):
        pm.grouped_quantile(x, x.rechunk(2), 0.5)
    with pytest.raises(ValueError, match="rows per partition differ"):
        pm.grouped_quantile(x, da.from_array(np.ones(10), chunks=6), 0.5)
    with pytest.raises(ValueError, match="one dimension"):
        pm.grouped_quantile(x, da.ones((10, 2), chunks=5), 0.5)
    with pytest.raises(ValueError, match="no rows"):
        pm.grouped_quantile(x[x > 2], x[x > 2], 0.5)
    with pytest.raises(ValueError, match="missing labels"):
        pm.grouped_quantile(x, x * np.nan, 0.5)
    with pytest.raises(ValueError, match="absolute errors"):
        pm.grouped_quantile(-x, x, 0.5, reflect=True)
    for missing in (np.array([1.0, np.nan]), np.array(["a", None], dtype=object), np.array(["NaT"] * 2, "M8[s]")):
        with pytest.raises(ValueError, match="missing labels"):
            pm.grouped_quantile([1.0, 2.0], missing, 0.5)
    with pytest.raises(TypeError, match=r"by holds labels that cannot be put in order \(.*\); give numbers or strings"):
        pm.grouped_quantile([1.0, 2.0], np.array(["a", 1], dtype=object), 0.5)
    with pytest.raises(ValueError, match="one shape"):
        pm.grouped_quantile([1.0, 2.0], [1], 0.5)
    with pytest.raises(ValueError, match="no rows"):
        pm.grouped_quantile([], [], 0.5)
    with pytest.raises(ValueError, match="q must lie"):
        pm.grouped_quantile([1.0], [1], 95)
