"""Why the widest of given intervals are wide: a planted cause is named, and nothing is said where none is known."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import pimeter as pm


def features(rng, n=1500):
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "noise": rng.normal(size=n),
            "region": rng.choice(["north", "south", "east"], n),
        }
    )


def measured(X, scale, rng, **more):
    scale = np.asarray(scale, float)
    intervals = np.outer(scale, [-1.645, 1.645])
    return pm.measure(rng.normal(scale=scale), intervals=intervals, X=X, confidence_level=0.9, **more)


@pytest.mark.parametrize("seed", range(2))
def test_planted_causes_are_named_and_sum_to_the_width(seed):
    rng = np.random.default_rng(seed)
    X = features(rng)
    scale = 1.0 + 0.1 * np.maximum(X["age"] - 60, 0) + 1.0 * (X["region"] == "north")
    wide = measured(X, scale, rng).wide
    assert wide.explained > 0.9
    assert_allclose(wide.typical_width, 3.29 * scale.mean())
    assert len(wide.rows) == 5
    for one in wide.rows:
        assert_allclose(one.width, 3.29 * scale[one.row])
        assert [part.feature for part in one.contributions] == ["age", "region"]
        assert one.contributions[0].value == f"{X['age'][one.row]:g}"
        assert one.contributions[1].value == "north"
        # Of an additive width, what a feature adds is what it has beyond its mean.
        mean = 0.1 * np.maximum(X["age"] - 60, 0).mean()
        assert abs(one.contributions[0].width - 3.29 * (0.1 * (X["age"][one.row] - 60) - mean)) < 1.3
        assert_allclose(wide.typical_width + sum(part.width for part in one.contributions) + one.rest, one.width)
    widths = [one.width for one in wide.rows]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(3.29 * scale.max())


def test_many_rows_keep_their_numbers():
    rng = np.random.default_rng(5)
    X = features(rng, 6000)
    scale = 1.0 + (X["age"] > 80)
    result = measured(X, scale, rng)
    assert all(scale[one.row] == 2.0 for one in result.wide.rows)
    assert_allclose(result.wide.typical_width, result.scores["mean_width"].value)


@pytest.mark.parametrize("case", ["constant", "chance", "few rows", "no features", "infinite", "many features"])
def test_nothing_is_said_where_nothing_is_known(case):
    rng = np.random.default_rng(0)
    n = 90 if case == "few rows" else 600
    X = features(rng, n)
    scale = 1.0 + (X["age"] > 60)
    if case == "constant":
        scale = np.ones(n)
    elif case == "chance":
        scale = rng.uniform(1.0, 3.0, n)
    elif case == "no features":
        X = None
    elif case == "many features":
        X = rng.normal(size=(n, 51))
    if case == "infinite":
        bounds = np.outer(scale, [-1.6, 1.6])
        bounds[3] = [-np.inf, np.inf]
        result = pm.measure(rng.normal(scale=scale), intervals=bounds, X=X, confidence_level=0.9)
    else:
        result = measured(X, scale, rng)
    assert result.wide is None
    assert "Why are these intervals wide?" not in result.to_html()


def test_missing_values_and_dates_are_words():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.normal(size=800), "day": pd.date_range("2024-01-01", periods=800, freq="D")})
    X.loc[::5, "x"] = np.nan
    wide = measured(X, 1.0 + 2.0 * X["x"].isna(), rng).wide
    assert {(one.contributions[0].feature, one.contributions[0].value) for one in wide.rows} == {("x", "missing")}
    wide = measured(X, 1.0 + 2.0 * (X["day"] > "2025-06-01"), rng).wide
    assert all(one.contributions[0].value.startswith("202") for one in wide.rows)


def test_page_and_json():
    rng = np.random.default_rng(2)
    X = features(rng)
    result = measured(X, 1.0 + (X["age"] > 80), rng)
    page = result.to_html()
    assert "Why are these intervals wide?" in page
    assert f"</b> age = {X['age'][result.wide.rows[0].row]:g}" in page
    assert json.loads(result.to_json())["wide"]["rows"][0]["contributions"][0]["feature"] == "age"
