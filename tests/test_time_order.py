"""Rows in the order of time: those to come are judged by rows that came after those that a model was trained on."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from pimeter import CoverageWarning, IntervalRegressor, IntervalShape, SetClassifier, Width
from pimeter.conformal.estimator import rows_to_come

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(100, 2)), RNG.normal(size=100)
LABELS = (X[:, 0] + Y > 0).astype(int)


def autoregressive(n, rng, factor=0.7):
    return lfilter([1.0], [1.0, -factor], rng.normal(size=n + 100))[100:]


class TestCoverageOfRowsToCome:
    """500 rows of an AR(.7) series calibrate neighbours in time, the next 100 are predicted; 40 series.

    Shuffled rows are predicted from the rows right before and after them: intervals covered .6 at .9. The standard
    deviation of the mean coverage of 40 series is .013 or less (measured on 60).
    """

    settings = pytest.mark.parametrize(
        "settings", [{"shuffle": False}, {"cv": TimeSeriesSplit(5)}, {"cv": 5, "shuffle": False}], ids=str
    )

    @staticmethod
    def of_series(settings):
        covered = []
        for seed in range(40):
            y = autoregressive(600, np.random.default_rng(seed))
            time = np.arange(600.0)[:, None]
            model = IntervalRegressor(KNeighborsRegressor(3), confidence_level=0.9, random_state=0, **settings)
            lower, upper = model.fit(time[:500], y[:500]).predict_interval(time[500:]).T
            covered.append(np.mean((lower <= y[500:]) & (y[500:] <= upper)))
        return np.mean(covered)

    def test_of_shuffled_rows_is_far_too_low(self):
        assert self.of_series({}) < 0.75

    @settings
    def test_of_rows_in_order(self, settings):
        assert self.of_series(settings) > 0.9 - 3 * 0.013

    @settings
    def test_of_sets(self, settings):
        """The class is the sign of such a series: shuffled .7, at .9."""
        covered = {False: [], True: []}
        for seed in range(30):
            y = (autoregressive(600, np.random.default_rng(seed), 0.9) > 0).astype(int)
            time = np.arange(600.0)[:, None]
            for is_ordered, own in covered.items():
                model = SetClassifier(
                    KNeighborsClassifier(5), confidence_level=0.9, random_state=0, **(settings if is_ordered else {})
                )
                found = model.fit(time[:500], y[:500]).predict_set(time[500:])
                own.append(found[np.arange(100), y[500:]].mean())
        assert np.mean(covered[False]) < 0.8
        assert np.mean(covered[True]) > 0.85


class TestLastRows:
    def test_the_last_20_percent_calibrate(self):
        model = IntervalRegressor(LinearRegression(), confidence_level=0.8, shuffle=False).fit(X, Y)
        trained = LinearRegression().fit(X[:80], Y[:80])
        assert_allclose(model.estimator_.coef_, trained.coef_)
        assert_allclose(model.margin_[1], np.sort(np.abs(Y[80:] - trained.predict(X[80:])))[16])  # ceil(21 * .8) = 17
        assert model.n_calibration_ == 20

    def test_nothing_is_guaranteed(self):
        for model in (
            IntervalRegressor(LinearRegression(), shuffle=False).fit(X, Y),
            IntervalRegressor(LinearRegression(), shuffle=False, cv=5).fit(X, Y),
            IntervalRegressor(LinearRegression(), cv=TimeSeriesSplit(4)).fit(X, Y),
            IntervalRegressor(lambda X: X[:, 0], shuffle=False).calibrate(X, Y),
            SetClassifier(LogisticRegression(), shuffle=False).fit(X, LABELS),
            SetClassifier(LogisticRegression(), shuffle=False, cv=5).fit(X, LABELS),
            SetClassifier(LogisticRegression(), cv=TimeSeriesSplit(4)).fit(X, LABELS),
        ):
            assert np.isnan([model.guaranteed_level_, *model.coverage_range_]).all()

    def test_an_integer_makes_folds_of_rows_that_follow_each_other(self):
        ordered, given = (
            IntervalRegressor(LinearRegression(), **settings).fit(X, Y).predict_interval(X)
            for settings in ({"cv": 5, "shuffle": False}, {"cv": KFold(5)})
        )
        assert_array_equal(ordered, given)

    @pytest.mark.filterwarnings("ignore:4 scores, one for each group, can guarantee nothing")
    def test_groups_are_not_divided(self):
        with pytest.raises(ValueError, match=r"A split divides the rows of 1 group.*shuffle=False"):
            IntervalRegressor(LinearRegression(), shuffle=False).fit(X, Y, groups=np.arange(100) // 7)
        model = IntervalRegressor(LinearRegression(), shuffle=False).fit(X, Y, groups=np.arange(100) // 5)
        assert model.n_calibration_ == 20

    def test_a_width_learns_on_the_first_half(self):
        class Seen(Width):
            def fit(self, X, prediction, residuals, **wanted):
                self.rows_ = X
                return self

            def shape(self, X, prediction):
                return IntervalShape()

        model = IntervalRegressor(lambda X: X[:, 0], width=Seen(), shuffle=False).calibrate(X, Y)
        assert_array_equal(model.width_.rows_, X[:50])
        assert model.n_calibration_ == 50
        assert model.margin_[0] == np.sort(np.abs(Y[50:] - X[50:, 0]))[48]

    def test_widths_see_errors_of_folds_in_order(self):
        """The first column is time: no fold leaves out rows with others between them."""

        class Between(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                self.times_ = set(X[:, 0])
                return super().fit(X, y)

            def predict(self, X):
                assert np.ptp(X[:, 0]) == len(X) - 1
                assert not self.times_ & set(X[:, 0])
                return super().predict(X)

        time = np.column_stack([np.arange(100), np.arange(100)])
        IntervalRegressor(Between(), width="scaled", shuffle=False).fit(time, Y)

    def test_sets_choose_penalties_on_the_first_rows(self):
        model = SetClassifier(KNeighborsClassifier(3), conformity_score="raps", shuffle=False).fit(X, LABELS)
        trained = KNeighborsClassifier(3).fit(X[4:80], LABELS[4:80])  # 4 tune, 20 of the other 96 calibrate
        assert model.n_calibration_ == 20
        assert_array_equal(model.estimator_.predict_proba(X), trained.predict_proba(X))


class TestSplitsOfThePast:
    def test_rows_are_judged_by_models_of_their_past(self):
        model = IntervalRegressor(LinearRegression(), confidence_level=0.8, cv=TimeSeriesSplit(4)).fit(X, Y)
        errors = []
        for past, rows in TimeSeriesSplit(4).split(X):
            errors += np.abs(Y[rows] - LinearRegression().fit(X[past], Y[past]).predict(X[rows])).tolist()
        assert model.n_calibration_ == 80
        assert_allclose(model.margin_[1], np.sort(errors)[64])  # ceil(81 * .8) = 65
        assert_allclose(model.estimator_.coef_, LinearRegression().fit(X, Y).coef_)
        assert_allclose(model.predict(X), model.estimator_.predict(X))

    def test_a_window_that_moves_trains_the_last_model_too(self):
        cv = TimeSeriesSplit(4, max_train_size=30, gap=2)
        model = IntervalRegressor(LinearRegression(), cv=cv).fit(X, Y)
        assert_allclose(model.estimator_.coef_, LinearRegression().fit(X[70:], Y[70:]).coef_)

    @pytest.mark.parametrize("width", ["scaled", "quantile"])
    def test_widths_learn_from_all_rows(self, width):
        model = IntervalRegressor(LinearRegression(), width=width, cv=TimeSeriesSplit(3), random_state=0).fit(X, Y)
        assert np.isfinite(model.predict_interval(X)).all()
        assert not isinstance(model.width_, list)

    def test_update_and_calibrate_go_on_with_the_last_model(self):
        model = IntervalRegressor(LinearRegression(), cv=TimeSeriesSplit(4)).fit(X, Y)
        model.update(X[:5] + 1.0, Y[:5])
        assert model.n_calibration_ == 85
        assert np.isnan(model.guaranteed_level_)
        assert model.calibrate(X + 1.0, Y).n_calibration_ == 100
        assert model.guaranteed_level_ == 0.95

    def test_parameters_of_fit_get_to_the_last_model(self):
        weight = np.where(np.arange(100) < 99, 1e-9, 1.0)
        model = IntervalRegressor(DummyRegressor(), cv=TimeSeriesSplit(4)).fit(X, Y, sample_weight=weight)
        assert_allclose(model.predict(X[:1]), Y[-1], rtol=1e-4)

    def test_sets_of_the_future(self):
        model = SetClassifier(LogisticRegression(), confidence_level=0.8, cv=TimeSeriesSplit(4)).fit(X, LABELS)
        scores = []
        for past, rows in TimeSeriesSplit(4).split(X):
            found = LogisticRegression().fit(X[past], LABELS[past]).predict_proba(X[rows])
            scores += (1.0 - found[np.arange(len(rows)), LABELS[rows]]).tolist()
        assert_allclose(model.limit_, np.sort(scores)[64])
        assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X, LABELS).coef_)
        by = np.arange(100) % 2
        grouped = SetClassifier(LogisticRegression(), cv=TimeSeriesSplit(4)).fit(X, LABELS, by=by)
        assert [line.rows for line in grouped.categories_] == [40, 40]

    @pytest.mark.parametrize(
        ("splits", "expected"),
        [
            ([([0, 1], [2]), ([0, 1, 2], [3])], [0, 1, 2, 3, 4]),
            ([([0], [1, 2]), ([1, 2], [3, 4])], [3, 4]),  # a window of two rows
            ([([1, 2], [3, 4]), ([0, 1, 2], [3, 4])], None),  # rows left out twice
            ([([0, 1], [2]), ([0, 2], [1])], None),
            ([([0, 1], [2])], None),  # one split is a split
            ([([], [2]), ([0, 2], [3])], None),
        ],
    )
    def test_which_splits_are_of_the_past(self, splits, expected):
        given = [(np.array(rows, int), np.array(others)) for rows, others in splits]
        found = rows_to_come(given, np.arange(5))
        assert (found if expected is None else found.tolist()) == expected


DAYS = pd.date_range("2024-01-01", periods=100)


class TestDates:
    @pytest.mark.parametrize(
        ("table", "y", "where"),
        [
            (pd.DataFrame(X, index=DAYS), Y, "the index of X"),
            (pd.DataFrame(X, index=DAYS.tz_localize("UTC")), Y, "the index of X"),
            (pd.DataFrame(X, index=DAYS.to_period()), Y, "the index of X"),
            (pd.DataFrame(X, index=DAYS.repeat(2)[:100]), Y, "the index of X"),
            (X, pd.Series(Y, index=DAYS), "the index of y"),
            (pl.DataFrame({"x": X[:, 0], "day": DAYS.to_numpy()}), Y, "column 'day'"),
            (pd.DataFrame({"x": X[:, 0], "day": DAYS}), Y, "column 'day'"),
        ],
    )
    @pytest.mark.parametrize("cv", [None, 5])
    def test_shuffling_rows_in_the_order_of_their_dates_is_said(self, table, y, where, cv):
        with pytest.warns(CoverageWarning, match=rf"order of their dates \({where}\), and fit shuffles.*shuffle=False"):
            IntervalRegressor(DummyRegressor(), cv=cv).fit(table, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            IntervalRegressor(DummyRegressor(), cv=cv, shuffle=False).fit(table, y)

    def test_sets_say_it_too(self):
        with pytest.warns(CoverageWarning, match="order of their dates"):
            SetClassifier(LogisticRegression()).fit(pd.DataFrame(X, index=DAYS), LABELS)

    @pytest.mark.parametrize(
        ("table", "settings", "groups"),
        [
            (pd.DataFrame(X, index=DAYS[::-1]), {}, None),
            (pd.DataFrame(X, index=RNG.permutation(DAYS)), {}, None),
            (pd.DataFrame(X, index=[DAYS[0]] * 100), {}, None),  # one day
            (pd.DataFrame(X), {}, None),
            (pd.DataFrame(X, index=DAYS), {"cv": TimeSeriesSplit(3)}, None),
            (pd.DataFrame(X, index=DAYS), {"cv": KFold(5, shuffle=True)}, None),  # asked for
            (pd.DataFrame(X, index=DAYS), {"cv": 5}, np.arange(100) // 5),
            (pl.DataFrame({"day": [None, *DAYS.to_pydatetime()[1:]]}), {}, None),
        ],
    )
    def test_nothing_is_said_otherwise(self, table, settings, groups):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            IntervalRegressor(DummyRegressor(), **settings).fit(table, Y, groups=groups)

    def test_few_rows_may_be_in_order_by_chance(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            IntervalRegressor(DummyRegressor(), confidence_level=0.5).fit(pd.DataFrame(X[:9], index=DAYS[:9]), Y[:9])
