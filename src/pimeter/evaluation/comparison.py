"""`compare`: which of several models is better, by how much, and where? On the same rows, with ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import even_array, some_rows
from pimeter.coverage import counted, percent
from pimeter.evaluation import paired
from pimeter.evaluation.diagnosis.columns import categories, given, quintiles
from pimeter.evaluation.losses import losses_of
from pimeter.evaluation.results import Result
from pimeter.findings import Diagnosis, Finding, Headline
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.evaluation.diagnosis.columns import Given, Subgroups
    from pimeter.evaluation.paired import Pairs

    Array = NDArray[np.float64]

MAX_ROWS = 5000  # on which features are looked at
MIN_ROWS = 10  # of a comparison, and of a subgroup
MANY_TIMES = 100  # as many rows as there are: where more would be needed, models are as good as each other


class Kind(NamedTuple):
    """A score that models are compared by."""

    name: str
    words: str
    meaning: str
    sign: int  # 1: lower is better, -1: higher is better, 0: neither


KINDS = {
    kind.name: kind
    for kind in (
        Kind("crps", "CRPS", "continuous ranked probability score of the whole distribution", 1),
        Kind("interval_score", "interval score", "width, and a penalty for targets outside", 1),
        Kind("mae", "mean absolute error", "mean distance of targets from predictions", 1),
        Kind("rmse", "root mean squared error", "root of the mean squared distance: far misses count more", 1),
        Kind("coverage", "coverage", "fraction of targets inside the intervals", 0),
        Kind("mean_width", "mean width", "mean width of the intervals", 0),
        Kind("log_loss", "log loss", "minus the mean log probability of what happened", 1),
        Kind("brier", "Brier score", "mean squared distance of probabilities from what happened", 1),
        Kind("auc", "AUC", "area under the ROC curve", -1),
        Kind("accuracy", "accuracy", "fraction of right answers", -1),
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
    """How the best model and the next one differ in a subgroup of the rows, with a range for all subgroups together."""

    of: str
    label: str
    rows: int
    value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison(Result):
    """What is known of several models on the same rows.

    Attributes
    ----------
    headline : Headline
        The answer: a claim and its evidence.
    diagnosis : Diagnosis
        Findings, advice and code.
    models : tuple of str
        Names, in the order given.
    n_rows : int
        Rows on which they were compared.
    decided_by : str
        The score that decides.
    best : str
        The model with the best value of it, be it by chance.
    scores : dict of str to tuple of float
        Each score of each model.
    contrasts : tuple of Contrast
        Each score of each pair of models.
    places : tuple of Place
        Subgroups: the score that decides of the best model less that of the next.
    """

    models: tuple[str, ...]
    n_rows: int
    decided_by: str
    best: str
    scores: dict[str, tuple[float, ...]]
    contrasts: tuple[Contrast, ...]
    places: tuple[Place, ...]

    def contrast(self, score: str, model: str, other: str) -> Contrast:
        """How a model differs from another in a score."""
        for one in self.contrasts:
            if one.score == score and {one.model, one.other} == {model, other} and model != other:
                if one.model == model:
                    return one
                turned = {"value": -one.value, "lower": -one.upper, "upper": -one.lower}
                return Contrast(**{**asdict(one), **turned, "model": model, "other": other})
        msg = f"{score!r} of {model!r} and {other!r} was not compared; there are {[*self.scores]} of {[*self.models]}."
        raise KeyError(msg)

    def _table(self) -> dict[str, Any]:
        """A row for each score and pair of models."""
        rows = [asdict(one) for one in self.contrasts]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.comparison import comparison_html

        return comparison_html(self.to_dict(), about, {name: kind.meaning for name, kind in KINDS.items()})


def compare(
    y_true: ArrayLike,
    models: Mapping[str, Any],
    *,
    X: Any = None,
    by: ArrayLike | None = None,
    time: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Comparison:
    """Which model is better? Paired differences of their scores on rows that none of them was trained on.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Observed targets, or classes.
    models : mapping of str to predictions
        What two models or more say of these rows, all of them in one of these ways:

        - predictions ``(m,)``;
        - intervals ``(m, 2)`` or a frame with columns lower and upper, at `confidence_level`;
        - a dict with the keywords of `measure`: ``{"intervals": {0.8: ..., 0.95: ...}}``, ``{"quantiles": ...,
          "levels": ...}``, ``{"y_pred": ..., "std": ...}`` or ``{"samples": ...}``;
        - of two classes, False and True or 0 and 1: probabilities ``(m,)`` of the second one; of any classes: the
          classes themselves.

        Points and intervals together are compared as points, by the middles of intervals.
    X : frame or array-like of shape (m, d), optional
        Features, to find out where which model is better.
    by : array-like of shape (m,), optional
        A category of each row.
    time : array-like of shape (m,), optional
        When each row was observed, or its number: rows next to each other may depend on each other then, and ranges
        come from the long-run variance, as in the test of Diebold and Mariano.
    confidence_level : float, default=0.95
        The level of intervals, by which they are scored.

    Returns
    -------
    Comparison
        It prints as sentences; `contrasts` has every difference with its range, `to_frame()` is a table of them,
        `to_html(path)` writes a report.

    Raises
    ------
    ValueError
        If fewer than two models or 10 rows are given, shapes do not fit, or values are missing.

    Notes
    -----
    Ranges and p-values are for all pairs of models together, for one score at a time. They assume that rows are
    independent, or with `time` that their dependence fades. The range of a mean is Student's, with degrees of freedom
    that fall with the kurtosis of the differences; of a root mean square it is that of its linearisation, of
    proportions Agresti's and Min's beside McNemar's exact test, and of an AUC DeLong's. Scores are of the models as
    they are: that another training set would have made other models is not in the ranges.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import compare
    >>> rng = np.random.default_rng(0)
    >>> signal, noise = rng.normal(size=(2, 300))
    >>> found = compare(signal + noise, {"good": signal, "poor": 0.5 * signal, "none": np.zeros(300)})
    >>> print(found.headline)
    good is the best of 3 models: its mean absolute error is lower than that of each other one by at least 0.0522 (95 %
    confidence). 300 rows, each judged by all models.
    >>> found.contrast("rmse", "good", "none").better
    'good'
    """
    names, target, level = _names(models), even_array("y_true", y_true), one_level("confidence_level", confidence_level)
    if target.ndim != 1 or len(target) < MIN_ROWS:
        msg = f"y_true must have shape (m,) with at least {MIN_ROWS} rows; got {target.shape}."
        raise ValueError(msg)
    columns, centre = losses_of(target, models, level)
    known = given(X, by, len(target), some_rows(len(target), MAX_ROWS))
    order = None if time is None else _order(time, len(target))
    scores, contrasts = {}, []
    for name, rows in columns.items():
        values, pairs = _compared(name, rows, target, order)
        scores[name] = tuple(values.tolist())
        contrasts += _contrasts(KINDS[name], names, pairs)
    decided_by = next(name for name in KINDS if name in scores)
    sign = KINDS[decided_by].sign
    first, second = np.argsort(sign * np.array(scores[decided_by]), kind="stable")[:2]
    losses = columns[decided_by].astype(np.float64)
    places = _places(known, centre, sign * (losses[:, first] - losses[:, second]))
    decisive = [one for one in contrasts if one.score == decided_by]
    findings = _findings(contrasts, names[first], names[second], places, len(target))
    dependence = "ranges allow for dependence in time" if order is not None else "each judged by all models"
    return Comparison(
        headline=Headline(_claim(decisive, names, names[first]), f"{counted(len(target), 'row')}, {dependence}."),
        diagnosis=Diagnosis.of(findings, _choice(decisive, names[first], len(target))),
        models=names,
        n_rows=len(target),
        decided_by=decided_by,
        best=names[first],
        scores=scores,
        contrasts=tuple(contrasts),
        places=places,
    )


def _names(models: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the models, of which there are two or more."""
    if not isinstance(models, Mapping) or len(models) < 2:
        msg = "models must be a dict of two models or more: {'name': predictions, 'other': predictions}."
        raise ValueError(msg)
    return tuple(map(str, models))


