"""Metrics from calibrated scores: without labels, or with a few labels and many rows that have none.

A calibrated score q says how likely a row is positive, so each row has an expected place in the confusion matrix. Means
of these places estimate the matrix, with less variance than labels have, and only as truly as the scores are
calibrated.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from pimeter.classification.confusion import (
    EMPTY,
    NO_ROWS,
    NO_WIDTH,
    PSEUDO_COUNT,
    Cells,
    Sampling,
    by_rates,
    outcome_codes,
)
from pimeter.classification.derivatives import derivatives
from pimeter.classification.estimates import Estimate
from pimeter.classification.platt import log_odds, platt_lines
from pimeter.classification.proportions import Proportion, normal_quantile, proportion, wilson
from pimeter.classification.rates import FN, FP, PROPORTIONS, TN, TP, Metric, Rates, Value, builtin, metric_range
from pimeter.coverage import CoverageWarning

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags

REFITS = 200  # of the calibrator, at most
MAX_NUMBERS_HELD = 2_000_000  # at the same time
MAX_GAP = 3.0  # standard errors between labels and scores that are not due to chance
MAX_EFFECTIVE_ROWS = 1e15  # of an estimate without variance
NO_VARIANCE = 1.0 / MAX_EFFECTIVE_ROWS
LABELS_ALONE = "an outcome has no labelled row, so that labels alone count"
CALIBRATED = "perfectly calibrated scores"
SAME_POPULATION = "calibration rows drawn like these rows, or scores that Platt's map calibrates"


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
        cls, is_positive: Flags, score: Array, thresholds: Array, n_refits: int, rng: np.random.Generator
    ) -> Calibrator:
        """Fit once, and again on resampled rows."""
        odds, m = log_odds(score), len(score)
        is_above = score[:, None] > thresholds.ravel()
        sides = np.stack([is_above, ~is_above], axis=-1).reshape(m, -1) / m
        start, size = (0.0, 0.0), max(1, MAX_NUMBERS_HELD // m)
        parts = []
        for i in range(0, 1 + n_refits, size):
            counts = rng.multinomial(m, np.full(m, 1.0 / m), min(size, 1 + n_refits - i)).astype(np.float64)
            if i == 0:
                counts[0] = 1.0
            lines = platt_lines(odds, is_positive, counts, start)
            start = (float(lines.slopes[0]), float(lines.intercepts[0]))
            left = counts * (is_positive - expit(lines.slopes[:, None] * odds + lines.intercepts[:, None]))
            parts.append((lines.slopes, lines.intercepts, (left @ sides).reshape(len(counts), -1, 2)))
        codes = [outcome_codes(is_positive, above) for above in is_above.T]
        seen = np.array([np.bincount(code, minlength=4) for code in codes], np.float64)
        slopes, intercepts, rest = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(slopes, intercepts, rest, seen)

    def cells(self, odds: Array, is_predicted: Flags, weight: Array, at: int) -> Array:
        """Cells TN, TP, FN, FP of rows with these log-odds by each fit, (4, 1 + refits), at one of the thresholds."""
        parts = np.stack([weight * is_predicted, weight * ~is_predicted])
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
        return float(PSEUDO_COUNT * (moved[counts == 0.0] ** 2).sum() / counts.sum() ** 2)


def _expected(q: Array, is_predicted: Flags) -> Array:
    """Expected cells TN, TP, FN, FP of each row, (4, n)."""
    no, yes = np.where(is_predicted, 0.0, 1.0), np.where(is_predicted, 1.0, 0.0)
    return np.stack([(1.0 - q) * no, q * yes, q * no, (1.0 - q) * yes])


def _interval(metric: Metric, value: float, variance: float, level: float) -> tuple[float, float]:
    """Wilson's between 0 and 1, with the number of rows that the variance implies; a normal one for others."""
    least, most = metric_range(metric)
    value = float(np.clip(value, least, most))
    if least == 0.0:
        # Near 0 and 1 the variance is rather that of an outcome not seen among n rows, 1 / (2 n^2).
        n = (
            max(value * (1.0 - value) / variance, (PSEUDO_COUNT / variance) ** 0.5)
            if variance > NO_VARIANCE
            else MAX_EFFECTIVE_ROWS
        )
        return wilson(Proportion(value, n), level)
    half = normal_quantile(level) * variance**0.5
    return max(value - half, least), min(value + half, most)


