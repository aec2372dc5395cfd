"""`pimeter forecast`: from a file of forecasts to a cone, and what it says of files that are wrong."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pimeter import cli, files, timestamps
from pimeter.evaluation import windows

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
    assert len(one["margin"]) == 3


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
    found, plain = json.loads(done.stdout), json.loads(pimeter("forecast", file, "--json").stdout)
    assert found.pop("block_names") == [names[3 * start] for start in plain["blocks"]]
    assert plain.pop("block_names") == list(map(str, plain["blocks"]))
    assert found == plain


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
    table = files.FileTable("'a.csv'", Path("a.csv"), ",", ())
    found = timestamps.numbered(table, pl.Series("origin", names), notes).tolist()
    assert found == (order or list(range(len(names))))
    assert len(notes) == (order is None)


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["w10", "w2", "w1"]), pl.Binary()])
def test_words_of_other_kinds_are_words(kind):
    notes: list[str] = []
    table = files.FileTable("'a.parquet'", Path("a.parquet"), ",", ())
    given = pl.Series("origin", ["w1", "w2", "w10", "w1"]).cast(kind)
    assert timestamps.numbered(table, given, notes).tolist() == [0, 1, 2, 0]
    assert len(notes) == 1


@pytest.mark.parametrize("held", [[[1], [2]], [{"a": 1}, {"a": 2}], [True, False], [b"\xff", b"\xfe"]])
def test_windows_that_have_no_order_are_refused(held):
    table = files.FileTable("'a.parquet'", Path("a.parquet"), ",", ())
    with pytest.raises(ValueError, match=r"column 'origin' holds .*; give numbers, dates or strings\."):
        timestamps.numbered(table, pl.Series("origin", held), [])


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
    assert one["margin"] == other["margin"]
    assert one["n_tested"] == other["n_tested"] == 60
    assert one["newest"]["prediction"][1:] == [None, None]


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


def cross_validated(ids=("a", "b", "c"), n=40, h=6, stride=1, first=0, name="unique_id"):
    """What `cross_validation` of forecasting libraries gives: rows by series, cutoff and day, of random walks."""
    parts = []
    for one in ids:
        series = np.cumsum(np.random.default_rng(ord(str(one))).standard_normal(first + n * stride + h + 1))
        cutoff = first + stride * np.repeat(np.arange(n), h)
        day = cutoff + np.tile(np.arange(1, h + 1), n)
        columns = {name: [one] * len(day), "ds": day, "cutoff": cutoff, "y": series[day], "model": series[cutoff]}
        parts.append(pl.DataFrame(columns))
    start = pl.lit(np.datetime64("2026-01-01"))
    dates = [(start + pl.duration(days=pl.col(name))).dt.date().alias(name) for name in ("ds", "cutoff")]
    return pl.concat(parts).with_columns(*dates)


def staggered(ids=("a", "b"), **options):
    """Each series has cutoffs of its own, every other day."""
    parts = [cross_validated([one], stride=2, first=i, **options) for i, one in enumerate(ids)]
    return pl.concat(parts)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("frame", "column"),
    [
        pytest.param(cross_validated(name="Filiale"), "Filiale", id="a name of its own"),
        pytest.param(cross_validated(ids=(3, 1, 2), name="nr"), "nr", id="numbers"),
        pytest.param(cross_validated(name="forecaster").with_columns(weekday=pl.col("ds").dt.weekday()), "forecaster"),
        pytest.param(cross_validated().drop("ds"), "unique_id", id="no days"),
        pytest.param(cross_validated().drop("cutoff"), "unique_id", id="no cutoffs"),
        pytest.param(cross_validated(h=1, name="Filiale").drop("cutoff"), "Filiale", id="one step ahead"),
        pytest.param(staggered(name="Filiale"), "Filiale", id="cutoffs and a name of their own"),
        pytest.param(
            cross_validated(name="nr", ids=(1, 2)).with_columns(
                step=(pl.col("ds") - pl.col("cutoff")).dt.total_days().cast(int)
            ),
            "nr",
            id="with steps",
        ),
    ],
)
def test_a_panel_is_refused_and_its_column_named(pimeter, tmp_path, frame, column, ending):
    path, out = tmp_path / f"panel.{ending}", tmp_path / "cone.html"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    done = pimeter("forecast", path, "--prediction", "model", "--out", out)
    assert done.returncode == 2
    assert f"is a panel: column '{column}' tells {frame[column].n_unique()} series apart" in done.stderr
    assert f"else keep the rows where '{column}' is '{frame[column][0]}'" in done.stderr
    assert f"--id {column} takes all of them" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda frame: frame, id="one series, named"),
        pytest.param(lambda frame: frame.with_columns(weekday=pl.col("ds").dt.strftime("%a")), id="day of the week"),
        pytest.param(lambda frame: frame.with_columns(month=pl.col("cutoff").dt.month()), id="month of the cutoff"),
        pytest.param(lambda frame: frame.with_columns(run=pl.col("cutoff").cast(str)), id="a name for each window"),
        pytest.param(lambda frame: frame.with_columns(id=pl.col("cutoff").cast(str)), id="an id for each window"),
        pytest.param(lambda frame: frame.with_row_index("id"), id="numbered rows"),
        pytest.param(lambda frame: frame.with_row_index("unique_id_").rename({"unique_id_": "item"}), id="rows, item"),
        pytest.param(
            lambda frame: frame.with_columns(id=(pl.col("ds") - pl.col("cutoff")).dt.total_days()), id="steps"
        ),
        pytest.param(
            lambda frame: frame.with_columns(version=pl.when(pl.col("ds").dt.month() < 2).then(1).otherwise(2)),
            id="a version for each day",
        ),
        pytest.param(
            lambda frame: frame.with_columns(version=pl.when(pl.col("cutoff").dt.month() < 2).then(1).otherwise(2)),
            id="a version of the model",
        ),
        pytest.param(lambda frame: frame.with_columns(temperature=pl.col("y").round() + 7.0), id="a feature"),
        pytest.param(lambda frame: frame.with_columns(holiday=pl.col("ds").dt.weekday() > 5), id="a flag"),
        pytest.param(lambda frame: frame.with_columns(region=pl.lit("north"), store=pl.lit(None)), id="constants"),
        pytest.param(lambda frame: frame.sample(fraction=1.0, shuffle=True, seed=3), id="shuffled"),
        pytest.param(lambda frame: frame.sort("ds"), id="sorted by day"),
    ],
)
def test_other_columns_do_not_make_a_panel(pimeter, tmp_path, change):
    plain, path = tmp_path / "plain.csv", tmp_path / "more.csv"
    frame = cross_validated(["a"])
    frame.drop("unique_id", "ds").write_csv(plain)
    change(frame).write_csv(path)
    one, other = (pimeter("forecast", file, "--prediction", "model", "--json") for file in (plain, path))
    assert (one.returncode, other.returncode) == (0, 0), one.stderr + other.stderr
    assert json.loads(one.stdout) == json.loads(other.stdout)
    assert "in the order of 'ds'" in other.stderr


def test_rows_of_several_hours_are_not_series(pimeter, tmp_path):
    """A date alone comes several times a day: the hour tells them apart, and is no series."""
    hours = cross_validated(["a"], h=1, n=96).drop("unique_id", "cutoff")
    at = pl.int_range(pl.len())
    hours.with_columns(ds=pl.lit("2026-01-0") + (1 + at // 24).cast(str), hour=at % 24).write_csv(tmp_path / "a.csv")
    hours.drop("ds").write_csv(tmp_path / "b.csv")
    one, other = (
        pimeter("forecast", tmp_path / name, "--prediction", "model", "--json") for name in ("a.csv", "b.csv")
    )
    assert "several rows have the same 'ds', so rows are taken in the order of the file" in one.stderr
    assert one.stdout == other.stdout != ""


def test_times_that_are_not_of_rows_are_left_alone(pimeter, file, tmp_path):
    frame = forecasts()
    plain = pimeter("forecast", file, "--json").stdout
    for i, date in enumerate(
        [
            pl.lit(np.datetime64("2026-01-01")) + pl.duration(days=pl.col("origin")),  # when it was made
            pl.when(pl.col("origin") > 5).then(pl.lit("2026-01-01")),  # missing in some rows
            pl.lit("some day in ") + (pl.col("origin") + pl.col("step")).cast(str),  # no order
        ]
    ):
        path = tmp_path / f"{i}.parquet"
        frame.with_columns(date=date).write_parquet(path)
        done = pimeter("forecast", path, "--json")
        assert done.stdout == plain, done.stderr
    done = pimeter("forecast", path, "--json", "--time", "")
    assert done.stdout == plain
    assert "guessed that the time" not in done.stderr


def test_rows_without_a_window_are_put_in_the_order_of_time(pimeter, tmp_path):
    frame = cross_validated(["a"], h=1, n=80).drop("unique_id", "cutoff")
    frame.write_csv(tmp_path / "a.csv")
    frame.reverse().write_csv(tmp_path / "b.csv")
    one, other = (
        pimeter("forecast", tmp_path / name, "--prediction", "model", "--json") for name in ("a.csv", "b.csv")
    )
    assert one.stdout == other.stdout != ""


def test_a_window_that_leaves_out_a_time(pimeter, tmp_path):
    frame = cross_validated(["a"]).with_row_index("row").filter(pl.col("row") != 62).drop("row")
    frame.write_csv(tmp_path / "hole.csv")
    done = pimeter("forecast", tmp_path / "hole.csv", "--prediction", "model")
    assert done.returncode == 2
    assert "a window leaves out times of column 'ds' before row 63, so steps cannot be counted" in done.stderr


def test_targets_that_were_revised_are_noted(pimeter, tmp_path):
    frame = cross_validated(["a"]).with_columns(y=pl.col("y") + 0.01 * pl.int_range(pl.len()))
    frame.write_csv(tmp_path / "revised.csv")
    done = pimeter("forecast", tmp_path / "revised.csv", "--prediction", "model")
    assert done.returncode == 0
    assert "a 'ds' has several targets in" in done.stderr


def layout_of(frame, tmp_path, stride=None, **columns):
    path = tmp_path / "windows.parquet"
    frame.write_parquet(path)
    notes: list[str] = []
    with files.opened(str(path)) as table:
        return windows.windows(table, windows.Layout("y", "model", **columns), notes, stride), notes


@pytest.mark.parametrize("stride", [1, 2, 6, 9])
@pytest.mark.parametrize("has_steps", [True, False])
def test_stride_is_found_by_the_times(tmp_path, stride, has_steps):
    frame = cross_validated(["a"], stride=stride)
    steps = (pl.col("ds") - pl.col("cutoff")).dt.total_days()
    frame = frame.with_columns(step=steps).sample(fraction=1.0, shuffle=True, seed=0)
    found, notes = layout_of(frame, tmp_path, window="cutoff", step="step" if has_steps else None, time="ds")
    assert found.y_true.shape == (40, 6)
    assert found.stride == stride  # also where no window is about some times
    assert found.until_known.tolist() == [-(-j // stride) for j in range(1, 7)]
    assert any("steps apart" in note for note in notes) == (stride > 1)
    given, _ = layout_of(frame, tmp_path, stride=4.0, window="cutoff", step="step", time="ds")
    assert given.stride == 4.0
    np.testing.assert_array_equal(given.y_true, found.y_true)


def test_stride_of_windows_that_are_made_more_often_than_steps(tmp_path):
    hour = np.arange(24 * 30)
    rows = [
        {"cutoff": int(i), "ds": int(i + 24 * j), "y": float(i + 24 * j), "model": 0.0} for i in hour for j in (1, 2, 3)
    ]
    found, _ = layout_of(pl.DataFrame(rows), tmp_path, window="cutoff", time="ds")
    assert found.stride == pytest.approx(1 / 24)
    days = [{**row, "ds": int(row["ds"] // 24), "y": float(row["ds"] // 24)} for row in rows]  # at one hour of the day
    found, _ = layout_of(pl.DataFrame(days), tmp_path, window="cutoff", time="ds")
    assert found.stride == pytest.approx(1 / 24, rel=0.05)


def test_windows_that_are_not_made_at_each_step_are_noted(tmp_path):
    for stride in (1, 2):
        frame = cross_validated(["a"], stride=stride)
        found, notes = layout_of(frame, tmp_path, window="cutoff")
        assert found.stride == 1.0
        assert any("say with --stride how many steps apart windows start" in note for note in notes) == (stride > 1)


@pytest.mark.parametrize("stride", ["0", "-1", "nan", "inf"])
def test_a_stride_that_is_none(pimeter, stride):
    done = pimeter("forecast", "nowhere.csv", "--stride", stride)
    assert done.returncode == 2
    assert "it must be more than 0" in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda frame: frame.drop("ds"), id="no times"),
        pytest.param(lambda frame: frame.drop("ds").sort("cutoff", maintain_order=True), id="by cutoff"),
        pytest.param(lambda frame: frame.sort("cutoff", "ds", maintain_order=True).drop("ds"), id="by cutoff and day"),
        pytest.param(lambda frame: frame.rename({"ds": "time"}), id="time"),
        pytest.param(lambda frame: frame.rename({"ds": "day"}), id="day"),
        pytest.param(
            lambda frame: frame.with_columns(time=pl.col("ds").dt.strftime("%d %b %Y")).drop("ds"), id="words"
        ),
        pytest.param(lambda frame: frame.with_columns(ds=pl.col("ds").dt.strftime("%d %b %Y")), id="words, named"),
        pytest.param(lambda frame: frame.with_columns(pl.col("ds").shift(1)), id="a missing time"),
    ],
)
@pytest.mark.parametrize("h", [4, 1])
def test_a_panel_without_times_is_refused(pimeter, tmp_path, change, h):
    path = tmp_path / "panel.parquet"
    change(cross_validated(h=h, name="dept")).write_parquet(path)
    done = pimeter("forecast", path, "--prediction", "model")
    assert done.returncode == 2, done.stderr
    assert "is a panel: column 'dept' tells 3 series apart" in done.stderr
    assert "If it tells no series apart, leave that column out." in done.stderr


def test_a_panel_that_lacks_a_row_is_refused(pimeter, tmp_path):
    cross_validated(h=4, name="dept").drop("ds")[1:].write_csv(tmp_path / "panel.csv")
    done = pimeter("forecast", tmp_path / "panel.csv", "--prediction", "model")
    assert done.returncode == 2
    assert "is a panel: column 'dept' tells 3 series apart" in done.stderr


def test_two_columns_that_make_a_panel_together(pimeter, tmp_path):
    parts = [cross_validated(name="dept").with_columns(chain=pl.lit(one)) for one in ("x", "y")]
    pl.concat(parts).write_csv(tmp_path / "panel.csv")
    done = pimeter("forecast", tmp_path / "panel.csv", "--prediction", "model")
    assert done.returncode == 2
    assert "is a panel: column 'chain' tells 2 series apart" in done.stderr


def test_parts_of_the_day_are_named_and_may_be_left_out(pimeter, tmp_path):
    """Nothing tells them from series but who made the file."""
    frame = cross_validated(["a"]).drop("ds", "unique_id")
    at = pl.int_range(pl.len()) % 6
    frame.with_columns(part=pl.when(at < 3).then(pl.lit("am")).otherwise(pl.lit("pm"))).write_csv(tmp_path / "a.csv")
    done = pimeter("forecast", tmp_path / "a.csv", "--prediction", "model")
    assert done.returncode == 2
    assert "column 'part' tells 2 series apart" in done.stderr
    assert "If it tells no series apart, leave that column out." in done.stderr
    for one in (frame, frame.with_columns(hour=4 * at), frame.with_columns(hours_ahead=6 * at + 6)):
        one.write_csv(tmp_path / "b.csv")
        done = pimeter("forecast", tmp_path / "b.csv", "--prediction", "model")
        assert done.returncode == 0, done.stderr


def dated(made, ahead):
    """Windows made at these hours, of targets so many hours ahead."""
    start = np.datetime64("2026-01-01", "us")
    made = np.repeat(np.asarray(made), len(ahead))
    due = made + np.tile(ahead, len(made) // len(ahead))
    y = np.random.default_rng(0).standard_normal(int(due.max()) + 1)
    moments = [start + hours * np.timedelta64(1, "h") for hours in (made, due)]
    return pl.DataFrame({"cutoff": moments[0], "ds": moments[1], "y": y[due], "model": np.zeros(len(due))})


@pytest.mark.parametrize("kind", ["dates", "words"])
@pytest.mark.parametrize(
    ("made", "ahead", "expected"),
    [
        pytest.param(np.arange(200), [24], [24], id="hourly, a day ahead"),
        pytest.param(24 * np.arange(80), [240, 264, 288], [10, 11, 12], id="daily, from ten days ahead"),
        pytest.param(24 * np.arange(80), [24, 48, 72], [1, 2, 3], id="daily"),
        pytest.param(6 * np.arange(80), [24, 48], [4, 8], id="every six hours, daily steps"),
        pytest.param(240 * np.arange(20), [24, 48], [1, 1], id="far apart"),
    ],
)
def test_a_target_is_known_at_its_date(tmp_path, made, ahead, expected, kind):
    frame = dated(made, ahead)
    if kind == "words":
        frame = frame.with_columns(pl.col("cutoff", "ds").dt.strftime("%Y-%m-%d %H:%M"))
    found, notes = layout_of(frame, tmp_path, window="cutoff", time="ds")
    assert found.until_known.tolist() == expected
    told = f"the target of step 1 is known {expected[0]} windows after its forecast"
    assert any(told in note for note in notes) == (expected[0] > 4)


def test_days_are_known_at_their_end(tmp_path):
    """Windows at each hour of a day: what the next day brings is known 48 hours after the first of them."""
    frame = dated(np.arange(24 * 20), [24]).with_columns(pl.col("ds").dt.truncate("1d"))
    found, _ = layout_of(frame, tmp_path, window="cutoff", time="ds")
    assert found.until_known.tolist() == [48]


def test_what_is_assumed_without_dates_is_said(tmp_path):
    frame = dated(np.arange(100), [24]).with_columns(cutoff=pl.int_range(100), ds=pl.int_range(24, 124))
    found, notes = layout_of(frame, tmp_path, window="cutoff", time="ds")
    assert found.until_known is None
    assert any("the target of step 1 is assumed to be known 1 window after its forecast" in note for note in notes)


def test_a_window_that_is_missing_leaves_the_others_whole(tmp_path):
    made = 6 * np.delete(np.arange(100), 2)
    found, _ = layout_of(dated(made, [24, 48, 72]), tmp_path, window="cutoff", time="ds")
    assert found.y_true.shape == (99, 3)
    assert found.stride == 0.25


def test_working_days_and_months_are_even_as_they_are_counted(tmp_path):
    days = np.busday_offset("2026-01-01", np.arange(60), roll="forward")
    months = np.arange("2021-01", "2026-01", dtype="datetime64[M]").astype("datetime64[D]")
    for dates in (days, months):
        held = np.lib.stride_tricks.sliding_window_view(dates, 4)
        frame = pl.DataFrame({"cutoff": np.repeat(held[:, 0], 3), "ds": held[:, 1:].ravel()})
        frame = frame.with_columns(y=pl.int_range(pl.len()) * 1.0, model=0.0)
        found, _ = layout_of(frame, tmp_path, window="cutoff", time="ds")
        assert found.y_true.shape == (57, 3)
        assert found.stride == 1.0
        assert found.until_known.tolist() == [1, 2, 3]


def test_standard_input_is_read_once(pimeter, monkeypatch):
    errors = np.random.default_rng(0).standard_normal(120)
    text = "y,y_hat\n" + "".join(f"{error:.6f},0\n" for error in errors)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    done = pimeter("forecast", "-", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("guessed that the target") == 1
