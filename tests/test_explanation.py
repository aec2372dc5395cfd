"""Why is this interval wide? The planted cause comes first, and contributions add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from pimeter import GroupedWidth, IntervalRegressor


def zero(X):
    return np.zeros(len(X))


def rows(seed=0, n=1000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 5))
    return X, rng.normal(scale=0.3 + 2.0 * X[:, 3] ** 2)


class TestExplain:
    def test_the_planted_cause_comes_first(self):
        hits = []
        for seed in range(10):
            X, y = rows(seed)
            model = IntervalRegressor(zero, confidence_level=0.9, width="scaled", random_state=seed).calibrate(X, y)
            found = model.explain(np.array([[0.5, 0.2, 0.8, 0.95, 0.4]]))
            hits.append(found.contributions[0].feature == "column 3")
            assert found.contributions[0].width > 0.0
        assert sum(hits) >= 9

    def test_contributions_add_up(self):
        X, y = rows()
        model = IntervalRegressor(LinearRegression(), width="scaled", random_state=0).fit(X, y)
        found = model.explain(X[:1])
        assert_allclose(found.width - found.typical_width, sum(one.width for one in found.contributions))
        lower, upper = model.predict_interval(X[:1])[0]
        assert_allclose(found.width, upper - lower)
        assert len(str(found).splitlines()) == 7

    def test_hard_rows_are_calibration_rows_like_it(self):
        X, y = rows()
        model = IntervalRegressor(zero, width="scaled", random_state=0).calibrate(X, y)
        found = model.explain(np.array([[0.5, 0.2, 0.8, 0.95, 0.4]]))
        places = [one.row for one in found.hard_rows]
        assert_allclose([one.residual for one in found.hard_rows], np.abs(y[places]))
        assert (X[places, 3] > 0.7).all()

    @pytest.mark.parametrize("library", [pd, pl])
    def test_frames_with_categories(self, library):
        X, y = rows()
        shop = np.random.default_rng(1).choice(list("abc"), len(y))
        frame = library.DataFrame({"x": X[:, 0], "shop": shop})
        y = np.random.default_rng(2).normal(scale=np.where(shop == "b", 4.0, 1.0))
        model = IntervalRegressor(zero, width=GroupedWidth(by="shop")).calibrate(frame, y)
        found = model.explain(frame[int(np.flatnonzero(shop == "b")[0]) :][:1])
        assert (found.contributions[0].feature, found.contributions[0].value) == ("shop", "b")
        assert_allclose(found.contributions[1].width, 0.0, atol=0.2 * found.width)

    def test_bad_input_is_refused(self):
        X, y = rows()
        with pytest.raises(ValueError, match=r"takes one row .* got 2 rows"):
            IntervalRegressor(zero).calibrate(X, y).explain(X[:2])
        with pytest.raises(ValueError, match="the interval is infinite"):
            IntervalRegressor(zero, tails="upper").calibrate(X, y).explain(X[:1])
