"""`pimeter forecast` for files of several series: a page, a table with intervals, and what is refused."""

import json
import sys
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from pimeter import cli

START = np.datetime64("2026-01-01", "us")
DAY = np.timedelta64(1, "D")


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def pimeter(monkeypatch, capfd):
    """Runs a command line; gives its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return Done(left.value.code, *capfd.readouterr())

    return run


def past_and_future(n_series=6, n_windows=40, h=3):
    rng = np.random.default_rng(0)
    past, future = [], []
    for i in range(n_series):
        y = 10.0 * (i + 1) + rng.standard_normal(n_windows + h)
        made = np.arange(n_windows)
        at = made[:, None] + np.arange(1, h + 1)
        level = np.full(at.size, 10.0 * (i + 1))
        past.append(
            pl.DataFrame(
                {
                    "unique_id": [f"shop {i}"] * at.size,
                    "ds": START + at.ravel() * DAY,
                    "cutoff": START + np.repeat(made, h) * DAY,
                    "y": y[at].ravel(),
                    "mean": level,
                    "high": level + 1.0,
                }
            )
        )
        ds = START + (n_windows + h + np.arange(h)) * DAY
        future.append(
            pl.DataFrame({"unique_id": [f"shop {i}"] * h, "ds": ds, "mean": level[:h], "high": level[:h] + 1.0})
        )
    return pl.concat(past), pl.concat(future)


@pytest.mark.parametrize("kind", ["dates", "moments"])
def test_a_panel_gets_a_page_and_a_table_with_intervals(pimeter, tmp_path, kind):
    past, future = past_and_future()
    if kind == "dates":
        past, future = (
            past.with_columns(pl.col("ds", "cutoff").cast(pl.Date)),
            future.with_columns(pl.col("ds").cast(pl.Date)),
        )
    past.write_csv(tmp_path / "panel.csv")
    future.write_csv(tmp_path / "future.csv")
    out = tmp_path / "with-intervals.csv"
    done = pimeter(
        "forecast", tmp_path / "panel.csv", "--apply", tmp_path / "future.csv", "--out", out, "--level", "0.9"
    )
    assert done.returncode == 0, done.stderr
    assert "90 % intervals around mean covered" in done.stdout
    assert "told apart by column 'unique_id'" in done.stderr
    found = pl.read_csv(out)
    assert found.columns[-4:] == ["mean-lo-90", "mean-hi-90", "high-lo-90", "high-hi-90"]
    assert len(found) == len(future)
    assert (found["mean-lo-90"] < found["mean"]).all()
    page = out.with_suffix(".html").read_text()
    for words in ("Series with the lowest coverage", "Is the level kept at each step?", "shop 0", "Models"):
        assert words in page


def test_json_and_one_model(pimeter, tmp_path):
    past, _ = past_and_future()
    past.rename({"unique_id": "store"}).write_parquet(tmp_path / "panel.parquet")
    done = pimeter("forecast", tmp_path / "panel.parquet", "--id", "store", "--prediction", "mean", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["models"]) == ["mean"]
    assert found["n_series"] == 6
    assert abs(found["models"]["mean"]["coverage"] - 0.95) < 0.05
    assert len(found["models"]["mean"]["by_step"]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--apply", "future.csv"], "name a table with --out"),
        (["--id", "nowhere"], "has no column 'nowhere'"),
        (["--window", "y"], "cannot be both the window and the target"),
    ],
)
def test_what_cannot_be_told_is_refused(pimeter, tmp_path, options, message):
    past_and_future()[0].write_csv(tmp_path / "panel.csv")
    done = pimeter("forecast", tmp_path / "panel.csv", *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_rows_that_come_twice_are_refused(pimeter, tmp_path):
    past, _ = past_and_future()
    pl.concat([past, past[:1]]).write_csv(tmp_path / "panel.csv")
    done = pimeter("forecast", tmp_path / "panel.csv", "--out", tmp_path / "page.html")
    assert done.returncode == 2
    assert "several rows of the same 'unique_id', 'cutoff' and 'ds'" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_forecasts_to_come_of_one_series_are_refused(pimeter, tmp_path):
    past, _ = past_and_future(n_series=1)
    past.write_csv(tmp_path / "one.csv")
    done = pimeter("forecast", tmp_path / "one.csv", "--prediction", "mean", "--apply", "future.csv", "--out", "x.csv")
    assert done.returncode == 2
    assert "--apply and --season are for several series" in done.stderr
