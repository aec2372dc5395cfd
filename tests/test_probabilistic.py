"""`measure` of given intervals, quantiles, standard deviations and samples: numbers, alarms, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import mean_pinball_loss

import pimeter as pm
from pimeter.evaluation.miss_tests import christoffersen, hypergeometric_p, runs_p

HALF = stats.norm.ppf(0.95)
LEVELS = np.arange(1, 10) / 10


@pytest.fixture
def rows():
    """Centres and targets around them, standard normal."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=1000)
    return centre, centre + rng.normal(size=1000)


def around(centre, half):
    return np.stack([centre - half, centre + half], axis=1)


class TestNumbers:
    def test_are_those_of_the_scores(self, rows):
        centre, y = rows
        given = around(centre, HALF)
        found = pm.measure(y, intervals=given, confidence_level=0.9)
        assert_allclose(found.coverage, pm.coverage_score(y, given))
        assert_allclose(found.scores["interval_score"].value, pm.interval_score(y, given, 0.9))
        assert_allclose(found.scores["mean_width"].value, 2 * HALF)
        losses = [mean_pinball_loss(y, given[:, i], alpha=p) for i, p in enumerate((0.05, 0.95))]
        assert_allclose(found.scores["pinball"].value, np.mean(losses))
        misses = found.scores["misses_below"].value + found.scores["misses_above"].value
        assert_allclose(misses, 1 - found.coverage)
        exact = stats.binomtest(round(1000 * found.coverage), 1000).proportion_ci(0.9)
        assert_allclose(found.coverage_range, exact)

    def test_one_thing_said_in_several_ways_is_judged_the_same(self, rows):
        centre, y = rows
        frame = pd.DataFrame(around(centre, HALF), columns=["lower", "upper"])
        ways = [
            {"intervals": around(centre, HALF)},
            {"intervals": frame},
            {"intervals": {0.9: around(centre, HALF)}},
            {"quantiles": around(centre, HALF), "levels": [0.05, 0.95]},
            {"y_pred": centre, "std": np.ones(1000)},
        ]
        found = [pm.measure(y, **way, confidence_level=0.9) for way in ways]
        for one in found:
            assert_allclose(one.coverage, found[0].coverage)
            assert_allclose(one.scores["interval_score"].value, found[0].scores["interval_score"].value)

    def test_crps_of_normal_distributions_and_of_many_samples(self, rows):
        centre, y = rows
        exact = pm.measure(y, centre, std=np.ones(1000)).scores["crps"]
        samples = centre[:, None] + np.random.default_rng(1).normal(size=(1000, 500))
        assert_allclose(pm.measure(y, samples=samples).scores["crps"].value, exact.value, rtol=0.01)
        assert exact.lower < 1 / np.sqrt(np.pi) < exact.upper

    @pytest.mark.parametrize(("s", "level"), [(2, 1 / 3), (5, 2 / 3), (19, 0.9), (39, 0.95), (100, 0.95)])
    def test_level_of_samples_is_one_that_they_hold(self, rows, s, level):
        centre, y = rows
        samples = centre[:, None] + np.random.default_rng(2).normal(size=(1000, s))
        found = pm.measure(y, samples=samples)
        assert found.confidence_level == pytest.approx(level)
        assert max(one.level for one in found.reliability) == pytest.approx(level)
        # New draws and targets are divided equally by s draws, so that the coverage is the level.
        assert stats.binomtest(round(1000 * found.coverage), 1000, level).pvalue > 1e-4
        if s < 39:
            with pytest.raises(ValueError, match=f"{s} draws hold intervals of up to"):
                pm.measure(y, samples=samples, confidence_level=0.95)

    def test_targets_between_few_right_draws_raise_no_alarm(self, rows):
        centre, y = rows
        samples = centre[:, None] + np.random.default_rng(3).normal(size=(1000, 4))
        found = pm.measure(y, samples=samples)
        inside = np.bincount((samples < y[:, None]).sum(axis=1), minlength=5)
        assert [cell.rows for cell in found.pit] == inside.tolist()
        assert_allclose([cell.probability for cell in found.pit], 0.2)
        assert not any(one.raised for one in found.diagnosis.findings if one.name == "calibration")

    def test_level_is_that_which_was_given(self, rows):
        centre, y = rows
        several = {p: around(centre, stats.norm.ppf((1 + p) / 2)) for p in (0.5, 0.8, 0.9)}
        assert pm.measure(y, intervals=several).confidence_level == 0.9
        found = pm.measure(y, intervals=several, confidence_level=0.8)
        assert found.confidence_level == 0.8
        assert [one.level for one in found.reliability] == [0.5, 0.8, 0.9]
        assert len(found.pit) == 7
        assert sum(cell.rows for cell in found.pit) == 1000
        assert_allclose([cell.probability for cell in found.pit], [0.05, 0.05, 0.15, 0.5, 0.15, 0.05, 0.05])

    def test_groups_widen_the_ranges(self):
        rng = np.random.default_rng(2)
        group = np.repeat(np.arange(200), 10)
        y = rng.normal(size=200)[group]
        plain, grouped = (
            pm.measure(y, intervals=around(0 * y, HALF), confidence_level=0.9, groups=g) for g in (None, group)
        )
        for name in ("coverage", "interval_score"):
            widths = [one.scores[name].upper - one.scores[name].lower for one in (plain, grouped)]
            assert widths[1] > 2 * widths[0]
        assert "groups that are independent" in grouped.headline.evidence

    def test_too_few_misses_have_no_range(self, rows):
        centre, y = rows
        score = pm.measure(y[:40], intervals=around(centre[:40], HALF), confidence_level=0.9).scores["interval_score"]
        assert np.isnan(score.lower)
        assert score.assumes == "no range: fewer than 5 misses are expected"

    def test_too_few_groups_have_no_ranges_and_no_alarms(self):
        y = np.repeat([0.0, 9.0, 0.0, 0.0, 0.0], 20)
        found = pm.measure(y, intervals=around(0 * y, 1.0), confidence_level=0.9, groups=np.repeat(np.arange(5), 20))
        assert np.isnan(found.coverage_range).all()
        assert "5 groups, at least 10 are needed" in found.headline.evidence
        assert not found.diagnosis.raised
        assert all(one.upper - one.lower > 0.9 for one in found.subgroups)

    def test_no_misses_of_groups_have_no_range(self):
        y = np.random.default_rng(0).normal(size=40)
        found = pm.measure(y, intervals=around(0 * y, 9.0), confidence_level=0.9, groups=np.repeat(np.arange(20), 2))
        score = found.scores["interval_score"]
        assert score.upper > score.lower or np.isnan(score.lower)

    def test_ids_are_left_out_and_named(self, rows):
        centre, y = rows
        X = pd.DataFrame({"row_id": np.arange(1000), "x": centre})
        found = pm.measure(y, intervals=around(centre, HALF), confidence_level=0.9, X=X)
        assert "row_id" in found.diagnosis["features"].sentence

    def test_infinite_bounds_are_measured_as_far_as_they_can_be(self, rows):
        centre, y = rows
        given = np.stack([np.full(1000, -np.inf), centre + stats.norm.ppf(0.9)], axis=1)
        found = pm.measure(y, intervals=given, confidence_level=0.9)
        assert set(found.scores) == {"coverage", "misses_below", "misses_above", "median_width"}
        assert found.alternatives == ()
        assert json.loads(found.to_json())