def _order(time: ArrayLike, n: int) -> NDArray[np.intp]:
    """Rows in the order of time; those of one moment as they come."""
    moments = even_array("time", time)
    if moments.shape != (n,):
        msg = f"time must give a moment for each of the {n} rows; got shape {moments.shape}."
        raise ValueError(msg)
    return np.argsort(moments, kind="stable")


def _compared(
    name: str, rows: NDArray[Any], target: NDArray[Any], order: NDArray[np.intp] | None
) -> tuple[Array, Pairs]:
    """A score of each model, and its differences."""
    if name == "auc":
        return paired.of_auc(rows, target == 1)
    rows, is_ordered = (rows, False) if order is None else (rows[order], True)
    if name == "rmse":
        return np.sqrt(rows.mean(axis=0)), paired.of_roots(rows, is_ordered=is_ordered)
    of = paired.of_proportions if rows.dtype == bool else paired.of_means
    return rows.mean(axis=0), of(rows, is_ordered=is_ordered)


def _contrasts(kind: Kind, names: tuple[str, ...], pairs: Pairs) -> list[Contrast]:
    """Differences of one score with names."""
    found = []
    for k, (i, j) in enumerate(paired.all_pairs(len(names))):
        value, lower, upper, p_value, n_needed = (float(column[k]) for column in pairs)
        better = names[i if kind.sign * value < 0.0 else j] if kind.sign and pairs.is_told[k] else ""
        found.append(Contrast(kind.name, names[i], names[j], value, lower, upper, p_value, n_needed, better))
    return found


