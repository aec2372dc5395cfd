"""Given intervals on the command line: columns, levels that names tell, and intervals that are made to hold."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import pimeter as pm
from pimeter import cli, files
from pimeter.files import Reading

HALF = stats.norm.ppf(0.95)


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mean = rng.normal(size=600)
    y = mean + rng.normal(size=600)
    held = {
        "y": y,
        "mean": mean,
        "sd": np.ones(600),
        "y-lo-90": mean - HALF,
        "y-hi-90": mean + HALF,
        "day": np.arange(600),
    }
    held |= {f"q{p:g}": mean + stats.norm.ppf(p) for p in (0.05, 0.25, 0.5, 0.75, 0.95)}
    held |= {"low": mean - HALF / 1.5, "high": mean + HALF / 1.5}
    table = pl.DataFrame(held)
    table.write_csv("rows.csv")
    return table


@pytest.fixture
def run(monkeypatch, capfd):
    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    return command


@pytest.mark.parametrize(
    ("options", "level", "note"),
    [
        (("--lower", "y-lo-90", "--upper", "y-hi-90"), 0.9, "took the level 0.9 from the names"),
        (("--lower", "low", "--upper", "high", "--level", "0.8"), 0.8, ""),
        (("--quantiles", "q0.05,q0.25,q0.5,q0.75,q0.95"), 0.9, "'q0.25' is 0.25"),
        (("--quantiles", "y-lo-90,q0.5,y-hi-90"), 0.9, "'y-hi-90' is 0.95"),
        (("--prediction", "mean", "--std", "sd"), 0.95, ""),
    ],
)
def test_what_names_tell(frame, run, options, level, note):
    code, out, err = run("measure", "rows.csv", *options, "--time", "day", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["confidence_level"] == pytest.approx(level)
    assert found["n_rows"] == 600
    assert note in err


def test_numbers_are_those_of_python(frame, run):
    code, out, err = run("measure", "rows.csv", "--lower", "y-lo-90", "--upper", "y-hi-90", "--out", "page.html")
    assert code == 0, err
    expected = pm.measure(
        frame["y"].to_numpy(), intervals=frame.select("y-lo-90", "y-hi-90").to_numpy(), confidence_level=0.9
    )
    assert str(expected.headline) in out
    assert "By the centre of the interval" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        ("p5,p50,p95", [0.05, 0.5, 0.95]),
        ("q05,q975", [0.05, 0.975]),
        ("0.1,0.9", [0.1, 0.9]),
        ("y_q10,y_q90", [0.1, 0.9]),
    ],
)
def test_levels_of_quantiles(frame, run, names, levels):
    columns = names.split(",")
    held = {name: frame["mean"] + stats.norm.ppf(p) for name, p in zip(columns, levels, strict=True)}
    pl.DataFrame({"y": frame["y"], **held}).write_csv("named.csv")
    code, _, err = run(
        "measure", "named.csv", "--quantiles", names, "--json", *(["--level", 0.9] * (names == "p5,p50,p95"))
    )
    if levels[0] + levels[-1] == 1.0:
        assert code == 0, err
        assert ", ".join(f"'{name}' is {p:g}" for name, p in zip(columns, levels, strict=True)) in err
    else:
        assert "levels 0.025 and 0.975" in err  # 5 % and 97.5 % are no central interval


def test_intervals_are_made_to_hold(frame, run):
    frame[:300].write_csv("past.csv")
    new = frame[300:].with_columns(pl.when(pl.col("day") == 310).then(None).otherwise(pl.col("low")).alias("low"))
    new.write_csv("new.csv")
    code, out, err = run(
        "recalibrate", "past.csv", "--lower", "low", "--upper", "high", "--level", "0.9", "--apply", "new.csv",
        "--out", "out.csv", "--method", "additive",
    )  # fmt: skip
    assert code == 0, err
    assert "90 % of new targets are expected inside, calibrated on 300 rows." in out
    written = pl.read_csv("out.csv")
    assert written["lower"].null_count() == 1
    calibrator = pm.IntervalCalibrator(0.9, method="additive")
    calibrator.fit(frame["y"][:300].to_numpy(), intervals=frame[:300].select("low", "high").to_numpy())
    expected = calibrator.predict_interval(intervals=new.drop_nulls().select("low", "high").to_numpy())
    assert_allclose(written.drop_nulls().select("lower", "upper").to_numpy(), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lower", "low"), "--lower with --upper"),
        (("--lower", "low", "--upper", "high"), "do not tell their level; give --level"),
        (("--lower", "y-lo-90", "--upper", "y-hi-80"), "are named for different levels, 0.8 and 0.9"),
        (("--lower", "low", "--upper", "high", "--std", "sd"), "give one of"),
        (("--quantiles", "low,high"), "'low' does not tell its level"),
        (("--lower", "high", "--upper", "low", "--level", "0.9"), "cross in 600 of 600 rows"),
        (("--quantiles", "p100"), "'p100' does not tell its level"),
        (("--lower", "nothing", "--upper", "high", "--level", "0.9"), "nothing"),
        (("--lower", "y", "--upper", "high", "--level", "0.9"), "cannot be both"),
    ],
)
def test_what_is_refused(frame, run, options, words, tmp_path):
    code, _, err = run("measure", "rows.csv", *options, "--out", "page.html")
    assert code == 2
    assert words in err
    assert not (tmp_path / "page.html").exists()


def test_a_file_of_bounds_says_how_to_measure_them(frame, run):
    frame.select("y", "y-lo-90", "y-hi-90").write_csv("bounds.csv")
    code, _, err = run("measure", "bounds.csv")
    assert code == 2
    assert "give --lower y-lo-90 --upper y-hi-90 to measure these intervals" in err


@pytest.mark.parametrize(
    "options",
    [
        ("--lower", "low", "--upper", "high", "--level", "0.9"),
        ("--prediction", "mean", "--std", "narrow", "--level", "0.9"),
        ("--quantiles", "low_q05,low_q95"),
        ("--prediction", "mean", "--std", "narrow", "--level", "0.9", "--groups", "shop"),
    ],
)
def test_the_command_of_the_advice_runs(frame, run, options):
    shop = pl.int_range(frame.height) // 4
    frame = frame.with_columns(narrow=pl.col("sd") / 1.5, shop=shop, low_q05=pl.col("low"), low_q95=pl.col("high"))
    frame.write_csv("rows.csv")
    frame.drop("y").write_csv("new.csv")
    code, out, err = run("measure", "rows.csv", *options, "--out", "page.html")
    assert code == 0, err
    (command,) = (line for line in out.splitlines() if line.startswith("pimeter recalibrate rows.csv"))
    assert ("--groups shop" in command) == ("shop" in options)
    assert "pimeter recalibrate rows.csv" in Path("page.html").read_text(encoding="utf-8")
    code, out, err = run(*shlex.split(command)[1:])
    assert code == 0, err
    assert pm.coverage_score(frame["y"], pl.read_csv("calibrated.csv").select("lower", "upper").to_numpy()) > 0.87


def test_bounds_named_lower_and_upper_stay_beside_the_calibrated_ones(frame, run):
    frame.rename({"low": "lower", "high": "upper"}).write_csv("vendor.csv")
    arguments = ("recalibrate", "vendor.csv", "--lower", "lower", "--upper", "upper", "--level", "0.9", "--apply")
    code, out, err = run(*arguments, "vendor.csv", "--out", "once.csv")
    assert code == 0, err
    assert "'lower_calibrated' and 'upper_calibrated'" in out
    found = pl.read_csv("once.csv")
    assert_allclose(found["lower"], frame["low"])
    assert pm.coverage_score(frame["y"], found.select("lower_calibrated", "upper_calibrated").to_numpy()) > 0.87
    code, _, err = run(*arguments, "once.csv", "--out", "twice.csv")
    assert code == 2
    assert "has 'lower_calibrated' and 'upper_calibrated' already" in err


def test_a_model_without_bounds_is_named(frame, run):
    frame = frame.rename({"y-lo-90": "A-lo-90", "y-hi-90": "A-hi-90", "low": "B-lo-80", "high": "B-hi-80"})
    frame.write_csv("models.csv")
    code, _, err = run("compare", "models.csv", "--models", "A,C", "--intervals")
    assert code == 2
    assert "there are no columns 'C-lo-90' and 'C-hi-90'" in err
    code, _, err = run("compare", "models.csv", "--models", "A,B", "--intervals")
    assert code == 2
    assert "need one level in common; A has 0.9; B has 0.8" in err


@pytest.mark.parametrize(
    ("options", "printed"), [((), "interval"), (("--lower", "low", "--upper", "high"), "recalibrate")]
)
def test_the_command_of_the_advice_reads_files_in_the_same_way(frame, run, options, printed):
    texts = pl.col("y", "mean", "low", "high").cast(pl.String).str.replace(".", ",", literal=True)
    frame = frame.with_columns(low=frame["mean"] - 1.0, high=frame["mean"] + 1.0)
    frame.with_columns(texts).write_csv("commas.csv", separator="|")
    frame.with_columns(texts).drop("y").write_csv("new.csv", separator="|")
    given = options or ("--prediction", "mean")
    code, out, err = run("measure", "commas.csv", *given, "--level", "0.9", "--decimal", ",", "--encoding", "utf-8")
    assert code == 0, err
    (command,) = (line for line in out.splitlines() if line.startswith(f"pimeter {printed} commas.csv"))
    assert command.endswith("--encoding utf-8 --decimal ,")
    code, out, err = run(*shlex.split(command)[1:])
    assert code == 0, err
    with files.opened("new-with-intervals.csv" if printed == "interval" else "calibrated.csv") as table:
        bounds = table.read(["lower", "upper"])
    assert abs(pm.coverage_score(frame["y"], bounds.to_numpy()) - 0.9) < 0.03


def test_a_page_knows_where_the_level_stands_in_the_command(frame, run):
    options = ("--prediction", "mean", "--level", "0.9", "--decimal", ".", "--out", "page.html")
    code, out, err = run("measure", "rows.csv", *options)
    assert code == 0, err
    assert "pimeter interval rows.csv" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert '--level <span id="code-level">0.9</span> --target y --prediction mean' in page
    assert "--decimal .</code>" in page


def test_the_options_of_a_reading_are_those_that_were_given():
    assert Reading().options == ()
    found = Reading(thousands=" ", date_format="%d/%m", sheet="2", header=False).options
    assert found == ("--thousands", " ", "--date-format", "%d/%m", "--sheet", "2", "--no-header")
    assert Reading(header=True).options == ("--header",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--groups", "shop"), "left out 7 of 600 rows that have no group\n"),
        (("--time", "at"), "left out 5 of 600 rows that have no time\n"),
        (("--groups", "shop", "--time", "at"), "left out 7 of 600 rows that have no group or no time\n"),
    ],
)
def test_rows_without_a_group_or_a_time_are_counted(frame, run, options, said):
    rows = pl.int_range(frame.height)
    frame = frame.with_columns(
        shop=pl.when(rows >= 7).then(rows // 4), at=pl.when(rows >= 5).then("day " + rows.cast(pl.String))
    )
    frame.write_csv("gaps.csv")
    code, _, err = run("measure", "gaps.csv", "--prediction", "mean", *options)
    assert code == 0, err
    assert said in err
    assert ("so rows are taken in the order of the file" in err) == ("at" in options)