class TestAlternatives:
    def test_widths_that_are_too_small_are_multiplied(self):
        rng = np.random.default_rng(3)
        scale = np.exp(rng.normal(size=2000))
        y = scale * rng.normal(size=2000)
        found = pm.measure(y, intervals=around(0 * y, HALF * scale / 1.25), confidence_level=0.9)
        by_name = {one.name: one for one in found.alternatives}
        assert_allclose(by_name["widened by"].value, 1.25, rtol=0.06)
        assert_allclose(by_name["widened by"].coverage, 0.9, atol=0.015)
        assert min(found.alternatives, key=lambda one: one.interval_score).name == "widened by"
        assert any("widths multiplied by 1.2" in line for line in found.advice)

    def test_advice_makes_them_hold_when_it_is_pasted(self):
        rng = np.random.default_rng(4)
        scale = np.exp(rng.normal(size=4000))
        y = scale * rng.normal(size=4000)
        given = around(0 * y, HALF * scale / 1.4)
        found = pm.measure(y[:2000], intervals=given[:2000], confidence_level=0.9)
        names = {"y_true": y[:2000], "intervals": given[:2000], "new_intervals": given[2000:]}
        exec(found.code, names)
        fresh = np.stack([names["lower"], names["upper"]], axis=1)
        assert_allclose(pm.coverage_score(y[2000:], fresh), 0.9, atol=0.025)

    @pytest.mark.parametrize(
        ("finding", "most", "shift", "spread"),
        [("balance", 0.82, 1.0, 1.0), ("subgroups", 0.94, 0.0, 4.0)],
    )
    def test_advice_moves_bounds_as_the_finding_says(self, finding, most, shift, spread):
        """In 30 draws the score was .75 and .88 of that of bounds moved outwards, at most .77 and .90."""
        rng = np.random.default_rng(5)
        centre = rng.uniform(size=4000)
        y = centre + shift + (1.0 + (spread - 1.0) * centre) * rng.normal(size=4000)
        given, old, new = around(centre, HALF), slice(1000), slice(1000, None)
        found = pm.measure(y[old], intervals=given[old], confidence_level=0.9)
        assert finding in found.diagnosis.raised
        names = {"y_true": y[old], "intervals": given[old], "new_intervals": given[new]}
        exec(found.code, names)
        moved = pm.IntervalCalibrator(0.9, method="additive").fit(y[old], intervals=given[old])
        score = pm.interval_score(y[new], np.stack([names["lower"], names["upper"]], axis=1), 0.9)
        assert score < most * pm.interval_score(y[new], moved.predict_interval(intervals=given[new]), 0.9)

    def test_code_counts_each_group_once(self):
        """Rows of 10 groups of 30 resemble each other; 300 groups have one row each."""
        rng = np.random.default_rng(11)
        groups = np.concatenate([np.repeat(np.arange(10), 30), np.arange(10, 310)])
        y = 2.0 * rng.standard_normal(310)[groups] + 0.2 * rng.standard_normal(600)
        given = around(0 * y, HALF / 4)
        found = pm.measure(y, intervals=given, confidence_level=0.9, groups=groups)
        assert "intervals=intervals, groups=groups)" in found.code
        assert not any("later times" in line for line in found.advice)
        names = {"y_true": y, "intervals": given, "groups": groups, "new_intervals": given[:1]}
        exec(found.code, names)
        assert names["calibrator"].guaranteed_level_ == 0.9
        assert_allclose(names["upper"], np.quantile(np.abs(y[300:]), 0.9), rtol=0.15)

    @pytest.mark.parametrize("kind", ["quantiles", "normal", "samples"])
    def test_code_runs_for_all_that_may_be_given(self, kind, rows):
        centre, y = rows
        names = {
            "quantiles": centre[:, None] + 0.6 * stats.norm.ppf(LEVELS),
            "levels": LEVELS,
            "y_pred": centre,
            "std": np.full(1000, 0.6),
            "samples": centre[:, None] + 0.6 * np.random.default_rng(0).normal(size=(1000, 50)),
        }
        used = {"quantiles": ("quantiles", "levels"), "normal": ("y_pred", "std"), "samples": ("samples",)}[kind]
        found = pm.measure(y, **{name: names[name] for name in used})
        assert found.diagnosis.raised
        names |= {f"new_{name}": value for name, value in names.items()}
        exec(found.code, names | {"y_true": y})


