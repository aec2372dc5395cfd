"""Checks of given intervals: each has a p-value, and all of them together raise a false alarm in 5 % of reports."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, chdtrc, gammaln

from pimeter.coverage import percent, rounded
from pimeter.evaluation.alternatives import shown
from pimeter.findings import Diagnosis, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pimeter.evaluation.alternatives import Alternative
    from pimeter.evaluation.decomposition import Decomposition
    from pimeter.evaluation.diagnosis.evidence import Subgroup
    from pimeter.evaluation.interval_evidence import IntervalEvidence

    Array = NDArray[np.float64]

FALSE_ALARMS = 0.05  # of all checks of a report together
MIN_EXPECTED = 5.0  # rows in a cell
MIN_MISSES_FOR_RUNS = 5  # from which on it is asked whether they come in runs


GIVEN = {
    "intervals": "intervals=intervals",
    "quantiles": "quantiles=quantiles, levels=levels",
    "normal": "y_pred=y_pred, std=std",
    "samples": "samples=samples",
}
NEW = {kind: text.replace("=", "=new_").replace("=new_levels", "=levels") for kind, text in GIVEN.items()}


class Asked(NamedTuple):
    """What a check found, before it is known how improbable it has to be."""

    name: str
    question: str
    weight: float  # part of the false alarms that it may have
    p_value: float  # NaN where it cannot be asked
    sentence: str
    advice: str
    value: float = math.nan
    reference: float = math.nan
    lower: float = math.nan
    upper: float = math.nan


def judged(evidence: IntervalEvidence, alternatives: Sequence[Alternative], parts: Decomposition | None) -> Diagnosis:
    """Ask everything; alarms of all checks together are false in 5 % of reports at most (weighted Bonferroni)."""
    asked = [*(check(evidence) for check in CHECKS), better(evidence, alternatives)]
    total = sum(one.weight for one in asked if not math.isnan(one.p_value))
    thresholds = [FALSE_ALARMS * one.weight / total if total else 0.0 for one in asked]
    found = [
        Finding(
            name=one.name,
            question=one.question,
            sentence=one.sentence,
            advice=one.advice if one.p_value <= threshold else "",
            value=one.value,
            reference=one.reference,
            lower=one.lower,
            upper=one.upper,
            p_value=one.p_value,
            threshold=threshold,
            rows=evidence.n,
        )
        for one, threshold in zip(asked, thresholds, strict=True)
    ]
    code, options = "", tuple[str, ...]()
    if any(finding.raised for finding in found):
        method = {"moved by": "additive", "widened by": "multiplicative"}.get(_best_name(alternatives), "auto")
        given, options = GIVEN[evidence.said.kind], ("--method", method)
        code = (
            "from pimeter import IntervalCalibrator\n"
            f'calibrator = IntervalCalibrator({evidence.level:g}, method="{method}").fit(y_true, {given})\n'
            f"lower, upper = calibrator.predict_interval({NEW[evidence.said.kind]}).T"
        )
    left = Finding(
        name="features", question="Which columns were looked at?", sentence=_columns(evidence), rows=evidence.n
    )
    told = [*found, *_infinite(evidence), *([] if parts is None else [_parts(parts)]), left]
    return replace(Diagnosis.of(told, "Nothing to do: no check raises an alarm.", code), options=options)


def _infinite(evidence: IntervalEvidence) -> list[Finding]:
    """How many bounds or quantiles are infinite, and the first of them; nothing where none is."""
    rows = np.flatnonzero(np.isinf(evidence.said.values).any(axis=1))
    if not rows.size:
        return []
    sentence = (
        f"Those of {rows.size:,} of {evidence.n:,} rows are not, the first is row {rows[0]}: "
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


def _binomial_p(k: int, n: int, p: float, effect: float) -> float:
    """Twice the smaller tail, of so many fewer rows as dependence leaves."""
    k, n = round(k / effect), round(n / effect)
    below, above = float(bdtr(k, n, p)), float(bdtrc(k - 1, n, p)) if k else 1.0
    return min(1.0, 2.0 * min(below, above))


def coverage(evidence: IntervalEvidence) -> Asked:
    """Whether the level is kept: exact, binomial."""
    k, n = int(evidence.is_inside.sum()), evidence.n
    p_value = _binomial_p(k, n, evidence.level, evidence.effect)
    way = "narrower" if k / n > evidence.level else "wider"
    said = f"{percent(k / n, 3)} of targets are inside, {percent(evidence.level)} should be"
    return Asked(
        "coverage", "Is the level kept?", 2.0, p_value, f"{said} ({_p(p_value)}).",
        f"Make intervals {way}.", k / n, evidence.level,
    )  # fmt: skip


def balance(evidence: IntervalEvidence) -> Asked:
    """Whether there are as many misses below as above: exact, binomial."""
    below, above = int(evidence.is_below.sum()), int(evidence.is_above.sum())
    is_asked = bool(below + above) and not evidence.is_tied
    p_value = _binomial_p(below, below + above, 0.5, evidence.effect) if is_asked else math.nan
    said = f"{below:,} targets are below their interval and {above:,} above"
    tested = f" ({_p(p_value)})" if is_asked else ""
    return Asked(
        "balance", "Are there as many misses below as above?", 2.0, p_value, f"{said}{tested}.",
        f"Move the intervals {'down' if below > above else 'up'}, or calibrate each bound separately.",
        below / max(below + above, 1), 0.5,
    )  # fmt: skip


def subgroups(evidence: IntervalEvidence) -> Asked:
    """Whether the coverage is the same in all subgroups: exact for each, all together by Bonferroni."""
    total = int(evidence.is_inside.sum())
    asked: list[tuple[float, Subgroup]] = []
    by_division = {one.of: (len(one.rows), int(evidence.is_inside[one.rows].sum())) for one in evidence.divisions}
    for one in evidence.subgroups:
        n, k = by_division[one.of]
        if one.rows == n or total in {0, evidence.n}:
            continue
        counts = (round(count / evidence.effect) for count in (one.coverage * one.rows, one.rows, k, n))
        asked.append((_hypergeometric_p(*counts), one))
    if not asked:
        return Asked(
            "subgroups", "Is the coverage the same everywhere?", 4.0, math.nan, "There are no subgroups to compare.", ""
        )
    p_value, one = min(asked, key=lambda pair: pair[0])
    where = f"where {one.of} is {one.label}" if one.of != "by" else f"in category {one.label}"
    p_value = min(1.0, p_value * len(asked))
    said = (
        f"{percent(one.coverage, 3)} of {one.rows:,} rows {where} are inside, {percent(total / evidence.n, 3)} of all"
    )
    return Asked(
        "subgroups", "Is the coverage the same everywhere?", 4.0, p_value,
        f"The largest difference of {len(asked)} subgroups: {said} ({_p(p_value)}, all together).",
        f"Calibrate rows {where} separately, or let widths follow {'the category' if one.of == 'by' else one.of}.",
        one.coverage, total / evidence.n,
    )  # fmt: skip


def worst(evidence: IntervalEvidence) -> Asked:
    """Whether rows that one or two conditions describe are covered less than all: by permutation of misses."""
    name, question = "worst_subgroup", "Which rows are covered least?"
    found = evidence.worst_subgroup
    if found is None:
        why = "There are too few misses to tell." if evidence.known.columns else "No features were given."
        return Asked(name, question, 4.0, math.nan, why, "")
    is_less = found.coverage < evidence.level
    p_value = found.p_value if is_less else 1.0
    return Asked(
        name, question, 4.0, p_value, f"Covered least are {found} ({_p(p_value)}, of the whole search).",
        f"Widen intervals of {found.words}: let widths follow these columns, or calibrate such rows separately.",
        found.coverage, evidence.level, found.lower, found.upper,
    )  # fmt: skip


def _hypergeometric_p(k: int, rows: int, total: int, n: int) -> float:
    """Whether k of some rows inside is by chance, total of n being so: Fisher's exact test, twice the smaller tail."""
    least, most = max(0, rows - (n - total)), min(rows, total)
    k = min(max(k, least), most)  # after rounding
    i = np.arange(least, most + 1)
    log = -np.sum([gammaln(x + 1.0) for x in (i, total - i, rows - i, n - total - rows + i)], axis=0)
    terms = np.exp(log - log.max())
    below = np.cumsum(terms) / terms.sum()
    at = k - least
    return float(min(1.0, 2.0 * min(below[at], 1.0 - (below[at - 1] if at else 0.0))))


