"""scikit-learn's own checks on the estimators for classification."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from pimeter import SetClassifier

ESTIMATORS = [
    SetClassifier(LogisticRegression(), random_state=0),
    SetClassifier(LogisticRegression(), conformity_score="aps", randomized=True, by="class", random_state=0),
    SetClassifier(LogisticRegression(), conformity_score="raps", cv=3, random_state=0),
]


# The checks use few rows; that sets are full then is not what they look for.
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
