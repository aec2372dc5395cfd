"""Thresholds with a guarantee: numbers worked out by hand, violations counted, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone

from pimeter import CoverageWarning, RiskController
from pimeter.risk.testing import (
    Candidates,
    accepted,
    betting_p_value,
    binomial_p_value,
    fewest_rows,
    first_rank,
    rows_that_would_do,
)

RATES = ("precision", "fdr", "npv", "for", "recall", "fnr", "fpr", "specificity")


def drawn(rng, n, spread=4.0):
    """Calibrated scores of two classes."""
    score = 1.0 / (1.0 + np.exp(-rng.normal(scale=spread, size=n)))
    return rng.uniform(size=n) < score, score


class TestPValues:
    def test_binomial_is_the_distribution_function(self):
        errors, rows = np.array([0.0, 3.0, 10.0, 10.0]), np.array([45.0, 100.0, 40.0, 10.0])
        assert_allclose(binomial_p_value(errors, rows, 0.05), stats.binom.cdf(errors, rows, 0.05))

    def test_fewest_rows_without_an_error(self):
        assert fewest_rows(0.05, 0.1) == math.ceil(math.log(0.1) / math.log(0.95)) == 45
        k = fewest_rows(0.05, 0.1, 2)
        assert stats.binom.cdf(2, k, 0.05) <= 0.1 < stats.binom.cdf(2, k - 1, 0.05)

    def test_first_rank_grows_with_rows_and_stops(self):
        ranks = [first_rank(n, 0.05, 0.1) for n in (50, 500, 1500, 10**6)]
        assert ranks == sorted(ranks)
        assert ranks[0] == ranks[1] == 45
        assert 135 <= ranks[-1] <= 165

    def test_betting_is_valid_and_notices(self):
        rng = np.random.default_rng(0)
        # 2,000 draws: a rate of .1 has a standard error of .007.
        at = [betting_p_value(rng.beta(0.5, 4.5, size=200), 0.1) <= 0.1 for _ in range(2000)]
        assert np.mean(at) <= 0.1
        assert np.mean([betting_p_value(rng.beta(0.5, 4.5, size=200), 0.15) <= 0.1 for _ in range(100)]) > 0.9

    def test_betting_falls_with_no_loss_and_knows_no_order(self):
        rng = np.random.default_rng(1)
        losses = rng.uniform(size=50)
        p = betting_p_value(0.3 * losses, 0.3)
        assert betting_p_value(0.3 * losses[::-1], 0.3) == pytest.approx(p)
        assert betting_p_value(0.31 * losses, 0.3) >= p
        assert betting_p_value(np.ones(50), 0.3) == 1.0

    def test_the_first_failure_stops_it(self):
        p = np.array([0.5, 0.01, 0.02, 0.3, 0.01])
        assert accepted(p, 0.1, 1) == slice(1, 3)
        assert accepted(p, 0.1) == slice(0, 0)
        assert accepted(p, 0.6) == slice(0, 5)


class TestRates:
    def test_precision_by_hand(self):
        # 22 rows without an error are the fewest for .9 (.9**22 = .098); the 30 best rows have none, the 31st is one.
        score = np.arange(60, 0, -1.0)
        y = np.arange(60) < 30
        control = RiskController("precision", 0.9).fit(y, score)
        # One error among 38 or more is accepted, and fewer have none: the walk stops before the 31st row.
        assert control.threshold_ == score[30]
        assert control.answered_ == 0.5
        assert control.estimate_ == 1.0
        assert control.guaranteed_level_ == 0.9
        assert control.predict([30.0, 30.5, 31.0]).tolist() == [0, 1, 1]

    def test_recall_is_the_order_statistic(self):
        y, score = drawn(np.random.default_rng(0), 400)
        control = RiskController("recall", 0.9).fit(y, score)
        ordered = np.sort(score[y])
        missed = int(stats.binom.ppf(0.1, len(ordered), 0.1)) - 1
        missed += stats.binom.cdf(missed + 1, len(ordered), 0.1) <= 0.1
        assert np.count_nonzero(ordered <= control.threshold_) == missed
        assert control.estimate_ == 1.0 - missed / len(ordered)

    @pytest.mark.parametrize(("low", "high"), [("fdr", "precision"), ("fnr", "recall"), ("fpr", "specificity")])
    def test_a_rate_and_its_complement_choose_the_same(self, low, high):
        y, score = drawn(np.random.default_rng(1), 500)
        assert RiskController(low, 0.1).fit(y, score).threshold_ == RiskController(high, 0.9).fit(y, score).threshold_

    def test_npv_is_the_precision_of_the_other_class(self):
        y, score = drawn(np.random.default_rng(2), 500)
        low = RiskController("npv", 0.9).fit(y, score)
        high = RiskController("precision", 0.9).fit(~y, -score)
        assert low.threshold_ == -high.threshold_
        assert_allclose(low.predict(score), high.predict(-score))

    @pytest.mark.parametrize("metric", RATES)
    def test_order_of_rows_and_monotone_maps_do_not_matter(self, metric):
        rng = np.random.default_rng(3)
        y, score = drawn(rng, 300)
        level = 0.9 if metric in {"precision", "npv", "recall", "specificity"} else 0.1
        first = RiskController(metric, level).fit(y, score)
        order = rng.permutation(300)
        again = RiskController(metric, level).fit(y[order].astype(int), np.log(score[order]))
        assert_allclose(again.threshold_, np.log(first.threshold_))
        assert again.answered_ == first.answered_

    @pytest.mark.parametrize("metric", ["precision", "recall"])
    def test_a_stricter_level_never_answers_more_or_finds_less(self, metric):
        y, score = drawn(np.random.default_rng(4), 2000)
        found = [RiskController(metric, level).fit(y, score).answered_ for level in (0.8, 0.9, 0.95)]
        assert found == sorted(found, reverse=metric == "precision")

    def test_ties_stay_together(self):
        y, score = drawn(np.random.default_rng(5), 1000)
        control = RiskController("precision", 0.9).fit(y, score.round(1))
        assert control.threshold_ in score.round(1)

    def test_labels_of_other_names(self):
        y, score = drawn(np.random.default_rng(6), 300)
        names = np.where(y, "bad", "good")
        found = RiskController("precision", 0.9, pos_label="bad").fit(names, score)
        assert found.threshold_ == RiskController("precision", 0.9).fit(y, score).threshold_

    # 400 draws of a rate of .1 have a standard error of .015; the benchmark counts 2,000 in each of its cells.
    @pytest.mark.parametrize(("metric", "level"), [("precision", 0.9), ("recall", 0.9), ("fpr", 0.1), ("npv", 0.9)])
    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    def test_violations_are_as_rare_as_guaranteed(self, metric, level):
        rng = np.random.default_rng(7)
        y_new, new = drawn(rng, 200_000)
        violations = 0
        for _ in range(400):
            control = RiskController(metric, level).fit(*drawn(rng, 150))
            declared = control.predict(new).astype(bool)
            if metric in {"precision", "npv"}:
                wrong = (y_new == (metric == "npv"))[declared]
            else:
                wrong = ~declared[y_new] if metric == "recall" else declared[~y_new]
            violations += wrong.size > 0 and wrong.mean() > 0.1 + 0.002
        assert violations / 400 <= 0.1 + 3 * 0.015

    def test_marginal_recall_is_the_rank_of_split_conformal_prediction(self):
        y, score = drawn(np.random.default_rng(8), 300)
        control = RiskController("recall", 0.9, guarantee="marginal").fit(y, score)
        ordered = np.sort(score[y])
        assert np.count_nonzero(ordered <= control.threshold_) == math.floor(0.1 * (len(ordered) + 1)) - 1

    @pytest.mark.parametrize(("metric", "level"), [("recall", 0.9), ("fnr", 0.1), ("fnr", 1.0 - 0.9)])
    def test_levels_forgive_rounding(self, metric, level):
        """One of ten may be missed, which 1 - .9 is a little less than: nine positives that scores separate will do."""
        control = RiskController(metric, level, guarantee="marginal").fit(np.arange(49) >= 40, np.arange(49) >= 39.5)
        assert control.threshold_ == 0.0

    @pytest.mark.parametrize("level", [0.1, 1.0 - 0.9])
    def test_levels_of_losses_forgive_rounding(self, level):
        control = RiskController(
            lambda y, s, t: np.full(9, t), level, bound=1.0, thresholds=[0.0, 0.1], guarantee="marginal"
        )
        assert control.fit(np.zeros(9), np.zeros(9)).threshold_ == 0.0


class TestTriage:
    def test_two_thresholds_each_with_half(self):
        y, score = drawn(np.random.default_rng(0), 1000)
        both = RiskController(("npv", "precision"), 0.9, confidence_level=0.9).fit(y, score)
        low = RiskController("npv", 0.9, confidence_level=0.95).fit(y, score)
        high = RiskController("precision", 0.9, confidence_level=0.95).fit(y, score)
        assert both.threshold_.tolist() == [low.threshold_, high.threshold_]
        answers = both.predict(score)
        assert set(answers.tolist()) == {-1, 0, 1}
        assert both.answered_ == np.mean(answers >= 0)
        assert_allclose(both.estimate_, [np.mean(~y[answers == 0]), np.mean(y[answers == 1])])

    def test_levels_belong_to_their_names(self):
        y, score = drawn(np.random.default_rng(1), 1000)
        one = RiskController(("npv", "precision"), (0.8, 0.95)).fit(y, score)
        other = RiskController(("precision", "npv"), (0.95, 0.8)).fit(y, score)
        assert one.guaranteed_level_.tolist() == other.guaranteed_level_.tolist() == [0.8, 0.95]
        assert one.threshold_.tolist() == other.threshold_.tolist()

    def test_thresholds_never_overlap(self):
        y, score = drawn(np.random.default_rng(2), 3000, spread=12.0)  # nearly perfect scores
        found = RiskController(("npv", "precision"), 0.8).fit(y, score)
        assert found.threshold_[0] == found.threshold_[1]
        assert found.answered_ > 0.99
        assert (found.estimate_ > 0.9).all()

    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    def test_overlap_of_few_rows_is_answered_by_one_side(self):
        score = np.arange(40.0)
        found = RiskController(("npv", "precision"), 0.9).fit(score >= 20, score)
        assert not ((score < found.threshold_[0]) & (score > found.threshold_[1])).any()


class TestLosses:
    def test_exceedance_is_a_rate_among_rows_declared_safe(self):
        rng = np.random.default_rng(0)
        prediction = rng.gamma(3.0, 2.0, size=1000)
        y = prediction + rng.normal(size=1000)
        control = RiskController("exceedance", 0.05, limit=8.0).fit(y, prediction)
        safe = control.predict(prediction) == 1
        assert control.answered_ == safe.mean() > 0.5
        assert control.estimate_ == np.mean(y[safe] > 8.0) < 0.05
        assert prediction[safe].max() < control.threshold_

    @pytest.mark.parametrize("guarantee", ["training-conditional", "marginal"])
    def test_shortfall(self, guarantee):
        rng = np.random.default_rng(1)
        prediction = rng.gamma(4.0, 2.0, size=2000)
        y = np.clip(prediction + rng.normal(size=2000), 0.0, 30.0)
        control = RiskController("shortfall", 0.2, y_max=30.0, guarantee=guarantee).fit(y, prediction)
        orders = control.predict(prediction)
        assert control.estimate_ == pytest.approx(np.maximum(y - orders, 0.0).mean())
        assert 0.1 < control.estimate_ < 0.2
        assert ((orders >= 0.0) & (orders <= 30.0)).all()

    def test_the_unit_of_a_shortfall_does_not_matter(self):
        rng = np.random.default_rng(2)
        prediction = rng.gamma(4.0, 2.0, size=500)
        y = np.clip(prediction + rng.normal(size=500), 0.0, 30.0)
        one = RiskController("shortfall", 0.3, y_max=30.0).fit(y, prediction)
        other = RiskController("shortfall", 300.0, y_max=30_000.0).fit(1000.0 * y, 1000.0 * prediction)
        assert other.threshold_ == pytest.approx(1000.0 * one.threshold_)

    def test_predictions_beyond_the_possible_targets_do_not_spoil_the_margins(self):
        rng = np.random.default_rng(5)
        prediction = rng.gamma(4.0, 2.0, size=1000)
        y = np.clip(prediction + rng.normal(size=1000), 0.0, 30.0)
        prediction[:2] = -1e200, 1e200
        control = RiskController("shortfall", 0.4, y_max=30.0).fit(y, prediction)
        assert 0.2 < control.estimate_ < 0.4
        assert control.predict([1e200]).tolist() == [30.0]
        with pytest.raises(ValueError, match="choose a larger unit"):
            RiskController("shortfall", 0.4, y_max=1e308).fit(y, prediction)

    def test_mean_size_of_sets(self):
        score = np.random.default_rng(3).dirichlet(np.ones(6) / 2, size=1000)
        control = RiskController("set_size", 2.0).fit(None, score)
        sets = control.predict(score)
        assert sets.shape == score.shape
        assert 1.8 < sets.sum(axis=1).mean() == pytest.approx(control.estimate_)
        assert control.estimate_ <= 2.0

    def test_a_function_of_truth_values_is_a_binomial_test(self):
        y, score = drawn(np.random.default_rng(4), 500)

        def missed(y, score, threshold):
            return y & (score <= threshold)

        tried = np.linspace(0.0, 1.0, 101)
        control = RiskController(missed, 0.05, bound=1.0, thresholds=tried).fit(y, score)
        errors = np.array([np.count_nonzero(missed(y, score, one)) for one in tried])
        last = np.flatnonzero(stats.binom.cdf(errors, 500, 0.05) <= 0.1)[-1]
        assert control.threshold_ == tried[last]
        as_numbers = RiskController(lambda *a: missed(*a).astype(float), 0.05, bound=1.0, thresholds=tried)
        assert as_numbers.fit(y, score).threshold_ <= control.threshold_

    def test_conformal_risk_control_by_hand(self):
        # Mean losses 0, .1, .2, .3: with 9 rows (9 mean + 1) / 10 is .1, .19, .28, .37.
        control = RiskController(
            lambda y, s, t: np.full(9, t), 0.2, bound=1.0, thresholds=[0.0, 0.1, 0.2, 0.3], guarantee="marginal"
        )
        assert control.fit(np.zeros(9), np.zeros(9)).threshold_ == 0.1

    def test_a_loss_that_falls_is_for_learn_then_test_alone(self):
        def wave(y, score, threshold):
            return np.full(len(y), 0.1 + 0.05 * np.sin(9 * threshold))

        tried = np.linspace(0.0, 1.0, 20)
        y = np.zeros(400)
        with pytest.raises(ValueError, match="falls in no row"):
            RiskController(wave, 0.3, bound=1.0, thresholds=tried, guarantee="marginal").fit(y, y)
        assert RiskController(wave, 0.3, bound=1.0, thresholds=tried).fit(y, y).threshold_ == 1.0


class TestNothingCanBeGuaranteed:
    @pytest.mark.parametrize(
        ("metric", "y", "said", "threshold"),
        [
            ("precision", np.ones(30), r"about [\d,]+ rows like these would do", np.inf),
            ("precision", np.zeros(300), "at each threshold they have more errors", np.inf),
            ("recall", np.zeros(300), "none of them is positive", -np.inf),
            ("fpr", np.ones(300), "none of them is negative", np.inf),
            ("npv", np.zeros(20), r"about [\d,]+ rows like these would do", -np.inf),
        ],
    )
    def test_says_why_and_chooses_what_is_safe(self, metric, y, said, threshold):
        level = 0.05 if metric == "fpr" else 0.95
        control = RiskController(metric, level)
        with pytest.warns(CoverageWarning, match=said):
            control.fit(y, np.linspace(0.0, 1.0, len(y)))
        assert np.isnan(control.guaranteed_level_)
        assert control.threshold_ == threshold
        assert control.rows_needed_ > len(y)
        declared = control.predict([0.0, 0.5, 1.0])
        assert declared.tolist() == ([1, 1, 1] if metric == "recall" else [0, 0, 0])

    def test_so_many_rows_do(self):
        # Without an error among n rows, as many as were named are enough.
        with pytest.warns(CoverageWarning):
            few = RiskController("precision", 0.9).fit(np.ones(10), np.arange(10.0))
        enough = math.ceil(few.rows_needed_)
        assert RiskController("precision", 0.9).fit(np.ones(enough), np.arange(enough)).answered_ == 1.0

    def test_no_number_of_rows_is_named_that_nobody_can_bring(self):
        """Nine rows without an error are, by half an error more, at 95 % but for rounding."""
        said = r"with these 20 rows: more than 1,000,000 rows like these would be needed; it takes a better"
        with pytest.warns(CoverageWarning, match=said):
            RiskController("precision", 0.95).fit(np.arange(20) > 10, np.arange(20.0))
        with pytest.warns(CoverageWarning, match=r"mean shortfall .* more than 1,000,000 rows like these"):
            RiskController("shortfall", 1e-8, y_max=1.0).fit(np.zeros(20), np.zeros(20))

    @pytest.mark.parametrize("metric", ["precision", "recall"])
    @pytest.mark.parametrize("n", [1, 4, 45, 99])
    def test_rows_without_an_error_are_too_few_and_not_too_bad(self, metric, n):
        with pytest.warns(CoverageWarning, match=r"about 1,[\d]00 rows like these would do"):
            few = RiskController(metric, 0.99).fit(np.ones(n), np.arange(float(n)))
        enough = math.ceil(few.rows_needed_)
        assert np.isfinite(RiskController(metric, 0.99).fit(np.ones(enough), np.arange(float(enough))).estimate_)

    def test_rows_that_would_do_are_about_enough(self):
        rng = np.random.default_rng(0)
        y, score = drawn(rng, 100, spread=3.0)
        with pytest.warns(CoverageWarning, match="like these would do"):
            few = RiskController("precision", 0.95).fit(y, score)
        n = int(2 * few.rows_needed_)
        assert RiskController("precision", 0.95).fit(*drawn(rng, n, spread=3.0)).answered_ > 0.0

    def test_losses(self):
        y = np.linspace(0.0, 10.0, 50)
        control = RiskController("shortfall", 0.01, y_max=10.0)
        with pytest.warns(CoverageWarning, match="A mean shortfall of 0.01 cannot be guaranteed with these 50 rows"):
            control.fit(y, y)
        assert control.predict([3.0]).tolist() == [10.0]

    def test_no_number_of_rows_helps_a_risk_that_is_too_high(self):
        found = Candidates(np.array([0.5]), np.array([10.0]), np.array([9.0]))
        assert math.isinf(rows_that_would_do(found, 10, 0.1, 0.1))


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "y", "score", "said"),
        [
            (("precision", 95), [0, 1], [0.1, 0.9], "must lie between 0 and 1; got 95"),
            (("precision", 0.9), [0, 1, 2], [0.1, 0.9, 0.5], "one other class"),
            (("precision", 0.9), ["a", "b"], [0.1, 0.9], "Say with pos_label"),
            (("precision", 0.9), [0, 1], [0.1, np.nan], "score must be finite"),
            (("precision", 0.9), [0, np.nan], [0.1, 0.2], "missing label"),
            (("precision", 0.9), None, [0.1, 0.2], "y_true is None"),
            (("precision", 0.9), [0, 1], [[0.1, 0.9], [0.2, 0.8]], "one number for each row"),
            (("precision", 0.9), [0, 1, 1], [0.1, 0.9], "one label for each"),
            (("exceedance", 0.1), [0, 1], [0.1, 0.9], "needs limit"),
            (("shortfall", 0.1), [0, 1], [0.1, 0.9], "needs y_max"),
            (("set_size", 1.0), None, [0.1, 0.9], "a score for each class"),
            (("set_size", 3.0), None, [[0.1, 0.9]], "level must be a number below 2"),
            ((("precision", "recall"), 0.9), [0, 1], [0.1, 0.9], "two sides of a triage"),
            ((("npv", "precision"), (0.9, 0.9, 0.9)), [0, 1], [0.1, 0.9], "two sides of a triage"),
            ((lambda y, s, t: s, 0.1), [0, 1], [0.1, 0.9], "nothing can be guaranteed of the mean of an unbounded"),
        ],
    )
    def test_by_name(self, settings, y, score, said):
        with pytest.raises(ValueError, match=said):
            RiskController(*settings).fit(y, score)

    def test_targets_beyond_their_bounds(self):
        with pytest.raises(ValueError, match=r"must lie between y_min=0 and y_max=1; got 0\.5 to 2"):
            RiskController("shortfall", 0.1, y_max=1.0).fit([0.5, 2.0], [0.5, 2.0])

    @pytest.mark.parametrize(
        ("loss", "said"),
        [
            (lambda y, s, t: 3.0 * s, "losses must lie between 0 and bound=1"),
            (lambda y, s, t: s - 1.0, "losses must lie between 0 and bound=1"),
            (lambda y, s, t: s[:1], "return one number for each"),
            (lambda y, s, t: s * np.nan, "losses must lie between"),
        ],
    )
    def test_functions_that_are_not_bounded(self, loss, said):
        with pytest.raises(ValueError, match=said):
            RiskController(loss, 0.1, bound=1.0, thresholds=[0.1, 0.2]).fit([0, 1], [0.1, 0.9])

    def test_a_function_without_thresholds(self):
        with pytest.raises(ValueError, match="needs thresholds"):
            RiskController(lambda y, s, t: s, 0.1, bound=1.0).fit([0, 1], [0.1, 0.9])

    def test_precision_has_no_marginal_guarantee(self):
        with pytest.raises(ValueError, match="ratio among the rows"):
            RiskController("precision", 0.9, guarantee="marginal").fit([0, 1], [0.1, 0.9])

    def test_a_function_decides_nothing(self):
        control = RiskController(lambda y, s, t: s < t, 0.5, bound=1.0, thresholds=[0.0, 0.1])
        control.fit(np.ones(20), np.full(20, 0.5))
        with pytest.raises(TypeError, match="use threshold_ itself"):
            control.predict([0.5])


def test_is_an_estimator():
    control = RiskController("precision", 0.9, confidence_level=0.95)
    assert clone(control).get_params() == control.get_params()
    assert "confidence_level=0.95" in repr(control)