def calibration(evidence: IntervalEvidence) -> Asked:
    """Whether targets are spread over the distributions as these say: chi-square of cells."""
    question = "Do the quantiles hold at all levels?"
    if not evidence.cells:
        return Asked("calibration", question, 2.0, math.nan, "One interval has no other levels.", "")
    if evidence.is_tied:
        return Asked("calibration", question, 2.0, math.nan, "Targets lie on quantiles, so it cannot be told.", "")
    counts, expected = _joined([(cell.rows, cell.probability * evidence.n) for cell in evidence.cells])
    if len(counts) < 2:
        return Asked("calibration", question, 2.0, math.nan, "There are too few rows to tell.", "")
    statistic = float((((counts - expected) ** 2) / expected).sum())
    p_value = float(chdtrc(len(counts) - 1, statistic / evidence.effect))
    tails = (counts[0] + counts[-1]) / (expected[0] + expected[-1])
    both = min(counts[0] / expected[0], counts[-1] / expected[-1])
    what = "too narrow" if both > 1.0 else "shifted" if tails > 1.0 else "too wide, or shifted"
    said = (
        f"Of {len(counts)} cells of the distributions the outermost hold {rounded(tails, 3)} times the rows they should"
    )
    return Asked(
        "calibration", question, 2.0, p_value, f"{said} ({_p(p_value)}, chi-square).",
        f"Distributions are {what}: calibrate every level.", tails, 1.0,
    )  # fmt: skip


