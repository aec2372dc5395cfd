"""Scores by which models are compared, their differences, and what these say in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pimeter.coverage import percent, rounded, rounded_up
from pimeter.evaluation import paired
from pimeter.evaluation.diagnosis.shifts import place
from pimeter.findings import Finding

MAX_TIMES_THE_ROWS = 100  # as many rows as there are: of more than that nobody is advised to wait for


class ComparedScore(NamedTuple):
    """A score that models are compared by."""

    name: str
    words: str
    meaning: str
    sign: int  # 1: lower is better, -1: higher is better, 0: neither


KINDS = {
    kind.name: kind
    for kind in (
        ComparedScore("crps", "CRPS", "continuous ranked probability score of the whole distribution", 1),
        ComparedScore("interval_score", "interval score", "width, and a penalty for targets outside", 1),
        ComparedScore("mae", "mean absolute error", "mean distance of targets from predictions", 1),
        ComparedScore("rmse", "root mean squared error", "root of the mean squared distance: far misses count more", 1),
        ComparedScore("coverage", "coverage", "fraction of targets inside the intervals", 0),
        ComparedScore("mean_width", "mean width", "mean width of the intervals", 0),
        ComparedScore("log_loss", "log loss", "minus the mean log probability of what happened", 1),
        ComparedScore("brier", "Brier score", "mean squared distance of probabilities from what happened", 1),
        ComparedScore("auc", "AUC", "area under the ROC curve", -1),
        ComparedScore("accuracy", "accuracy", "fraction of right answers", -1),
    )
}


@dataclass(frozen=True)
class Contrast:
    """How two models differ in one score.

    Attributes
    ----------
    score, model, other : str
        What is compared, and the score of which model less that of which other.
    value, lower, upper : float
        The difference, and a range that holds for all pairs of models together with 95 % confidence.
    p_value : float
        How often chance alone gives so large a difference in one of the pairs.
    n_needed : float
        Rows that would tell the two apart four times of five, were the difference as it seems.
    better : str
        The better model; empty where chance explains the difference, or no value is better by itself.
    """

    score: str
    model: str
    other: str
    value: float
    lower: float
    upper: float
    p_value: float
    n_needed: float
    better: str


@dataclass(frozen=True)
class Place:
    """By how much the best model is worse than the next one in a subgroup, with a range for all subgroups together."""

    of: str
    label: str
    rows: int
    value: float
    lower: float
    upper: float


def claim(decisive: list[Contrast], names: tuple[str, ...], best: str) -> str:
    """Which model is the best, as far as can be told."""
    kind = KINDS[decisive[0].score]
    way = "lower" if kind.sign > 0 else "higher"
    against = [one for one in decisive if best in {one.model, one.other}]
    unclear = [one for one in against if one.better != best]
    confidence = f"{percent(paired.CONFIDENCE_OF_PAIRS)} confidence"
    least = min(max(one.lower, -one.upper) for one in against)  # by how much the best is better
    if not unclear and len(names) == 2:
        other, most = names[names[0] == best], max(abs(against[0].lower), abs(against[0].upper))
        by = f"{rounded(least, 3)} to {rounded(most, 3)}"
        return f"{best} is better than {other}: its {kind.words} is {way} by {by} ({confidence})."
    if not unclear:
        return (
            f"{best} is the best of {len(names)} models: its {kind.words} is {way} than that of each other one by at "
            f"least {rounded(least, 3)} ({confidence})."
        )
    return _undecided(unclear, names, best, kind)


def _undecided(unclear: list[Contrast], names: tuple[str, ...], best: str, kind: ComparedScore) -> str:
    """Which models cannot be told from the best one."""
    equal = [one.other if one.model == best else one.model for one in unclear]
    worse = [name for name in names if name not in {best, *equal}]
    nearest = min(unclear, key=lambda one: abs(one.value))
    confidence = percent(paired.CONFIDENCE_OF_PAIRS)
    return (
        f"{best} and {_listed(equal)} cannot be told apart: the {kind.words} differs by {rounded(nearest.lower, 3)} to "
        f"{rounded(nearest.upper, 3)} ({nearest.model} less {nearest.other}, {confidence} confidence)."
        + (f" {best} is better than {_listed(worse)}." if worse else "")
    )


def _listed(names: list[str]) -> str:
    """Three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def choice(decisive: list[Contrast], best: str, n: int) -> str:
    """What to do about models of which none has a fault."""
    against = [one for one in decisive if best in {one.model, one.other}]
    unclear = [one for one in against if one.better != best]
    if not unclear:
        return f"Use {best}."
    clearest = min(unclear, key=lambda one: one.n_needed)
    if clearest.n_needed > MAX_TIMES_THE_ROWS * n:
        largest = rounded(max(max(abs(one.lower), abs(one.upper)) for one in unclear), 3)
        return (
            f"These rows cannot tell them apart: they differ by {largest} at most. Take the cheaper one if that is too "
            "little to matter."
        )
    enough = "do" if len(unclear) == 1 else f"tell {clearest.model} from {clearest.other}"
    needed = rounded_up(clearest.n_needed)
    return f"Not enough rows to tell; about {needed} would {enough}, were the difference as it seems."


def findings(contrasts: list[Contrast], best: str, second: str, places: tuple[Place, ...], n: int) -> list[Finding]:
    """A finding for each score of the two best models, for coverage, and for where the second one is better."""
    found = []
    for score, kind in KINDS.items():
        one = next((c for c in contrasts if c.score == score and {c.model, c.other} == {best, second}), None)
        if one is None:
            continue
        question = f"Which has the {'lower' if kind.sign > 0 else 'higher'} {kind.words}?"
        between = f"{one.model} less {one.other}: {rounded(one.lower, 3)} to {rounded(one.upper, 3)}"
        sentence = f"{one.better or 'Neither, as far as can be told'} ({between})."
        if not kind.sign:
            question = f"By how much does the {kind.words} differ?"
            sentence = f"By {rounded(one.value, 3)} ({between})."
        found.append(
            Finding(
                name=score,
                question=question,
                sentence=sentence,
                value=one.value,
                reference=0.0,
                lower=one.lower,
                upper=one.upper,
                p_value=one.p_value,
                rows=n,
            )
        )
    return [*found, _where(second, places, n)]


def _where(second: str, places: tuple[Place, ...], n: int) -> Finding:
    """The finding on subgroups: in which of them the second model is better."""
    others = [one for one in places if one.lower > 0.0]
    sentence = f"In none of {len(places)} subgroups is {second} better."
    if not places:
        sentence = "There are too few rows for subgroups."
    advice = ""
    if others:
        worst = max(others, key=lambda one: one.value)
        where = place(worst.of, worst.label)
        sentence = f"{second} is better in {len(others)} of {len(places)} subgroups, most {where}."
        advice = f"Use {second} {where} ({worst.rows:,} rows), once other rows confirm it."
    question = "Is the other model better somewhere?"
    return Finding(name="where", question=question, sentence=sentence, advice=advice, rows=n)
