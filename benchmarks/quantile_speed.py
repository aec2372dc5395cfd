"""How fast is the neuron? Times, memory and imports as ratios to a peer in the same run.

    python benchmarks/quantile_speed.py [--quick]

A ratio is the median over repeats of (ours / peer's), each pair measured back to back, so that a busy machine slows both.
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
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pimeter as pm

RESULTS = Path(__file__).parent / "results"
SEED = 7
NINE = np.linspace(0.1, 0.9, 9)


def seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def ratio(ours: Callable[[], object], peers: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median ratio of times, and the median times themselves."""
    ours(), peers()  # warm
    calls = max(1, int(0.002 / seconds(peers, 1)))
    pairs = np.array([(seconds(ours, calls), seconds(peers, calls)) for _ in range(repeats)])
    return float(np.median(pairs[:, 0] / pairs[:, 1])), *np.median(pairs, axis=0).tolist()


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing saved")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 15
    rng = np.random.default_rng(SEED)
    rows: list[tuple[str, str, str]] = []

    def add(what: str, figures: tuple[float, float, float]) -> None:
        value, ours, peers = figures
        rows.append((what, f"{value:.3f}", f"{1e6 * ours:,.0f} / {1e6 * peers:,.0f} us"))
        print(f"{what:<70} {value:8.3f}   {rows[-1][2]}", flush=True)

    for m in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        x = rng.standard_normal(m)
        for p in (0.5, 0.95):
            figures = ratio(lambda: pm.quantile(x, p), lambda: np.quantile(x, p), repeats)
            add(f"m = {m:,}, level {p}, against numpy.quantile", figures)
    x32 = rng.standard_normal(1000 if quick else 1_000_000).astype(np.float32)
    add(f"m = {x32.size:,}, float32, level .95", ratio(lambda: pm.quantile(x32, 0.95), lambda: np.quantile(x32, 0.95), repeats))
    heavy = rng.standard_cauchy(1000)
    add("m = 1,000, Cauchy, level .95", ratio(lambda: pm.quantile(heavy, 0.95), lambda: np.quantile(heavy, 0.95), repeats))

    for axis, shape in ((1, (500, 1000)), (0, (1000, 500))):
        x = rng.standard_normal(shape)
        figures = ratio(lambda: pm.quantile(x, 0.95, axis=axis), lambda: np.quantile(x, 0.95, axis=axis), repeats)
        add(f"500 neurons x 1,000 errors, axis {axis}, against numpy.quantile(axis)", figures)

    for m in (1000,) if quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        x = rng.standard_normal(m)
        add(f"nine levels, m = {m:,}, against one level (.5)", ratio(lambda: pm.quantile(x, NINE), lambda: pm.quantile(x, 0.5), repeats))
        add(f"nine levels, m = {m:,}, against numpy's nine", ratio(lambda: pm.quantile(x, NINE), lambda: np.quantile(x, NINE), repeats))

    errors = np.abs(rng.standard_normal(1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for label, beta, solver in (("auto", "auto", pm.Descent()), ("1000, the paper's", 1000.0, pm.Descent(learning_rate=0.005))):
            root, descent = pm.QuantileNeuron(beta=beta), pm.QuantileNeuron(beta=beta, solver=solver)
            # A neuron's solver, not scikit-learn's checks around it: the quantile against the descent's share of fit.
            whole = ratio(lambda: descent.fit(errors), lambda: root.fit(errors), 3)
            add(f"descent against root, m = 1,000, beta = {label}: fit", whole)
            core = ratio(lambda: descent.fit(errors), lambda: pm.quantile(errors, 0.95, beta=beta), 3)
            add(f"descent against root, m = 1,000, beta = {label}: fit against quantile", core)

    m = 100_000 if quick else 10_000_000
    x = rng.standard_normal(m)
    pm.quantile(x[:5000], 0.95)
    for label, function in (("pimeter", pm.quantile), ("numpy", np.quantile)):
        extra = max(peak_memory(lambda f=function: f(x, 0.95)) for _ in range(3)) / x.nbytes
        rows.append((f"extra memory at m = {m:,}, x the input: {label}", f"{extra:.3f}", ""))
        print(rows[-1])

    ours, numpys = import_seconds("pimeter", repeats), import_seconds("numpy", repeats)
    rows.append(("import pimeter against import numpy, CPU seconds", f"{ours / numpys:.3f}", f"{ours:.4f} / {numpys:.4f} s"))
    heavier = heavier_modules()
    rows.append(("modules beyond numpy's that it loads", str(len(heavier)), ", ".join(heavier) or "none"))
    print(*rows[-2:], sep="\n")
    if quick:
        return
    RESULTS.mkdir(exist_ok=True)
    head = [
        "# Speed of the neuron",
        "",
        f"`python benchmarks/quantile_speed.py`, seed {SEED}, float64 and warm unless said; medians of {repeats} paired repeats. "
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} threads; Python {platform.python_version()}, "
        f"numpy {np.__version__}, numba {numba.__version__}, pimeter {pm.__version__}.",
        "",
        "| what | ratio | ours / peer |",
        "|---|---|---|",
    ]
    (RESULTS / "quantile_speed.md").write_text("\n".join([*head, *(f"| {a} | {b} | {c} |" for a, b, c in rows), ""]))


if __name__ == "__main__":
    main()
