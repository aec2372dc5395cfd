"""Metrics from calibrated scores: without labels, or with a few labels and many rows that have none.

A calibrated score q says how likely a row is positive, so each row has an expected place in the confusion matrix. Means
of these places estimate the matrix, with less variance than labels have, and only as truly as the scores are
calibrated.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from pimeter.classification.confusion import (
    EMPTY,
    NO_ROWS,
    NO_WIDTH,
    PSEUDO,
    Cells,
    Estimate,
    Sampling,
    by_rates,
    outcome_codes,
)
from pimeter.classification.derivatives import derivatives
from pimeter.classification.platt import log_odds, platt_lines
from pimeter.classification.rates import (
    FN,
    FP,
    SHARES,
    TN,
    TP,
    Metric,
    Rates,
    Share,
    bounds,
    builtin,
    normal_quantile,
    share,
    wilson,
)
from pimeter.coverage import CoverageWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

REFITS = 200  # of the calibrator, at most
BLOCK = 2_000_000  # numbers that are held at the same time
GAP = 3.0  # standard errors between labels and scores that are no chance
MOST = 1e15  # rows that an estimate without variance is worth
NO_VARIANCE = 1.0 / MOST
LABELS_ALONE = "an outcome has no labelled row, so that labels alone count"
CALIBRATED = "perfectly calibrated scores"
ALIKE = "calibration rows drawn like these rows, or scores that Platt's map calibrates"


class Calibrator(NamedTuple):
    """Platt's map, fitted to calibration rows and to resamples of them, and what it leaves unexplained there.

    What is left is added to what the map says of other rows. So the map only has to help: where it does not fit, means
    over rows like the calibration rows are still right, and the refits show what both of them do not know.
    """

    slope: Array  # (1 + refits,), the first to the rows themselves
    intercept: Array
    rest: Array  # (1 + refits, thresholds, 2): mean of label minus map, over rows above and not above the threshold
    counts: Array  # (thresholds, 4): rows of each outcome

    @classmethod
    def fitted(
        cls, is_positive: NDArray[np.bool_], score: Array, thresholds: Array, n_refits: int, rng: np.random.Generator
    ) -> Calibrator:
        """Fit once, and again on resampled rows."""
        odds, m = log_odds(score), len(score)
        is_above = score[:, None] > thresholds.ravel()
        sides = np.stack([is_above, ~is_above], axis=-1).reshape(m, -1) / m
        start, size = (0.0, 0.0), max(1, BLOCK // m)
        parts = []
        for i in range(0, 1 + n_refits, size):
            counts = rng.multinomial(m, np.full(m, 1.0 / m), min(size, 1 + n_refits - i)).astype(np.float64)
            if i == 0:
                counts[0] = 1.0
            slope, intercept = platt_lines(odds, is_positive, counts, start)
            start = (float(slope[0]), float(intercept[0]))
            left = counts * (is_positive - expit(slope[:, None] * odds + intercept[:, None]))
            parts.append((slope, intercept, (left @ sides).reshape(len(counts), -1, 2)))
        codes = [outcome_codes(is_positive, above) for above in is_above.T]
        seen = np.array([np.bincount(code, minlength=4) for code in codes], np.float64)
        slopes, intercepts, rest = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(slopes, intercepts, rest, seen)

    def cells(self, odds: Array, is_predicted: NDArray[np.bool_], share: Array, at: int) -> Array:
        """Cells TN, TP, FN, FP of rows with these log-odds by each fit, (4, 1 + refits), at one of the thresholds."""
        parts = np.stack([share * is_predicted, share * ~is_predicted])
        says = np.array([parts @ expit(a * odds + b) for a, b in zip(self.slope, self.intercept, strict=True)])
        predicted, not_predicted = parts.sum(axis=1)
        tp, fn = np.clip(says + self.rest[:, at], 0.0, [predicted, not_predicted]).T
        return np.stack([not_predicted - fn, tp, fn, predicted - tp])

    def unseen(self, means: Array, slopes: Array, at: int) -> float:
        """Variance of a metric by half a row of each outcome that no calibration row had, and refits know nothing of.

        Such a row moves a cell by what the map (whose mean cells are given) had thought of it.
        """
        other = np.array([FN, FP, TN, TP])  # with the same answer and the other label
        with np.errstate(invalid="ignore", divide="ignore"):
            surprise = np.where(means + means[other] > 0.0, means[other] / (means + means[other]), 0.0)
        moved = surprise * (slopes - slopes[other])
        counts = self.counts[at]
        return float(PSEUDO * (moved[counts == 0.0] ** 2).sum() / counts.sum() ** 2)


def _expected(q: Array, is_predicted: NDArray[np.bool_]) -> Array:
    """Expected cells TN, TP, FN, FP of each row, (4, n)."""
    no, yes = np.where(is_predicted, 0.0, 1.0), np.where(is_predicted, 1.0, 0.0)
    return np.stack([(1.0 - q) * no, q * yes, q * no, (1.0 - q) * yes])


def _interval(metric: Metric, value: float, variance: float, level: float) -> tuple[float, float]:
    """Wilson's between 0 and 1, with the rows that the variance is worth; a normal one for others."""
    least, most = bounds(metric)
    value = float(np.clip(value, least, most))
    if least == 0.0:
        # Near 0 and 1 the variance is rather that of an outcome not seen among n rows, PSEUDO / n^2.
        n = max(value * (1.0 - value) / variance, (PSEUDO / variance) ** 0.5) if variance > NO_VARIANCE else MOST
        return wilson(Share(value, n), level)
    half = normal_quantile(level) * variance**0.5
    return max(value - half, least), min(value + half, most)


