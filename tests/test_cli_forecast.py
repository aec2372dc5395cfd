"""`pimeter forecast`: from a file of forecasts to a cone, and what it says of files that are wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pl = pytest.importorskip("polars")


def pimeter(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "pimeter", *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def forecasts(n=120, h=3):
    """A random walk whose last value is the forecast; the newest targets are not known."""
    series = np.cumsum(np.random.default_rng(0).standard_normal(n + h))
    rows = [
        {"origin": i, "step": j + 1, "y": series[i + 1 + j] if i + j < n else None, "y_hat": series[i]}
        for i in range(n)
        for j in range(h)
    ]
    return pl.DataFrame(rows)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "forecasts.csv"
    forecasts().write_csv(path)
    return path


def test_cone_and_report(file, tmp_path):
    out = tmp_path / "cone.html"
    done = pimeter("forecast", file, "--level", 0.9, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "90 % of targets are expected within ±" in done.stdout
    assert "guessed that the window" in done.stderr
    page = out.read_text()
    assert "Is the level kept as time goes by?" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_json_does_not_depend_on_the_order_of_rows(file, tmp_path):
    shuffled = tmp_path / "shuffled.parquet"
    forecasts().sample(fraction=1.0, shuffle=True, seed=1).write_parquet(shuffled)
    one, other = (json.loads(pimeter("forecast", path, "--json").stdout) for path in (file, shuffled))
    assert one == other
    assert one["n_tested"] == 60
    assert len(one["radius"]) == 3


def test_rows_of_one_step(tmp_path):
    path = tmp_path / "steps.csv"
    forecasts(h=1).select("y", "y_hat").write_csv(path)
    done = pimeter("forecast", path)
    assert done.returncode == 0, done.stderr
    assert "one step ahead." in done.stdout


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.with_columns(step=pl.lit(1.5)), "row 1 of column 'step' holds 1.5; steps are 1, 2"),
        (lambda frame: pl.concat([frame, frame[3:4]]), "row 361 repeats window and step"),
        (lambda frame: frame.with_columns(origin=pl.lit(None)), "column 'origin' is missing in row 1"),
        (lambda frame: frame[:9], "3 windows of 3 steps are too few"),
        (lambda frame: frame.drop("origin"), "no column has a usual name for the window"),
        (lambda frame: frame.with_columns(step=pl.col("step") * 100_000), "windows of 300,000 steps have only"),
    ],
)
def test_mistakes_are_one_line(tmp_path, change, says):
    path, out = tmp_path / "wrong.csv", tmp_path / "cone.html"
    change(forecasts()).write_csv(path)
    done = pimeter("forecast", path, "--out", out)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_hostile_names_are_text(tmp_path):
    name = "</title><script>alert(1)</script>"
    path = tmp_path / "a.csv"
    forecasts().rename({"y": name}).write_csv(path)
    out = tmp_path / "cone.html"
    assert pimeter("forecast", path, "--target", name, "--out", out).returncode == 0
    assert "<script" not in out.read_text()
