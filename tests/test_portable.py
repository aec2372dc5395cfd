"""Calibrations as text: the same answers without the model, and clear words for what is broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

import pimeter as pm
from pimeter import cli

rng = np.random.default_rng(0)
X = rng.uniform(size=(400, 2))
Y = X @ [1.0, 2.0] + rng.normal(scale=0.1 + X[:, 0])
SHOP = np.array(["north", "south"])[(X[:, 1] > 0.4).astype(int)]
MODEL = LinearRegression().fit(X[:100], Y[:100])
OLD, NEW = slice(100, 350), slice(350, None)
SAID = MODEL.predict(X)


def regressor(**settings):
    return pm.IntervalRegressor(MODEL, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tails": "equal", "guarantee": "training-conditional", "confidence_level": 0.9},
        {"tails": "sided", "y_min": -5.0},
        {"guarantee": "approximate", "y_min": 0.0 + Y.min(), "y_max": Y.max()},
    ],
)
def test_same_intervals_from_predictions(settings):
    model = regressor(**settings).calibrate(X[OLD], Y[OLD])
    found = pm.IntervalRegressor.from_json(model.to_json())
    assert_array_equal(found.predict_interval(SAID[NEW], [0.5, 0.9]), model.predict_interval(X[NEW], [0.5, 0.9]))
    assert_array_equal(found.margin_, model.margin_)
    assert_array_equal(found.coverage_range_, model.coverage_range_)
    assert found.guaranteed_level_ == model.guaranteed_level_
    assert_array_equal(found.predict_quantile(SAID[NEW], 0.3), model.predict_quantile(X[NEW], 0.3))
    assert found.to_json() == model.to_json()


def test_parameters_changed_after_calibration_are_not_written():
    model = regressor().calibrate(X[OLD], Y[OLD])
    text = model.to_json()
    assert model.set_params(tails="upper", guarantee="approximate", confidence_level=0.5).to_json() == text
    calibrator = pm.IntervalCalibrator().fit(Y[OLD], y_pred=SAID[OLD], std=np.ones(250))
    text = calibrator.to_json()
    assert calibrator.set_params(guarantee="training-conditional", confidence_level=0.5).to_json() == text


@pytest.mark.parametrize("by", [SHOP, SHOP == "north", (X[:, 1] * 3).astype(int), np.stack([SHOP, SHOP], axis=1)])
def test_same_categories(by):
    model = regressor(width="grouped", confidence_level=0.8).calibrate(X[OLD], Y[OLD], by=by[OLD])
    found = pm.IntervalRegressor.from_json(model.to_json())
    assert_array_equal(found.predict_interval(SAID[NEW], by=by[NEW]), model.predict_interval(X[NEW], by=by[NEW]))
    assert found.categories_ == model.categories_


def test_categories_of_a_column_are_given_as_by():
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "shop": SHOP})
    model = pm.IntervalRegressor(lambda X: X["a"].to_numpy(), width=pm.GroupedWidth(by="shop", min_size=30))
    model.calibrate(table[100:350], Y[OLD])
    found = pm.IntervalRegressor.from_json(model.to_json())
    assert_array_equal(
        found.predict_interval(table["a"].to_numpy()[NEW], by=SHOP[NEW]), model.predict_interval(table[350:])
    )


def test_weights_and_groups_and_outputs():
    weight, both = 1.0 + X[:, 0], np.stack([Y, -Y], axis=1)
    model = regressor().calibrate(X[OLD], Y[OLD], importance_weight=weight[OLD])
    found = pm.IntervalRegressor.from_json(model.to_json())
    new = {"importance_weight": weight[NEW]}
    assert_array_equal(found.predict_interval(SAID[NEW], **new), model.predict_interval(X[NEW], **new))
    model = regressor().calibrate(X[OLD], Y[OLD], groups=np.arange(250) // 5)
    found = pm.IntervalRegressor.from_json(model.to_json())
    assert found.guaranteed_level_ == model.guaranteed_level_
    assert_array_equal(found.margin_, model.margin_)
    two = pm.IntervalRegressor(lambda X: np.stack([X[:, 0], X[:, 1]], axis=1)).calibrate(X[OLD], both[OLD])
    found = pm.IntervalRegressor.from_json(two.to_json())
    assert_array_equal(found.predict_interval(X[NEW]), two.predict_interval(X[NEW]))


def test_goes_on_learning():
    model = regressor().calibrate(X[OLD], Y[OLD])
    found = pm.IntervalRegressor.from_json(model.to_json()).update(SAID[NEW], Y[NEW])
    assert_array_equal(found.margin_, model.update(X[NEW], Y[NEW]).margin_)


def test_small():
    assert len(regressor().calibrate(X[OLD], Y[OLD]).to_json()) < 25 * 250 + 500


@pytest.mark.parametrize("method", ["auto", "additive", "multiplicative", "normalised", "distributional"])
def test_calibrators(method):
    said = {"y_pred": SAID, "std": 0.1 + X[:, 0] / 2}
    old, new = ({name: one[rows] for name, one in said.items()} for rows in (OLD, NEW))
    model = pm.IntervalCalibrator(0.9, method=method, random_state=0).fit(Y[OLD], **old)
    found = pm.IntervalCalibrator.from_json(model.to_json())
    levels = [0.9, 0.95]
    assert_array_equal(
        found.predict_interval(**new, confidence_level=levels), model.predict_interval(**new, confidence_level=levels)
    )
    assert found.guaranteed_level_ == model.guaranteed_level_
    with pytest.raises(ValueError, match="in the same way"):
        found.predict_interval(intervals=np.zeros((2, 2)))


@pytest.mark.parametrize("settings", [{"width": "scaled"}, {"cv": 5}, {"joint": True}])
def test_what_needs_more_than_predictions_is_refused(settings):
    y = np.stack([Y, Y], axis=1) if "joint" in settings else Y
    model = pm.IntervalRegressor(LinearRegression(), random_state=0, **settings).fit(X, y)
    with pytest.raises(ValueError, match=r"need more than predictions; .* skops"):
        model.to_json()


def changed(text, **parts):
    return json.dumps({**json.loads(text), **parts})


def test_broken_texts():
    text = regressor().calibrate(X[OLD], Y[OLD]).to_json()
    read = pm.IntervalRegressor.from_json
    for broken, words in {
        text[:200]: "not a complete calibration",
        "calibration.json": "Give its content",
        "[1, 2]": "not a calibration that to_json",
        changed(text, version=2): "has version 2, expected 1",
        changed(text, format="x"): "not a calibration",
        text.replace('"n_outputs": null', '"n_outputs": 3'): "changed after it was written",
        changed(text, of="IntervalCalibrator"): r"read it with IntervalCalibrator\.from_json",
    }.items():
        with pytest.raises(ValueError, match=words):
            read(broken)


def test_dates_are_no_categories_of_a_file():
    days = np.datetime64("2024-01-01") + (X[:, 1] > 0.5).astype(int)
    model = regressor(width="grouped", confidence_level=0.8).calibrate(X[OLD], Y[OLD], by=days[OLD])
    with pytest.raises(ValueError, match="strings, numbers or truth values"):
        model.to_json()


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Runs a command line in a folder with files; gives its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"y": Y, "y_hat": SAID, "shop": SHOP, "sd": 0.1 + X[:, 0] / 2, "n": (X[:, 1] * 3).astype(int)})
    table[100:350].write_csv("old.csv")
    table[350:].drop("y").write_csv("new.csv")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    return run


def bounds(path):
    return pl.read_csv(path).select("lower", "upper").to_numpy()


@pytest.mark.parametrize("options", [[], ["--by", "shop"], ["--by", "n", "--level", "0.8", "--tails", "equal"]])
def test_commands(options, command):
    saved = ["--apply", "new.csv", "--out", "one.csv", "--save", "calibration.json"]
    assert command("interval", "old.csv", *saved, *options)[0] == 0
    code, out, _ = command("apply", "calibration.json", "new.csv", "--out", "two.csv", *options[:2])
    assert code == 0
    assert "of new targets are expected" in out
    assert "Wrote 50 rows: two.csv" in out
    assert_array_equal(bounds("one.csv"), bounds("two.csv"))


def test_command_of_a_python_calibration_with_numbers_as_categories(command):
    by = (X[:, 1] * 3).astype(int)
    model = regressor(width="grouped", confidence_level=0.8).calibrate(X[OLD], Y[OLD], by=by[OLD])
    Path("python.json").write_text(model.to_json())
    assert command("apply", "python.json", "new.csv", "--out", "out.csv", "--by", "n")[0] == 0
    assert_allclose(bounds("out.csv"), model.predict_interval(X[NEW], by=by[NEW]), rtol=1e-12)


def test_command_of_a_calibrator(command):
    how = ["--prediction", "y_hat", "--std", "sd"]
    saved = ["--apply", "new.csv", "--out", "one.csv", "--save", "calibration.json", "--level", "0.9"]
    assert command("recalibrate", "old.csv", *saved, *how)[0] == 0
    code, out, _ = command("apply", "calibration.json", "new.csv", "--out", "two.csv", *how)
    assert code == 0
    assert "90 % of new targets are expected inside" in out
    assert_array_equal(bounds("one.csv"), bounds("two.csv"))


def test_mistakes_of_commands(command):
    Path("plain.json").write_text(regressor().calibrate(X[OLD], Y[OLD]).to_json())
    Path("cut.json").write_text(Path("plain.json").read_text()[:99])
    saved = ["--apply", "new.csv", "--out", "o.csv", "--save", "c.json"]
    for arguments, words in {
        ("apply", "cut.json", "new.csv", "--out", "o.csv"): "'cut.json': text is not a complete calibration",
        ("apply", "none.json", "new.csv", "--out", "o.csv"): "cannot be read: No such file or directory. Give a file",
        ("apply", "plain.json", "new.csv", "--out", "o.csv", "--by", "shop"): "has no categories: leave --by out",
        ("interval", "old.csv", *saved, "--width", "scaled", "--features", "n"): "--save keeps what applies",
    }.items():
        code, _, error = command(*arguments)
        assert code == 2
        assert words in error
        assert error.count("\n") == 1
        assert not Path("o.csv").exists()
