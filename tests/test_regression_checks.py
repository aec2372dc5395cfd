"""scikit-learn's own checks, and its ways of using an estimator: clone, refit, search, pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from pimeter import AutoWidth, GroupedWidth, IntervalRegressor, LocalWidth, QuantileWidth, ScaledWidth


class Halves:
    """Two categories, whatever X is; a name for the test that is the same in each process."""

    def __call__(self, X):
        first = X[:, [0]].toarray() if hasattr(X, "toarray") else np.asarray(X).reshape(len(X), -1)[:, :1].astype(float)
        return first[:, 0] > np.median(first)

    def __repr__(self):
        return "halves"


def with_and_without_folds(*widths):
    return [IntervalRegressor(Ridge(), width=width, cv=cv, random_state=0) for width in widths for cv in (None, 3)]


LEARNED = [ScaledWidth(Ridge()), QuantileWidth(QuantileRegressor())]
OTHERS = [
    *(IntervalRegressor(Ridge(), joint=True, tails="equal", cv=cv, random_state=0) for cv in (None, 3)),
    *(
        IntervalRegressor(Ridge(), width=width, tails="equal", guarantee="approximate")
        for width in (ScaledWidth("prediction", power=1), ScaledWidth("neighbours"))
    ),
]


# The checks use few rows; that a guarantee cannot be kept then is not what they look for.
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@parametrize_with_checks(
    [
        *with_and_without_folds("constant", GroupedWidth(by=Halves()), LocalWidth(nearness="kernel")),
        *with_and_without_folds(*LEARNED, AutoWidth(LEARNED)),
        *OTHERS,
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow  # the forests that these widths learn by themselves
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@parametrize_with_checks(with_and_without_folds("scaled", "local", "quantile", "auto"))
def test_scikit_learn_checks_of_learned_widths(estimator, check):
    check(estimator)
