from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import pickle
from fractions import Fraction

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone

import pimeter as pm
from pimeter import Measurement, measure
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.evaluation import lazy_rows, measuring
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.checks import Judgement
from pimeter.evaluation.diagnosis.crossfit import CrossFit


def rows(n=442, seed=0):
    rng = np.random.default_rng(seed)
    y_pred = rng.uniform(10, 20, size=n)
    return y_pred + rng.normal(scale=1.6, size=n), y_pred


@pytest.fixture(scope="module")
def result():
    y_true, y_pred = rows()
    by = np.where(np.arange(442) % 3, "often", "seldom")
    return measure(y_true, y_pred, X=pd.DataFrame({"x": y_pred, "shop": by}), by=by)


class TestNumbers:
    def test_margin_and_range_are_those_of_the_guarantee(self, result):
        y_true, y_pred = rows()
        errors = np.sort(np.abs(y_true - y_pred))
        kept = rank_guarantee(442, 0.95)
        assert result.margin == (errors[kept.rank - 1],) * 2
        assert result.coverage_range == kept.coverage_range
        assert result.mean_width == 2 * errors[kept.rank - 1]
        model = pm.IntervalRegressor(lambda X: X[:, 0]).calibrate(y_pred[:, None], y_true)
        assert_allclose(model.margin_, result.margin)

    def test_curves_hold_the_stops_of_a_report(self, result):
        stops = [*(i / 100 for i in range(50, 100)), 0.995, 0.999]
        assert list(result.curves.levels) == stops
        y_true, y_pred = rows()
        for level in (0.5, 0.9, 0.999):
            at = stops.index(level)
            other = measure(y_true, y_pred, confidence_level=level)
            assert other.headline == result.curves.headlines[at]
            assert other.margin[0] == result.curves.margin[at]
            assert other.coverage == result.curves.coverage[at]
            assert other.coverage_range == (result.curves.coverage_lower[at], result.curves.coverage_upper[at])
            assert other.scores["interval_score"].value == result.curves.interval_score[at]
        predicted, by, feature = result.curves.subgroups
        assert (predicted.of, by.of) == ("prediction", "by")
        assert feature.of in {part.of for part in result.subgroups}
        assert len(predicted.coverage) == 5
        assert len(predicted.coverage[0]) == len(predicted.margin[0]) == 52
        assert by.labels == ("often", "seldom")
        assert sum(by.rows) == sum(predicted.rows) == 442
        for curves in result.curves.subgroups:
            total = np.array(curves.rows) @ np.array(curves.coverage)
            assert_allclose(total / 442, result.curves.coverage, rtol=1e-12)

    def test_a_level_between_the_stops_is_added(self):
        found = measure(*rows(50), confidence_level=0.333)
        assert found.curves.levels[0] == 0.333
        assert len(found.curves.levels) == 53
        assert found.headline.claim.startswith("33.3 % of future residuals")

    def test_scores_against_their_definitions(self, result):
        y_true, y_pred = rows()
        errors = y_true - y_pred
        value = {name: score.value for name, score in result.scores.items()}
        assert_allclose(value["mae"], np.abs(errors).mean())
        assert_allclose(value["rmse"], np.sqrt(np.mean(errors**2)))
        assert_allclose(value["mean_error"], errors.mean(), atol=1e-12)
        assert_allclose(value["median_error"], np.median(errors))
        assert_allclose(value["r2"], 1 - np.mean(errors**2) / y_true.var())
        without = {name for name, score in result.scores.items() if np.isnan(score.lower)}
        assert without == {"excess_risk"}  # of which no range was found that holds as often as it says
        for name in result.scores.keys() - without:
            assert result.scores[name].lower <= result.scores[name].value <= result.scores[name].upper

    @pytest.mark.parametrize("engine", ["memory", "dask"])
    @pytest.mark.parametrize(
        ("least", "spread", "bias"),
        [
            (0.0, 1.0, 0.0),
            (1e15, 100.0, 0.0),
            (1e15, 1.0, 3.0),
            (-1e15, 1.0, 1e15),
            (1e300, 1e286, 0.0),
            (1e9, 1.0, 1e9),
        ],
    )
    def test_scores_are_exact_however_far_targets_are_from_0(self, engine, least, spread, bias, monkeypatch):
        rng = np.random.default_rng(3)
        y_true = least + spread * rng.standard_normal(500)
        y_pred = y_true + 0.3 * spread * rng.standard_normal(500) - bias
        if engine == "dask":
            monkeypatch.setattr(lazy_rows, "MAX_ROWS_TO_COLLECT", 100)
            scores = measure(*(da.from_array(values, chunks=130) for values in (y_true, y_pred))).scores
        else:
            scores = measure(y_true, y_pred).scores
        target, errors = ([Fraction(float(value)) for value in values] for values in (y_true, y_true - y_pred))
        mean, unit = sum(target) / 500, max(abs(error) for error in errors)
        squares = sum((error / unit) ** 2 for error in errors) / 500
        variance = sum(((value - mean) / unit) ** 2 for value in target) / 500
        # A few roundings of sums of 500 terms; errors of both signs cancel in their mean.
        assert_allclose(scores["mae"].value, float(sum(map(abs, errors)) / 500), rtol=1e-14)
        assert_allclose(scores["rmse"].value, math.sqrt(squares) * float(unit), rtol=1e-14)
        assert_allclose(scores["mean_error"].value, float(sum(errors) / 500), rtol=0, atol=1e-14 * float(unit))
        assert_allclose(1.0 - scores["r2"].value, float(squares / variance), rtol=1e-13)

    def test_interval_scores_of_a_large_bias_have_the_range_of_small_ones(self):
        noise = np.round(np.random.default_rng(5).standard_normal(300) * 2**10) / 2**10 + 2**8
        near, far = (measure(noise + bias, np.zeros(300)).curves for bias in (0.0, 2.0**40))
        assert_allclose(np.subtract(far.interval_score, 2.0**41), near.interval_score, rtol=1e-9, atol=1e-3)
        near_by, farther = (np.subtract(c.interval_score_upper, c.interval_score) for c in (near, far))
        # Scores near 2 ** 41 are right to 2 ** -12; without cancellation nothing else is lost.
        assert_allclose(farther, near_by, atol=2.0**-10)

    def test_ranges_of_scores_hold_the_truth_nine_times_in_ten(self, fast):
        truth = {"mae": np.sqrt(2 / np.pi), "rmse": 1.0, "mean_error": 0.0, "median_error": 0.0, "mean_width": 2 * 1.96}
        rng = np.random.default_rng(0)
        held = dict.fromkeys(truth, 0)
        for _ in range(300):
            scores = measure(rng.standard_normal(300), rng.uniform(size=300) * 0.0).scores
            for name, value in truth.items():
                held[name] += scores[name].lower <= value <= scores[name].upper
        # Standard error of a fraction of .9 in 300 draws: .017. Ranks give .9 or a little more.
        for name, count in held.items():
            assert 0.9 - 3 * 0.017 < count / 300 < 0.97, name

    @pytest.mark.parametrize("unit", [1e-300, 1e300])
    def test_unit_does_not_matter(self, unit):
        y_true, y_pred = rows(100)
        plain, scaled = measure(y_true, y_pred), measure(y_true * unit, y_pred * unit)
        assert scaled.advice == plain.advice
        assert_allclose(scaled.coverage, plain.coverage)
        for name in ("mae", "rmse", "interval_score", "mean_width"):
            assert_allclose(scaled.scores[name].upper, plain.scores[name].upper * unit, rtol=1e-9)


