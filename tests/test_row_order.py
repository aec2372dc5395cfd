"""Rows are matched by position: the same labels in another order are refused, whatever they come with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import pimeter as pm
from pimeter.classification import label_shift_ratios, roc_band, set_coverage_score
from pimeter.regression import OnlineIntervals

N = 120
RNG = np.random.default_rng(0)
LABELS = pd.Index(RNG.permutation(1000)[:N])
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}, index=LABELS)
PREDICTED = 2.0 * X["a"]
Y = PREDICTED + RNG.normal(size=N)
INTERVALS = pd.DataFrame({"lower": PREDICTED - 1.6, "upper": PREDICTED + 1.6})
QUANTILES = pd.DataFrame({q: PREDICTED + q for q in (-1.6, 0.0, 1.6)})
SAMPLES = pd.DataFrame({i: PREDICTED + RNG.normal(size=N) for i in range(60)})
STD = pd.Series(1.0, LABELS) + np.abs(X["b"])
KIND = pd.Series(RNG.choice(["p", "q"], N), LABELS)
GROUP = pd.Series(np.arange(N) // 4, LABELS)
TIME = pd.Series(np.arange(N), LABELS)
SCORE = 1.0 / (1.0 + np.exp(-3.0 * X["a"]))
IS_POSITIVE = pd.Series((RNG.uniform(size=N) < SCORE).astype(int), LABELS)
BOTH_SCORES = pd.DataFrame({0: 1.0 - SCORE, 1: SCORE})
WEIGHT = pd.Series(RNG.uniform(1.0, 2.0, N), LABELS)
WINDOWS = pd.DataFrame(RNG.normal(size=(N, 3)), LABELS)

REGRESSION = LinearRegression().fit(X, Y)
CLASSIFIER = LogisticRegression().fit(X, IS_POSITIVE)


def regressor(**settings):
    return pm.IntervalRegressor(REGRESSION, confidence_level=0.8, **settings)


def sets():
    return pm.SetClassifier(CLASSIFIER, confidence_level=0.8)


def calibrator():
    return pm.IntervalCalibrator(0.8, method="additive")


def measured(y_true, **keywords):
    return pm.measure(y_true, keywords.pop("y_pred", PREDICTED.to_numpy()), **keywords)


def compared(y_true, first, second, **keywords):
    return pm.compare(y_true, {"first": first, "second": second}, **keywords)


def compared_at(y_true, intervals):
    given = {"intervals": {0.8: intervals}}
    other = {"intervals": {0.8: INTERVALS.to_numpy() + 0.1}}
    return pm.compare(y_true, {"first": given, "second": other}, confidence_level=0.8)


def recalibrated(X, y):
    monitor = pm.CoverageMonitor(0.9).update(Y.to_numpy() + 9.0, INTERVALS.to_numpy())
    return monitor.recalibrate(calibrator(), X, y)


def known(monitor, ids, y_true):
    return monitor.expect(ids, INTERVALS.to_numpy()).observe(ids, y_true)


AB = {"a": PREDICTED, "b": PREDICTED + 0.1}
GROUPED = regressor(width="grouped").calibrate(X, Y, by=KIND)
CONE = pm.ForecastIntervals(0.8).fit(WINDOWS.to_numpy(), np.zeros((N, 3)))
TRAINED = {"estimator": LinearRegression(), "confidence_level": 0.8, "random_state": 0}

# What is called, and what it is given: each with an index, all of them in one order.
ENTRIES = {
    "monitor.update": (lambda y, i: pm.CoverageMonitor(0.9).update(y, i), (Y, INTERVALS)),
    "monitor.update by": (lambda y, i, by: pm.CoverageMonitor(0.9).update(y, i, by=by), (Y, INTERVALS.values, KIND)),
    "monitor.expect": (lambda ids, i: pm.CoverageMonitor(0.9).expect(ids, i), (GROUP * N + TIME, INTERVALS)),
    "monitor.observe": (lambda ids, y: known(pm.CoverageMonitor(0.9), ids, y), (GROUP * N + TIME, Y)),
    "monitor.recalibrate": (recalibrated, (INTERVALS, Y)),
    "calibrator intervals": (lambda y, i: calibrator().fit(y, intervals=i), (Y, INTERVALS)),
    "calibrator levels": (lambda y, i: calibrator().fit(y, intervals={0.8: i}), (Y, INTERVALS)),
    "calibrator quantiles": (
        lambda y, q: calibrator().fit(y, quantiles=q, levels=[0.1, 0.5, 0.9]),
        (Y, QUANTILES),
    ),
    "calibrator y_pred": (lambda y, p: calibrator().fit(y, y_pred=p, std=STD.to_numpy()), (Y, PREDICTED)),
    "calibrator std": (lambda y, s: calibrator().fit(y, y_pred=PREDICTED.to_numpy(), std=s), (Y, STD)),
    "calibrator y_pred std": (lambda p, s: calibrator().fit(Y.to_numpy(), y_pred=p, std=s), (PREDICTED, STD)),
    "calibrator samples": (lambda y, s: calibrator().fit(y, samples=s), (Y, SAMPLES)),
    "calibrator groups": (lambda y, g: calibrator().fit(y, intervals=INTERVALS.values, groups=g), (Y, GROUP)),
    "calibrator.predict_interval": (
        lambda p, s: calibrator().fit(Y, y_pred=PREDICTED, std=STD).predict_interval(y_pred=p, std=s),
        (PREDICTED, STD),
    ),
    "scorecard": (pm.scorecard, (IS_POSITIVE, SCORE)),
    "scorecard by": (lambda y, by: pm.scorecard(y, SCORE.to_numpy(), by=by), (IS_POSITIVE, KIND)),
    "classification_uncertainty": (pm.classification_uncertainty, (IS_POSITIVE, SCORE)),
    "classification_uncertainty groups": (
        lambda y, g: pm.classification_uncertainty(y, SCORE.to_numpy(), groups=g),
        (IS_POSITIVE, GROUP),
    ),
    "classification_uncertainty weight": (
        lambda y, w: pm.classification_uncertainty(y, SCORE.to_numpy(), sample_weight=w, method="bootstrap"),
        (IS_POSITIVE, WEIGHT),
    ),
    "classification_uncertainty calibration": (
        lambda y, s: pm.classification_uncertainty(None, SCORE, method="calibrated", calibration=(y, s)),
        (IS_POSITIVE, SCORE),
    ),
    "calibration_error": (pm.calibration_error, (IS_POSITIVE, SCORE)),
    "roc_band": (roc_band, (IS_POSITIVE, SCORE)),
    "label_shift_ratios": (lambda y, s: label_shift_ratios(y, s, BOTH_SCORES.to_numpy()), (IS_POSITIVE, BOTH_SCORES)),
    "set_coverage_score": (set_coverage_score, (IS_POSITIVE, BOTH_SCORES > 0.2)),
    "RiskController": (lambda y, s: pm.RiskController("precision", 0.5).fit(y, s), (IS_POSITIVE, SCORE)),
    "RiskController triage": (
        lambda y, s: pm.RiskController(("npv", "precision"), 0.5).fit(y, s),
        (IS_POSITIVE, SCORE),
    ),
    "measure y_pred": (lambda y, p: measured(y, y_pred=p), (Y, PREDICTED)),
    "measure by": (lambda y, by: measured(y, by=by), (Y, KIND)),
    "measure X": (lambda y, X: measured(y, X=X), (Y, X)),
    "measure X by": (lambda X, by: measured(Y.to_numpy(), X=X, by=by), (X, KIND)),
    "measure groups": (lambda y, g: measured(y, groups=g), (Y, GROUP)),
    "measure time": (lambda y, t: measured(y, time=t), (Y, TIME)),
    "measure intervals by": (
        lambda y, by: pm.measure(y, intervals=INTERVALS.values, by=by, confidence_level=0.8),
        (Y, KIND),
    ),
    "measure levels": (lambda y, i: pm.measure(y, intervals={0.8: i}), (Y, INTERVALS)),
    "measure intervals X": (
        lambda y, X: pm.measure(y, intervals=INTERVALS.values, X=X, confidence_level=0.8),
        (Y, X),
    ),
    "compare": (compared, (Y, AB["a"], AB["b"])),
    "compare levels": (compared_at, (Y, INTERVALS)),
    "compare by": (lambda y, by: compared(y, AB["a"].values, AB["b"].values, by=by), (Y, KIND)),
    "compare time": (lambda y, t: compared(y, AB["a"].values, AB["b"].values, time=t), (Y, TIME)),
    "compare X": (lambda y, X: compared(y, AB["a"].values, AB["b"].values, X=X), (Y, X)),
    "regressor.calibrate": (lambda X, y: regressor().calibrate(X, y), (X, Y)),
    "regressor.calibrate by": (lambda X, by: regressor(width="grouped").calibrate(X, Y.to_numpy(), by=by), (X, KIND)),
    "regressor.calibrate groups": (lambda X, g: regressor().calibrate(X, Y.to_numpy(), groups=g), (X, GROUP)),
    "regressor.calibrate y by": (
        lambda y, by: pm.IntervalRegressor(lambda X: X[:, 0], width="grouped").calibrate(X.to_numpy(), y, by=by),
        (Y, KIND),
    ),
    "regressor.calibrate weight": (
        lambda X, w: regressor().calibrate(X, Y.to_numpy(), importance_weight=w),
        (X, WEIGHT),
    ),
    "regressor.fit by": (
        lambda X, by: pm.IntervalRegressor(**TRAINED, width="grouped").fit(X, Y.to_numpy(), by=by),
        (X, KIND),
    ),
    "regressor.fit groups": (lambda X, g: pm.IntervalRegressor(**TRAINED).fit(X, Y.to_numpy(), groups=g), (X, GROUP)),
    "regressor.fit weight": (
        lambda X, w: pm.IntervalRegressor(**TRAINED).fit(X, Y.to_numpy(), sample_weight=w),
        (X, WEIGHT),
    ),
    "regressor.update by": (lambda X, by: GROUPED.update(X, Y.to_numpy(), by=by), (X, KIND)),
    "regressor.predict_interval by": (lambda X, by: GROUPED.predict_interval(X, by=by), (X, KIND)),
    "sets.calibrate": (lambda X, y: sets().calibrate(X, y), (X, IS_POSITIVE)),
    "sets.calibrate by": (lambda X, by: sets().calibrate(X, IS_POSITIVE.to_numpy(), by=by), (X, KIND)),
    "sets.calibrate groups": (lambda X, g: sets().calibrate(X, IS_POSITIVE.to_numpy(), groups=g), (X, GROUP)),
    "sets.fit by": (
        lambda X, by: pm.SetClassifier(LogisticRegression(), random_state=0).fit(X, IS_POSITIVE.to_numpy(), by=by),
        (X, KIND),
    ),
    "online.fit": (lambda X, y: OnlineIntervals(regressor().calibrate(X, Y)).fit(X, y), (X, Y)),
    "online.fit time": (lambda y, t: OnlineIntervals(regressor().calibrate(X, Y)).fit(X, y, time=t), (Y, TIME)),
    "online.follow": (lambda X, y: OnlineIntervals(regressor().calibrate(X, Y)).fit(X, Y).follow(X, y), (X, Y)),
    "forecast.fit": (lambda y, p: pm.ForecastIntervals(0.8).fit(y, p), (WINDOWS, WINDOWS * 0.5)),
    "forecast.update": (CONE.update, (WINDOWS, WINDOWS * 0.5)),
    "forecast features": (
        lambda y, f: pm.ForecastIntervals(0.8, context="recent").fit(y, np.zeros((N, 3)), features=f),
        (WINDOWS, X),
    ),
    "backtest": (pm.backtest, (WINDOWS, WINDOWS * 0.5)),
    "absolute_errors": (pm.absolute_errors, (Y, PREDICTED)),
    "coverage_score": (pm.coverage_score, (Y, INTERVALS)),
    "crps_score": (lambda y, q: pm.crps_score(y, q, [0.1, 0.5, 0.9]), (Y, QUANTILES)),
    "worst_subgroup": (lambda X, y: pm.worst_subgroup(X, y, INTERVALS.to_numpy()), (X, Y)),
    "grouped_quantile": (lambda e, by: pm.grouped_quantile(e, by, 0.9), (np.abs(Y - PREDICTED), KIND)),
    "duplicate_groups": (pm.duplicate_groups, (X, Y)),
    "neuron groups": (lambda e, g: pm.QuantileNeuron(0.8).fit(e, groups=g), (np.abs(Y - PREDICTED), GROUP)),
}


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning", "ignore:X does not have valid feature names")
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_same_index_in_another_order_is_refused(entry):
    call, given = ENTRIES[entry]
    other = given[-1].sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=r"have the same index in another order.*\.loc\[.*\.to_numpy\(\)\.$"):
        call(*given[:-1], other)


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning", "ignore:X does not have valid feature names")
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_same_order_and_positions_are_taken(entry):
    call, given = ENTRIES[entry]
    call(*given)
    call(*given[:-1], given[-1].set_axis(range(N)))
    call(*given[:-1], given[-1].to_numpy())


def test_a_column_is_named_as_the_caller_gives_it():
    with pytest.raises(ValueError, match=r"y_true and models\['first'\]\['intervals'\]\[0\.8\] have the same index"):
        compared_at(Y, INTERVALS[::-1])
