"""Intervals for a classifier's metrics: formulas, what is guaranteed, and what is refused."""

from __future__ import annotations

import json
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logit
from sklearn import metrics as sk
from statsmodels.stats.proportion import proportion_confint

import pimeter as pm
from pimeter.classification import unlabelled
from pimeter.classification.confusion import Cells
from pimeter.classification.derivatives import Series
from pimeter.classification.platt import log_odds, platt_lines
from pimeter.classification.proportions import Proportion, clopper_pearson, normal, proportion, wilson
from pimeter.classification.rates import METRICS, PROPORTIONS, Rates
from pimeter.classification.resampling import MAX_COUNTS_HELD, Resamples
from pimeter.classification.several_classes import _Jackknife, _one_against_rest

METHODS = ("wilson", "clopper-pearson", "normal", "bootstrap")


def rows(n=400, seed=0, a=0.5, b=0.5):
    rng = np.random.default_rng(seed)
    q = rng.beta(a, b, n)
    return (rng.uniform(size=n) < q).astype(int), q


Y, Q = rows()
PREDICTED = (Q > 0.5).astype(int)


def cells(*counts):
    """Labels and scores with so many TN, TP, FN, FP."""
    return np.repeat([0, 1, 1, 0], counts), np.repeat([0.2, 0.8, 0.2, 0.8], counts)


@pytest.mark.parametrize(("ours", "theirs"), [(wilson, "wilson"), (clopper_pearson, "beta"), (normal, "normal")])
@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7), (180, 200), (1, 40)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_binomial_intervals_are_those_of_statsmodels(ours, theirs, k, n, level):
    expected = np.clip(proportion_confint(k, n, 1 - level, theirs), 0, 1)
    assert_allclose(np.clip(ours(Proportion(k / n, n), level), 0, 1), expected, atol=1e-12)


def test_nothing_is_known_without_rows():
    for method in (wilson, clopper_pearson, normal):
        assert method(Proportion(np.nan, 0), 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_scikit_learn(method):
    value = pm.classification_uncertainty(Y, Q, method=method, random_state=0).value
    expected = {
        "accuracy": sk.accuracy_score(Y, PREDICTED),
        "balanced_accuracy": sk.balanced_accuracy_score(Y, PREDICTED),
        "tpr": sk.recall_score(Y, PREDICTED),
        "ppv": sk.precision_score(Y, PREDICTED),
        "f1": sk.f1_score(Y, PREDICTED),
        "mcc": sk.matthews_corrcoef(Y, PREDICTED),
    }
    assert list(value) == list(METRICS)
    assert_allclose([value[name] for name in expected], list(expected.values()), rtol=1e-12)
    for name, other in (("fpr", "tnr"), ("fnr", "tpr"), ("fdr", "ppv"), ("for", "npv")):
        assert value[name] == pytest.approx(1 - value[other], rel=1e-12)


def test_it_says_which_method_made_which_interval():
    found = pm.classification_uncertainty(Y, Q, random_state=0)
    assert {name for name, how in found.method.items() if how == "wilson"} == set(PROPORTIONS)
    assert {found.method[name] for name in METRICS if name not in PROPORTIONS} == {"bootstrap"}
    assert found.assumes is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["accuracy", "ppv", "f1", "mcc"])
def test_intervals_hold_the_value_and_grow_with_the_level(method, name):
    bounds = []
    for level in (0.5, 0.8, 0.95, 0.99):
        found = pm.classification_uncertainty(Y, Q, method=method, confidence_level=level, random_state=0)
        assert found.lower[name] <= found.value[name] <= found.upper[name]
        bounds.append((found.lower[name], -found.upper[name]))
    assert np.all(np.diff(bounds, axis=0) < 0)


# Propagation ----------------------------------------------------------------------------------------------------------


def test_series_has_exact_derivatives():
    x = Series(0.3, 1.0)
    found = np.sqrt(x) * np.exp(2 * x) / (1 - x) - np.log(x) ** 2 + abs(x - 1)
    step, f = 1e-4, lambda x: np.sqrt(x) * np.exp(2 * x) / (1 - x) - np.log(x) ** 2 + abs(x - 1)
    assert found.value == pytest.approx(f(0.3), rel=1e-14)
    assert found.first == pytest.approx((f(0.3 + step) - f(0.3 - step)) / (2 * step), rel=1e-5)
    assert 2 * found.second == pytest.approx((f(0.3 + step) - 2 * f(0.3) + f(0.3 - step)) / step**2, rel=1e-5)
    assert (3 - x).value == 2.7
    assert (2 / x**2).first == pytest.approx(-4 / 0.3**3)


def test_a_metric_without_a_slope_where_an_outcome_never_occurred():
    own = {"log": lambda r: np.log(r.fp), "odds": lambda r: r.tp / r.fp}
    found = pm.classification_uncertainty(*cells(20, 15, 5, 0), metrics=own, method="normal")
    for name in own:
        assert np.isnan([found.lower[name], found.upper[name]]).all()
        assert found.note[name] == "an outcome never occurred: no slope there"


# Bootstrap ------------------------------------------------------------------------------------------------------------


def test_draws_of_cells_are_draws_of_whole_rows():
    y, q = rows(300, 3)
    z = (q > 0.5).astype(int)
    found = pm.classification_uncertainty(
        y, q, method="bootstrap", metrics=["accuracy", "f1"], n_resamples=20_000, random_state=0
    )
    rng = np.random.default_rng(0)
    taken = rng.integers(300, size=(20_000, 300))
    true, said = y[taken], z[taken]
    right, both = (true == said).mean(axis=1), (true & said).sum(axis=1)
    whole = {"accuracy": right, "f1": 2 * both / (true.sum(axis=1) + said.sum(axis=1))}
    for name, values in whole.items():
        # BCa moves percentiles by less than a tenth of a standard error here; 20,000 resamples leave .0005 of noise.
        expected, spread = np.quantile(values, [0.025, 0.975]), values.std()
        assert_allclose([found.lower[name], found.upper[name]], expected, atol=0.15 * spread)


@pytest.mark.filterwarnings("ignore:y_score is lower")  # all wrong is among them
@pytest.mark.parametrize(
    "counts",
    [(20, 20, 0, 0), (0, 0, 20, 20), (20, 20, 0, 5), (20, 0, 20, 0), (39, 1, 0, 0), (39, 0, 1, 0), (0, 20, 0, 20)],
)
@pytest.mark.parametrize("method", ["bootstrap", "wilson", "clopper-pearson"])
def test_never_of_width_zero(counts, method):
    found = pm.classification_uncertainty(*cells(*counts), method=method, random_state=0)
    for name in found.value:
        assert found.upper[name] - found.lower[name] > 0.005, name
        if np.isfinite(found.value[name]):
            assert found.lower[name] <= found.value[name] <= found.upper[name]
    assert found.note["f1"]
    if method == "bootstrap" and counts[2:] == (0, 0):
        assert found.method["accuracy"] == "clopper-pearson"


