"""How long until the first answer? In environments of their own, made anew.

    python benchmarks/start_up.py [--quick]

Makes an empty environment, installs pimeter there from this checkout, as `pip install .` does, and times
new processes there: the very first one, then others. `--quick` takes the environment that runs the script.
The table goes to `results/start_up.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
from provenance import ROOT, save

ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
FIRST = "import numpy as np, pimeter as pm; pm.quantile(np.arange(500.0) ** 2, 0.95)"
BASE = "import numpy, polars"
SEED = 11


def seconds(python: Path, *arguments: str, cwd: Path) -> float:
    """Wall time of a new process."""
    start = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([python, *arguments], cwd=cwd, env=ENVIRONMENT, check=True, **quiet)
    return time.perf_counter() - start


def fresh(folder: Path) -> tuple[Path, float]:
    """An environment with pimeter: its Python, and megabytes that pip brought."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    before = size(site)
    start = time.perf_counter()
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    constraint = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraint, str(ROOT)], check=True)
    taken = time.perf_counter() - start
    print(f"pip install . took {taken:.0f} s and {(size(site) - before) / 1e6:.0f} MB", flush=True)
    return python, (size(site) - before) / 1e6


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="in this environment, few repeats, nothing saved")
    quick = parser.parse_args().quick
    repeats = 3 if quick else 15
    rows: list[tuple[str, str]] = []

    def add(what: str, figure: str) -> None:
        rows.append((what, figure))
        print(f"{what:<80} {figure}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        y, noise = np.random.default_rng(SEED).standard_normal((2, 1000))
        lines = [f"{a},{a + b}" for a, b in zip(y, noise, strict=True)]
        (folder / "rows.csv").write_text("\n".join(["y,y_pred", *lines]))
        X = np.random.default_rng(SEED).uniform(size=(1000, 3))
        wide = [f"{x[0]},{x[0] + (1 + 4 * x[1]) * e},{x[0]},{x[1]},{x[2]}" for x, e in zip(X, noise, strict=True)]
        (folder / "wide.csv").write_text("\n".join(["y_pred,y,a,b,c", *wide]))
        measure = ("-m", "pimeter", "measure", "rows.csv", "--out", "report.html")
        measure_wide = ("-m", "pimeter", "measure", "wide.csv", "--features", "a,b,c", "--out", "report.html")
        if quick:
            python = Path(sys.executable)
        else:
            python, megabytes = fresh(folder / "environment")
            add("size of pip install ., MB", f"{megabytes:.0f}")
            add(
                "fresh environment: import and first quantile of 500 values, s",
                f"{seconds(python, '-c', FIRST, cwd=folder):.2f}",
            )
        later = [seconds(python, "-c", FIRST, cwd=folder) for _ in range(repeats)]
        add("later processes: the same, s", f"{np.median(later):.3f}")
        if not quick:
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
            subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"{ROOT}[app]"], check=True)
        base = np.median([seconds(python, "-c", BASE, cwd=folder) for _ in range(repeats)])
        if not quick:
            first = seconds(python, *measure, cwd=folder)
            add(
                "pimeter measure, 1,000 rows, --out, first time: x import numpy, polars",
                f"{first / base:.1f} ({first:.2f} s)",
            )
        for what, command in (
            ("the same, later: x import numpy, polars", measure),
            ("with three features, one of which tells the spread, later: x import numpy, polars", measure_wide),
        ):
            pairs = np.array(
                [[seconds(python, *own, cwd=folder) for own in (command, ("-c", BASE))] for _ in range(repeats)]
            )
            ratio, times = np.median(pairs[:, 0] / pairs[:, 1]), np.median(pairs, axis=0)
            add(what, f"{ratio:.1f} ({times[0]:.2f} / {times[1]:.2f} s)")
        for command in ("--help", "--version", "plan --level 0.95 --within 0.02"):
            taken = np.median([seconds(python, "-m", "pimeter", *command.split(), cwd=folder) for _ in range(repeats)])
            add(f"pimeter {command}, later: x import numpy, polars", f"{taken / base:.1f} ({taken:.2f} s)")
    if not quick:
        machine = f"{platform.machine()}; Python {platform.python_version()}"
        head = [
            "# Start-up",
            "",
            f"`python benchmarks/start_up.py`, medians of {repeats} processes, the first ones once. {machine}.",
            "",
            "| what | figure |",
            "|---|---|",
        ]
        table = "\n".join([*head, *(f"| {what} | {figure} |" for what, figure in rows), ""])
        save(__file__, table, uses=["pimeter.quantile", "pimeter.__main__"])


if __name__ == "__main__":
    main()