@pytest.fixture
def fast(monkeypatch):
    """Without the diagnosis, but for the median error."""
    y_true, y_pred = rows(30)
    held = measure(y_true, y_pred)

    def judged(evidence):
        found = dataclasses.replace(held.diagnosis, findings=(Bias()(evidence, {}),))
        return Judgement(found, "constant", "symmetric", "")

    monkeypatch.setattr(measuring, "judged", judged)


def test_coverage_on_pure_noise_is_cross_fitted(fast):
    """m = 110: 99 rows a fold, so that k / (m' + 1) is exactly .95; on its own rows a radius covers 106 of 110."""
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((500, 110))
    found = [measure(draw, np.zeros(110)) for draw in draws]
    coverage = np.array([one.coverage for one in found])
    error = coverage.std(ddof=1) / np.sqrt(500)
    assert abs(coverage.mean() - 0.95) < 3 * error
    in_sample = [np.mean(np.abs(draw) <= one.margin[0]) for draw, one in zip(draws, found, strict=True)]
    assert in_sample == [106 / 110] * 500
    assert abs(106 / 110 - 0.95) > 3 * error


@pytest.mark.parametrize(("n", "n_shown"), [(365, 365), (120_400, 400)])
def test_pictures_show_every_day_of_the_week(n, n_shown):
    # Every seventh of 365 rows, or every 301st of 120,400, would be the same day.
    pytest.importorskip("matplotlib")
    day = np.arange(n) % 7
    result = measure(day + np.sin(np.arange(n)), day)
    assert len(result.sample.y_pred) == n_shown
    bounds = result.plot_intervals().collections[0].get_segments()
    assert len(bounds) == 60
    assert {round(float(np.mean(end[:, 1]))) for end in bounds} == set(range(7))
    assert result.sample == measure(day + np.sin(np.arange(n)), day).sample