def test_a_million_rows_need_little_memory():
    y, q = rows(1_000_000)
    tracemalloc.start()
    pm.classification_uncertainty(y, q, method="bootstrap", random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_many_cells_are_never_held_at_once():
    """Neither resamples nor tables with a row less: with 100 classes the latter would be 800 MB."""
    seen = []

    def first(drawn):
        seen.append(drawn.size)
        return {"first": drawn[0]}

    rows_of_cells = np.ones(1100)
    Resamples(rows_of_cells, rows_of_cells, rows_of_cells, 100, np.random.default_rng(0)).intervals(first, 0.9)
    assert max(seen) <= MAX_COUNTS_HELD < sum(seen)


def test_normal_is_of_width_zero_where_the_paper_is_and_says_so():
    found = pm.classification_uncertainty(*cells(20, 20, 0, 0), method="normal", metrics=["accuracy", "tpr"])
    assert found.lower["accuracy"] == found.upper["accuracy"] == 1.0
    assert found.note["accuracy"]


@pytest.mark.parametrize(
    ("method", "name"),
    [("wilson", "accuracy"), ("wilson", "f1"), ("bootstrap", "f1"), ("clopper-pearson", "tpr")],
)
def test_coverage(method, name):
    rng = np.random.default_rng(7)
    distribution = np.array([0.42, 0.38, 0.12, 0.08])
    truth = float(METRICS[name](Rates.of(distribution)))
    held = 0
    for _ in range(400):
        y, score = cells(*rng.multinomial(250, distribution))
        found = pm.classification_uncertainty(
            y, score, method=method, metrics=[name], n_resamples=1000, random_state=rng
        )
        held += found.lower[name] <= truth <= found.upper[name]
    assert held / 400 >= 0.93 - 0.033  # three standard errors of 400 repeats below the band of the benchmark


# Scores instead of labels ---------------------------------------------------------------------------------------------


def test_calibrated_is_the_mean_confidence_and_needs_no_labels():
    found = pm.classification_uncertainty(None, Q, method="calibrated")
    c = np.maximum(Q, 1 - Q)
    assert found.value["accuracy"] == pytest.approx(c.mean())
    half = stats.norm.ppf(0.975) * c.std() / len(c) ** 0.5
    assert found.upper["accuracy"] - found.lower["accuracy"] == pytest.approx(2 * half, rel=0.01)
    assert found.value["tpr"] == pytest.approx(Q[Q > 0.5].sum() / Q.sum())
    assert found.value["ppv"] == pytest.approx(Q[Q > 0.5].mean())
    assert found.assumes == "perfectly calibrated scores"


def test_calibrated_delta_method_agrees_with_resampled_rows():
    found = pm.classification_uncertainty(None, Q, method="calibrated", metrics=["tpr", "mcc"])
    rng = np.random.default_rng(0)
    drawn = [Q[rng.integers(len(Q), size=len(Q))] for _ in range(800)]
    for name in found.value:
        again = [pm.classification_uncertainty(None, q, method="calibrated", metrics=[name]).value[name] for q in drawn]
        # The sd of 800 resamples is known to 2.5 %.
        assert (found.upper[name] - found.lower[name]) / 3.92 == pytest.approx(np.std(again), rel=0.1)


def test_the_calibrators_own_variance_restores_coverage():
    rng = np.random.default_rng(1)
    bent = lambda q: expit(2 * logit(np.clip(q, 1e-12, 1 - 1e-12)))  # noqa: E731
    truth = 0.5 + 1 / np.pi  # mean of max(q, 1 - q) under the arcsine distribution
    held = {"alone": 0, "handed over": 0}
    for _ in range(120):
        q, new = rng.beta(0.5, 0.5, 200), rng.beta(0.5, 0.5, 1000)
        y = rng.uniform(size=200) < q
        more = {"metrics": "accuracy", "random_state": rng, "n_resamples": 100, "method": "calibrated"}
        # What Platt says of new rows, without the calibrator's variance and with it.
        slope, intercept = platt_lines(log_odds(bent(q)), y, np.ones((1, 200)))
        once = expit(slope[0] * log_odds(bent(new)) + intercept[0])
        for name, found in (
            ("alone", pm.classification_uncertainty(None, once, **more)),
            ("handed over", pm.classification_uncertainty(None, bent(new), calibration=(y, bent(q)), **more)),
        ):
            held[name] += found.lower["accuracy"] <= truth <= found.upper["accuracy"]
            if name == "handed over":
                assert found.assumes != "perfectly calibrated scores"
    assert held["alone"] / 120 < 0.75
    assert held["handed over"] / 120 > 0.95 - 3 * (0.95 * 0.05 / 120) ** 0.5


@pytest.mark.parametrize("case", ["a map that does not fit", "rows of another kind"])
def test_one_of_two_may_be_wrong(case):
    """Platt's map, if the rows resemble each other; the rows, if the map fits."""
    rng = np.random.default_rng(2)
    is_bent = case == "a map that does not fit"
    bent = (lambda q: q + 0.15 * np.sin(2 * np.pi * q)) if is_bent else (lambda q: expit(2 * logit(q)))
    # Beyond the calibration rows the map has to extrapolate far, and is known the less.
    of_rows, of_new = ((0.5, 0.5), (0.5, 0.5)) if is_bent else ((8.0, 8.0), (0.5, 0.5))
    truth = 0.5 + 1 / np.pi  # mean of max(q, 1 - q) under the arcsine distribution
    held = 0
    for _ in range(120):
        q, new = (
            np.clip(rng.beta(*distribution, n), 1e-9, 1 - 1e-9) for distribution, n in ((of_rows, 500), (of_new, 1000))
        )
        y = rng.uniform(size=500) < q
        found = pm.classification_uncertainty(
            None,
            np.clip(bent(new), 0, 1),
            calibration=(y, np.clip(bent(q), 0, 1)),
            method="calibrated",
            metrics="accuracy",
            n_resamples=100,
            random_state=rng,
        )
        held += found.lower["accuracy"] <= truth <= found.upper["accuracy"]
    assert held / 120 > 0.95 - 3 * (0.95 * 0.05 / 120) ** 0.5


def test_calibration_rows_without_a_mistake_do_not_make_sure():
    """What never occurred among the calibration rows counts as half a row, so that the interval is wider."""
    q = np.linspace(0.02, 0.98, 50)
    right = q > 0.5
    more = {"method": "calibrated", "metrics": "accuracy", "random_state": 0}
    found = pm.classification_uncertainty(None, q, calibration=(right, q), **more)
    counted = pm.classification_uncertainty(right, q, metrics="accuracy")
    assert counted.lower["accuracy"] == pytest.approx(0.929, abs=0.001)  # Wilson of 50 rows that are all right
    assert 0.85 < found.lower["accuracy"] < counted.lower["accuracy"] - 0.02  # without the half row it is above


def test_scores_that_all_get_the_same_answer_have_intervals_of_some_width():
    rng = np.random.default_rng(0)
    q = rng.uniform(0, 0.4, 300)
    for more in ({}, {"calibration": (rng.uniform(size=300) < q, q)}):
        found = pm.classification_uncertainty(None, q, method="calibrated", random_state=0, **more)
        assert found.value["tpr"] == 0.0
        assert found.lower["tpr"] == 0.0
        assert 0.005 < found.upper["tpr"] < 0.2
        assert "half a row was added" in found.note["tpr"]
        assert np.isnan(found.value["ppv"])
        assert (found.lower["ppv"], found.upper["ppv"]) == (0.0, 1.0)


def test_calibrated_metrics_that_are_not_defined_have_the_bounds_that_they_can_have():
    own = {"mcc": "mcc", "ppv": "ppv", "cost": lambda r: 100 * r.p_n * r.fp / (r.p_p * r.tp + r.p_n * r.fp)}
    found = pm.classification_uncertainty(None, np.linspace(0, 0.4, 50), method="calibrated", metrics=own)
    assert np.isnan(list(found.value.values())).all()
    assert [found.lower["mcc"], found.upper["mcc"], found.lower["ppv"], found.upper["ppv"]] == [-1, 1, 0, 1]
    assert np.isnan([found.lower["cost"], found.upper["cost"]]).all()


def test_calibrated_scores_of_equal_confidence_are_not_to_be_believed():
    found = pm.classification_uncertainty(
        None, [0.9, 0.9, 0.9, 0.1], method="calibrated", metrics=["accuracy", "ppv", "tpr"]
    )
    assert found.note["accuracy"] == found.note["ppv"] == "width zero: not to be believed"
    assert found.note["tpr"] == ""
    assert found.upper["tpr"] - found.lower["tpr"] > 0.01


def test_refits_in_blocks_are_those_at_once(monkeypatch):
    y, q = rows(300)
    settings = {"method": "calibrated", "calibration": (y, q), "random_state": 0}
    at_once = pm.classification_uncertainty(None, q, **settings)
    monkeypatch.setattr(unlabelled, "MAX_NUMBERS_HELD", 7 * 300)
    in_blocks = pm.classification_uncertainty(None, q, **settings)
    for bounds in ("lower", "upper"):
        found, expected = (list(getattr(one, bounds).values()) for one in (in_blocks, at_once))
        assert_allclose(found, expected, rtol=1e-5)


def test_calibration_may_be_handed_over_before_or_after_the_calibrator():
    y, q = rows(500, 5)
    bent, new = expit(2 * logit(q) + 0.5), expit(2 * logit(rows(500, 6)[1]) + 0.5)
    after, new_after = (pm.calibrated_scores(y, bent, score) for score in (bent, new))
    cut = float(pm.calibrated_scores(y, bent, [0.5])[0])  # the same decisions
    more = {"method": "calibrated", "metrics": "accuracy", "random_state": 0}
    before = pm.classification_uncertainty(None, new, calibration=(y, bent), **more)
    later = pm.classification_uncertainty(None, new_after, calibration=(y, after), threshold=cut, **more)
    for part in ("value", "lower", "upper"):
        assert getattr(before, part)["accuracy"] == pytest.approx(getattr(later, part)["accuracy"], abs=2e-3)


def test_labels_that_contradict_the_scores_warn():
    with pytest.warns(pm.CoverageWarning, match="not calibrated: labels show an accuracy that is 0.1.* lower"):
        pm.classification_uncertainty(Y, expit(5 * logit(Q)), method="calibrated")
    pm.classification_uncertainty(Y, Q, method="calibrated")  # warnings are errors


def test_confident_scores_that_are_calibrated_seldom_warn():
    """Few rows may hold no mistake at all, whose own variance is nothing."""
    rng = np.random.default_rng(4)
    warned = 0
    for _ in range(200):
        y, q = rows(100, rng, 0.05, 0.05)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            pm.classification_uncertainty(y, q, method="calibrated", metrics="accuracy")
        warned += len(seen)
    assert warned <= 6


def test_prediction_powered_uses_good_scores_and_leaves_poor_ones():
    rng = np.random.default_rng(0)
    widths, values = {"good": [], "poor": [], "labels": []}, []
    truth = 0.5 + 1 / np.pi
    held = 0
    for _ in range(150):
        y, q = rows(1500, rng)
        poor = np.where(q > 0.5, rng.uniform(0.51, 1, 1500), rng.uniform(0, 0.5, 1500))
        partly = y.astype(float)
        partly[150:] = np.nan
        for name, found in (
            ("good", pm.classification_uncertainty(partly, q, method="prediction-powered", metrics="accuracy")),
            ("poor", pm.classification_uncertainty(partly, poor, method="prediction-powered", metrics="accuracy")),
            ("labels", pm.classification_uncertainty(y[:150], q[:150], metrics="accuracy")),
        ):
            widths[name].append(found.upper["accuracy"] - found.lower["accuracy"])
            if name == "good":
                values.append(found.value["accuracy"])
                held += found.lower["accuracy"] <= truth <= found.upper["accuracy"]
    good, poor, labels = (np.mean(widths[name]) for name in ("good", "poor", "labels"))
    assert good < 0.97 * labels
    assert poor < 1.01 * labels
    assert held / 150 > 0.95 - 3 * (0.95 * 0.05 / 150) ** 0.5
    assert np.mean(values) == pytest.approx(truth, abs=3 * np.std(values) / 150**0.5)


def test_prediction_powered_counts_the_variance_of_rows_without_labels():
    """With few such rows they are an eighth of the variance; 2,000 repeats know the spread of the value to 1.6 %."""
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(2000):
        y, q = rows(250, rng, 0.2, 0.2)
        partly = np.where(np.arange(250) < 200, y, np.nan)
        found = pm.classification_uncertainty(
            partly, q, method="prediction-powered", metrics={"positives": lambda r: r.p_p}
        )
        values.append(found.value["positives"])
        errors.append((found.upper["positives"] - found.lower["positives"]) / 2 / stats.norm.ppf(0.975))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.05)


