"""Coverage given the features: found where something is planted, quiet where nothing is, honest about how bad it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pimeter as pm
from pimeter.evaluation.diagnosis.columns import Column
from pimeter.evaluation.diagnosis.subgroup_search import found_subgroup


def planted(rng, n=2000, low=0.7):
    """Features, and intervals around targets of which 8 % of the rows are covered `low`, the others 90 %."""
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "region": rng.choice(list("abcde"), n), "z": rng.normal(size=n)})
    is_hard = (X["age"] > 56) & (X["region"] == "c")
    is_inside = rng.random(n) < np.where(is_hard, low, 0.9)
    return X, is_hard.to_numpy(), np.where(is_inside, 0.0, 2.0), np.tile([-1.0, 1.0], (n, 1))


class TestWorstSubgroup:
    def test_is_found_and_named(self):
        X, is_hard, y, intervals = planted(np.random.default_rng(0))
        found = pm.worst_subgroup(X, y, intervals)
        assert "region = c" in found.conditions
        assert any(one.startswith("age > ") for one in found.conditions)
        assert found.p_value < 0.004
        assert found.lower < 0.75
        assert found.upper < 0.9
        assert str(found).startswith("rows with ")
        assert found.rows < is_hard.sum()  # those of one half

    def test_p_values_are_valid_where_nothing_is_wrong(self):
        rng = np.random.default_rng(1)
        p_values = []
        for _ in range(100):
            X, _, y, intervals = planted(rng, n=400, low=0.9)
            p_values.append(pm.worst_subgroup(X, y, intervals).p_value)
        assert np.mean(np.array(p_values) <= 0.1) <= 0.2  # binomial: 20 or more of 100 have a probability of .002

    def test_range_holds_the_coverage_of_the_subgroup_that_was_chosen(self):
        rng, held = np.random.default_rng(2), []
        for _ in range(100):
            X, is_hard, y, intervals = planted(rng)
            found = pm.worst_subgroup(X[["age", "region"]], y, intervals)
            rows = np.ones(len(X), bool)
            for one in found.conditions:
                name, sign, value = one.split(" ")
                column = X[name]
                rows &= (
                    column == value if sign == "=" else column > float(value) if sign == ">" else column <= float(value)
                )
            truth = np.where(is_hard, 0.7, 0.9)[rows].mean()
            held.append(found.lower <= truth <= found.upper)
        assert np.mean(held) >= 0.82  # 90 % asked for: fewer than 82 of 100 have a probability of .004

    def test_missing_values_and_dates_are_conditions(self):
        rng = np.random.default_rng(3)
        x = rng.normal(size=1000)
        x[::4] = np.nan
        is_inside = rng.random(1000) < np.where(np.isnan(x), 0.6, 0.95)
        found = found_subgroup([Column("x", 0, x, True)], is_inside)
        assert found.conditions == ("x is missing",)

    def test_many_columns_are_looked_at_one_by_one(self):
        rng = np.random.default_rng(4)
        X = rng.normal(size=(600, 250))
        y = np.where(rng.random(600) < np.where(X[:, 7] > 0, 0.7, 0.97), 0.0, 2.0)
        found = pm.worst_subgroup(X, y, np.tile([-1.0, 1.0], (600, 1)))
        assert len(found.conditions) == 1
        assert found.conditions[0].startswith("column 7 > ")

    def test_nothing_to_find(self):
        X, y, intervals = np.arange(100.0)[:, None] ** 2, np.zeros(100), np.tile([-1.0, 1.0], (100, 1))
        assert pm.worst_subgroup(X, y, intervals) is None  # no misses
        assert pm.worst_subgroup(np.ones((100, 1)), np.repeat([0.0, 2.0], 50), intervals) is None  # no conditions

    @pytest.mark.parametrize(
        "score",
        [
            pm.worst_subgroup,
            pm.worst_slab_coverage_score,
            lambda X, y, intervals: pm.excess_risk_score(X, y, intervals, 0.9),
        ],
    )
    def test_bad_input_is_refused(self, score):
        X, y, intervals = np.zeros((50, 1)), np.zeros(50), np.tile([-1.0, 1.0], (50, 1))
        with pytest.raises(ValueError, match="10 rows say nothing of coverage"):
            score(X[:10], y[:10], intervals[:10])
        with pytest.raises(ValueError, match="one output and one level"):
            score(X, y, np.zeros((50, 2, 3)))
        with pytest.raises(ValueError, match="X must have shape"):
            score(X[:40], y, intervals)


class TestScores:
    def test_slab_of_residuals_that_grow_with_a_feature(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(4000, 3))
        scale = 0.4 + X[:, 1]
        y = rng.normal(scale=scale)
        constant, scaled = np.tile([-1.6, 1.6], (4000, 1)), np.outer(scale, [-1.645, 1.645])
        assert pm.worst_slab_coverage_score(X, y, constant) < 0.84
        assert abs(pm.worst_slab_coverage_score(X, y, scaled) - 0.9) < 0.06
        assert pm.excess_risk_score(X, y, constant, 0.9) > 0.002
        assert abs(pm.excess_risk_score(X, y, scaled, 0.9)) < 0.002

    def test_slab_is_judged_by_rows_that_did_not_choose_it(self):
        """Of coverage that depends on nothing, the worst slab found on the same rows would have far less."""
        rng = np.random.default_rng(1)
        scores = []
        for _ in range(40):
            y = np.where(rng.random(400) < 0.9, 0.0, 2.0)
            scores.append(pm.worst_slab_coverage_score(rng.normal(size=(400, 4)), y, np.tile([-1.0, 1.0], (400, 1))))
        assert abs(np.mean(scores) - 0.9) < 0.03  # standard error .3 / sqrt(20 * 40) = .011

    def test_excess_risk_counts_what_is_wrong_on_average(self):
        rng = np.random.default_rng(2)
        y = np.where(rng.random(2000) < 0.6, 0.0, 2.0)
        risk = pm.excess_risk_score(rng.normal(size=(2000, 2)), y, np.tile([-1.0, 1.0], (2000, 1)), 0.9)
        assert abs(risk - 0.3**2) < 0.02

    def test_excess_risk_is_a_lower_bound_on_average(self):
        """Of a planted subgroup of 8 % it is between 0 and the truth; where features say nothing about 0."""
        some, none = [], []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            X, _, y, intervals = planted(rng, 1000, low=0.4)
            some.append(pm.excess_risk_score(X, y, intervals, 0.9))
            y = np.where(rng.random(1000) < 0.9, 0.0, 2.0)
            none.append(pm.excess_risk_score(X, y, intervals, 0.9))
        assert 0.004 < np.mean(some) < 0.08 * 0.5**2  # the truth
        assert abs(np.mean(none)) < 0.001

    def test_excess_risk_has_no_range(self):
        X, _, y, intervals = planted(np.random.default_rng(0))
        score = pm.measure(y, intervals=intervals, X=X, confidence_level=0.9).scores["excess_risk"]
        assert np.isnan([score.lower, score.upper]).all()
        assert "lower bound" in score.meaning


class TestMeasure:
    def test_given_intervals(self):
        X, _, y, intervals = planted(np.random.default_rng(0))
        y = y * np.random.default_rng(1).choice([-1.0, 1.0], len(y))
        result = pm.measure(y, intervals=intervals, X=X, confidence_level=0.9)
        finding = result.diagnosis["worst_subgroup"]
        assert finding.raised
        assert "region = c" in finding.sentence
        assert finding.lower < finding.value < finding.upper < 0.9
        assert {"worst_slab_coverage", "excess_risk"} <= set(result.scores)
        assert "region = c" in result.to_html()

    def test_point_predictions(self):
        rng = np.random.default_rng(5)
        X, is_hard, _, _ = planted(rng)
        y = rng.normal(scale=np.where(is_hard, 2.5, 1.0))
        result = pm.measure(y, rng.normal(scale=1e-6, size=len(y)), X=X, confidence_level=0.9)
        assert "worst_subgroup" in result.diagnosis.raised
        assert result.recommended_width == "scaled"
        assert result.scores["worst_slab_coverage"].value < 0.9
        assert pm.Measurement.from_json(result.to_json()) == result

    def test_without_features_nothing_is_said(self):
        y = np.random.default_rng(0).normal(size=200)
        for result in (
            pm.measure(y, 0 * y + 1e-3 * y[::-1]),
            pm.measure(y, intervals=np.stack([y - 1, y + 1], axis=1), confidence_level=0.9),
        ):
            assert result.diagnosis["worst_subgroup"].sentence == "No features were given."
            assert "excess_risk" not in result.scores

    def test_dependent_rows_have_no_ranges(self):
        X, _, y, intervals = planted(np.random.default_rng(0))
        result = pm.measure(y, intervals=intervals, X=X, groups=np.arange(2000) // 4, confidence_level=0.9)
        assert np.isnan(result.scores["excess_risk"].lower)
        assert "depend on each other" in result.scores["worst_slab_coverage"].assumes