class TestAlarms:
    def test_intervals_that_are_as_they_should_be_raise_few(self):
        """5 % of reports at most: of 60 eight or more have a probability of 1.2 %."""
        rng = np.random.default_rng(5)
        raised = 0
        for _ in range(60):
            X = rng.normal(size=(300, 3))
            y = X[:, 0] + rng.normal(size=300)
            found = pm.measure(y, intervals=around(X[:, 0], HALF), confidence_level=0.9, X=X, time=np.arange(300))
            raised += bool(found.diagnosis.raised)
        assert raised < 8

    def test_narrow_intervals(self, rows):
        centre, y = rows
        found = pm.measure(y, intervals=around(centre, 0.85 * HALF), confidence_level=0.9)
        assert "coverage" in found.diagnosis.raised
        assert "cover too little" in found.headline.claim
        assert "Make intervals wider." in found.advice

    def test_misses_at_one_end(self, rows):
        centre, y = rows
        given = np.stack([centre - 9, centre + stats.norm.ppf(0.9)], axis=1)
        found = pm.measure(y, intervals=given, confidence_level=0.9)
        assert "balance" in found.diagnosis.raised
        assert "up" in found.diagnosis["balance"].advice

    def test_a_subgroup_that_is_covered_less(self, rows):
        centre, y = rows
        by = np.random.default_rng(6).choice(list("abcde"), 1000)
        y = centre + np.where(by == "a", 1.6, 0.9) * (y - centre)
        found = pm.measure(y, intervals=around(centre, HALF), confidence_level=0.9, by=by)
        assert "subgroups" in found.diagnosis.raised
        assert "in category a" in found.diagnosis["subgroups"].sentence
        assert "coverage goes on varying with the category" in found.advice[-1]

    def test_misses_in_runs(self, rows):
        centre, _ = rows
        noise = np.where(np.arange(1000) % 100 < 10, 2.5, 0.1) * np.where(np.arange(1000) % 2, 1, -1)
        shuffled = np.random.default_rng(7).permutation(1000)
        given = around(centre, HALF)
        found = pm.measure((centre + noise)[shuffled], intervals=given[shuffled], confidence_level=0.9, time=shuffled)
        assert found.diagnosis.raised == ("runs",)
        assert "guarantees nothing about later times" in found.advice[-1]
        assert len(found.over_time) == 20

    def test_tails_that_normal_quantiles_do_not_have(self, rows):
        centre, _ = rows
        y = centre + np.random.default_rng(8).standard_t(3, 1000) / 3**0.5
        found = pm.measure(y, quantiles=centre[:, None] + stats.norm.ppf(LEVELS), levels=LEVELS)
        assert "calibration" in found.diagnosis.raised


