"""What a probabilistic model says, read once: the same distribution however it is given, and errors that help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from pimeter.predictive import predictive

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=20) * 5.0, RNG.uniform(0.5, 2.0, size=20)
LEVELS = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
QUANTILES = stats.norm(MEAN[:, None], STD[:, None]).ppf(LEVELS)
WAYS = {
    "normal": {"y_pred": MEAN, "std": STD},
    "quantiles": {"quantiles": QUANTILES, "levels": LEVELS},
    "intervals": {"intervals": {0.9: QUANTILES[:, [0, 4]], 0.6: QUANTILES[:, [1, 3]]}},
    "samples": {"samples": stats.norm(MEAN[:, None], STD[:, None]).ppf(np.arange(1, 400) / 400)},
}


@pytest.mark.parametrize("kind", WAYS)
def test_all_ways_give_the_same_normal_distribution(kind):
    said = predictive(**WAYS[kind], n=20)
    y = stats.norm(MEAN, STD).ppf(RNG.uniform(0.001, 0.999, size=20))
    assert said.kind == kind
    np.testing.assert_allclose(said.centre, MEAN, atol=1e-9)
    np.testing.assert_allclose(said.spread, STD, rtol=1e-9)
    np.testing.assert_allclose(said.bounds(0.9), QUANTILES[:, [0, 4]], rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(stats.norm.cdf(said.z(y)), stats.norm(MEAN, STD).cdf(y), atol=1e-3)
    np.testing.assert_allclose(said.from_z(said.z(y)), y, rtol=1e-9)


def test_levels_may_come_in_any_order_and_bounds_are_the_ones_given():
    order = [3, 0, 4, 1, 2]
    said = predictive(quantiles=QUANTILES[:, order], levels=LEVELS[order])
    np.testing.assert_array_equal(said.levels, LEVELS)
    np.testing.assert_array_equal(said.bounds(0.6), QUANTILES[:, [1, 3]])
    assert said.confidence_levels == (0.6, 0.9)
    np.testing.assert_array_equal(said.centre, QUANTILES[:, 2])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_by_the_names_of_their_columns(library):
    frame = library({"upper": [3.0, 5.0], "lower": [1.0, 2.0], "id": ["a", "b"]})
    np.testing.assert_array_equal(predictive(intervals=frame, confidence_level=0.9).bounds(0.9), [[1, 3], [2, 5]])
    with pytest.raises(ValueError, match=r"intervals is a frame without lower and upper; it has columns \['a'\]"):
        predictive(intervals=library({"a": [1.0]}), confidence_level=0.9)
    assert len(predictive(samples=library({"a": [1.0, 3.0], "b": [2.0, 1.0]}))) == 2


def test_targets_beyond_all_quantiles_and_tied_ones_have_a_place():
    said = predictive(quantiles=[[0.0, 1.0, 1.0, 2.0]] * 4, levels=[0.1, 0.4, 0.6, 0.9])
    z = said.z([1.0, -5.0, 0.5, 9.0])
    assert z[0] == pytest.approx(0.0)
    assert z[1] < said.knots[0] < z[2] < said.knots[1] < said.knots[-1] < z[3]
    assert np.isfinite(z).all()


def test_infinite_bounds_are_kept_and_counted():
    said = predictive(intervals=[[-np.inf, 3.0], [-np.inf, np.inf], [1.0, 2.0]], confidence_level=0.8)
    assert said.n_infinite == 2
    np.testing.assert_array_equal(said.bounds(0.8)[0], [-np.inf, 3.0])
    np.testing.assert_array_equal(said.centre, [3.0, 0.0, 1.5])
    assert np.isfinite(said.z([2.0, 2.0, 2.0])).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of four ways.*got nothing"),
        ({"y_pred": [1.0]}, "got y_pred alone"),
        ({"intervals": [[0, 1]], "samples": [[0, 1]]}, "got intervals and samples"),
        ({"intervals": [[0, 1]]}, "intervals need their level: give confidence_level="),
        ({"intervals": {}}, "empty mapping"),
        ({"intervals": {90: [[0, 1]]}}, "must lie between 0 and 1; got 90. For per cent"),
        ({"intervals": [[0, 1, 2]], "confidence_level": 0.9}, r"shape \(m, 2\).*got \(1, 3\)"),
        ({"intervals": [[0, 1], [3, 2], [5, 4]], "confidence_level": 0.9}, r"cross in 2 of 3 rows, first in row 1 \(3"),
        ({"intervals": {0.5: [[0, 3]], 0.9: [[1, 2]]}}, "levels cross in 1 of 1 rows.*must hold that of a lower"),
        ({"intervals": {0.5: [[0, 3]], 0.9: [[-1, 4], [0, 1]]}}, "as many at each"),
        ({"intervals": [[0, np.nan]], "confidence_level": 0.9}, r"not be NaN; intervals\[0, 1\]"),
        ({"quantiles": [[0, 1]]}, "quantiles and levels go together"),
        ({"intervals": [[0, 1]], "levels": [0.1, 0.9]}, "quantiles and levels go together"),
        ({"quantiles": [[0, 1]], "levels": [0.1, 0.5, 0.9]}, r"shape \(m, 3\).*got \(1, 2\)"),
        ({"quantiles": [[0, 1]], "levels": [0.5, 0.5]}, "different numbers"),
        ({"quantiles": [[0]], "levels": [0.5]}, "make no distribution"),
        ({"quantiles": [[1, 0]], "levels": [0.1, 0.9]}, r"cross in 1 of 1 rows.*np.sort\(quantiles, axis=1\)"),
        ({"std": [1.0]}, "give y_pred="),
        ({"y_pred": [1.0, 2.0], "std": [1.0]}, r"got \(2,\) and \(1,\)"),
        ({"y_pred": [1.0, 2.0, 3.0], "std": [1.0, 0.0, -1.0]}, r"2 of 3 are not, the first in row 1 \(0\)"),
        ({"y_pred": [1.0], "std": [np.inf]}, "std must be finite"),
        (
            {"y_pred": [0.0, 1e9], "std": [1e-8, 1e-8]},
            r"lost in rounding in 1 of 2 rows.*row 1: 1e-08 beside y_pred 1e\+09",
        ),
        (
            {"y_pred": [1.0], "intervals": {0.9: [[0, 1]]}},
            "y_pred goes with std=; intervals have a centre of their own",
        ),
        ({"y_pred": [1.0, 2.0], "quantiles": [[0, 1]], "levels": [0.1, 0.9]}, "Leave y_pred out"),
        ({"y_pred": [1.0], "samples": [[0, 1]]}, "samples have a centre of their own"),
        ({"samples": [[1.0], [2.0]]}, r"at least two draws for each row; got \(2, 1\)"),
        ({"samples": [[1.0, 2.0]], "n": 3}, "samples has 1 row, but there are 3 targets"),
    ],
)
def test_what_cannot_be_read_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        predictive(**given)


def test_a_level_that_was_not_given_is_refused_with_those_that_were():
    said = predictive(**WAYS["quantiles"])
    with pytest.raises(ValueError, match=r"not given at 80 %.*0.1 and 0.9.*were given: 60 %, 90 %"):
        said.bounds(0.8)
    assert predictive(**WAYS["normal"]).bounds(0.8).shape == (20, 2)


def test_draws_hold_no_level_beyond_them():
    draws = np.arange(10.0).reshape(2, 5)
    said = predictive(samples=draws)
    assert said.highest_level == pytest.approx(2 / 3)
    np.testing.assert_array_equal(said.bounds(said.highest_level), draws[:, [0, -1]])
    np.testing.assert_array_equal(said.bounds(1 / 3), draws[:, [1, -2]])
    with pytest.raises(ValueError, match=r"5 draws hold intervals of up to 66.7 %; 95 % takes 39 or more"):
        said.bounds(0.95)
    assert said.band(0.95)[0, 0] < 0.0
    for s, p in ((39, 0.95), (19, 0.9), (199, 0.99), (3, 0.5)):
        assert predictive(samples=np.zeros((1, s))).bounds(p).shape == (1, 2)
        with pytest.raises(ValueError, match=f"takes {s} or more"):
            predictive(samples=np.zeros((1, s - 1))).bounds(p)
    assert [predictive(**WAYS[kind]).highest_level for kind in ("normal", "quantiles", "intervals")] == [None] * 3


def test_the_smallest_std_that_rounding_leaves_has_width():
    apart = np.spacing(1e9)
    assert predictive(y_pred=[1e9], std=[apart]).spread[0] > 0.0


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_centre_of_symmetric_intervals_is_their_exact_middle(level):
    wide = np.random.default_rng(1).uniform(1.0, 3.0, size=50)
    inner = np.stack([-wide, wide], axis=1)
    np.testing.assert_array_equal(predictive(intervals=inner, confidence_level=level).centre, 0.0)
    both = predictive(intervals={level: inner, 0.999: 2.0 * inner + [0.0, 1.0]})
    np.testing.assert_array_equal(both.centre, 0.0)
    huge = predictive(intervals=[[1.5e308, 1.7e308]], confidence_level=level)
    np.testing.assert_array_equal(huge.centre, 1.6e308)
