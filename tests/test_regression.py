"""IntervalRegressor: what it does with models, rows, levels, categories, weights and frames, and what it refuses."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pimeter import CoverageWarning, GroupedWidth, IntervalRegressor, ScaledWidth, SetClassifier
from pimeter.conformal.guarantee import effective_counts, rank_guarantee
from pimeter.scorers import interval_scorer

TAILS = ("symmetric", "equal", "sided", "lower", "upper")


def zero(X):
    return np.zeros(len(X))


def above(radius):
    """The next float, the end of an interval around 0: it is to hold all errors that are the radius after rounding."""
    return np.nextafter(radius, np.inf)


def first(X):
    return np.asarray(X)[:, 0].astype(float)


def linear_data(n, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1.0) + rng.normal(size=n)


X, Y = linear_data(300)


class TestRadius:
    def test_is_the_error_of_rank_k(self):
        magnitudes = np.sort(np.abs(Y - X[:, 0]))
        model = IntervalRegressor(first, confidence_level=0.9).calibrate(X, Y)
        assert model.margin_.tolist() == [magnitudes[270]] * 2  # ceil(301 * .9) = 271
        assert_allclose(
            model.predict_interval(X), np.stack([X[:, 0] - magnitudes[270], X[:, 0] + magnitudes[270]], axis=1)
        )
        assert model.guaranteed_
        assert model.guaranteed_level_ == 0.9

    def test_rank_forgives_rounding(self):
        # In floats 100 * .55 is a little more than 55.
        y = np.arange(1.0, 100.0)
        assert IntervalRegressor(zero, confidence_level=0.55).calibrate(y[:, None], y).margin_[0] == 55.0

    @pytest.mark.parametrize("width", ["constant", ScaledWidth("prediction", power=1)])
    @pytest.mark.parametrize("tails", ["symmetric", "equal", "upper"])
    def test_rounding_leaves_no_target_of_few_decimals_outside(self, tails, width):
        """1.4 - |.33 - 1.4| is more than .33 in floats, and 20 % of the targets may be .33."""
        rng = np.random.default_rng(0)
        for prediction in (1.4, 0.3, 7.0, -2.56):
            y = rng.choice([0.33, 1.5, 2.1], size=199, p=[0.2, 0.6, 0.2])
            model = DummyRegressor(strategy="constant", constant=prediction).fit(y[:, None], y)
            own = IntervalRegressor(FrozenEstimator(model), confidence_level=0.9, tails=tails, width=width)
            lower, upper = own.calibrate(y[:, None], y).predict_interval(y[:, None]).T
            assert ((lower <= y) & (y <= upper)).mean() >= 0.9

    @pytest.mark.parametrize("cv", [None, 5])
    def test_levels_are_nested_where_targets_have_few_decimals(self, cv):
        rng = np.random.default_rng(0)
        rows = np.round(rng.normal(size=(200, 1)), 1)
        y = np.round(rows[:, 0] + rng.normal(size=200), 1)
        model = IntervalRegressor(Ridge(), cv=cv, random_state=0).fit(rows, y)
        bounds = model.predict_interval(rows, np.linspace(0.05, 0.95, 91))
        assert (np.diff(bounds[:, 0], axis=-1) <= 0.0).all()
        assert (np.diff(bounds[:, 1], axis=-1) >= 0.0).all()

    def test_of_tails(self):
        y = np.concatenate([-np.arange(1.0, 41.0), np.arange(1.0, 61.0) * 10, [0.0]])
        signed = np.sort(y)
        radius = {
            tails: IntervalRegressor(zero, confidence_level=0.9, tails=tails).calibrate(y[:, None], y).margin_
            for tails in TAILS
        }
        assert_array_equal(radius["symmetric"], np.sort(np.abs(y))[[91, 91]])  # ceil(102 * .9)
        assert_array_equal(radius["equal"], [-signed[101 - 97], signed[96]])  # ceil(102 * .95)
        assert_array_equal(radius["sided"], [37.0, 550.0])  # ceil(41 * .9) of those below, ceil(61 * .9) of those above
        assert_array_equal(radius["lower"], [-signed[101 - 92], np.inf])
        assert_array_equal(radius["upper"], [np.inf, signed[91]])

    @pytest.mark.parametrize("tails", TAILS)
    @pytest.mark.parametrize("cv", [None, 4])
    def test_higher_level_is_never_narrower(self, tails, cv):
        model = IntervalRegressor(Ridge(), tails=tails, cv=cv, random_state=0).fit(X, Y)
        bounds = model.predict_interval(X[:20], [0.5, 0.8, 0.9, 0.95])
        assert bounds.shape == (20, 2, 4)
        assert (bounds[:, 0, 1:] <= bounds[:, 0, :-1]).all()
        assert (bounds[:, 1, 1:] >= bounds[:, 1, :-1]).all()
        assert_array_equal(bounds[..., 3], model.predict_interval(X[:20]))

    @pytest.mark.parametrize("tails", TAILS)
    @pytest.mark.parametrize("cv", [None, 4])
    def test_neuron_lies_within_the_errors_beside_its_rank(self, tails, cv):
        ranked, smooth = (
            IntervalRegressor(Ridge(), tails=tails, cv=cv, guarantee=g, random_state=0).fit(X, Y)
            for g in ("marginal", "approximate")
        )
        outer, inner = ranked.predict_interval(X), smooth.predict_interval(X)
        assert (outer[:, 0] <= inner[:, 0] + 1e-12).all()
        assert (inner[:, 1] <= outer[:, 1] + 1e-12).all()
        assert not smooth.guaranteed_

    def test_of_few_errors_is_the_largest_and_says_what_it_can_guarantee(self):
        errors = np.random.default_rng(0).normal(size=20)
        for m in range(1, 21):
            model = IntervalRegressor(zero)
            rows = errors[:m]
            if m < 19:
                scores = "1 score" if m == 1 else f"{m} scores"
                needs = rf"^{scores} can guarantee {100 * m / (m + 1):.3g} %, not 95 %; 19 are needed\.$"
                with pytest.warns(CoverageWarning, match=needs):
                    model.calibrate(rows[:, None], rows)
            else:
                model.calibrate(rows[:, None], rows)
            assert model.margin_[0] == np.abs(rows).max()
            assert_allclose(model.guaranteed_level_, min(m / (m + 1), 0.95))
            assert model.guaranteed_ == (m >= 19)

    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    @pytest.mark.parametrize("m", range(1, 21))
    @pytest.mark.parametrize("tails", TAILS)
    @pytest.mark.parametrize("guarantee", ["marginal", "approximate", "training-conditional"])
    def test_of_few_errors_is_finite_for_all_tails(self, m, tails, guarantee):
        errors = np.random.default_rng(m).normal(size=(m, 1))
        model = IntervalRegressor(zero, tails=tails, guarantee=guarantee, y_min=-9, y_max=9)
        assert np.isfinite(model.calibrate(errors, errors[:, 0]).predict_interval(errors)).all()
        exact = np.nan if guarantee == "training-conditional" else m / (m + 1)
        if tails == "equal" and guarantee != "training-conditional":
            exact = (m - 1) / (m + 1)
        if guarantee == "approximate" and m == 20 and tails != "equal":
            exact = 19 / 21  # the error below rank 19.95
        if tails == "sided":
            exact = np.nan
        if tails not in {"equal", "sided"} and guarantee == "marginal":
            exact = min(exact, 0.95)
        assert_allclose(model.guaranteed_level_, exact)

    def test_for_the_set_needs_as_many_errors_as_wilks_says(self):
        errors = np.random.default_rng(0).normal(size=(59, 1))
        enough = IntervalRegressor(zero, guarantee="training-conditional").calibrate(errors, errors[:, 0])
        assert enough.guaranteed_
        with pytest.warns(CoverageWarning, match="58 scores can guarantee nothing, not 95 %; 59 are needed"):
            few = IntervalRegressor(zero, guarantee="training-conditional").calibrate(errors[1:], errors[1:, 0])
        assert np.isnan(few.guaranteed_level_)
        assert not few.guaranteed_

    def test_coverage_range_is_that_of_the_beta_distribution(self):
        assert_allclose(IntervalRegressor(first).calibrate(X[:100], Y[:100]).coverage_range_, [0.911, 0.980], atol=5e-4)
        assert np.isnan(IntervalRegressor(Ridge(), cv=5).fit(X, Y).coverage_range_).all()

    def test_bounds_are_cut(self):
        bounds = IntervalRegressor(first, y_min=-12, y_max=10).calibrate(X, Y).predict_interval(4 * X)
        assert bounds.min() == -12
        assert bounds.max() == 10
        one = IntervalRegressor(first, tails="lower", y_max=10).calibrate(X, Y).predict_interval(X)
        assert (one[:, 1] == 10).all()

    def test_targets_beyond_the_bounds_are_refused(self):
        with pytest.raises(ValueError, match=r"y goes from -11.5127 to 9.34827, beyond y_min=0 or y_max=None"):
            IntervalRegressor(first, y_min=0).calibrate(X, Y)
        with pytest.raises(ValueError, match="beyond y_min=None or y_max=9"):
            IntervalRegressor(Ridge(), y_max=9).fit(X, Y)
        IntervalRegressor(Ridge(), y_max=0.3).fit(X, np.minimum(Y, 0.3).astype(np.float32))  # which is above .3
        IntervalRegressor(Ridge(), y_min=-1e300).fit(X, Y.astype(np.float32))  # which knows no 1e300

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_bounds_rounded_to_the_precision_of_targets_are_not_cut_off(self, sign):
        y = (sign * np.minimum(0.1 * Y, 0.3)).astype(np.float32)  # .3 is a little more there
        bounds = {"y_max": 0.3} if sign > 0 else {"y_min": -0.3}
        model = IntervalRegressor(zero, confidence_level=0.5, **bounds).calibrate(X[:100], y[:100])
        model.update(X[100:], np.zeros(200))
        at = float(y.max() if sign > 0 else y.min())
        assert model.predict_interval(X, 0.99)[0, int(sign > 0)] == at
        fraction = model.predict_cdf(X[:1], at)[0]
        assert fraction == 1.0 if sign > 0 else fraction > 0.0

    def test_bounds_that_are_set_later_count_from_the_next_calibration_on(self):
        model = IntervalRegressor(zero, confidence_level=0.9).calibrate(X, Y)
        before = model.predict_interval(X), model.predict_cdf(X, Y)
        model.set_params(y_min=5, y_max=-5)
        assert_array_equal(model.predict_interval(X), before[0])
        assert_array_equal(model.predict_cdf(X, Y), before[1])

    def test_many_errors_are_ranked_as_few(self):
        y = np.random.default_rng(0).standard_cauchy(200_000)
        model = IntervalRegressor(zero, confidence_level=0.99).calibrate(y[:, None], y)
        assert model.margin_[0] == np.sort(np.abs(y))[198_000]
        tied = np.repeat([1.0, 2.0], 100_000)
        assert IntervalRegressor(zero, confidence_level=0.5).calibrate(tied[:, None], tied).margin_[0] == 2.0
        y[:: int(200_000 ** (1 / 3))] = 1e9  # of all rows that are looked at first
        model = IntervalRegressor(zero, confidence_level=0.9).calibrate(y[:, None], y)
        assert model.margin_[0] == np.sort(np.abs(y))[180_000]


class TestModel:
    def test_fit_trains_a_clone_on_one_split(self):
        inner = Ridge()
        model = IntervalRegressor(inner, random_state=0).fit(X, Y)
        assert not hasattr(inner, "coef_")
        assert model.n_calibration_ == 60
        assert_array_equal(model.predict(X), model.estimator_.predict(X))

    def test_calibrate_wants_a_fitted_one(self):
        with pytest.raises(NotFittedError, match="call fit"):
            IntervalRegressor(Ridge()).calibrate(X, Y)
        fitted = Ridge().fit(X[:100], Y[:100])
        assert IntervalRegressor(fitted).calibrate(X[100:], Y[100:]).estimator_ is fitted

    def test_calibrate_after_fit_uses_the_trained_clone(self):
        model = IntervalRegressor(Ridge(), random_state=0).fit(X, Y)
        trained = model.estimator_
        assert model.calibrate(X, Y).estimator_ is trained
        assert model.n_calibration_ == 300
        with pytest.raises(ValueError, match="one per fold"):
            IntervalRegressor(Ridge(), cv=3).fit(X, Y).calibrate(X, Y)

    @pytest.mark.parametrize("freeze", [FrozenEstimator, lambda fitted: fitted.predict])
    def test_frozen_ones_and_functions_calibrate_on_all_rows(self, freeze):
        fitted = Ridge().fit(X[:100], Y[:100])
        direct = IntervalRegressor(fitted).calibrate(X[100:], Y[100:])
        model = IntervalRegressor(freeze(fitted)).fit(X[100:], Y[100:])
        assert_array_equal(model.margin_, direct.margin_)
        assert model.n_calibration_ == 200

    def test_objects_that_only_predict_and_callables_are_kept_by_reference(self):
        class Model:
            def predict(self, X):
                return X[:, 0]

        class Function:
            def __call__(self, X):
                return X[:, 0]

        for model in (Model(), Function()):
            copied = clone(IntervalRegressor(model))
            assert copied.estimator is model
            assert copied.calibrate(X, Y).margin_[0] > 0

    def test_pipelines_inside_and_outside(self):
        inside = IntervalRegressor(make_pipeline(StandardScaler(), Ridge()), random_state=0).fit(X, Y)
        outside = make_pipeline(StandardScaler(), IntervalRegressor(Ridge(), random_state=0)).fit(X, Y)
        assert_allclose(
            inside.predict_interval(X).mean(), outside[-1].predict_interval(outside[0].transform(X)).mean(), rtol=0.1
        )
        assert outside.score(X, Y) > 0.8

    def test_refit_forgets(self):
        model = IntervalRegressor(Ridge(), random_state=0)
        once = model.fit(X, Y).margin_
        model.set_params(cv=3).fit(X[:, :2], Y)
        assert_array_equal(model.set_params(cv=None).fit(X, Y).margin_, once)

    def test_pickle(self):
        model = IntervalRegressor(Ridge(), cv=3, width="scaled", random_state=0).fit(X, Y)
        assert_array_equal(pickle.loads(pickle.dumps(model)).predict_interval(X), model.predict_interval(X))

    def test_fit_params_are_split_with_the_rows(self):
        weight = np.where(np.arange(300) < 150, 1.0, 1e-9)
        y = np.where(np.arange(300) < 150, 0.0, 100.0)
        model = IntervalRegressor(DummyRegressor(), cv=5, random_state=0).fit(X, y, sample_weight=weight)
        assert np.abs(model.predict(X)).max() < 1e-3
        with pytest.raises(ValueError, match="fit_params"):
            IntervalRegressor(zero).fit(X, y, sample_weight=weight)

    def test_jobs_do_not_change_numbers(self):
        alone, both = (IntervalRegressor(Ridge(), cv=4, n_jobs=n, random_state=0).fit(X, Y) for n in (None, 2))
        assert_array_equal(alone.predict_interval(X), both.predict_interval(X))

    @pytest.mark.filterwarnings("ignore:scores of 2 groups calibrate")
    def test_a_width_learns_nothing_from_one_group_of_training_rows(self):
        scaled, constant = (
            IntervalRegressor(LinearRegression(), width=width, cv=2).fit(X, Y, groups=np.arange(300) % 2)
            for width in ("scaled", "constant")
        )
        assert_allclose(scaled.predict_interval(X), constant.predict_interval(X))

    def test_what_is_guaranteed_where_rows_of_groups_may_be_equal(self):
        groups = np.repeat(np.arange(20), 15)
        few = IntervalRegressor(Ridge(), random_state=0)
        with pytest.warns(CoverageWarning, match="4 scores, one for each group, can guarantee 80 %, not 95 %; 19"):
            few.fit(X, Y, groups=groups)
        many = IntervalRegressor(first).calibrate(X, Y, groups=groups)  # all 20 of them
        assert (few.guaranteed_level_, many.guaranteed_level_) == (0.8, 0.95)
        assert np.isnan([*few.coverage_range_, *many.coverage_range_]).all()
        folds = IntervalRegressor(Ridge(), cv=5).fit(X, Y, groups=groups)
        sided = IntervalRegressor(first, tails="sided").calibrate(X, Y, groups=groups)
        for model in (folds, sided, many.update(X[:5] + 1.0, Y[:5])):
            assert np.isnan([model.guaranteed_level_, *model.coverage_range_]).all()
            assert not model.guaranteed_

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.zeros(7), r"groups must hold one group for each of the 300 rows; got shape \(7,\)"),
            (["a", None, "b"] * 100, "groups has missing values"),
            (np.zeros(300), "groups has a single group"),
        ],
    )
    def test_groups_that_are_refused(self, groups, message):
        with pytest.raises(ValueError, match=message):
            IntervalRegressor(Ridge()).fit(X, Y, groups=groups)

    @pytest.mark.parametrize(
        ("cv", "message"),
        [
            ([], "cv has no splits. A generator is used up by one fit"),
            ([(np.arange(300), np.arange(150))], "cv trains on 150 of the rows that it leaves out"),
            (list(KFold(5).split(X)), "A split divides the rows of 5 groups. Use a splitter of groups"),
        ],
    )
    def test_splits_that_are_refused(self, cv, message):
        with pytest.raises(ValueError, match=message):
            IntervalRegressor(Ridge(), cv=cv).fit(X, Y, groups=np.arange(300) % 5)

    @pytest.mark.filterwarnings("ignore:scores of . groups calibrate")
    def test_a_splitter_sees_groups_as_they_are_given(self):
        class Second(KFold):
            def split(self, X, y=None, groups=None):
                yield np.flatnonzero(groups != "m"), np.flatnonzero(groups == "m")

        groups = np.repeat(np.array(["z", "m", "a"], object), 100)
        with pytest.warns(CoverageWarning, match="1 score, one for each group, can guarantee 50 %"):
            model = IntervalRegressor(Ridge(), cv=Second()).fit(X, Y, groups=groups)
        assert model.margin_[0] == np.abs(Y[100:200] - model.estimator_.predict(X[100:200])).max()

    @pytest.mark.parametrize("width", ["constant", "scaled"])
    def test_splits_may_be_masks_and_lists(self, width):
        splits = list(KFold(3).split(X))
        masks = [tuple(np.isin(np.arange(300), part) for part in split) for split in splits]
        lists = [tuple(part.tolist() for part in split) for split in splits]
        given = (
            IntervalRegressor(Ridge(), cv=cv, width=width, random_state=0).fit(X, Y) for cv in (splits, masks, lists)
        )
        expected, *others = (model.predict_interval(X[:9]) for model in given)
        for bounds in others:
            assert_array_equal(bounds, expected)

    @pytest.mark.filterwarnings("ignore:scores of . groups calibrate")
    @pytest.mark.filterwarnings("ignore:6 scores, one for each group")
    @pytest.mark.filterwarnings("ignore:3 scores, one for each group")
    def test_groups_are_never_split(self):
        groups = np.repeat(np.arange(30), 10)

        class Memory(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                self.seen_ = set(X[:, 0])
                return super().fit(X, y)

            def predict(self, X):
                assert not self.seen_ & set(X[:, 0])
                return super().predict(X)

        table = np.column_stack([groups, groups])
        for cv in (None, 3, GroupKFold(3)):
            for width in ("constant", "scaled"):
                IntervalRegressor(Memory(), cv=cv, width=width, random_state=0).fit(table, Y, groups=groups)

    def test_several_outputs_have_a_neuron_each(self):
        both = np.column_stack([Y, 5 * Y])
        for cv in (None, 4):
            for width in ("constant", "scaled", ScaledWidth(Ridge())):
                alone, model = (
                    IntervalRegressor(Ridge(), cv=cv, width=width, random_state=0).fit(X, y) for y in (Y, both)
                )
                bounds = model.predict_interval(X[:7], [0.8, 0.9])
                assert bounds.shape == (7, 2, 2, 2)
                # Random trees are others where a second prediction is one more column.
                if width != "scaled":
                    assert_allclose(bounds[:, 0], alone.predict_interval(X[:7], [0.8, 0.9]))
                assert_allclose(bounds[:, 1], 5 * bounds[:, 0])
                assert model.predict(X).shape == (300, 2)
                assert model.margin_.shape == (2, 2)

    def test_search_finds_the_width(self):
        rng = np.random.default_rng(0)
        table = rng.uniform(size=(800, 1))
        y = rng.normal(size=800) * np.where(table[:, 0] > 0.5, 5.0, 0.2)
        grid = {"width": [ScaledWidth()], "width__power": [0.0, 0.75]}
        search = GridSearchCV(IntervalRegressor(DummyRegressor(), random_state=0), grid, scoring=interval_scorer, cv=3)
        assert search.fit(table, y).best_params_["width__power"] == 0.75
        assert search.best_estimator_.width_.power == 0.75

    def test_search_finds_the_power(self):
        # Errors in proportion to a square, and a scale that can say so: a power of 1 is right.
        rng = np.random.default_rng(0)
        table = rng.uniform(0.1, 1, size=(2000, 1))
        y = rng.normal(size=2000) * table[:, 0] ** 2
        scale = ScaledWidth(make_pipeline(PolynomialFeatures(2), LinearRegression()))
        grid = [{"width": ["constant"]}, {"width": [scale], "width__power": [0.0, 0.5, 1.0, 2.0]}]
        search = GridSearchCV(IntervalRegressor(DummyRegressor(), random_state=0), grid, scoring=interval_scorer, cv=3)
        assert search.fit(table, y).best_params_["width__power"] == 1.0


class TestUpdate:
    def test_is_calibration_with_all_rows(self):
        at_once = IntervalRegressor(first, tails="equal").calibrate(X, Y)
        in_steps = IntervalRegressor(first, tails="equal").calibrate(X[:100], Y[:100]).update(X[100:], Y[100:])
        assert_array_equal(in_steps.margin_, at_once.margin_)
        assert in_steps.n_calibration_ == 300

    def test_keeps_categories_and_weights(self):
        by, weight = np.arange(300) % 2, np.linspace(1, 2, 300)
        at_once = IntervalRegressor(first, width="grouped").calibrate(X, Y, by=by, importance_weight=weight)
        in_steps = IntervalRegressor(first, width="grouped")
        in_steps.calibrate(X[:100], Y[:100], by=by[:100], importance_weight=weight[:100])
        in_steps.update(X[100:], Y[100:], by=by[100:], importance_weight=weight[100:])
        assert_array_equal(in_steps.margin_, at_once.margin_)
        unweighted = (
            IntervalRegressor(first)
            .calibrate(X[:100], Y[:100])
            .update(X[100:], Y[100:], importance_weight=np.ones(200))
        )
        assert_array_equal(unweighted.margin_, IntervalRegressor(first).calibrate(X, Y).margin_)

    def test_rows_of_weight_zero_are_left_out(self):
        weight, by = np.arange(200) % 2, np.arange(200) % 3
        some = IntervalRegressor(first, width="grouped").calibrate(X[:100], Y[:100], by=np.arange(100) % 3)
        every = IntervalRegressor(first, width="grouped").calibrate(X[:100], Y[:100], by=np.arange(100) % 3)
        some.update(X[101::2], Y[101::2], by=by[1::2])
        every.update(X[100:], Y[100:], by=by, importance_weight=weight)
        assert_array_equal(every.margin_, some.margin_)
        assert every.n_calibration_ == some.n_calibration_ == 200

    def test_keeps_both_bounds_of_a_band(self):
        halves = [IntervalRegressor(first, width="quantile", random_state=0).calibrate(X[:200], Y[:200])]
        halves.append(clone(halves[0]).calibrate(X[:200], Y[:200]))
        bounds = halves[0].predict_interval(X)
        halves[0].update(X[200:], Y[200:] + 1e3)  # all of them far above
        assert halves[0].n_calibration_ == halves[1].n_calibration_ + 100
        assert (halves[0].predict_interval(X)[:, 1] > bounds[:, 1] + 900).all()

    def test_is_refused_with_folds(self):
        with pytest.raises(ValueError, match="call fit with all rows"):
            IntervalRegressor(Ridge(), cv=3).fit(X, Y).update(X, Y)


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence_level": 0.5},
        {"tails": "upper"},
        {"guarantee": "training-conditional"},
        {"width": "grouped"},
        {"joint": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_settings_that_change_count_from_the_next_calibration_on(changed):
    model = IntervalRegressor(zero, confidence_level=0.9, tails="equal", guarantee="approximate").calibrate(X, Y)

    def said():
        intervals = [model.predict_interval(X, level) for level in (None, 0.8)]
        return [*intervals, model.predict_quantile(X, [0.1, 0.7]), model.predict_cdf(X, Y)]

    before = said()
    model.set_params(**changed)
    for now, then in zip(said(), before, strict=True):
        assert_array_equal(now, then)


class TestGrouped:
    def test_numbers_among_words_stay_numbers(self):
        """A list of both would become words, and 1 asked for alone a category never seen."""
        by = [1, 2, "web"] * 100
        model = IntervalRegressor(zero, width="grouped").calibrate(X, np.array([10.0, 1.0, 1.0] * 100) * Y, by=by)
        assert [line.label for line in model.categories_] == [1, 2, "web", "(never seen)"]
        assert model.predict_interval(X[:1], by=[1])[0, 1] == above(model.margin_[0, 1])
        with pytest.warns(CoverageWarning, match=r"by holds '1' \(str\).* it has seen 1 \(int\)"):
            model.predict_interval(X[:1], by=["1"])

    def test_a_date_is_the_same_in_all_units(self):
        by = np.array(["2024-01-01", "2024-01-02"] * 150, "datetime64[ns]")
        model = IntervalRegressor(zero, width="grouped").calibrate(X, np.array([10.0, 1.0] * 150) * Y, by=by)
        for unit in ("ns", "us", "s", "D"):
            found = model.predict_interval(X[:1], by=by[:1].astype(f"datetime64[{unit}]"))
            assert found[0, 1] == above(model.margin_[0, 1])

    def test_dates_and_numbers_stay_themselves_beside_others(self):
        day = np.array(["2024-01-01", "2024-01-02"] * 150, "datetime64[ns]")
        y = np.array([10.0, 1.0] * 150) * Y
        for by, more in (
            (day, [np.datetime64("2024-01-03").item()] * 4),
            (np.array([1, 2] * 150), np.array(["x"] * 4)),
        ):
            model = IntervalRegressor(zero, width="grouped", confidence_level=0.8).calibrate(X, y, by=by)
            before = model.predict_interval(X[:2], by=by[:2])
            model.update(X[:4] + 1.0, y[:4], by=more)
            assert len(model.categories_) == 3 + 1
            assert_array_equal(model.predict_interval(X[:2], by=by[:2]), before)

    def test_nothing_is_said_of_the_coverage_of_one_of_those_pooled(self):
        by = np.repeat([0, 1, 2], [280, 10, 10])
        model = IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=by)
        assert [line.source for line in model.categories_] == ["own", "shared", "shared", "shared"]
        assert_array_equal(np.isnan(model.coverage_range_).all(axis=1), [False, True, True, True])

    @pytest.mark.parametrize(
        "width", [{"guarantee": "marginal"}, {"guarantee": "approximate"}, {"tails": "equal"}, {"joint": True}]
    )
    def test_the_table_says_that_nothing_is_guaranteed_to_categories_never_seen(self, width):
        by = np.repeat(["a", "b", "c"], [200, 50, 50])
        y = np.column_stack([Y, 2.0 * Y]) if "joint" in width else Y
        model = IntervalRegressor(
            lambda X: np.zeros((len(X), 2)) if "joint" in width else zero(X),
            width=GroupedWidth(min_size=100),
            random_state=0,
            **width,
        )
        model.calibrate(X, y, by=by, importance_weight=np.ones(300))
        *seen, last = model.categories_
        assert np.isfinite([line.level for line in seen]).all()
        assert [("by itself" in line.note, line.note == "") for line in seen] == [
            (False, True),
            (True, False),
            (True, False),
        ]
        assert (last.label, last.rows, last.source) == ("(never seen)", 0, "shared")
        assert np.isnan(last.level)
        assert "nothing is guaranteed to categories never seen" in last.note
        assert model.guaranteed_level_ == min(line.level for line in seen)
        assert_array_equal(model.margin_[-1], model.margin_[1])  # they are as wide as the small ones
        asked = model.predict_interval(X[:4], by=["a", "b", "z", "y"], importance_weight=np.ones(4), as_frame=True)
        found = asked.groupby("row")["guaranteed_level"].first() if "joint" in width else asked["guaranteed_level"]
        assert_array_equal(np.isnan(found), [False, False, True, True])

    def test_the_table_says_where_not_even_a_neuron_is_shared(self):
        model = IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=np.repeat([1, 2], 150))
        assert [line.source for line in model.categories_] == ["own", "own", "none"]
        assert model.guaranteed_level_ == 0.95
        assert model.margin_[-1, 1] == np.abs(Y).max()

    def test_a_column_of_a_sparse_table(self):
        by = np.array([1.0, 2.0] * 150)
        table = np.column_stack([X, by])
        found = [
            IntervalRegressor(Ridge(), width=GroupedWidth(by=3), random_state=0).fit(kind(table), Y).margin_
            for kind in (np.asarray, sparse.csr_array, sparse.coo_array)
        ]
        assert_allclose(found[1:], [found[0]] * 2)

    def test_each_category_has_its_own_neuron(self):
        by = np.where(X[:, 0] > 0, "high", "low")
        y = np.where(by == "high", 10.0, 1.0) * Y
        model = IntervalRegressor(zero, width="grouped").calibrate(X, y, by=by)
        for line, radius in zip(model.categories_[:2], model.margin_[:2], strict=True):
            alone = IntervalRegressor(zero).calibrate(X[by == line.label], y[by == line.label])
            assert_array_equal(radius, alone.margin_)
            assert (line.rows, line.level, line.source) == ((by == line.label).sum(), 0.95, "own")
        bounds = model.predict_interval(X[:2], by=["low", "high"])
        assert_array_equal(bounds[:, 1], above(model.margin_[1::-1, 1]))
        assert model.coverage_range_.shape == (3, 2)

    def test_small_and_unseen_categories_are_pooled(self):
        by = np.repeat(["big", "a", "b"], [250, 25, 25])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = IntervalRegressor(zero, width=GroupedWidth(min_size=30)).calibrate(X, Y, by=by)
        shared = IntervalRegressor(zero).calibrate(X[250:], Y[250:]).margin_
        bounds = model.predict_interval(X[:4], by=["a", "b", "never seen", "big"])
        assert_array_equal(bounds[:3, 1], above(shared[[1, 1, 1]]))
        assert bounds[3, 1] == above(IntervalRegressor(zero).calibrate(X[:250], Y[:250]).margin_[1])
        assert {line.label: line.source for line in model.categories_} == {
            "a": "shared",
            "b": "shared",
            "big": "own",
            "(never seen)": "shared",
        }

    def test_ones_that_a_row_less_makes_small_lend_theirs(self):
        by = np.repeat(["big", "border", "small"], [245, 30, 25])
        model = IntervalRegressor(zero, width=GroupedWidth(min_size=30)).calibrate(X, Y, by=by)
        pool = IntervalRegressor(zero).calibrate(X[245:], Y[245:])
        border = IntervalRegressor(zero).calibrate(X[245:275], Y[245:275])
        for label, other in (("small", pool), ("never seen", pool), ("border", border)):
            assert_array_equal(model.predict_interval(X[:1], by=[label]), other.predict_interval(X[:1]))
            assert_array_equal(model.predict_quantile(X[:1], 0.9, by=[label]), other.predict_quantile(X[:1], 0.9))
        assert [line.source for line in model.categories_] == ["own", "own", "shared", "shared"]

    def test_one_of_too_few_errors_for_a_higher_level_keeps_its_neuron(self):
        by = np.repeat(["big", "middle", "small", "tiny"], [190, 50, 50, 10])
        with pytest.warns(CoverageWarning, match="10 scores of the smaller categories can guarantee 90.9 %, not 95 %"):
            model = IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=by)
        with pytest.warns(CoverageWarning) as caught:
            bounds = model.predict_interval(X[:2], 0.99, by=["small", "tiny"])
        assert_array_equal(bounds[:, 1], above([np.abs(Y[240:290]).max(), np.abs(Y[290:]).max()]))
        assert [str(one.message) for one in caught] == [
            "50 scores of a category (the smallest of 2 such) can guarantee 98 %, not 99 %; 99 are needed.",
            "10 scores of the smaller categories can guarantee 90.9 %, not 99 %; 99 are needed.",
        ]

    @pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
    @pytest.mark.parametrize("tails", TAILS)
    @pytest.mark.parametrize(
        ("cv", "guarantee"),
        [
            (None, "marginal"),
            (None, "approximate"),
            (None, "training-conditional"),
            (4, "marginal"),
            (4, "approximate"),
        ],
    )
    def test_higher_level_is_never_narrower(self, tails, cv, guarantee):
        """One hard category of 12 rows had the largest of its errors at 90 %, and a rank of all small ones at 95 %."""
        rng = np.random.default_rng(0)
        by = np.repeat(np.arange(51), 12)
        X, y = np.zeros((len(by), 1)), rng.normal(size=len(by)) * np.where(by == 0, 100.0, 1.0)
        model = IntervalRegressor(DummyRegressor(), confidence_level=0.9, width="grouped", tails=tails, cv=cv)
        model.set_params(guarantee=guarantee, random_state=0).fit(X, y, by=by)
        levels = [0.3, 0.5, 0.8, 0.9, 0.95, 0.99]
        bounds = model.predict_interval(X[:52], levels, by=np.arange(52))  # one of them never seen
        assert (bounds[:, 0, 1:] <= bounds[:, 0, :-1]).all()
        assert (bounds[:, 1, 1:] >= bounds[:, 1, :-1]).all()
        assert_array_equal(bounds[..., 3], model.predict_interval(X[:52], by=np.arange(52)))

    def test_nothing_is_known_of_unseen_ones_beside_large_ones(self):
        by = np.repeat([1, 2], 150)
        model = IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=by)
        with pytest.warns(CoverageWarning, match=r"by holds a category never seen in calibration \(3\)"):
            bounds = model.predict_interval(X[:2], by=[3, 1])
        assert bounds[0, 1] == above(np.abs(Y).max())

    def test_by_is_a_column_or_a_function(self):
        table = np.column_stack([X[:, 0] > 0, X])
        passed = IntervalRegressor(zero, width="grouped").calibrate(table, Y, by=table[:, 0])
        for by in (0, lambda X: X[:, 0] > 0.5):
            assert_array_equal(
                IntervalRegressor(zero, width=GroupedWidth(by=by)).calibrate(table, Y).margin_, passed.margin_
            )

    def test_missing_labels_are_a_category(self):
        by = np.where(X[:, 0] > 0, 1.0, np.nan)
        model = IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=by)
        assert [line.label for line in model.categories_] == [1.0, None, "(never seen)"]
        objects = np.where(X[:, 0] > 0, "a", None)
        assert model.predict_interval(X[:1], by=[np.nan])[0, 1] == above(model.margin_[1, 1])
        assert len(IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=objects).categories_) == 2 + 1

    def test_folds_rank_each_category_alone(self):
        by = X[:, 0] > 0
        model = IntervalRegressor(Ridge(), width="grouped", cv=KFold(3)).fit(X, Y, by=by)
        plain = IntervalRegressor(Ridge(), cv=KFold(3)).fit(X, Y)
        folds = np.repeat([0, 1, 2], 100)
        magnitudes = np.abs(
            Y - [m.predict(X[[i]])[0] for m, i in zip(np.array(plain.estimator_)[folds], range(300), strict=True)]
        )
        centres = np.array([m.predict(X[:5]) for m in plain.estimator_])[folds]
        for i in range(5):
            mine = by == by[i]
            k = int(np.ceil((mine.sum() + 1) * 0.95))
            expected = np.sort(centres[mine, i] + magnitudes[mine])[k - 1]
            assert_allclose(model.predict_interval(X[:5], by=by[:5])[i, 1], expected)


class TestScaled:
    def test_width_follows_the_errors(self):
        rng = np.random.default_rng(0)
        table = rng.uniform(size=(2000, 2))
        y = rng.normal(size=2000) * np.where(table[:, 0] > 0.5, 5.0, 0.5)
        low, high = np.array([[0.2, 0.5]]), np.array([[0.8, 0.5]])
        for model in (
            IntervalRegressor(zero, width="scaled", random_state=0).calibrate(table, y),
            IntervalRegressor(DummyRegressor(), width="scaled", random_state=0).fit(table, y),
            IntervalRegressor(DummyRegressor(), width=ScaledWidth(Ridge(), power=1), cv=3, random_state=0).fit(
                table, y
            ),
        ):
            width = [np.diff(model.predict_interval(row))[0, 0] for row in (low, high)]
            assert width[1] > 3 * width[0]
            # Targets in another unit give intervals in that unit.
            again = clone(model)
            again = again.calibrate(table, 1e-6 * y) if model.estimator is zero else again.fit(table, 1e-6 * y)
            assert_allclose(again.predict_interval(table), 1e-6 * model.predict_interval(table), rtol=1e-6)

    def test_calibrate_leaves_half_of_the_rows_to_the_neuron(self):
        model = IntervalRegressor(zero, width="scaled", random_state=0).calibrate(X, Y)
        assert model.n_calibration_ == 150
        assert IntervalRegressor(first, width=ScaledWidth("prediction")).calibrate(X, Y).n_calibration_ == 300

    def test_predictions_of_0_have_no_relative_errors(self):
        f = np.where(np.arange(99) % 10 == 3, 0.0, 5.0)[:, None]
        model = IntervalRegressor(first, width=ScaledWidth("prediction", power=1))
        with pytest.warns(CoverageWarning, match="predictions of 0 in 10 rows, the first one row 3"):
            model.calibrate(f, f[:, 0] + 1.0)
        model.set_params(width__power=0).calibrate(f, f[:, 0] + 1.0)

    def test_relative_errors(self):
        f = np.random.default_rng(0).uniform(1, 100, size=(99, 1))
        y = f[:, 0] * np.random.default_rng(1).uniform(0.8, 1.2, size=99)
        model = IntervalRegressor(first, confidence_level=0.9, width=ScaledWidth("prediction", power=1)).calibrate(f, y)
        r = np.sort(np.abs(y / f[:, 0] - 1))[89]
        assert_allclose(model.predict_interval(f), f * [1 - r, 1 + r])
        with pytest.warns(CoverageWarning, match="predictions of 0 in 1 row, the first one row 1"):
            assert np.isfinite(model.predict_interval([[5.0], [0.0]])).all()

    def test_a_perfect_model_has_no_width(self):
        model = IntervalRegressor(first, width="scaled").calibrate(X, X[:, 0])
        assert_array_equal(model.predict_interval(X)[:, 1], X[:, 0])

    def test_scale_must_be_finite(self):
        class Broken(DummyRegressor):
            def predict(self, X):
                return np.full(len(X), np.nan)

        with pytest.raises(ValueError, match="scale contains NaN"):
            IntervalRegressor(zero, width=ScaledWidth(Broken())).calibrate(X, Y)


class TestWeights:
    @pytest.mark.parametrize("tails", ["symmetric", "equal"])
    def test_a_higher_level_is_never_narrower_between_ranks(self, tails):
        levels = np.linspace(0.01, 0.99, 50)
        for seed in range(12):
            rng = np.random.default_rng(seed)
            y, weights = rng.normal(size=25 + 5 * seed), rng.exponential(size=25 + 5 * seed) ** 2 + 1e-3
            model = IntervalRegressor(zero, tails=tails, guarantee="approximate")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CoverageWarning)
                model.calibrate(y[:, None], y, importance_weight=weights)
                found = [model.predict_interval(y[:1, None], levels, importance_weight=w) for w in ([0.5], [4.0], None)]
                quantiles = model.predict_quantile(y[:1, None], levels)
            assert (np.diff(quantiles) >= 0.0).all()
            for bounds in found:
                assert (np.diff(bounds[0], axis=0) >= 0.0).all()
                assert (np.diff(bounds[0, 1] - bounds[0, 0]) >= -1e-12).all()

    def test_no_row_depends_on_the_weights_of_others_between_ranks(self):
        model = IntervalRegressor(zero, guarantee="approximate")
        new = np.array([0.3, 0.3, 0.6])
        for weights in (np.full(300, 0.3), np.random.default_rng(0).exponential(size=300)):
            model.calibrate(X, Y, importance_weight=weights)
            rows = [model.predict_interval(X[i : i + 1], importance_weight=new[i : i + 1])[0] for i in range(3)]
            assert_array_equal(model.predict_interval(X[:3], importance_weight=new), rows)
        plain = IntervalRegressor(zero, guarantee="approximate").calibrate(X, Y).predict_interval(X[:2])
        model.calibrate(X, Y, importance_weight=np.full(300, 0.3))
        assert_array_equal(model.predict_interval(X[:2], importance_weight=new[:2]), plain)

    def test_only_ratios_matter(self):
        weight = np.random.default_rng(0).uniform(0.1, 1, size=300)
        radius = [IntervalRegressor(first).calibrate(X, Y, importance_weight=c * weight).margin_ for c in (1, 1000)]
        assert_array_equal(*radius)
        equal = IntervalRegressor(first).calibrate(X, Y, importance_weight=np.full(300, 0.3))
        assert_array_equal(equal.margin_, IntervalRegressor(first).calibrate(X, Y).margin_)

    def test_radius_is_that_of_weighted_conformal(self):
        rng = np.random.default_rng(0)
        weight, new = rng.uniform(0.1, 1, size=300), rng.uniform(0.1, 3, size=20)
        model = IntervalRegressor(zero, confidence_level=0.9).calibrate(X, Y, importance_weight=weight)
        magnitudes = np.abs(Y)
        order = np.argsort(magnitudes)
        for w, (_, upper) in zip(new, model.predict_interval(X[:20], importance_weight=new), strict=True):
            fraction = np.cumsum(weight[order]) / (weight.sum() + w)
            assert upper == above(magnitudes[order][np.argmax(fraction >= 0.9)])
        assert_allclose(effective_counts(weight).sum(), weight.sum() ** 2 / (weight @ weight))

    def test_zero_removes_a_row(self):
        weight = np.arange(300) % 2
        some = IntervalRegressor(first).calibrate(X, Y, importance_weight=weight)
        assert_array_equal(some.margin_, IntervalRegressor(first).calibrate(X[1::2], Y[1::2]).margin_)

    def test_new_rows_that_weigh_too_much_are_named(self):
        model = IntervalRegressor(first).calibrate(X, Y, importance_weight=np.ones(300))
        with pytest.warns(CoverageWarning, match="importance_weight of 1 of 2 new rows"):
            bounds = model.predict_interval(X[:2], importance_weight=[1, 100])
        assert_allclose(bounds[1, 1] - X[1, 0], np.abs(Y - X[:, 0]).max())

    @pytest.mark.parametrize("tails", TAILS)
    @pytest.mark.parametrize("guarantee", ["marginal", "approximate"])
    def test_all_tails_take_them(self, tails, guarantee):
        weight = np.random.default_rng(0).uniform(0.5, 1, size=300)
        model = IntervalRegressor(first, tails=tails, guarantee=guarantee, y_min=-99, y_max=99)
        model.calibrate(X, Y, importance_weight=weight)
        assert_allclose(
            model.predict_interval(X),
            model.predict_interval(X, importance_weight=np.full(300, (weight @ weight) / weight.sum())),
            rtol=0.3,
        )

    def test_known_shift_is_covered(self):
        # New rows have x near 1, where errors are large; weights are the ratio of densities 2x : 1.
        rng = np.random.default_rng(0)
        plain, weighted = [], []
        for _ in range(200):
            x = rng.uniform(size=200)
            new = np.sqrt(rng.uniform(size=50))
            y, y_new = x * rng.normal(size=200), new * rng.normal(size=50)
            model = IntervalRegressor(zero, confidence_level=0.9)
            bounds = model.calibrate(x[:, None], y).predict_interval(new[:, None])
            plain.append(np.mean(np.abs(y_new) <= bounds[:, 1]))
            bounds = model.calibrate(x[:, None], y, importance_weight=2 * x).predict_interval(
                new[:, None], importance_weight=2 * new
            )
            weighted.append(np.mean(np.abs(y_new) <= bounds[:, 1]))
        assert np.mean(weighted) >= 0.9 - 3 * np.std(weighted) / 200**0.5
        assert np.mean(plain) < 0.88


class TestFrames:
    @pytest.fixture(params=["pandas", "polars"])
    def library(self, request):
        return pytest.importorskip(request.param)

    def table(self, library, n=400):
        rng = np.random.default_rng(0)
        columns = {"a": rng.normal(size=n), "b": rng.normal(size=n), "kind": rng.choice(["x", "y"], n).tolist()}
        columns["b"][:20] = np.nan
        y = columns["a"] + rng.normal(size=n) * np.where(np.array(columns["kind"]) == "x", 5.0, 1.0)
        return library.DataFrame(columns), library.Series(y)

    def model(self, **params):
        numeric = make_pipeline(SimpleImputer(), LinearRegression())

        class Numeric(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                self.model_ = clone(numeric).fit(X[["a", "b"]], y)
                return super().fit(X, y)

            def predict(self, X):
                return self.model_.predict(X[["a", "b"]])

        return IntervalRegressor(Numeric(), random_state=0, **params)

    @pytest.mark.parametrize("width", ["constant", "scaled", GroupedWidth(by="kind")])
    @pytest.mark.parametrize("cv", [None, 3])
    def test_in_and_out(self, library, width, cv):
        X, y = self.table(library)
        model = self.model(width=width, cv=cv).fit(X, y)
        found = model.predict_interval(X, as_frame=True)
        assert isinstance(found, library.DataFrame)
        assert list(found.columns) == ["prediction", "lower", "upper"]
        assert_array_equal(found[["lower", "upper"]].to_numpy(), model.predict_interval(X))
        assert_array_equal(found["prediction"].to_numpy(), model.predict(X))
        wide = np.diff(model.predict_interval(X))[:, 0]
        x = X["kind"].to_numpy() == "x"
        assert (wide[x].mean() > 1.5 * wide[~x].mean()) == (width != "constant")

    def test_long_form(self, library):
        X, y = self.table(library)
        found = self.model().fit(X, y).predict_interval(X, [0.5, 0.9], as_frame=True)
        assert list(found.columns) == ["row", "level", "prediction", "lower", "upper"]
        assert len(found) == 800
        both = IntervalRegressor(lambda X: np.zeros((len(X), 2))).calibrate(X, np.column_stack([y, y]))
        assert list(both.predict_interval(X, as_frame=True).columns) == [
            "row",
            "output",
            "prediction",
            "lower",
            "upper",
        ]

    def test_arrays_give_pandas_and_an_index_stays(self):
        pandas = pytest.importorskip("pandas")
        model = IntervalRegressor(first).calibrate(X, Y)
        assert isinstance(model.predict_interval(X, as_frame=True), pandas.DataFrame)
        named = pandas.DataFrame(X, index=np.arange(300) + 7, columns=list("abc"))
        assert IntervalRegressor(first).calibrate(named, Y).predict_interval(named, as_frame=True).index[0] == 7

    def test_other_columns_are_refused(self, library):
        X, y = self.table(library)
        model = self.model().fit(X, y)
        if not hasattr(model, "feature_names_in_"):
            pytest.skip("scikit-learn before 1.9 knows no names of polars' columns")
        with pytest.raises(ValueError, match="feature names"):
            model.predict_interval(
                X.rename(columns={"a": "c"}) if library.__name__ == "pandas" else X.rename({"a": "c"})
            )
        with pytest.raises(ValueError, match="by='other' is not a column"):
            self.model(width=GroupedWidth(by="other")).fit(X, y)


def outside(X):
    return np.zeros((len(X), 2))


def holes(X):
    return np.where(np.arange(len(X)) == 3, np.nan, 0.0)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"y": Y[:-1]}, "y has 299 rows, but X has 300: give one target for each row of X"),
            ({"y": np.where(np.arange(300) == 5, np.nan, Y)}, "y contains NaN, first in row 5. Leave such rows out"),
            ({"y": np.where(np.arange(300) == 5, np.inf, Y)}, "y contains infinity, first in row 5"),
            ({"y": None}, "y is None"),
            ({"y": np.zeros((300, 2, 2))}, "y must have shape"),
            ({"by": np.zeros(300)}, 'set width="grouped" or leave by out'),
            ({"importance_weight": np.ones(3)}, "importance_weight must hold one weight for each of the 300 rows"),
            ({"importance_weight": -np.ones(300)}, "not negative and not all 0; got -1 to -1"),
            ({"importance_weight": np.zeros(300)}, "not all 0; got 0 to 0"),
            ({"importance_weight": np.full(300, np.nan)}, r"must be finite; importance_weight\[0\] is nan"),
            ({"estimator": outside}, r"shape \(300, 2\) for 300 rows of X; expected \(300,\)"),
            ({"estimator": lambda X: np.zeros(5)}, r"shape \(5,\) for 300 rows"),
            ({"estimator": lambda X: np.full(len(X), "a")}, "need real numbers"),
            ({"estimator": holes}, "prediction contains NaN, first in row 3"),
            ({"estimator": lambda X: np.full(len(X), np.inf)}, "prediction contains infinity, first in row 0"),
            ({"estimator": 3}, "'estimator' parameter"),
            ({"confidence_level": 1.0}, "'confidence_level' parameter"),
            ({"confidence_level": 95}, "'confidence_level' parameter"),
            ({"tails": "both"}, "'tails' parameter"),
            ({"width": "wide"}, "'width' parameter"),
            ({"width": "grouped"}, "by is missing"),
            ({"width": ScaledWidth(power=-1)}, "'power' parameter"),
            ({"width": GroupedWidth(by=9)}, "not the position of a column"),
            ({"width": "grouped", "by": np.zeros(5)}, "by must give one category for each of the 300 rows"),
            ({"width": GroupedWidth(by=0), "by": np.zeros(300)}, "by is given twice"),
            ({"y_min": 3, "y_max": 2}, "y_min must be less than y_max; got y_min=3 and y_max=2"),
            ({"guarantee": "training-conditional", "importance_weight": np.linspace(1, 2, 300)}, "set guarantee="),
        ],
    )  # fmt: skip
    def test_is_refused_and_changes_nothing(self, change, says):
        rows = {
            "X": X,
            "y": Y,
            **{name: value for name, value in change.items() if name in {"y", "by", "importance_weight"}},
        }
        params = {name: value for name, value in change.items() if name not in rows}
        model = IntervalRegressor(first).calibrate(X[:100], Y[:100])
        before = model.predict_interval(X)
        state = {name: value for name, value in vars(model).items() if name.endswith("_") or name.startswith("_")}
        model.set_params(**params)
        with pytest.raises(ValueError, match=says):
            model.calibrate(**rows)
        assert all(vars(model)[name] is value for name, value in state.items())
        model.set_params(**{name: IntervalRegressor(first).get_params()[name] for name in params})
        if not params:
            with pytest.raises(ValueError, match=says):
                model.update(**rows)
        assert_array_equal(model.predict_interval(X), before)

    def test_at_prediction(self):
        model = IntervalRegressor(first).calibrate(X, Y)
        for level in (0.0, 1.0, 95, [], [[0.9]], [0.9, np.nan]):
            with pytest.raises(ValueError, match=r"confidence_level must (lie between 0 and 1|be a level)"):
                model.predict_interval(X, level)
        with pytest.raises(ValueError, match="X has 2 features"):
            model.predict_interval(X[:, :2])
        with pytest.raises(ValueError, match="X has 2 features"):
            model.update(X[:, :2], Y)
        with pytest.raises(ValueError, match="Reshape your data"):
            model.predict(X[0])
        with pytest.raises(ValueError, match="pass it to calibrate, too"):
            model.predict_interval(X, importance_weight=np.ones(300))
        with pytest.raises(ValueError, match="as many outputs"):
            model.update(X, np.column_stack([Y, Y]))

    def test_categories_are_needed_each_time(self):
        by = np.arange(300) % 2
        model = IntervalRegressor(first, width="grouped").calibrate(X, Y, by=by)
        before = model.predict_interval(X, by=by)
        for call in (lambda by: model.predict_interval(X, by=by), lambda by: model.update(X, Y, by=by)):
            with pytest.raises(ValueError, match=r"by is missing: .*Pass by="):
                call(None)
            with pytest.raises(ValueError, match="by must give one category for each of the 300 rows"):
                call(by[:7])
        with pytest.raises(ValueError, match="by is missing"):
            IntervalRegressor(Ridge(), width="grouped").fit(X, Y)
        assert_array_equal(model.predict_interval(X, by=by), before)
        assert model.n_calibration_ == 300

    def test_new_rows_without_an_answer(self):
        model = IntervalRegressor(lambda X: np.log(X[:, 0])).calibrate(np.exp(X), Y)
        before = model.margin_
        beyond = np.vstack([np.exp(X[:1]), np.zeros((1, 3))])
        with np.errstate(divide="ignore"):
            for call in (model.predict, model.predict_interval, lambda rows: model.update(rows, Y[:2])):
                with pytest.raises(
                    ValueError, match=r"prediction contains infinity, first in row 1\..*leave such rows out"
                ):
                    call(beyond)
        assert model.margin_ is before

    def test_unfitted(self):
        for call in ("predict", "predict_interval"):
            with pytest.raises(NotFittedError):
                getattr(IntervalRegressor(Ridge()), call)(X)
        with pytest.raises(NotFittedError):
            IntervalRegressor(Ridge()).update(X, Y)

    def test_set_with_folds(self):
        with pytest.raises(ValueError, match="set cv=None"):
            IntervalRegressor(Ridge(), cv=3, guarantee="training-conditional").fit(X, Y)

    def test_one_group_cannot_be_split(self):
        with pytest.raises(ValueError, match="groups has a single group, but this width needs rows of another one"):
            IntervalRegressor(first, width="scaled").calibrate(X, Y, groups=np.zeros(300))

    def test_folds_that_leave_nothing_out(self):
        with pytest.raises(ValueError, match="leaves no row out of training"):
            IntervalRegressor(Ridge(), cv=[(np.arange(300), np.arange(0))]).fit(X, Y)

    def test_failed_fit_changes_nothing(self):
        model = IntervalRegressor(Ridge(), random_state=0).fit(X, Y)
        before = model.predict_interval(X)
        with pytest.raises(ValueError, match="y contains NaN"):
            model.fit(X[:, :2], np.full(300, np.nan))
        assert_array_equal(model.predict_interval(X), before)


def test_guarantees_of_ranks():
    assert rank_guarantee(0, 0.9).rank == 0
    assert IntervalRegressor(Ridge(), cv=5, confidence_level=0.9).fit(X, Y).guaranteed_level_ == 0.8 - (2 / 300) ** 0.5


@pytest.mark.parametrize(
    "y", [np.arange(40).astype("datetime64[s]"), np.arange(40).astype("timedelta64[s]"), np.arange(40).astype(str)]
)
def test_targets_that_are_no_numbers_are_refused(y):
    with pytest.raises(ValueError, match=r"^y must hold real numbers, one for each row; got dtype .*use SetClassifier"):
        IntervalRegressor(lambda X: np.zeros(len(X))).calibrate(np.zeros((40, 1)), y)


def test_masked_targets_are_missing():
    y = np.ma.MaskedArray(np.arange(40.0), mask=np.arange(40) == 7)
    with pytest.raises(ValueError, match="y contains NaN, first in row 7"):
        IntervalRegressor(lambda X: np.zeros(len(X))).calibrate(np.zeros((40, 1)), y)


def test_the_column_of_categories_may_be_numbered():
    pandas = pytest.importorskip("pandas")
    X, y = np.arange(80.0)[:, None] % 2, np.arange(80.0)
    model = IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.8, width=GroupedWidth(by=0))
    bounds = model.calibrate(pandas.DataFrame(X), y).predict_interval(pandas.DataFrame(X))
    assert_array_equal(bounds, clone(model).calibrate(X, y).predict_interval(X))


@pytest.mark.parametrize("width", ["constant", "scaled", "grouped", "local", "quantile", "auto"])
def test_masked_features_are_missing(width):
    x = np.arange(80.0)
    masked = np.ma.MaskedArray(np.where(x == 7, -1e6, x)[:, None], mask=(x == 7)[:, None])
    gaps = np.where(x == 7, np.nan, x)[:, None]
    by = {"by": x % 2} if width == "grouped" else {}

    def seen(X):
        assert np.isnan(np.asarray(X)).sum() <= 1
        return np.where(np.asarray(X)[:, 0] == -1e6, 1e9, 0.0)

    model, plain = (IntervalRegressor(seen, confidence_level=0.8, width=width, random_state=0) for _ in range(2))
    model.calibrate(masked, x, **by)
    plain.calibrate(gaps, x, **by)
    assert_array_equal(model.predict_interval(masked, **by), plain.predict_interval(gaps, **by))
    with pytest.raises(ValueError, match="X contains NaN"):
        IntervalRegressor(Ridge()).fit(masked, x)


@pytest.mark.parametrize("unit", [1.7e308, 5e-324])
def test_weights_beyond_all_measure_are_refused(unit):
    with pytest.raises(ValueError, match=r"importance_weight must be 0 or from 1e-100 to 1e\+100.*divide by the mean"):
        IntervalRegressor(zero).calibrate(X, Y, importance_weight=np.full(300, unit))


def test_a_fraction_beyond_all_errors_is_whole():
    tiny = IntervalRegressor(lambda X: np.full(len(X), 1e-300), width=ScaledWidth("prediction", power=1))
    model = tiny.calibrate(X, Y * 1e-300)
    assert model.predict_cdf(X[:2], 1e308).tolist() == [300.5 / 301] * 2


def test_means_of_folds_that_are_no_numbers_are_refused():
    model = IntervalRegressor(DummyRegressor(), cv=2).fit(X, np.linspace(0.0, 1.0, 300))
    for one in model.estimator_:
        one.constant_[:] = 1.7e308
    with pytest.raises(ValueError, match="prediction contains infinity"):
        model.predict_interval(X)


@pytest.mark.parametrize("model", [IntervalRegressor(Ridge()), SetClassifier(LogisticRegression())])
def test_columns_with_numbers_for_names_keep_their_order(model):
    """scikit-learn compares names that are words alone."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X)
    model.fit(frame, (Y > 0).astype(int))
    model.predict(frame)
    with pytest.raises(ValueError, match=r"X has columns \[2, 1, 0\], but they were \[0, 1, 2\] before"):
        model.predict(frame[[2, 1, 0]])


