"""Checks of given intervals: each has a p-value, and all of them together raise a false alarm in 5 % of reports."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import chdtrc

from pimeter.coverage import percent, rounded
from pimeter.evaluation.alternatives import shown
from pimeter.evaluation.diagnosis.check import FALSE_ALARMS, Check
from pimeter.evaluation.diagnosis.shifts import place
from pimeter.evaluation.diagnosis.subgroup_search import FEW_MISSES
from pimeter.evaluation.interval_evidence import IntervalEvidence
from pimeter.evaluation.miss_tests import binomial_p, christoffersen, hypergeometric_p, runs_p
from pimeter.findings import Diagnosis, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pimeter.evaluation.alternatives import Alternative
    from pimeter.evaluation.decomposition import Decomposition
    from pimeter.evaluation.diagnosis.evidence import Subgroup
    from pimeter.protocols import Array

MIN_ROWS_EXPECTED_IN_CELL = 5.0
ONE_SIDED = 0.8  # fraction of misses on one side, from which on it is that side's bound that is wrong
FOLLOWED = ("prediction", "interval width")  # what bounds of IntervalCalibrator follow with method="auto"
MIN_MISSES_FOR_RUNS = 5  # from which on it is asked whether they come in runs
MIN_EXPECTED_MISSES_TO_GAIN = 5.0  # from which on gains in the interval score have a p-value
GIVEN = {
    "intervals": "intervals=intervals",
    "quantiles": "quantiles=quantiles, levels=levels",
    "normal": "y_pred=y_pred, std=std",
    "samples": "samples=samples",
}
NEW = {kind: text.replace("=", "=new_").replace("=new_levels", "=levels") for kind, text in GIVEN.items()}


class IntervalCheck(Check[IntervalEvidence]):
    """A check of given intervals: its advice is for where its p-value is small enough, and dropped elsewhere.

    Attributes
    ----------
    weight : float
        Its part of the false alarms of a report, relative to those of the other checks.
    """

    weight: ClassVar[float]


class LevelKept(IntervalCheck):
    """Whether the level is kept: exact, binomial."""

    name = "coverage"
    question = "Is the level kept?"
    looks_at = "targets inside and outside of their intervals"
    statistic = "the fraction inside, with a binomial p-value"
    weight = 2.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        k, n, level = int(evidence.is_inside.sum()), evidence.n, evidence.level
        advice = f"Make intervals {_changed(evidence)}."
        sentence = f"{percent(k / n, 3)} of targets are inside, {percent(level)} should be"
        if evidence.is_covering_by_ties:
            said = f"{sentence}: more, but not without those that lie on a bound, as discrete targets do."
            return self.finding(n, said, value=k / n, reference=level)
        p_value = binomial_p(k, n, level, evidence.effect)
        sentence += f" ({_p(p_value)})."
        return self.finding(n, sentence, advice, value=k / n, reference=level, p_value=p_value)


def _changed(evidence: IntervalEvidence) -> str:
    """What would keep the level: where nearly all misses are on one side, a bound that extends farther there."""
    if evidence.is_inside.mean() > evidence.level:
        return "narrower"
    below, above = int(evidence.is_below.sum()), int(evidence.is_above.sum())
    side = "below" if below > above else "above"
    return f"extend farther {side}" if max(below, above) >= ONE_SIDED * (below + above) else "wider"


class Balance(IntervalCheck):
    """Whether there are as many misses below as above: exact, binomial."""

    name = "balance"
    question = "Are there as many misses below as above?"
    looks_at = "targets outside of their intervals"
    statistic = "the fraction of them below, with a binomial p-value"
    weight = 2.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        below, above = int(evidence.is_below.sum()), int(evidence.is_above.sum())
        is_asked = bool(below + above) and not evidence.is_tied
        p_value = binomial_p(below, below + above, 0.5, evidence.effect) if is_asked else math.nan
        tested = f" ({_p(p_value)})" if is_asked else ""
        sentence = f"{below:,} targets are below their interval and {above:,} above{tested}."
        advice = f"Move the intervals {'down' if below > above else 'up'}, or calibrate each bound separately."
        value = below / max(below + above, 1)
        return self.finding(evidence.n, sentence, advice, value=value, reference=0.5, p_value=p_value)


class SameCoverage(IntervalCheck):
    """Whether the coverage is the same in all subgroups: exact for each, all together by Bonferroni."""

    name = "subgroups"
    question = "Is the coverage the same everywhere?"
    looks_at = "coverage across quintiles of the centre, of the width and of each feature, and per category"
    statistic = "coverage of the subgroup with the least p-value of Fisher's exact test"
    weight = 4.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        total, n_all = int(evidence.is_inside.sum()), evidence.n
        asked = self.asked(evidence)
        if not asked:
            return self.finding(n_all, "There are no subgroups to compare.")
        p_value, one = min(asked, key=lambda pair: pair[0])
        where, p_value = place(one.of, one.label), min(1.0, p_value * len(asked))
        sentence = (
            f"The largest difference among {len(asked)} subgroups: {percent(one.coverage, 3)} of {one.rows:,} rows "
            f"{where} are inside, {percent(total / n_all, 3)} of all ({_p(p_value)}, all together)."
        )
        followed = "the category" if one.of == "by" else one.of
        advice = (
            "Recalibrate them with IntervalCalibrator: its bounds follow the centre and the width."
            if one.of in FOLLOWED
            else f"Calibrate rows {where} separately, or let widths follow {followed}."
        )
        return self.finding(n_all, sentence, advice, value=one.coverage, reference=total / n_all, p_value=p_value)

    def asked(self, evidence: IntervalEvidence) -> list[tuple[float, Subgroup]]:
        """The subgroups that are compared with the other rows, each with its p-value."""
        total, n_all = int(evidence.is_inside.sum()), evidence.n
        asked: list[tuple[float, Subgroup]] = []
        by_division = {one.of: (len(one.rows), int(evidence.is_inside[one.rows].sum())) for one in evidence.divisions}
        for one in evidence.subgroups:
            n, k = by_division[one.of]
            if one.rows == n or total in {0, n_all}:
                continue
            counts = (round(count / evidence.effect) for count in (one.coverage * one.rows, one.rows, k, n))
            asked.append((hypergeometric_p(*counts), one))
        return asked


class LeastCoveredByIntervals(IntervalCheck):
    """Whether rows that one or two conditions describe are covered less than all: by permutation of misses."""

    name = "worst_subgroup"
    question = "Which rows are covered least?"
    looks_at = "all subgroups of 5 % of the rows or more that one or two conditions describe"
    statistic = "coverage of the worst one, found on one half of the rows and measured on the other; misses, permuted"
    weight = 4.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        found = evidence.worst_subgroup
        if found is None:
            why = FEW_MISSES if evidence.known.columns else evidence.known.why_no_columns
            return self.finding(evidence.n, why)
        p_value = found.p_value if found.coverage < evidence.level else 1.0
        return self.finding(
            evidence.n,
            f"Covered least are {found} ({_p(p_value)}, of the whole search).",
            f"Widen intervals of {found.words}: let widths follow these columns, or calibrate such rows separately.",
            value=found.coverage,
            reference=evidence.level,
            bounds=(found.lower, found.upper),
            p_value=p_value,
        )


class CalibratedDistributions(IntervalCheck):
    """Whether targets are spread over the distributions as these say: chi-square of cells."""

    name = "calibration"
    question = "Do the quantiles hold at all levels?"
    looks_at = "targets in cells between neighbouring quantiles"
    statistic = "rows in the outermost cells over what is expected, with the p-value of a chi-square of all cells"
    weight = 2.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        if not evidence.cells:
            return self.finding(evidence.n, "A single interval has no other levels to check.")
        if evidence.is_tied:
            return self.finding(evidence.n, "Too many targets lie exactly on quantiles to tell.")
        counts, expected = _joined([(cell.rows, cell.probability * evidence.n) for cell in evidence.cells])
        if len(counts) < 2:
            return self.finding(evidence.n, "There are too few rows to tell.")
        statistic = float((((counts - expected) ** 2) / expected).sum())
        p_value = float(chdtrc(len(counts) - 1, statistic / evidence.effect_of_cells))
        tails = (counts[0] + counts[-1]) / (expected[0] + expected[-1])
        both = min(counts[0] / expected[0], counts[-1] / expected[-1])
        what = "too narrow" if both > 1.0 else "shifted" if tails > 1.0 else "too wide, or shifted"
        sentence = (
            f"Of {len(counts)} cells of the distributions the outermost hold {rounded(tails, 3)} times the rows they "
            f"should ({_p(p_value)}, chi-square)."
        )
        advice = f"Distributions are {what}: calibrate every level."
        return self.finding(evidence.n, sentence, advice, value=tails, reference=1.0, p_value=p_value)


def _joined(cells: Sequence[tuple[float, float]]) -> tuple[Array, Array]:
    """Counts and expected counts of neighbouring cells together, until 5 rows or more are expected in each."""
    found: list[list[float]] = [[0.0, 0.0]]
    for k, e in cells:
        if found[-1][1] >= MIN_ROWS_EXPECTED_IN_CELL:
            found.append([0.0, 0.0])
        found[-1][0] += k
        found[-1][1] += e
    if len(found) > 1 and found[-1][1] < MIN_ROWS_EXPECTED_IN_CELL:
        last = found.pop()
        found[-1][0] += last[0]
        found[-1][1] += last[1]
    joined = np.array(found)
    return joined[:, 0], joined[:, 1]


class Runs(IntervalCheck):
    """Whether misses follow each other: the exact distribution of runs, and Christoffersen's likelihood ratios."""

    name = "runs"
    question = "Do misses come in runs?"
    looks_at = "misses in the order of time"
    statistic = "how often a miss follows a miss, with the p-value of the number of runs"
    weight = 1.0

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        if evidence.order is None:
            return self.finding(evidence.n, "No time was given, so this is not known.")
        miss = ~evidence.is_inside[evidence.order]
        n_miss, n_hit = int(miss.sum()), int((~miss).sum())
        few, what = (n_miss, "misses") if n_miss <= n_hit else (n_hit, "hits")
        if few < MIN_MISSES_FOR_RUNS:
            return self.finding(evidence.n, f"There are too few {what} to tell: {few}.")
        after_miss, after_hit = (float(miss[1:][before].mean()) for before in (miss[:-1], ~miss[:-1]))
        ratios = christoffersen(miss, evidence.level)
        p_value = runs_p(miss)
        sentence = (
            f"A miss follows a miss in {percent(after_miss, 3)} of cases, and follows a hit in {percent(after_hit, 3)} "
            f"({_p(p_value)} by runs; Christoffersen's likelihood ratios: unconditional "
            f"p = {float(chdtrc(1, ratios.unconditional)):.2g}, independence "
            f"p = {float(chdtrc(1, ratios.independence)):.2g}, conditional "
            f"p = {float(chdtrc(2, ratios.conditional)):.2g})."
        )
        advice = "Misses come in runs: update intervals as targets become known (OnlineNeuron, ForecastIntervals)."
        reference = n_miss / evidence.n
        return self.finding(evidence.n, sentence, advice, value=after_miss, reference=reference, p_value=p_value)