def test_prediction_powered_takes_none_for_missing_labels():
    partly = np.array(Y, dtype=object)
    partly[100:] = None
    as_nan = np.where(np.arange(len(Y)) < 100, Y, np.nan)
    found = [pm.classification_uncertainty(y, Q, method="prediction-powered").to_dict() for y in (partly, as_nan)]
    assert found[0] == found[1]


@pytest.mark.parametrize("counts", [(15, 15, 0, 0), (15, 1, 0, 3), (0, 5, 3, 2), (6, 5, 4, 0)])
def test_prediction_powered_is_never_of_width_zero(counts):
    y, _ = cells(*counts)
    rng = np.random.default_rng(0)
    low, high = rng.uniform(0.1, 0.3, len(y)), rng.uniform(0.7, 0.9, len(y))
    score = np.where(cells(*counts)[1] > 0.5, high, low)
    partly, scores = np.append(y, np.full(200, np.nan)), np.append(score, rng.uniform(size=200))
    found = pm.classification_uncertainty(partly, scores, method="prediction-powered", random_state=0)
    alone = pm.classification_uncertainty(y, score, random_state=0)
    for name in found.value:
        least = -1 if name == "mcc" else 0
        assert least <= found.lower[name] <= found.upper[name] <= 1
        assert found.upper[name] - found.lower[name] > 0.02
        assert not found.value[name] < found.lower[name]
        assert not found.value[name] > found.upper[name]
        if found.value[name] in {0.0, 1.0}:
            assert "labels alone" in found.note[name]
            assert found.value[name] == alone.value[name]


