"""Calibrators on plain scores, the calibration error, and plots."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import pimeter as pm
from pimeter.classification.calibration import reliability
from pimeter.classification.consistency import positives_pmf
from pimeter.classification.platt import log_odds, platt_lines

mpl.use("Agg")


def rows(n, seed=0, slope=1.0):
    """Labels, and scores that are as calibrated as the slope is near 1."""
    rng = np.random.default_rng(seed)
    q = rng.beta(0.8, 0.8, n)
    return rng.uniform(size=n) < q, expit(slope * logit(np.clip(q, 1e-9, 1 - 1e-9)))


Y, SCORE = rows(2000, slope=3.0)
Y_NEW, SCORE_NEW = rows(2000, 1, slope=3.0)


def test_platt_is_logistic_regression_on_log_odds():
    rng = np.random.default_rng(0)
    counts = np.vstack([np.ones(2000), rng.multinomial(2000, np.full(2000, 1 / 2000), 2)])
    slope, intercept = platt_lines(log_odds(SCORE), Y, counts)
    for i in range(3):
        peer = LogisticRegression(C=1e6, tol=1e-8).fit(log_odds(SCORE)[:, None], Y, sample_weight=counts[i])
        assert_allclose([slope[i], intercept[i]], [peer.coef_[0, 0], peer.intercept_[0]], rtol=1e-3, atol=1e-3)


def test_platt_survives_classes_that_scores_separate():
    score = np.linspace(0, 1, 50)
    slope, intercept = platt_lines(log_odds(score), score > 0.5, np.ones((1, 50)))
    assert np.isfinite([slope[0], intercept[0]]).all()
    assert slope[0] > 1
    flat = platt_lines(np.zeros(50), score > 0.7, np.ones((1, 50)))
    assert flat[0][0] == 0.0
    assert expit(flat[1][0]) == pytest.approx((score > 0.7).mean(), abs=1e-6)


@pytest.mark.parametrize("start", [(20.0, 0.0), (-5.0, 30.0), (0.0, -40.0)])
def test_platt_finds_its_way_from_afar(start):
    """Newton's steps are too long there."""
    counts = np.ones((1, 2000))
    expected = np.ravel(platt_lines(log_odds(SCORE), Y, counts))
    assert_allclose(np.ravel(platt_lines(log_odds(SCORE), Y, counts, start)), expected, rtol=1e-5)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "scaling-binning"])
def test_calibrators_calibrate(method):
    new = pm.calibrated_scores(Y, SCORE, SCORE_NEW, method=method)
    assert new.shape == (2000,)
    assert ((new >= 0) & (new <= 1)).all()
    assert np.corrcoef(np.argsort(np.argsort(new)), np.argsort(np.argsort(SCORE_NEW)))[0, 1] > 0.9
    before, after = (pm.calibration_error(Y_NEW, score) for score in (SCORE_NEW, new))
    assert before > 0.1
    assert after < before / 3


def test_isotonic_is_scikit_learns():
    expected = IsotonicRegression(out_of_bounds="clip").fit(log_odds(SCORE), Y).predict(log_odds(SCORE_NEW))
    assert_allclose(pm.calibrated_scores(Y, SCORE, SCORE_NEW, method="isotonic"), expected)


def test_scaling_binning_has_few_values_and_keeps_the_order():
    binned = pm.ScalingBinning(n_bins=7).fit(SCORE, Y)
    values = binned.transform(SCORE)
    assert len(np.unique(values)) == 7
    assert_allclose(np.bincount(np.searchsorted(np.unique(values), values)), 2000 / 7, atol=2)
    assert (np.diff(values[np.argsort(SCORE)]) >= 0).all()
    smooth = expit(binned.slope_ * log_odds(SCORE) + binned.intercept_)
    assert values.mean() == pytest.approx(smooth.mean())
    assert_allclose(binned.predict(SCORE[:, None]), values)
    assert len(pm.ScalingBinning().fit([0.2, 0.8] * 10, [0, 1] * 10).values_) == 2
    assert len(pm.ScalingBinning().fit([0.4] * 10, [0, 1] * 5).values_) == 1


def by_hand(y, score, n_bins, debiased):
    order = np.argsort(score, kind="stable")
    total = 0.0
    for part in np.array_split(order, n_bins):
        fraction, mean = y[part].mean(), score[part].mean()
        total += len(part) * ((fraction - mean) ** 2 - debiased * fraction * (1 - fraction) / (len(part) - 1))
    return max(total / len(y), 0) ** 0.5


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_calibration_error_by_hand(n_bins):
    assert pm.calibration_error(Y, SCORE, n_bins=n_bins, method="plugin") == pytest.approx(
        by_hand(Y, SCORE, n_bins, False)
    )
    for method in ("debiased", "lower"):
        assert pm.calibration_error(Y, SCORE, n_bins=n_bins, method=method) == pytest.approx(
            by_hand(Y, SCORE, n_bins, True)
        )


