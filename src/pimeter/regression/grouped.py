"""`GroupedWidth`: scores of their own for each category (Mondrian, or group-conditional, prediction)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import Interval

from pimeter.conformal.categories import category_labels, group_labels
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, FeatureTable


class GroupedWidth(Width):
    """Scores of its own for each category (Mondrian groups): each is covered, not only all of them together.

    Categories with too few rows for the estimator's confidence level and categories never seen have the scores of all
    rows of such categories, never those of all rows: a category that is rare is often also one that is hard. These are
    covered together, and nothing is guaranteed to one of them by itself, nor to those never seen by themselves: the
    rarest are the likeliest not to be seen, and if they are the hardest, they are covered less (`categories_` says so).
    Who is small stays so at other levels, where a category of its own may have too few rows for a higher one.

    Parameters
    ----------
    by : column, callable, list of these or None, default=None
        Where the categories are: a column of X (a name, or a position in an array), a function of X that returns one
        label per row, or None if they are passed as `by` to each method. A **list** names several groupings, whose
        groups overlap: a row belongs to one group of each, and each group is covered, though not each combination.
        Passed to a method, groups that overlap are an array of shape (n, groups) of truth values, or of labels with a
        column for each grouping. Labels that are True or False make one group, of the rows where they are True.
    min_size : int or None, default=None
        Rows from which on a category has scores of its own. None: as many as it takes to guarantee the confidence
        level, such as 19 for 95 %. Groups that overlap are never pooled.
    randomized : bool, default=False
        For groups that overlap: whether each interval is drawn, from the estimator's `random_state` and the place of
        the row, so that groups are covered p exactly instead of p or a little more.

    Notes
    -----
    Groups that overlap are covered by quantile regression of the scores over indicators of the groups, the new row's
    own score among them (Gibbs, Cherian and Candès 2023): each group at level p or more, on average over calibration
    sets and new rows of the group. Where no two groups have a row in common this is the same as categories. A group
    with too few rows by itself has intervals as far as the largest score of its groups; `categories_` says what is
    guaranteed to each. Each combination of groups has a margin of its own, so that `margin_` is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import GroupedWidth, IntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(1000, 1))
    >>> y = rng.normal(scale=np.where(X[:, 0] == 1, 10.0, 1.0))
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width=GroupedWidth(by=0)).calibrate(X, y)
    >>> model.predict_interval([[0], [1]]).round(1)
    array([[ -2. ,   2. ],
           [-18.8,  18.8]])

    Two groupings that overlap:

    >>> X = np.column_stack([rng.integers(2, size=1000), rng.integers(3, size=1000)])
    >>> y = rng.normal(scale=1.0 + 2.0 * X[:, 0] + X[:, 1])
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width=GroupedWidth(by=[0, 1])).calibrate(X, y)
    >>> [(line.label, line.rows, line.level) for line in model.categories_][:3]
    [('0 = 0', 534, 0.95), ('0 = 1', 466, 0.95), ('1 = 0', 336, 0.95)]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "by": [Hashable, callable, list, None],
        "min_size": [Interval(Integral, 1, None, closed="left"), None],
        "randomized": ["boolean"],
    }

    learns = False

    def __init__(
        self,
        by: Hashable | Callable[[Any], ArrayLike] | list[Any] | None = None,
        min_size: int | None = None,
        randomized: bool = False,
    ) -> None:
        self.by = by
        self.min_size = min_size
        self.randomized = randomized

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:  # noqa: ARG002
        """No scale and no band: what differs between categories are their scores."""
        return IntervalShape()

    def labels(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any]:
        """Category of each row, or several where groups overlap: one for each grouping."""
        overlapping = group_labels(X, by, self.by)
        if overlapping is not None:
            return overlapping
        labels = category_labels(X, by, self.by, "GroupedWidth")
        if labels is None:
            msg = (
                'by is missing: width="grouped" needs a category per row. Pass by=..., or set GroupedWidth(by=...). In '
                "cross_validate and searches by=... comes to a scorer if sklearn.set_config(enable_metadata_routing="
                "True) is called, and then scorer.set_score_request(by=True)."
            )
            raise ValueError(msg)
        return labels

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category has scores of its own."""
        return self.min_size

    @property
    def grouping_names(self) -> tuple[str, ...] | None:
        """What each of several groupings is called; None: they have no names."""
        if not isinstance(self.by, list):
            return None
        return tuple(getattr(one, "__name__", "group") if callable(one) else str(one) for one in self.by)

    @property
    def is_randomized(self) -> bool:
        """Whether intervals for groups that overlap are drawn at random."""
        return self.randomized