def _joined(cells: Sequence[tuple[float, float]]) -> tuple[Array, Array]:
    """Counts and expected counts of neighbouring cells together, until 5 rows or more are expected in each."""
    found: list[list[float]] = [[0.0, 0.0]]
    for k, e in cells:
        if found[-1][1] >= MIN_EXPECTED:
            found.append([0.0, 0.0])
        found[-1][0] += k
        found[-1][1] += e
    if len(found) > 1 and found[-1][1] < MIN_EXPECTED:
        last = found.pop()
        found[-1][0] += last[0]
        found[-1][1] += last[1]
    joined = np.array(found)
    return joined[:, 0], joined[:, 1]


def runs(evidence: IntervalEvidence) -> Asked:
    """Whether misses follow each other: the exact distribution of runs, beside Christoffersen's likelihood ratios."""
    question = "Do misses come in runs?"
    if evidence.order is None:
        return Asked("runs", question, 1.0, math.nan, "No time was given, so it cannot be asked.", "")
    miss = ~evidence.is_inside[evidence.order]
    n_miss = int(miss.sum())
    if not MIN_MISSES_FOR_RUNS <= n_miss <= evidence.n - MIN_MISSES_FOR_RUNS:
        return Asked("runs", question, 1.0, math.nan, f"{n_miss:,} misses are too few to tell.", "")
    after_miss, after_hit = miss[1:][miss[:-1]], miss[1:][~miss[:-1]]
    ratio_uc, ratio_ind = christoffersen(miss, evidence.level)
    p_value = _runs_p(miss)
    said = (
        f"A miss follows a miss in {percent(float(after_miss.mean()), 3)} of cases, and a hit in "
        f"{percent(float(after_hit.mean()), 3)}"
    )
    tests = (
        f"Christoffersen's likelihood ratios: unconditional p = {float(chdtrc(1, ratio_uc)):.2g}, independence "
        f"p = {float(chdtrc(1, ratio_ind)):.2g}, conditional p = {float(chdtrc(2, ratio_uc + ratio_ind)):.2g}"
    )
    return Asked(
        "runs", question, 1.0, p_value, f"{said} ({_p(p_value)} by runs; {tests}).",
        "Misses come in runs: update intervals as targets become known (OnlineNeuron, ForecastIntervals).",
        float(after_miss.mean()), n_miss / evidence.n,
    )  # fmt: skip