def test_prediction_powered_stays_within_what_a_metric_can_be():
    rng = np.random.default_rng(0)
    for _ in range(40):
        y, q = rows(230, rng, 0.1, 0.1)
        if y[:30].any() and not y[:30].all():
            partly = np.where(np.arange(230) < 30, y, np.nan)
            found = pm.classification_uncertainty(
                partly, q, method="prediction-powered", n_resamples=200, random_state=rng
            )
            for name, value in found.value.items():
                assert np.isnan(value) or found.lower[name] <= value <= found.upper[name], name
                assert np.isnan(value) or value <= 1.0 + 1e-12


def test_prediction_powered_with_an_outcome_that_has_no_label():
    y, score = np.array([0.0, 1.0, 0.0, np.nan, np.nan]), np.array([0.1, 0.2, 0.3, 0.9, 0.2])
    found = pm.classification_uncertainty(y, score, method="prediction-powered")
    assert (found.lower["ppv"], found.upper["ppv"]) == (0.0, 1.0)
    assert "no labelled row" in found.note["ppv"]


# Thresholds, classes, weights, own metrics ----------------------------------------------------------------------------


def test_several_thresholds_are_several_calls():
    several = pm.classification_uncertainty(Y, Q, threshold=[0.3, 0.6], method="normal")
    for i, threshold in enumerate((0.3, 0.6)):
        one = pm.classification_uncertainty(Y, Q, threshold=threshold, method="normal")
        for part in ("value", "lower", "upper"):
            assert {k: v[i] for k, v in getattr(several, part).items()} == getattr(one, part)
    assert several.method["f1"] == ["normal", "normal"]
    assert len(several.to_frame()) == 2 * len(METRICS)


def test_a_score_equal_to_the_threshold_is_negative():
    found = pm.classification_uncertainty([0, 1, 1, 0], [0.5, 0.5, 0.8, 0.2], metrics=["tpr", "tnr"])
    assert (found.value["tpr"], found.value["tnr"]) == (0.5, 1.0)


def test_a_threshold_is_as_precise_as_the_scores():
    y, score = [0, 1, 0, 1], [0.3, 0.9, 0.1, 0.8]
    for dtype in (np.float16, np.float32, np.float64):
        found = pm.classification_uncertainty(y, np.array(score, dtype), threshold=[0.3], metrics="fpr")
        assert found.value["fpr"] == [0.0]
        assert found.thresholds == (0.3,)


def test_several_classes_are_scikit_learns():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 600)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=p) for p in P]]
    z = np.array(["a", "b", "c"])[P.argmax(axis=1)]
    found = pm.classification_uncertainty(y, P, random_state=0)
    expected = {
        "accuracy": sk.accuracy_score(y, z),
        "balanced_accuracy": sk.balanced_accuracy_score(y, z),
        "mcc": sk.matthews_corrcoef(y, z),
        "macro_f1": sk.f1_score(y, z, average="macro"),
        "micro_f1": sk.f1_score(y, z, average="micro"),
        "macro_ppv": sk.precision_score(y, z, average="macro"),
        "tpr[b]": sk.recall_score(y, z, labels=["b"], average=None)[0],
    }
    assert_allclose([found.value[name] for name in expected], list(expected.values()), rtol=1e-12)
    assert found.method["tpr[b]"] == "wilson"
    for name in expected:
        assert found.lower[name] < found.value[name] < found.upper[name]
    # The overall accuracy is a fraction of rows; by bootstrap (micro F1 is the same number) it is as wide.
    widths = [found.upper[name] - found.lower[name] for name in ("accuracy", "micro_f1")]
    assert widths[0] == pytest.approx(widths[1], rel=0.06)


def test_many_classes_need_little_memory():
    """Each cell is a true negative of nearly all classes: to write that down takes the cube of their number."""
    k = 150
    y = np.arange(3 * k) % k
    z = np.where(np.arange(3 * k) % 7 == 0, (y + 1) % k, y)
    tracemalloc.start()
    found = pm.classification_uncertainty(
        y, np.eye(k)[z], metrics=["accuracy", "tnr"], method="wilson", n_resamples=200
    )
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    tnr = [np.mean(z[y != label] != label) for label in range(k)]
    assert_allclose([found.value[f"tnr[{label}]"] for label in range(k)], tnr)


def test_several_classes_all_right():
    y = np.repeat([0, 1, 2], 10)
    found = pm.classification_uncertainty(y, np.eye(3)[y], method="bootstrap", random_state=0)
    assert found.method["accuracy"] == "clopper-pearson"
    assert found.value["macro_f1"] == 1.0
    assert found.lower["macro_f1"] < 0.99
    assert "half a row" in found.note["micro_f1"]


