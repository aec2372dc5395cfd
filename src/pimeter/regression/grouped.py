"""`GroupedWidth`: scores of their own for each category (Mondrian, or group-conditional, prediction)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import Interval

from pimeter.conformal.categories import category_labels
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]


class GroupedWidth(Width):
    """Scores of its own for each category (Mondrian groups): each is covered, not only all of them together.

    Categories with too few rows for the estimator's confidence level and categories never seen have the scores of all
    rows of such categories, never those of all rows: a category that is rare is often also one that is hard. These are
    covered together, and nothing is guaranteed to one of them by itself, nor to those never seen by themselves: the
    rarest are the likeliest not to be seen, and if they are the hardest, they are covered less (`categories_` says so).
    Who is small stays so at other levels, where a category of its own may have too few rows for a higher one.

    Parameters
    ----------
    by : column, callable or None, default=None
        Where the categories are: a column of X (a name, or a position in an array), a function of X that returns one
        label per row, or None if they are passed as `by` to each method.
    min_size : int or None, default=None
        Rows from which on a category has scores of its own. None: as many as it takes to guarantee the confidence
        level, such as 19 for 95 %.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "by": [Hashable, callable, None],
        "min_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    learns = False

    def __init__(self, by: Hashable | Callable[[Any], ArrayLike] | None = None, min_size: int | None = None) -> None:
        self.by = by
        self.min_size = min_size

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:  # noqa: ARG002
        """No scale and no band: what differs between categories are their scores."""
        return IntervalShape()

    def labels(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any]:
        """Category of each row."""
        labels = category_labels(X, by, self.by, "GroupedWidth")
        if labels is None:
            msg = 'by is missing: width="grouped" needs a category per row. Pass by=..., or set GroupedWidth(by=...).'
            raise ValueError(msg)
        return labels

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category has scores of its own."""
        return self.min_size