def test_debiased_error_of_few_values_is_unbiased_where_the_plug_in_is_not():
    rng = np.random.default_rng(0)
    values, gap = np.linspace(0.1, 0.9, 25), 0.05
    found = {"plugin": [], "debiased": [], "lower": []}
    for _ in range(200):
        score = rng.choice(values, 2000)
        y = rng.uniform(size=2000) < score + gap * np.sign(0.5 - score)
        for method, values_found in found.items():
            values_found.append(pm.calibration_error(y, score, method=method, n_bins=25) ** 2)
    truth = gap**2 * 24 / 25  # the middle value has no gap
    # Squares below zero are cut, so the mean of the debiased ones may only be a little too high.
    assert np.mean(found["debiased"]) == pytest.approx(truth, rel=0.15)
    assert np.mean(found["plugin"]) > 1.7 * truth


def test_lower_is_below_the_true_error_of_smooth_scores():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(100):
        score = rng.uniform(size=2000)
        # Within each tenth the gap changes its sign, which bins cannot see.
        y = rng.uniform(size=2000) < np.clip(score + 0.1 * np.sign(np.sin(20 * np.pi * score)), 0, 1)
        found.append(pm.calibration_error(y, score, method="lower"))
    assert np.mean(found) < 0.03


def test_ties_stay_together():
    y, score = np.array([0, 1] * 50), np.repeat([0.2, 0.5, 0.5, 0.5, 0.9], 20)
    assert pm.calibration_error(y, score, n_bins=5, method="plugin") == pytest.approx(
        (0.2 * 0.3**2 + 0.6 * 0.0 + 0.2 * 0.4**2) ** 0.5
    )
    assert reliability(y, score, n_bins=5).rows.tolist() == [20, 60, 20]
    assert pm.calibration_error([0, 1], [0.0, 1.0], n_bins=10) == 0.0


@pytest.mark.parametrize(
    ("y", "score", "more", "message"),
    [
        ([0, 1], [0.1, 1.2], {}, "y_score must be scores between 0 and 1"),
        ([0, 2], [0.1, 0.2], {}, "y_true must hold labels 0 and 1"),
        ([0, 1, 1], [0.1, 0.2], {}, "inconsistent numbers of samples"),
        ([0, 1], [0.1, np.nan], {}, "y_score contains NaN"),
        ([0, 1], [0.1, 0.2], {"n_bins": 0}, "n_bins must be an integer"),
        ([0, 1], [0.1, 0.2], {"method": "ece"}, "method must be debiased, plugin or lower"),
    ],
)
def test_calibration_error_refuses(y, score, more, message):
    with pytest.raises(ValueError, match=message):
        pm.calibration_error(y, score, **more)


def test_calibrators_refuse():
    for method in ("sigmoid", "isotonic", "temperature", "scaling-binning"):
        with pytest.raises(ValueError, match="one class only"):
            pm.calibrated_scores([1, 1], [0.1, 0.2], [0.3], method=method)
    with pytest.raises(ValueError, match="method must be sigmoid"):
        pm.calibrated_scores(Y, SCORE, SCORE, method="beta")
    with pytest.raises(ValueError, match="new_score must be scores"):
        pm.calibrated_scores(Y, SCORE, [3.0])
    with pytest.raises(ValueError, match="'n_bins' parameter"):
        pm.ScalingBinning(n_bins=0).fit(SCORE, Y)
    for label in (0, 1):
        with pytest.raises(ValueError, match="one class only"):
            pm.ScalingBinning().fit(SCORE, np.full(len(SCORE), label))


def test_reliability_intervals_hold_calibrated_fractions():
    held = []
    for seed in range(60):
        found = reliability(*rows(500, seed), n_bins=5)
        held += ((found.lower <= found.score) & (found.score <= found.upper)).tolist()
    assert np.mean(held) > 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 301])
def test_distribution_of_the_number_of_positives(n):
    rng = np.random.default_rng(n)
    p = rng.beta(0.3, 3.0, n)
    by_hand = np.ones(1)
    for one in p:
        by_hand = np.convolve(by_hand, [1.0 - one, one])
    assert_allclose(positives_pmf(p), by_hand, atol=1e-14)
    assert_allclose(positives_pmf(np.full(n, 0.02)), stats.binom.pmf(np.arange(n + 1), n, 0.02), atol=1e-14)
    assert_allclose(positives_pmf(np.repeat([0.0, 1.0], n)), np.arange(2 * n + 1) == n, atol=1e-13)


