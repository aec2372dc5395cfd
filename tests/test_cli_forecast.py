"""`pimeter forecast`: from a file of forecasts to a cone, and what it says of files that are wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pimeter import cli, files, windows

pl = pytest.importorskip("polars")


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


def test_cone_and_report(pimeter, file, tmp_path):
    out = tmp_path / "cone.html"
    done = pimeter("forecast", file, "--level", 0.9, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "90 % of targets are expected within ±" in done.stdout
    assert "guessed that the window" in done.stderr
    page = out.read_text()
    assert "Is the level kept as time goes by?" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_time_is_named_as_in_the_file(pimeter, tmp_path):
    path, out = tmp_path / "dated.csv", tmp_path / "cone.html"
    day = pl.lit(np.datetime64("2026-01-01")) + pl.duration(days=pl.col("origin"))
    forecasts().with_columns(origin=day.dt.date()).sample(fraction=1.0, shuffle=True, seed=1).write_csv(path)
    assert pimeter("forecast", path, "--out", out).returncode == 0
    assert ">2026-03-02<" in out.read_text()  # window 60, the first that the cone was not fitted to


def test_json_does_not_depend_on_the_order_of_rows(pimeter, file, tmp_path):
    shuffled = tmp_path / "shuffled.parquet"
    forecasts().sample(fraction=1.0, shuffle=True, seed=1).write_parquet(shuffled)
    one, other = (json.loads(pimeter("forecast", path, "--json").stdout) for path in (file, shuffled))
    assert one == other
    assert one["n_tested"] == 60
    assert len(one["radius"]) == 3


def test_rows_of_one_step(pimeter, tmp_path):
    path = tmp_path / "steps.csv"
    forecasts(h=1).select("y", "y_hat").write_csv(path)
    done = pimeter("forecast", path)
    assert done.returncode == 0, done.stderr
    assert "one step ahead." in done.stdout
    assert "took each row for a forecast one step ahead" in done.stderr


def test_rows_of_a_window_are_its_steps(pimeter, file, tmp_path):
    path = tmp_path / "nosteps.csv"
    forecasts().drop("step").write_csv(path)
    done = pimeter("forecast", path, "--json")
    assert "took the rows of each 'origin' for steps 1, 2, ... ahead" in done.stderr
    assert json.loads(done.stdout) == json.loads(pimeter("forecast", file, "--json").stdout)


@pytest.mark.parametrize(("name", "note"), [("{:04d}-01-01", False), ("w{}", True), ("1.{}.2024", True)])
def test_order_of_windows_that_are_words(pimeter, file, tmp_path, name, note):
    path = tmp_path / "words.csv"
    names = [name.format(1500 + i if note is False else i) for i in forecasts()["origin"]]
    forecasts().with_columns(origin=pl.Series(names)).write_csv(path)
    done = pimeter("forecast", path, "--json")
    assert ("windows are taken in the order of the file" in done.stderr) == note
    assert json.loads(done.stdout) == json.loads(pimeter("forecast", file, "--json").stdout)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["2024-02", "2024-01"], [1, 0]),
        (["2024-01-01 10:00", "2024-01-01T09:00:30", "2024-01-01 09:00"], [2, 1, 0]),
        (["2024-01-02T00:00:00.5Z", "2024-01-02T00:00:00Z"], [1, 0]),
        (["2024-01-01 10:00+01:00", "2024-01-01 09:30+01:00"], [1, 0]),
        (["2024-01-01 9:00", "2024-01-01 10:00"], None),
        (["2024-01-01 11:00 AM", "2024-01-01 01:00 PM"], None),
        (["2024-10-27 02:30+02:00", "2024-10-27 02:00+01:00"], None),
        (["2024-01-01 extra", "2024-01-01"], None),
    ],
)
def test_only_times_whose_letters_are_in_order_are_sorted(names, order):
    notes: list[str] = []
    table = files.Table("'a.csv'", Path("a.csv"), ",", ())
    found = windows._order(table, pl.Series("origin", names), notes).tolist()
    assert found == (order or list(range(len(names))))
    assert len(notes) == (order is None)


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["w10", "w2", "w1"]), pl.Binary()])
def test_words_of_other_kinds_are_words(kind):
    notes: list[str] = []
    table = files.Table("'a.parquet'", Path("a.parquet"), ",", ())
    given = pl.Series("origin", ["w1", "w2", "w10", "w1"]).cast(kind)
    assert windows._order(table, given, notes).tolist() == [0, 1, 2, 0]
    assert len(notes) == 1


@pytest.mark.parametrize("held", [[[1], [2]], [{"a": 1}, {"a": 2}], [True, False], [b"\xff", b"\xfe"]])
def test_windows_that_have_no_order_are_refused(held):
    table = files.Table("'a.parquet'", Path("a.parquet"), ",", ())
    with pytest.raises(ValueError, match=r"column 'origin' holds .*; give numbers, dates or words for windows"):
        windows._order(table, pl.Series("origin", held), [])


def test_a_window_that_is_no_number_is_missing(pimeter, tmp_path):
    path = tmp_path / "nan.parquet"
    forecasts().with_columns(
        origin=pl.col("origin").replace_strict({5: np.nan}, default=pl.col("origin"))
    ).write_parquet(path)
    done = pimeter("forecast", path)
    assert done.returncode == 2
    assert "column 'origin' is missing in row 16" in done.stderr


def test_windows_without_their_last_rows_are_kept(pimeter, file, tmp_path):
    path, out = tmp_path / "known.csv", tmp_path / "cone.html"
    forecasts().drop_nulls().write_csv(path)
    done = pimeter("forecast", path, "--json", "--out", out)
    assert "2 of 120 windows have no prediction for some steps" in done.stderr
    assert "2 of 120 windows have no prediction for some steps" in out.read_text()
    one, other = json.loads(done.stdout), json.loads(pimeter("forecast", file, "--json").stdout)
    assert one["radius"] == other["radius"]
    assert one["n_tested"] == other["n_tested"] == 60
    assert one["last"]["prediction"][1:] == [None, None]


def test_a_cone_that_failed_is_not_praised(pimeter, tmp_path):
    frame = forecasts()
    jump = frame.with_columns(y=pl.when(pl.col("origin") >= 60).then(pl.col("y") * 1e3).otherwise(pl.col("y")))
    path = tmp_path / "jump.csv"
    jump.write_csv(path)
    done = pimeter("forecast", path)
    assert "does not keep its 95 %" in done.stdout
    assert "are expected within" not in done.stdout


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.with_columns(step=pl.lit(1.5)), "row 1 of column 'step' holds 1.5; steps are 1, 2"),
        (lambda frame: frame.with_columns(step=pl.lit(1e30)), "row 1 of column 'step' holds 1e+30; steps are 1, 2"),
        (lambda frame: pl.concat([frame, frame[3:4]]), "row 361 repeats window and step"),
        (lambda frame: frame.with_columns(origin=pl.lit(None)), "column 'origin' is missing in row 1"),
        (lambda frame: frame[:9], "3 windows of 3 steps are too few"),
        (lambda frame: frame.drop("origin"), "no column has a usual name for the window"),
        (lambda frame: frame.with_columns(step=pl.col("step") * 100_000), "windows of 300,000 steps have only"),
        (lambda frame: frame.with_columns(step=pl.col("step") * 2), "3 of the steps 1 to 6 have no prediction at all"),
        (lambda frame: frame.with_columns(h=pl.col("step")), "several columns have a usual name for the step"),
        (lambda frame: frame.with_columns(y=pl.lit(np.inf)), "row 1 of column 'y' is infinite"),
        (lambda frame: frame.with_columns(y=pl.lit(None)), "column 'y' has no number; all 360 rows are missing"),
        (lambda frame: frame.with_columns(y_hat=pl.lit(None)), "column 'y_hat' has no number"),
    ],
)
def test_mistakes_are_one_line(pimeter, tmp_path, change, says):
    path, out = tmp_path / "wrong.csv", tmp_path / "cone.html"
    change(forecasts()).write_csv(path)
    done = pimeter("forecast", path, "--out", out)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_one_column_for_two_things(pimeter, file):
    for command in ("forecast", "measure"):
        done = pimeter(command, file, "--target", "y_hat")
        assert done.returncode == 2
        assert "column 'y_hat' cannot be both the target and the prediction" in done.stderr


def test_hostile_names_are_text(pimeter, tmp_path):
    name = "</title><script>alert(1)</script>"
    path = tmp_path / "a.csv"
    forecasts().rename({"y": name}).write_csv(path)
    out = tmp_path / "cone.html"
    assert pimeter("forecast", path, "--target", name, "--out", out).returncode == 0
    assert "<script" not in out.read_text()
