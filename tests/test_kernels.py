"""Two kernels, one formula; and the native one wherever people run it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter import bandwidth
from pimeter._kernels import arrays, reference, stream

native = pytest.importorskip("pimeter._kernels.native", reason="pimeter is installed without native code")
_native = native._native

SOURCE = Path(pm.__file__).parent
LEVELS = np.array([0.001, 0.05, 0.25, 0.5, 0.51, 0.9, 0.95, 0.999])
ANSWER = "import numpy as np, pimeter as pm; print(repr(float(pm.quantile(np.arange(50.0) ** 2, 0.9))))"


def draw(distribution: str, m: int) -> np.ndarray:
    rng = np.random.default_rng(m)
    return {
        "normal": lambda: rng.standard_normal(m),
        "cauchy": lambda: rng.standard_cauchy(m),
        "tied": lambda: rng.integers(0, 6, m).astype(float),
        "spiked": lambda: np.where(rng.random(m) < 0.6, 1.0 + 1e-7 * rng.standard_normal(m), rng.lognormal(3, 2, m)),
        "two humps": lambda: rng.choice([-100.0, 100.0], m) + rng.standard_normal(m),
    }[distribution]()


class TestOneRule:
    """The rule stands in Python and in C++."""

    @pytest.mark.parametrize("seed", range(20))
    def test_of_a_cell(self, seed):
        """Windows of all widths, such that no difference in the formulas cancels."""
        rng = np.random.default_rng(seed)
        windows = np.exp(rng.uniform(-3.0, 3.0, (3, 3))) * [1.0, 1.7, 0.4]
        windows[1] /= 10.0 * windows[1].sum()
        unit, pseudo_count, m = rng.uniform(0.1, 0.5), rng.uniform(1.0, 50.0), rng.uniform(10.0, 1e4)
        given, level, normal = (tuple(row) for row in windows)
        error = bandwidth.widths(*given)
        found = _native.rule_of_cell(windows, unit, pseudo_count, m)
        assert_allclose(found["widths"], error, rtol=1e-12)
        distance = bandwidth.distance_from_normal(bandwidth.both(given), bandwidth.both(normal))
        assert_allclose(found["distance_from_normal"], distance, rtol=1e-12)
        assert_allclose(found["roughness"], bandwidth.roughness(error, level, normal, m), rtol=1e-12)
        assert_allclose(found["isolation"], bandwidth.isolation(error, level, normal, m), rtol=1e-12)
        assert_allclose(found["slope"], bandwidth.slope(error, level, normal, unit, pseudo_count, m), rtol=1e-12)

    @pytest.mark.parametrize("m", [3.0, 57.0, 2000.0, 1e6])
    def test_of_a_sample(self, m):
        for size in (0.0, 5e-324, 1e-320, 1e-100, 1.0, 1e100, 1.7e308):
            assert _native.safe_factor(size) == bandwidth.safe_factor(size)
        for p in (0.001, 0.3, 0.5, 0.95):
            assert_allclose(_native.standard_error(p, m), bandwidth.standard_error(p, m), rtol=1e-12)
            assert_allclose(_native.shrunk(p, 0.3), bandwidth.shrunk(p, 0.3), rtol=1e-12)
            assert _native.near(m, p, bandwidth.knots(m).unit.size) == bandwidth.near(m, p)
        assert_allclose(_native.large_resolution(m), bandwidth.large_resolution(m), rtol=1e-12)
        for distance, rough in ((0.3, 0.02), (1e-3, -0.1), (2.0, 50.0)):
            assert_allclose(
                _native.resolution(distance, rough, m), bandwidth.resolution(distance, rough, m), rtol=1e-12
            )

    def test_same_names_in_the_same_order(self):
        checkout = Path(__file__).parents[1] / "src"
        python, header = checkout / "pimeter" / "bandwidth.py", checkout / "native" / "rule.hpp"
        names = [
            line[4:].partition("(")[0].lstrip("_")
            for line in python.read_text().splitlines()
            if line.startswith("def ")
        ]
        found = re.findall(r"^(?:INLINE|inline) [\w<>]+ (\w+)\(", header.read_text(), flags=re.MULTILINE)
        assert found == [name for name in names if not name.endswith("knots")]


class TestOneFormula:
    @pytest.mark.parametrize("distribution", ["normal", "cauchy", "tied", "spiked", "two humps"])
    @pytest.mark.parametrize("m", [1, 2, 3, 4, 10, 37, 500, 2000, 2001, 6000])
    def test_rows(self, distribution, m):
        x = np.stack([draw(distribution, m), draw(distribution, m)[::-1]])
        (ours, odd), (expected, also_odd) = (kernel.automatic_rows(x, LEVELS) for kernel in (native, reference))
        assert odd is also_odd is None
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9 * np.subtract(*np.quantile(x, [0.75, 0.25])))
        assert_array_equal(ours[0], ours[1])

    @pytest.mark.parametrize("m", [2500, 20_000])
    @pytest.mark.parametrize("kernel", [reference, native], ids=["NumPy", "native"])
    def test_a_level_does_not_know_of_others_however_far_apart_errors_are(self, kernel, m):
        """Over 180 orders of magnitude the spread of the errors near some levels affected others."""
        x = 10.0 ** np.random.default_rng(m).uniform(-90.0, 90.0, (1, m))
        together = kernel.automatic_rows(x, LEVELS)[0][0]
        assert together.tolist() == [kernel.automatic_rows(x, np.array([p]))[0][0, 0] for p in LEVELS]
        assert (np.diff(together) > 0.0).all()
        # Roots keep twelve digits of a window's level, not of a tiny error.
        expected = reference.automatic_rows(x, LEVELS)[0][0]
        assert_allclose(np.log10(together), np.log10(expected), rtol=0.0, atol=1e-6)

    @pytest.mark.parametrize("distribution", ["normal", "cauchy", "tied", "two humps"])
    @pytest.mark.parametrize("m", [1, 3, 40, 900])
    def test_counts(self, distribution, m):
        x = np.sort(draw(distribution, m))
        counts = np.random.default_rng(1).choice([0.0, 0.25, 1.0, 2.0, 3.5], (3, m)) + np.eye(3, m)
        ours, expected = (
            np.concatenate([kernel.weighted_rows(x, own[None], own.sum(), LEVELS) for own in counts])
            for kernel in (native, reference)
        )
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9 * (np.ptp(x) / m))

    @pytest.mark.parametrize("h", [1e-3, 0.1, 5.0])
    @pytest.mark.parametrize("distribution", ["normal", "tied", "two humps"])
    def test_fixed(self, distribution, h):
        x = np.sort(draw(distribution, 60))
        starts = reference.hazen(x, np.ones(60), LEVELS)
        expected = reference.fixed_weighted(x, np.ones(60), LEVELS, h, starts)
        assert_allclose(native.fixed_weighted(x, np.ones(60), LEVELS, h, starts), expected, rtol=1e-9, atol=1e-9)
        rows = np.stack([x, x[::-1]])
        ours, plain = (kernel.fixed_rows(rows, LEVELS, h)[0] for kernel in (native, reference))
        assert_array_equal(ours[0], ours[1])
        assert_allclose(ours, [expected, expected], rtol=1e-9, atol=1e-9)
        assert_allclose(plain, [expected, expected], rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("kernel", [reference, native])
    def test_fixed_with_errors_very_many_bandwidths_away(self, kernel):
        """(w - x)/h overflows there, and the distribution function is 0 or 1."""
        x, levels = np.array([-1e300, 0.0, 1e300]), np.array([0.2, 0.5, 0.9])
        assert_allclose(kernel.fixed_weighted(x, np.ones(3), levels, 1e-20, x), x, atol=1e-18)
        assert_allclose(kernel.fixed_rows(x[None], np.array([0.5]), 1e-20)[0], [[0.0]], atol=1e-18)

    def test_the_reference_solves_its_equation(self):
        x = np.sort(draw("normal", 300))
        fitted = reference.fit_map(x, np.empty(0))
        w = reference.automatic_rows(x[None], np.array([0.8]))[0][0]
        found = reference.activation((fitted.position(w) - fitted.position(x)) / fitted.h, bandwidth.SATURATION).mean()
        assert abs(found - bandwidth.shrunk(0.8, fitted.h)) < 1e-12

    @pytest.mark.parametrize("m", [12, 800, 5000])
    def test_rows_with_nan_and_infinities_are_marked(self, m):
        x = np.random.default_rng(0).standard_normal((3, m))
        x[0, 3], x[1, 5] = np.nan, np.inf
        for kernel in (reference, native):
            assert kernel.automatic_rows(x, np.array([0.5]))[1].tolist() == [1, 2, 0]
            assert kernel.fixed_rows(x, np.array([0.5]), 1.0)[1].tolist() == [1, 2, 0]

    @pytest.mark.parametrize(
        "order",
        [np.sort, lambda x: np.sort(x)[::-1], lambda x: np.tile(x[:17], x.size // 17 + 1)[: x.size], np.full_like],
        ids=["rising", "falling", "periodic", "tied"],
    )
    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    def test_long_samples_in_unlucky_order(self, order, kind):
        """The subsample that bounds what is kept may be unlike the sample; the answer is that of the sorted sample."""
        x = np.random.default_rng(3).standard_normal(30_000).astype(kind)
        x = np.full_like(x, 2.0) if order is np.full_like else np.ascontiguousarray(order(x))
        for levels in (LEVELS, LEVELS[3:4], LEVELS[3:7]):
            whole = _native_whole(np.sort(x.astype(np.float64)), levels)
            assert_array_equal(native.automatic_rows(x[None], levels)[0][0], whole)
            plain = reference.automatic_rows(x[None], levels)[0][0]
            assert_allclose(plain, whole, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("n_far", [1, 2, 5])
    @pytest.mark.parametrize("gap", [1e3, 1e5, 1e6, 1e9])
    @pytest.mark.parametrize("m", [20, 100, 1000])
    def test_far_away_errors(self, m, gap, n_far):
        rng = np.random.default_rng(m)
        x = np.concatenate([rng.standard_normal(m - n_far), gap * (1.0 + np.abs(rng.standard_normal(n_far)))])[None]
        edge = 1.0 - n_far / m
        levels = np.unique([0.5, 0.9, edge, *(edge + np.linspace(-1.0, 0.9, 20) * n_far / m)])
        ours, expected = (kernel.automatic_rows(x, levels)[0] for kernel in (native, reference))
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)
        assert (np.diff(ours) >= -1e-9).all()

    @pytest.mark.parametrize("kernel", [reference, native])
    def test_a_range_beyond_all_measure(self, kernel):
        x = np.concatenate([np.random.default_rng(0).standard_normal(30), [1.7e308, -1.7e308, 1e308, -1e308]])
        found, _ = kernel.automatic_rows(x[None], np.array([0.5, 0.9]))
        assert_allclose(found[0], np.quantile(x, [0.5, 0.9], method="hazen"), rtol=1e-12)


def _native_whole(x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles of a sorted sample that is there as a whole: each value counts once."""
    return native.weighted_rows(x, np.ones((1, x.size)), float(x.size), levels)[0]


