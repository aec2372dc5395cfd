"""`Explanation`: what a monitor found, in words, with what to do, and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pimeter.coverage import counted, percent, percent_range
from pimeter.evaluation.results import Result
from pimeter.findings import Diagnosis, Finding, Headline
from pimeter.monitoring.sequence import rate_bounds
from pimeter.monitoring.settings import FEW, MISSES, RESIDUALS, SUBGROUPS, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.monitoring.evidence import Evidence
    from pimeter.monitoring.recalibration import Recalibration
    from pimeter.monitoring.sequence import CoverageEstimate
    from pimeter.monitoring.stream import Alarm, Stream
    from pimeter.protocols import Columns

ONE_SIDED = 0.8  # of the misses since a change, at one bound
MIN_MISSES_SINCE = 5  # that say something about bounds
RECALIBRATION_CODE = """recalibration = monitor.recalibrate(model, X, y)  # the rows since the change
print(recalibration)"""
WHAT_CHANGED = {
    MISSES: "targets lie outside their intervals too often",
    FEW: "targets lie outside their intervals too rarely",
    "below": "targets lie below their lower bound too often",
    "above": "targets lie above their upper bound too often",
    WIDTHS: "the widths of intervals changed",
    RESIDUALS: "the residuals changed, or depend on those before",
}


@dataclass(frozen=True)
class WatchedSubgroup:
    """What is known of one subgroup: its coverage with a confidence sequence, and the evidence against it."""

    label: str
    rows: int
    below: int
    above: int
    mean_width: float
    coverage: float
    lower: float
    upper: float
    evidence: float


@dataclass(frozen=True)
class Moment:
    """A point of the history: rows so far, evidence, coverage with its bounds; and since the point before, the rest."""

    rows: int
    evidence: float
    coverage: float
    lower: float
    upper: float
    below: float
    above: float
    mean_width: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Explanation(Result):
    """What a monitor found.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    confidence_level : float
        The level that intervals are to cover.
    is_alarm : bool
        Whether there was an alarm.
    n_rows, n_below, n_above : int
        Rows, targets below their lower bound and above their upper one.
    coverage, lower, upper : float
        Mean coverage of all rows, and its confidence sequence at 95 %.
    evidence, threshold : float
        The e-value, and where it raises an alarm.
    since, since_lower, since_upper : int or None
        Row at which a change most likely began, with a range; None without an alarm.
    alarm_row : int or None
        How many rows had come at the alarm.
    largest_miss_rate : float
        Probability of a miss up to which intervals are taken to hold.
    guarantee : str
        What is guaranteed of alarms.
    guaranteed_level : float
        Of the intervals; NaN where they were calibrated on rows that an alarm selected.
    n_waiting, n_expired : int
        Rows whose targets have not come, and those that no longer wait.
    subgroups : tuple of WatchedSubgroup
        Those that were watched, the one with the most evidence first.
    history : tuple of Moment
        Up to 400 points in time.
    """

    confidence_level: float
    is_alarm: bool
    n_rows: int
    n_below: int
    n_above: int
    coverage: float
    lower: float
    upper: float
    evidence: float
    threshold: float
    since: int | None
    since_lower: int | None
    since_upper: int | None
    alarm_row: int | None
    largest_miss_rate: float
    guarantee: str
    guaranteed_level: float
    n_waiting: int
    n_expired: int
    subgroups: tuple[WatchedSubgroup, ...]
    history: tuple[Moment, ...]

    def _table(self) -> Columns:
        names = ("rows", "evidence", "coverage", "lower", "upper", "below", "above", "mean_width")
        return {name: [getattr(moment, name) for moment in self.history] for name in names}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.monitoring import monitoring_html

        return monitoring_html(self.to_dict(), about)


def explanation(
    stream: Stream,
    evidence: Evidence,
    estimate: CoverageEstimate,
    recalibration: Recalibration | None,
    *,
    n_waiting: int,
    n_expired: int,
) -> Explanation:
    """What is known of a stream, in words."""
    settings, alarm, counts = stream.settings, stream.alarm, stream.counts
    subgroups = _subgroups(stream)
    findings = [
        _coverage(stream, evidence, estimate),
        *([_bounds(stream, alarm)] if counts.misses else []),
        *([_by(subgroups, alarm)] if subgroups else []),
        *([_recalibration(recalibration)] if recalibration is not None else []),
    ]
    since = None if alarm is None else alarm.since
    return Explanation(
        headline=_headline(stream, evidence, estimate),
        diagnosis=Diagnosis.of(findings, "Nothing to do: go on watching."),
        confidence_level=settings.confidence_level,
        is_alarm=alarm is not None,
        n_rows=counts.rows,
        n_below=counts.below,
        n_above=counts.above,
        coverage=estimate.value,
        lower=estimate.lower,
        upper=estimate.upper,
        evidence=evidence.value,
        threshold=evidence.threshold,
        since=None if since is None else since.row,
        since_lower=None if since is None else since.lower,
        since_upper=None if since is None else since.upper,
        alarm_row=None if alarm is None else alarm.row,
        largest_miss_rate=settings.limits.miss,
        guarantee=_guarantee(stream),
        guaranteed_level=settings.confidence_level if recalibration is None else recalibration.guaranteed_level,
        n_waiting=n_waiting,
        n_expired=n_expired,
        subgroups=subgroups,
        history=_history(stream),
    )


def what_changed(alarm: Alarm) -> str:
    """What an alarm is about, in words."""
    if alarm.watch == SUBGROUPS:
        return f"targets of {_shown(alarm.label)} lie outside their intervals too often"
    return WHAT_CHANGED[alarm.watch]


def _shown(label: object) -> str:
    return "rows without a subgroup" if label is None else f"subgroup {label}"


def _headline(stream: Stream, evidence: Evidence, estimate: CoverageEstimate) -> Headline:
    """Whether there is an alarm, of what and since when, and how often intervals held."""
    if not estimate.rows:
        return Headline("Nothing is known yet.", "No target has come.")
    low, high = percent_range(estimate.lower, estimate.upper)
    seen = f"Of {counted(estimate.rows, 'row')} {percent(estimate.value)} were covered"
    asked = f"{percent(stream.settings.confidence_level)} are asked for"
    mean = f"{seen}; {asked}. At 95 % confidence the mean coverage is {low} to {high} %."
    alarm = stream.alarm
    if alarm is None:
        return Headline("No alarm: nothing says that the intervals do not hold.", f"{mean} Evidence: {evidence}.")
    return Headline(f"Alarm: {what_changed(alarm)}, since about row {alarm.since.row:,}.", mean)


def _guarantee(stream: Stream) -> str:
    """What is guaranteed of alarms."""
    settings = stream.settings
    if settings.run_length is not None:
        often = f"false alarms come after {settings.run_length:,} rows or more on average"
    else:
        often = f"the probability of ever raising a false alarm is at most {percent(settings.false_alarm_rate)}"
    least = percent(1.0 - settings.limits.miss)
    return f"While each row is covered with a probability of {least} or more, given all rows before, {often}."


def _coverage(stream: Stream, evidence: Evidence, estimate: CoverageEstimate) -> Finding:
    """Whether the intervals hold."""
    alarm = stream.alarm
    level = stream.settings.confidence_level
    if alarm is None:
        sentence = f"Evidence against them is {evidence}. {_guarantee(stream)}"
        advice = ""
    else:
        since = f"most likely since {alarm.since}, counted from 0"
        what = what_changed(alarm)
        sentence = f"{what[0].upper()}{what[1:]}, {since}; the alarm came after {alarm.row:,} rows."
        if alarm.watch in {WIDTHS, RESIDUALS}:
            sentence += " This says that rows are not exchangeable; it does not say that the intervals fail."
        advice = "Look for what changed at that time. Then calibrate on the rows since, and watch the new intervals."
    return Finding(
        name="coverage",
        question="Do the intervals still hold?",
        sentence=sentence,
        advice=advice,
        code="" if alarm is None else RECALIBRATION_CODE,
        value=estimate.value,
        reference=level,
        lower=estimate.lower,
        upper=estimate.upper,
        rows=estimate.rows,
    )


def _bounds(stream: Stream, alarm: Alarm | None) -> Finding:
    """Which bound is missed, and whether width or centre is why."""
    counts = stream.counts
    sentence = f"{counts.below:,} targets lie below their lower bound and {counts.above:,} above their upper one."
    misses = 0 if alarm is None or alarm.watch == FEW else alarm.n_below + alarm.n_above
    if alarm is not None and misses >= MIN_MISSES_SINCE:
        since = f"Since the change, {alarm.n_below:,} of {alarm.n_since:,} lie below and {alarm.n_above:,} above"
        if max(alarm.n_below, alarm.n_above) >= ONE_SIDED * misses:
            way, words = ("down", "high") if alarm.n_below > alarm.n_above else ("up", "low")
            meaning = f"mostly at one bound: the centre is off, targets moved {way} or predictions are too {words}"
        else:
            meaning = "at both bounds: targets spread more, and the intervals are too narrow"
        sentence += f" {since}, {meaning}."
    return Finding(name="bounds", question="Which bound, width or centre?", sentence=sentence, rows=counts.rows)


def _by(subgroups: tuple[WatchedSubgroup, ...], alarm: Alarm | None) -> Finding:
    """The finding on subgroups: which one raised the alarm, or has the most evidence against it."""
    first = subgroups[0]
    low, high = percent_range(first.lower, first.upper)
    most = f"{first.label}: {percent(first.coverage)} of {counted(first.rows, 'row')} were covered ({low} to {high} %)"
    owner = "raised the alarm" if alarm is not None and alarm.watch == SUBGROUPS else "none raised an alarm by itself"
    sentence = f"Of {counted(len(subgroups), 'subgroup')} {owner}; the most evidence is against {most}."
    if alarm is not None and alarm.watch == SUBGROUPS:
        sentence = f"It is {_shown(alarm.label)}. The most evidence is now against {most}."
    rows = sum(one.rows for one in subgroups)
    return Finding(name="subgroups", question="Which subgroup?", sentence=sentence, rows=rows)


def _recalibration(known: Recalibration) -> Finding:
    """What was recalibrated before this watch."""
    return Finding(
        name="recalibration",
        question="What is guaranteed since the recalibration?",
        sentence=str(known)
        if known.was_selected
        else f"{known} The model guarantees {percent(known.guaranteed_level)}.",
        rows=known.n_rows,
        value=known.coverage_before,
    )


def _subgroups(stream: Stream) -> tuple[WatchedSubgroup, ...]:
    """Coverage and evidence of each subgroup, the strongest evidence first."""
    groups = list(stream.subgroups.values())
    misses, rows = [one.counts.misses for one in groups], [one.counts.rows for one in groups]
    low, high = rate_bounds(misses, rows, 1.0 - stream.settings.confidence_level)
    found = [
        WatchedSubgroup(
            "missing" if one.label is None else str(one.label),
            one.counts.rows,
            one.counts.below,
            one.counts.above,
            one.counts.width / one.counts.rows,
            1.0 - one.counts.misses / one.counts.rows,
            float(1.0 - high[i]),
            float(1.0 - low[i]),
            one.evidence.value,
        )
        for i, one in enumerate(groups)
    ]
    return tuple(sorted(found, key=lambda one: -one.evidence))


def _history(stream: Stream) -> tuple[Moment, ...]:
    """The history with coverages, their bounds, and what lies between two points."""
    points = stream.history
    if not points:
        return ()
    misses, rows = [point.below + point.above for point in points], [point.rows for point in points]
    low, high = rate_bounds(misses, rows, 1.0 - stream.settings.confidence_level)
    found = []
    before = points[0]._replace(rows=0, below=0, above=0, width=0.0)
    for i, point in enumerate(points):
        n = point.rows - before.rows
        found.append(
            Moment(
                point.rows,
                point.evidence,
                1.0 - misses[i] / point.rows,
                float(1.0 - high[i]),
                float(1.0 - low[i]),
                (point.below - before.below) / n,
                (point.above - before.above) / n,
                (point.width - before.width) / n,
            )
        )
        before = point
    return tuple(found)
