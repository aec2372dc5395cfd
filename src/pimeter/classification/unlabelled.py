"""Metrics from calibrated scores: without labels, or with a few labels and many rows that have none.

A calibrated score q says how likely a row is positive, so each row has an expected place in the confusion matrix. Means
of these places estimate the matrix, with less variance than labels have, and only as truly as the scores are
calibrated.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from pimeter.classification.confusion import NO_ROWS, Estimate, outcome_codes
from pimeter.classification.platt import log_odds, platt_lines
from pimeter.classification.propagation import derivatives
from pimeter.classification.rates import METRICS, SHARES, Metric, Rates, Share, normal_quantile, wilson
from pimeter.promise import CoverageWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

REFITS = 200  # of the calibrator, at most
BLOCK = 2_000_000  # numbers that are held at the same time
GAP = 3.0  # standard errors between labels and scores that are no chance
MOST = 1e15  # rows that an estimate without variance is worth
CALIBRATED = "perfectly calibrated scores"


class Lines(NamedTuple):
    """Platt's map, fitted to calibration rows and to resamples of them."""

    slope: Array  # (1 + refits,), the first to the rows themselves
    intercept: Array

    @classmethod
    def fitted(cls, is_positive: NDArray[np.bool_], score: Array, n_refits: int, rng: np.random.Generator) -> Lines:
        """Fit once, and again on resampled rows."""
        odds, m = log_odds(score), len(score)
        own = platt_lines(odds, is_positive, np.ones((1, m)))
        start, size = (float(own[0][0]), float(own[1][0])), max(1, BLOCK // m)
        parts = [own]
        for i in range(0, n_refits, size):
            counts = rng.multinomial(m, np.full(m, 1.0 / m), min(size, n_refits - i)).astype(np.float64)
            parts.append(platt_lines(odds, is_positive, counts, start))
        slope, intercept = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(slope, intercept)


def _expected(q: Array, is_predicted: NDArray[np.bool_]) -> Array:
    """Expected cells TN, TP, FN, FP of each row, (4, n)."""
    no, yes = np.where(is_predicted, 0.0, 1.0), np.where(is_predicted, 1.0, 0.0)
    return np.stack([(1.0 - q) * no, q * yes, q * no, (1.0 - q) * yes])


def _interval(name: str, metric: Metric, value: float, variance: float, level: float) -> tuple[float, float]:
    """Wilson's for shares, with the rows that the variance is worth; a normal one for others."""
    if SHARES.get(name) and METRICS[name] is metric:
        inside = min(max(value, 0.0), 1.0)
        n = inside * (1.0 - inside) / variance if variance > 0.0 else MOST
        return wilson(Share(inside, min(max(n, 1.0), MOST)), level)
    half = normal_quantile(level) * variance**0.5
    return value - half, value + half


def calibrated(
    score: Array,
    is_positive: NDArray[np.bool_] | None,
    threshold: float,
    weights: Array | None,
    metrics: Mapping[str, Metric],
    confidence_level: float,
    lines: Lines | None,
) -> dict[str, Estimate]:
    """Estimates from scores alone; labels, if there are any, only check the calibration."""
    is_predicted = score > threshold
    share = np.full(len(score), 1.0 / len(score)) if weights is None else weights / weights.sum()
    q = score if lines is None else expit(lines.slope[0] * log_odds(score) + lines.intercept[0])
    expected = _expected(q, is_predicted)
    cells = expected @ share
    refitted = None if lines is None else _refitted(score, is_predicted, share, lines)
    found = {}
    for name, metric in metrics.items():
        value = float(metric(Rates.of(cells)))
        if not np.isfinite(value):
            found[name] = Estimate(np.nan, 0.0, 1.0, "calibrated", NO_ROWS)
            continue
        slopes, _ = derivatives(lambda *c, metric=metric: metric(Rates.of(c)), cells)
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        variance = float(share**2 @ ((expected.T - cells) @ slopes) ** 2)
        if refitted is not None:
            variance += float(np.var(np.asarray(metric(Rates.of(refitted)), np.float64), ddof=1))
        found[name] = Estimate(value, *_interval(name, metric, value, variance, confidence_level), "calibrated")
    if is_positive is not None:
        _check_calibration(is_positive == is_predicted, expected, share, refitted)
    return found


def _refitted(score: Array, is_predicted: NDArray[np.bool_], share: Array, lines: Lines) -> Array:
    """Cells by each refit of the calibrator, (4, refits)."""
    odds = log_odds(score)
    parts = np.stack([share * is_predicted, share * ~is_predicted])
    positive = np.array(
        [parts @ expit(a * odds + b) for a, b in zip(lines.slope[1:], lines.intercept[1:], strict=True)]
    )
    tp, fn = positive.T
    predicted, not_predicted = parts.sum(axis=1)
    return np.stack([not_predicted - fn, tp, fn, predicted - tp])


def _check_calibration(is_right: NDArray[np.bool_], expected: Array, share: Array, refitted: Array | None) -> None:
    """Warn where labels contradict the scores."""
    away = is_right - (expected[0] + expected[1])
    gap = float(share @ away)
    variance = float(share**2 @ (away - gap) ** 2)
    if refitted is not None:
        variance += float(np.var(refitted[0] + refitted[1], ddof=1))
    if abs(gap) > GAP * variance**0.5:
        msg = (
            f"The scores are not calibrated: labels show an accuracy that is {abs(gap):.3g} "
            f"{'higher' if gap > 0 else 'lower'} than the scores say, more than {GAP:g} standard errors. "
            'Do not use method="calibrated" here; calibrate the scores and hand over calibration=(y, score).'
        )
        warnings.warn(msg, CoverageWarning, stacklevel=4)


def prediction_powered(
    score: Array,
    is_labelled: NDArray[np.bool_],
    is_positive: NDArray[np.bool_],
    threshold: float,
    metrics: Mapping[str, Metric],
    confidence_level: float,
) -> dict[str, Estimate]:
    """Estimates from labels, corrected by what scores say of the rows without, as far as that helps (PPI++)."""
    is_predicted = score > threshold
    expected = _expected(score, is_predicted)
    here, there = expected[:, is_labelled], expected[:, ~is_labelled]
    n, n_more = here.shape[1], there.shape[1]
    codes = outcome_codes(is_positive[is_labelled], is_predicted[is_labelled])
    observed = np.zeros((4, n))
    observed[codes, np.arange(n)] = 1.0
    cells = observed.mean(axis=1)
    found = {}
    for name, metric in metrics.items():
        at_labels = float(metric(Rates.of(cells)))
        slopes, _ = derivatives(lambda *c, metric=metric: metric(Rates.of(c)), cells)
        if not np.isfinite(at_labels) or not np.isfinite(slopes).all():
            ends: tuple[Any, Any] = (0.0, 1.0) if name in SHARES else (np.nan, np.nan)
            found[name] = Estimate(at_labels, *ends, "prediction-powered", "an outcome has no labelled row")
            continue
        target, here_says, there_says = slopes @ observed, slopes @ here, slopes @ there
        together = np.concatenate([here_says, there_says])
        spread = together.var(ddof=1)
        covariance = np.cov(target, here_says)[0, 1]
        tuned = covariance / ((1.0 + n / n_more) * spread) if spread > 0.0 else 0.0
        tuned = min(max(float(tuned), 0.0), 1.0)
        value = at_labels + tuned * float(there_says.mean() - here_says.mean())
        variance = float((target - tuned * here_says).var(ddof=1)) / n + tuned**2 * float(there_says.var()) / n_more
        if variance == 0.0 and name in SHARES:
            among = SHARES[name][1]
            ends = wilson(Share(at_labels, n * cells[list(among)].sum()), confidence_level)
        else:
            ends = _interval(name, metric, value, variance, confidence_level)
        found[name] = Estimate(value, *ends, "prediction-powered", f"weight of the scores {tuned:.2f}")
    return found