def test_tables_of_arrow_have_names_beside_their_columns():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": X[:, 0], "b": X[:, 1]})
    model = IntervalRegressor(lambda table: np.asarray(table["a"])).calibrate(table, Y)
    assert model.predict_interval(table).shape == (300, 2)
    with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\]|feature names should match"):
        model.predict_interval(table.select(["b", "a"]))


def test_a_column_may_have_any_name():
    pandas = pytest.importorskip("pandas")
    model = IntervalRegressor(first).calibrate(pandas.DataFrame(X, columns=["_mask", "data", "shape"]), Y)
    assert_array_equal(model.margin_, IntervalRegressor(first).calibrate(X, Y).margin_)


@pytest.mark.parametrize("cv", [None, 2])
def test_bounds_beyond_all_floats_are_refused(cv):
    model = IntervalRegressor(DummyRegressor(), cv=cv).fit(X, 1e306 * np.sin(np.arange(300.0)))
    assert np.isfinite(model.predict_interval(X)).all()
    for i, one in enumerate([model.estimator_] if cv is None else model.estimator_):
        one.constant_[:] = 0.0 if i else np.finfo(float).max
    with pytest.raises(ValueError, match=r"an interval goes beyond all floats.*Use a larger unit for y"):
        model.predict_interval(X)


