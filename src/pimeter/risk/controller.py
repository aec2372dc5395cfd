"""`RiskController`: a threshold that keeps a precision, a rate or a loss where it was asked to be."""

from __future__ import annotations

import math
from collections.abc import Hashable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.constraints import Level
from pimeter.coverage import warn_of_coverage
from pimeter.frames import refuse_other_orders
from pimeter.risk.choices import Choice, apart, loss_choice, rate_choice
from pimeter.risk.inputs import (
    beyond,
    class_score,
    one_score,
    own_losses,
    positives,
    rate_risk,
    shortfalls,
)
from pimeter.risk.losses import OwnLoss, order, set_size
from pimeter.risk.rates import RATES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Flags

TRIAGE = ("npv", "precision")
ABSTAINED = -1
LOSSES = ("shortfall", "set_size")
RiskMetric = str | tuple[str, str] | OwnLoss


class RiskController(BaseEstimator):
    """A threshold with a guarantee: precision, recall, a false-positive rate or a loss stays where it was asked to be.

    Give labels and scores of rows that the model was not trained on. Of all thresholds whose risk can be guaranteed the
    most useful one is chosen: with a guaranteed precision the one that declares most rows positive, with a guaranteed
    recall the one that declares fewest. Where nothing can be guaranteed, `threshold_` is the one that is safe whatever
    the rows (nothing is declared, or everything), and `guarantee_reason_` says why and how many rows would do.

    Parameters
    ----------
    metric : str, pair of str or callable
        What is guaranteed.

        ``"precision"``, ``"fdr"``
            Positives, or negatives, among rows declared positive (score above the threshold).
        ``"npv"``, ``"for"``
            Negatives, or positives, among rows declared negative (score below the threshold).
        ``"recall"``, ``"fnr"``
            Positives that are declared positive, or that are missed.
        ``"fpr"``, ``"specificity"``
            Negatives that are declared positive, or that are not.
        ``("npv", "precision")``
            Triage with two thresholds: negative below the one, positive above the other, no answer between them.
        ``"exceedance"``
            Targets above `limit` among rows declared safe (score below the threshold), such as predictions.
        ``"shortfall"``
            Mean of what an order lacks, ``max(y - order, 0)``, where the order is a prediction plus a margin, the
            `threshold_` here, both cut at `y_min` and `y_max`.
        ``"set_size"``
            Mean number of classes whose score is above the threshold; scores have a column for each class.
        a function ``f(y_true, score, threshold)``
            One loss for each row between 0 and `bound`; truth values are judged more sharply than numbers.
    level : float or pair of float
        The least precision, npv, recall or specificity, or the largest rate, shortfall (in the unit of y), mean size or
        mean loss.
    confidence_level : float, default=0.9
        How often, over sets of rows, the threshold keeps what it guarantees; of two thresholds both at once.
    guarantee : {"training-conditional", "marginal"}, default="training-conditional"
        "training-conditional": the metric of all rows like these, at this very threshold, with the confidence level
        (learn then test). "marginal": on average over sets of rows, which needs fewer rows and knows no confidence
        level (conformal risk control); for recall, fnr, fpr, specificity, shortfall, set_size, and functions that never
        fall along `thresholds`.
    pos_label : object, default=1
        The class that scores are about.
    limit : float, optional
        For "exceedance": targets above it are not safe.
    y_min, y_max : float, default=0 and None
        For "shortfall": the least and the largest possible target.
    bound : float, optional
        For a function: its largest possible value.
    thresholds : array-like, optional
        For a function: the thresholds to try, from the safest to the riskiest, chosen without a look at these rows.

    Attributes
    ----------
    threshold_ : float or ndarray of shape (2,)
        The threshold; rows above it are declared positive, or those below it negative or safe. Of triage both.
    guaranteed_level_ : float or ndarray of shape (2,)
        The level, or NaN where it cannot be guaranteed.
    guarantee_reason_ : str
        Why it is NaN; empty where it is not.
    answered_ : float
        Fraction of these rows that are declared anything; NaN for all but rates.
    estimate_ : float or ndarray of shape (2,)
        The metric of these rows at the threshold, which was chosen by them; NaN where nothing is declared.
    rows_needed_ : float
        About how many rows would do if they are like these; infinite if none would. NaN where it is guaranteed.
    n_rows_ : int
        Rows that were looked at.

    See Also
    --------
    SetClassifier : Sets of classes that hold the true one as often as asked for.
    classification_uncertainty : Intervals of metrics at a threshold that was chosen before.

    Notes
    -----
    Rows have to be independent draws from one distribution, also those to come. Thresholds are tested from the safest
    to the riskiest, by exact binomial p-values for rates, and each at the whole level: those for precision (fdr, npv,
    for, exceedance) begin where enough rows are declared to accept any at all, which depends on scores alone. That is
    proven for scores without ties, and simulated with them.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import RiskController
    >>> rng = np.random.default_rng(0)
    >>> score = rng.beta(0.3, 0.3, size=1000)
    >>> y = rng.uniform(size=1000) < score
    >>> control = RiskController("precision", 0.95).fit(y, score)
    >>> print(f"{control.answered_:.0%} of rows have a score above {control.threshold_:.3f}")
    32% of rows have a score above 0.872
    >>> control.predict([0.3, 0.97])
    array([0, 1])

    Triage: positive above one threshold, negative below the other, and no answer for the rows between them.

    >>> triage = RiskController(("npv", "precision"), 0.9).fit(y, score)
    >>> triage.threshold_.round(3), round(triage.answered_, 3)
    (array([0.342, 0.751]), 0.83)
    >>> triage.predict([0.02, 0.4, 0.97])
    array([ 0, -1,  1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions({*RATES, *LOSSES}), tuple, list, callable],
        "level": [Interval(Real, 0, None, closed="neither"), tuple, list],
        "confidence_level": [Level()],
        "guarantee": [StrOptions({"training-conditional", "marginal"})],
        "pos_label": [Hashable],
        "limit": [Real, None],
        "y_min": [Real],
        "y_max": [Real, None],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "thresholds": ["array-like", None],
    }

    def __init__(
        self,
        metric: RiskMetric,
        level: float | tuple[float, float],
        *,
        confidence_level: float = 0.9,
        guarantee: Literal["training-conditional", "marginal"] = "training-conditional",
        pos_label: Hashable = 1,
        limit: float | None = None,
        y_min: float = 0.0,
        y_max: float | None = None,
        bound: float | None = None,
        thresholds: ArrayLike | None = None,
    ) -> None:
        self.metric = metric
        self.level = level
        self.confidence_level = confidence_level
        self.guarantee = guarantee
        self.pos_label = pos_label
        self.limit = limit
        self.y_min = y_min
        self.y_max = y_max
        self.bound = bound
        self.thresholds = thresholds

    def fit(self, y_true: ArrayLike | None, score: ArrayLike) -> Self:
        """Choose the threshold.

        Parameters
        ----------
        y_true : array-like of shape (n,) or None
            Labels of two classes; targets for "exceedance" and "shortfall"; None for "set_size".
        score : array-like of shape (n,) or (n, n_classes)
            Scores of the positive class on any scale, predictions, or one score for each class for "set_size".

        Returns
        -------
        RiskController
            Itself.
        """
        self._validate_params()
        refuse_other_orders({"y_true": y_true, "score": score})
        metric, delta = self.metric, None if self.guarantee == "marginal" else 1.0 - self.confidence_level
        if isinstance(metric, tuple | list):
            return self._fit_triage(y_true, score)
        if isinstance(metric, str) and metric in RATES:
            risk, scores = rate_risk(metric, self.level, self.guarantee), one_score(score)
            choice = rate_choice(metric, RATES[metric], risk, self._positives(y_true, len(scores)), scores, delta)
            self._learn([choice], [self.level], len(scores))
            self.answered_ = float(RATES[metric].declares(scores, choice.threshold).mean())
            return self
        if metric == "set_size":
            losses = set_size(class_score(score))
        elif metric == "shortfall":
            losses = shortfalls(y_true, one_score(score), float(self.y_min), self.y_max)
        else:
            assert callable(metric)
            losses = own_losses(metric, y_true, score, self.bound, self.thresholds, self.guarantee)
        name = metric.replace("_", " ") if isinstance(metric, str) else "loss"
        self._learn([loss_choice(name, losses, self.level, delta)], [self.level], len(losses.at(0)))
        self.answered_ = math.nan
        return self

    def predict(self, score: ArrayLike) -> NDArray[Any]:
        """What the threshold says of new rows.

        Parameters
        ----------
        score : array-like of shape (n,) or (n, n_classes)
            Scores or predictions, as given to `fit`.

        Returns
        -------
        ndarray
            1 for rows that are declared positive (with "npv" and "for" negative, with "exceedance" safe) and 0 for all
            others; of triage 1 for positive, 0 for negative, -1 for no answer. For "shortfall" the orders, for
            "set_size" whether each class is in the set, (n, n_classes). Functions have no decision of their own.
        """
        check_is_fitted(self)
        if isinstance(self.metric, tuple | list):
            scores, (lower, upper) = one_score(score), self.threshold_
            return np.where(scores > upper, 1, np.where(scores < lower, 0, ABSTAINED))
        if not isinstance(self.metric, str):
            msg = "A function of your own says what a threshold costs, not what it decides; use threshold_ itself."
            raise TypeError(msg)
        if self.metric == "set_size":
            return np.asarray(class_score(score) > self.threshold_)
        if self.metric == "shortfall":
            assert self.y_max is not None
            return order(one_score(score), self.threshold_, float(self.y_min), float(self.y_max))
        return RATES[self.metric].declares(one_score(score), self.threshold_).astype(np.int64)

    def _positives(self, y_true: ArrayLike | None, n: int) -> Flags:
        """Rows of the positive class, or targets above the limit."""
        return beyond(y_true, n, self.limit) if self.metric == "exceedance" else positives(y_true, n, self.pos_label)

    def _fit_triage(self, y_true: ArrayLike | None, score: ArrayLike) -> Self:
        """Two thresholds, each with half of what may fail."""
        names = list(self.metric) if isinstance(self.metric, tuple | list) else []
        levels: list[Any] = list(self.level) if isinstance(self.level, tuple | list) else [self.level, self.level]
        if sorted(map(str, names)) != sorted(TRIAGE) or len(levels) != 2:
            msg = (
                'Two metrics must be "npv" and "precision", the two sides of a triage, with one level or two; got '
                f"metric={self.metric!r} and level={self.level!r}."
            )
            raise ValueError(msg)
        if names[0] == "precision":
            levels.reverse()
        scores = one_score(score)
        is_positive = self._positives(y_true, len(scores))
        delta = (1.0 - self.confidence_level) / 2.0

        def side(name: str, level: object) -> Choice:
            risk = rate_risk(name, level, self.guarantee)
            return rate_choice(name, RATES[name], risk, is_positive, scores, delta)

        low, high = apart(side("npv", levels[0]), side("precision", levels[1]), scores)
        self._learn([low, high], levels, len(scores))
        is_low, is_high = scores < low.threshold, scores > high.threshold
        self.answered_ = float((is_low | is_high).mean())
        right = (~is_positive[is_low], is_positive[is_high])
        self.estimate_ = np.array([float(one.mean()) if one.size else math.nan for one in right])
        return self

    def _learn(self, choices: list[Choice], levels: list[Any], n: int) -> None:
        """Set what is known of the thresholds, and warn where nothing can be guaranteed."""

        def one_or_both(values: list[float]) -> Any:
            return values[0] if len(values) == 1 else np.array(values)

        self.threshold_ = one_or_both([choice.threshold for choice in choices])
        known = [math.nan if one.reason else float(level) for one, level in zip(choices, levels, strict=True)]
        self.guaranteed_level_ = one_or_both(known)
        self.guarantee_reason_ = " ".join(choice.reason for choice in choices if choice.reason)
        self.estimate_ = one_or_both([choice.estimate for choice in choices])
        self.rows_needed_ = max((one.rows_needed for one in choices if one.reason), default=math.nan)
        self.n_rows_ = n
        if self.guarantee_reason_:
            warn_of_coverage(self.guarantee_reason_)