@pytest.mark.parametrize("missed", [0, 5])
def test_a_class_that_is_always_right_or_never_is_not_sure(missed):
    y = np.repeat([0, 1, 2], [100, 100, 5])
    z = y.copy()
    z[:10], z[205 - missed :] = 1, 0
    found = pm.classification_uncertainty(y, np.eye(3)[z], metrics=["tpr", "balanced_accuracy"], random_state=0)
    for name in ("macro_tpr", "balanced_accuracy"):
        # Wilson's interval of the five rows alone is .43 wide, which is .14 in the average.
        assert 0.12 < found.upper[name] - found.lower[name] < 0.35
        assert 0.0 <= found.lower[name] <= found.value[name] <= found.upper[name] <= 1.0
        assert found.method[name] == "jackknife"
    assert not found.note["micro_tpr"]


@pytest.mark.parametrize(("k", "n", "rare"), [(3, 400, 5), (10, 200, 20)])
def test_coverage_of_averages_over_classes(k, n, rare):
    """Few rows in the last class, or in each of many classes, where padding must not move the average."""
    rng = np.random.default_rng(3)
    fraction = np.append(np.full(k - 1, (1 - rare / n) / (k - 1)), rare / n)
    right = np.append(np.full(k - 1, 0.95), 0.9)
    distribution = np.diag(fraction * right) + np.roll(np.diag(fraction * (1 - right)), 1, axis=1)
    labels, table = np.divmod(np.arange(k * k), k)
    held = []
    while len(held) < 100:
        counts = rng.multinomial(n, distribution.ravel())
        y, z = np.repeat(labels, counts), np.repeat(table, counts)
        if len(np.unique(y)) == k:
            found = pm.classification_uncertainty(
                y, np.eye(k)[z], metrics="balanced_accuracy", n_resamples=300, random_state=rng
            )
            held.append(found.lower["balanced_accuracy"] <= right.mean() <= found.upper["balanced_accuracy"])
    assert np.mean(held) > 0.95 - 3 * (0.95 * 0.05 / 100) ** 0.5


def zipf(k, right):
    """Cells of k classes of which the i-th is i times as rare as the first, and mistakes go where rows are."""
    fraction = 1 / np.arange(1, k + 1) / np.sum(1 / np.arange(1, k + 1))
    wrong = np.tile(fraction, (k, 1)) * (1 - np.eye(k))
    return fraction[:, None] * (np.diag(right) + (1 - right)[:, None] * wrong / wrong.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100])
def test_averages_over_classes_with_few_rows_or_none(n):
    """Averages are those of all ten classes: the bootstrap's intervals held them in .87 to .91 of samples of 50."""
    k, right = 10, np.linspace(0.95, 0.4, 10)
    distribution = zipf(k, right)
    tp, called = np.diag(distribution), distribution.sum(axis=0)
    truth = {
        "macro_tpr": right.mean(),
        "macro_ppv": np.mean(tp / called),
        "macro_f1": np.mean(2 * tp / (called + distribution.sum(axis=1))),
        "balanced_accuracy": right.mean(),
    }
    rng = np.random.default_rng(4)
    labels, table = np.divmod(np.arange(k * k), k)
    held = {name: [] for name in truth}
    for _ in range(200):
        counts = rng.multinomial(n, distribution.ravel())
        y, z = np.repeat(labels, counts), np.repeat(table, counts)
        found = pm.classification_uncertainty(
            y, np.eye(k)[z], labels=range(k), metrics=["tpr", "ppv", "f1", "balanced_accuracy"], n_resamples=200
        )
        for name, true in truth.items():
            held[name].append(found.lower[name] <= true <= found.upper[name])
    assert min(map(np.mean, held.values())) > 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


def test_two_rows_of_a_class_decide_an_average():
    """What they leave open is a third of Wilson's interval, however sure the other two classes are."""
    y = np.repeat([0, 1, 2], [1000, 1000, 2])
    z = np.where(y == 2, 0, y)
    found = pm.classification_uncertainty(y, np.eye(3)[z], metrics="tpr", n_resamples=200)
    _, alone = proportion_confint(0, 2, 0.05, "wilson")
    assert found.upper["macro_tpr"] - found.value["macro_tpr"] > 0.95 * alone / 3


def test_a_class_without_rows_may_be_anything():
    y, z = np.repeat([0, 1], 50), np.where(np.arange(100) % 10 == 0, 2, np.repeat([0, 1], 50))
    three = pm.classification_uncertainty(y, np.eye(3)[z], labels=[0, 1, 2], metrics="tpr", n_resamples=200)
    assert three.value["macro_tpr"] == pytest.approx(0.9)
    assert "not defined for 1 of 3 classes, which are left out; the interval allows" in three.note["macro_tpr"]
    low, high = 0.9 * 2 / 3, (0.9 * 2 + 1) / 3  # were it always wrong, or always right
    assert low - 0.1 < three.lower["macro_tpr"] < low
    assert high < three.upper["macro_tpr"] < high + 0.1


@pytest.mark.parametrize("name", ["tpr", "ppv", "f1", "mcc", "npv"])
def test_variance_of_averages_is_that_of_rows_left_out(name):
    rng = np.random.default_rng(0)
    k, against = 4, _one_against_rest(4)
    counts = rng.integers(1, 5, k * k).astype(float)
    found = _Jackknife.of(METRICS[name], Cells(counts, counts, counts), [against(counts)] * 2)
    each, codes = [], np.repeat(np.arange(k * k), counts.astype(int))
    for i in range(len(codes)):
        left = np.bincount(np.delete(codes, i), minlength=k * k).astype(float)
        each.append(METRICS[name](Rates.of(against(left))))
    n, each = len(codes), np.array(each)
    assert_allclose(found.variance, (n - 1) * each.mean(axis=1).var(), rtol=1e-9)
    assert_allclose(found.variances, (n - 1) * each.var(axis=0), rtol=1e-9)
    assert_allclose(found.bias, (n - 1) * (each.mean() - found.mean), rtol=1e-6, atol=1e-12)


def test_averages_matter_by_ratios_of_weights_and_by_rows_that_count():
    rng = np.random.default_rng(0)
    y, P = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    how = {"metrics": ["tpr", "f1"], "n_resamples": 200, "random_state": 0}
    plain = pm.classification_uncertainty(y, P, **how)
    for weights in (np.full(200, 3.0), np.full(200, 1e-200)):
        same = pm.classification_uncertainty(y, P, sample_weight=weights, **how)
        assert_allclose(list(same.upper.values()), list(plain.upper.values()), rtol=1e-9)
    unequal = pm.classification_uncertainty(y, P, sample_weight=rng.exponential(size=200) ** 2, **how)
    for name in ("macro_tpr", "macro_f1"):
        assert unequal.upper[name] - unequal.lower[name] > 1.3 * (plain.upper[name] - plain.lower[name])


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("method", [*METHODS, "prediction-powered", "calibrated"])
def test_one_class_is_enough_where_labels_name_both(label, method):
    y, score = np.full(60, label), np.linspace(0.01, 0.7, 60)
    if method == "prediction-powered":
        y = np.where(np.arange(60) < 30, y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)  # calibrated scores would be
        found = pm.classification_uncertainty(y, score, labels=[0, 1], method=method, random_state=0)
    if method == "calibrated":
        return
    known, missing = ("tnr", "tpr") if label == 0 else ("tpr", "tnr")
    assert found.value[known] == pytest.approx(found.value["accuracy"])
    assert np.isnan(found.value[missing])
    assert (found.lower[missing], found.upper[missing]) == (0.0, 1.0)
    assert (found.lower["balanced_accuracy"], found.upper["balanced_accuracy"]) == (0.0, 1.0)
    assert (found.lower["mcc"], found.upper["mcc"]) == (-1.0, 1.0)
    assert "one of the two classes has no rows" in found.note["mcc"]