def christoffersen(miss: NDArray[np.bool_], level: float) -> tuple[float, float]:
    """Likelihood ratios of unconditional coverage and of independence of the miss before, each chi-square with 1 df."""
    k, n = int(miss.sum()), len(miss)
    unconditional = 2.0 * (_log_likelihood(k, n, k / n) - _log_likelihood(k, n, 1.0 - level))
    before, after = miss[:-1], miss[1:]
    parts = [(int(after[before == b].sum()), int((before == b).sum())) for b in (False, True)]
    total = sum(one[0] for one in parts), sum(one[1] for one in parts)
    free = sum(_log_likelihood(k, n, k / n if n else 0.0) for k, n in parts)
    return unconditional, max(2.0 * (free - _log_likelihood(*total, total[0] / total[1])), 0.0)


def _log_likelihood(k: int, n: int, p: float) -> float:
    """Of k misses among n rows at a probability p."""
    return (k * math.log(p) if k else 0.0) + ((n - k) * math.log1p(-p) if n - k else 0.0)


def _runs_p(miss: NDArray[np.bool_]) -> float:
    """Probability of so few runs of misses, all orders of the rows being equally likely: exact, hypergeometric."""
    n, k = len(miss), int(miss.sum())
    n_runs = int(miss[0]) + int(np.count_nonzero(miss[1:] & ~miss[:-1]))
    r = np.arange(1, min(k, n - k + 1) + 1)
    # C(k - 1, r - 1) ways to cut the misses into r runs, C(n - k + 1, r) ways to place these among the hits.
    log = gammaln(k) - gammaln(r) - gammaln(k - r + 1) + gammaln(n - k + 2) - gammaln(r + 1) - gammaln(n - k + 2 - r)
    terms = np.exp(log - log.max())
    return float(terms[r <= n_runs].sum() / terms.sum())


CHECKS: tuple[Callable[[IntervalEvidence], Asked], ...] = (coverage, balance, subgroups, worst, calibration, runs)


def _best_name(alternatives: Sequence[Alternative]) -> str:
    """The alternative with the lowest interval score."""
    return min(alternatives, key=lambda one: one.interval_score).name if alternatives else ""


def better(evidence: IntervalEvidence, alternatives: Sequence[Alternative]) -> Asked:
    """How much better intervals could be: gains of three other ones, together by Bonferroni."""
    question = "How much better could they be?"
    if not alternatives:
        return Asked("better", question, 1.0, math.nan, "It is not asked of infinite intervals, nor of few rows.", "")
    is_asked = evidence.n * (1.0 - evidence.level) >= MIN_MISSES_FOR_RUNS * (1.0 - 1e-9)
    given, *others = alternatives
    best, constant = min(others, key=lambda one: one.interval_score), others[-1]
    said = (
        f"Interval score {rounded(given.interval_score, 3)} as given, {rounded(best.interval_score, 3)} with "
        f"{shown(best)} (coverage {percent(best.coverage, 3)})"
    )
    if constant is not best:
        said += f", {rounded(constant.interval_score, 3)} with {shown(constant)}"
        if constant.interval_score <= given.interval_score:
            said += ", which would do as well as those given"
    p_value = min(1.0, min(one.p_value for one in others) * len(others)) if is_asked else math.nan
    advice = (
        f"Use intervals with {shown(best)}: {percent(evidence.level)} of targets are inside, and the interval score "
        f"falls by {rounded(best.gain, 3)}."
    )
    return Asked(
        "better",
        question,
        2.0,
        p_value,
        f"{said}{f'; {_p(p_value)}' if is_asked else ''}.",
        advice,
        best.gain,
        0.0,
    )


def _p(p_value: float) -> str:
    """A p-value in words; one that floats cannot tell from 0 is below what they can."""
    return "p < 1e-300" if p_value == 0.0 else f"p = {p_value:.2g}"
