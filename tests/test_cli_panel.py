"""`pimeter forecast` for files of several series: a page, a table with intervals, and what is refused."""

import json
import sys
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import pimeter as pm
from pimeter import cli
from pimeter.evaluation.panel_backtesting import panel_backtest

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


def test_forecasts_to_come_may_have_cutoffs_and_the_code_names_other_columns(pimeter, tmp_path):
    names = {"unique_id": "item_id", "cutoff": "made", "ds": "day", "y": "sold"}
    past, future = past_and_future()
    future = future.with_columns(cutoff=pl.col("ds").min() - pl.duration(days=1))
    past.rename(names).write_csv(tmp_path / "panel.csv")
    future.rename({"unique_id": "item_id", "cutoff": "made", "ds": "day"}).write_csv(tmp_path / "future.csv")
    out = tmp_path / "with-intervals.csv"
    columns = ["--window", "made", "--time", "day", "--target", "sold"]
    done = pimeter("forecast", tmp_path / "panel.csv", *columns, "--apply", tmp_path / "future.csv", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "cutoff_col='made', id_col='item_id', target_col='sold', time_col='day'" in done.stdout
    plain = pm.PanelIntervals(0.95).fit(past).predict_interval(future)
    found = pl.read_csv(out)
    np.testing.assert_allclose(found["mean-lo-95"].to_numpy(), plain["mean-lo-95"].to_numpy(), rtol=1e-9)


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
    assert "1 combination of 'unique_id', 'cutoff' and 'ds' occurs in several rows" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_forecasts_to_come_of_one_series_are_refused(pimeter, tmp_path):
    past, _ = past_and_future(n_series=1)
    past.write_csv(tmp_path / "one.csv")
    done = pimeter("forecast", tmp_path / "one.csv", "--prediction", "mean", "--apply", "future.csv", "--out", "x.csv")
    assert done.returncode == 2
    assert "--apply and --season are for several series" in done.stderr


class TestBacktest:
    def test_a_step_that_a_series_lacks_does_not_move_the_others(self):
        past, _ = past_and_future()
        is_third = pl.col("ds") - pl.col("cutoff") == 3 * DAY
        lacking = past.filter(is_third == (pl.col("unique_id") == "shop 2"))  # that one has the third step alone
        found = panel_backtest(lacking, pm.PanelIntervals(0.9, models=["mean"]))
        assert len(found.models["mean"].by_step) == 3

    def test_missing_values_are_no_misses_whether_null_or_nan(self):
        past, _ = past_and_future()
        is_hole = pl.int_range(pl.len()) % 5 == 0
        found = [
            panel_backtest(
                past.with_columns(
                    pl.when(is_hole).then(hole).otherwise(pl.col(name)).alias(name) for name in ("y", "high")
                ),
                pm.PanelIntervals(0.9),
            )
            for hole in (None, np.nan)
        ]
        assert found[0].models == found[1].models
        assert found[0].models["high"].coverage > 0.8

    def test_advice_names_a_series_that_is_missed_far_too_often(self):
        past, _ = past_and_future(n_series=40, n_windows=60)
        is_moved = (pl.col("unique_id") == "shop 3") & (pl.col("ds") > START + 50 * DAY)
        moved = past.with_columns(y=pl.col("y") + pl.when(is_moved).then(9.0).otherwise(0.0))
        found = panel_backtest(moved, pm.PanelIntervals(0.9, models=["mean"]))
        assert "Look at shop 3:" in found.diagnosis.advice[0]
        assert found.diagnosis.raised == ("worst_series",)
        one = found.diagnosis["worst_series"]
        assert one.reference - one.value > one.threshold

    def test_a_whole_window_is_shown(self):
        past, _ = past_and_future()
        known = past.filter(pl.col("ds") <= START + 40 * DAY)
        shown = panel_backtest(known, pm.PanelIntervals(0.9)).shown
        assert {len(one.time) for one in shown} == {3}

    def test_advice_names_the_model_whose_level_is_not_kept(self):
        past, _ = past_and_future(n_windows=60)
        moved = past.with_columns(
            high=pl.col("mean") + pl.when(pl.col("ds") > START + 50 * DAY).then(9.0).otherwise(0.0)
        )
        found = panel_backtest(moved, pm.PanelIntervals(0.9))
        assert "Nothing to do around mean; around high the level is not kept." in found.advice[0]
        assert found.diagnosis.raised == ("coverage",)
        assert abs(found.diagnosis["coverage"].value - 0.9) > found.diagnosis["coverage"].threshold

    def test_a_level_that_is_kept_asks_for_nothing(self):
        found = panel_backtest(past_and_future(n_windows=60)[0], pm.PanelIntervals(0.9))
        assert found.diagnosis.raised == ()
        assert [one.name for one in found.findings] == ["coverage", "worst_series"]
        assert found.advice == ("Nothing to do: the level is kept.",)

    def test_a_model_that_was_not_always_there(self):
        past, _ = past_and_future()
        newest = past["cutoff"].max()
        late = past.with_columns(high=pl.when(pl.col("cutoff") == newest).then(None).otherwise(pl.col("high")))
        found = panel_backtest(late, pm.PanelIntervals(0.9))
        assert len(found.models["high"].over_time) == len(found.cutoffs) == len(found.models["mean"].over_time)
        assert found.models["high"].over_time[-1] is None
        assert "panel" in found.to_html().lower()

    def test_code_runs(self):
        past, future = past_and_future()
        names = {"past": past, "future": future}
        exec(panel_backtest(past, pm.PanelIntervals(0.9, models=["mean"])).code, names)
        assert {"mean-lo-90", "mean-hi-90"} <= set(names["with_intervals"].columns)
