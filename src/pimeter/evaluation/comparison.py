"""`compare`: which of several models is better, by how much, and where? On the same rows, with ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import even_array, some_rows
from pimeter.clusters import moment_numbers
from pimeter.coverage import counted
from pimeter.evaluation import paired
from pimeter.evaluation.diagnosis.columns import categories, given, quintiles
from pimeter.evaluation.interval_evidence import Division
from pimeter.evaluation.losses import losses_of
from pimeter.evaluation.paired import Compared
from pimeter.evaluation.results import Result
from pimeter.evaluation.verdict import KINDS, ComparedScore, Contrast, Place, choice, claim, findings
from pimeter.findings import Diagnosis, Headline
from pimeter.frames import refuse_other_orders
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.evaluation.diagnosis.columns import Given
    from pimeter.evaluation.paired import Pairs
    from pimeter.protocols import Array, Columns, FeatureTable, Index

MAX_ROWS_FOR_FEATURES = 5000  # on which features are looked at
MIN_ROWS_TO_COMPARE = 10  # of a comparison, and of a subgroup


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison(Result):
    """What is known of several models on the same rows.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
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
        Subgroups: by how much the score that decides is worse for the best model than for the next one.
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

    def _table(self) -> Columns:
        """A row for each score and pair of models."""
        rows = [asdict(one) for one in self.contrasts]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.comparison import comparison_html

        kind, meaning = KINDS[self.decided_by], {name: kind.meaning for name, kind in KINDS.items()}
        return comparison_html(self.to_dict(), about, meaning, words=kind.words, is_lower_better=kind.sign > 0)


def compare(
    y_true: ArrayLike,
    models: Mapping[str, Any],
    *,
    X: FeatureTable | None = None,
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
          classes as strings (numbers are predictions of numbers).

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
    proportions that of the rows in which one model alone is right (Jeffreys, MOVER) and McNemar's exact test, and of
    an AUC DeLong's. Scores are of the models as they are: that another training set would have made other models is not
    in the ranges.

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
    if target.ndim != 1 or len(target) < MIN_ROWS_TO_COMPARE:
        msg = f"y_true must have shape (m,) with at least {MIN_ROWS_TO_COMPARE} rows; got {target.shape}."
        raise ValueError(msg)
    refuse_other_orders({"y_true": y_true, "models": models, "X": X, "by": by, "time": time})
    losses = losses_of(target, models, level)
    known = given(X, by, len(target), some_rows(len(target), MAX_ROWS_FOR_FEATURES))
    moments = None if time is None else moment_numbers(time, len(target))
    scores, contrasts = {}, []
    for name, rows in losses.columns.items():
        compared = _compared(name, rows, target, moments)
        scores[name] = tuple(compared.values.tolist())
        contrasts += _contrasts(KINDS[name], names, compared.pairs)
    decided_by = next(name for name in KINDS if name in scores)
    sign = KINDS[decided_by].sign
    first, second = np.argsort(sign * np.array(scores[decided_by]), kind="stable")[:2]
    decisive_losses = losses.columns[decided_by].astype(np.float64)
    difference = sign * (decisive_losses[:, first] - decisive_losses[:, second])
    places = _places(known, losses.centre, difference, moments)
    decisive = [one for one in contrasts if one.score == decided_by]
    found = findings(contrasts, names[first], names[second], places, len(target))
    dependence = "ranges allow for dependence in time" if moments is not None else "each judged by all models"
    first_advice = choice(decisive, names[first], len(target))
    diagnosis = Diagnosis.of(found, first_advice)
    if diagnosis.raised:
        diagnosis = replace(diagnosis, advice=(first_advice, *diagnosis.advice))
    return Comparison(
        headline=Headline(claim(decisive, names, names[first]), f"{counted(len(target), 'row')}, {dependence}."),
        diagnosis=diagnosis,
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


def _compared(name: str, rows: NDArray[Any], target: NDArray[Any], moments: Index | None) -> Compared:
    """A score of each model, and its differences."""
    if moments is not None:
        order = np.argsort(moments, kind="stable")
        rows, target, moments = rows[order], target[order], moments[order]
    if name == "auc":
        return paired.of_auc(rows, target == 1, moments=moments)
    if name == "rmse":
        return Compared(np.sqrt(rows.mean(axis=0)), paired.of_roots(rows, moments=moments))
    of = paired.of_proportions if rows.dtype == bool else paired.of_means
    return Compared(rows.mean(axis=0), of(rows, moments=moments))


def _contrasts(kind: ComparedScore, names: tuple[str, ...], pairs: Pairs) -> list[Contrast]:
    """Differences of one score with names."""
    found = []
    for k, (i, j) in enumerate(paired.all_pairs(len(names))):
        better = names[i if kind.sign * pairs.value[k] < 0.0 else j] if kind.sign and pairs.is_told[k] else ""
        found.append(
            Contrast(
                score=kind.name,
                model=names[i],
                other=names[j],
                value=float(pairs.value[k]),
                lower=float(pairs.lower[k]),
                upper=float(pairs.upper[k]),
                p_value=float(pairs.p_value[k]),
                n_needed=float(pairs.n_needed[k]),
                better=better,
            )
        )
    return found


def _places(known: Given, centre: Array, difference: Array, moments: Index | None) -> tuple[Place, ...]:
    """Differences across quintiles of the mean prediction and of each feature, and per category."""
    n = len(difference)
    every, some = np.arange(n), some_rows(n, MAX_ROWS_FOR_FEATURES)
    divisions = [Division("prediction", quintiles(centre), every)]
    if known.labels is not None:
        divisions.append(Division("by", categories(known.labels), every))
    divisions += [Division(column.name, column.subgroups, some) for column in known.columns]
    held = [
        (one.of, label, one.rows[one.subgroups.codes == i])
        for one in divisions
        for i, label in enumerate(one.subgroups.labels)
        if np.count_nonzero(one.subgroups.codes == i) >= MIN_ROWS_TO_COMPARE
    ]
    confidence = 1.0 - (1.0 - paired.CONFIDENCE_OF_PAIRS) / max(len(held), 1)
    found = []
    for of, label, rows in held:
        own = None
        if moments is not None:
            rows = rows[np.argsort(moments[rows], kind="stable")]  # noqa: PLW2901
            own = np.unique(moments[rows], return_inverse=True)[1]
        mean = paired.mean_range(difference[rows], confidence, moments=own)
        found.append(Place(of, label, len(rows), mean.value, mean.lower, mean.upper))
    return tuple(found)