def test_one_class_of_three():
    rng = np.random.default_rng(0)
    found = pm.classification_uncertainty(np.zeros(30), rng.dirichlet(np.ones(3), 30), labels=[0, 1, 2])
    assert found.value["tpr[0]"] == found.value["accuracy"] == found.value["macro_tpr"]
    assert (found.lower["tpr[1]"], found.upper["tpr[1]"]) == (0.0, 1.0)
    assert found.lower["macro_tpr"] < found.value["accuracy"] / 3
    assert found.upper["macro_tpr"] > (found.value["accuracy"] + 2) / 3


def test_averages_say_which_classes_they_leave_out():
    y = np.repeat([0, 1, 2], 20)
    z = np.where(y == 2, np.arange(60) % 2, np.where(np.arange(60) % 10 == 0, 1 - y, y))
    found = pm.classification_uncertainty(y, np.eye(3)[z], metrics=["tpr", "ppv"], random_state=0)
    assert "not defined for 1 of 3 classes, which are left out" in found.note["macro_ppv"]
    assert "left out" not in found.note["macro_tpr"]


def test_scores_about_the_other_class_make_a_warning():
    """Of labels 1 and 2, `predict_proba(X)[:, 1]` is about 2, and pos_label is 1 unless said otherwise."""
    rng = np.random.default_rng(0)
    score = rng.random(400)
    label = np.where(rng.random(400) < score, 2, 1)
    with pytest.warns(UserWarning, match=r"y_score is lower where the label is 1 .*Then give that as pos_label"):
        pm.classification_uncertainty(label, score)
    pm.classification_uncertainty(label, score, pos_label=2)
    for chance in rng.random((20, 400)):  # scores that know nothing are not accused
        pm.classification_uncertainty(label, chance)
    pm.classification_uncertainty([0, 1, 1, 0, 0], [0.63, 0.16, 0.15, 0.77, 0.99])  # too few to say
    pm.classification_uncertainty(np.arange(1000) < 50, np.full(1000, 0.1))  # means differ by rounding
    where = rng.random(400) < 0.5
    mixed = np.where(where, label, 3 - label)
    pm.classification_uncertainty(mixed, score, pos_label=2, sample_weight=where)  # the rows that count are right
    with pytest.warns(UserWarning, match="y_score is lower"):
        pm.classification_uncertainty(mixed, score, pos_label=2, sample_weight=~where)
    rows = {"method": "calibrated", "calibration": (label, score)}
    with pytest.warns(UserWarning, match=r"calibration score is lower where the label is 1 .*Then give that") as told:
        pm.classification_uncertainty(None, score, **rows)
    assert told[0].filename == __file__
    pm.classification_uncertainty(None, score, pos_label=2, **rows)


