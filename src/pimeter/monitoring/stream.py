"""`Stream`: what is known of all rows so far, in memory that does not grow: counts, evidence, a history."""

from __future__ import annotations

from array import array
from base64 import b85decode, b85encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pimeter.monitoring.evidence import RateEvidence
from pimeter.monitoring.exchangeability import ExchangeabilityEvidence
from pimeter.monitoring.onset import Since, onset
from pimeter.monitoring.settings import BOUNDS, FEW, MISSES, RESIDUALS, SUBGROUPS, WIDTHS, Settings

INSIDE, BELOW, ABOVE, ON_BOUND = range(4)
MISSED = frozenset({BELOW, ABOVE})
N_RECENT = 4096
MAX_POINTS = 200  # of the history
MAX_SUBGROUPS = 10_000
Label = str | int | float | bool | None


@dataclass(slots=True)
class Counts:
    """Rows and where their targets lay."""

    rows: int = 0
    below: int = 0
    above: int = 0
    on_bound: int = 0
    width: float = 0.0  # the sum

    @property
    def misses(self) -> int:
        """Targets outside their intervals."""
        return self.below + self.above

    def add(self, code: int, width: float) -> None:
        """Count a row, by where its target lies and how wide its interval is."""
        self.rows += 1
        self.width += width
        if code == BELOW:
            self.below += 1
        elif code == ABOVE:
            self.above += 1
        elif code == ON_BOUND:
            self.on_bound += 1

    def of(self, codes: frozenset[int]) -> int:
        """Rows whose targets lay in one of these places."""
        inside = self.rows - self.misses - self.on_bound
        return sum((inside, self.below, self.above, self.on_bound)[code] for code in codes)


class RateWatch(NamedTuple):
    """The watch over one kind of event."""

    name: str
    proportion: float  # of the false alarms
    codes: frozenset[int]
    evidence: RateEvidence


@dataclass(slots=True)
class SubgroupWatch:
    """One subgroup: its counts, its evidence and its part of the false alarms."""

    label: Label
    place: int
    proportion: float
    evidence: RateEvidence
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True)
class Alarm:
    """When evidence was enough, whose it was, and since when."""

    row: int  # how many rows had come
    watch: str
    label: Label
    evidence: float
    since: Since
    n_since: int  # rows of this watch since then, as far as they are among the recent ones
    n_below: int  # of these
    n_above: int


class Point(NamedTuple):
    """One point of the history: counts up to it, and the largest evidence since the point before."""

    rows: int
    below: int
    above: int
    width: float
    evidence: float


def code_of(target: float, lower: float, upper: float) -> int:
    """Where a target lies: BELOW, INSIDE or ABOVE its interval, or ON_BOUND."""
    if target < lower:
        return BELOW
    if target > upper:
        return ABOVE
    return INSIDE if lower < target < upper else ON_BOUND