def _places(known: Given, centre: Array, difference: Array) -> tuple[Place, ...]:
    """Differences across quintiles of the mean prediction and of each feature, and per category."""
    some = some_rows(len(difference), MAX_ROWS)
    divisions: list[tuple[str, Subgroups, Array]] = [("prediction", quintiles(centre), difference)]
    if known.labels is not None:
        divisions.append(("by", categories(known.labels), difference))
    divisions += [(column.name, column.subgroups, difference[some]) for column in known.columns]
    held = [
        (of, label, values[codes == i])
        for of, (codes, labels), values in divisions
        for i, label in enumerate(labels)
        if np.count_nonzero(codes == i) >= MIN_ROWS
    ]
    confidence = 1.0 - (1.0 - paired.CONFIDENCE) / max(len(held), 1)
    return tuple(Place(of, label, len(rows), *paired.mean_range(rows, confidence)) for of, label, rows in held)


def _claim(decisive: list[Contrast], names: tuple[str, ...], best: str) -> str:
    """Which model is the best, as far as can be told."""
    kind = KINDS[decisive[0].score]
    way = "lower" if kind.sign > 0 else "higher"
    against = [one for one in decisive if best in {one.model, one.other}]
    unclear = [one for one in against if one.better != best]
    confidence = f"{percent(paired.CONFIDENCE)} confidence"
    least = min(max(one.lower, -one.upper) for one in against)  # by how much the best is better
    if not unclear and len(names) == 2:
        other, most = names[names[0] == best], max(abs(against[0].lower), abs(against[0].upper))
        return f"{best} is better than {other}: its {kind.words} is {way} by {least:.3g} to {most:.3g} ({confidence})."
    if not unclear:
        return (
            f"{best} is the best of {len(names)} models: its {kind.words} is {way} than that of each other one by at "
            f"least {least:.3g} ({confidence})."
        )
    return _undecided(unclear, names, best, kind)


def _undecided(unclear: list[Contrast], names: tuple[str, ...], best: str, kind: Kind) -> str:
    """Which models cannot be told from the best one."""
    equal = [one.other if one.model == best else one.model for one in unclear]
    worse = [name for name in names if name not in {best, *equal}]
    nearest = min(unclear, key=lambda one: abs(one.value))
    return (
        f"{best} and {_listed(equal)} cannot be told apart: the {kind.words} differs by {nearest.lower:.3g} to "
        f"{nearest.upper:.3g} ({nearest.model} less {nearest.other}, {percent(paired.CONFIDENCE)} confidence)."
        + (f" {best} is better than {_listed(worse)}." if worse else "")
    )


def _listed(names: list[str]) -> str:
    """Three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _choice(decisive: list[Contrast], best: str, n: int) -> str:
    """What to do about models of which none has a fault."""
    against = [one for one in decisive if best in {one.model, one.other}]
    unclear = [one for one in against if one.better != best]
    if not unclear:
        return f"Use {best}."
    needed = max(one.n_needed for one in unclear)
    if needed > MANY_TIMES * n:
        largest = max(max(abs(one.lower), abs(one.upper)) for one in unclear)
        return f"They are as good as each other: take the cheaper one. They differ by {largest:.3g} at most."
    return f"Not enough rows to tell; about {paired.shown_rows(needed)} would do, were the difference as it seems."


def _findings(contrasts: list[Contrast], best: str, second: str, places: tuple[Place, ...], n: int) -> list[Finding]:
    """A finding for each score of the two best models, for coverage, and for where the second one is better."""
    found = []
    for score, kind in KINDS.items():
        one = next((c for c in contrasts if c.score == score and {c.model, c.other} == {best, second}), None)
        if one is None:
            continue
        question = f"Which has the {'lower' if kind.sign > 0 else 'higher'} {kind.words}?"
        between = f"{one.model} less {one.other}: {one.lower:.3g} to {one.upper:.3g}"
        sentence = f"{one.better or 'Neither, as far as can be told'} ({between})."
        if not kind.sign:
            question, sentence = f"By how much does the {kind.words} differ?", f"By {one.value:.3g} ({between})."
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
    others = [place for place in places if place.lower > 0.0]
    sentence = f"In none of {len(places)} subgroups is {second} better."
    advice = ""
    if others:
        worst = max(others, key=lambda place: place.value)
        sentence = (
            f"{second} is better in {len(others)} of {len(places)} subgroups, most where {worst.of} is {worst.label}."
        )
        advice = f"Use {second} where {worst.of} is {worst.label} ({worst.rows:,} rows), once other rows confirm it."
    found.append(
        Finding(name="where", question="Is the other model better somewhere?", sentence=sentence, advice=advice, rows=n)
    )
    return found