def test_skewed_scores_that_know_nothing_are_not_accused():
    """Means of ten such scores were four of their own standard errors too low in .15 of samples."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        pm.classification_uncertainty(np.arange(400) < 10, expit(rng.normal(-5, 2, 400)), metrics="accuracy")
    score = np.sort(expit(rng.normal(-5, 2, 400)))
    with pytest.warns(UserWarning, match="y_score is lower where the label is True .median"):
        pm.classification_uncertainty(np.arange(400) < 10, score, metrics="accuracy")


def test_labels_give_the_order_of_columns_and_pos_label_the_positive_class():
    y = np.where(Y == 1, "no", "yes")
    one = pm.classification_uncertainty(y, Q, pos_label="no", method="normal").value
    two = pm.classification_uncertainty(
        y, np.column_stack([1 - Q, Q]), labels=["yes", "no"], pos_label="no", method="normal"
    ).value
    assert one == two == pm.classification_uncertainty(Y, Q, method="normal").value
    assert pm.classification_uncertainty(None, Q, pos_label="no", method="calibrated").value["accuracy"] > 0.5


def test_two_columns_without_labels_are_those_of_sorted_classes():
    """Without y_true the classes are those of the calibration rows, and where nothing names them they are asked for."""
    both, y = np.column_stack([Q, 1 - Q]), np.where(Y == 1, "a", "b")
    how = {"method": "calibrated", "metrics": "tpr", "threshold": 0.3, "random_state": 0}
    one = pm.classification_uncertainty(None, Q, pos_label="a", calibration=(y, Q), **how)
    two = pm.classification_uncertainty(None, both, pos_label="a", calibration=(y, Q), **how)
    assert two.to_dict() == one.to_dict()
    bare = pm.classification_uncertainty(None, Q, pos_label="a", **how).to_dict()
    assert pm.classification_uncertainty(None, both, pos_label="a", labels=["a", "b"], **how).to_dict() == bare
    assert pm.classification_uncertainty(None, both[:, ::-1], **how).to_dict() == bare
    with pytest.raises(ValueError, match=r"nothing says which of them is about pos_label='a'\. Give labels"):
        pm.classification_uncertainty(None, both, pos_label="a", **how)


def test_weights_matter_by_their_ratios_only():
    plain, doubled = (
        pm.classification_uncertainty(Y, Q, sample_weight=weights, random_state=0)
        for weights in (None, np.full(400, 2.0))
    )
    for part in ("value", "lower", "upper"):
        assert_allclose(list(getattr(plain, part).values()), list(getattr(doubled, part).values()), rtol=1e-9)
    half = (np.arange(400) < 200).astype(float)
    kept = pm.classification_uncertainty(Y[:200], Q[:200], random_state=0)
    zeros = pm.classification_uncertainty(Y, Q, sample_weight=half, random_state=0)
    for part in ("value", "lower", "upper"):
        assert_allclose(list(getattr(kept, part).values()), list(getattr(zeros, part).values()), rtol=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_weights_of_any_size(size):
    plain, scaled = (
        pm.classification_uncertainty(Y, Q, sample_weight=np.full(400, weight), random_state=0)
        for weight in (1.0, size)
    )
    assert plain.to_dict() == scaled.to_dict()


def test_a_mistake_of_small_weight_makes_nothing_surer():
    y, score = cells(5, 5, 1, 0)
    for method in ("wilson", "bootstrap"):
        widths = []
        for weight in (0.0, 0.001, 0.01):
            found = pm.classification_uncertainty(
                y, score, sample_weight=[1.0] * 10 + [weight], metrics=["tpr", "f1"], method=method, random_state=0
            )
            widths.append([found.upper[name] - found.lower[name] for name in found.value])
        assert "half a row" in found.note["f1"]
        # The bootstrap of a few rows is coarse.
        assert_allclose(widths, np.broadcast_to(widths[0], (3, 2)), rtol=0.25)
    # Weights 4, 1 and 1: Kish's 36 / 18, where the variance of the fraction alone would say 3 rows.
    assert proportion((0,), (0, 1), np.array([16.0, 2.0]), np.array([4.0, 2.0])).n == pytest.approx(2.0)


@pytest.mark.parametrize("method", METHODS)
def test_unequal_weights_cost_certainty_as_simulation_says(method):
    rng = np.random.default_rng(3)
    found, widths = {"accuracy": [], "f1": []}, {"accuracy": [], "f1": []}
    for _ in range(300):
        y, q = rows(300, rng)
        weights = rng.exponential(size=300)
        one = pm.classification_uncertainty(
            y, q, method=method, metrics=list(found), sample_weight=weights, n_resamples=500, random_state=rng
        )
        for name, values in found.items():
            values.append(one.value[name])
            widths[name].append(one.upper[name] - one.lower[name])
    for name, values in found.items():
        # The sd of 300 draws is known to 4 %; Clopper-Pearson is wider on purpose.
        expected = 3.92 * np.std(values)
        assert 0.88 * expected < np.mean(widths[name]) < 1.17 * expected


@pytest.mark.parametrize("method", [*METHODS, "calibrated", "prediction-powered"])
def test_a_metric_of_ones_own(method):
    y, q = rows(3000)
    y = np.where(np.arange(3000) < 1000, y, np.nan) if method == "prediction-powered" else y
    own = {"twice": lambda r: 2 * (r.p_n * r.tn + r.p_p * r.tp), "g-mean": lambda r: np.sqrt(r.tp * r.tn)}
    found = pm.classification_uncertainty(y, q, method=method, metrics={**own, "acc": "accuracy"}, random_state=0)
    assert found.value["twice"] == pytest.approx(2 * found.value["acc"])
    widths = {name: found.upper[name] - found.lower[name] for name in found.value}
    # Wilson's and the bootstrap's widths differ a little.
    assert widths["twice"] == pytest.approx(2 * widths["acc"], rel=0.05)
    assert 0 < widths["g-mean"] < 1


def test_a_metric_of_ones_own_that_resamples_seldom_have_is_not_defined():
    y, q = rows(200)
    tpr = float(sk.recall_score(y, q > 0.5))
    own = {"exactly": lambda r: np.where(np.abs(r.tp - tpr) < 1e-9, 1.0, np.nan), "never": lambda r: r.tp * np.nan}
    found = pm.classification_uncertainty(y, q, method="bootstrap", metrics=own, random_state=0)
    assert found.value["exactly"] == 1.0
    assert np.isnan([found.lower[name] for name in own] + [found.upper[name] for name in own]).all()
    assert {row["note"] for row in found.to_dict()["rows"]} == {"not defined for these rows"}


def test_one_column_of_scores_is_that_of_two_classes():
    y, q = rows(200)
    one, other = (pm.classification_uncertainty(y, score, random_state=0) for score in (q, q[:, None]))
    assert one.to_dict() == other.to_dict()
    rounded = np.column_stack([1 - q, q]).astype(np.float16)
    assert pm.classification_uncertainty(y, rounded, metrics="accuracy").value["accuracy"] > 0.5


def test_a_name_of_ones_own_changes_nothing():
    names = {"precision": "ppv", "hits": "accuracy", "phi": "mcc", "recalls": "balanced_accuracy"}
    P = np.column_stack([Q / 2, 1 - Q, Q / 2])
    for y, score in ((Y, Q), (np.where(Q < 0.2, 2, Y), P)):
        own = pm.classification_uncertainty(y, score, metrics=names, random_state=0)
        known = pm.classification_uncertainty(y, score, metrics=list(names.values()), random_state=0)
        assert list(own.method.values()) == list(known.method.values())
        assert list(own.lower.values()) == list(known.lower.values())
        assert {"hits", "phi", "recalls"} <= set(own.value)


@pytest.mark.parametrize("name", ["accuracy", "mcc", "balanced_accuracy"])
def test_a_metric_of_ones_own_is_not_taken_for_the_known_one_of_that_name(name):
    y = np.arange(30) % 3
    found = pm.classification_uncertainty(y, np.eye(3)[y[::-1]], metrics={name: lambda r: r.tp + 7.0}, random_state=0)
    assert found.value[f"{name}[1]"] == 8.0
    assert name not in found.value  # there is none of all classes


def test_metrics_by_function_and_name():
    def youden(r):
        return r.tp + r.tn - 1

    assert list(pm.classification_uncertainty(Y, Q, metrics=["f1", youden], random_state=0).value) == ["f1", "youden"]
    for wrong in ("f2", ["f1", lambda r: r.tp], [], [3]):
        with pytest.raises(ValueError, match="metrics"):
            pm.classification_uncertainty(Y, Q, metrics=wrong)
    with pytest.raises(TypeError, match=r'derivative is not known.*method="bootstrap"'):
        pm.classification_uncertainty(*rows(2000), metrics={"low": lambda r: min(r.tp, r.tn)}, method="normal")
    with pytest.raises(ValueError, match="'odd' must return a number"):
        pm.classification_uncertainty(Y, Q, metrics={"odd": lambda r: "high"})


def test_a_single_positive():
    y, score = np.zeros(40, int), np.linspace(0, 1, 40)
    y[-1] = 1
    for method in METHODS:
        found = pm.classification_uncertainty(y, score, method=method, random_state=0)
        assert found.value["tpr"] == 1.0
        assert found.value["ppv"] == 1 / 20


# The result -----------------------------------------------------------------------------------------------------------


def test_result_as_frame_dict_text_and_html():
    found = pm.classification_uncertainty(
        *cells(20, 20, 1, 0), metrics={"<b>": lambda r: r.tp, "f1": "f1"}, random_state=0
    )
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["threshold", "metric", "value", "lower", "upper", "method", "note"]
    assert found.to_frame("polars").shape == frame.shape
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert repr(found).startswith("41 rows, intervals for 95 %\n<b>")
    assert "half a row" in repr(found)
    nothing = pm.classification_uncertainty([0, 1], [0.1, 0.2], metrics="ppv")
    assert nothing.to_dict()["rows"][0]["value"] is None
    assert nothing.note["ppv"] == "no rows to take a proportion of"


def test_seed_decides():
    first, second, third = (
        pm.classification_uncertainty(Y, Q, metrics="f1", random_state=seed).lower["f1"] for seed in (1, 1, 2)
    )
    assert first == second != third


NAN = np.where(np.arange(400) == 7, np.nan, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_score": Q * 1.5}, r"y_score must be scores between 0 and 1; y_score\[\d+\] is 1\."),
        ({"y_score": np.where(np.arange(400) == 3, np.nan, Q)}, r"y_score\[3\] is nan"),
        ({"y_score": Q[:10]}, "one label for each of the 10 rows of scores; got shape \\(400,\\)"),
        ({"y_score": np.zeros((400, 2, 2))}, "y_score must have shape"),
        ({"y_score": np.column_stack([Q / 2, Q])}, r"must add up to 1; row \d+ adds up to .*the positive class alone"),
        ({"y_score": ["a"] * 400}, "y_score must hold real numbers"),
        ({"y_score": []}, "at least one row"),
        ({"y_true": np.arange(400)}, "y_true holds 400 classes"),
        ({"y_true": np.ones(400)}, r"one class only .*Name all classes, such as labels=\[0, 1\]"),
        ({"y_true": NAN}, 'y_true has 1 missing label, the first in row 7.*"prediction-powered"'),
        ({"y_true": NAN, "method": "calibrated"}, "missing label"),
        ({"y_true": None}, 'y_true is None, which only method="calibrated"'),
        ({"y_true": np.array(["a", 1] * 200, object)}, "cannot be sorted"),
        ({"pos_label": 7}, r"pos_label=7 is not one of the classes \[0, 1\]"),
        ({"labels": [0, 1, 2]}, "labels must name the 2 classes"),
        ({"labels": [0, 5]}, "do not fit labels"),
        ({"method": "magic"}, "method must be one of wilson"),
        ({"confidence_level": "a"}, "confidence_level must lie between 0 and 1; got 'a'"),
        ({"threshold": "a"}, "threshold must hold real numbers"),
        ({"sample_weight": ["a", "b"]}, "sample_weight must hold real numbers"),
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1; got 95"),
        ({"threshold": 1.5}, "threshold must be a number"),
        ({"threshold": [[0.5]]}, "threshold must be a number"),
        ({"n_resamples": 10}, "n_resamples must be an integer of at least 100"),
        ({"n_resamples": 199}, r"n_resamples=199 is too few for the bootstrap at 95 %.*Set n_resamples=200 or more"),
        ({"confidence_level": 0.999}, r"n_resamples=2000 is too few .* at 99.9 %.*Set n_resamples=10000 or more"),
        ({"confidence_level": 0.9999, "method": "bootstrap", "metrics": "accuracy"}, "Set n_resamples=100000 or more"),
        ({"sample_weight": np.full(400, -1.0)}, "sample_weight must be not negative"),
        ({"sample_weight": np.ones(3)}, "one weight for each of the 400 rows"),
        ({"sample_weight": np.ones(400), "method": "prediction-powered"}, "sample_weight cannot be used"),
        ({"calibration": (Y, Q)}, 'calibration is for method="calibrated"'),
        ({"calibration": 3, "method": "calibrated"}, "calibration must be a pair"),
        ({"calibration": (Y, 2 * Q), "method": "calibrated"}, "calibration score must be scores between 0 and 1"),
        (
            {"calibration": (np.ones(400), Q), "method": "calibrated"},
            "calibration needs one score per row and two classes",
        ),
        ({"calibration": (2 - Y, 1 - Q), "method": "calibrated"}, r"two classes, 1 and 0; got .* classes \[1, 2\]"),
        ({"method": "prediction-powered"}, "needs rows with and without a label"),
        ({"y_score": np.full((400, 3), 0.3), "labels": [0, 1, 2], "method": "calibrated"}, "needs two classes"),
        ({"y_score": np.full((400, 3), 0.3), "labels": [0, 1, 2], "threshold": 0.4}, "has no meaning for 3 classes"),
        ({"y_score": np.full((400, 3), 0.3)}, "do not fit scores for 3 classes"),
    ],
)
def test_bad_input(change, message):
    given = {"y_true": Y, "y_score": Q} | change
    with pytest.raises(ValueError, match=message):
        pm.classification_uncertainty(given.pop("y_true"), given.pop("y_score"), **given)


@pytest.mark.parametrize(
    ("level", "n_resamples"), [(0.9, 100), (0.95, 200), (0.99, 2000), (0.995, 2000), (0.999, 10_000)]
)
def test_enough_resamples_for_the_level(level, n_resamples):
    found = pm.classification_uncertainty(Y, Q, confidence_level=level, n_resamples=n_resamples, random_state=0)
    assert found.method["f1"] == "bootstrap"
    assert found.lower["f1"] < found.value["f1"] < found.upper["f1"]


@pytest.mark.parametrize("method", ["wilson", "clopper-pearson", "normal"])
def test_fractions_need_no_resamples(method):
    found = pm.classification_uncertainty(Y, Q, confidence_level=0.99999, metrics=["accuracy", "tpr"], method=method)
    assert set(found.method.values()) == {method}


def test_precision_and_recall_by_their_usual_names():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=200)
    y = rng.uniform(size=200) < score
    names = {"precision": "ppv", "recall": "tpr", "sensitivity": "tpr", "specificity": "tnr"}
    found = pm.classification_uncertainty(y, score, metrics=list(names))
    known = pm.classification_uncertainty(y, score)
    assert found.estimates == [{name: known.estimates[0][other] for name, other in names.items()}]


def test_one_row_and_one_missing_label_are_said_in_the_singular():
    assert repr(pm.classification_uncertainty([1], [0.7], labels=[0, 1])).startswith("1 row, intervals")
    with pytest.raises(ValueError, match="y_true has 1 missing label, the first in row 1"):
        pm.classification_uncertainty([1, np.nan], [0.7, 0.2])


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "f1[cat]"])
def test_averages_and_single_classes_come_with_their_metric(name):
    with pytest.raises(ValueError, match=rf"ask for 'f1' instead of '{re.escape(name)}'.*'macro_f1', 'micro_f1' and"):
        pm.classification_uncertainty([0, 1], [0.2, 0.7], metrics=name)