class TestWords:
    def test_headline(self, result):
        assert result.headline.claim == f"95 % of future residuals are expected within ±{result.margin[0]:.3g}."
        assert result.headline.evidence == (
            "With 442 rows the true coverage lies between 93 and 97 % (90 % confidence), if new rows resemble these."
        )
        first, _, *advice = str(result).splitlines()
        advice, code = advice[: len(result.advice)], "\n".join(advice[len(result.advice) :])
        assert first == str(result.headline) == f"{result.headline.claim} {result.headline.evidence}"
        assert str(result.headline) in repr(result)
        assert (tuple(advice), code) == (result.advice, result.code)
        assert "IntervalRegressor(model, " in code

    def test_many_rows_have_decimals(self, fast):
        rng = np.random.default_rng(0)
        found = measure(rng.standard_normal(200_000), np.zeros(200_000))
        assert "With 200,000 rows the true coverage lies between 94.9 and 95.1 %" in found.headline.evidence

    @pytest.mark.parametrize("m", [1, 2, 5, 18])
    def test_few_rows_say_how_little_they_mean(self, m):
        y_true, y_pred = rows(m)
        found = measure(y_true, y_pred)
        assert (
            f"{'1 row is' if m == 1 else f'{m} rows are'} too few to guarantee 95 %; 19 are needed."
            in found.headline.claim
        )
        assert found.margin[0] == np.abs(y_true - y_pred).max()
        assert found.guaranteed_level == m / (m + 1)
        assert np.isnan(found.coverage) == (m == 1)
        assert found.advice[0].startswith("Hold out more rows: 19")
        assert Measurement.from_json(found.to_json()) == found
        assert "not known" in found._repr_html_()

    @pytest.mark.parametrize(
        ("same", "said"),
        [("targets", "targets differ"), ("predictions", "predictions differ"), ("both", "and predictions")],
    )
    def test_constant_targets_and_predictions(self, same, said):
        y_true, y_pred = rows(50)
        y_true = y_true if same == "predictions" else np.ones(50)
        y_pred = y_pred if same == "targets" else np.ones(50)
        found = measure(y_true, y_pred, X=y_pred)
        assert any(said in line for line in found.advice)
        assert "next to nothing" in found.diagnosis["variation"].sentence
        assert np.isnan(found.scores["r2"].value) == (same != "predictions")
        assert Measurement.from_json(found.to_json()) == found

    def test_frame(self, result):
        table = result.to_frame()
        assert list(table.columns) == ["score", "value", "lower", "upper", "meaning", "assumes"]
        assert table["value"].tolist() == [score.value for score in result.scores.values()]

    def test_html_escapes_what_users_name(self):
        y_true, y_pred = rows(60)
        evil = "</script><script>alert(1)</script>"
        found = measure(
            y_true * np.where(np.arange(60) % 2, 1, 9), y_pred, X=pd.DataFrame({evil: y_pred}), by=[evil] * 60
        )
        page = found._repr_html_()
        assert "<script" not in page
        assert found.headline.evidence in page


