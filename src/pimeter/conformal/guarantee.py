"""The one place that decides what calibration scores guarantee about new rows, and why where that is nothing."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pimeter.coverage import RANGE, ROUNDING, binomial_cdf, counted, percent, warn_of_coverage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.conformal.folds import FoldModels
    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.conformal.scores import CalibrationScores, Tails
    from pimeter.protocols import Array

GuaranteeKind = Literal["marginal", "training-conditional", "approximate"]
GUARANTEES = frozenset(get_args(GuaranteeKind))

TRAINING_CONDITIONAL_CONFIDENCE = 0.95  # of guarantee="training-conditional"
PLACE_SPREAD = 0.15  # standard errors by which a neuron's place follows t, see `neuron_level` ...
RANKS_AHEAD, RANKS_BEHIND = 0.2, 0.45  # ... and ranks that it goes ahead, and stays behind for a single error beyond it
MIN_ESTIMATED_RATIO = 5  # times the rows that a guarantee takes: with fewer effective ones estimated weights may fail
UNKNOWN = (math.nan, math.nan)

# Why calibration rows are not taken for exchangeable with new ones.
COPIES = "some rows are copies of others"
ORDER = "rows are in the order of time, and those to come may differ"
GROUPS = "rows of one group may resemble each other, and rows to come are of new groups"
ESTIMATED = "importance weights are estimated"
NOT_ONCE = "folds do not leave out each row once"
NOT_ALL_OTHERS = "models of the folds train on some of the other rows only"
UNEQUAL_FOLDS = "folds are not of equal size"
UNEQUAL_CATEGORIES = "the rows of a category or class are divided unequally among the folds"
# Why new rows of some kind are guaranteed nothing, though calibration rows are exchangeable with others.
NEVER_SEEN = "nothing is guaranteed to categories never seen, taken by themselves"
TOO_HEAVY = "how many of the rows that are too heavy lie on each side of the prediction is not known"


def guarantee(
    scores: CalibrationScores,
    members: slice | NDArray[Any],
    output: int,
    tails: Tails,
    p: float,
    kind: GuaranteeKind,
    *,
    is_unseen: bool = False,
    heavy: float = 0.0,
    is_overlapping: bool = False,
    is_cut: bool = False,
) -> Guarantee:
    """What some of the calibration scores guarantee about an output of new rows at level p.

    ======================================== =================== ==========================
    case, the first that fits                level               range of this set
    ======================================== =================== ==========================
    new rows of categories never seen        none                unknown
    too few scores, and the answer is full   p                   unknown
    rows are not exchangeable                none                unknown
    groups: by sign, or not marginal         none                unknown
    estimated importance weights             none                unknown
    unequal or incomplete folds              none                unknown
    by sign: too few, folds, or heavy rows   none                unknown
    each sign by itself                      the least of both   unknown
    folds                                    2 p - 1 - sqrt(2/n) unknown
    unequal importance weights               that of the rank    unknown
    several outputs at once, two tails       that of the rank    unknown (both may miss)
    rows in groups that resemble each other  rank among groups   unknown
    overlapping groups, none can be cut      p                   unknown
    overlapping groups, some may be cut      see below           unknown
    all others                               that of the rank    Beta distribution of ranks
    ======================================== =================== ==========================

    It is an average over all new rows, those among them whose importance weight is too heavy for the scores counting as
    covered. Without these, a fraction `heavy` h, ``(level - h) / (1 - h)`` is left to the others. Categories never seen
    (`is_unseen`) have the scores of small ones, but are the rarest: if they are the hardest, they are covered less.

    To a new row of a new group, exchangeable with those of the scores, K groups guarantee what K scores would, if each
    counts once (hierarchical conformal prediction; marginal alone). Where groups overlap, a margin that ought to be
    infinite goes as far as the largest score of its groups. That takes no small group: a thin combination of large ones
    is enough, also one that only the new row shows. Where it may happen (`is_cut`), any group loses 1/(m + 1) at most,
    twice that with two tails: of its m rows and the new one, one alone is beyond the others. A group that is too small
    by itself keeps m/(m + 1).
    """
    numbers = scores.numbers(members, output, tails)
    each = [rank_guarantee(m, p, kind=kind, n_cuts=tails.n_cuts, confidence=confidence_of(tails)) for m in numbers]
    weakest = min(each, key=attrgetter("m"))
    if scores.is_full_if_few and not weakest.is_enough and not is_unseen:
        return replace(weakest, level=p, coverage_range=UNKNOWN, reason="")
    doubt = NEVER_SEEN if is_unseen else _doubt(scores, members, tails, weakest, heavy, kind)
    if doubt:
        return weakest.doubted(doubt)
    if any((is_overlapping, heavy, _has_other_range(scores, members, tails))):
        level = _level_of_others(min(one.level for one in each), weakest, scores, tails, heavy)
        cut = tails.n_cuts / (weakest.m + 1.0) if is_overlapping and is_cut and weakest.is_enough else 0.0
        return replace(weakest, level=level - cut, coverage_range=UNKNOWN)
    return weakest


def _level_of_others(level: float, weakest: Guarantee, scores: CalibrationScores, tails: Tails, heavy: float) -> float:
    """What is left of a level by folds, and to rows other than those that are too heavy."""
    if scores.folds is not None:
        level = cross_validated_level(level, weakest.m, tails.n_cuts)
    return max(0.0, (level - heavy) / (1.0 - heavy)) if heavy else level


def _has_other_range(scores: CalibrationScores, members: slice | NDArray[Any], tails: Tails) -> bool:
    """Whether the coverage of this set is not distributed as a rank."""
    both_may_miss = scores.is_joint and tails.n_cuts > 1
    is_dependent = scores.folds is not None or scores.groups is not None
    return tails.is_by_sign or both_may_miss or is_dependent or scores.have_unequal_weights(members)


def _doubt(
    scores: CalibrationScores,
    members: slice | NDArray[Any],
    tails: Tails,
    weakest: Guarantee,
    heavy: float,
    kind: GuaranteeKind,
) -> str:
    """Why nothing is guaranteed; empty where something is."""
    doubts = list(scores.doubts)
    if scores.groups is not None and (tails.is_by_sign or kind != "marginal"):
        doubts.append(GROUPS)
    if scores.effective_size is not None:
        doubts.append(ESTIMATED)
    if scores.folds is not None:
        doubts += _doubts_of_folds(scores.folds, members)
    if doubts or not tails.is_by_sign:
        return "; ".join(doubts)
    if scores.folds is not None:
        return "nothing is proven of CV+ for each sign by itself"
    if not weakest.is_enough:
        return f"{weakest.needed} scores of each sign are needed, and there are {weakest.m:.6g}"
    return TOO_HEAVY if heavy else ""


def _doubts_of_folds(folds: FoldModels, members: slice | NDArray[Any]) -> list[str]:
    """Why CV+ is not proven for these of the rows in folds; empty where it is."""
    if not folds.leave_out_once:
        return [NOT_ONCE]
    if not folds.is_complete:
        return [NOT_ALL_OTHERS]
    if folds.rows(members).are_equal:
        return []
    return [UNEQUAL_CATEGORIES if folds.are_equal else UNEQUAL_FOLDS]


def confidence_of(tails: Tails) -> float:
    """Where each sign has its own sample, each keeps its level with confidence sqrt(.95), so that both do with .95."""
    return math.sqrt(TRAINING_CONDITIONAL_CONFIDENCE) if tails.is_by_sign else TRAINING_CONDITIONAL_CONFIDENCE


def rank(m: float, p: float) -> int:
    """Rank of the score that covers a proportion p of new rows, ``ceil((m + 1) p)``; beyond m if m are too few.

    Examples
    --------
    >>> from pimeter.conformal.guarantee import rank
    >>> rank(99, 0.55), rank(19, 0.95), rank(12, 0.95)
    (55, 19, 13)
    """
    return math.ceil((m + 1.0) * p - ROUNDING)


def rank_below(m: float, p: float) -> int:
    """Rank of the score just below the place ``(m + 1) p``, at least 1."""
    return max(1, math.floor((m + 1.0) * p + ROUNDING))


def neuron_level(m: float, p: float) -> float:
    """Level at which a neuron, kept between the scores of ranks `rank_below` and `rank`, covers p on average.

    The place ``(m + 1) p`` divides the way between the two scores in t and 1 - t. A neuron sees farther than that way,
    so what it does with t is decided by where it is put: its place is moved by the normal quantile of t, in units of a
    part of its standard error. A part of a long way covers more than the same part of short ones, and the way is
    longest where hardly an error lies beyond: there it stays a little behind, elsewhere it goes a little ahead.

    The three constants were chosen by trial on 13 distributions, p from .8 to .99 and m from 20 to 217. On seeds not
    looked at before, p = .95 and m = 30, 50, 100, the mean width is .991 of that of plain interpolation at the same
    place over normal, Laplace, t3, uniform and exponential errors, and .997 over normal, t2, uniform and tied errors
    and exponential ones around their median; none of the 30 cells covers less than p - 3 standard errors
    (`benchmarks/regression_peers.py`).
    """
    place = (m + 1.0) * p
    t = place - rank_below(m, p)
    if t > ROUNDING:
        beyond = m + 1.0 - place
        place += (
            PLACE_SPREAD * math.sqrt(place * (1.0 - p)) * NormalDist().inv_cdf(t) + RANKS_AHEAD - RANKS_BEHIND / beyond
        )
    return min(max(place, 0.0) / m, 1.0)


def effective_counts(weights: Array) -> Array:
    """Importance weights as counts: they carry ratios only, so they sum to the effective number of rows.

    That number is ``(sum w)^2 / sum w^2``. In these units a typical new row weighs 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.conformal.guarantee import effective_counts
    >>> effective_counts(np.array([3.0, 3.0, 3.0]))
    array([1., 1., 1.])
    >>> print(effective_counts(np.array([2.0, 1.0, 1.0])).sum().round(2))
    2.67
    """
    scaled = weights / weights.max()
    counts: Array = scaled * (scaled.sum() / (scaled @ scaled))
    return counts


@dataclass(frozen=True)
class Guarantee:
    """What calibration scores guarantee about new rows, and why where that is nothing."""

    m: float  # number of scores; of weighted ones the effective number
    rank: int  # of the score that bounds those of new rows, at most m
    level: float  # coverage that is guaranteed on average or, "training-conditional", to this set; NaN where none is
    needed: int  # number of scores from which on the confidence level itself can be guaranteed
    coverage_range: tuple[float, float]  # 5 % and 95 % points for the set at hand; with ties lower bounds
    reason: str = ""  # why nothing is guaranteed; empty where something is

    @property
    def is_enough(self) -> bool:
        """Whether there are enough scores for the level asked for."""
        return self.m >= self.needed

    def doubted(self, reason: str) -> Guarantee:
        """Nothing, for a reason; what it is if the reason is empty."""
        return replace(self, level=math.nan, coverage_range=UNKNOWN, reason=reason) if reason else self


@lru_cache(maxsize=4096)
def rank_guarantee(
    m: float,
    p: float,
    *,
    kind: GuaranteeKind = "marginal",
    n_cuts: int = 1,
    confidence: float = TRAINING_CONDITIONAL_CONFIDENCE,
) -> Guarantee:
    """What m scores that are exchangeable with those of new rows guarantee at confidence level p.

    The rank is, by `kind`, the least whose mean coverage is p ("marginal"), or the least that covers p with the given
    confidence over calibration sets ("training-conditional"). "approximate" is a neuron between the ranks next to
    ``(m + 1) p``: the level is that of the lower one, the range from its 5 % point to the 95 % point of the upper one.
    With `n_cuts` of 2, scores are cut off on both sides of the sample, (1 - p)/2 on each. No scores guarantee nothing.

    Examples
    --------
    >>> from pimeter.conformal.guarantee import rank_guarantee
    >>> enough = rank_guarantee(100, 0.95)
    >>> enough.rank, enough.level, [round(point, 3) for point in enough.coverage_range]
    (96, 0.95, [0.911, 0.98])
    >>> few = rank_guarantee(12, 0.95)
    >>> few.rank, round(few.level, 3), few.needed
    (12, 0.923, 19)
    """
    needed = scores_needed(p, kind=kind, n_cuts=n_cuts, confidence=confidence)
    if m <= 0:
        return Guarantee(0.0, 0, math.nan, needed, UNKNOWN, "there are no calibration scores")

    def coverage(place: float) -> float:
        """Mean coverage within the score at this place, or within the two at this place from either end."""
        return (n_cuts * place - (n_cuts - 1) * (m + 1.0)) / (m + 1.0)

    level = (p + n_cuts - 1.0) / n_cuts
    if kind == "training-conditional":
        counts = binomial_cdf(int(m), p)
        # With confidence fewer than this many lie within.
        inside = counts.first + int(np.searchsorted(counts.below, confidence))
        place = float(inside if n_cuts == 1 else math.ceil((m + 1.0 + inside) / 2.0))
        least, guaranteed = place, p if m >= needed else math.nan
    elif kind == "marginal":
        least = place = rank(m, level)
        guaranteed = p if m >= needed else min(p, coverage(m))
    else:
        least, place = rank_below(m, level), rank(m, level)
        guaranteed = coverage(min(least, m))
    low, high = (_beta_point(coverage(min(k, m)), m, point) for k, point in zip((least, place), RANGE, strict=True))
    reason = f"{needed} calibration scores are needed, and there are {m:.6g}" if math.isnan(guaranteed) else ""
    return Guarantee(m, min(math.ceil(place - ROUNDING), math.floor(m)), guaranteed, needed, (low, high), reason)


def _beta_point(mean: float, m: float, point: float) -> float:
    """Point of the Beta distribution with this mean that m scores give the coverage."""
    from scipy.special import betaincinv

    inside = mean * (m + 1.0)
    return float(betaincinv(inside, m + 1.0 - inside, point)) if inside > 0.0 else 0.0


@lru_cache(maxsize=256)
def scores_needed(
    p: float, *, kind: GuaranteeKind = "marginal", n_cuts: int = 1, confidence: float = TRAINING_CONDITIONAL_CONFIDENCE
) -> int:
    """Fewest scores that can guarantee p; the arguments are those of `rank_guarantee`."""
    if kind != "training-conditional":
        level = (p + n_cuts - 1.0) / n_cuts
        enough = max(1, math.ceil(level / (1.0 - level) - ROUNDING))
        return enough - (enough > 1 and rank(enough - 1, level) < enough)  # near 1 the odds are rounded by more

    # All m scores, or all but the two outermost, have to exceed p with confidence: 1 - confidence >= the proportion of
    # calibration sets where not even the outermost scores are beyond the quantile.
    def is_enough(m: int) -> bool:
        return p**m + (n_cuts - 1) * m * p ** (m - 1) * (1.0 - p) <= (1.0 - confidence) * (1.0 + ROUNDING)

    few = max(n_cuts, math.floor(math.log(1.0 - confidence) / math.log(p)))
    if is_enough(few):
        return few
    enough = 2 * few
    while not is_enough(enough):
        few, enough = enough, 2 * enough
    return few + bisect_left(range(few, enough), True, key=is_enough)


def cross_validated_level(level: float, n: float, n_cuts: int = 1) -> float:
    """What is proven of CV+ with ranks for a level, n rows in folds of equal size: ``2 level - 1 - sqrt(2/n)``.

    Each tail that is cut off has its own proof, so that two cuts subtract the root twice. For learners that hardly
    change if a fold is left out, coverage is about the level itself.
    """
    return max(0.0, 2.0 * level - 1.0 - n_cuts * math.sqrt(2.0 / n))


def too_few(guarantee: Guarantee, p: float, of: str = "") -> str:
    """Sentence for a warning where scores are too few: what they can guarantee, and how many are needed."""
    can = "nothing" if math.isnan(guarantee.level) else percent(guarantee.level, 3)
    scores = counted(float(guarantee.m), "score")
    return f"{scores}{of} can guarantee {can}, not {percent(p, 6)}; {guarantee.needed} are needed"


def warn_of_few_groups(quantile: ScoreQuantile) -> None:
    """Say that groups of rows which resemble each other are fewer than scores would have to be."""
    n_groups, level = quantile.scores.n_groups, quantile.level
    needed = scores_needed(level, kind=quantile.kind, n_cuts=quantile.tails.n_cuts)
    if n_groups is not None and n_groups < needed and GROUPS in quantile.scores.doubts:
        warn_of_coverage(
            f"scores of {n_groups} groups calibrate, and rows of one group may resemble each other: nothing is "
            f"guaranteed to rows of new groups, of which {percent(level, 6)} intervals may cover far less. {needed} "
            "groups or more do better."
        )


def warn_of_few_scores(quantile: ScoreQuantile) -> None:
    """Say where scores are too few for a guarantee or, with estimated weights, to come near the level."""
    if quantile.scores.effective_size is not None:
        _warn_of_few_effective(quantile, quantile.scores.effective_size)
        return
    lines, table = set(quantile.seen), quantile.table
    small = set() if table is None else {table.shared}
    own = "" if table is None else " of a category"
    own = ", one for each group," if quantile.scores.groups is not None else own
    side = " on one side of the prediction" if quantile.tails.is_by_sign else ""
    most = "" if quantile.scores.folds is None else " (with cv they guarantee 2 p - 1 at most)"
    for of, some in ((own, sorted(lines - small)), (" of the smaller categories", sorted(lines & small))):
        few = [line for line in some if not quantile.weakest(line).is_enough]
        if few:
            several = f" (the smallest of {len(few)} such)" if len(few) > 1 else ""
            least = min(few, key=lambda line: quantile.weakest(line).m)
            weak = replace(quantile.weakest(least), level=quantile.guaranteed(least))
            warn_of_coverage(f"{too_few(weak, quantile.level, of + several + side)}{most}.")


def _warn_of_few_effective(quantile: ScoreQuantile, size: float) -> None:
    """Say that rows with estimated weights are effectively too few to come near the level."""
    enough = MIN_ESTIMATED_RATIO * scores_needed(quantile.level, n_cuts=quantile.tails.n_cuts)
    if size < enough:
        warn_of_coverage(
            f"by their estimated weights the calibration rows are about as good as {size:.3g} rows like the new ones: "
            f"{percent(quantile.level, 6)} intervals may cover far less, and nothing is guaranteed. As a rule of thumb "
            f"take {enough} or more: calibrate on more rows, or on rows more like the new ones."
        )
