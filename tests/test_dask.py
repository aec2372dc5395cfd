"""Dask collections: the answers of arrays in memory, in three reads, and nothing gathered."""

from __future__ import annotations

import json
import subprocess
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter import cli
from pimeter._kernels.dask import reads
from pimeter._kernels.dask import rows as lazy_rows
from pimeter._kernels.dask.bins import Task
from pimeter.evaluation.diagnosis.evidence import CheckedRows

LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def draw(distribution: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return {
        "normal": lambda: rng.standard_normal(n),
        "far from 0": lambda: 1e6 + rng.standard_normal(n),
        "cauchy": lambda: rng.standard_cauchy(n),
        "tied": lambda: rng.integers(0, 9, n).astype(float),
        "absolute": lambda: np.abs(rng.standard_normal(n)),
    }[distribution]()


def assert_near(ours, x: np.ndarray, expected) -> None:
    """What bins cost: a millionth of the sample's middle half, or of the answer."""
    spread = float(np.subtract(*np.quantile(x, [0.75, 0.25])))
    assert_allclose(np.asarray(ours), expected, rtol=1e-9, atol=1e-6 * spread)


@pytest.mark.parametrize("distribution", ["normal", "far from 0", "cauchy", "tied", "absolute"])
@pytest.mark.parametrize("options", [{}, {"beta": 20.0}, {"reflect": True}, {"reflect": True, "beta": 20.0}])
@pytest.mark.parametrize("n", [3000, 300_000])
def test_one_long_sample(distribution, options, n):
    x = draw(distribution, n)
    if options.get("reflect") and x.min() < 0.0:
        x = np.abs(x)
    found = pm.quantile(da.from_array(x, chunks=n // 7), LEVELS, **options)
    assert isinstance(found, da.Array)
    assert_near(found.compute(), x, pm.quantile(x, LEVELS, **options))


def clumps(distribution: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    return {
        "sentinel": lambda: np.where(rng.uniform(size=n) < 0.04, 1e6, np.abs(x)),
        "two clumps": lambda: x + np.where(rng.uniform(size=n) < 0.49, 5e6, 0.0),
        "two clumps far from 0": lambda: 1e6 + 1e-3 * x + np.where(rng.uniform(size=n) < 0.49, 1e5, 0.0),
        "many scales": lambda: np.exp(8.0 * x),
        "largest floats": lambda: 1.7e308 * rng.uniform(-1.0, 1.0, n),
        "smallest floats": lambda: rng.uniform(0.0, 1e-310, n),
    }[distribution]()


@pytest.mark.parametrize(
    ("distribution", "level"),
    [
        ("sentinel", 0.95),
        ("two clumps", 0.5),
        ("two clumps far from 0", 0.5),
        ("many scales", 0.999),
        ("largest floats", 0.9),
        ("smallest floats", 0.9),
    ],
)
@pytest.mark.parametrize("options", [{}, {"beta": 20.0}, {"reflect": True}, {"weights": 2.5}])
def test_errors_far_away_cost_nothing_near_the_level(distribution, level, options):
    x = clumps(distribution, 70_000)
    if options.get("reflect"):
        x = np.abs(x)
    if "weights" in options:
        options = {"weights": np.where(np.arange(x.size) % 3 > 0, options["weights"], 0.0)}
    expected = pm.quantile(x, level, **options)
    lazy_x = da.from_array(x, chunks=30_000)
    spread = np.ptp(x[np.argsort(np.abs(x / 2 - expected / 2))[: x.size // 50]])  # of the nearest
    for levels, close in (([level], 1e-6), ([*np.linspace(0.01, 0.99, 9), level], 1e-5)):  # many have fewer bins each
        found = pm.quantile(lazy_x, levels, **options).compute()[-1]
        assert_allclose(found, expected, rtol=1e-9, atol=close * spread)


def test_neuron_of_errors_some_of_which_are_far_away():
    x = clumps("sentinel", 70_000)
    ours, expected = pm.QuantileNeuron(0.95).fit(da.from_array(x, chunks=30_000)), pm.QuantileNeuron(0.95).fit(x)
    assert_allclose(ours.quantile_, expected.quantile_, rtol=1e-6)
    assert_allclose(ours.standard_error_, expected.standard_error_, rtol=1e-3)
    assert_allclose(ours.quantile_range_, expected.quantile_range_, rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("q", [0.9, [0.1, 0.9], [[0.0], [1.0]]])
def test_axes_and_shapes(axis, keepdims, q):
    x = np.random.default_rng(0).standard_normal((30, 8, 5)).astype(np.float32)
    found = pm.quantile(da.from_array(x, chunks=(11, 3, 5)), q, axis, keepdims=keepdims)
    expected = np.asarray(pm.quantile(x, q, axis, keepdims=keepdims))
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    assert_allclose(found.compute(), expected, rtol=1e-6)


def test_many_neurons_are_solved_where_they_are():
    x = np.random.default_rng(1).standard_normal((200, 600))
    found = pm.quantile(da.from_array(x, chunks=(50, 300)), 0.9, 0)
    assert_array_equal(found.compute(), pm.quantile(x, 0.9, 0))


def test_weights():
    x = draw("normal", 200_000)
    counts = np.random.default_rng(2).choice([0.0, 1.0, 2.5], x.size)
    chunks = 30_000
    lazy_counts = da.from_array(counts, chunks=chunks)
    for options in ({}, {"beta": 20.0}):
        found = pm.quantile(da.from_array(x, chunks=chunks), 0.9, weights=lazy_counts, **options)
        assert_near(found.compute(), x, pm.quantile(x, 0.9, weights=counts, **options))


def test_one_weight_for_each_value_along_an_axis():
    x, counts = np.random.default_rng(5).standard_normal((300, 3)), np.random.default_rng(6).integers(3, size=300)
    for rows in (100, 300):
        found = pm.quantile(da.from_array(x, chunks=(rows, 2)), 0.9, 0, weights=counts)
        assert_allclose(found.compute(), pm.quantile(x, 0.9, 0, weights=counts), rtol=1e-9)


def test_chunks_of_unknown_size():
    x = draw("normal", 100_000)
    found = pm.quantile(da.from_array(x, chunks=15_000)[da.from_array(x, chunks=15_000) > 0.0], 0.9)
    assert_near(found.compute(), x, pm.quantile(x[x > 0.0], 0.9))


@pytest.mark.parametrize("n_values", [7, 100, 1000])
@pytest.mark.parametrize("q", [0.1, 0.37, 0.9])
def test_ties_matter_from_afar(n_values, q):
    x = np.random.default_rng(9).integers(n_values, size=100_000)
    expected = pm.quantile(x.astype(float), q)
    assert_allclose(pm.quantile(da.from_array(x, chunks=30_000), q).compute(), expected, rtol=1e-9)


def test_errors_beyond_a_tie_matter():
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=70_000) < 0.3, 0.0, rng.standard_normal(70_000))
    found = pm.quantile(da.from_array(x, chunks=30_000), 0.652).compute()
    assert_allclose(found, pm.quantile(x, 0.652), rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"beta": 20.0}])
def test_weights_of_chunks_of_unknown_size(options):
    x = np.random.default_rng(10).standard_normal((100_000, 2))
    counts = np.random.default_rng(11).choice([0.0, 1.0, 2.0], 100_000)
    known, own = da.from_array(x, chunks=(30_000, 1)), da.from_array(counts, chunks=30_000)
    held = x[:, 0] > 0.0
    is_held = da.from_array(x[:, 0], chunks=30_000) > 0.0
    found = pm.quantile(known[is_held], 0.9, 0, weights=own[is_held], **options).compute()
    assert_near(found, x, pm.quantile(x[held], 0.9, 0, weights=counts[held], **options))
    each = da.stack([own, own], axis=1).rechunk((30_000, 1))[is_held]
    assert_near(pm.quantile(known[is_held], 0.9, 0, weights=each, **options).compute(), x, found)
    with pytest.raises(ValueError, match="same chunks"):
        pm.quantile(known[is_held], 0.9, 0, weights=counts[held])
    with pytest.raises(ValueError, match="same chunks"):
        pm.quantile(known[is_held], 0.9, 0, weights=own).compute()


def test_no_levels():
    x = da.ones((4, 3), chunks=2)
    assert pm.quantile(x, [], 0).compute().shape == np.shape(pm.quantile(x.compute(), [], 0))
    assert pm.quantile(x, [], 0, keepdims=True).compute().shape == (0, 1, 3)


def test_series_and_frames():
    frame = pd.DataFrame(np.random.default_rng(3).standard_normal((90_000, 2)), columns=["a", "b"])
    parts = dd.from_pandas(frame, npartitions=4)
    assert_near(pm.quantile(parts["a"], 0.9).compute(), frame["a"].to_numpy(), pm.quantile(frame["a"].to_numpy(), 0.9))
    assert_near(pm.quantile(parts, 0.9, 0).compute(), frame.to_numpy(), pm.quantile(frame.to_numpy(), 0.9, 0))


def test_each_read_reads_each_chunk_once():
    reads = []

    def made(block_id):
        reads.append(block_id)
        return np.random.default_rng(block_id[0]).standard_normal(50_000)

    x = da.map_blocks(lambda block_id=None: made(block_id), chunks=((50_000,) * 4,), dtype=float, meta=np.empty(0))
    reads.clear()
    pm.quantile(x, 0.9).compute()
    assert sorted(reads) == sorted([(i,) for i in range(4)] * 3)


def test_work_of_several_chunks_is_done_once():
    calls = []

    def made():
        calls.append(1)
        return draw("normal", 1000)

    shared = da.from_delayed(dask.delayed(made)(), (1000,), float)
    found = pm.quantile(da.concatenate([shared, shared + 1.0, 2.0 * shared]), 0.9).compute()
    x = draw("normal", 1000)
    assert found == pm.quantile(np.concatenate([x, x + 1.0, 2.0 * x]), 0.9)
    assert len(calls) == 1


def test_partial_results_add_up_in_any_order():
    x = draw("normal", 40_000)
    task = Task((0.9,), None, False)
    parts = [reads.first_read(part, None, task) for part in np.array_split(x, 5)]
    whole = reads.first_read(x, None, task)
    for some in (parts, parts[::-1]):
        total = sum(some[1:], some[0])
        assert_array_equal(total.bins, whole.bins)
        assert_array_equal(total.extremes, whole.extremes)


class TestOddData:
    def test_missing_values_in_one_partition(self):
        x = np.random.default_rng(4).standard_normal((100_000, 2))
        x[:10_000, 1] = np.nan  # the whole first chunk
        found = pm.quantile(da.from_array(x, chunks=(10_000, 2)), 0.9, 0).compute()
        assert np.isfinite(found[0])
        assert np.isnan(found[1])

    def test_infinities(self):
        x = draw("normal", 100_000)
        x[:7] = np.inf
        assert_near(pm.quantile(da.from_array(x, chunks=9000), 0.9).compute(), x, pm.quantile(x, 0.9))
        x[7:20] = -np.inf
        levels = [0.0, 0.0001, 0.5, 0.99995, 1.0]
        for options in ({}, {"beta": 3.0}):
            found = pm.quantile(da.from_array(x, chunks=9000), levels, **options).compute()
            assert_allclose(found, pm.quantile(x, levels, **options), atol=1e-6)
        x[:] = np.inf
        assert pm.quantile(da.from_array(x, chunks=9000), 0.5).compute() == np.inf

    def test_empty_partitions(self):
        x = draw("normal", 1000)
        parts = [da.from_array(part, chunks=-1) for part in (x[:0], x[:400], x[:0], x[400:])]
        assert float(pm.quantile(da.concatenate(parts), 0.9).compute()) == pm.quantile(x, 0.9)

    def test_nothing_at_all(self):
        x = da.from_array(np.ones(10), chunks=5)
        with pytest.raises(ValueError, match="all chunks are empty"):
            pm.quantile(x[x > 2.0], 0.5).compute()
        with pytest.raises(ValueError, match="no values along axis"):
            pm.quantile(da.zeros((0, 3)), 0.5, 0)

    def test_bad_weights(self):
        x = da.from_array(np.ones(10), chunks=5)
        with pytest.raises(ValueError, match="weights are counts"):
            pm.quantile(x, 0.5, weights=da.from_array(np.full(10, -1.0), chunks=5)).compute()
        with pytest.raises(ValueError, match="weights have shape"):
            pm.quantile(x, 0.5, weights=np.ones(3))

    def test_negative_values_to_reflect(self):
        with pytest.raises(ValueError, match="absolute errors"):
            pm.quantile(da.from_array(np.linspace(-1, 1, 10), chunks=5), 0.5, reflect=True).compute()

    def test_words(self):
        with pytest.raises(TypeError, match="real numbers"):
            pm.quantile(da.from_array(np.array(["a", "b"]), chunks=1), 0.5)

    def test_unknown_lengths_where_they_must_be_known(self):
        x = da.from_array(np.ones((10, 3)), chunks=5)
        with pytest.raises(ValueError, match="compute_chunk_sizes"):
            pm.quantile(x[x[:, 0] > 0.0], 0.5, 1)
        wide = da.ones((10, 300), chunks=(5, 300))
        with pytest.raises(ValueError, match=r"asks for 300 quantiles; up to \d+ are found so\. Call a\.compute_chunk"):
            pm.quantile(wide[wide[:, 0] > 0.0], 0.5, 0)


class TestNeuron:
    def test_columns(self):
        x = np.abs(np.random.default_rng(5).standard_normal((200_000, 2)))
        ours = pm.QuantileNeuron(0.9).fit(da.from_array(x, chunks=(30_000, 1)))
        expected = pm.QuantileNeuron(0.9).fit(x)
        assert_allclose(ours.quantile_, expected.quantile_, rtol=1e-6)
        assert_allclose(ours.standard_error_, expected.standard_error_, rtol=1e-3)
        assert_allclose(ours.quantile_range_, expected.quantile_range_, rtol=1e-5)
        assert ours.quantile_range_level_ == expected.quantile_range_level_

    def test_one_column_of_a_frame(self):
        frame = pd.DataFrame({"error": np.abs(draw("normal", 2000))})
        ours = pm.QuantileNeuron().fit(dd.from_pandas(frame, npartitions=3)["error"])
        assert ours.quantile_ == pm.QuantileNeuron().fit(frame["error"].to_numpy()).quantile_

    def test_what_it_cannot_do(self):
        x = da.from_array(np.ones(10), chunks=5)
        with pytest.raises(ValueError, match="NaN or infinite"):
            pm.QuantileNeuron().fit(x * np.nan)
        with pytest.raises(ValueError, match="got y as well"):
            pm.QuantileNeuron().fit(x, x)


@pytest.fixture(scope="module")
def predictions() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"y_pred": rng.uniform(10, 20, 3000), "store": rng.choice(["a", "b"], 3000)})
    frame.insert(0, "y", frame["y_pred"] + rng.normal(size=3000))
    return frame


class TestMeasure:
    def test_all_rows_of_few(self, predictions):
        parts = dd.from_pandas(predictions, npartitions=3)
        ours = pm.measure(parts["y"], parts["y_pred"], by=parts["store"])
        assert ours == pm.measure(predictions["y"], predictions["y_pred"], by=predictions["store"])
        arrays = [da.from_array(predictions[name].to_numpy(), chunks=700) for name in ("y", "y_pred")]
        assert pm.measure(*arrays).margin == ours.margin

    @pytest.mark.parametrize("kind", ["frame", "arrays"])
    def test_many_rows_stay_where_they_are(self, predictions, monkeypatch, kind):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 1000)
        reads = []

        def seen(part):
            reads.append(len(part))
            return part

        frame = predictions.assign(y=1e3 * predictions["y"], y_pred=1e3 * predictions["y_pred"])
        parts = dd.from_pandas(frame, npartitions=4).map_partitions(seen, meta=frame.iloc[:0])
        columns = parts["y"], parts["y_pred"]
        if kind == "arrays":
            made = [da.from_array(frame[name].to_numpy(), chunks=700) for name in ("y", "y_pred")]
            columns = made[0].map_blocks(seen, dtype=float, meta=np.empty(0)), made[1]
        reads.clear()
        ours = pm.measure(*columns, by=parts["store"] if kind == "frame" else None)
        assert sum(reads) == 3 * len(frame)
        expected = pm.measure(frame["y"], frame["y_pred"])
        assert (ours.n_rows, ours.headline, ours.coverage_range) == (3000, expected.headline, expected.coverage_range)
        for name in ("margin", "width_lower", "width_upper", "guaranteed_level"):
            assert_allclose(getattr(ours.curves, name), getattr(expected.curves, name), rtol=3e-8)
        errors = (frame["y"] - frame["y_pred"]).to_numpy()
        tail = (1.0 + np.array(ours.curves.levels)) / 2.0
        assert_allclose(ours.curves.upper_quantile, np.quantile(errors, tail, method="inverted_cdf"), rtol=3e-8)
        for name in ("mean_width", "mae", "rmse", "mean_error", "median_error", "r2"):
            one, other = ours.scores[name], expected.scores[name]
            assert_allclose(one.value, other.value, rtol=1e-7)
            # Means are resampled in random parts of the rows, which are others here.
            atol = 0.0 if name in {"mean_width", "median_error"} else 0.08 * (other.upper - other.lower)
            assert_allclose([one.lower, one.upper], [other.lower, other.upper], rtol=1e-7, atol=atol)
        assert "1,000 rows drawn at random" in ours.scores["coverage"].meaning
        assert {finding.rows for finding in ours.diagnosis.findings} == {1000}
        assert ours.coverage == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 1000))  # four standard errors
        assert pm.Measurement.from_json(ours.to_json()) == ours

    def test_the_sample_is_random_in_order_and_in_proportion(self, predictions):
        parts = dd.from_pandas(predictions.assign(row=np.arange(3000.0)), npartitions=2)
        found = lazy_rows.read_rows(
            [parts["row"], parts["y_pred"], None],
            300,
            lambda a, b: CheckedRows(np.asarray(a), np.asarray(b), np.asarray(a)),
            lambda n: (np.array([1, n]), np.array([n])),
            lambda extremes: lambda target, errors: errors.sum(),
        )
        rows = found.sample[0].to_numpy()
        assert found.sample[2] is None
        assert (np.diff(rows) > 0).all()
        assert len(np.unique(np.diff(rows))) > 5
        assert np.count_nonzero(rows < 1500) == 150
        assert_array_equal(found.absolute, [0.0, 2999.0])
        assert found.sums == np.arange(3000.0).sum()

    def test_tied_errors_are_covered(self, monkeypatch):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 100)
        y = np.random.default_rng(9).choice([-0.1, 0.1, 0.2, 0.3], 1000, p=[0.25, 0.25, 0.44, 0.06])
        ours = pm.measure(da.from_array(y, chunks=300), da.zeros(1000, chunks=300))
        expected = pm.measure(y, np.zeros(1000))
        assert ours.curves.margin == expected.curves.margin
        assert (np.abs(y) <= ours.margin[0]).mean() >= ours.guaranteed_level
        assert set(ours.curves.lower_quantile + ours.curves.upper_quantile) <= set(y.tolist())

    def test_radii_are_never_too_small(self, monkeypatch):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 100)
        y = 1.0 + 1e-12 * np.random.default_rng(10).uniform(size=1000)
        ours, expected = pm.measure(da.from_array(y, chunks=300), da.zeros(1000, chunks=300)), pm.measure(y, 0.0 * y)
        assert (np.array(ours.curves.margin) >= expected.curves.margin).all()
        assert max(ours.curves.margin) <= y.max()

    def test_extreme_errors(self, monkeypatch):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 100)
        rng = np.random.default_rng(8)
        y = rng.standard_normal(400) * 10.0 ** rng.integers(-200, 200, 400)
        ours = pm.measure(da.from_array(y, chunks=90), da.zeros(400, chunks=90))
        expected = pm.measure(y, np.zeros(400))
        assert_allclose(ours.curves.margin, expected.curves.margin, rtol=3e-8)
        assert_allclose(ours.scores["rmse"].value, expected.scores["rmse"].value, rtol=1e-12)

    def test_empty_partitions_have_no_errors(self):
        rows = dd.from_pandas(pd.DataFrame({"row": np.arange(300.0)}), npartitions=3)
        some = rows[rows["row"] >= 120.0]  # nothing of the first part
        found = lazy_rows.read_rows(
            [some["row"], some["row"]],
            50,
            lambda a, b: CheckedRows(np.asarray(a), np.asarray(b), -np.asarray(a)),
            lambda n: (np.array([1, n]), np.array([1])),
            lambda extremes: lambda target, errors: (target + errors).sum() + len(errors),
        )
        assert_array_equal(found.absolute, [120.0, 299.0])
        assert_array_equal(found.signed, [-299.0])
        assert (found.n, found.sums, len(found.sample[0])) == (180, 180.0, 50)

    def test_bad_input(self, predictions):
        parts = dd.from_pandas(predictions, npartitions=3)
        with pytest.raises(TypeError, match="dask collection"):
            pm.measure(parts["y"], predictions["y_pred"])
        with pytest.raises(ValueError, match="rows per partition differ"):
            pm.measure(parts["y"], parts["y_pred"], by=dd.from_pandas(predictions[:2000], npartitions=3)["store"])
        with pytest.raises(ValueError, match="numbers of partitions"):
            pm.measure(parts["y"], dd.from_pandas(predictions, npartitions=2)["y_pred"])
        with pytest.raises(ValueError, match="same shape"):
            pm.measure(parts["y"], dd.from_pandas(predictions[:2000], npartitions=3)["y_pred"])
        with pytest.raises(ValueError, match="must be finite"):
            pm.measure(parts["y"] * np.nan, parts["y_pred"])
        with pytest.raises(ValueError, match="no rows"):
            pm.measure(*(parts[parts["y"] > 1e9][name] for name in ("y", "y_pred")))
        with pytest.raises(ValueError, match="chunks of columns"):
            pm.measure(parts["y"], parts["y_pred"], X=da.ones((3000, 2), chunks=(1000, 1)))

    def test_command_line_of_many_rows(self, predictions, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 1000)
        for i, part in enumerate(np.array_split(np.arange(3000), 3)):
            predictions.iloc[part].to_parquet(tmp_path / f"part-{i}.parquet")
        out = tmp_path / "report.html"
        monkeypatch.setattr(
            sys, "argv", ["pimeter", "measure", str(tmp_path / "*.parquet"), "--engine", "dask", "--out", str(out)]
        )
        with pytest.raises(SystemExit) as left:
            cli.run()
        shown = capsys.readouterr()
        assert left.value.code == 0
        assert "With 3,000 rows" in shown.out
        assert "1,000 of 3,000 rows, drawn at random" in shown.err
        assert "1,000 of 3,000 rows, drawn at random" in out.read_text()

    @pytest.mark.parametrize("most", [1000, 10_000])
    @pytest.mark.parametrize("ending", ["parquet", "csv"])
    def test_command_line_counts_rows_that_are_left_out(self, predictions, tmp_path, monkeypatch, capsys, ending, most):
        monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", most)
        gaps = predictions.copy()
        gaps.loc[gaps.index[:10], "y"] = np.nan
        gaps.loc[gaps.index[5:12], "y_pred"] = np.nan
        for i, part in enumerate(np.array_split(np.arange(3000), 3)):
            getattr(gaps.iloc[part], f"to_{ending}")(tmp_path / f"part-{i}.{ending}")
        monkeypatch.setattr(sys, "argv", ["pimeter", "measure", str(tmp_path / f"*.{ending}"), "--engine", "dask"])
        with pytest.raises(SystemExit) as left:
            cli.run()
        shown = capsys.readouterr()
        assert left.value.code == 0
        assert "With 2,988 rows" in shown.out
        assert "left out 12 of 3,000 rows that have no target or no prediction" in shown.err

    def test_command_line(self, predictions, tmp_path):
        for i, part in enumerate(np.array_split(np.arange(3000), 3)):
            predictions.iloc[part].to_parquet(tmp_path / f"part-{i}.parquet")
        command = [sys.executable, "-m", "pimeter", "measure", str(tmp_path / "*.parquet"), "--engine", "dask"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        expected = pm.measure(predictions["y"], predictions["y_pred"])
        assert json.loads(done.stdout) == json.loads(expected.to_json())

    def test_nobody_answers(self, predictions, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("pimeter.files.lazy.SCHEDULER_TIMEOUT", 1)
        predictions.to_parquet(tmp_path / "all.parquet")
        command = ["pimeter", "measure", str(tmp_path / "*.parquet"), "--engine", "dask"]
        monkeypatch.setattr(sys, "argv", [*command, "--scheduler", "tcp://127.0.0.1:9"])
        with pytest.raises(SystemExit) as left:
            cli.run()
        assert left.value.code == 2
        assert "no dask scheduler answers at 'tcp://127.0.0.1:9'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("pattern", "options", "said"),
    [
        ("no-*.parquet", [], "no file matches"),
        ("rows.tsv", [], "dask reads .parquet and .csv files"),
        ("rows-*.csv", ["--by", "town"], "has no column 'town', only 'y', 'y_pred', 'store'."),
    ],
)
def test_mistakes_on_the_command_line(pattern, options, said, predictions, tmp_path, monkeypatch, capsys):
    for name, separator in (("rows-1.csv", ","), ("rows.tsv", "\t")):
        predictions[:20].to_csv(tmp_path / name, sep=separator, index=False)
    arguments = ["pimeter", "measure", str(tmp_path / pattern), "--engine", "dask", *options]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err


class TestCluster:
    def test_a_client_of_the_users(self, cluster):
        x = draw("normal", 200_000)
        with Client(cluster) as client:
            found = client.compute(pm.quantile(da.from_array(x, chunks=30_000), 0.9)).result()
        assert_near(found, x, pm.quantile(x, 0.9))

    def test_rows_that_a_client_keeps(self, cluster, predictions):
        x = draw("normal", 1000)
        with Client(cluster) as client, dask.config.set(scheduler=client):
            kept = client.persist(da.from_array(x, chunks=300))
            assert float(pm.quantile(kept, 0.9).compute()) == pm.quantile(x, 0.9)
            assert float(pm.quantile(2.0 * kept[::2], 0.9).compute()) == pm.quantile(2.0 * x[::2], 0.9)
            frame = client.persist(dd.from_pandas(predictions, npartitions=3))
            assert pm.measure(frame["y"], frame["y_pred"]) == pm.measure(predictions["y"], predictions["y_pred"])
            assert pm.QuantileNeuron().fit(frame["y"]).quantile_ == pm.QuantileNeuron().fit(predictions["y"]).quantile_

    def test_the_command_line_asks_a_scheduler(self, cluster, predictions, tmp_path, monkeypatch, capsys):
        predictions = predictions.round(6)  # older versions of pandas lose the last of many digits
        predictions.to_csv(tmp_path / "all.csv", index=False)
        command = ["pimeter", "measure", str(tmp_path / "*.csv"), "--engine", "dask", "--json"]
        monkeypatch.setattr(sys, "argv", [*command, "--scheduler", cluster.scheduler_address])
        with pytest.raises(SystemExit) as left:
            cli.run()
        assert left.value.code == 0
        expected = pm.measure(predictions["y"], predictions["y_pred"])
        assert json.loads(capsys.readouterr().out) == json.loads(expected.to_json())

    def test_a_client_that_has_gone(self, cluster):
        client = Client(cluster)
        x = client.persist(da.from_array(draw("normal", 1000), chunks=300))
        client.close()
        with pytest.raises(Exception, match=r"(?i)client.* closed|cancelled"):  # the class is another in old versions
            pm.quantile(x, 0.9).compute(scheduler=client)


def test_a_header_alone_does_not_say_that_numbers_are_words(tmp_path):
    from pimeter.files import lazy_frame

    (tmp_path / "a.csv").write_text("y,p,f\n1,2,3\n4,5,6.5\n")
    (tmp_path / "b.csv").write_text("y,p,f\n")
    frame = lazy_frame(str(tmp_path / "*.csv"), ["y", "p"], ["f"])
    assert frame.compute()["f"].tolist() == [3.0, 6.5]