class TestInput:
    def test_any_kind_of_column(self):
        y_true, y_pred = rows(60)
        plain = measure(y_true, y_pred)
        for kind in (list, pd.Series, pl.Series, lambda v: pd.DataFrame({"y": v}), lambda v: pl.DataFrame({"y": v})):
            assert measure(kind(y_true), kind(y_pred)) == plain
        assert measure(y_true.astype(np.float32), y_pred).n_rows == 60
        assert measure(np.arange(60), np.arange(60)[::-1]).n_rows == 60

    def test_frames_with_categories_and_gaps(self):
        y_true, y_pred = rows(80)
        by = ["a", None] * 40
        for frame in (pd.DataFrame, pl.DataFrame):
            X = frame({"x": [None, 1.0, 2.0, 3.0] * 20, "c": ["u", "v"] * 40})
            found = measure(y_true, y_pred, X=X, by=by)
            assert found.curves.subgroups[1].labels == ("a", "missing")
            assert {part.of for part in found.subgroups} == {"prediction", "by", "x", "c"}

    @pytest.mark.parametrize(
        ("y_true", "y_pred", "options", "message"),
        [
            ([1.0], [1.0, 2.0], {}, "same shape"),
            ([], [], {}, "y_true must hold at least one value"),
            ([np.nan], [1.0], {}, "y_true must be finite"),
            ([1.0], [np.inf], {}, "y_pred must be finite"),
            (["a"], ["b"], {}, "y_true must hold real numbers"),
            ([[1.0, 2.0]], [[1.0, 2.0]], {}, "Measure each output by itself"),
            ([1.0], [1.0], {"by": "shop"}, r"for each of the 1 rows; got 'shop'\. Of a column .* by=X\['shop'\]"),
            ([1.0], [1.0], {"by": [1, 2]}, r"by must give one category for each of the 1 rows; got shape \(2,\)"),
            ([1.0], [1.0], {"X": [[1.0], [2.0]]}, "for each of the 1 targets"),
            *[([1.0], [1.0], {"confidence_level": p}, "confidence_level must lie between") for p in (0, 1, 95, "a")],
        ],
    )
    def test_bad_input(self, y_true, y_pred, options, message):
        with pytest.raises(ValueError, match=message):
            measure(y_true, y_pred, **options)


