"""The whole predictive distribution, and rows that are likelier where intervals are needed than in calibration."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from pimeter import (
    CoverageWarning,
    GroupedWidth,
    IntervalRegressor,
    LocalWidth,
    ScaledWidth,
    coverage_score,
    shift_weights,
)
from pimeter.scorers import crps_scorer


def zero(X):
    return np.zeros(len(X))


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, X @ [1.0, 2.0] + rng.exponential(size=n) * (0.2 + X[:, 0])


class Rounded(LinearRegression):
    """A line that predicts in one precision."""

    def __init__(self, kind=np.float64):
        super().__init__()
        self.kind = kind

    def predict(self, X):
        return super().predict(X).astype(self.kind)


X, Y = data(400)
LEVELS = [0.025, 0.1, 0.5, 0.9, 0.975]
SETTINGS = [
    {"width": "constant"},
    {"width": "scaled"},
    {"width": GroupedWidth(by=lambda X: X[:, 0] > 0.5)},
    {"width": "local"},
    {"width": "quantile"},
    {"width": "constant", "cv": 4},
    {"width": "scaled", "cv": 4},
    {"width": LocalWidth(nearness="kernel"), "cv": 4, "tails": "equal"},
    {"width": "constant", "guarantee": "approximate"},
    {"width": "constant", "guarantee": "approximate", "cv": 4},
    {"width": "constant", "guarantee": "training-conditional"},
]


class TestQuantile:
    @pytest.mark.parametrize("params", SETTINGS)
    def test_never_crosses_and_covers_its_level(self, params):
        model = IntervalRegressor(LinearRegression(), random_state=0, **params).fit(X, Y)
        levels = np.linspace(0.05, 0.95, 37)
        found = model.predict_quantile(X, levels)
        assert found.shape == (400, 37)
        assert (np.diff(found, axis=1) >= 0.0).all()
        new, y = data(2000, seed=1)
        below = (y[:, None] <= model.predict_quantile(new, levels)).mean(axis=0)
        # How far fractions of so many errors stray from their levels in 99 of 100 samples, or on purpose for the set.
        slack = 1.63 / model.n_calibration_**0.5 * (2.0 if params.get("guarantee") == "training-conditional" else 1.0)
        assert np.abs(below - levels).max() < slack

    @pytest.mark.parametrize("cv", [None, 4])
    @pytest.mark.parametrize("guarantee", ["marginal", "approximate"])
    @pytest.mark.parametrize("width", ["constant", "scaled", GroupedWidth(by=lambda X: X[:, 0] > 0.5)])
    def test_is_the_end_of_an_interval(self, width, guarantee, cv):
        params = {"width": width, "guarantee": guarantee, "cv": cv, "random_state": 0}
        model = IntervalRegressor(LinearRegression(), **params).fit(X, Y)

        def bound(tails, level):
            other = IntervalRegressor(LinearRegression(), tails=tails, confidence_level=level, **params)
            return other.fit(X, Y).predict_interval(X)

        one_float = 1.2 * np.finfo(float).eps
        assert_allclose(model.predict_quantile(X, 0.9), bound("upper", 0.9)[:, 1], rtol=one_float)
        assert_allclose(model.predict_quantile(X, 0.1), bound("lower", 0.9)[:, 0])
        assert_allclose(model.predict_quantile(X, [0.1, 0.9]), bound("equal", 0.8))

    def test_level_alone_and_levels_give_the_same(self):
        model = IntervalRegressor(zero).calibrate(X, Y)
        assert_array_equal(model.predict_quantile(X, LEVELS)[:, 3], model.predict_quantile(X, 0.9))

    def test_outputs_and_limits(self):
        both = np.column_stack([Y, -Y])
        model = IntervalRegressor(lambda X: X[:, [0, 0]], y_min=-7.0, y_max=7.0).calibrate(0 * X, both)
        found = model.predict_quantile(np.linspace(-9.0, 9.0, 800).reshape(400, 2), LEVELS)
        assert found.shape == (400, 2, 5)
        assert found.min() == -7.0
        assert found.max() == 7.0

    def test_categories_keep_their_neuron_at_all_levels(self):
        rng = np.random.default_rng(0)
        labels = np.repeat(["a", *(f"s{i}" for i in range(60)), "c"], [12, *[5] * 60, 100])
        magnitudes = np.where(labels == "a", 10.0, np.where(labels == "c", 1.0, 0.1))
        model = IntervalRegressor(zero, width="grouped", confidence_level=0.9)
        model.calibrate(np.zeros((len(labels), 1)), magnitudes * rng.normal(size=len(labels)), by=labels)
        with pytest.warns(UserWarning, match="scores of a category can guarantee"):
            found = model.predict_quantile(np.zeros((3, 1)), [0.5, 0.8, 0.9, 0.95, 0.99], by=["a", "c", "s1"])
        assert (np.diff(found, axis=1) >= 0.0).all()
        assert model.predict_cdf(np.zeros((1, 1)), found[:1, 2], by=["a"])[0] == pytest.approx(0.9, abs=0.07)

    def test_joint_coverage_does_not_change_the_outputs_own(self):
        both = np.column_stack([Y, -Y])
        two = lambda X: np.zeros((len(X), 2))  # noqa: E731
        model = IntervalRegressor(two, joint=True, random_state=0).calibrate(X, both)
        assert_allclose(model.predict_quantile(X, 0.9)[0, 0], np.quantile(Y, 0.9), rtol=0.15)

    def test_feeds_the_scorer(self):
        model = IntervalRegressor(LinearRegression(), random_state=0).fit(X, Y)
        assert -0.6 < crps_scorer(model, *data(500, seed=2)) < 0.0

    @pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan, [], [[0.5]], "half"])
    def test_refuses_other_levels(self, q):
        model = IntervalRegressor(zero).calibrate(X, Y)
        with pytest.raises(ValueError, match=r"q must (be a level|hold real numbers|lie between 0 and 1)"):
            model.predict_quantile(X, q)


class TestCdf:
    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    @pytest.mark.parametrize("params", SETTINGS)
    def test_is_near_the_inverse_of_quantiles(self, params):
        model = IntervalRegressor(LinearRegression(), random_state=0, **params).fit(X, Y)
        quantiles = model.predict_quantile(X, LEVELS)
        found = model.predict_cdf(X, quantiles)
        assert np.abs(found - LEVELS).max() < (0.12 if params.get("guarantee") == "training-conditional" else 0.06)
        assert (np.diff(found, axis=1) >= 0.0).all()

    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    @pytest.mark.parametrize("cv", [None, 4])
    @pytest.mark.parametrize(
        ("tails", "offset", "kind"), [("symmetric", 1e3, np.float32), ("equal", 1e9, np.float64)], ids=["1e3", "1e9"]
    )
    @pytest.mark.parametrize(
        "width", ["constant", "scaled", "local", "quantile", GroupedWidth(by=lambda X: X[:, 0] > 0.5)]
    )
    def test_of_quantiles_is_on_their_side_whatever_the_offset(self, width, tails, offset, kind, cv):
        """At an offset of 1,000 the sum of prediction and radius was rounded to less than both."""
        levels = np.array(LEVELS)
        model = IntervalRegressor(Rounded(kind), width=width, tails=tails, cv=cv, random_state=0).fit(X[:200], Y[:200])
        new = X + np.array([0.0, offset])  # errors near 0 have digits that sums near the offset have not
        found = model.predict_cdf(new, model.predict_quantile(new, levels))
        m = min(line.rows for line in model.categories_[:-1]) if model.categories_ else model.n_calibration_
        enough = np.maximum(levels, 1.0 - levels) <= m / (m + 1)
        assert enough.sum() >= 3
        assert (found >= levels)[:, enough & (levels >= 0.5)].all()
        assert (found <= levels)[:, enough & (levels < 0.5)].all()

    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    @given(
        seed=st.integers(0, 2**32 - 1),
        m=st.integers(1, 60),
        start=st.sampled_from([0.0, 1e3]),
        offset=st.sampled_from([0.0, 1.0, 1e3, 12345.678, 1e6, 1e9]),
        unit=st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 3.0]),
        decimals=st.sampled_from([0, 1, 17]),  # 0 and 1: many ties, and sums that are no multiples of .1
        kind=st.sampled_from([np.float32, np.float64]),
        width=st.sampled_from(["constant", ScaledWidth("prediction", power=1), GroupedWidth(by=0)]),
        tails=st.sampled_from(["symmetric", "equal", "sided", "lower", "upper"]),
        guarantee=st.sampled_from(["marginal", "training-conditional"]),
        weighted=st.booleans(),
        level=st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.1, 0.25, 0.5, 0.55, 0.75, 0.8, 0.9, 0.95])),
    )
    def test_of_a_quantile_is_on_its_side(
        self, seed, m, start, offset, unit, decimals, kind, width, tails, guarantee, weighted, level
    ):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(2, size=m), start + unit * rng.normal(size=m)])
        y = (start + unit * rng.normal(size=m).round(decimals)).astype(kind)
        weights = rng.exponential(size=m) if weighted and guarantee == "marginal" else None
        model = IntervalRegressor(
            lambda X: X[:, 1].astype(kind), width=width, tails=tails, guarantee=guarantee
        ).calibrate(X, y, importance_weight=weights)
        rows = np.column_stack([rng.integers(3, size=20), offset + unit * rng.normal(size=20)])
        quantiles = model.predict_quantile(rows, level)
        found = model.predict_cdf(rows, quantiles)
        with warnings.catch_warnings(record=True) as short:
            warnings.simplefilter("always")
            model.predict_quantile(rows, level)
        if short:  # as many as there are do not go so far
            return
        assert (found >= level if level >= 0.5 else found <= level).all()

    def test_of_the_bounds_of_an_interval(self):
        """Errors between the bounds are as many as the level takes; of one on an end, the cdf counts half."""
        for offset in (0.0, 1e3, 1e9):
            for tails, n_cut in {"symmetric": 2, "equal": 2, "lower": 1, "upper": 1}.items():
                model = IntervalRegressor(lambda X: X[:, 0], confidence_level=0.9, tails=tails).calibrate(X, Y)
                new = X + offset
                low, high = model.predict_interval(new).T
                within = model.predict_cdf(new, high) - model.predict_cdf(new, low)
                assert (within >= 0.9 - (n_cut - 1) / 401 - 1e-12).all()

    def test_counts_errors(self):
        y = np.array([1.0, 2.0, 2.0, 4.0])
        model = IntervalRegressor(zero, confidence_level=0.5).calibrate(np.zeros((4, 1)), y)
        new = np.zeros((6, 1))
        expected = (np.array([0.0, 0.5, 1.0, 2.0, 3.5, 4.0]) + 0.5) / 5.0
        assert_allclose(model.predict_cdf(new, [0.5, 1.0, 1.5, 2.0, 4.0, 9.0]), expected)
        assert_allclose(model.predict_cdf(new, 2.0), np.full(6, 2.5 / 5.0))
        assert_array_equal(model.predict_cdf(new, [-np.inf, np.inf] * 3), [0.0, 1.0] * 3)

    def test_counts_weights(self):
        y = np.array([1.0, 2.0, 3.0])
        weights = np.array([1.0, 1.0, 2.0])
        model = IntervalRegressor(zero, confidence_level=0.5).calibrate(np.zeros((3, 1)), y, importance_weight=weights)
        total = 16.0 / 6.0  # effective number
        expected = (total / 2.0 + 0.5) / (total + 1.0)
        assert_allclose(model.predict_cdf(np.zeros((1, 1)), 2.5), expected)

    @pytest.mark.parametrize("cv", [None, 5])
    def test_of_observed_targets_is_spread_evenly(self, cv):
        found = []
        for seed in range(20):
            model = IntervalRegressor(LinearRegression(), width=ScaledWidth("prediction"), cv=cv, random_state=seed)
            new, y = data(50, seed=100 + seed)
            found.append(model.fit(*data(200, seed=seed)).predict_cdf(new, y))
        assert stats.kstest(np.concatenate(found), "uniform").statistic < 0.06

    def test_shapes(self):
        model = IntervalRegressor(zero).calibrate(X, Y)
        assert model.predict_cdf(X, 1.0).shape == (400,)
        assert model.predict_cdf(X, Y).shape == (400,)
        grid = np.tile([0.5, 1.0, 2.0], (400, 1))
        assert_array_equal(model.predict_cdf(X, grid)[:, 1], model.predict_cdf(X, 1.0))
        both = IntervalRegressor(lambda X: np.zeros((len(X), 2))).calibrate(X, np.column_stack([Y, -Y]))
        assert both.predict_cdf(X, 1.0).shape == (400, 2)
        assert both.predict_cdf(X, np.ones((400, 2, 3))).shape == (400, 2, 3)
        assert_array_equal(both.predict_cdf(X, 1.0)[:, 0], model.predict_cdf(X, 1.0))

    def test_categories_have_their_own(self):
        y = np.where(X[:, 0] > 0.5, 10.0, 1.0) * np.random.default_rng(0).normal(size=400)
        model = IntervalRegressor(zero, width="grouped").calibrate(X, y, by=X[:, 0] > 0.5)
        low, high = model.predict_cdf(X[:2], 3.0, by=[False, True])
        assert low > 0.97
        assert high < 0.75

    def test_bounds_at_the_limits(self):
        model = IntervalRegressor(zero, y_min=0.0, y_max=7.0).calibrate(X, Y)
        assert_array_equal(model.predict_cdf(X[:3], [-0.1, 7.0, 8.0]), [0.0, 1.0, 1.0])

    def test_refuses(self):
        model = IntervalRegressor(zero)
        with pytest.raises(NotFittedError):
            model.predict_cdf(X, Y)
        model.calibrate(X, Y)
        with pytest.raises(ValueError, match=r"y has shape \(3,\); expected a number, \(400,\)"):
            model.predict_cdf(X, np.zeros(3))
        with pytest.raises(ValueError, match="y contains NaN"):
            model.predict_cdf(X, np.nan)


class TestShift:
    def rows(self, rng, m, n):
        """Errors grow with x, and new rows have larger ones."""
        X, new = rng.normal(size=(m, 2)), rng.normal([1.0, 0.0], size=(n, 2))
        return X, rng.normal(scale=np.exp(X[:, 0])), new, rng.normal(scale=np.exp(new[:, 0]))

    @staticmethod
    @cache
    def estimated():
        X, y, new, _ = TestShift().rows(np.random.default_rng(0), 1500, 100)
        return X, y, 0.5 * new, shift_weights(X, 0.5 * new, random_state=0)

    @pytest.mark.parametrize("known", [True, False])
    def test_weights_restore_coverage(self, known):
        rng = np.random.default_rng(0)
        with_weights, without = [], []
        n_draws = 30 if known else 12
        for seed in range(n_draws):
            X, y, new, y_new = self.rows(rng, 300, 300)
            if known:
                weights, new_weights = np.exp(X[:, 0] - 0.5), np.exp(new[:, 0] - 0.5)
            else:
                weights = new_weights = shift_weights(X, new, random_state=seed)
            model = IntervalRegressor(zero, confidence_level=0.9)
            without.append(coverage_score(y_new, model.calibrate(X, y).predict_interval(new)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                bounds = model.calibrate(X, y, importance_weight=weights).predict_interval(
                    new, importance_weight=new_weights
                )
            with_weights.append(coverage_score(y_new, bounds))
        # A ratio that has to be estimated from 300 rows is not quite right.
        assert np.mean(with_weights) >= (0.9 if known else 0.88) - 3 * np.std(with_weights) / n_draws**0.5
        assert np.mean(without) < 0.75

    def test_learns_the_ratio(self):
        rng = np.random.default_rng(0)
        X, _, new, _ = self.rows(rng, 2000, 1000)
        found = shift_weights(X, new, random_state=0)
        assert np.corrcoef(np.log(found.calibration), X[:, 0])[0, 1] > 0.95
        assert found.calibration.mean() == pytest.approx(1.0, abs=0.1)
        assert found.effective_size == pytest.approx(2000 / np.e, rel=0.15)
        linear = shift_weights(X, new, classifier=LogisticRegression(), random_state=0)
        assert_allclose(np.log(linear.new), new[:, 0] - 0.5, atol=0.6)
        thin = shift_weights(csr_array(X), csr_array(new), classifier=LogisticRegression(), random_state=0)
        assert_allclose(thin.new, linear.new, rtol=1e-4)

    @pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
    def test_effective_size_is_that_of_the_true_ratio(self, shift):
        """Two standard deviations leave 9 of 500 rows; a shrunken ratio and its Kish size said 68."""
        found = []
        for seed in range(5):
            rng = np.random.default_rng([7, seed])
            X, new = rng.normal(size=(500, 1)), rng.normal(shift, size=(500, 1))
            found.append(shift_weights(X, new, random_state=seed).effective_size)
        # Of 30 draws nine tenths were between .4 and 1.7 times the truth; the median of five is nearer.
        assert np.median(found) == pytest.approx(500 * np.exp(-(shift**2)), rel=0.5)

    def test_many_columns_have_lines_alone(self):
        rng = np.random.default_rng(0)
        X, new = rng.normal(size=(500, 60)), rng.normal(size=(500, 60))
        new[:, 0] += 1.0
        found = shift_weights(X, new, random_state=0)
        assert found.effective_size == pytest.approx(500 / np.e, rel=0.3)
        assert np.corrcoef(np.log(found.new), new[:, 0])[0, 1] > 0.7

    def test_nothing_tells_constant_rows_apart(self):
        found = shift_weights(np.ones((50, 3)), np.ones((20, 3)))
        assert_array_equal(found.calibration, np.ones(50))
        assert_array_equal(found.new, np.ones(20))
        assert found.effective_size == 50.0

    def test_outliers_do_not_decide_the_size(self):
        """Cauchy columns: no ratio is beyond 4, whatever a line through the farthest rows says."""
        rng = np.random.default_rng(0)
        X, new = rng.standard_cauchy(size=(500, 2)), rng.standard_cauchy(size=(500, 2))
        new[:, 0] += 1.5
        found = shift_weights(X, new, random_state=0)
        assert found.effective_size == pytest.approx(500 * 0.47, rel=0.3)  # 1 / E[w] = .47 by integration
        assert found.new.max() < 100.0

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_with_categories(self, library):
        frames = pytest.importorskip(library)
        rng = np.random.default_rng(0)
        rare = frames.DataFrame({"kind": rng.choice(["a", "b"], 400, p=[0.9, 0.1]).tolist(), "x": rng.normal(size=400)})
        often = frames.DataFrame({"kind": rng.choice(["a", "b"], 400).tolist(), "x": rng.normal(size=400)})
        found = shift_weights(rare, often, random_state=0).calibration
        b = rare["kind"].to_numpy() == "b"
        assert found[b].mean() == pytest.approx(5.0, rel=0.4)
        assert found[~b].mean() == pytest.approx(5 / 9, rel=0.3)

    def test_each_row_has_its_guarantee(self):
        rng = np.random.default_rng(0)
        X, y, new, _ = self.rows(rng, 100, 4)
        weights = np.exp(X[:, 0])
        model = IntervalRegressor(zero, confidence_level=0.9).calibrate(X, y, importance_weight=weights)
        heavy = weights.sum() * np.array([0.001, 0.05, 0.2, 1.0])
        with pytest.warns(UserWarning, match="importance_weight of 2 of 4 new rows is so large"):
            found = model.predict_interval(new, importance_weight=heavy, as_frame=True)
        # Of half of the rows nothing is known, and the other half may have all the misses: (.9 - .5) / .5.
        assert_allclose(found["guaranteed_level"], [0.8, 0.8, np.nan, np.nan])
        assert list(found.columns) == ["prediction", "lower", "upper", "guaranteed_level"]
        found = model.predict_interval(new[:2], importance_weight=heavy[:2], as_frame=True)
        assert_allclose(found["guaranteed_level"], [0.9, 0.9])

    def test_rows_beside_heavy_ones_cover_what_is_said(self):
        """Errors are large where rows are light: rows that are not too heavy cover .84, not the .9 of all."""
        kept, said = [], []
        for seed in range(150):
            rng = np.random.default_rng([8, seed])
            x, new = rng.normal(size=100), rng.normal(2.0, size=500)
            model = IntervalRegressor(zero, confidence_level=0.9)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.calibrate(x[:, None], rng.normal(scale=np.exp(-x)), importance_weight=np.exp(2.0 * x))
                table = model.predict_interval(new[:, None], importance_weight=np.exp(2.0 * new), as_frame=True)
            covered = 2.0 * stats.norm.cdf(table["upper"] * np.exp(new)) - 1.0
            level = table["guaranteed_level"].to_numpy()
            kept.append(np.sum(covered[~np.isnan(level)]))
            said.append(np.nansum(level))
        gap = (np.array(kept) - said) / 500
        assert gap.mean() > -3 * gap.std() / 150**0.5  # what is said is a lower bound of the mean
        assert np.sum(kept) / 500 / 150 < 0.9 * 0.6  # and .9 for each of them would be none

    @pytest.mark.parametrize("width", ["constant", "scaled", GroupedWidth(by=lambda X: X[:, 1] > 0.0)])
    @pytest.mark.parametrize("tails", ["symmetric", "equal", "sided", "upper"])
    def test_of_estimated_weights_nothing_is_guaranteed(self, width, tails):
        X, y, new, weights = self.estimated()
        model = IntervalRegressor(zero, confidence_level=0.8, width=width, tails=tails, random_state=0)
        model.calibrate(X, y, importance_weight=weights)
        assert np.isnan(model.guaranteed_level_)
        assert not model.guaranteed_
        assert np.isnan(model.coverage_range_).all()
        assert all(np.isnan(category.level) for category in model.categories_)
        table = model.predict_interval(new, importance_weight=weights, as_frame=True)
        assert table["guaranteed_level"].isna().all()
        part = model.predict_interval(new[:9], importance_weight=weights.new[:9], as_frame=True)
        assert part["guaranteed_level"].isna().all()
        assert_array_equal(part["upper"], table["upper"][:9])
        as_known = clone(model).calibrate(
            X, y, importance_weight=weights.calibration
        )  # a plain array: the same intervals
        assert_array_equal(
            as_known.predict_interval(new, importance_weight=weights.new),
            model.predict_interval(new, importance_weight=weights),
        )
        assert as_known.guaranteed_level_ == 0.8
        mixed = as_known.predict_interval(new, importance_weight=weights, as_frame=True)
        assert mixed["guaranteed_level"].isna().all()

    def test_update_does_not_forget_that_weights_are_estimated(self):
        rng = np.random.default_rng(0)
        X, y, new, _ = self.rows(rng, 2000, 300)
        first, second = (shift_weights(part, new, random_state=0) for part in (X[:1000], X[1000:]))
        for more in (second, second.calibration, None):
            model = IntervalRegressor(zero, confidence_level=0.8).calibrate(X[:1000], y[:1000], importance_weight=first)
            model.update(X[1000:], y[1000:], importance_weight=more)
            assert np.isnan(model.guaranteed_level_)
        for known in (first.calibration, None):
            model = IntervalRegressor(zero, confidence_level=0.8).calibrate(X[:1000], y[:1000], importance_weight=known)
            assert model.guaranteed_level_ == 0.8
            assert np.isnan(model.update(X[1000:], y[1000:], importance_weight=second).guaranteed_level_)

    def test_few_effective_rows_are_told(self):
        rng = np.random.default_rng(0)
        X, new = rng.normal(size=(500, 1)), rng.normal(2.0, size=(500, 1))
        y, weights = rng.normal(size=500), shift_weights(X, new, random_state=0)
        model = IntervalRegressor(zero, confidence_level=0.9)
        size = f"{weights.effective_size:.3g}"
        with pytest.warns(CoverageWarning, match=rf"as good as {size} rows .* 90 % .* take 45 or more"):
            model.calibrate(X, y, importance_weight=weights)
        with pytest.warns(CoverageWarning, match="importance_weight of .* new rows is so large"):
            model.predict_interval(new, importance_weight=weights)
        near = shift_weights(X, X + 0.1, random_state=0)
        model.calibrate(X, y, importance_weight=near)  # no warning, which would be an error
        with pytest.warns(CoverageWarning, match="99.9 % intervals may cover far less"):
            model.predict_interval(new, 0.999)
        with pytest.warns(CoverageWarning, match="99.999999 % intervals may cover far less"):  # it was 100 %
            model.predict_interval(new, 0.99999999)
        with pytest.warns(CoverageWarning, match=r"take 45 or more"):  # a width that learns leaves half of the rows
            IntervalRegressor(zero, confidence_level=0.9, width="scaled", random_state=0).calibrate(
                X[:80], y[:80], importance_weight=shift_weights(X[:80], X[80:], random_state=0)
            )

    def test_weights_of_other_rows_are_refused(self):
        rng = np.random.default_rng(0)
        X, y, new, _ = self.rows(rng, 300, 100)
        weights = shift_weights(X, 0.1 * new, random_state=0)
        model = IntervalRegressor(zero, confidence_level=0.5)
        with pytest.raises(
            ValueError, match="is for the 300 calibration rows that shift_weights has seen, but X has 299"
        ):
            model.calibrate(X[1:], y[1:], importance_weight=weights)
        model.calibrate(X, y, importance_weight=weights)
        with pytest.raises(
            ValueError, match=r"is for the 100 new rows .* X has 3 rows.* that part of its attribute new"
        ):
            model.predict_interval(new[:3], importance_weight=weights)
        with pytest.raises(ValueError, match="is for the 300 calibration rows"):
            model.update(X[:3], y[:3], importance_weight=weights)
        with pytest.raises(ValueError, match=r"sample_weight of fit trains the model.*give them to calibrate"):
            IntervalRegressor(LinearRegression()).fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="unequal or estimated importance_weight"):
            IntervalRegressor(zero, guarantee="training-conditional").calibrate(X, y, importance_weight=weights)

    def test_a_new_row_without_weight_is_the_same_alone_as_among_others(self):
        rng = np.random.default_rng(0)
        X, y, new, _ = self.rows(rng, 200, 4)
        model = IntervalRegressor(zero).calibrate(X, y, importance_weight=np.exp(X[:, 0]))
        among = model.predict_interval(new, importance_weight=[0.0, 1.0, 2.0, 0.5])
        assert_array_equal(model.predict_interval(new[:1], importance_weight=[0.0]), among[:1])
        with pytest.raises(ValueError, match="must be not negative; got -1 to -1"):
            model.predict_interval(new[:1], importance_weight=[-1.0])

    def test_rows_without_weight_are_left_out_before_the_split(self):
        rng = np.random.default_rng(0)
        X, y, new, _ = self.rows(rng, 200, 4)
        weights = np.r_[1.0, 1.0, np.zeros(198)]
        model = IntervalRegressor(zero, width="scaled", random_state=0)
        with pytest.warns(UserWarning, match="1 score can guarantee"):
            model.calibrate(X, y, importance_weight=weights)
        assert model.n_calibration_ == 1
        assert np.isfinite(model.predict_interval(new)).all()

    def test_refuses(self):
        with pytest.raises(ValueError, match="X has no columns"):
            shift_weights(np.zeros(30), np.zeros(30))
        with pytest.raises(ValueError, match="X has 3 rows and X_new 100"):
            shift_weights(np.zeros((3, 2)), np.zeros((100, 2)))
        with pytest.raises(ValueError, match="both must have the same columns"):
            shift_weights(np.zeros((30, 2)), np.zeros((30, 3)))
        with pytest.raises(ValueError, match="one of X and X_new is a sparse matrix"):
            shift_weights(csr_array(np.eye(30)), np.eye(30))
        with pytest.raises(ValueError, match="both must have the same columns"):
            shift_weights(csr_array((30, 2)), csr_array((30, 3)))
        bare = pytest.importorskip("pandas").DataFrame(index=np.arange(30))
        with pytest.raises(ValueError, match="X and X_new have no columns"):
            shift_weights(bare, bare)

    def test_sparse_masked_and_far_off_rows(self):
        X = np.where(np.arange(60)[:, None] < 5, 1.7e308, np.arange(60.0)[:, None] % 7)
        masked = np.ma.masked_equal(np.where(X == 3.0, -1e9, X), -1e9)
        plain, found = (shift_weights(x[:30], x[30:], random_state=0) for x in (X, csr_array(X)))
        assert_allclose(found.calibration, plain.calibration)
        gaps, found = (shift_weights(x[:30], x[30:], random_state=0) for x in (np.where(X == 3.0, np.nan, X), masked))
        assert_allclose(found.calibration, gaps.calibration)


def test_frames_of_two_libraries_have_no_common_rows():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = {"a": np.arange(10.0)}
    with pytest.raises(ValueError, match="give frames of one library"):
        shift_weights(pandas.DataFrame(table), polars.DataFrame(table))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_two_kinds(library):
    frame = pytest.importorskip(library).DataFrame
    whole, half = np.arange(30), np.arange(30) + 0.5
    found = shift_weights(frame({"a": whole}), frame({"a": half}), random_state=0)
    assert_allclose(found.new, shift_weights(whole[:, None], half[:, None], random_state=0).new)
    with pytest.raises(ValueError, match="column 'a' is Int64 in X and String in X_new"):
        shift_weights(frame({"a": whole}), frame({"a": ["x"] * 30}))