def calibrated(
    score: Array,
    is_positive: Flags | None,
    thresholds: Array,
    weights: Array | None,
    metrics: Mapping[str, Metric],
    confidence_level: float,
    calibrator: Calibrator | None,
) -> list[dict[str, Estimate]]:
    """Estimates from scores alone, for each threshold; labels, if there are any, only check the calibration."""
    weight = np.full(len(score), 1.0 / len(score)) if weights is None else weights / weights.sum()
    odds = log_odds(score)
    q = score if calibrator is None else expit(calibrator.slope[0] * odds + calibrator.intercept[0])
    estimates = []
    for at, threshold in enumerate(thresholds.ravel()):
        is_predicted = score > threshold
        expected = _expected(q, is_predicted)
        fits = (expected @ weight)[:, None] if calibrator is None else calibrator.cells(odds, is_predicted, weight, at)
        is_one_sided = bool(is_predicted.all() or not is_predicted.any())
        near, at_rows, of = _padded(fits, expected, weight) if is_one_sided else (fits, expected, weight)
        scored = _ScoredCells(fits, near, at_rows, of, is_one_sided)
        estimates.append(
            {name: _calibrated(scored, one, confidence_level, calibrator, at) for name, one in metrics.items()}
        )
        if is_positive is not None:
            _check_calibration(is_positive == is_predicted, expected, weight, fits)
    return estimates


class _ScoredCells(NamedTuple):
    """Cells that scores expect at one threshold."""

    fits: Array  # (4, 1 + refits), means over rows
    near: Array  # the same, with half a row more of each outcome where all rows get the same answer
    expected: Array  # (4, n), of each row and of those added
    weight: Array  # (n,)
    is_one_sided: bool  # whether all rows get the same answer


def _calibrated(
    scored: _ScoredCells, metric: Metric, confidence_level: float, calibrator: Calibrator | None, at: int
) -> Estimate:
    """One metric from the expected cells, with the variance of rows and of refits."""
    value = float(metric(Rates.of(scored.fits[:, 0])))
    if not np.isfinite(value):
        least, most = metric_range(metric)
        bounds = (least, most) if np.isfinite(least) else (np.nan, np.nan)
        return Estimate(np.nan, *bounds, "calibrated", NO_ROWS)
    slopes = derivatives(lambda *c: metric(Rates.of(c)), scored.near[:, 0]).first
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    means = scored.expected @ scored.weight
    variance = float(scored.weight**2 @ ((scored.expected.T - means) @ slopes) ** 2)
    variance += _spread(metric(Rates.of(scored.near[:, 1:])))
    if calibrator is not None:
        variance += calibrator.unseen(means, slopes, at)
    middle = float(metric(Rates.of(scored.near[:, 0])))
    lower, upper = _interval(metric, middle, variance, confidence_level)
    note = EMPTY if scored.is_one_sided else "" if variance > NO_VARIANCE else NO_WIDTH
    return Estimate(value, min(lower, value), max(upper, value), "calibrated", note)


def _padded(fits: Array, expected: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Rows and half a row more of each outcome: if all get one answer, they say nothing of the other."""
    n = 1.0 / float(weight @ weight)
    total = n + 4.0 * PSEUDO_COUNT
    of = np.append(weight * n, np.full(4, PSEUDO_COUNT)) / total
    return (fits * n + PSEUDO_COUNT) / total, np.hstack([expected, np.eye(4)]), of


def _spread(refitted: Value) -> float:
    """Variance over refits that gave a number; 0 without any."""
    values = np.asarray(refitted, np.float64)
    values = values[np.isfinite(values)]
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _check_calibration(is_right: Flags, expected: Array, weight: Array, fits: Array) -> None:
    """Warn where labels contradict the scores."""
    accuracy = fits[0] + fits[1]
    gap = float(weight @ is_right - accuracy[0])
    says = expected[0] + expected[1]
    away = is_right - says
    # Mistakes that confident scores expect, but that few rows do not show, count as well.
    surprise = max(float(weight**2 @ (away - weight @ away) ** 2), float(weight**2 @ (says * (1.0 - says))))
    variance = surprise + _spread(accuracy[1:])
    if abs(gap) > MAX_GAP * variance**0.5:
        what, then = (
            ("These rows are not like the calibration rows", "hand over calibration=(y, score) of rows that are")
            if len(accuracy) > 1
            else ("The scores are not calibrated", "calibrate the scores and hand over calibration=(y, score)")
        )
        msg = (
            f"{what}: labels show an accuracy that is {abs(gap):.3g} {'higher' if gap > 0 else 'lower'} than the "
            f'scores say, more than {MAX_GAP:g} standard errors. Do not use method="calibrated" here; {then}.'
        )
        warnings.warn(msg, CoverageWarning, stacklevel=4)


def prediction_powered(
    score: Array,
    is_labelled: Flags,
    is_positive: Flags,
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
        slopes = derivatives(lambda *c, metric=metric: metric(Rates.of(c)), cells).first
        rows = PROPORTIONS.get(builtin(metric))
        has_variance = 0.0 < proportion(*rows, counts, counts).value < 1.0 if rows else counts.all()
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
        value = float(np.clip(value, *metric_range(metric)))
        bounds = _interval(metric, value, variance, confidence_level)
        found[name] = Estimate(value, *bounds, "prediction-powered", f"weight of the scores {tuned:.2f}")
    return found
