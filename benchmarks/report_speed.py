"""How long does `pimeter measure --out` take? Time and memory beyond those of a small file, beside reading the columns.

    python benchmarks/report_speed.py [--quick]

The yardstick is polars reading the two columns and one `np.quantile` of the errors, in the same run. Every command runs
in a process of its own; files are warm. Its time on 1,000 rows, most of which goes to imports, is taken off. The last
line compares `pimeter --help` with `python -c "import numpy"`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
from provenance import save

SEED = 20261115
READ = {"parquet": pl.read_parquet, "csv": pl.read_csv}
COLUMNS = ["y", "y_hat"]


def ran(*arguments: str) -> tuple[float, float, float]:
    """Seconds, those of all cores together, and peak memory in MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(process.stderr.read().decode() if process.stderr else "")
    process.returncode = 0
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measured(path: Path) -> tuple[float, float, float]:
    return ran("-m", "pimeter", "measure", str(path), "--out", str(path.with_suffix(".html")))


def yardstick(path: Path) -> tuple[float, float]:
    """Seconds to read the two columns and take one quantile of the errors, and those of all cores together."""
    start, begun = time.perf_counter(), time.process_time()
    frame = READ[path.suffix[1:]](path, columns=COLUMNS)
    np.quantile(np.abs(frame["y"].to_numpy() - frame["y_hat"].to_numpy()), 0.95)
    return time.perf_counter() - start, time.process_time() - begun


def write(path: Path, n: int) -> Path:
    rng = np.random.default_rng([SEED, n])
    y_hat = rng.normal(50.0, 10.0, size=n)
    frame = pl.DataFrame({"y": y_hat + rng.normal(0.0, 3.0, size=n), "y_hat": y_hat, "shop": rng.integers(20, size=n)})
    (frame.write_parquet if path.suffix == ".parquet" else frame.write_csv)(path)
    return path


def median(repeats: int, once: Callable[[], float]) -> float:
    return float(np.median([once() for _ in range(repeats)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, nothing saved")
    quick = parser.parse_args().quick
    repeats = 1 if quick else 5
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, n in (("parquet", 20_000 if quick else 10_000_000), ("csv", 20_000 if quick else 1_000_000)):
            big, small = (write(Path(folder) / f"{rows}.{kind}", rows) for rows in (n, 1_000))
            for path in () if quick else (small, big):
                measured(path)
                yardstick(path)
            rounds = [(*measured(big), *measured(small)[:2], *yardstick(big)) for _ in range(repeats)]
            whole, work, memory, start, start_work, peer, peer_work = np.median(np.array(rounds), axis=0)
            page = big.with_suffix(".html").stat().st_size / 1e3
            ratios = f"{(whole - start) / peer:.2f} | {(work - start_work) / peer_work:.2f}"
            lines.append(
                f"| {n:,} of {kind} | {peer:.2f} s | {ratios} | {start:.2f} s | {memory:,.0f} MB | {page:.0f} kB |"
            )
            print(lines[-1], flush=True)
    helps = median(3 * repeats, lambda: ran("-m", "pimeter", "--help")[0])
    ratio = helps / median(3 * repeats, lambda: ran("-c", "import numpy")[0])
    said = f'`pimeter --help` takes {ratio:.2f} of the time of `python -c "import numpy"`.'
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "polars"))
    print(f"{said}\n{versions}.")
    if quick:
        return
    head = f"""# How long does `pimeter measure --out report.html` take?

{versions}, Python {platform.python_version()}, {os.cpu_count()} cores, seed {SEED}; medians of {repeats} rounds.
Two of three columns are used; {os.getloadavg()[0]:.0f} processes were running on these cores. The
yardstick is polars reading these two columns and one `np.quantile` of the errors. Ratios are of the time beyond that of
1,000 rows: by the clock, and of the work of all cores together, which depends less on what else is running.

| rows | yardstick | ratio by the clock | ratio of work | time with 1,000 rows | peak memory | report |
|---|---|---|---|---|---|---|"""
    save(
        __file__,
        "\n".join([head, *lines, "", said, ""]),
        packages=["polars", "jinja2", "statsmodels"],
        uses=["pimeter.__main__"],
    )


if __name__ == "__main__":
    main()