class TestJson:
    def test_round_trip_pickle_and_copies_have_the_same_bits(self, result):
        text = result.to_json()
        for other in (
            Measurement.from_json(text),
            pickle.loads(pickle.dumps(result)),
            copy.deepcopy(result),
            clone(result, safe=False),
        ):
            assert other == result
            assert hash(other) == hash(result)
            assert other.to_json() == text
            assert other.margin == result.margin
            assert type(other.diagnosis) is type(result.diagnosis)
        assert measure(*rows()) != result
        assert result != "a measurement"

    def test_text_is_strict_json(self):
        text = measure([1.0], [2.0]).to_json()

        def refuse(constant):
            raise AssertionError(constant)

        held = json.loads(text, parse_constant=refuse)
        assert held["body"]["coverage"] == "nan"
        assert (held["format"], held["version"]) == ("pimeter measurement", 5)

    def test_it_is_frozen(self, result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.coverage = 1.0

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda held: held["body"].update(coverage=1.0), "was changed after it was written"),
            (lambda held: held.update(version=1), "has version 1, expected 5"),
            (lambda held: held.update(version=True), "has version True"),
            (lambda held: held.pop("version"), "has version None"),
            (lambda held: held.update(format="other"), "is not a measurement that"),
            (lambda held: held.pop("body"), "was changed"),
            (lambda held: held.update(digest="0"), "was changed"),
        ],
    )
    def test_changed_text_is_refused(self, result, change, message):
        held = json.loads(result.to_json())
        change(held)
        with pytest.raises(ValueError, match=message):
            Measurement.from_json(json.dumps(held))

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (lambda data: data.update(coverage="__import__('os')"), "measurement.coverage"),
            (lambda data: data.update(n_rows=1.5), "measurement.n_rows"),
            (lambda data: data.update(margin=[1.0]), "measurement.margin"),
            (lambda data: data.update(margin=[[], []]), r"measurement.margin\[0\]"),
            (lambda data: data.pop("scores"), "measurement is"),
            (lambda data: data.update(extra=1), "measurement is"),
            (lambda data: data.update(scores=[]), "measurement.scores"),
            (lambda data: data["scores"]["mae"].update(value=None), r"measurement.scores\['mae'\].value"),
            (lambda data: data.update(confidence_level=0.123), "leave out its own confidence level"),
        ],
    )
    def test_forged_text_of_another_shape_is_refused(self, result, change, where):
        held = json.loads(result.to_json())
        change(held["body"])
        canonical = json.dumps(held["body"], sort_keys=True, separators=(",", ":"))
        held["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
        with pytest.raises(ValueError, match=where):
            Measurement.from_json(json.dumps(held))

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff", "[" * 100_000])
    def test_other_text_is_refused(self, text):
        with pytest.raises(ValueError, match="text is"):
            Measurement.from_json(text)


def test_numbers_whose_sums_no_float_holds_are_refused():
    with pytest.raises(ValueError, match=r"must not exceed 1e\+305 in size; got 1e\+307"):
        measure([1e307, 0.0], [0.0, 0.0])


def test_a_level_near_1_takes_no_time():
    y = np.random.default_rng(0).standard_normal(50)
    assert measure(y, np.zeros(50), confidence_level=1.0 - 1e-9).guaranteed_level < 1.0 - 1e-9


def test_masked_rows_are_missing():
    with pytest.raises(ValueError, match="y_true must be finite"):
        measure(np.ma.MaskedArray([1.0, 2.0], mask=[False, True]), [1.0, 2.0])


def test_columns_of_a_frame_may_be_numbered():
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60.0)
    named = measure(y, np.zeros(60), X=pd.DataFrame(X, columns=["0", "1"]))
    assert measure(y, np.zeros(60), X=pd.DataFrame(X)).scores == named.scores


def test_long_doubles_whose_errors_are_no_floats_are_refused():
    huge = np.array([1.7e308, -1.7e308] * 20, np.longdouble)
    with pytest.raises(ValueError, match=r"must not exceed 1e\+305"):
        measure(huge, -huge)


def test_targets_that_are_tied_beside_the_errors_have_no_variance_to_explain():
    y_true = np.random.default_rng(0).normal(size=60)
    tied, huge, large = (
        measure(y, y_pred).scores["r2"].value
        for y, y_pred in ((np.ones(60), y_true), (y_true, 1e200 * y_true), (y_true, 1e20 * y_true))
    )
    assert np.isnan([tied, huge]).all()
    assert large < -1e39


def test_a_radius_that_occurs_once_among_errors_that_repeat():
    """Beyond what the upper point says lies the true fraction of 5 % of sets at most, though few rows show the ties."""
    rng = np.random.default_rng(0)
    fractions = np.array([0.5, 0.3, 0.12, 0.04, 0.04])
    errors = rng.choice(5, size=(400, 30), p=fractions).astype(float)
    fits = [CrossFit.of(rows, np.array([0.95])) for rows in errors]
    radius = np.array([fit.margin[0] for fit in fits])
    is_more = np.cumsum(fractions)[radius.astype(int)] > [fit.coverage_ranges[0, 1] for fit in fits]
    assert ((errors == radius[:, None]).sum(axis=1) == 1).sum() > 50  # here the ties are elsewhere
    assert stats.binom.sf(is_more.sum() - 1, len(fits), 0.05) > 1e-3
    assert measure(np.arange(5.0), np.zeros(5)).coverage_range[1] < 1.0  # nothing repeats


def test_errors_that_are_tied_at_the_radius_are_all_covered(monkeypatch):
    rng = np.random.default_rng(0)
    y_pred = rng.uniform(0, 100, 2000).round()
    y_true = y_pred + rng.choice([-1, 0, 1], size=2000, p=[0.2, 0.6, 0.2])  # +-1 covers all there are
    result = measure(y_true, y_pred)
    low, high = result.coverage_range
    assert (low, high) == (rank_guarantee(2000, 0.95).coverage_range[0], 1.0)
    assert "between 94 and 100 %" in result.headline.evidence
    assert result.scores["coverage"].upper == 1.0
    assert result.diagnosis["rows"].upper == 1.0
    assert "between 94.2 % and 100 %" in result.diagnosis["rows"].sentence
    at = result.curves.levels.index(0.5)  # here +-0 covers 60 %
    assert result.curves.margin[at] == 0.0
    assert result.curves.coverage_upper[at] == pytest.approx(0.6, abs=4 * np.sqrt(0.6 * 0.4 / 2000))
    monkeypatch.setattr("pimeter.evaluation.lazy_rows.MAX_ROWS_TO_COLLECT", 500)
    stays = measure(*(da.from_array(values, chunks=700) for values in (y_true, y_pred)))
    assert stays.headline == result.headline
    assert stays.curves.coverage_upper == result.curves.coverage_upper


def autoregressive(seed, m, memory):
    noise = np.random.default_rng(seed).standard_normal(m)
    for t in range(1, m):
        noise[t] = memory * noise[t - 1] + np.sqrt(1.0 - memory**2) * noise[t]
    return noise


@pytest.mark.parametrize(
    ("residuals", "keywords", "why"),
    [
        (np.random.default_rng(1).standard_normal(400), {"groups": np.arange(400) // 10}, "of a group may resemble"),
        (np.random.default_rng(1).standard_normal(400), {"time": np.arange(400)}, "may depend on those before them"),
        (autoregressive(2, 400, 0.7), {}, "residuals depend on those before them"),
        (np.random.default_rng(3).standard_normal(400) + np.linspace(0, 3, 400), {}, "drift in the order given"),
        (np.random.default_rng(4).standard_normal(400).clip(-0.5) + 0.5, {}, "are exactly 0"),
    ],
)
def test_enough_rows_are_not_claimed_where_they_are_not_exchangeable(residuals, keywords, why):
    y_pred = np.random.default_rng(0).uniform(10.0, 20.0, 400)
    found = measure(y_pred + residuals, y_pred, **keywords)
    assert np.isnan(found.guaranteed_level)
    rows = found.diagnosis["rows"]
    assert rows.sentence.startswith("400 rows are there, but ")
    assert why in rows.sentence
    assert ": nothing is guaranteed." in rows.sentence
    assert ("40 groups are enough to guarantee 95 % with one row of each." in rows.sentence) == ("groups" in keywords)
    assert np.isnan([rows.lower, rows.upper]).all()


def test_residuals_that_depend_on_each_other_are_not_taken_for_biased():
    """A test of independent rows calls 14 of 40 biased; at 4 % each, more than 5 are improbable (p = .005)."""
    y_pred = np.random.default_rng(0).uniform(10.0, 20.0, 300)
    found = [measure(y_pred + autoregressive(seed, 300, 0.8), y_pred).diagnosis.raised for seed in range(40)]
    assert all("serial" in raised for raised in found)
    assert sum("bias" in raised for raised in found) <= 5


def test_enough_rows_are_not_claimed_where_rows_are_copies():
    y, noise = np.random.default_rng(0).standard_normal((2, 300))
    found = measure(np.tile(y, 2), np.tile(y + noise, 2))
    assert "nothing is guaranteed" in found.diagnosis["rows"].sentence
    assert "copies" in found.diagnosis["rows"].sentence
    assert "enough" in measure(y, y + noise).diagnosis["rows"].sentence


def test_series_are_matched_by_position_and_another_order_is_refused():
    y_true = pd.Series([1.0, 2.0, 4.0], index=[7, 8, 9])
    y_pred = pd.Series([1.0, 2.5, 4.5], index=[7, 8, 9])
    with pytest.raises(ValueError, match=r"the same index in another order.*y_pred\.loc\[y_true\.index\]"):
        measure(y_true, y_pred.iloc[::-1])
    same = measure(y_true, y_pred)
    for other in (y_pred.reset_index(drop=True), y_pred.iloc[::-1].loc[y_true.index], y_pred.to_numpy()):
        assert measure(y_true, other) == same


def test_constant_predictions_are_looked_into():
    found = measure(np.arange(30.0), np.full(30, 14.5)).diagnosis["variation"]
    assert "was it trained, and is this the column of its predictions?" in found.advice
    assert measure(np.ones(30), np.arange(30.0)).diagnosis["variation"].advice == "Measure rows whose targets differ."
