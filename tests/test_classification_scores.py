"""Metrics of scores and bands of curves: against scikit-learn, by hand, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

import pimeter as pm
from pimeter.classification import precision_recall_band, roc_band
from pimeter.classification.score_metrics import SCORE_METRICS, placements

NAMES = list(SCORE_METRICS)


def drawn(rng, n, distance=1.5, prevalence=0.3, digits=None):
    y = rng.uniform(size=n) < prevalence
    odds = distance * (rng.standard_normal(n) + distance * y) - distance**2 / 2 + np.log(prevalence / (1 - prevalence))
    score = 1.0 / (1.0 + np.exp(-odds))
    return y, score if digits is None else np.clip(score.round(digits), 0.05, 0.95)


class TestMetricsOfScores:
    @pytest.mark.parametrize("digits", [None, 1])
    def test_values_are_those_of_scikit_learn(self, digits):
        y, score = drawn(np.random.default_rng(0), 300, digits=digits)
        found = pm.classification_uncertainty(y, score, metrics=NAMES)
        wanted = [f(y, score) for f in (roc_auc_score, average_precision_score, brier_score_loss, log_loss)]
        assert_allclose([found.value[name] for name in NAMES], wanted)
        assert all(found.lower[name] < found.value[name] < found.upper[name] for name in NAMES)

    def test_delong_by_hand(self):
        y, score = drawn(np.random.default_rng(1), 80)
        place = placements(y, score)
        p, q = score[y], score[~y]
        assert_allclose(place[y], [(one > q).mean() for one in p])
        assert_allclose(place[~y], [(p > one).mean() for one in q])
        assert place[y].mean() == pytest.approx(place[~y].mean())

    def test_stand_beside_metrics_at_a_threshold(self):
        y, score = drawn(np.random.default_rng(2), 200)
        found = pm.classification_uncertainty(y, score, metrics=["recall", "roc_auc"], threshold=[0.3, 0.5])
        assert set(found.value) == {"recall", "roc_auc"}
        assert found.value["roc_auc"][0] == found.value["roc_auc"][1]
        assert found.method["roc_auc"] == ["delong", "delong"]

    def test_one_name_and_labels_of_other_names(self):
        y, score = drawn(np.random.default_rng(3), 200)
        named = pm.classification_uncertainty(np.where(y, "yes", "no"), score, metrics="brier", pos_label="yes")
        assert named.value == pm.classification_uncertainty(y, score, metrics=["brier"]).value

    def test_scores_in_perfect_order(self):
        score = np.linspace(0.0, 1.0, 60)[1:-1]
        found = pm.classification_uncertainty(score > 0.7, score, metrics=["roc_auc", "average_precision"])
        assert found.value == {"roc_auc": 1.0, "average_precision": 1.0}
        assert 0.8 < found.lower["roc_auc"] < 1.0
        assert 0.7 < found.lower["average_precision"] < 1.0
        assert set(found.upper.values()) == {1.0}

    def test_a_row_that_was_called_impossible(self):
        y, score = drawn(np.random.default_rng(4), 100)
        score[np.flatnonzero(y)[0]] = 0.0
        found = pm.classification_uncertainty(y, score, metrics="log_loss")
        assert found.value["log_loss"] == np.inf
        assert np.isnan(found.lower["log_loss"])
        assert "1 row had probability 0" in found.note["log_loss"]

    def test_losses_that_are_all_equal_have_no_interval(self):
        found = pm.classification_uncertainty(np.arange(40) % 2, np.full(40, 0.5), metrics="brier")
        assert found.value["brier"] == 0.25
        assert np.isnan(found.lower["brier"])

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"method": "calibrated"}, 'not for method="calibrated"'),
            ({"sample_weight": np.ones(100)}, "without sample_weight"),
            ({"groups": np.arange(100)}, "without sample_weight and groups"),
        ],
    )
    def test_refused_settings(self, settings, said):
        y, score = drawn(np.random.default_rng(5), 100)
        with pytest.raises(ValueError, match=said):
            pm.classification_uncertainty(y, score, metrics=["roc_auc"], **settings)

    def test_refused_for_few_rows_of_a_class_and_several_classes(self):
        y = np.arange(100) < 9
        with pytest.raises(ValueError, match="at least 10 rows of each class; got 9 of the positive one and 91"):
            pm.classification_uncertainty(y, np.linspace(0.1, 0.9, 100), metrics="roc_auc")
        with pytest.raises(ValueError, match="compare one with all others"):
            pm.classification_uncertainty(np.arange(90) % 3, np.full((90, 3), 1 / 3), metrics="roc_auc")

    def test_hold_as_often_as_they_say(self):
        # 400 draws of 95 % have a standard error of .011.
        rng = np.random.default_rng(6)
        y, score = drawn(rng, 500_000)
        true = pm.classification_uncertainty(y, score, metrics=NAMES).value
        hits = []
        for _ in range(400):
            found = pm.classification_uncertainty(*drawn(rng, 150), metrics=NAMES)
            hits.append([found.lower[name] <= true[name] <= found.upper[name] for name in NAMES])
        assert (np.mean(hits, axis=0) > 0.95 - 3 * 0.011).all()


class TestBands:
    def test_curves_are_those_of_the_rows(self):
        y, score = drawn(np.random.default_rng(0), 200)
        band = roc_band(y, score)
        for x, value in zip(band.x[::20], band.value[::20], strict=True):
            cuts = [cut for cut in (*score, np.inf) if (score[~y] >= cut).mean() <= x + 1e-9]
            assert value == pytest.approx(max((score[y] >= cut).mean() for cut in cuts))
        assert (band.lower <= band.value).all()
        assert (band.value <= band.upper).all()
        curve = precision_recall_band(y, score)
        assert (curve.lower <= curve.value + 1e-12).all()
        assert (curve.value <= curve.upper + 1e-12).all()
        assert curve.value[-1] >= y.mean()

    def test_hold_the_whole_curve(self):
        rng = np.random.default_rng(1)
        y, score = drawn(rng, 300_000)
        roc, curve = roc_band(y, score, n_points=51), precision_recall_band(y, score, n_points=51)
        hits = np.zeros(2)
        for _ in range(200):
            rows = drawn(rng, 120)
            one, other = roc_band(*rows, n_points=51), precision_recall_band(*rows, n_points=51)
            hits[0] += ((one.lower <= roc.value) & (roc.value <= one.upper)).all()
            hits[1] += ((other.lower <= curve.value) & (curve.value <= other.upper))[1:].all()
        # Guaranteed; 200 draws of 95 % have a standard error of .015.
        assert (hits / 200 >= 0.95 - 2 * 0.015).all()

    def test_more_rows_make_narrower_bands(self):
        rng = np.random.default_rng(2)
        widths = [np.mean(band.upper - band.lower) for band in (roc_band(*drawn(rng, n)) for n in (100, 1000))]
        assert widths[1] < widths[0] / 2

    def test_any_scale_of_scores_and_names_of_classes(self):
        y, score = drawn(np.random.default_rng(3), 100)
        assert_allclose(roc_band(np.where(y, "b", "a"), 7 * score, pos_label="b").lower, roc_band(y, score).lower)

    @pytest.mark.parametrize("band", [roc_band, precision_recall_band])
    def test_refused(self, band):
        with pytest.raises(ValueError, match="at least 10 rows of each class"):
            band([0, 1, 1], [0.1, 0.2, 0.3])
        with pytest.raises(ValueError, match="n_points must be"):
            roc_band(np.arange(40) % 2, np.arange(40), n_points=1)
        with pytest.raises(ValueError, match="one score for each row"):
            band([0, 1], [[0.1, 0.9], [0.2, 0.8]])


class TestThresholdsOfAScorecard:
    def test_bounds_by_hand(self):
        y, score = drawn(np.random.default_rng(0), 400)
        cuts = pm.scorecard(y, score).cuts
        at = cuts["threshold"].index(0.3)
        called = score > 0.3
        tail = 0.05 / (3 * len(cuts["threshold"]))
        hits, n = np.count_nonzero(y & called), np.count_nonzero(called)
        assert cuts["ppv_at_least"][at] == pytest.approx(stats.beta.ppf(tail, hits, n - hits + 1))
        false, negatives = np.count_nonzero(~y & called), np.count_nonzero(~y)
        assert cuts["fpr_at_most"][at] == pytest.approx(stats.beta.ppf(1 - tail, false + 1, negatives - false))
        assert cuts["declared"][at] == called.mean()

    def test_where_nothing_is_declared_nothing_is_guaranteed(self):
        y, score = drawn(np.random.default_rng(1), 100)
        cuts = pm.scorecard(y, 0.5 * score).cuts
        assert cuts["ppv_at_least"][-1] is None
        assert cuts["tpr_at_least"][-1] == 0.0

    def test_bounds_hold_at_all_thresholds_at_once(self):
        rng = np.random.default_rng(2)
        y_new, new = drawn(rng, 300_000)
        ats = np.arange(1, 20) / 20
        precision = np.array([y_new[new > at].mean() for at in ats])
        recall = np.array([(new[y_new] > at).mean() for at in ats])
        broken = 0
        for _ in range(60):
            cuts = pm.scorecard(*drawn(rng, 150), n_resamples=400).cuts
            low = np.array([0.0 if one is None else one for one in cuts["ppv_at_least"]])
            broken += bool((low > precision).any() or (np.array(cuts["tpr_at_least"]) > recall).any())
        # Guaranteed with 95 %: of 60 draws more than 8 are broken with a probability below .01.
        assert broken <= 8