class Better(IntervalCheck):
    """How much better intervals could be: gains of two or three other ones, together by Bonferroni."""

    name = "better"
    question = "How much better could they be?"
    looks_at = "intervals moved, widened, and of constant width, each row judged by what other rows taught"
    statistic = "by how much the best of them lowers the interval score"
    weight = 2.0

    def __init__(self, alternatives: Sequence[Alternative]) -> None:
        self.alternatives = alternatives

    def _judged(self, evidence: IntervalEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        if not self.alternatives:
            return self.finding(evidence.n, "Intervals are infinite, or rows are too few to tell.")
        given, *others = self.alternatives
        best, constant = min(others, key=lambda one: one.interval_score), others[-1]
        sentence = (
            f"Interval score {rounded(given.interval_score, 3)} as given, {rounded(best.interval_score, 3)} with "
            f"{shown(best)} (coverage {percent(best.coverage, 3)})"
        )
        if constant is not best:
            sentence += f", {rounded(constant.interval_score, 3)} with {shown(constant)}"
            if constant.interval_score <= given.interval_score:
                sentence += ", no worse than those given"
        p_value = math.nan
        known = [one.p_value for one in others if not math.isnan(one.p_value)]
        if known and evidence.n * (1.0 - evidence.level) >= MIN_EXPECTED_MISSES_TO_GAIN * (1.0 - 1e-9):
            p_value = min(1.0, min(known) * len(known))
            sentence += f"; {_p(p_value)}"
        advice = (
            f"Use intervals with {shown(best)}: {percent(evidence.level)} of targets are inside, and the interval "
            f"score falls by {rounded(best.gain, 3)}."
        )
        return self.finding(evidence.n, f"{sentence}.", advice, value=best.gain, reference=0.0, p_value=p_value)


CHECKS: tuple[IntervalCheck, ...] = (
    LevelKept(),
    Balance(),
    SameCoverage(),
    LeastCoveredByIntervals(),
    CalibratedDistributions(),
    Runs(),
)


def judged(evidence: IntervalEvidence, alternatives: Sequence[Alternative], parts: Decomposition | None) -> Diagnosis:
    """Make all checks; alarms of all together are false in 5 % of reports at most (weighted Bonferroni)."""
    asked = [(check.weight, check(evidence, {})) for check in (*CHECKS, Better(alternatives))]
    total = sum(weight for weight, one in asked if not math.isnan(one.p_value))
    found = []
    for weight, one in asked:
        significance = math.nan if math.isnan(one.p_value) else FALSE_ALARMS * weight / total
        advice = one.advice if one.p_value <= significance else ""
        found.append(replace(one, advice=advice, significance=significance))
    left = Finding(
        name="features", question="Which columns were looked at?", sentence=_columns(evidence), rows=evidence.n
    )
    told = [*found, *_infinite(evidence), *([] if parts is None else [_parts(parts)]), left]
    diagnosis = Diagnosis.of(told, "Nothing to do: no check raises an alarm.")
    return _with_code(diagnosis, evidence, alternatives) if diagnosis.raised else diagnosis


def _with_code(diagnosis: Diagnosis, evidence: IntervalEvidence, alternatives: Sequence[Alternative]) -> Diagnosis:
    """What recalibrates the intervals, and what that does not follow."""
    raised, kind = set(diagnosis.raised), evidence.predictions.kind
    method = _method(evidence, alternatives, raised)
    groups = ", groups=groups" if evidence.has_groups else ""
    code = (
        "from pimeter import IntervalCalibrator\n"
        f'calibrator = IntervalCalibrator({evidence.level:g}, method="{method}").fit(y_true, {GIVEN[kind]}{groups})\n'
        f"lower, upper = calibrator.predict_interval({NEW[kind]}).T"
    )
    beside = []
    if "runs" in raised or (evidence.effect != 1.0 and not evidence.has_groups):
        independent = "" if evidence.has_groups else " and takes rows for independent"
        once = f"The code calibrates once{independent}, so it guarantees nothing about later times"
        beside.append(f"{once}: calibrate anew as targets become known.")
    of = _least_covered(evidence) if "subgroups" in raised else ""
    if of and of not in FOLLOWED:
        beside.append(
            f"The code moves the intervals of all rows in the same way, so that coverage goes on varying with "
            f"{'the category' if of == 'by' else of}."
        )
    return replace(diagnosis, advice=(*diagnosis.advice, *beside), code=code, options=("--method", method))


def _method(evidence: IntervalEvidence, alternatives: Sequence[Alternative], raised: set[str]) -> str:
    """How to recalibrate: as the best alternative does, unless a finding asks for bounds that it does not give.

    No alternative moves both bounds to one side, or differently where predictions or widths are larger.
    """
    is_uneven = "subgroups" in raised and _least_covered(evidence) in FOLLOWED
    if is_uneven or "balance" in raised or not alternatives:
        return "auto"
    best = min(alternatives, key=lambda one: one.interval_score).name
    return {"moved by": "additive", "widened by": "multiplicative"}.get(best, "auto")


def _least_covered(evidence: IntervalEvidence) -> str:
    """What divides the rows into subgroups of which one is covered least, by its p-value."""
    return min(SameCoverage().asked(evidence), key=lambda one: one[0])[1].of


def _infinite(evidence: IntervalEvidence) -> list[Finding]:
    """How many bounds or quantiles are infinite, and the first of them; nothing where none is."""
    rows = np.flatnonzero(np.isinf(evidence.predictions.values).any(axis=1))
    if not rows.size:
        return []
    sentence = (
        f"Those of {rows.size:,} of {evidence.n:,} rows are not; the first is row {rows[0]}: "
        "scores that have no meaning with infinite bounds are left out."
    )
    return [Finding(name="infinite", question="Are all bounds finite?", sentence=sentence, rows=evidence.n)]


def _parts(parts: Decomposition) -> Finding:
    """What the CRPS is made of, in words."""
    numbers = (parts.miscalibration, parts.by_chance, parts.discrimination, parts.uncertainty, parts.crps)
    own, by_chance, discrimination, uncertainty, crps = (rounded(value, 3) for value in numbers)
    sentence = (
        f"Miscalibration {own} (up to {by_chance} by chance alone) less discrimination {discrimination} plus "
        f"uncertainty {uncertainty} is {crps}, by isotonic quantiles of {parts.rows:,} rows."
    )
    return Finding(
        name="decomposition",
        question="What is the CRPS made of?",
        sentence=sentence,
        value=parts.miscalibration,
        reference=parts.by_chance,
        rows=parts.rows,
    )


def _columns(evidence: IntervalEvidence) -> str:
    """What was looked at, and what was left out."""
    if evidence.known.left_out:
        return " ".join(evidence.known.left_out)
    names = [column.name for column in evidence.known.columns]
    return f"{', '.join(names)}." if names else "No features were given."


def _p(p_value: float) -> str:
    """A p-value in words; one that floats cannot tell from 0 is below what they can."""
    return "p < 1e-300" if p_value == 0.0 else f"p = {p_value:.2g}"