def calibrated(
    score: Array,
    is_positive: NDArray[np.bool_] | None,
    thresholds: Array,
    weights: Array | None,
    metrics: Mapping[str, Metric],
    confidence_level: float,
    calibrator: Calibrator | None,
) -> list[dict[str, Estimate]]:
    """Estimates from scores alone, for each threshold; labels, if there are any, only check the calibration."""
    share = np.full(len(score), 1.0 / len(score)) if weights is None else weights / weights.sum()
    odds = log_odds(score)
    q = score if calibrator is None else expit(calibrator.slope[0] * odds + calibrator.intercept[0])
    estimates = []
    for at, threshold in enumerate(thresholds.ravel()):
        is_predicted = score > threshold
        expected = _expected(q, is_predicted)
        fits = (expected @ share)[:, None] if calibrator is None else calibrator.cells(odds, is_predicted, share, at)
        is_one_sided = is_predicted.all() or not is_predicted.any()
        near, at_rows, of = (fits, expected, share) if not is_one_sided else _padded(fits, expected, share)
        around = at_rows.T - at_rows @ of
        found = {}
        for name, metric in metrics.items():
            value = float(metric(Rates.of(fits[:, 0])))
            if not np.isfinite(value):
                least, most = bounds(metric)
                ends = (least, most) if np.isfinite(least) else (np.nan, np.nan)
                found[name] = Estimate(np.nan, *ends, "calibrated", NO_ROWS)
                continue
            slopes, _ = derivatives(lambda *c, metric=metric: metric(Rates.of(c)), near[:, 0])
            slopes = np.where(np.isfinite(slopes), slopes, 0.0)
            variance = float(of**2 @ (around @ slopes) ** 2) + _spread(metric(Rates.of(near[:, 1:])))
            if calibrator is not None:
                variance += calibrator.unseen(at_rows @ of, slopes, at)
            middle = float(metric(Rates.of(near[:, 0])))
            lower, upper = _interval(metric, middle, variance, confidence_level)
            note = EMPTY if is_one_sided else "" if variance > NO_VARIANCE else NO_WIDTH
            found[name] = Estimate(value, min(lower, value), max(upper, value), "calibrated", note)
        estimates.append(found)
        if is_positive is not None:
            _check_calibration(is_positive == is_predicted, expected, share, fits)
    return estimates