def test_no_rows_at_all_are_refused():
    model = IntervalRegressor(zero).calibrate(X, Y)
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\)"):
        model.predict_interval([])


def test_boolean_targets_look_like_classes():
    X = np.random.default_rng(0).uniform(size=(100, 1))
    with pytest.warns(UserWarning, match="y is boolean, taken for 0 and 1; for classes use SetClassifier") as caught:
        IntervalRegressor(lambda X: X[:, 0]).calibrate(X, X[:, 0] > 0.5)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("made", [IntervalRegressor(Ridge()), SetClassifier(LogisticRegression())])
def test_what_is_not_fitted_names_calibrate_too(made):
    ask = made.predict_interval if isinstance(made, IntervalRegressor) else made.predict_set
    with pytest.raises(
        NotFittedError, match=f"This {type(made).__name__} instance .*'fit', or 'calibrate' for a model"
    ):
        ask([[1.0]])


def test_the_name_of_a_column_is_not_a_category_of_each_row():
    X = pd.DataFrame({"x": np.arange(40.0), "shop": ["a", "b"] * 20})
    regressor = IntervalRegressor(lambda X: X["x"].to_numpy(), width="grouped")
    with pytest.raises(ValueError, match=r"got 'shop'\. For a column of X use GroupedWidth\(by='shop'\)"):
        regressor.calibrate(X, np.arange(40.0), by="shop")