RARE = {
    "smooth": lambda n, rng: expit(rng.normal(logit(0.01), 1.5, n)),
    "nearly constant": lambda n, rng: expit(rng.normal(logit(0.01), 0.05, n)),
    "three values": lambda n, rng: rng.choice([0.002, 0.01, 0.03], n),
    "few positives at all": lambda n, rng: expit(rng.normal(logit(0.001), 1.5, n)),
}


@pytest.mark.parametrize("distribution", RARE)
def test_perfect_scores_of_rare_events_are_seldom_contradicted(distribution):
    """Wilson's intervals, which are too short near 0, contradicted them in .1 to .25 of samples."""
    rng = np.random.default_rng(1)
    alarms = []
    for _ in range(150):
        score = RARE[distribution](200, rng)
        found = reliability(rng.uniform(size=200) < score, score)
        alarms.append(found.p_value <= 0.05)
        assert alarms[-1] or not found.is_off.any()
    assert np.mean(alarms) <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5


@pytest.mark.parametrize(
    ("bend", "base", "n", "power"),
    [
        (lambda odds: 1.5 * odds, 0.5, 200, 0.6),  # .63 with Wilson's intervals
        (lambda odds: odds - 0.7, 0.2, 200, 0.7),  # .6
        (lambda odds: odds - 0.7, 0.01, 1000, 0.65),  # .7, of which .2 are false alarms
        (lambda odds: odds + 0.5, 0.05, 1000, 0.9),  # .5
    ],
    ids=["too bold", "too low", "too low and rare", "too high and rare"],
)
def test_scores_that_are_off_are_contradicted(bend, base, n, power):
    """Bounds are three standard errors below what 1,000 draws gave: .73, .86, .77 and .97."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(100):
        odds = rng.normal(logit(base), 1.5, n)
        found.append(reliability(rng.uniform(size=n) < expit(odds), expit(bend(odds))).p_value <= 0.05)
    assert np.mean(found) >= power


def test_rows_that_are_together_what_no_bin_is_by_itself():
    """Each bin has twice its positives, which may be chance; that all have may not."""
    score, y = np.full(1000, 0.02) + np.arange(1000) * 1e-9, np.arange(1000) % 25 == 0
    found = reliability(y, score)
    assert found.p_value < 0.01
    assert not found.is_off.any()
    assert reliability(y[::2], score[::2] * 2).p_value > 0.5
    assert reliability(np.arange(200) < 1, np.zeros(200)).p_value < 0.001  # what never happens has happened


def test_a_bin_that_is_off_is_named():
    y, score = rows(2000)
    back = reliability(y[::-1], score[::-1])  # the order of rows does not matter
    assert back.p_value == reliability(y, score).p_value
    y[np.argsort(score)[1000:1200]] = True
    assert reliability(y, score).is_off.tolist() == [False] * 5 + [True] + [False] * 4
    assert reliability(y, score, confidence_level=0.9999).is_off.sum() == 1
    assert not reliability(*rows(2000), confidence_level=0.9999).is_off.any()


def test_reliability_intervals_near_zero_hold_the_probability():
    """Wilson's do so in .85: the least fraction that one positive in a bin excludes is .18 rows."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(40):
        score = np.full(1000, 0.0015) + rng.uniform(0, 1e-6, 1000)
        found = reliability(rng.uniform(size=1000) < score, score)
        held += ((found.lower <= found.score) & (found.score <= found.upper)).tolist()
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("level", [95, -0.5, 0.0, 1.0])
def test_reliability_refuses_a_level_that_is_no_fraction(level):
    for drawn in (reliability, pm.plot_reliability):
        with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1; got"):
            drawn(Y, SCORE, confidence_level=level)


def test_reliability_is_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = pm.plot_reliability(Y, SCORE, n_bins=6)
    assert len(ax.collections) == 2
    assert sum(len(line.get_xdata()) for line in ax.lines[1:]) == 6
    own = plt.subplots()[1]
    assert pm.plot_reliability(Y, SCORE, ax=own) is own
    plt.close("all")


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_few_rows_of_a_class_calibrate_without_a_warning_about_folds(method):
    found = pm.calibrated_scores([0, 0, 0, 1], [0.1, 0.2, 0.3, 0.8], [0.1, 0.9], method=method)
    assert 0.0 <= found[0] < found[1] <= 1.0
