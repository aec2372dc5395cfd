"""Two kernels, one formula; and the compiled one wherever people run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm
from pimeter import bandwidth, quantiles
from pimeter._kernels import compiled, reference

SOURCE = Path(pm.__file__).parent
PLAIN, COMPILED = reference.Kernel(bandwidth), compiled.Kernel(bandwidth)
LEVELS = np.array([0.001, 0.05, 0.25, 0.5, 0.51, 0.9, 0.95, 0.999])
ANSWER = "import numpy as np, pimeter as pm; print(repr(float(pm.quantile(np.arange(50.0) ** 2, 0.9))))"


def draw(law: str, m: int) -> np.ndarray:
    rng = np.random.default_rng(m)
    return {
        "normal": lambda: rng.standard_normal(m),
        "cauchy": lambda: rng.standard_cauchy(m),
        "tied": lambda: rng.integers(0, 6, m).astype(float),
        "spiked": lambda: np.where(rng.random(m) < 0.6, 1.0 + 1e-7 * rng.standard_normal(m), rng.lognormal(3, 2, m)),
        "two humps": lambda: rng.choice([-100.0, 100.0], m) + rng.standard_normal(m),
    }[law]()


class TestOneFormula:
    @pytest.mark.parametrize("law", ["normal", "cauchy", "tied", "spiked", "two humps"])
    @pytest.mark.parametrize("m", [1, 2, 3, 4, 10, 37, 500, 2000, 2001, 6000])
    def test_rows(self, law, m):
        x = np.stack([draw(law, m), draw(law, m)[::-1]])
        ours, expected = np.empty((2, LEVELS.size)), np.empty((2, LEVELS.size))
        assert not COMPILED.automatic_rows(x, LEVELS, ours).any()
        assert not PLAIN.automatic_rows(x, LEVELS, expected).any()
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9 * np.subtract(*np.quantile(x, [0.75, 0.25])))
        assert_array_equal(ours[0], ours[1])

    @pytest.mark.parametrize("m", [2500, 20_000])
    @pytest.mark.parametrize("kernel", [PLAIN, COMPILED], ids=["plain", "compiled"])
    def test_a_level_does_not_know_of_others_however_far_apart_errors_are(self, kernel, m):
        """Over 180 orders of magnitude the spread of the errors near some levels was felt at others."""
        x = 10.0 ** np.random.default_rng(m).uniform(-90.0, 90.0, m)
        together, alone = np.empty((1, LEVELS.size)), np.empty((1, 1))
        kernel.automatic_rows(x[None], LEVELS, together)
        for k, level in enumerate(LEVELS):
            kernel.automatic_rows(x[None], np.array([level]), alone)
            assert alone[0, 0] == together[0, k]
        assert (np.diff(together) > 0.0).all()
        expected = np.empty((1, LEVELS.size))
        PLAIN.automatic_rows(x[None], LEVELS, expected)
        # Positions count from another cell, and roots keep twelve digits of a window's level, not of a tiny error.
        assert_allclose(np.log10(together), np.log10(expected), rtol=0.0, atol=1e-6)

    @pytest.mark.parametrize("law", ["normal", "cauchy", "tied", "two humps"])
    @pytest.mark.parametrize("m", [1, 3, 40, 900])
    def test_counts(self, law, m):
        x = np.sort(draw(law, m))
        counts = np.random.default_rng(1).choice([0.25, 1.0, 2.0, 3.5], m)
        expected = PLAIN.automatic(x, counts, LEVELS)
        assert_allclose(COMPILED.automatic(x, counts, LEVELS), expected, rtol=1e-9, atol=1e-9 * (np.ptp(x) / m))

    @pytest.mark.parametrize("h", [1e-3, 0.1, 5.0])
    @pytest.mark.parametrize("law", ["normal", "tied", "two humps"])
    def test_fixed(self, law, h):
        x = np.sort(draw(law, 60))
        counts = np.ones(60)
        starts = reference.hazen(x, counts, LEVELS)
        expected = PLAIN.fixed(x, counts, LEVELS, h, starts)
        assert_allclose(COMPILED.fixed(x, counts, LEVELS, h, starts), expected, rtol=1e-9, atol=1e-9)
        once = COMPILED.fixed(x, np.empty(0), LEVELS, h, starts)
        assert_allclose(once, expected, rtol=1e-9, atol=1e-9)
        rows, guess = np.stack([x, x[::-1]]), np.stack([starts, starts])
        assert_array_equal(COMPILED.fixed_rows(rows, LEVELS, h, guess)[0], once)
        assert_allclose(PLAIN.fixed_rows(rows, LEVELS, h, guess), [expected, expected], rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("kernel", [PLAIN, COMPILED])
    def test_fixed_with_errors_very_many_bandwidths_away(self, kernel):
        """(w - x)/h overflows there, and the share is 0 or 1."""
        x, levels = np.array([-1e300, 0.0, 1e300]), np.array([0.2, 0.5, 0.9])
        assert_allclose(kernel.fixed(x, np.empty(0), levels, 1e-20, x), x, atol=1e-18)

    def test_the_reference_solves_its_equation(self):
        x = np.sort(draw("normal", 300))
        scale = reference.scale(x, np.empty(0), bandwidth)
        w = PLAIN.automatic(x, np.empty(0), np.array([0.8]))
        share = reference.activation((scale.position(w) - scale.position(x)) / scale.h, bandwidth.SATURATION).mean()
        assert abs(share - bandwidth.shrunk(0.8, scale.h)) < 1e-12

    @pytest.mark.parametrize("m", [12, 800, 5000])
    def test_rows_with_nan_and_infinities_are_marked(self, m):
        x = np.random.default_rng(0).standard_normal((3, m))
        x[0, 3], x[1, 5] = np.nan, np.inf
        for kernel in (PLAIN, COMPILED):
            assert kernel.automatic_rows(x, np.array([0.5]), np.empty((3, 1))).tolist() == [1, 2, 0]

    @pytest.mark.parametrize(
        "order",
        [np.sort, lambda x: np.sort(x)[::-1], lambda x: np.tile(x[:17], x.size // 17 + 1)[: x.size], np.full_like],
        ids=["rising", "falling", "periodic", "tied"],
    )
    def test_long_samples_in_unlucky_order(self, order):
        """The subsample that bounds what is kept may be unlike the sample; the answer is that of the sorted sample."""
        x = np.random.default_rng(3).standard_normal(30_000)
        x = np.full_like(x, 2.0) if order is np.full_like else np.ascontiguousarray(order(x))
        for levels in (LEVELS, LEVELS[3:4]):
            ours, whole = np.empty((1, levels.size)), np.empty((1, levels.size))
            COMPILED.automatic_rows(x[None], levels, ours)
            COMPILED._compiled.rows(x[None], *bandwidth.ruler(30_000.0), True, levels, whole, np.zeros(1, np.int8))
            assert_array_equal(ours, whole)

    def test_sorting(self):
        rng = np.random.default_rng(0)
        largest = np.finfo(float).max
        for n in (1, 2, 3, 40, 1023, 3000):
            samples = [draw(law, n) for law in ("normal", "cauchy", "tied", "spiked")]
            samples += [draw("cauchy", n) ** 3, np.geomspace(1e-300, 1e300, n), 5e-324 * rng.integers(-9, 9, n)]
            samples += [rng.choice([largest, -largest, 0.0, 1.0], n), 1e16 + rng.integers(0, 5, n).astype(float)]
            for x in samples:
                out = np.empty(n)
                COMPILED._compiled._sort(x, out)
                assert_array_equal(out, np.sort(x))

    @pytest.mark.parametrize("n_far", [1, 2, 5])
    @pytest.mark.parametrize("gap", [1e3, 1e5, 1e6, 1e9])
    @pytest.mark.parametrize("m", [20, 100, 1000])
    def test_far_away_errors(self, m, gap, n_far):
        rng = np.random.default_rng(m)
        x = np.concatenate([rng.standard_normal(m - n_far), gap * (1.0 + np.abs(rng.standard_normal(n_far)))])[None]
        edge = 1.0 - n_far / m
        levels = np.unique([0.5, 0.9, edge, *(edge + np.linspace(-1.0, 0.9, 20) * n_far / m)])
        ours, expected = np.empty((1, levels.size)), np.empty((1, levels.size))
        COMPILED.automatic_rows(x, levels, ours)
        PLAIN.automatic_rows(x, levels, expected)
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)
        assert (np.diff(ours) >= -1e-9).all()

    @pytest.mark.parametrize("kernel", [PLAIN, COMPILED])
    def test_a_range_beyond_all_measure(self, kernel):
        x = np.concatenate([np.random.default_rng(0).standard_normal(30), [1.7e308, -1.7e308, 1e308, -1e308]])
        out = np.empty((1, 2))
        kernel.automatic_rows(x[None], np.array([0.5, 0.9]), out)
        assert_allclose(out[0], np.quantile(x, [0.5, 0.9], method="hazen"), rtol=1e-12)


@pytest.mark.parametrize("m", [40, 5000])
def test_read_only_samples_need_no_compilation(m):
    """Pandas hands out read-only arrays."""
    x = np.random.default_rng(5).standard_normal(m)
    expected = pm.quantile(x, 0.9)
    kernel = quantiles.array_kernel()._compiled
    before = len(kernel.rows.signatures), len(kernel.long_sample.signatures)
    x.setflags(write=False)
    assert pm.quantile(x, 0.9) == expected
    assert (len(kernel.rows.signatures), len(kernel.long_sample.signatures)) == before


class TestThreads:
    @pytest.mark.parametrize("shape", [(400, 1000), (4, 100_000)])
    def test_bits_do_not_depend_on_the_number(self, shape, monkeypatch):
        x = np.random.default_rng(2).standard_normal(shape)
        results = []
        for n in (1, 2, 8):
            monkeypatch.setattr(quantiles, "_n_threads", lambda n=n: n)
            quantiles._pool.cache_clear()
            results.append(pm.quantile(x, [0.1, 0.95], axis=1))
        quantiles._pool.cache_clear()
        assert_array_equal(results[0], results[1])
        assert_array_equal(results[0], results[2])
        assert_array_equal(results[0], np.stack([pm.quantile(row, [0.1, 0.95]) for row in x], axis=1))


def test_a_kernel_that_is_broken_is_not_taken_for_a_missing_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "pimeter._kernels.compiled", None)
    monkeypatch.delattr("pimeter._kernels.compiled", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pimeter\._kernels\.compiled"):
        quantiles._load_kernel.__wrapped__()


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300, check=True
    )


@pytest.fixture(scope="module")
def answer() -> str:
    return run(ANSWER).stdout


class TestElsewhere:
    """In a process of its own, as it starts."""

    @pytest.mark.slow
    def test_no_place_for_a_cache(self, tmp_path, answer):
        copy = tmp_path
        shutil.copytree(SOURCE, copy / "pimeter", ignore=shutil.ignore_patterns("__pycache__"))
        for folder in [copy / "pimeter", *(p for p in (copy / "pimeter").rglob("*") if p.is_dir())]:
            (folder / "__pycache__").write_text("a plain file, which stops root, too")
        result = run(ANSWER, PYTHONPATH=str(copy), HOME="/dev/null", XDG_CACHE_HOME="/dev/null", NUMBA_CACHE_DIR="")
        assert result.stdout == answer
        assert result.stderr.count("UserWarning") == 1
        assert "pimeter compiles in memory" in result.stderr

    @pytest.mark.slow
    def test_broken_cache(self, tmp_path, answer):
        """Of the functions that are compiled in no time; all others keep their code in the same way."""
        assert run(ANSWER, NUMBA_CACHE_DIR="").stdout == answer
        kernels = Path(shutil.copytree(SOURCE, tmp_path / "pimeter")) / "_kernels"
        rng, damaged = np.random.default_rng(0), {}
        stamp = zlib.crc32((kernels.parent / "bandwidth.py").read_bytes())
        for i, file in enumerate(
            file
            for name, ending in (("stream", "nbi"), ("counting", "nbc"))  # what is kept, and the code itself
            for file in sorted((kernels / "__pycache__").glob(f"{name}.*_{stamp:x}-*.{ending}"))
            if file.stat().st_mtime > (kernels / f"{name}.py").stat().st_mtime  # none of older kernels
        ):
            data = bytearray(file.read_bytes())
            if i % 4 == 0:
                del data[len(data) // 2 :]
            else:  # machine code with another bit still runs
                data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
            file.write_bytes(data)
            damaged[file] = bytes(data)
        result = run(ANSWER, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR="")
        assert (result.stdout, result.stderr) == (answer, "")
        anew = {file.name.split("-")[0] for file, data in damaged.items() if file.read_bytes() != data}
        assert anew == {file.name.split("-")[0] for file in damaged}  # compiled and kept anew
        assert len(anew) > 10

    def test_without_numba(self, answer):
        result = run(f"import sys; sys.modules['numba'] = None; {ANSWER}")
        assert_allclose(float(result.stdout), float(answer), rtol=1e-9)
        assert result.stderr == ""

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