class TestStatistics:
    def test_likelihood_ratios_are_christoffersens(self):
        miss = np.random.default_rng(9).uniform(size=400) < 0.13
        k = miss.sum()
        found = christoffersen(miss, 0.9)
        expected = -2 * np.log(0.1**k * 0.9 ** (400 - k) / ((k / 400) ** k * (1 - k / 400) ** (400 - k)))
        assert_allclose(found.unconditional, expected)
        table = np.array([[np.sum((miss[:-1] == a) & (miss[1:] == b)) for b in (0, 1)] for a in (0, 1)])
        assert_allclose(
            found.independence, stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")[0]
        )
        assert found.conditional == found.unconditional + found.independence

    def test_few_runs_are_as_improbable_as_permutations_say(self):
        miss = np.zeros(40, bool)
        miss[[3, 4, 5, 20, 21, 33]] = True
        rng = np.random.default_rng(10)

        def runs(one):
            return one[0] + np.count_nonzero(one[1:] & ~one[:-1])

        found = np.mean([runs(rng.permutation(miss)) <= runs(miss) for _ in range(20_000)])
        assert_allclose(runs_p(miss), found, atol=0.01)

    def test_few_hits_are_not_called_few_misses(self):
        y, time = np.arange(1000.0), np.arange(1000)
        for moved, few in ((5.0, "hits"), (0.0, "misses")):
            found = pm.measure(y + moved, intervals=around(y, 1.0), time=time, confidence_level=0.9)
            assert found.diagnosis["runs"].sentence == f"There are too few {few} to tell: 0."

    def test_code_with_groups_does_not_take_rows_for_independent(self):
        rng = np.random.default_rng(0)
        y = np.cumsum(rng.normal(size=1000)) / 5
        for groups, said in ((np.arange(1000) // 2, False), (None, True)):
            found = pm.measure(
                y, intervals=around(np.zeros(1000), 1.0), groups=groups, time=np.arange(1000), confidence_level=0.9
            )
            assert "runs" in found.diagnosis.raised
            assert found.advice[-1].startswith("The code calibrates once")
            assert found.advice[-1].endswith("nothing about later times: calibrate anew as targets become known.")
            assert ("takes rows for independent" in found.advice[-1]) == said
            assert ("groups=groups" in found.code) == (not said)

    def test_hypergeometric_tails(self):
        below = stats.hypergeom.cdf(14, 200, 170, 20)
        assert_allclose(hypergeometric_p(14, 20, 170, 200), 2 * below)

    @pytest.mark.parametrize("k", [0, 31, 60, 200])
    def test_no_tail_cancels(self, k):
        n_rows = max(k, 60)
        tails = [
            sum(
                Fraction(math.comb(500, i) * math.comb(500, n_rows - i), math.comb(1000, n_rows))
                for i in range(first, last + 1)
            )
            for first, last in ((0, k), (k, n_rows))
        ]
        assert_allclose(hypergeometric_p(k, n_rows, 500, 1000), min(1.0, float(2 * min(tails))), rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give what the model said"),
        ({"intervals": np.zeros((20, 2))}, "need their level"),
        (
            {"intervals": np.tile([1.0, 0.0], (20, 1)), "confidence_level": 0.9},
            "cross in 20 of 20 rows, first in row 0",
        ),
        ({"intervals": np.full((20, 2), np.nan), "confidence_level": 0.9}, "NaN"),
        ({"intervals": np.zeros((19, 2)), "confidence_level": 0.9}, "19 rows, but there are 20 targets"),
        ({"intervals": {0.8: np.zeros((20, 2))}, "confidence_level": 0.9}, "were not given at 90 %"),
        ({"quantiles": np.zeros((20, 2)), "levels": [0.1, 0.5, 0.9]}, "a column for each of the levels"),
        ({"y_pred": np.zeros(20), "std": np.zeros(20)}, "std must be positive; 20 of 20 are not"),
        ({"samples": np.zeros((20, 1))}, "at least two draws"),
        ({"samples": np.zeros((20, 5)), "y_pred": np.zeros(20), "std": np.ones(20)}, "in one of four ways"),
    ],
)
def test_what_cannot_be_measured_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        pm.measure(np.zeros(20), **given)


def test_page_shows_all_of_it(rows):
    centre, y = rows
    found = pm.measure(
        y, quantiles=centre[:, None] + stats.norm.ppf(LEVELS), levels=LEVELS, by=np.where(y > 0, "up", "down")
    )
    page = found.to_html()
    for text in (
        "Do all levels hold?",
        "Where do targets lie",
        "By category",
        "How much better could they be?",
        "crps",
    ):
        assert text in page


class TestFoundBySimulation:
    def test_groups_of_very_unequal_size_have_no_ranges(self):
        group = np.repeat(np.arange(15), [400, *[10] * 14])
        y = np.random.default_rng(0).normal(size=15)[group]
        found = pm.measure(y, 0 * y, std=1 + 0 * y, groups=group)
        assert "15 groups say as little as 1 of equal size" in found.headline.evidence
        assert not found.diagnosis.raised

    def test_groups_that_resemble_each_other_raise_few_alarms(self):
        """At 5 % nine or more of 60 have a probability of .4 %."""
        rng = np.random.default_rng(1)
        group = np.repeat(np.arange(40), 20)
        raised = 0
        for _ in range(60):
            y = 0.9**0.5 * rng.normal(size=40)[group] + 0.1**0.5 * rng.normal(size=800)
            raised += bool(pm.measure(y, 1e-9 * rng.normal(size=800), std=np.ones(800), groups=group).diagnosis.raised)
        assert raised < 9

    def test_counts_on_their_own_quantiles_are_not_called_uncalibrated(self):
        levels = [0.05, 0.25, 0.5, 0.75, 0.95]
        y = np.random.default_rng(2).poisson(10, 500).astype(float)
        given = np.tile(stats.poisson.ppf(levels, 10), (500, 1))
        found = pm.measure(y, quantiles=given, levels=levels).diagnosis["calibration"]
        assert np.isnan(found.p_value)
        assert "targets lie exactly on quantiles" in found.sentence

    def test_few_expected_misses_tell_no_gain(self):
        rng = np.random.default_rng(3)
        mean, std = rng.normal(size=50), np.exp(0.5 * rng.normal(size=50))
        found = pm.measure(mean + std * rng.normal(size=50), mean, std=std, confidence_level=0.99)
        assert np.isnan(found.diagnosis["better"].p_value)

    def test_widths_between_true_samples_are_no_fault(self):
        rng = np.random.default_rng(4)
        found = pm.measure(rng.normal(size=1000), samples=rng.normal(size=(1000, 60)), confidence_level=0.8)
        assert "interval width" not in {one.of for one in found.subgroups}


def test_infinite_bounds_are_named():
    bounds = np.tile([-1.0, 1.0], (30, 1))
    bounds[[4, 9], 0] = -np.inf
    found = pm.measure(np.linspace(-1, 1, 30), intervals=bounds, confidence_level=0.9)
    assert "2 of 30 rows are not; the first is row 4" in found.diagnosis["infinite"].sentence
    assert "interval_score" not in found.scores
    assert not found.diagnosis["infinite"].raised


def test_a_headline_claims_no_more_than_the_checks():
    """Of 300 targets 86.3 % are covered: beyond the range of 90 %, and no alarm among all checks."""
    y = np.concatenate([np.zeros(259), np.full(20, 2.0), np.full(21, -2.0)])
    found = pm.measure(y, intervals=np.tile([-1.0, 1.0], (300, 1)), confidence_level=0.9)
    assert found.coverage_range[1] < 0.9
    assert "coverage" not in found.diagnosis.raised
    assert "may cover too little" in found.headline.claim


def test_a_headline_says_what_an_alarm_says_of_few_rows():
    """Two misses of two: chance explains that in 1 of 100 cases."""
    found = pm.measure([5.0, 5.0], intervals=np.tile([-1.0, 1.0], (2, 1)), confidence_level=0.9)
    assert "coverage" in found.diagnosis.raised
    assert "cover too little" in found.headline.claim


def test_what_each_level_does_is_what_measure_says_of_it():
    rng = np.random.default_rng(0)
    centre = rng.normal(size=400)
    y, time = centre + rng.normal(size=400), np.arange(400)
    said = {level: np.stack([centre - half, centre + half], axis=1) for level, half in ((0.5, 0.7), (0.9, 1.6))}
    together = pm.measure(y, intervals=said, time=time)
    for one in together.reliability:
        alone = pm.measure(y, intervals=said[one.level], confidence_level=one.level, time=time)
        assert one.coverage == alone.coverage
        assert one.over_time == alone.over_time
        for name in ("misses_below", "misses_above", "mean_width", "interval_score"):
            assert getattr(one, name) == pytest.approx(alone.scores[name].value)
        same = [(group.of, group.label, group.rows, group.coverage) for group in alone.subgroups]
        assert [(group.of, group.label, group.rows, group.coverage) for group in one.subgroups] == same
    assert together.reliability[1].lower < pm.measure(y, intervals=said[0.9], confidence_level=0.9).coverage_range[0]


def test_discrete_targets_have_no_ranges_of_alternatives():
    y = np.random.default_rng(0).poisson(3, 200).astype(float)
    found = pm.measure(y, intervals=np.tile([1.0, 6.0], (200, 1)), confidence_level=0.9)
    given, *others = found.alternatives
    assert given.lower < given.interval_score < given.upper
    assert all(np.isnan(one.lower) for one in others)


class TestWhatSimulationsFound:
    """Ranges and alarms of given intervals that were wrong."""

    def test_a_score_without_misses_has_a_range(self):
        """Bounds of 3 deviations miss .3 %: the range of 100 rows had no length, and held the score in 20 %."""
        expected = 6.0 + 2 * 20 * (stats.norm.pdf(3.0) - 3.0 * stats.norm.sf(3.0))
        held = 0
        for seed in range(40):
            y_true = np.random.default_rng(seed).normal(size=100)
            score = pm.measure(y_true, intervals=np.tile([-3.0, 3.0], (100, 1)), confidence_level=0.9).scores[
                "interval_score"
            ]
            held += score.lower <= expected <= score.upper
        assert held >= 34

    def test_counts_on_a_bound_are_no_excess(self):
        """Exact intervals of Poisson counts cover more than the level, as no shorter ones keep it."""
        rng = np.random.default_rng(0)
        mean = 3.0 * np.exp(0.3 * rng.normal(size=500))
        y_true = rng.poisson(mean).astype(float)
        for tail, is_wide in ((0.05, False), (0.005, True)):
            bounds = np.column_stack([stats.poisson.ppf(p, mean) for p in (tail, 1.0 - tail)])
            found = pm.measure(y_true, intervals=bounds, confidence_level=0.9)
            assert found.diagnosis["coverage"].raised == is_wide
            assert ("too much" in found.headline.claim) == is_wide

    def test_signs_that_stay_count_as_dependent(self):
        """Misses of one side, and cells of distributions, were alarms in 18 and 27 of 60 reports with time."""
        raised = []
        for seed in range(15):
            rng = np.random.default_rng(seed)
            stays = np.cumsum(rng.random(2000) < 0.05) % 2 * 2.0 - 1.0
            y_true = np.abs(rng.normal(size=2000)) * stays
            found = pm.measure(y_true, np.zeros(2000), std=np.ones(2000), time=np.arange(2000))
            raised += [name for name in found.diagnosis.raised if name in {"balance", "calibration"}]
        assert len(raised) <= 1

    def test_the_headline_knows_what_else_was_found(self):
        rng = np.random.default_rng(0)
        by = rng.choice(list("abcd"), 2000)
        y_true = rng.normal(size=2000) * np.where(by == "a", 2.0, 0.75)
        found = pm.measure(y_true, intervals=np.tile([-1.78, 1.78], (2000, 1)), by=by, confidence_level=0.9)
        assert found.diagnosis.raised == ("subgroups",)
        assert "right on the whole, but see what else was found" in found.headline.claim

    def test_misses_of_one_side_ask_for_that_bound(self):
        rng = np.random.default_rng(0)
        found = pm.measure(
            rng.normal(size=500) + 0.8, intervals=np.tile([-1.645, 1.645], (500, 1)), confidence_level=0.9
        )
        assert "Make intervals extend farther above." in found.diagnosis["coverage"].advice
