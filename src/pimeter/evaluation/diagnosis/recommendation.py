"""What follows from all findings together: one width, tails, bounds, groups and order, as code and as options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pimeter.conformal.guarantee import rank_guarantee
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.shifts import mean_residual
from pimeter.evaluation.diagnosis.width import Gap, grouped_gain
from pimeter.interval_arrays import interval_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pimeter.evaluation.diagnosis.evidence import PredictionEvidence
    from pimeter.evaluation.diagnosis.shifts import Criterion
    from pimeter.findings import Finding
    from pimeter.protocols import Array

    RecommendedWidth = Literal["constant", "scaled", "grouped", "quantile"]
    RecommendedTails = Literal["symmetric", "equal"]

SURELY = 6.0  # negative targets that residuals would make, if they could, and of which there is none: p = .0025
# a + b/m of the interval score, which bands of quantiles lose where nothing is to be learned
PRICE_OF_BANDS = (0.02, 30.0)
LEARNED = ("scaled", "quantile")  # widths that leave half of the rows to calibrate
ZEROS = 3  # targets of 0 that are the least ones: no chance


@dataclass(frozen=True)
class Recommendation:
    """How to make intervals for rows like these.

    Attributes
    ----------
    width, tails : str
        Of `IntervalRegressor`.
    by : object
        Column of X with the categories of a grouped width; None if they are given as `by`.
    y_min : float or None
        Least possible target, where intervals would go beyond it.
    groups : str
        Code of the groups of rows that belong together; empty if each row stands for itself.
    is_online : bool
        Whether intervals should follow the rows in their order.
    has_time : bool
        Whether that order is given as `time`; otherwise rows are in it.
    """

    width: RecommendedWidth = "constant"
    tails: RecommendedTails = "symmetric"
    by: Any = None
    y_min: float | None = None
    groups: str = ""
    is_online: bool = False
    has_time: bool = False

    def code(self, level: float) -> str:
        """Lines to paste, for a `model`, calibration rows `X, y_true` and new rows `X_new`."""
        lines = [*self._imports, f"intervals = IntervalRegressor(model, confidence_level={level!r}{self.after_level}"]
        return "\n".join(lines)

    @property
    def after_level(self) -> str:
        """The code after its confidence level."""
        has_labels = self.width == "grouped" and self.by is None
        passed, new = (", by=by", ", by=by_new") if has_labels else ("", "")
        width = f'"{self.width}"' if self.width != "grouped" or has_labels else f"GroupedWidth(by={self.by!r})"
        options = ["", f"width={width}", f'tails="{self.tails}"']
        options += [] if self.y_min is None else [f"y_min={self.y_min:g}"]
        options += ["shuffle=False"] if self.is_online and self.width in LEARNED else []
        groups = f", groups={self.groups}" if self.groups else ""
        made = f"{', '.join(options)}).calibrate(X, y_true{passed}{groups})"
        if not self.is_online:
            return f"{made}\nlower, upper = intervals.predict_interval(X_new{new}).T"
        order = ", time=time)" if self.has_time else ")  # rows in the order of time"
        return "\n".join(
            [
                made,
                f"online = OnlineIntervals(intervals).fit(X, y_true{passed}{order}",
                f"lower, upper = online.predict_interval(X_new{new}).T  # then online.follow(X_new, y_new{new})",
            ]
        )

    @property
    def _imports(self) -> list[str]:
        """Lines that import what the others use."""
        names = ["GroupedWidth"] if self.width == "grouped" and self.by is not None else []
        names += ["IntervalRegressor", *(["OnlineIntervals"] if self.is_online else [])]
        found = ["import numpy as np"] if "np." in self.groups else []
        found += ["from pimeter import duplicate_groups"] if "duplicate_groups" in self.groups else []
        return [*found, f"from pimeter.regression import {', '.join(names)}"]

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `pimeter interval` that make these intervals; categories in no column are left to the caller."""
        found = ["--width", self.width]
        found += [] if self.by is None else ["--by", str(self.by)]
        found += [] if self.tails == "symmetric" else ["--tails", self.tails]
        found += [] if self.y_min is None else ["--y-min", f"{self.y_min:g}"]
        found += ["--count-copies-once"] if "duplicate_groups" in self.groups else []
        return (*found, *(["--online"] if self.is_online else []))


