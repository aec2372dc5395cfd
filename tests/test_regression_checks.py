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


def estimators():
    learned = [ScaledWidth(Ridge()), QuantileWidth(QuantileRegressor())]
    grouped = GroupedWidth(by=Halves())
    kernel = LocalWidth(nearness="kernel")
    for width in ("constant", "scaled", grouped, "local", kernel, "quantile", *learned, "auto", AutoWidth(learned)):
        for cv in (None, 3):
            yield IntervalRegressor(Ridge(), width=width, cv=cv, random_state=0)
    for cv in (None, 3):
        yield IntervalRegressor(Ridge(), joint=True, tails="equal", cv=cv, random_state=0)
    for width in (ScaledWidth("prediction", power=1), ScaledWidth("neighbours")):
        yield IntervalRegressor(Ridge(), width=width, tails="equal", guarantee=False)


# The checks use few rows; that a promise cannot be kept then is not what they look for.
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@parametrize_with_checks(list(estimators()))
def test_scikit_learn_checks(estimator, check):
    check(estimator)
