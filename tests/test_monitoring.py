"""Monitoring: guarantees of alarms and of confidence sequences, rows in any order, state that survives."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pimeter as pm
from pimeter.monitoring.evidence import ODDS_RATIOS, START_ROWS, RateEvidence, begun_at, factors, stepped
from pimeter.monitoring.exchangeability import N_BINS, ROWS_TO_PLACE_BINS, ExchangeabilityEvidence
from pimeter.monitoring.onset import onset
from pimeter.monitoring.sequence import coverage_estimate, log_evidence_against, rate_bounds
from pimeter.monitoring.settings import Settings
from pimeter.monitoring.stream import MAX_POINTS, MAX_SUBGROUPS, N_RECENT

BOUND = 1.6448536269514722  # covers 90 % of standard normal targets


def watched(targets, bound=BOUND, **settings) -> pm.CoverageMonitor:
    monitor = pm.CoverageMonitor(0.9, **settings)
    return monitor.update(targets, np.tile([-bound, bound], (len(targets), 1)))


def normal(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


class TestEvidence:
    @pytest.mark.parametrize(("is_renewed", "expected"), [(False, 1.0), (True, 8.0)])
    @pytest.mark.parametrize("limit", [0.02, 0.1, 0.5])
    def test_expected_fortune_at_the_limit(self, limit, is_renewed, expected):
        """Over all series of eight rows, each with its probability: exact."""
        total = 0.0
        for events in itertools.product([False, True], repeat=8):
            evidence = RateEvidence(limit, is_renewed=is_renewed)
            for event in events:
                evidence.update(event)
            total += evidence.value * math.prod(limit if event else 1.0 - limit for event in events)
        assert_allclose(total, expected, rtol=1e-12)

    def test_arrays_of_streams_are_the_same_formula(self):
        events = np.random.default_rng(0).random((50, 7)) < 0.3
        happened, not_happened = factors(0.1)
        capitals = [np.zeros(7) for _ in ODDS_RATIOS]
        for i, row in enumerate(events):
            gains = [np.where(row, yes, no) for yes, no in zip(happened, not_happened, strict=True)]
            capitals = stepped(capitals, begun_at(i, is_renewed=False), gains)
        for j in range(7):
            one = RateEvidence(0.1)
            for event in events[:, j]:
                one.update(bool(event))
            assert_allclose(sum(capitals)[j] + START_ROWS / (START_ROWS + 50), one.value, rtol=1e-12)

    def test_stays_finite(self):
        evidence = RateEvidence(0.1)
        for _ in range(5000):
            evidence.update(True)
        assert math.isfinite(evidence.value)
        assert evidence.value > 1e280


class TestExchangeability:
    def test_p_values_bet_fairly(self):
        """With a stake of 1 at each row the mean capital is the number of rows: 2,000 streams of 6 counted rows."""
        values = []
        for seed in range(2000):
            evidence = ExchangeabilityEvidence(is_renewed=True, seed=seed)
            for number in np.random.default_rng(seed).standard_normal(ROWS_TO_PLACE_BINS + 6).tolist():
                evidence.update(number)
            values.append(evidence.value)
        assert sum(evidence.counts) == 6
        assert len(evidence.counts) == N_BINS
        assert abs(np.mean(values) - 6.0) < 4.0 * np.std(values) / 2000**0.5

    @pytest.mark.parametrize("change", [lambda y: y + 1.0, lambda y: 2.0 * y], ids=["shift", "spread"])
    def test_notices(self, change):
        y = normal(2000, 5)
        y[1000:] = change(y[1000:])
        monitor = watched(y, bound=9.0, watch=("misses", "residuals"))
        assert monitor.alarm_
        assert abs(monitor.since_.row - 1000) < 100
        assert "residuals changed" in monitor.explain().headline.claim

    def test_of_widths(self):
        monitor = pm.CoverageMonitor(0.9, watch=["misses", "widths"])
        widths = np.where(np.arange(1500) < 700, 1.0, 1.3) * (2.0 + 0.3 * normal(1500) ** 2)
        monitor.update(np.zeros(1500), np.column_stack([-widths, widths]))
        assert monitor.alarm_
        assert "widths" in monitor.explain().headline.claim
        assert (
            not pm.CoverageMonitor(0.9).update(np.zeros(1500), np.column_stack([-widths, widths])).evidence_.value < 0
        )

    def test_alarms_on_autocorrelation(self):
        """Intervals hold, residuals depend on each other: only the watch of residuals minds."""
        noise = normal(6000, 2)
        y = np.empty(6000)
        y[0] = noise[0]
        for i in range(1, 6000):
            y[i] = 0.98 * y[i - 1] + math.sqrt(1.0 - 0.98**2) * noise[i]
        assert watched(y, bound=4.0, few_tolerance=0.0999, watch=("misses", "residuals")).alarm_


class TestFalseAlarms:
    def test_healthy_streams(self):
        """100 streams of 1,000 rows; the bound holds for all times, so that few alarms come in so few rows."""
        n_alarms = sum(watched(normal(1000, seed)).alarm_ for seed in range(100))
        assert n_alarms <= 5  # a rate of .05; the true one is below .01

    def test_discrete_targets_that_cover_more(self):
        """Counts with central intervals cover 95 %, and those on a bound are not taken for too good."""
        rng = np.random.default_rng(0)
        y = rng.poisson(4.0, 20_000)
        lower, upper = 1, 8  # quantiles .05 and .95 of that distribution
        monitor = pm.CoverageMonitor(0.9).update(y, np.tile([lower, upper], (len(y), 1)))
        assert monitor.estimate_.lower > 0.95
        assert not monitor.alarm_

    @pytest.mark.parametrize("m", [100, 1000])
    def test_tolerance_follows_calibration_rows(self, m):
        from scipy.stats import beta

        limits = Settings(confidence_level=0.9, n_calibration=m).limits
        rank = math.ceil(0.9 * (m + 1))
        assert_allclose(beta.cdf(1.0 - limits.miss, rank, m + 1 - rank), 0.005, rtol=1e-6)
        assert 1.0 / Settings(confidence_level=0.9, n_calibration=m).threshold == pytest.approx(0.04)
        assert Settings(confidence_level=0.9, n_calibration=m, tolerance=0.01).limits.miss == pytest.approx(0.11)

    def test_run_length(self):
        """On average it takes at least so many rows until a false alarm: 60 streams."""
        lengths = []
        for seed in range(60):
            monitor, y = pm.CoverageMonitor(0.9, run_length=300), normal(6000, seed)
            for start in range(0, 6000, 50):
                if monitor.update(y[start : start + 50], [(-BOUND, BOUND)] * 50).alarm_:
                    break
            lengths.append(monitor._stream.alarm.row if monitor.alarm_ else 6000)
        assert np.mean(lengths) > 300
        late = watched(np.concatenate([normal(2000), 1.6 * normal(400, 1)]), run_length=2000)
        assert 2000 < late._stream.alarm.row < 2200


class TestAlarms:
    def test_after_a_change(self):
        monitor = watched(np.concatenate([normal(3000), 1.6 * normal(1000, 1)]))
        assert monitor.alarm_
        assert 3000 < monitor._stream.alarm.row < 3250
        assert abs(monitor.since_.row - 3000) < 60
        assert monitor.since_.lower <= 3000 <= monitor.since_.upper
        assert monitor.evidence_.value >= monitor.evidence_.threshold == 20.0
        assert float(monitor.evidence_) == monitor.evidence_.value
        assert "enough for an alarm" in str(monitor.evidence_)

    def test_stays(self):
        monitor = watched(np.full(100, 5.0))
        before = monitor.since_, monitor.evidence_
        monitor.update(np.zeros(5000), np.tile([-1.0, 1.0], (5000, 1)))
        assert (monitor.since_, monitor.evidence_) == before
        assert monitor.alarm_

    def test_too_few_misses(self):
        monitor = watched(normal(3000), bound=3.0)
        assert monitor.alarm_
        assert "too rarely" in monitor.explain().headline.claim
        assert not watched(normal(3000), bound=3.0, watch=("misses",)).alarm_

    def test_either_bound(self):
        """All misses above: as many as may be at both bounds together."""
        y = np.where(np.random.default_rng(0).random(3000) < 0.1, 2.0, 0.0)
        intervals = np.tile([-1.0, 1.0], (3000, 1))
        assert not pm.CoverageMonitor(0.9).update(y, intervals).alarm_
        monitor = pm.CoverageMonitor(0.9, watch=("misses", "bounds")).update(y, intervals)
        assert monitor.alarm_
        assert "above their upper bound" in monitor.explain().headline.claim

    def test_one_subgroup(self):
        y = normal(8000, 3)
        store = np.tile(["a", "b", "c", "d"], 2000)
        y[5000:][store[5000:] == "c"] *= 2.0
        monitor = pm.CoverageMonitor(0.9).update(y, np.tile([-BOUND, BOUND], (8000, 1)), by=store)
        found = monitor.explain()
        assert monitor.alarm_
        assert "subgroup c" in found.headline.claim
        assert found.subgroups[0].label == "c"
        assert abs(monitor.since_.row - 5000) < 400
        assert sum(one.rows for one in found.subgroups) == 8000

    def test_names_of_subgroups_stay_as_they_are(self):
        y = normal(8000, 3)
        store = np.tile(["North", "South", "East", "West"], 2000)
        y[5000:][store[5000:] == "North"] *= 2.0
        monitor = pm.CoverageMonitor(0.9).update(y, np.tile([-BOUND, BOUND], (8000, 1)), by=store)
        assert monitor.explain().diagnosis["coverage"].sentence.startswith("Targets of subgroup North lie outside")

    def test_explains_width_or_centre(self):
        shifted = watched(np.concatenate([normal(2000), normal(500, 1) + 1.0])).explain()
        assert "moved up" in shifted.diagnosis["bounds"].sentence
        spread = watched(np.concatenate([normal(2000), 2.0 * normal(500, 1)])).explain()
        assert "both bounds" in spread.diagnosis["bounds"].sentence
        assert "recalibrate" in spread.code
        assert not watched(normal(500)).explain().diagnosis.raised

    def test_onset_with_rows_before(self):
        events = np.random.default_rng(0).random(1000) < np.where(np.arange(1000) < 600, 0.1, 0.4)
        found = onset(events, np.arange(5000, 6000), (5000, 500))
        assert found.lower <= 5600 <= found.upper
        assert abs(found.row - 5600) < 40


class TestEstimate:
    def test_holds_at_all_times(self):
        """400 streams of 3,000 rows whose rates change from row to row: the mean of the rates so far is inside."""
        rng = np.random.default_rng(0)
        rates = np.where(rng.random((400, 3000)) < 0.5, 0.02, 0.18)
        misses = np.cumsum(rng.random((400, 3000)) < rates, axis=1)
        n = np.arange(1, 3001)
        at = np.unique(np.geomspace(1, 3000, 120).astype(int)) - 1
        mean = np.cumsum(rates, axis=1) / n
        scale = 1.0 / math.sqrt(80.0 * 0.09)
        evidence = log_evidence_against(mean[:, at], misses[:, at], n[at], scale)
        assert (evidence >= math.log(20.0)).any(axis=1).mean() <= 0.05

    @pytest.mark.parametrize("n", [100, 1000, 10_000])
    def test_is_not_much_wider_than_an_exact_interval(self, n):
        from scipy.stats import beta

        k = n // 10
        low, high = rate_bounds(k, n, 0.1)
        exact = beta.ppf(0.975, k + 1, n - k) - beta.ppf(0.025, k, n - k + 1)
        assert (high - low) / exact < 1.7

    def test_bounds_are_where_the_evidence_is_enough(self):
        low, high = rate_bounds(30, 200, 0.1)
        scale = 1.0 / math.sqrt(80.0 * 0.09)
        assert_allclose(log_evidence_against([low, high], 30, 200, scale), math.log(20.0), rtol=1e-4)

    def test_extremes(self):
        assert coverage_estimate(0, 0, 0.9)[1:] == (0.0, 1.0, 0)
        assert coverage_estimate(0, 10, 0.9).upper == 1.0
        assert coverage_estimate(10, 10, 0.9).lower == 0.0
        assert pm.CoverageMonitor().estimate_.rows == 0
        assert "no rows" in str(pm.CoverageMonitor().estimate_)
        assert "Nothing is known" in str(pm.CoverageMonitor().explain())


class TestRows:
    def test_the_same_however_divided(self):
        y = np.concatenate([normal(1500), 1.5 * normal(300, 1)])
        whole, one_by_one = watched(y), pm.CoverageMonitor(0.9)
        for value in y.tolist():
            one_by_one.update(value, (-BOUND, BOUND))
        assert whole._stream.to_dict() == one_by_one._stream.to_dict()

    def test_memory_is_flat(self):
        small, large = watched(normal(5000)), watched(normal(40_000))
        lengths = [len(json.dumps(one._stream.to_dict())) for one in (small, large)]
        assert abs(lengths[1] - lengths[0]) < 0.5 * lengths[0]
        assert len(large._stream.history) < 2 * MAX_POINTS
        assert len(large._stream._codes) == N_RECENT

    def test_frames(self):
        import pandas as pd

        frame = pd.DataFrame({"upper": [1.0, 2.0], "lower": [0.0, 1.0], "store": ["a", None]})
        monitor = pm.CoverageMonitor().update([0.5, 3.0], frame[["lower", "upper"]], by=frame["store"])
        assert monitor.estimate_.value == 0.5
        assert {one.label for one in monitor.explain().subgroups} == {"a", "missing"}

    @pytest.mark.parametrize(
        ("targets", "intervals", "message"),
        [
            (math.nan, (0.0, 1.0), "y_true"),
            ([1.0, math.inf], [(0.0, 1.0)] * 2, "y_true"),
            (1.0, (0.0, math.inf), "intervals must be finite"),
            (1.0, (1.0, 0.0), "lower bound must not exceed"),
            ([1.0, 2.0], [(0.0, 1.0)], r"shape \(2, 2\)"),
            ([[1.0]], [(0.0, 1.0)], "y_true"),
            (1e301, (0.0, 1.0), "1e300"),
        ],
    )
    def test_bad_rows_change_nothing(self, targets, intervals, message):
        monitor = watched(normal(100))
        before = monitor._stream.to_dict()
        with pytest.raises(ValueError, match=message):
            monitor.update(targets, intervals)
        assert monitor._stream.to_dict() == before

    def test_refused_subgroups_change_nothing(self):
        monitor = pm.CoverageMonitor().expect([1], (0.0, 1.0), time=10.0)
        for ids, time, message in [([1], 11.0, "expected before"), ([2], 9.0, "must not go back")]:
            with pytest.raises(ValueError, match=message):
                monitor.expect(ids, (0.0, 1.0), by=["a"], time=time)
        many = MAX_SUBGROUPS + 1
        with pytest.raises(ValueError, match="more than 10,000 subgroups"):
            monitor.update(np.zeros(many), np.tile([-1.0, 1.0], (many, 1)), by=np.arange(many))
        assert monitor.update(0.5, (0.0, 1.0)).n_seen_ == 1

    def test_subgroups_in_all_calls_or_none(self):
        with pytest.raises(ValueError, match="without subgroups"):
            watched(normal(10)).update(0.0, (0.0, 1.0), by="a")
        with pytest.raises(ValueError, match="with subgroups"):
            pm.CoverageMonitor().update(0.0, (0.0, 1.0), by="a").update(0.0, (0.0, 1.0))

    @pytest.mark.parametrize("given", [{}, {"tolerance": 0.01}, {"few_tolerance": 0.01}])
    def test_calibration_has_its_part_of_false_alarms(self, given):
        assert_allclose(pm.CoverageMonitor(n_calibration=100, **given).evidence_.threshold, 1.0 / 0.04)

    @pytest.mark.parametrize(
        "settings",
        [
            {"confidence_level": 90},
            {"false_alarm_rate": 0.0},
            {"run_length": 1},
            {"tolerance": -0.1},
            {"few_tolerance": "a"},
            {"n_calibration": 0},
            {"watch": ("few misses",)},
            {"watch": ("misses", "mood")},
            {"expire_after": 0.0},
        ],
    )
    def test_bad_settings(self, settings):
        with pytest.raises(ValueError, match=next(iter(settings))):
            pm.CoverageMonitor(**settings)


class TestLateTargets:
    def test_in_any_order(self):
        y = normal(300)
        order = np.random.default_rng(1).permutation(300)
        late, known = pm.CoverageMonitor(0.9), pm.CoverageMonitor(0.9)
        late.expect(np.arange(300), [(-BOUND, BOUND)] * 300)
        for some in np.array_split(order, 7):
            late.observe(some, y[some])
        known.update(y[order], [(-BOUND, BOUND)] * 300)
        assert late._stream.to_dict() == known._stream.to_dict()
        assert late.n_waiting_ == 0

    def test_refuses(self):
        monitor = pm.CoverageMonitor(0.9).expect(["a", 1, "1"], [(0.0, 1.0)] * 3, time=10.0)
        monitor.observe("a", 0.5, time=11.0)
        for attempt, message in [
            (lambda: monitor.observe("a", 0.5), "observed before"),
            (lambda: monitor.observe("a", 0.6), "cannot change"),
            (lambda: monitor.observe(["1", "b"], [0.5, 0.5]), "never expected"),
            (lambda: monitor.observe(["1", "1"], [0.5, 0.5]), "given twice"),
            (lambda: monitor.observe([1], [0.5, 0.6]), "one target for each"),
            (lambda: monitor.expect(1, (0.0, 1.0)), "expected before"),
            (lambda: monitor.expect([None], [(0.0, 1.0)]), "missing"),
            (lambda: monitor.observe(1, 0.5, time=5.0), "not go back"),
            (lambda: monitor.observe(1, math.nan), "y_true"),
            (lambda: monitor.expect(2, (0.0, math.inf)), "finite"),
        ]:
            with pytest.raises(ValueError, match=message):
                attempt()
            assert (monitor.n_seen_, monitor.n_waiting_) == (1, 2)

    def test_expire(self):
        monitor = pm.CoverageMonitor(0.9, expire_after=100.0).expect([1, 2], [(0.0, 1.0)] * 2, time=0.0)
        monitor.observe(1, 0.5, time=50.0)
        monitor.expect(3, (0.0, 1.0), time=120.0).observe(3, 0.5, time=120.0)
        assert (monitor.n_seen_, monitor.n_waiting_, monitor.n_expired_) == (2, 0, 1)
        with pytest.raises(ValueError, match="its time is over"):
            monitor.observe(2, 0.5, time=121.0)

    def test_the_same_time_twice(self):
        """Times of which the later is not the earlier one plus their difference, in the digits of floats."""
        earlier, later = next(
            (a, b) for a, b in np.sort(np.random.default_rng(0).uniform(0.0, 2e9, (1000, 2))) if a + (b - a) > b
        )
        monitor = pm.CoverageMonitor().expect(1, (0.0, 1.0), time=earlier).expect(2, (0.0, 1.0), time=later)
        assert monitor.observe(1, 0.5, time=later).n_seen_ == 1

    def test_a_clock_that_is_put_back(self, monkeypatch):
        from pimeter.monitoring import waiting

        times = iter([1e9, 1e9 - 3600.0, 1e9 + 1.0])
        monkeypatch.setattr(waiting.clock, "time", lambda: next(times))
        monitor = pm.CoverageMonitor().expect(1, (0.0, 1.0)).expect(2, (0.0, 1.0)).observe([1, 2], [0.5, 0.5])
        assert monitor.n_seen_ == 2


class TestState:
    def test_goes_on(self, tmp_path):
        y, path = np.concatenate([normal(1200), 1.6 * normal(300, 1)]), tmp_path / "watch.json"
        intervals = np.tile([-BOUND, BOUND], (1500, 1))
        store = np.tile(["a", "b", "c"], 500)
        settings = {"confidence_level": 0.9, "watch": ("misses", "few misses", "bounds", "residuals", "widths")}
        for some in np.array_split(np.arange(1500), 5):
            with pm.CoverageMonitor.open(path, **settings) as monitor:
                monitor.update(y[some], intervals[some], by=store[some])
        whole = pm.CoverageMonitor(**settings).update(y, intervals, by=store)
        with pm.CoverageMonitor.open(path) as monitor:
            assert json.dumps(monitor._stream.to_dict()) == json.dumps(whole._stream.to_dict())
            assert monitor.alarm_
            assert monitor.since_ == whole.since_
        with pytest.raises(ValueError, match=r"begun with confidence_level=0\.9"):
            pm.CoverageMonitor.open(path, confidence_level=0.8)

    def test_labels_that_json_does_not_have(self, tmp_path):
        path = tmp_path / "watch.json"
        with pm.CoverageMonitor.open(path) as monitor:
            monitor.update([0.5, 0.5], [(0.0, 1.0)] * 2, by=[math.inf, 1.5])
        with pm.CoverageMonitor.open(path) as monitor:
            assert {one.label for one in monitor.explain().subgroups} == {"inf", "1.5"}

    def test_one_process_at_a_time(self, tmp_path):
        path = tmp_path / "watch.json"
        with pm.CoverageMonitor.open(path), pytest.raises(ValueError, match="in use by another process"):
            pm.CoverageMonitor.open(path)
        link = tmp_path / "link.json"
        link.symlink_to(path)
        with pm.CoverageMonitor.open(link), pytest.raises(ValueError, match="in use by another process"):
            pm.CoverageMonitor.open(path)
        assert link.is_symlink()
        pm.CoverageMonitor.open(path).close()

    def test_a_lock_that_is_none(self, tmp_path):
        (tmp_path / "watch.json.lock").write_text("mine " * 1000, encoding="utf-8")
        with pytest.raises(ValueError, match="file is not a database"):
            pm.CoverageMonitor.open(tmp_path / "watch.json")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda text: text[: len(text) // 2], "not a complete state"),
            (lambda text: text.replace('"version": 1', '"version": 2'), "has version 2"),
            (lambda text: text.replace('"rows": 50', '"rows": 51', 1), "checksum"),
            (lambda _: "[1, 2]", "not the state of a monitor"),
            (lambda _: "", "not a complete state"),
        ],
    )
    def test_other_files_are_refused_and_stay(self, tmp_path, change, message):
        path = tmp_path / "watch.json"
        with pm.CoverageMonitor.open(path) as monitor:
            monitor.update(normal(50), [(-BOUND, BOUND)] * 50)
        text = change(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            pm.CoverageMonitor.open(path)
        assert path.read_text(encoding="utf-8") == text

    def test_other_databases_are_refused(self, tmp_path):
        path = tmp_path / "watch.json"
        pm.CoverageMonitor.open(path).close()
        (tmp_path / "watch.json.sqlite").write_text("no database, but long enough to be taken for one" * 10)
        with pytest.raises(ValueError, match="cannot be used as a database"):
            pm.CoverageMonitor.open(path)
        (tmp_path / "watch.json.sqlite").unlink()
        with sqlite3.connect(tmp_path / "watch.json.sqlite") as other:
            other.execute("PRAGMA user_version = 9")
        other.close()
        with pytest.raises(ValueError, match="has version 9"):
            pm.CoverageMonitor.open(path)

    def test_no_folder(self, tmp_path):
        with pytest.raises(ValueError, match="not a folder"):
            pm.CoverageMonitor.open(tmp_path / "none" / "watch.json")
        with pytest.raises(ValueError, match="it is a folder"):
            pm.CoverageMonitor.open(tmp_path)

    def test_targets_noted_before_a_crash_count_once(self, tmp_path):
        """The database has the targets, the state does not know of them yet."""
        path = tmp_path / "watch.json"
        with pm.CoverageMonitor.open(path) as monitor:
            monitor.expect([1, 2, 3], [(0.0, 1.0)] * 3)
            monitor._waiting().observe(["1", "2"], [0.5, 2.0], None)
        for _ in range(2):
            with pm.CoverageMonitor.open(path) as monitor:
                assert (monitor.n_seen_, monitor.n_waiting_, monitor.estimate_.value) == (2, 1, 0.5)

    @pytest.mark.slow
    def test_killed_at_random_moments(self, tmp_path):
        """12 times; benchmarks/monitoring.py does it more often."""
        path = tmp_path / "watch.json"
        script = tmp_path / "run.py"
        script.write_text(
            textwrap.dedent("""
                import sys
                import pimeter as pm

                with pm.CoverageMonitor.open(sys.argv[1], confidence_level=0.9) as monitor:
                    print("ready", flush=True)
                    first = monitor.n_seen_
                    for i in range(first, 10**6):
                        if not monitor._waiting().known([str(i)]):
                            monitor.expect(i, (0.0, 1.0))
                        monitor.observe(i, 0.5)
                        print(i + 1, flush=True)
            """)
        )
        done = 0
        for seed in range(12):
            with subprocess.Popen([sys.executable, script, path], stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout.readline() == "ready\n"
                for _ in range(np.random.default_rng(seed).integers(1, 30)):
                    done = int(process.stdout.readline())
                process.kill()
                rest = process.stdout.read().split()
            done = max([done, *map(int, rest)])
            with pm.CoverageMonitor.open(path) as monitor:
                assert monitor.n_seen_ in {done, done + 1}
                assert monitor.n_waiting_ <= 1
                done = monitor.n_seen_


class TestRecalibration:
    def test_of_a_regressor(self):
        X = np.zeros((4000, 1))
        y = np.concatenate([normal(2500), 1.8 * normal(1500, 1)])
        model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.9).calibrate(X[:1000], y[:1000])
        monitor = pm.CoverageMonitor(0.9, n_calibration=1000)
        for start in range(1000, 4000, 50):
            rows = slice(start, start + 50)
            if monitor.update(y[rows], model.predict_interval(X[rows])).alarm_:
                break
        assert monitor.guaranteed_level_ == 0.9
        margin = model.margin_[0]
        seen = slice(1000, start + 50)
        found = monitor.recalibrate(model, X[seen], y[seen])
        assert found.was_selected
        assert model.margin_[0] > 1.3 * margin
        assert math.isnan(monitor.guaranteed_level_)
        assert math.isnan(model.guaranteed_level_)
        assert not monitor.alarm_
        assert found.coverage_before < 0.85
        assert 0.5 < found.coverage_online <= 1.0
        assert "Nothing is guaranteed" in str(found)
        assert "Nothing is guaranteed" in monitor.explain().diagnosis["recalibration"].sentence
        later = slice(start + 50, start + 450)
        monitor.update(y[later], model.predict_interval(X[later]))
        assert not monitor.alarm_
        again = monitor.recalibrate(model, X[later], y[later])
        assert (again.was_selected, again.n_rows, monitor.guaranteed_level_) == (False, 400, 0.9)
        assert "No alarm selected" in str(again)

    def test_of_given_intervals(self, tmp_path):
        y = np.concatenate([normal(1000), 3.0 * normal(300, 1)])
        intervals = np.tile([-BOUND, BOUND], (1300, 1))
        model = pm.IntervalCalibrator(0.9, method="additive").fit(y[:500], intervals=intervals[:500])
        path = tmp_path / "watch.json"
        with pm.CoverageMonitor.open(path, confidence_level=0.9) as monitor:
            monitor.update(y[500:], intervals[500:])
            found = monitor.recalibrate(model, intervals[500:], y[500:])
        with pm.CoverageMonitor.open(path, confidence_level=0.9) as monitor:
            assert math.isnan(monitor.guaranteed_level_)
            assert monitor._recalibration.n_rows == found.n_rows

    @pytest.mark.parametrize("columns", [("id", "lower", "upper"), ("upper", "lower")])
    def test_of_intervals_in_a_frame(self, columns):
        import pandas as pd

        y, intervals = 3.0 * normal(300), np.tile([-BOUND, BOUND], (300, 1))
        frame = pd.DataFrame(intervals, columns=["lower", "upper"]).assign(id=np.arange(300))[list(columns)]
        found = []
        for given in (intervals, frame):
            model = pm.IntervalCalibrator(0.9, method="additive").fit(normal(100, 1), intervals=intervals[:100])
            found.append(str(pm.CoverageMonitor(0.9).update(y, given).recalibrate(model, given, y)))
            found.append(str(model.predict_interval(intervals=given)))
        assert found[:2] == found[2:]

    def test_selected_rows_guarantee_nothing_after_an_update_or_in_a_file(self):
        X, y = np.zeros((800, 1)), np.concatenate([normal(400), 4.0 * normal(400, 1)])
        model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.9).calibrate(X[:400], y[:400])
        monitor = pm.CoverageMonitor(0.9).update(y[400:], model.predict_interval(X[400:]))
        monitor.recalibrate(model, X[400:], y[400:])
        read = pm.IntervalRegressor.from_json(model.to_json())
        model.update(X[:50], 4.0 * normal(50, 2))
        for one in (model, read):
            assert math.isnan(one.guaranteed_level_)
            assert "selected by an alarm" in one.guarantee_reason_
        given = pm.IntervalCalibrator(0.9, method="additive").fit(y[:400], intervals=np.tile([-BOUND, BOUND], (400, 1)))
        watch = pm.CoverageMonitor(0.9).update(y[400:], np.tile([-BOUND, BOUND], (400, 1)))
        watch.recalibrate(given, np.tile([-BOUND, BOUND], (400, 1)), y[400:])
        assert math.isnan(pm.IntervalCalibrator.from_json(given.to_json()).guaranteed_level_)

    def test_rows_that_wait_have_the_old_intervals(self):
        y, intervals = np.full(60, 5.0), np.tile([-1.0, 1.0], (60, 1))
        model = pm.IntervalCalibrator(0.9, method="additive").fit(normal(100), intervals=np.tile([-1.0, 1.0], (100, 1)))
        monitor = pm.CoverageMonitor(0.9).expect(np.arange(70), np.tile([-1.0, 1.0], (70, 1)))
        monitor.observe(np.arange(60), y).recalibrate(model, intervals + 0.001 * normal(60)[:, None], y + normal(60))
        assert monitor.expect(99, (0.0, 1.0)).observe([65, 99], [5.0, 0.5]).n_seen_ == 1
        assert monitor.n_waiting_ == 9

    def test_refuses(self):
        with pytest.raises(ValueError, match="no alarm"):
            watched(normal(100)).recalibrate(None, None, [1.0])
        with pytest.raises(ValueError, match="takes the last"):
            watched(np.full(100, 5.0)).recalibrate(None, None, [1.0])


class TestLog:
    """`pimeter monitor` on a log that grows."""

    @staticmethod
    def run(*arguments) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "pimeter", "monitor", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @staticmethod
    def write(path, n, n_known=None, *, changed=None, first=0) -> None:
        y = np.concatenate([normal(600), 2.0 * normal(400, 1)])
        lines = ["order,store,y,lo-90,hi-90"]
        for i in range(first, n):
            target = changed if changed is not None and i == 5 else f"{y[i]:.6f}"
            lines.append(f"o{i},{'ab'[i % 2]},{target if i < (n_known or n) else ''},{-BOUND},{BOUND}")
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def test_counts_what_is_new(self, tmp_path):
        log, state, page = tmp_path / "log.csv", tmp_path / "watch.json", tmp_path / "page.html"
        options = ("--state", state, "--lower", "lo-90", "--upper", "hi-90", "--by", "store")
        self.write(log, 500, 450)
        for note in (
            "500 rows were new, and 450 targets; 50 rows wait",
            "0 rows were new, and 0 targets; 50 rows wait",
        ):
            done = self.run(log, *options)
            assert done.returncode == 0, done.stderr
            assert note in done.stderr
            assert "No alarm" in done.stdout
        self.write(log, 1000)
        done = self.run(log, *options, "--out", page, "--json")
        assert done.returncode == 3, done.stderr
        found = json.loads(done.stdout)
        assert found["n_rows"] == 1000
        assert abs(found["since"] - 600) < 60
        assert "<figure>" in page.read_text(encoding="utf-8")
        assert "the alarm says that it no longer is" in page.read_text(encoding="utf-8")
        said = self.run(log, *options).stdout.splitlines()
        commands = [line for line in said if line.startswith("pimeter")]
        assert commands[0].startswith("pimeter recalibrate since-the-change.csv --apply new.csv")
        assert "--target y --lower lo-90 --upper hi-90 --by store --restart" in commands[1]
        done = self.run(*shlex.split(commands[1])[2:])
        assert done.returncode == 0, done.stderr
        assert "Nothing is known yet" in done.stdout

    def test_refuses(self, tmp_path):
        log, state = tmp_path / "log.csv", tmp_path / "watch.json"
        options = ("--state", state, "--lower", "lo-90", "--upper", "hi-90")
        self.write(log, 100)
        assert self.run(log, *options).returncode == 0
        before = state.read_bytes()
        self.write(log, 50)
        assert "fewer than the 100" in self.run(log, *options).stderr
        self.write(log, 120, changed="7.5")
        done = self.run(log, *options)
        assert (done.returncode, "cannot change" in done.stderr) == (2, True)
        assert "begun with confidence_level=0.9" in self.run(log, *options, "--level", "0.8").stderr
        log.write_text("y,lo-90,hi-90\n1,0,2\n1,,2\n", encoding="utf-8")
        assert "row 2 has no 'lo-90'" in self.run(log, *options).stderr
        assert state.read_bytes() == before

    def test_by_id_a_log_may_be_cut(self, tmp_path):
        log, state = tmp_path / "log.csv", tmp_path / "watch.json"
        options = ("--state", state, "--lower", "lo-90", "--upper", "hi-90", "--id", "order", "--json")
        self.write(log, 200, 150)
        assert json.loads(self.run(log, *options).stdout)["n_rows"] == 150
        self.write(log, 230, first=120)  # old rows were removed
        found = json.loads(self.run(log, *options).stdout)
        assert (found["n_rows"], found["n_waiting"]) == (230, 0)

    @pytest.mark.parametrize("ids", [["a", "b", "c"], ["c", "a", "b"], None])
    def test_rows_stay_known_however_old_they_are(self, tmp_path, monkeypatch, ids):
        """Targets come after a day, 80 and 95 days: what is forgotten of a row would count again."""
        from pimeter.monitoring import waiting
        from pimeter.monitoring.log import NEVER, count_log

        seen, y, intervals = [], np.full(3, np.nan), np.tile([-1.0, 1.0], (3, 1))
        for day, row in ((1, 1), (80, 0), (95, 2), (200, 2)):
            monkeypatch.setattr(waiting.clock, "time", lambda day=day: 1e9 + 86400.0 * day)
            y[row] = 0.5
            with pm.CoverageMonitor.open(tmp_path / "watch.json", confidence_level=0.9, expire_after=NEVER) as monitor:
                count_log(monitor, y, intervals, None, ids)
                seen.append(monitor.n_seen_)
        assert seen == [1, 2, 3, 3]

    def test_rows_with_and_without_ids_are_not_mixed(self):
        from pimeter.monitoring.log import count_log

        monitor = pm.CoverageMonitor(0.9)
        rows = (np.zeros(2), np.tile([-1.0, 1.0], (2, 1)), None)
        count_log(monitor, *rows, None)
        with pytest.raises(ValueError, match="begun without --id, and the log is now read with"):
            count_log(monitor, *rows, ["a", "b"])
        assert monitor.n_seen_ == 2

    def test_a_new_watch_of_newly_calibrated_intervals(self, tmp_path):
        log, state = tmp_path / "log.csv", tmp_path / "watch.json"
        options = ("--state", state, "--lower", "lo-90", "--upper", "hi-90")
        self.write(log, 100)
        assert self.run(log, *options).returncode == 0
        done = self.run(log, *options, "--restart", "--calibration-rows", 500, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["largest_miss_rate"] > 0.1
        assert json.loads(state.read_text(encoding="utf-8"))["body"]["settings"]["n_calibration"] == 500
        done = self.run(log, *options, "--out", state)
        assert (done.returncode, "a file of its own" in done.stderr) == (2, True)


class TestPage:
    def test_page_and_json(self, tmp_path):
        y = np.concatenate([normal(1000), 2.0 * normal(300, 1)])
        store = np.tile(["<b>north</b>", "south"], 650)
        monitor = pm.CoverageMonitor(0.9).update(y, np.tile([-BOUND, BOUND], (1300, 1)), by=store)
        found = monitor.explain()
        page = found.to_html(tmp_path / "page.html")
        assert "&lt;b&gt;north&lt;/b&gt;" in page
        assert "<b>north" not in page
        assert page.count("<figure>") == 5
        values = json.loads(found.to_json())
        assert values["is_alarm"]
        assert values["since"] == monitor.since_.row
        assert len(found.to_frame()) == len(found.history)

    def test_before_the_first_row(self):
        assert "<html" in pm.CoverageMonitor(0.9).explain().to_html()


def test_repr():
    assert (
        repr(pm.CoverageMonitor(0.9, n_calibration=100)) == "CoverageMonitor(confidence_level=0.9, n_calibration=100)"
    )


@pytest.mark.parametrize("watch", ["miss", "misses"])
def test_a_single_string_is_not_taken_for_its_letters(watch):
    with pytest.raises(
        TypeError, match=rf"^watch must be a list of names, of 'misses', .*; got the string '{watch}'\.$"
    ):
        pm.CoverageMonitor(0.9, watch=watch)