def awkward_samples(n: int) -> list[np.ndarray]:
    """Finite values of all kinds."""
    rng = np.random.default_rng(n)
    largest = np.finfo(float).max
    samples = [draw(distribution, n) for distribution in ("normal", "cauchy", "tied", "spiked")]
    samples += [draw("cauchy", n) ** 3, np.geomspace(1e-300, 1e300, n), 5e-324 * rng.integers(-9, 9, n), np.ones(n)]
    return [*samples, rng.choice([largest, -largest, 0.0, 1.0], n), 1e16 + rng.integers(0, 5, n).astype(float)]


@pytest.mark.parametrize("kernel", [native, reference], ids=["native", "NumPy"])
class TestOrder:
    @pytest.mark.parametrize("n", [1, 2, 3, 40, 1023, 3000, 5000, 40_000])
    def test_order_statistics_are_those_of_plain_sorting(self, kernel, n):
        """The first and the last rank, one of them twice, and in no order."""
        ranks = np.unique([1, 2, n // 4, n // 2, n // 2 + 1, int(0.95 * n), n - 1, n]).clip(1, n)[::-1]
        ranks = np.append(ranks, ranks[0])
        for x in awkward_samples(n):
            for order in (x, np.sort(x), np.where(np.arange(n) % 7, x, np.inf)):
                assert_array_equal(kernel.order_statistics(order, ranks, 2), np.sort(order)[ranks - 1])

    @pytest.mark.parametrize("n", [1, 2, 3, 40, 1023, 3000])
    def test_groups_are_sorted(self, kernel, n):
        group = np.random.default_rng(n).choice([0, 2, 3], n).astype(np.uint8)
        for x in awkward_samples(n):
            assert_array_equal(kernel.sorted_groups(x), [np.sort(x)])
            found = kernel.sorted_groups(x, group, 5)
            assert len(found) == 5
            for code, own in enumerate(found):
                assert_array_equal(own, np.sort(x[group == code]))

    @pytest.mark.parametrize("n_bounds", [1, 9, 52])
    def test_places_among_bounds(self, kernel, n_bounds):
        """Of values between them, on them and beyond; also where bounds are tied."""
        rng = np.random.default_rng(n_bounds)
        bounds = np.sort(np.round(rng.standard_normal((5, n_bounds)), 1), axis=1)
        x = np.concatenate([rng.standard_cauchy(5000), bounds.ravel(), [0.0, -0.0, 1e300, -1e300, 5e-324]])
        group = rng.integers(0, 5, x.size).astype(np.uint8)
        places = np.empty(x.size, np.uint8)
        kernel.place(x, group, bounds, places)
        assert_array_equal(places, [np.searchsorted(bounds[g], one) for g, one in zip(group, x, strict=True)])


@pytest.mark.parametrize("m", [40, 5000])
def test_read_only_samples(m):
    """Pandas hands out read-only arrays."""
    x = np.random.default_rng(5).standard_normal(m)
    expected = pm.quantile(x, 0.9)
    x.setflags(write=False)
    assert pm.quantile(x, 0.9) == expected


class TestThreads:
    @pytest.mark.parametrize("shape", [(400, 1000), (4, 100_000), (1, 700_000)])
    def test_bits_do_not_depend_on_the_number(self, shape, monkeypatch):
        x = np.random.default_rng(2).standard_normal(shape)
        results = []
        for n in (1, 2, 8):
            monkeypatch.setattr(arrays, "_n_threads", lambda _, n=n: n)
            results.append(pm.quantile(x, [0.1, 0.95], axis=1))
        assert_array_equal(results[0], results[1])
        assert_array_equal(results[0], results[2])
        assert_array_equal(results[0], np.stack([pm.quantile(row, [0.1, 0.95]) for row in x], axis=1))


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300, check=True
    )


@pytest.fixture(scope="module")
def answer() -> str:
    return run(ANSWER).stdout


def test_nothing_to_select_and_nothing_to_sort():
    assert native.order_statistics(np.arange(5000.0), np.empty(0, np.intp)).size == 0
    assert [group.size for group in native.sorted_groups(np.empty(0))] == [0]
    places = np.ones(3, np.uint8)
    native.place(np.arange(3.0), np.zeros(3, np.uint8), np.empty((1, 0)), places)
    assert_array_equal(places, 0)


def test_results_are_not_written_to_a_copy():
    with pytest.raises(TypeError):
        native.learn_columns(np.ones((3, 2)), 0.9, 0, 0.0, np.zeros((2, stream.N_FLOATS), np.float32))


def test_a_state_of_another_width_is_refused():
    with pytest.raises(TypeError):
        native.learn_columns(np.ones((3, 2)), 0.9, 0, 0.0, np.zeros((2, 4)))


class TestElsewhere:
    """In a process of its own, as it starts."""

    @pytest.mark.parametrize("left", [None, 0, 100, 4096, 0.3, 0.9, "text", "other Python"])
    def test_broken_or_missing_file(self, left, tmp_path, answer):
        """NumPy does the work, and one warning names the file, or says that none was built."""
        copy = tmp_path / "pimeter"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / Path(_native.__file__).name
        if not file.exists():
            shutil.copy(_native.__file__, file)
        data = file.read_bytes()
        if left is None:
            file.unlink()
        elif left == "other Python":
            file = file.rename(copy / "_native.cpython-299-other-os.so")
        elif left == "text":
            file.write_text("<html>404</html>")
        else:
            file.write_bytes(data[: int(left * len(data)) if isinstance(left, float) else left])
        result = run(ANSWER, PYTHONPATH=str(tmp_path))
        assert_allclose(float(result.stdout), float(answer), rtol=1e-12)
        assert result.stderr.count("UserWarning") == 1
        says = (
            str(file)
            if left is not None
            else "pimeter was built without a compiler: NumPy is used, several times slower."
        )
        assert says in result.stderr

    def test_an_older_build(self, answer):
        older = "import sys, types; sys.modules['pimeter._native'] = types.ModuleType('pimeter._native')"
        result = run(f"{older}; {ANSWER}")
        assert_allclose(float(result.stdout), float(answer), rtol=1e-12)
        assert result.stderr.count("UserWarning") == 1
        assert _native.__file__ in result.stderr

    def test_built_with_other_numbers(self, answer):
        """The rule in Python is the one that counts: native code of another one is not used."""
        code = f"from pimeter import bandwidth; bandwidth.SHARP = 3.0; {ANSWER}"
        result = run(code)
        assert "it was built where bandwidth.SHARP was 1.45" in result.stderr
        assert result.stdout != answer

    def test_no_home_and_no_place_to_write(self, answer):
        result = run(ANSWER, HOME="/dev/null", XDG_CACHE_HOME="/dev/null", TMPDIR="/dev/null")
        assert (result.stdout, result.stderr) == (answer, "")

    def test_which_kernel_is_in_use(self):
        code = "import pimeter; pimeter.show_versions()"
        assert run(code).stdout.startswith(f"pimeter {pm.__version__} (native kernel)\nPython 3.")
        without = (
            f"import sys, warnings; sys.modules['pimeter._native'] = None; warnings.simplefilter('ignore'); {code}"
        )
        assert run(without).stdout.startswith(f"pimeter {pm.__version__} (NumPy kernel)\n")

    def test_eight_threads_at_once(self, answer):
        code = (
            "from concurrent.futures import ThreadPoolExecutor; import numpy as np, pimeter as pm\n"
            "x = np.arange(50.0) ** 2\n"
            "with ThreadPoolExecutor(8) as pool: results = list(pool.map(lambda _: pm.quantile(x, 0.9), range(64)))\n"
            "assert len(set(results)) == 1; print(repr(float(results[0])))"
        )
        assert run(code).stdout == answer

    def test_child_after_fork(self):
        code = (
            "import os, numpy as np, pimeter as pm\n"
            "x = np.random.default_rng(0).standard_normal((400, 1000))\n"
            "before = pm.quantile(x, 0.9, axis=1)\n"  # starts the threads
            "child = os.fork()\n"
            "if child == 0: os._exit(0 if (pm.quantile(x, 0.9, axis=1) == before).all() else 1)\n"
            "assert os.waitpid(child, 0)[1] == 0; assert (pm.quantile(x, 0.9, axis=1) == before).all(); print('same')"
        )
        assert run(code).stdout == "same\n"
