"""How fast is the neuron? Times, memory and imports as ratios to a peer in the same run.

    python benchmarks/quantile_speed.py [--quick]

A ratio is the median over repeats of ours / peer's, each pair measured back to back: a busy machine slows both.
The table goes to `results/quantile_speed.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from provenance import save
from sklearn.exceptions import ConvergenceWarning

import pimeter as pm
from pimeter._kernels import arrays, reference
from pimeter._kernels.dispatch import kernel_name
from pimeter.paper import DescendingNeuron

SEED = 7
NINE = np.linspace(0.1, 0.9, 9)


def seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def ratio(ours: Callable[[], object], peers: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median ratio of times, and the median times themselves."""
    both = ours, peers
    ours(), peers()  # warm
    calls = [max(1, int(0.002 / seconds(function, 1))) for function in both]
    pairs = np.array([[seconds(*one) for one in zip(both, calls, strict=True)] for _ in range(repeats)])
    return float(np.median(pairs[:, 0] / pairs[:, 1])), *np.median(pairs, axis=0).tolist()


@contextmanager
def threads(n: int) -> Iterator[None]:
    """No more threads than so many."""
    before = arrays._n_threads
    arrays._n_threads = lambda _: n
    yield
    arrays._n_threads = before


@contextmanager
def only_numpy() -> Iterator[None]:
    """As where there is no native code."""
    before = arrays.kernel
    arrays.kernel = reference
    yield
    arrays.kernel = before


def quiet_fit(neuron: pm.QuantileNeuron, errors: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a stalled neuron costs as much as another
        neuron.fit(errors)


def peak_memory(function: Callable[[], object]) -> int:
    """Largest growth of resident memory while the function runs, in bytes, sampled by a thread."""
    page = os.sysconf("SC_PAGE_SIZE")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    base, peak, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, resident() - base)
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return peak


def import_seconds(module: str, repeats: int) -> float:
    """CPU seconds of a new interpreter that imports a module, above one that imports nothing."""
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(repeats)]
    return float(np.median(runs))


def heavier_modules() -> list[str]:
    """Modules that `import pimeter` loads and `import numpy` does not."""
    code = "import numpy, sys; before = set(sys.modules); import pimeter; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    return [name for name in loaded if not name.startswith("pimeter")]


def numpy_rows(quick: bool, repeats: int, rng: np.random.Generator, add: Callable[..., None]) -> None:
    """The NumPy kernel alone."""
    with only_numpy():
        for m in (1000,) if quick else (1000, 1_000_000):
            x = rng.standard_normal(m)
            figures = ratio(partial(pm.quantile, x, 0.95), partial(np.quantile, x, 0.95), repeats)
            add(f"NumPy kernel alone, m = {m:,}, level .95, against numpy.quantile", figures)
        x = rng.standard_normal((500, 1000))
        figures = ratio(partial(pm.quantile, x, 0.95, 1), partial(np.quantile, x, 0.95, 1), repeats)
        add("NumPy kernel alone, 500 neurons x 1,000 errors, against numpy.quantile(axis=1)", figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 31
    rng = np.random.default_rng(SEED)
    rows: list[tuple[str, str, str]] = []

    def add(what: str, figures: tuple[float, float, float]) -> None:
        value, ours, peers = figures
        rows.append((what, f"{value:.3f}", f"{1e6 * ours:,.0f} / {1e6 * peers:,.0f} us"))
        print(f"{what:<70} {value:8.3f}   {rows[-1][2]}", flush=True)

    for m in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        x = rng.standard_normal(m)
        for p in (0.5, 0.95):
            figures = ratio(partial(pm.quantile, x, p), partial(np.quantile, x, p), repeats)
            add(f"m = {m:,}, level {p}, against numpy.quantile", figures)
    x = rng.standard_normal(1000 if quick else 1_000_000).astype(np.float32)
    figures = ratio(partial(pm.quantile, x, 0.95), partial(np.quantile, x, 0.95), repeats)
    add(f"m = {x.size:,}, float32, level .95", figures)
    x = rng.standard_cauchy(1000)
    add("m = 1,000, Cauchy, level .95", ratio(partial(pm.quantile, x, 0.95), partial(np.quantile, x, 0.95), repeats))

    for axis, shape in ((1, (500, 1000)), (0, (1000, 500))):
        x = rng.standard_normal(shape)
        ours, numpys = partial(pm.quantile, x, 0.95, axis), partial(np.quantile, x, 0.95, axis)
        with threads(1):
            add(
                f"500 neurons x 1,000 errors, axis {axis}, one thread, against numpy.quantile(axis)",
                ratio(ours, numpys, repeats),
            )
        add(f"500 neurons x 1,000 errors, axis {axis}, against numpy.quantile(axis)", ratio(ours, numpys, repeats))

    numpy_rows(quick, repeats, rng, add)

    for m in (1000,) if quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        x = rng.standard_normal(m)
        nine = partial(pm.quantile, x, NINE)
        add(f"nine levels, m = {m:,}, against one level (.5)", ratio(nine, partial(pm.quantile, x, 0.5), repeats))
        add(f"nine levels, m = {m:,}, against numpy's nine", ratio(nine, partial(np.quantile, x, NINE), repeats))

    errors = np.abs(rng.standard_normal(1000))
    patience = 20 if quick else 200
    for label, beta, rate in (("auto", "auto", None), ("1000, the paper's", 1000.0, 0.005)):
        descend = partial(quiet_fit, DescendingNeuron(beta=beta, learning_rate=rate, patience=patience), errors)
        solve = partial(pm.quantile, errors, 0.95, beta=beta)
        add(f"descent against root, m = 1,000, beta = {label}: the solvers", ratio(descend, solve, 3))
        fit = partial(quiet_fit, pm.QuantileNeuron(beta=beta), errors)
        add(
            f"descent against root, m = 1,000, beta = {label}: whole fits, with what else they report",
            ratio(descend, fit, 3),
        )

    m = 100_000 if quick else 10_000_000
    x = rng.standard_normal(m)
    pm.quantile(x[:5000], 0.95)
    for label, function in (("pimeter", pm.quantile), ("numpy", np.quantile)):
        for p in (0.95, 0.5):
            extra = max(peak_memory(partial(function, x, p)) for _ in range(3)) / x.nbytes
            rows.append((f"extra memory at m = {m:,}, level {p}, x the input: {label}", f"{extra:.3f}", ""))
            print(rows[-1], flush=True)

    ours, numpys = import_seconds("pimeter", repeats), import_seconds("numpy", repeats)
    rows.append(
        ("import pimeter against import numpy, CPU seconds", f"{ours / numpys:.3f}", f"{ours:.4f} / {numpys:.4f} s")
    )
    heavier = heavier_modules()
    rows.append(("modules beyond numpy's that it loads", str(len(heavier)), ", ".join(heavier) or "none"))
    print(*rows[-2:], sep="\n")
    if not quick:
        save(__file__, page(rows, repeats))


def page(rows: list[tuple[str, str, str]], repeats: int) -> str:
    versions = f"numpy {np.__version__}, pimeter {pm.__version__} ({kernel_name()} kernel)"
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} threads; Python {platform.python_version()}"
    command = (
        f"`python benchmarks/quantile_speed.py`, seed {SEED}, medians of {repeats} paired repeats, float64 unless said"
    )
    head = [
        "# Speed of the neuron",
        "",
        f"{command}. {machine}, {versions}.",
        "",
        "| what | ratio | ours / peer |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *(f"| {a} | {b} | {c} |" for a, b, c in rows), ""])


if __name__ == "__main__":
    main()
