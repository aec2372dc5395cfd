"""The paper's four neurons of a classifier: what they see, how their widths are propagated, and the plot."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pimeter as pm
from pimeter.classification.derivatives import derivatives
from pimeter.classification.rates import METRICS, Rates
from pimeter.paper import outcome_errors, plot_outcomes, score_spread
from pimeter.paper.outcomes import propagated


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.beta(0.5, 0.5, n)
    return (rng.uniform(size=n) < q).astype(int), q


Y, SCORE = rows()


def test_outcome_errors_part_rows_by_outcome():
    y, score = [0, 0, 1, 1, 1, 0], [0.1, 0.7, 0.6, 0.2, 0.4, 0.4]
    tn, tp, fn, fp = outcome_errors(y, score, threshold=0.4)
    assert_allclose(tn, [0.1, 0.4])
    assert_allclose(tp, [0.4])
    assert_allclose(fn, [0.2, 0.0])
    assert_allclose(fp, [0.3])


@pytest.mark.parametrize(
    ("y", "score", "threshold", "message"),
    [
        ([0, 2], [0.1, 0.2], 0.5, r"y_true must be 0 or 1; y_true\[1\] is 2"),
        ([0, 1], [0.1, 1.2], 0.5, r"y_score must be between 0 and 1; y_score\[1\] is 1.2"),
        ([0, 1], [0.1, np.nan], 0.5, "y_score must be finite"),
        ([0, 1], [0.1], 0.5, "must both have shape"),
        ([0, 1], [0.1, 0.2], 2, "threshold must lie between 0 and 1"),
    ],
)
def test_outcome_errors_refuse(y, score, threshold, message):
    with pytest.raises(ValueError, match=message):
        outcome_errors(y, score, threshold=threshold)


def test_propagation_is_the_papers_for_ppv_and_npv():
    rng = np.random.default_rng(0)
    for _ in range(200):
        tn, tp, p_p = rng.uniform(0.05, 0.95, 3)
        fn, fp, p_n = 1 - tp, 1 - tn, 1 - p_p
        d_tn, d_tp, d_fn, d_fp = delta = rng.uniform(0, 0.2, 4)
        at = np.array([tn, tp, fn, fp])
        ppv, npv = tp * p_p / (tp * p_p + fp * p_n), tn * p_n / (fn * p_p + tn * p_n)
        odds = p_n / p_p
        printed = odds * ppv**2 * (fp / tp * d_tp / tp + d_fp / tp + odds * ppv * (d_fp / tp) ** 2)
        found = propagated(lambda *r, p=(p_n, p_p): METRICS["ppv"](Rates(*r, *p)), at, delta)
        assert abs(found - printed) < 1e-12 * max(printed, 1)
        odds = p_p / p_n
        printed = odds * npv**2 * (fn / tn * d_tn / tn + d_fn / tn + odds * npv * (d_fn / tn) ** 2)
        found = propagated(lambda *r, p=(p_n, p_p): METRICS["npv"](Rates(*r, *p)), at, delta)
        assert abs(found - printed) < 1e-12 * max(printed, 1)


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_propagation_is_near_the_largest_change_over_the_corners(name):
    rng = np.random.default_rng(1)
    for _ in range(100):
        tn, tp = rng.uniform(0.6, 0.95, 2)
        p_p = rng.uniform(0.2, 0.8)
        at, delta = np.array([tn, tp, 1 - tp, 1 - tn]), rng.uniform(0.002, 0.02, 4)

        def metric(*r, p_p=p_p):
            return METRICS[name](Rates(*r, 1 - p_p, p_p))

        corners = [metric(*(at + delta * np.array(signs))) for signs in itertools.product((-1, 1), repeat=4)]
        largest = np.abs(np.array(corners) - metric(*at)).max()
        assert propagated(metric, at, delta) == pytest.approx(largest, rel=0.1)
        # Independent small changes mostly cancel: the paper's sum is a worst case.
        assert np.sqrt(np.sum((derivatives(metric, at)[0] * delta) ** 2)) < largest


def test_spread_of_scores_is_the_papers():
    y, q = rows(4000)
    found = score_spread(y, q)
    w_tn, w_tp, w_fn, w_fp = (pm.quantile(e, 0.95, reflect=True) for e in outcome_errors(y, q))
    half = {name: (found.upper[name] - found.lower[name]) / 2 for name in found.value}
    assert half["accuracy"] == pytest.approx((1 - y.mean()) * w_tn / 2 + y.mean() * w_tp / 2, rel=1e-12)
    assert [half[name] for name in ("tnr", "tpr", "fnr", "fpr")] == pytest.approx(
        [w_tn / 2, w_tp / 2, w_fn / 2, w_fp / 2]
    )
    assert all("not a confidence interval" in note for note in found.note.values())


def test_spread_of_scores_does_not_shrink_with_more_rows_but_wilson_does():
    widths = {}
    for method, n in itertools.product((score_spread, pm.classification_uncertainty), (1000, 16_000)):
        found = method(*rows(n), metrics="accuracy")
        widths[method, n] = found.upper["accuracy"] - found.lower["accuracy"]
    assert widths[score_spread, 16_000] == pytest.approx(widths[score_spread, 1000], rel=0.1)
    assert widths[pm.classification_uncertainty, 16_000] == pytest.approx(
        widths[pm.classification_uncertainty, 1000] / 4, rel=0.1
    )


def test_spread_of_scores_with_too_few_of_an_outcome_is_nan_and_says_so():
    y, score = np.repeat([0, 1, 1, 0], [100, 100, 5, 30]), np.repeat([0.2, 0.8, 0.2, 0.8], [100, 100, 5, 30])
    found = score_spread(y, score)
    assert np.isnan(found.lower["fnr"])
    assert np.isnan(found.upper["f1"])
    assert "5 false negatives" in found.note["fnr"]
    assert np.isfinite([found.lower["accuracy"], found.upper["fpr"]]).all()


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_is_enough_where_labels_name_both(label):
    found = score_spread(np.full(60, label), np.linspace(0.01, 0.7, 60), labels=[0, 1])
    known, missing = ("tnr", "tpr") if label == 0 else ("tpr", "tnr")
    assert found.value[known] == pytest.approx(found.value["accuracy"])
    assert np.isnan(found.value[missing])


def test_a_metric_of_ones_own():
    own = {"twice": lambda r: 2 * (r.p_n * r.tn + r.p_p * r.tp), "g-mean": lambda r: np.sqrt(r.tp * r.tn)}
    found = score_spread(*rows(3000), metrics={**own, "acc": "accuracy"})
    assert found.value["twice"] == pytest.approx(2 * found.value["acc"])
    widths = {name: found.upper[name] - found.lower[name] for name in found.value}
    assert widths["twice"] == pytest.approx(2 * widths["acc"], rel=1e-9)
    assert 0 < widths["g-mean"] < 1
    with pytest.raises(TypeError, match=r'derivative is not known.*method="bootstrap"'):
        score_spread(*rows(2000), metrics={"low": lambda r: min(r.tp, r.tn)})


def test_thresholds_columns_and_the_positive_class():
    both = np.column_stack([1 - SCORE, SCORE])
    several = score_spread(Y, both, threshold=[0.3, 0.6], metrics="accuracy")
    for i, threshold in enumerate((0.3, 0.6)):
        one = score_spread(Y, SCORE, threshold=threshold, metrics="accuracy")
        assert several.upper["accuracy"][i] == one.upper["accuracy"]
    named = score_spread(np.where(Y == 1, "yes", "no"), SCORE, pos_label="yes")
    assert named.to_dict() == score_spread(Y, SCORE).to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1; got 95"),
        ({"threshold": 1.5}, "threshold must be a number"),
        ({"y_score": np.full((400, 3), 0.3)}, "needs two classes"),
        ({"y_true": np.where(np.arange(400) < 3, np.nan, Y)}, "3 missing labels, the first in row 0"),
        ({"metrics": []}, "metrics is empty"),
    ],
)
def test_bad_input(change, message):
    given = {"y_true": Y, "y_score": SCORE} | change
    with pytest.raises(ValueError, match=message):
        score_spread(given.pop("y_true"), given.pop("y_score"), **given)


def test_swapped_scores_are_told():
    with pytest.warns(UserWarning, match="y_score is lower where the label is 1"):
        score_spread(Y, 1 - SCORE)


def test_outcomes_are_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    axes = plot_outcomes(Y, SCORE, threshold=0.4)
    tn, tp, fn, fp = outcome_errors(Y, SCORE, threshold=0.4)
    titles = [ax.get_title(loc="left") for ax in axes.ravel()]
    counts = [len(tn), len(fp), len(fn), len(tp)]
    assert all(f": {n:,} of" in title for title, n in zip(titles, counts, strict=True))
    for ax in axes.ravel():
        assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
    left = [bar.get_x() for bar in axes[0, 0].patches if bar.get_height()]
    assert max(left) < 0.4
    own = plt.subplots(2, 2)[1]
    assert plot_outcomes(Y, SCORE, axes=own)[1, 1] is own[1, 1]
    with pytest.raises(ValueError, match="axes must be four"):
        plot_outcomes(Y, SCORE, axes=own[0])
    plt.close("all")