@pytest.mark.parametrize("made", [IntervalRegressor(Ridge()), SetClassifier(LogisticRegression())])
def test_targets_in_another_order_than_rows_are_refused(made):
    frame, target = pd.DataFrame(X), pd.Series((Y > 0).astype(int))
    for act in (made.fit, clone(made).set_params(estimator=FrozenEstimator(made.fit(X, target).estimator_)).calibrate):
        with pytest.raises(ValueError, match=r"X and y have the same index in another order.*y\.loc\[X\.index\]"):
            act(frame, target[::-1])
        act(frame, target[::-1].to_numpy())
        act(frame, target.set_axis(target.index + 1000))  # other labels tell nothing


@pytest.mark.parametrize("made", [IntervalRegressor(Ridge()), SetClassifier(LogisticRegression())])
def test_lazy_tables_are_to_be_collected(made):
    lazy = pytest.importorskip("polars").LazyFrame({"a": X[:, 0]})
    with pytest.raises(TypeError, match=r"X is a LazyFrame.* Give X\.collect\(\)"):
        made.fit(lazy, Y > 0)
    with pytest.raises(TypeError, match=r"X is a LazyFrame"):
        made.fit(X, (Y > 0).astype(int)).predict(lazy)


def test_classifiers_have_no_residuals():
    for act in (
        IntervalRegressor(LogisticRegression()).fit,
        IntervalRegressor(FrozenEstimator(LogisticRegression().fit(X, Y > 0))).calibrate,
    ):
        with pytest.raises(ValueError, match=r"is a classifier; expected a regressor\. For sets of classes use SetC"):
            act(X, Y)


@pytest.mark.parametrize("level", [95, "95%", 1.0])
def test_levels_in_per_cent_are_told_what_to_write(level):
    with pytest.raises(ValueError, match=rf"in the range \(0\.0, 1\.0\), such as 0\.95 for 95 %\. Got {level!r}"):
        IntervalRegressor(first, confidence_level=level).calibrate(X, Y)


def test_a_calibration_without_its_model_takes_predictions():
    there = IntervalRegressor.from_json(IntervalRegressor(first).calibrate(X, Y).to_json())
    with pytest.raises(ValueError, match=r"\(300, 3\) for 300 rows of X; .* \(from_json\) takes predictions as X"):
        there.predict_interval(X)
