"""Widths of tables with many columns or many categories: what is learned does not grow with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors

from pimeter import IntervalRegressor, coverage_score
from pimeter.regression.features import Features

pd = pytest.importorskip("pandas")


def zero(X):
    return np.zeros(X.shape[0])


@pytest.mark.parametrize("width", ["scaled", "auto"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_five_thousand_columns(width, is_sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5000))
    if is_sparse:
        X = csr_matrix(np.where(rng.uniform(size=X.shape) < 0.01, X, 0.0))
    y = rng.normal(size=300)
    frozen = FrozenEstimator(DummyRegressor().fit(X, y))
    model = IntervalRegressor(frozen, confidence_level=0.8, width=width, random_state=0).calibrate(X, y)
    assert coverage_score(y, model.predict_interval(X)) > 0.7


def test_distances_survive_the_projection():
    # Rows come in pairs of near twins, and the nearest row is the twin before and after.
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(100, 1000)), 2, axis=0) + 0.3 * rng.normal(size=(200, 1000))
    nothing = np.zeros((200, 1))
    table = Features(for_distance=True, max_columns=200).fit(X, nothing).transform(X, nothing)
    assert table.shape == (200, 100)
    nearest = NearestNeighbors(n_neighbors=1).fit(table).kneighbors(return_distance=False).ravel()
    assert np.mean(nearest == np.arange(200) ^ 1) > 0.99


def test_indicators_of_many_categories_are_bounded():
    rng = np.random.default_rng(0)
    columns = {f"c{j}": rng.integers(0, 30, size=60).astype(str) for j in range(500)}
    X, nothing = pd.DataFrame(columns), np.zeros((60, 1))
    assert Features(for_distance=True).fit(X, nothing).transform(X, nothing).shape[1] <= 2000 + 500 + 1


@pytest.mark.parametrize(
    ("width", "n"), [("scaled", 20_000), pytest.param("auto", 20_000, marks=pytest.mark.slow), ("auto", 2000)]
)
def test_ten_thousand_levels(width, n):
    rng = np.random.default_rng(0)
    levels, x = rng.integers(0, 10_000, size=n), rng.normal(size=n)
    X = pd.DataFrame({"id": np.char.add("level ", levels.astype(str)), "x": x})
    y = np.exp(x / 2) * rng.normal(size=n)
    model = IntervalRegressor(zero, confidence_level=0.8, width=width, random_state=0).calibrate(X, y)
    new = pd.DataFrame({"id": ["never seen"] * 2, "x": [-1.5, 1.5]})
    narrow, wide = np.diff(model.predict_interval(new), axis=1).ravel()
    assert narrow < 0.8 * wide
