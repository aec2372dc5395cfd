"""Copies of rows: which rows are equal, when chance explains it, and what is guaranteed with and without them."""

from __future__ import annotations

import warnings
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from benchmarks.designs import CONTINUOUS, DISCRETE, LIMIT, overwritten, sine
from pimeter import (
    CoverageWarning,
    IntervalRegressor,
    Measurement,
    SetClassifier,
    duplicate_groups,
    measure,
    scorecard,
)
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.duplicates import copies
from pimeter.evaluation import lazy_rows
from pimeter.evaluation.diagnosis.evidence import equal_rows
from pimeter.row_hashes import row_keys

MAGNITUDES = (100, 1000)


def is_found(X, y):
    return copies(row_keys(X, y), X, y).n > 0


class TestGroups:
    def test_of_numbers(self):
        X = np.array([[0.0, np.nan], [-0.0, -np.nan], [1.0, 2.0], [1.0, 2.0 + 1e-15]])
        assert duplicate_groups(X).tolist() == [0, 0, 1, 2]
        assert duplicate_groups(X, [1, 2, 3, 3]).tolist() == [0, 1, 2, 3]
        assert duplicate_groups(X[:3], [[1, 2], [1.0, 2], [1, 2]]).tolist() == [0, 0, 1]

    def test_large_integers_differ(self):
        X = np.array([2**53, 2**53 + 1, 2**53 + 1, -(2**62) - 1, -(2**62)])
        assert duplicate_groups(X).tolist() == [0, 1, 1, 2, 3]
        assert duplicate_groups(np.array([2**64 - 1, 2**64 - 2, 5, 5], np.uint64)).tolist() == [0, 1, 2, 2]

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
    def test_of_frames(self, library):
        frame = {
            "number": [1.5, 1.5, 1.5, 1.5, 1.5],
            "word": ["a", "a", None, None, "a"],
            "day": [date(2020, 1, 1), date(2020, 1, 1), None, None, date(2020, 1, 2)],
        }
        table = library(frame)
        assert duplicate_groups(table, [1, 1, 1, 1, 1]).tolist() == [0, 0, 1, 1, 2]
        kind = "category" if library is pd.DataFrame else pl.Categorical
        words = table["word"].astype(kind) if library is pd.DataFrame else table["word"].cast(kind)
        assert duplicate_groups(library({"word": words})).tolist() == [0, 0, 1, 1, 0]

    def test_is_the_same_for_all_kinds_of_tables(self):
        rng = np.random.default_rng(0)
        X = rng.integers(3, size=(500, 4)) * (rng.random((500, 4)) < 0.6)
        expected = pd.factorize(pd.Series(list(map(tuple, X.tolist()))))[0]
        given = [X, X.astype(np.float32), X.tolist(), X.astype(object), pd.DataFrame(X), pl.DataFrame(X)]
        for table in (
            *given,
            sparse.csr_array(X),
            sparse.csc_matrix(X),
            sparse.coo_array(X),
            X.reshape(500, 2, 2),
            pd.DataFrame(X, columns=[*"aabb"]),
        ):
            assert_array_equal(duplicate_groups(table), expected)

    def test_a_sparse_matrix_is_left_as_it_is(self):
        entries = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
        assert duplicate_groups(entries).tolist() == [0, 1]
        assert entries.nnz == 3

    def test_of_texts_and_objects(self):
        assert duplicate_groups(["one text", "another", "one text"]).tolist() == [0, 1, 0]
        odd = np.empty(4, object)
        odd[:] = [[1, 2], {"a": 1}, [1, 2], None]
        assert duplicate_groups(odd).tolist() == [0, 1, 0, 2]
        assert duplicate_groups(np.array([1, True, "1", 1.0], object)).tolist() == [0, 0, 1, 0]

    def test_of_large_integers(self):
        """The bits of 1.0 are 4607182418800017408, 2**53 + 1 is no float, and -2**60 wraps to a large integer."""
        assert duplicate_groups(np.array([[4607182418800017408], [1], [2**60], [2**60 + 1]])).tolist() == [0, 1, 2, 3]
        large = [2**53, 2**53 + 1, -(2**53) - 1, -(2**60) - 1, 2**64 - 2**60 - 1, 2**63, 10**400, 10**400 + 1]
        for dtype in (object, "Int64"):
            some = [n for n in large if n < 2**63] if dtype == "Int64" else large
            found = duplicate_groups(pd.DataFrame({"a": pd.array([*some, None, *some], dtype=dtype)}))
            assert found.tolist() == [*range(len(some) + 1), *range(len(some))]
        equal = np.array([2**60, float(2**60), 2**70, 2.0**70, np.uint64(2**63), 2.0**63], object)
        assert duplicate_groups(equal).tolist() == [0, 0, 1, 1, 2, 2]
        assert_array_equal(row_keys(np.array([[2**53 + 1]])), row_keys(np.array([[2**53 + 1]], object)))
        assert duplicate_groups(np.array([Fraction(10**400), Fraction(10**400), 1], object)).tolist() == [0, 0, 1]

    def test_of_long_arrays_in_a_column(self):
        long = np.zeros((3, 3000))
        long[1, 1500] = 1.0
        held = np.empty(5, object)
        held[:] = [*long, [long[0]], [long[1]]]
        assert duplicate_groups(held).tolist() == [0, 1, 0, 2, 3]

    def test_many_rows_are_hashed_in_blocks(self):
        X = np.arange(100_000) % 70_000
        assert_array_equal(duplicate_groups(X[:, None], X), X)

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            (np.zeros((0, 2)), None, "X has no rows or no columns"),
            (np.zeros((2, 0)), None, "X has no rows or no columns"),
            (pd.DataFrame(), None, "X has no rows or no columns"),
            (3.0, None, "X must have rows, but it is a float"),
            (np.zeros((3, 1)), [1, 2], r"y has shape \(2,\), but X has 3 rows"),
            (np.zeros((3, 1)), 1.0, r"y has shape \(\), but X has 3 rows"),
            ([[1, 2], [3]], None, "X holds rows of unequal length"),
        ],
    )
    def test_what_is_refused(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            duplicate_groups(X, y)


@pytest.mark.parametrize("name", sorted(set(DISCRETE) - {LIMIT}))
def test_chance_raises_no_alarm(name):
    """At a rate of 5 % more than 3 of 20 alarms have a probability of 1.6 %; the benchmark draws thousands."""
    found = [is_found(*DISCRETE[name](n, np.random.default_rng([n, i]))) for n in MAGNITUDES for i in range(10)]
    assert sum(found) <= 3


FRAMES = {
    "frame": lambda n, rng: (
        pd.DataFrame({"word": rng.choice(["a", "b"], n), "number": rng.normal(size=n)}).astype({"word": "category"}),
        rng.choice(["yes", "no"], n),
    ),
    "time": lambda n, rng: (
        np.datetime64("2020-01-01") + (1e12 * rng.random((n, 1))).astype("timedelta64[us]"),
        rng.integers(2, size=n),
    ),
    "sparse": lambda n, rng: (
        sparse.random_array((n, 100), density=0.2, random_state=rng, format="csr"),
        rng.integers(2, size=n),
    ),
}


@pytest.mark.parametrize("name", [*CONTINUOUS, *FRAMES])
@pytest.mark.parametrize("n", [*MAGNITUDES, 120_000])
def test_five_per_cent_of_copies_are_always_found(name, n):
    for i in range(1 if n > 1000 else 10):
        rng = np.random.default_rng([n, i])
        X, y = (CONTINUOUS | FRAMES)[name](n, rng)
        assert not is_found(X, y)
        rows = overwritten(n, rng)
        X, y = X.iloc[rows] if hasattr(X, "iloc") else X[rows], y[rows]
        found = copies(row_keys(X, y), X, y).n
        # A number in single precision may be that of another row by chance: of such no copies are counted.
        assert 0.99 * round(0.05 * n) <= found <= round(0.05 * n)


def weather(n, rng):
    X = [np.arange(n), rng.normal(15, 8, n).round(1), rng.integers(30, 90, n), rng.exponential(4, n).round(1)]
    return np.column_stack(X), rng.integers(50, size=n)


def test_the_number_of_a_row_hides_no_copies():
    """Times repeat with whole rows alone, and more rarely than random ones: 90 % intervals covered .52."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = weather(600, rng)
        assert not is_found(X, y)
        rows = overwritten(600, rng)
        assert copies(row_keys(X[rows], y[rows]), X[rows], y[rows]).n == 30
        rows = rng.permutation(np.repeat(np.arange(200), 3))
        assert copies(row_keys(X[rows], y[rows]), X[rows], y[rows]).n == 400


@pytest.mark.parametrize("n_copied", [1, 2])
@pytest.mark.parametrize(("n", "times"), [(180, 40), (20, 2), (40, 2)])
def test_few_continuous_rows_with_copies_are_found(n, times, n_copied):
    for seed in range(5):
        X, y = sine(n, np.random.default_rng(seed))
        assert not is_found(X, y)
        rows = np.arange(n)
        rows[n_copied : n_copied * times] = np.repeat(np.arange(n_copied), times - 1)
        X, y = X[rows], y[rows]
        assert copies(row_keys(X, y), X, y).n == n_copied * (times - 1)
        found = measure(y, X[:, 0]).diagnosis["copies"]
        assert found.value == n_copied * (times - 1)


def test_dry_days_are_no_copies():
    """Zeros, and bounds that several rows have, are equal by chance in all columns."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(200, 1)), 0.0, 1.0)
    assert not is_found(X, X[:, 0] * np.sqrt(2.0))


@pytest.mark.parametrize("missing", [0.0, np.nan])
def test_rows_with_a_common_value_are_not_counted(missing):
    """Half of the rows have no number, and are equal by chance."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2, size=1000), np.where(np.arange(1000) < 500, missing, rng.normal(size=1000))])
    rows = np.arange(1000)
    rows[-25:] = rows[500:525]
    found = copies(row_keys(X[rows]), X[rows], None)
    assert found.n == 25
    assert found.n_equal == 25 + 498
    assert found.factor == pytest.approx(np.sqrt(1.0 + 50 / 1000))


def test_each_row_three_times_is_found_and_says_how_much_it_matters():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(100, 2)), 3, axis=0), np.repeat(rng.normal(size=100), 3)
    found = copies(row_keys(X, y), X, y)
    assert (found.n, found.n_equal, found.n_rows) == (200, 200, 300)
    assert found.factor == pytest.approx(np.sqrt(3.0))
    within = np.repeat(np.arange(100), 3)
    assert copies(row_keys(X, y), X, y, within).n == 0
    assert copies(row_keys(X, y), X, y, np.arange(300) % 3).n == 200


def coverage(model, rng):
    X, y = sine(2000, rng)
    lower, upper = model.predict_interval(X).T
    return np.mean((lower <= y) & (y <= upper))


class TestRegressor:
    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize("estimator", [DecisionTreeRegressor(random_state=0), KNeighborsRegressor(1)])
    def test_groups_of_copies_restore_coverage(self, estimator, cv):
        """Each row three times: 1-NN covered .01 and a tree .34 at .9, with a guarantee of .69 (cv=5) or .9."""
        bare, grouped = [], []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X, y = (np.repeat(part, 3, axis=0) for part in sine(120, rng))
            model = IntervalRegressor(estimator, confidence_level=0.9, cv=cv, random_state=seed)
            with pytest.warns(CoverageWarning, match=r"240 of 360 rows are copies of others.*duplicate_groups\(X, y\)"):
                model.fit(X, y)
            assert np.isnan([model.guaranteed_level_, *model.coverage_range_]).all()
            assert not model.guaranteed_
            bare.append(coverage(model, rng))
            model.fit(X, y, groups=duplicate_groups(X, y))
            assert model.n_calibration_ == (120 if cv else 24)
            assert model.guaranteed_level_ == pytest.approx(0.9 if cv is None else 0.8 - np.sqrt(2 / 120))
            grouped.append(coverage(model, rng))
        assert np.mean(bare) < 0.6
        # Six sets of 24 rows: the standard deviation of their mean coverage is sqrt(.9 * .1 / 26 / 6) = .024.
        assert np.mean(grouped) > 0.9 - 3 * 0.024

    def test_ranges_of_calibration_sets_are_stated_for_distinct_rows(self):
        """Each row three times: the range held in 56 of 100 sets instead of 90, for 1,000 rows that are 333."""
        rng = np.random.default_rng(1)
        held, void = [], []
        for _ in range(200):
            y = np.repeat(rng.normal(size=50), 3)
            X = np.repeat(rng.normal(size=(50, 1)), 3, axis=0)
            model = IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.8)
            with pytest.warns(
                CoverageWarning, match="100 of 150 rows are copies of others.*count for less than their num"
            ):
                model.calibrate(X, y)
            void.append(np.isnan(model.guaranteed_level_))
            model.calibrate(X, y, groups=duplicate_groups(X, y))
            true = 2 * ndtr(model.margin_[1]) - 1
            held.append(model.coverage_range_[0] <= true <= model.coverage_range_[1])
        assert all(void)
        assert model.n_calibration_ == 50
        assert abs(np.mean(held) - 0.9) < 3 * np.sqrt(0.09 / 200)

    def test_discrete_rows_are_guaranteed_as_before(self):
        rng = np.random.default_rng(0)
        X = rng.integers(2, size=(400, 3)).astype(float)
        y = X.sum(axis=1) + rng.integers(3, size=400)
        for model in (IntervalRegressor(LinearRegression(), random_state=0).fit(X, y),
                      IntervalRegressor(LinearRegression().fit(X, y)).calibrate(X, y)):  # fmt: skip
            assert model.guaranteed_level_ == 0.95

    def test_copies_in_different_groups_are_named(self):
        X, y = (np.repeat(part, 2, axis=0) for part in sine(60, np.random.default_rng(0)))
        model = IntervalRegressor(LinearRegression(), cv=3)
        with pytest.warns(CoverageWarning, match="60 of 120 rows are copies of others of other groups.*the same group"):
            model.fit(X, y, groups=np.arange(120))
        assert np.isnan(model.guaranteed_level_)

    def test_rows_of_their_own_group_are_guaranteed(self):
        X, y = sine(100, np.random.default_rng(0))
        model = IntervalRegressor(LinearRegression(), random_state=0).fit(X, y, groups=np.arange(100))
        assert model.guaranteed_level_ == 0.95

    def test_a_splitter_that_parts_no_copies_still_counts_them(self):
        X, y = (np.repeat(part, 2, axis=0) for part in sine(60, np.random.default_rng(0)))
        with pytest.warns(CoverageWarning, match="60 of 120 rows"):
            model = IntervalRegressor(LinearRegression(), cv=KFold(3)).fit(X, y)
        assert np.isnan(model.guaranteed_level_)

    @pytest.mark.parametrize("width", ["constant", "scaled"])
    def test_weights_and_widths_of_groups_of_copies(self, width):
        X, y = (np.repeat(part, 2, axis=0) for part in sine(200, np.random.default_rng(0)))
        groups, weights = duplicate_groups(X, y), np.repeat(np.linspace(1.0, 2.0, 200), 2)
        model = IntervalRegressor(lambda X: X[:, 1], width=width, random_state=0)
        model.calibrate(X, y, groups=groups, importance_weight=weights)
        assert model.guaranteed_level_ == 0.95
        assert model.n_calibration_ == (200 if width == "constant" else 100)
        if width == "constant":
            once = IntervalRegressor(lambda X: X[:, 1]).calibrate(X[::2], y[::2], importance_weight=weights[::2])
            assert_array_equal(once.margin_, model.margin_)
        weights[0] = 0.5  # copies of unequal weight are rows like others of one group
        model.calibrate(X, y, groups=groups, importance_weight=weights)
        assert np.isnan(model.guaranteed_level_)

    def test_update_finds_copies_of_calibration_rows(self):
        X, y = sine(200, np.random.default_rng(0))
        model = IntervalRegressor(lambda X: X[:, 1]).calibrate(X[:150], y[:150])
        model.update(X[150:], y[150:])
        model.update(X[:1], y[:1])  # one or two may be chance where values are few
        assert model.guaranteed_level_ == 0.95
        with pytest.warns(
            CoverageWarning, match="6 of 206 calibration rows are copies of others, now that those of up"
        ):
            model.update(X[5:10], y[5:10])
        assert np.isnan(model.guaranteed_level_)
        model.update(X[10:11] + 1.0, y[10:11])  # said once
        assert np.isnan(model.guaranteed_level_)

    def test_update_of_discrete_rows_raises_no_alarm(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(3, size=(300, 2)), rng.integers(5, size=300)
        model = IntervalRegressor(lambda X: X[:, 0] / 3).calibrate(X[:200], y[:200]).update(X[200:], y[200:])
        assert model.guaranteed_level_ == 0.95

    def test_what_is_no_table_is_not_looked_at(self):
        class Texts:
            def predict(self, X):
                return np.array([float(len(text)) for text in X])

        ragged = [[1.0] * (1 + i % 3) for i in range(60)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = IntervalRegressor(Texts()).calibrate(ragged, np.arange(60.0)).update(ragged, np.arange(60.0))
        assert model.guaranteed_level_ == 0.95


class TestMeasure:
    def test_copies_are_named_counted_and_said_in_all_forms(self):
        rng = np.random.default_rng(0)
        y_pred = np.repeat(rng.uniform(10, 20, size=200), 3)
        y_true = y_pred + np.repeat(rng.normal(size=200), 3)
        result = measure(y_true, y_pred)
        finding = result.diagnosis["copies"]
        assert finding.raised
        assert finding.value == 400
        assert finding.sentence.startswith(
            "400 of 600 rows are copies of others, so that ranges are wider by a factor of 1.73."
        )
        assert "measure each row once" in finding.advice
        assert result.headline.evidence.endswith(
            "400 of 600 rows are copies of others: nothing is guaranteed, and the range is widened by a factor of 1.73."
        )
        assert np.isnan([result.guaranteed_level, *result.curves.guaranteed_level]).all()
        page = result.to_html()
        for text in (str(result), page, result._repr_html_()):
            assert "400 of 600 rows are copies of others" in text
        assert Measurement.from_json(result.to_json()) == result
        first = np.unique(duplicate_groups(np.column_stack([y_true, y_pred])), return_index=True)[1]
        assert "copies" not in measure(y_true[first], y_pred[first]).diagnosis.raised

    def test_ranges_are_those_of_the_rows_without_copies(self):
        """Each row three times: ranges are about as wide as those of the rows themselves, not 1.73 times narrower."""
        rng = np.random.default_rng(0)
        y_pred = rng.uniform(10, 20, size=400)
        y_true = y_pred + rng.normal(size=400)
        once, copied = measure(y_true, y_pred), measure(np.repeat(y_true, 3), np.repeat(y_pred, 3))
        for name, score in once.scores.items():
            found = copied.scores[name]
            assert found.upper - found.lower == pytest.approx(score.upper - score.lower, rel=0.25), name
        assert np.diff(copied.coverage_range) == pytest.approx(np.diff(once.coverage_range), rel=0.25)  # with ties
        assert copied.coverage_range == (copied.scores["coverage"].lower, copied.scores["coverage"].upper)
        assert "not known" in copied.to_html().partition("guaranteed on average")[2][:80]
        copied.plot()

    def test_the_factor_is_that_of_the_range(self):
        """Each row three times: a range of 90 % held in 64 of 100 files; wider by the factor it holds in 90."""
        rng = np.random.default_rng(0)
        held = []
        stated = rank_guarantee(300, 0.8)
        for _ in range(500):
            errors = np.repeat(np.abs(rng.normal(size=100)), 3)
            true = 2 * ndtr(np.sort(errors)[stated.rank - 1]) - 1
            low, high = stated.coverage_range
            factor = copies(row_keys(errors), errors, None).factor
            held.append([low <= true <= high, abs(true - (low + high) / 2) <= factor * (high - low) / 2])
        as_stated, widened = np.mean(held, axis=0)
        assert as_stated < 0.7
        assert abs(widened - 0.9) < 3 * np.sqrt(0.09 / 500)

    @pytest.mark.parametrize("has_features", [False, True])
    def test_equal_rows_of_few_values_raise_no_alarm(self, has_features):
        rng = np.random.default_rng(0)
        X = rng.integers(3, size=(500, 2))
        y_pred = X.sum(axis=1).astype(float)
        found = measure(y_pred + rng.integers(-2, 3, size=500), y_pred, X=X if has_features else None).diagnosis[
            "copies"
        ]
        assert not found.raised
        assert "equal to others, as rows of few possible values are" in found.sentence

    def test_a_prediction_is_no_witness(self):
        """It determines X, and rare targets are nearly constant: 7 of 10 and 20 of 20 such sets raised an alarm."""
        n_alarms = 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = np.column_stack([rng.integers(k, size=1000) for k in (7, 2, 5, 12)])
            y = rng.poisson(0.02, size=1000)
            y_pred = LinearRegression().fit(X[:500], y[:500]).predict(X[500:])
            leaves = rng.normal(size=300)[rng.integers(300, size=500)]
            y = y[500:].astype(float)
            n_alarms += sum(
                equal_rows(y, *given).n > 0 for given in ((y_pred, X[500:]), (y_pred, None), (leaves, None))
            )
        assert n_alarms == 0

    def test_copies_of_rounded_pairs_are_told_by_their_numbers(self):
        rng = np.random.default_rng(0)
        y_pred = rng.normal(scale=3.0, size=200)
        pairs = np.column_stack([y_pred + rng.normal(size=200), y_pred]).round(1)
        assert not measure(*pairs.T).diagnosis["copies"].raised
        found = measure(*np.repeat(pairs, 3, axis=0).T).diagnosis["copies"]
        assert 400 <= found.value <= 410  # some are equal anyway

    def test_ids_hide_no_copies(self):
        rng = np.random.default_rng(0)
        X, y = sine(300, rng)
        rows = overwritten(300, rng)
        found = measure(y[rows], X[rows, 1], X=np.column_stack([np.arange(300), X[rows]])).diagnosis
        assert found["copies"].value == 15
        assert "duplicate_groups(np.column_stack([y_true, y_pred]))" in found.code

    def test_features_tell_copies_of_rounded_rows(self):
        rng = np.random.default_rng(0)
        rows = overwritten(400, rng)
        X = rng.normal(size=(400, 2))[rows]
        y = rng.integers(5, size=400).astype(float)[rows]
        assert not measure(y, np.full(400, 2.0)).diagnosis["copies"].raised
        found = measure(y, np.full(400, 2.0), X=X).diagnosis
        assert found["copies"].value == 20
        assert "duplicate_groups(X, y_true)" in found.code

    def test_of_dask_collections(self, monkeypatch):
        da = pytest.importorskip("dask.array")
        rng = np.random.default_rng(0)
        y_pred = np.repeat(rng.uniform(10, 20, size=1000), 3)
        y_true = y_pred + np.repeat(rng.normal(size=1000), 3)
        order = rng.permutation(3000)
        lazy = [da.from_array(values[order], chunks=700) for values in (y_true, y_pred)]
        assert measure(*lazy).diagnosis["copies"].value == 2000
        monkeypatch.setattr(lazy_rows, "MAX_ROWS_TO_COLLECT", 1000)
        result = measure(*lazy)  # a third of the rows, of which each has two thirds of a copy on average
        assert 100 < result.diagnosis["copies"].value < 500
        factor = float(result.headline.evidence.rpartition("factor of ")[2].rstrip("."))
        assert factor == pytest.approx(np.sqrt(3.0), rel=0.1)


class TestSets:
    @pytest.mark.parametrize("score", ["lac", "raps"])
    @pytest.mark.parametrize("cv", [None, 5])
    def test_groups_of_copies_restore_coverage(self, cv, score):
        """Each row three times: sets of 1-NN held the class as often as 1-NN is right, with a guarantee of .9."""
        bare, grouped = [], []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X, y = sine(2000, rng)
            y = (y > np.median(y)).astype(int)
            rows = np.repeat(np.arange(150), 3)
            model = SetClassifier(
                KNeighborsClassifier(1), confidence_level=0.9, cv=cv, conformity_score=score, random_state=seed
            )
            with pytest.warns(CoverageWarning, match=r"300 of 450 rows are copies of others.*duplicate_groups\(X, y\)"):
                model.fit(X[rows], y[rows])
            assert np.isnan(model.guaranteed_level_)
            bare.append(model.predict_set(X[150:])[np.arange(1850), y[150:]].mean())
            model.fit(X[rows], y[rows], groups=duplicate_groups(X[rows], y[rows]))
            assert model.guaranteed_level_ > 0.6
            assert model.n_calibration_ <= 150
            grouped.append(model.predict_set(X[150:])[np.arange(1850), y[150:]].mean())
        assert np.mean(bare) < 0.87
        assert np.mean(grouped) > 0.9 - 3 * 0.024  # as for intervals

    def test_calibration_rows_count_once(self):
        X, y = sine(300, np.random.default_rng(0))
        y = (y > 1).astype(int)
        trained = KNeighborsClassifier(9).fit(X[:100], y[:100])
        once = SetClassifier(trained).calibrate(X[100:], y[100:])
        twice, labels = np.repeat(X[100:], 2, axis=0), np.repeat(y[100:], 2)
        model = SetClassifier(trained)
        with pytest.warns(
            CoverageWarning, match=r"200 of 400 rows.*calibrate\(X, y, groups=duplicate_groups\(X, y\)\)"
        ):
            model.calibrate(twice, labels)
        assert np.isnan([model.guaranteed_level_, *model.coverage_range_]).all()
        model.calibrate(twice, labels, groups=duplicate_groups(twice, labels))
        assert (model.limit_, model.n_calibration_) == (once.limit_, 200)
        assert_array_equal(model.coverage_range_, once.coverage_range_)

    def test_other_groups_are_not_split_and_count_once(self):
        class Memory(KNeighborsClassifier):
            def fit(self, X, y):
                self.seen_ = set(X[:, 0])
                return super().fit(X, y)

            def predict_proba(self, X):
                assert not self.seen_ & set(X[:, 0])
                return super().predict_proba(X)

        groups = np.repeat(np.arange(30), 10)
        X = np.column_stack([groups, np.arange(300)])
        for score in ("lac", "raps"):
            model = SetClassifier(Memory(3), cv=3, conformity_score=score, random_state=0)
            assert np.isnan(model.fit(X, np.arange(300) % 2, groups=groups).guaranteed_level_)
            few = SetClassifier(Memory(3), conformity_score=score, random_state=0)
            with pytest.warns(CoverageWarning, match=r"6 .* can guarantee 85.7 %, not 95 %"):
                few.fit(X, np.arange(300) % 2, groups=groups)
            assert few.guaranteed_level_ == 0.95  # six of the 30 groups calibrate, too few, so that sets are full
        with pytest.raises(ValueError, match="groups has a single group"):
            SetClassifier(Memory(3)).fit(X, np.arange(300) % 2, groups=np.zeros(300))
        with pytest.raises(ValueError, match=r"A split divides the rows of \d+ groups?"):
            SetClassifier(Memory(3), cv=list(KFold(7).split(X))).fit(X, np.arange(300) % 2, groups=groups)


def test_a_scorecard_names_rows_that_are_all_there_twice():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=300)
    label = (rng.random(300) < score).astype(float)
    assert not scorecard(label, score).diagnosis["copies"].raised
    found = scorecard(np.tile(label, 2), np.tile(score, 2)).diagnosis["copies"]
    assert found.raised
    assert found.sentence.startswith("300 of 600 rows are copies of others")
    leaves = rng.normal(size=300)[rng.integers(300, size=900)]  # equal by chance
    few = scorecard(rng.integers(2, size=900), 1 / (1 + np.exp(-leaves)))
    assert not few.diagnosis["copies"].raised
