"""The black box of Table 2: one blend of boosted trees, randomised trees and a Gaussian process for all datasets.

Trees follow jumps and interactions, a Gaussian process follows what is smooth. How much each of them counts is learned
from a quarter of the training rows: the inverse of its mean squared error there, to a power that leaves the worse ones
little. In the end all rows train the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

if TYPE_CHECKING:
    from experiments.data import Array

ROWS_FOR_SMOOTHNESS, ROWS_FOR_PROCESS = (
    300,
    4000,
)  # rows that tell how smooth the target is, and rows that the process learns from, at most
N_STEPS = 30  # of the search for the most likely process
LEAST_NOISE = 1e-7  # variance, beside that of the process: what rounding leaves solvable
VAGUE = 3.0  # standard deviation of the prior of each logarithm that is searched for
N_TREES = 60
HELD_OUT, POWER = 0.25, 3.0


class Smooth(RegressorMixin, BaseEstimator):
    """A Gaussian process with a length for each feature, the most likely one on some rows; features of unit scale.

    `logs` are what another one found to be most likely, if that is not to be searched for again.
    """

    def __init__(self, random_state: int = 0, logs: Array | None = None) -> None:
        self.random_state = random_state
        self.logs = logs

    def fit(self, X: Array, y: Array) -> Self:
        order = np.random.default_rng(self.random_state).permutation(len(y))
        self.mean_, self.unit_ = y.mean(), y.std() or 1.0
        target = (y - self.mean_) / self.unit_
        some, rows = order[:ROWS_FOR_SMOOTHNESS], order[:ROWS_FOR_PROCESS]
        self.logs_ = _most_likely(X[some], target[some]) if self.logs is None else self.logs
        self.sharpness_, (self.power_, noise) = np.exp(self.logs_[:-2] / 2.0), np.exp(self.logs_[-2:])
        self.known_ = X[rows] * self.sharpness_
        covariance = self._covariance(self.known_)
        covariance.flat[:: len(rows) + 1] += noise + LEAST_NOISE * self.power_
        lower = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        self.weights_ = cho_solve((lower, True), target[rows])
        return self

    def predict(self, X: Array) -> Array:
        return np.asarray(self.mean_ + self.unit_ * (self._covariance(X * self.sharpness_) @ self.weights_))

    def _covariance(self, scaled: Array) -> Array:
        return np.asarray(self.power_ * np.exp(-0.5 * cdist(scaled, self.known_, "sqeuclidean")))


def _most_likely(X: Array, y: Array) -> Array:
    """Logarithms of the inverse squared length of each feature, of the variance of the process and of the noise."""
    n, d = X.shape
    apart = np.ascontiguousarray(np.moveaxis((X[:, None] - X) ** 2, 2, 0))
    start = np.r_[np.full(d, -np.log(d)), 1.0, -4.0]

    def unlikeliness(logs: Array) -> tuple[float, Array]:
        """Minus the logarithm of likelihood and prior, with its gradient."""
        sharpness, power, noise = np.exp(logs[:d]), np.exp(logs[d]), np.exp(logs[d + 1])
        smooth = power * np.exp(-0.5 * np.tensordot(sharpness, apart, 1))
        try:
            lower = cholesky(smooth + (noise + LEAST_NOISE * power) * np.eye(n), lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros(d + 2)
        weights = cho_solve((lower, True), y)
        pull = np.outer(weights, weights) - cho_solve((lower, True), np.eye(n))
        gradient = np.r_[
            sharpness * np.tensordot(apart, pull * smooth, 2) / 4.0,
            -(pull * smooth).sum() / 2.0 - LEAST_NOISE * power * np.trace(pull) / 2.0,
            -noise * np.trace(pull) / 2.0,
        ]
        prior = (logs - start) / VAGUE
        value = y @ weights / 2.0 + np.log(np.diag(lower)).sum() + prior @ prior / 2.0
        return float(value), np.asarray(gradient + prior / VAGUE)

    bounds = [(-16.0, 6.0)] * d + [(-3.0, 8.0), (-16.0, 1.0)]
    found = minimize(unlikeliness, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": N_STEPS})
    return np.asarray(found.x)


class Blend(RegressorMixin, BaseEstimator):
    """The mean of the members, each with a weight that follows its error on rows that it has not seen."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> Self:
        self.n_features_in_ = X.shape[1]
        rows, held_out = train_test_split(np.arange(len(y)), test_size=HELD_OUT, random_state=self.random_state)
        tried = [member.fit(X[rows], y[rows]) for member in self._members()]
        errors = np.array([np.mean((y[held_out] - member.predict(X[held_out])) ** 2) for member in tried])
        weights = (errors.min() / np.maximum(errors, np.finfo(float).tiny)) ** POWER if errors.min() else errors == 0.0
        self.weights_ = weights / weights.sum()
        self.members_ = [member.fit(X, y) for member in self._members(tried[-1][-1].logs_)]
        return self

    def predict(self, X: Array) -> Array:
        return np.asarray(np.column_stack([member.predict(X) for member in self.members_]) @ self.weights_)

    def _members(self, logs: Array | None = None) -> list[Any]:
        return [
            boosted(self.random_state),
            ExtraTreesRegressor(N_TREES, random_state=self.random_state),
            make_pipeline(StandardScaler(), Smooth(self.random_state, logs)),
        ]


def boosted(random_state: int, **options: Any) -> Any:
    """Boosted trees that see details: small leaves, many of them in all."""
    from lightgbm import LGBMRegressor

    plain = {
        "n_estimators": 600,
        "learning_rate": 0.06,
        "num_leaves": 10,
        "min_child_samples": 3,
        "subsample": 0.8,
        "subsample_freq": 1,
        "colsample_bytree": 0.85,
        "n_jobs": 1,
        "verbose": -1,
        "random_state": random_state,
    }
    return LGBMRegressor(**plain | options)