def _padded(fits: Array, expected: Array, share: Array) -> tuple[Array, Array, Array]:
    """With half a row more of each outcome: rows that all get the same answer say nothing of the other one."""
    n = 1.0 / float(share @ share)
    total = n + 4.0 * PSEUDO
    of = np.append(share * n, np.full(4, PSEUDO)) / total
    return (fits * n + PSEUDO) / total, np.hstack([expected, np.eye(4)]), of


def _spread(refitted: Any) -> float:
    """Variance over refits that gave a number; 0 without any."""
    values = np.asarray(refitted, np.float64)
    values = values[np.isfinite(values)]
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _check_calibration(is_right: NDArray[np.bool_], expected: Array, share: Array, fits: Array) -> None:
    """Warn where labels contradict the scores."""
    accuracy = fits[0] + fits[1]
    gap = float(share @ is_right - accuracy[0])
    says = expected[0] + expected[1]
    away = is_right - says
    # Mistakes that confident scores expect, but that few rows do not show, count as well.
    surprise = max(float(share**2 @ (away - share @ away) ** 2), float(share**2 @ (says * (1.0 - says))))
    variance = surprise + _spread(accuracy[1:])
    if abs(gap) > GAP * variance**0.5:
        what, then = (
            ("These rows are not like the calibration rows", "hand over calibration=(y, score) of rows that are")
            if len(accuracy) > 1
            else ("The scores are not calibrated", "calibrate the scores and hand over calibration=(y, score)")
        )
        msg = (
            f"{what}: labels show an accuracy that is {abs(gap):.3g} {'higher' if gap > 0 else 'lower'} than the "
            f'scores say, more than {GAP:g} standard errors. Do not use method="calibrated" here; {then}.'
        )
        warnings.warn(msg, CoverageWarning, stacklevel=4)


def prediction_powered(
    score: Array,
    is_labelled: NDArray[np.bool_],
    is_positive: NDArray[np.bool_],
    threshold: float,
    metrics: Mapping[str, Metric],
    confidence_level: float,
    sampling: Sampling,
) -> dict[str, Estimate]:
    """Estimates from labels, corrected by what scores say of the rows without, as far as that helps (PPI++).

    Where an outcome that matters has no labelled row, their variance is not known, and labels alone have the say.
    """
    is_predicted = score > threshold
    expected = _expected(score, is_predicted)
    here, there = expected[:, is_labelled], expected[:, ~is_labelled]
    n, n_more = here.shape[1], there.shape[1]
    codes = outcome_codes(is_positive[is_labelled], is_predicted[is_labelled])
    observed = np.zeros((4, n))
    observed[codes, np.arange(n)] = 1.0
    cells, counts = observed.mean(axis=1), observed.sum(axis=1)
    found = {}
    for name, metric in metrics.items():
        at_labels = float(metric(Rates.of(cells)))
        slopes, _ = derivatives(lambda *c, metric=metric: metric(Rates.of(c)), cells)
        rows = SHARES.get(builtin(metric))
        has_variance = 0.0 < share(*rows, counts, counts).value < 1.0 if rows else counts.all()
        if not has_variance or not np.isfinite([at_labels, *slopes]).all():
            labels = Cells(counts, counts, counts)
            alone = by_rates(labels, {name: metric}, "wilson", confidence_level, sampling)[name]
            found[name] = replace(alone, note="; ".join(filter(None, (LABELS_ALONE, alone.note))))
            continue
        target, here_says, there_says = slopes @ observed, slopes @ here, slopes @ there
        together = np.concatenate([here_says, there_says])
        spread = together.var(ddof=1)
        covariance = np.cov(target, here_says)[0, 1]
        tuned = covariance / ((1.0 + n / n_more) * spread) if spread > 0.0 else 0.0
        tuned = min(max(float(tuned), 0.0), 1.0)
        value = at_labels + tuned * float(there_says.mean() - here_says.mean())
        variance = float((target - tuned * here_says).var(ddof=1)) / n + tuned**2 * float(there_says.var()) / n_more
        value = float(np.clip(value, *bounds(metric)))
        ends = _interval(metric, value, variance, confidence_level)
        found[name] = Estimate(value, *ends, "prediction-powered", f"weight of the scores {tuned:.2f}")
    return found