def recommended(evidence: PredictionEvidence, found: Mapping[str, Finding]) -> Recommendation:
    """What all findings together ask for."""
    raised = {name for name, finding in found.items() if finding.raised}
    width, by = max(_widths(evidence, found, raised), key=lambda one: one[0])[1:]
    is_halved = width in LEARNED
    is_enough = rank_guarantee(_n_units(evidence) // (1 + is_halved), evidence.level, n_cuts=2).is_enough
    if evidence.has_groups and is_enough:
        equal = _score_of_groups(evidence, "equal", is_halved=is_halved)
        is_enough = equal < _score_of_groups(evidence, "symmetric", is_halved=is_halved)
    is_one_sided = "skew" in raised or ("bias" in raised and _is_bias_left(evidence, width, raised))
    is_positive = is_never_negative(evidence.target, evidence.prediction, evidence.ordered, evidence.margin)
    tails: RecommendedTails = "equal" if is_one_sided and is_enough else "symmetric"
    is_online = bool(raised & {"drift", "serial"})
    y_min = 0.0 if is_positive else None
    return Recommendation(width, tails, by, y_min, _groups(evidence), is_online, evidence.has_time)


def _is_bias_left(evidence: PredictionEvidence, width: RecommendedWidth, raised: set[str]) -> bool:
    """Whether a mean residual asks for two bounds: that of all rows, or that of a subgroup which the width follows."""
    if width in {"grouped", "quantile"} and Bias().is_local(evidence.local_shift, evidence.margin):
        return True
    if not Bias().is_overall(mean_residual(evidence.residuals, evidence.units), evidence.margin):
        return False
    return "drift" in raised or is_bias_kept(evidence.residuals, evidence.level)


def is_bias_kept(residuals: Array, level: float) -> bool:
    """Whether two bounds do better than one margin on the later half of the rows, both learned from the earlier half.

    Where the mean moves on, but too little to be called a drift, two bounds would be farther off than one margin.
    """
    earlier, later = np.array_split(residuals, 2)
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    two, one = np.quantile(earlier, tails), np.quantile(np.abs(earlier), level) * np.array([-1.0, 1.0])
    of_two, of_one = (float(interval_scores(later, low, high, level).mean()) for low, high in (two, one))
    return of_two < of_one


def _groups(evidence: PredictionEvidence) -> str:
    """Code of the groups of rows that belong together."""
    if evidence.has_groups:
        return "groups"
    return f"duplicate_groups({evidence.copies.compared})" if evidence.copies.n else ""


def _widths(
    evidence: PredictionEvidence, found: Mapping[str, Finding], raised: set[str]
) -> Iterator[tuple[float, RecommendedWidth, Any]]:
    """Widths that findings speak for, with the gain to be expected of each, and the column of its categories."""
    yield 0.0, "constant", None
    places = _places(evidence)
    gap = Gap.of(evidence.subgroups, evidence.level, evidence.coverage).subgroup.of if "width" in raised else ""
    gain = max(found["gain"].value, 0.0) if "gain" in raised else 0.0
    is_elsewhere = (gap and gap not in places) or "worst_subgroup" in raised
    gain = max(gain, np.finfo(float).tiny) if is_elsewhere else gain
    yield gain - (gain == 0.0) - _price_of_groups(evidence, "symmetric"), "scaled", None
    shift = _local_criterion(evidence)
    if shift is not None and shift.values is not None:
        of_bands = _gain_of_bands(evidence, is_paid=gain > 0.0) - _price_of_groups(evidence, "equal")
        yield gain + of_bands, "quantile", None
    named = {gap, shift.of if shift is not None and shift.values is None else ""} & {*places}
    for criterion in filter(lambda one: one.of in named, evidence.criteria):
        own = grouped_gain(evidence.some_residuals, criterion.subgroups.codes, evidence.level, found["bias"].raised)
        yield own, "grouped", places[criterion.of]


def _places(evidence: PredictionEvidence) -> dict[str, Any]:
    """Names of what divides the rows into categories, and how a width finds them: in a column, or given as `by`."""
    return {column.name: column.place for column in evidence.given.columns if not column.is_numeric} | {"by": None}


def _gain_of_bands(evidence: PredictionEvidence, *, is_paid: bool) -> float:
    """What the means of subgroups explain of the squares, less what bands of quantiles lose, if not yet subtracted."""
    local, price = evidence.local_shift, 0.0 if is_paid else PRICE_OF_BANDS[0] + PRICE_OF_BANDS[1] / evidence.m
    return (0.0 if local is None else local.explained(evidence.some_residuals) / 2.0) - price


def _n_units(evidence: PredictionEvidence) -> int:
    """How many rows, or groups where these are given, a margin may count."""
    return evidence.units.n_groups if evidence.has_groups and evidence.units is not None else evidence.m


def _price_of_groups(evidence: PredictionEvidence, tails: RecommendedTails) -> float:
    """By which fraction the interval score rises as a width that is learned leaves half of the groups to calibrate."""
    if not evidence.has_groups:
        return 0.0
    halved, whole = _score_of_groups(evidence, tails, is_halved=True), _score_of_groups(evidence, "symmetric")
    return halved / whole - 1.0 if math.isfinite(halved) and whole > 0.0 else math.inf


def _score_of_groups(evidence: PredictionEvidence, tails: RecommendedTails, *, is_halved: bool = False) -> float:
    """Interval score of constant bounds at the quantiles that guarantee the level if each group counts once."""
    n, x, level = _n_units(evidence) // (1 + is_halved), evidence.some_residuals, evidence.level
    p = (1.0 + level) / 2.0 if tails == "equal" else level
    if n * (1.0 - p) < p:  # no quantile of so few groups would do
        return math.inf
    at, signs = min(p * (n + 1) / n, 1.0), np.array([-1.0, 1.0])
    low, high = np.quantile(x, [1.0 - at, at]) if tails == "equal" else signs * np.quantile(np.abs(x), at)
    return float(interval_scores(x, low, high, level).mean())


def _local_criterion(evidence: PredictionEvidence) -> Criterion | None:
    """What divides the rows into subgroups of which one is biased; None if none is."""
    local = evidence.local_shift
    return local.criterion if local is not None and Bias().is_local(local, evidence.margin) else None


def is_never_negative(target: Array, prediction: Array, ordered: Array, margin: float) -> bool:
    """Whether targets cannot be negative, as counts cannot, though intervals go below 0.

    That is so for integers from 0 on, where several of them are 0, and where residuals like these around the
    predictions would make several targets negative, but none is.
    """
    if target.min() < 0.0 or not float(prediction.min()) < margin or len(target) < ZEROS:
        return False
    n_zero = int(np.count_nonzero(target == 0.0))
    if n_zero < len(target) and (n_zero >= ZEROS or (n_zero > 0 and bool((target == np.floor(target)).all()))):
        return True
    return float(np.searchsorted(ordered, -prediction).sum()) / len(target) >= SURELY
