"""First alarms of MAPIE's and river's monitors on streams of misses; `monitoring.py` starts it with `--peers`.

    python benchmarks/peermonitors.py STREAMS.npz

It prints JSON: for each monitor and kind of stream the row of the first alarm, "inf" without one. Page and Hinkley's
test is tuned on healthy streams of its own to raise an alarm in .05 of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np

RATE = 0.05
MAX_MARTINGALES = 25  # streams: its cost grows with the square of their length
REFERENCE = 1000  # rows that the test of exchangeability is given before
THRESHOLDS = (7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 17.0, 20.0)
DELTA = 0.05


def risk_monitoring(missed: np.ndarray, _seed: int) -> float:
    """The risk is that of a classifier which is wrong where an interval misses; the threshold is known."""
    from mapie.exchangeability_testing import RiskMonitoring

    monitor = RiskMonitoring(risk="accuracy", test_level=RATE, threshold=0.1, warn=False)
    monitor.update(np.ones(len(missed), int), 1 - missed.astype(int))
    above = np.flatnonzero(monitor.online_risk_lower_bound_sequence_history > monitor.threshold)
    return float(above[0] + 1) if above.size else float("inf")


def martingale(missed: np.ndarray, seed: int) -> float:
    """Of scores that miss as often: absolute normal residuals, above 1.645 where an interval misses."""
    from mapie.exchangeability_testing import OnlineMartingaleTest
    from scipy.stats import halfnorm

    rng = np.random.default_rng(seed)
    is_missed = np.concatenate([rng.random(REFERENCE) < 0.1, missed])
    u = rng.random(len(is_missed))
    scores = halfnorm.ppf(np.where(is_missed, 0.9 + 0.1 * u, 0.9 * u))
    test = OnlineMartingaleTest(task="regression", test_level=RATE, warn=False, random_state=seed)
    for i, score in enumerate(scores):
        test.update_simple_jumper_martingale(test.compute_p_value(score, scores[:i]))
    values = np.array(test.martingale_value_history)[REFERENCE:]
    above = np.flatnonzero(values > test.reject_threshold)
    return float(above[0] + 1) if above.size else float("inf")


def first_drift(detector: object, missed: np.ndarray) -> float:
    for i, event in enumerate(missed.tolist()):
        detector.update(float(event))
        if detector.drift_detected:
            return float(i + 1)
    return float("inf")


def adwin(missed: np.ndarray, _seed: int) -> float:
    from river.drift import ADWIN

    return first_drift(ADWIN(), missed)


def page_hinkley(threshold: float) -> Callable[[np.ndarray, int], float]:
    def run(missed: np.ndarray, _seed: int) -> float:
        from river.drift import PageHinkley

        return first_drift(PageHinkley(delta=DELTA, threshold=threshold, mode="up", alpha=1.0), missed)

    return run


def tuned_threshold(rows: int, n: int) -> float:
    """The smallest threshold with which at most .05 of healthy streams have an alarm."""
    streams = np.random.default_rng(7).random((n, rows)) < 0.1
    for threshold in THRESHOLDS:
        run = page_hinkley(threshold)
        if np.mean([np.isfinite(run(one, 0)) for one in streams]) <= RATE:
            return threshold
    return THRESHOLDS[-1]


def main() -> None:
    streams = np.load(sys.argv[1])
    rows, n = streams["healthy"].shape
    threshold = tuned_threshold(rows, n)
    monitors = {
        "MAPIE RiskMonitoring (threshold .1)": risk_monitoring,
        "MAPIE OnlineMartingaleTest (jumper)": martingale,
        "river ADWIN (default)": adwin,
        f"river PageHinkley (delta {DELTA}, threshold tuned to {threshold:g})": page_hinkley(threshold),
    }
    found = {
        name: {
            kind: [str(run(streams[kind][:, j], j)) for j in range(min(n, MAX_MARTINGALES if run is martingale else n))]
            for kind in streams.files
        }
        for name, run in monitors.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