class Stream:
    """All that is known of the rows so far; the same rows give the same, however they are divided into updates."""

    def __init__(self, settings: Settings, *, has_subgroups: bool) -> None:
        self.settings = settings
        self.has_subgroups = has_subgroups
        self.threshold = settings.threshold
        self.counts = Counts()
        self.alarm: Alarm | None = None
        self.rates = _rate_watches(settings, has_subgroups=has_subgroups)
        self.others = {
            name: ExchangeabilityEvidence(is_renewed=settings.is_renewed)
            for name in (WIDTHS, RESIDUALS)
            if name in settings.watch
        }
        self.subgroups: dict[Label, SubgroupWatch] = {}
        self.history: list[Point] = []
        self._miss_limit = settings.limits.miss
        self._of_subgroups = settings.proportion(SUBGROUPS, has_subgroups=True) if has_subgroups else 0.0
        self._subgroup_evidence = 0.0  # of those that have come
        self._codes = bytearray(N_RECENT)
        self._places = array("H", bytes(2 * N_RECENT if has_subgroups else 0))
        self._stride = 1
        self._peak = 0.0  # of the evidence since the last point of the history

    def update(self, target: float, lower: float, upper: float, label: Label = None) -> None:
        """One row whose numbers are known to be right."""
        code = code_of(target, lower, upper)
        width = upper - lower
        for watch in self.rates:
            watch.evidence.update(code in watch.codes)
        if self.others:
            numbers = {WIDTHS: width, RESIDUALS: target - (lower / 2.0 + upper / 2.0)}
            for name, evidence in self.others.items():
                evidence.update(numbers[name])
        place = self.counts.rows % N_RECENT
        if self.has_subgroups:
            self._places[place] = self._update_subgroup(label, code, width)
        self._codes[place] = code
        self.counts.add(code, width)
        value = self.value
        self._peak = max(self._peak, value)
        if value >= self.threshold and self.alarm is None:
            self.alarm = self._alarm(value)
        if self.counts.rows % self._stride == 0:
            self._add_point()

    def refuse_labels(self, labels: Sequence[Label], *, has_labels: bool) -> None:
        """A ValueError if rows have subgroups and others have none, or if there are too many of them."""
        if has_labels != self.has_subgroups:
            before, now = ("with", "without") if self.has_subgroups else ("without", "with")
            msg = f"the watch began {before} subgroups, and these rows are {now}; give `by` in each call or in none."
            raise ValueError(msg)
        if has_labels and len(self.subgroups) + len(set(labels) - self.subgroups.keys()) > MAX_SUBGROUPS:
            msg = f"there are more than {MAX_SUBGROUPS:,} subgroups; watch fewer, with more rows each."
            raise ValueError(msg)

    def _update_subgroup(self, label: Label, code: int, width: float) -> int:
        """Add a row to its subgroup; the j-th that comes has 1/(j (j + 1)) of the false alarms of all."""
        found = self.subgroups.get(label)
        if found is None:
            place = len(self.subgroups)
            proportion = self._of_subgroups / ((place + 1) * (place + 2))
            evidence = RateEvidence(self._miss_limit, is_renewed=self.settings.is_renewed)
            found = self.subgroups[label] = SubgroupWatch(label, place, proportion, evidence)
            self._subgroup_evidence += proportion * evidence.value
        before = found.evidence.value
        found.evidence.update(code in MISSED)
        self._subgroup_evidence += found.proportion * (found.evidence.value - before)
        found.counts.add(code, width)
        return found.place

    @property
    def value(self) -> float:
        """Evidence of all watches together."""
        total = sum([watch.proportion * watch.evidence.value for watch in self.rates])
        for name, evidence in self.others.items():
            total += self.settings.proportion(name, has_subgroups=self.has_subgroups) * evidence.value
        if self.has_subgroups:
            total += self._subgroup_evidence
            if not self.settings.is_renewed:  # the stake of subgroups that have not come
                total += self._of_subgroups / (len(self.subgroups) + 1)
        return total

    def _alarm(self, value: float) -> Alarm:
        """The alarm at this moment: the watch with the most evidence, and since when."""
        found: list[tuple[float, str, Label]] = [
            (watch.proportion * watch.evidence.value, watch.name, None) for watch in self.rates
        ]
        found += [
            (self.settings.proportion(name, has_subgroups=self.has_subgroups) * evidence.value, name, None)
            for name, evidence in self.others.items()
        ]
        found += [(one.proportion * one.evidence.value, SUBGROUPS, one.label) for one in self.subgroups.values()]
        _, name, label = max(found, key=lambda entry: entry[0])
        return self._dated(value, name, label)

    def _dated(self, value: float, name: str, label: Label) -> Alarm:
        """The alarm of a watch, with when what it found most likely began and where targets lay since."""
        n = self.counts.rows
        numbers = np.arange(max(0, n - N_RECENT), n)
        recent = np.frombuffer(bytes(self._codes), np.uint8)[numbers % N_RECENT]
        counts = self.counts
        if name == SUBGROUPS:
            group = self.subgroups[label]
            is_own = np.frombuffer(self._places.tobytes(), np.uint16)[numbers % N_RECENT] == group.place
            numbers, recent, counts = numbers[is_own], recent[is_own], group.counts
        if name in self.others:  # when the evidence was last at its smallest
            since = Since(self.others[name].least_at, self.others[name].least_at, n)
        else:
            codes = next((watch.codes for watch in self.rates if watch.name == name), MISSED)
            events = np.isin(recent, list(codes))
            since = onset(events, numbers, (counts.rows - len(events), counts.of(codes) - int(events.sum())))
        later = recent[numbers >= since.row]
        n_below, n_above = (int((later == code).sum()) for code in (BELOW, ABOVE))
        return Alarm(n, name, label, value, since, len(later), n_below, n_above)

    def _add_point(self) -> None:
        """Add a point to the history; when there are too many, every second one goes."""
        counts = self.counts
        self.history.append(Point(counts.rows, counts.below, counts.above, counts.width, self._peak))
        self._peak = 0.0
        if len(self.history) == 2 * MAX_POINTS:
            pairs = zip(self.history[::2], self.history[1::2], strict=True)
            self.history = [later._replace(evidence=max(one.evidence, later.evidence)) for one, later in pairs]
            self._stride *= 2

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `restored` goes on."""
        return {
            "has_subgroups": self.has_subgroups,
            "counts": asdict(self.counts),
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "rates": {watch.name: watch.evidence.to_dict() for watch in self.rates},
            "others": {name: evidence.to_dict() for name, evidence in self.others.items()},
            "subgroups": [
                {"label": one.label, "evidence": one.evidence.to_dict(), "counts": asdict(one.counts)}
                for one in self.subgroups.values()
            ],
            "subgroup_evidence": self._subgroup_evidence,
            "history": [list(point) for point in self.history],
            "stride": self._stride,
            "peak": self._peak,
            "codes": b85encode(self._codes).decode(),
            "places": b85encode(self._places.tobytes()).decode(),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "values": self.to_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Stream.restored(**state).__dict__)

    @classmethod
    def restored(cls, settings: Settings, values: dict[str, Any]) -> Stream:
        """A stream that goes on from plain values."""
        found = cls(settings, has_subgroups=values["has_subgroups"])
        found.counts = Counts(**values["counts"])
        if values["alarm"] is not None:
            found.alarm = Alarm(**{**values["alarm"], "since": Since(*values["alarm"]["since"])})
        for watch in found.rates:
            watch.evidence.restore(values["rates"][watch.name])
        for name, evidence in found.others.items():
            evidence.restore(values["others"][name])
        for one in values["subgroups"]:
            place = len(found.subgroups)
            bets = RateEvidence(found._miss_limit, is_renewed=settings.is_renewed)
            bets.restore(one["evidence"])
            proportion = found._of_subgroups / ((place + 1) * (place + 2))
            found.subgroups[one["label"]] = SubgroupWatch(
                one["label"], place, proportion, bets, Counts(**one["counts"])
            )
        found._subgroup_evidence = values["subgroup_evidence"]
        found.history = [Point(*point) for point in values["history"]]
        found._stride, found._peak = values["stride"], values["peak"]
        found._codes = bytearray(b85decode(values["codes"]))
        found._places = array("H", b85decode(values["places"]))
        return found


def _rate_watches(settings: Settings, *, has_subgroups: bool) -> list[RateWatch]:
    """Watches over misses, those that are too few, and those at either bound, as far as they are wanted."""
    limits = settings.limits
    kinds = [
        (MISSES, MISSES, limits.miss, MISSED, 1.0),
        (FEW, FEW, limits.inside, frozenset({INSIDE}), 1.0),
        (BOUNDS, "below", limits.bound, frozenset({BELOW}), 0.5),
        (BOUNDS, "above", limits.bound, frozenset({ABOVE}), 0.5),
    ]
    return [
        RateWatch(
            name,
            fraction * settings.proportion(owner, has_subgroups=has_subgroups),
            codes,
            RateEvidence(limit, is_renewed=settings.is_renewed),
        )
        for owner, name, limit, codes, fraction in kinds
        if owner in settings.watch and limit < 1.0
    ]
