from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from scipy.signal import lfilter
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor

import pimeter as pm
from pimeter import measure, scorecard
from pimeter.clusters import Units
from pimeter.evaluation.diagnosis import check, forest, order, recommendation, symmetry
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.checks import CHECKS
from pimeter.evaluation.diagnosis.columns import MISSING, N_CATEGORIES, categories, columns, quintiles
from pimeter.evaluation.diagnosis.crossfit import CrossFit, folds, ranks
from pimeter.evaluation.diagnosis.order import Drift
from pimeter.evaluation.diagnosis.recommendation import Recommendation
from pimeter.evaluation.diagnosis.shape import HeavyTails, Outliers, Skewness
from pimeter.evaluation.diagnosis.shifts import Criterion, local_shift, mean_residual
from pimeter.regression import scaled

LEVELS = np.array([0.5, 0.8, 0.95, 0.999])


def diagnose(y_true, y_pred, X=None, by=None, **options):
    """What `measure` finds."""
    return measure(y_true, y_pred, X=X, by=by, **options).diagnosis


def rows(seed=0, n=500):
    """Features, a category, predictions and normal errors."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, rng.choice(["a", "b"], size=n, p=[0.9, 0.1]), 4 * X[:, 0] + 4 * X[:, 1], rng.standard_normal(n)


DISTRIBUTIONS = {
    "normal": lambda rng, m: rng.standard_normal(m),
    "magnitudes": lambda rng, m: np.abs(rng.standard_normal(m)),
    "cauchy": lambda rng, m: rng.standard_cauchy(m),
    "tied": lambda rng, m: rng.integers(-2, 3, m).astype(float),
    "zeros": lambda rng, m: np.zeros(m) * rng.choice([-1.0, 1.0], m),
    "nearly tied": lambda rng, m: 1e6 + 1e-6 * rng.standard_normal(m),
    "huge and tiny": lambda rng, m: rng.choice([1e300, 1e-300, -1e300, 5e-324], m),
    "rising": lambda rng, m: np.sort(rng.standard_normal(m)),
}


SYMMETRIC = {
    "coin": lambda rng, m: rng.choice([-1.0, 1.0], m),
    "uniform on -1..1": lambda rng, m: rng.integers(-1, 2, m).astype(float),
    "uniform on -2..2": lambda rng, m: rng.integers(-2, 3, m).astype(float),
    "uniform on -5..5": lambda rng, m: rng.integers(-5, 6, m).astype(float),
    "rounded normal": lambda rng, m: np.round(2.1 * rng.standard_normal(m)),
    "normal in tenths far from 0": lambda rng, m: 1e6 + np.round(rng.standard_normal(m), 1),
    "uniform": lambda rng, m: rng.uniform(size=m),
    "two hills": lambda rng, m: rng.choice([-2.0, 2.0], m) + 0.5 * rng.standard_normal(m),
}
SKEWED = {
    "exponential": lambda rng, m: rng.exponential(size=m),
    "lognormal": lambda rng, m: rng.lognormal(sigma=0.5, size=m),
    "Poisson(1)": lambda rng, m: rng.poisson(1.0, m).astype(float),
    "Poisson(2)": lambda rng, m: rng.poisson(2.0, m).astype(float),
    "rounded gamma": lambda rng, m: np.round(rng.gamma(4.0, size=m)),
}


IDS = {
    "words": lambda n, rng: [f"A-{i:06d}" for i in rng.permutation(n)],
    "nearly all": lambda n, rng: [f"A-{i:06d}" for i in np.maximum(rng.permutation(n), 2)],
    "numbered": lambda n, rng: rng.permutation(n) + 4711,
    "numbered in floats": lambda n, rng: rng.permutation(n) + 4711.0,
    "large": lambda n, rng: rng.choice(10**12, n, replace=False),
    "other dates": lambda n, rng: pd.date_range("2024-01-01", periods=n, freq="h").strftime("%d.%m.%Y %H:%M"),
}


class TestCrossFit:
    def test_errors_that_repeat_in_a_rhythm_are_tied(self):
        # Of 20,000 errors every fourth differs from all others: a stride of 4 would see no tie. None is at a margin.
        magnitudes = np.arange(1.0, 20_001.0)
        magnitudes[1:5000:4] = magnitudes[2:5000:4]
        shuffled = np.random.default_rng(1).permutation(magnitudes)
        assert (
            CrossFit.of(magnitudes, LEVELS).coverage_ranges.tolist()
            == CrossFit.of(shuffled, LEVELS).coverage_ranges.tolist()
        )

    @pytest.mark.parametrize("m", [2, 3, 9, 10, 11, 110, 997])
    @pytest.mark.parametrize("ties", [False, True])
    def test_margins_and_coverage_are_those_of_plain_sorting(self, m, ties):
        rng = np.random.default_rng(m)
        magnitudes = np.abs(rng.standard_normal(m))
        magnitudes = np.round(magnitudes, 1) if ties else magnitudes
        part = rng.integers(3, size=m)
        fit = CrossFit.of(magnitudes, LEVELS)
        inside = np.zeros((m, len(LEVELS)), bool)
        scores = np.zeros((m, len(LEVELS)))
        for i in range(min(10, m)):
            own = fit.fold == i
            others = np.sort(magnitudes[~own])
            k = np.minimum(np.ceil((len(others) + 1) * LEVELS - 1e-9).astype(int), len(others))
            assert_allclose(fit.fold_margins[i], others[k - 1], rtol=0)
            inside[own] = magnitudes[own, None] <= others[k - 1]
            scores[own] = 2 * others[k - 1] + 2 / (1 - LEVELS) * np.maximum(magnitudes[own, None] - others[k - 1], 0)
        found = fit.subgroups(part, 3)
        assert found.inside.tolist() == [inside[part == i].sum(axis=0).tolist() for i in range(3)]
        assert found.rows.tolist() == np.bincount(part, minlength=3).tolist()
        assert_allclose(fit.mean_interval_scores(), scores.mean(axis=0), rtol=1e-12)
        assert fit.covered(np.arange(m), 2).tolist() == inside[:, 2].tolist()
        for i in range(3):
            own = np.sort(magnitudes[part == i])
            if len(own):
                assert_allclose(found.margin[i], own[ranks(len(own), LEVELS) - 1], rtol=0)

    @pytest.mark.parametrize("m", [1, 2, 9, 10, 25, 1000])
    def test_folds_are_even_and_follow_no_rhythm(self, m):
        fold = folds(m, min(10, m))
        counts = np.bincount(fold, minlength=min(10, m))
        assert counts.max() - counts.min() <= 1
        assert fold.tolist() == folds(m, min(10, m)).tolist()
        if m == 1000:
            assert len(set(fold[::10].tolist())) == 10

    def test_one_row_has_no_cross_fitted_margin(self):
        fit = CrossFit.of(np.array([2.0]), LEVELS)
        assert np.isnan(fit.fold_margins).all()
        assert np.isnan(fit.mean_interval_scores()).all()
        assert fit.margin.tolist() == [2.0] * 4


class TestColumns:
    def test_masked_cells_are_missing(self):
        X = np.ma.MaskedArray([[1.0], [-99.0], [3.0]], mask=[[False], [True], [False]])
        assert np.isnan(columns(X, 3, np.arange(3))[0].values).tolist() == [False, True, False]

    def test_quintiles_of_many_numbers_follow_no_rhythm(self):
        # Of 400,000 rows every fourth is 0: a stride of 4 would see zeros alone.
        values = np.where(np.arange(400_000) % 4, np.random.default_rng(0).uniform(size=400_000), 0.0)
        found = quintiles(values)
        # 100,000 rows tell a border to within .0013 of the rows (a standard error); a quarter of all are 0.
        assert_allclose(np.bincount(found.codes)[1:] / len(values), [0.15, 0.2, 0.2, 0.2], atol=0.01)
        assert len(found.labels) == 5

    def test_quintiles_of_numbers(self):
        found = quintiles(np.arange(1.0, 11.0))
        assert found.codes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert found.labels == ("up to 2", "2 to 4", "4 to 6", "6 to 8", "above 8")

    @pytest.mark.parametrize(
        ("values", "names"),
        [
            (np.arange(2015.0, 2025.0), "2016 2018 2020 2022"),
            (101300 + np.arange(5.0) / 5, "101300 101300.2 101300.4 101300.6"),
            (np.arange(1.0, 6.0) * 1e9 / 3, "3.33e+08 6.67e+08 1e+09 1.33e+09"),
            (1 + np.arange(5.0) * 2**-52, "1 1.0000000000000002 1.0000000000000004 1.0000000000000007"),
            (np.array([9998.7, 9999.7, 9999.8, 1e5, np.inf]), "9999 9999.7 9999.8 100000"),
        ],
    )
    def test_names_of_quintiles_are_told_apart(self, values, names):
        first, second, third, last = names.split()
        between = (f"{first} to {second}", f"{second} to {third}", f"{third} to {last}")
        assert quintiles(values).labels == (f"up to {first}", *between, f"above {last}")

    def test_ties_missing_values_and_constants(self):
        assert quintiles(np.array([0.0, 0, 0, 0, 1])).labels == ("up to 0", "above 0")
        found = quintiles(np.array([3.0, np.nan, 3.0]))
        assert (found.codes.tolist(), found.labels) == ([0, 1, 0], ("3", MISSING))
        assert quintiles(np.array([np.nan, np.nan])).labels == (MISSING,)

    def test_rare_categories_are_taken_together(self):
        labels = np.repeat([f"c{i}" for i in range(40)], np.arange(40, 0, -1))
        found = categories(labels)
        assert len(found.labels) == N_CATEGORIES + 1
        assert found.labels[-1] == "20 others"
        assert np.bincount(found.codes)[-1] == sum(range(1, 21))

    def test_frames_of_all_kinds(self):
        n = 40
        begin = datetime(2020, 1, 1, tzinfo=UTC)
        held = {
            "number": np.arange(n) / 2,
            "gap": [None, 1.5] * 20,
            "flag": [True, False] * 20,
            "word": ["x", None] * 20,
            "time": [begin + timedelta(days=i) for i in range(n)],
            "list": [[1, 2], [1, 3]] * 20,
        }
        for frame in (pd.DataFrame(held), pl.DataFrame(held)):
            found = {column.name: column for column in columns(frame, n, np.arange(n))}
            assert [column.is_numeric for column in found.values()] == [True, True, True, False, True, False]
            assert np.isnan(found["gap"].numbers).sum() == 20
            assert found["word"].subgroups.labels == ("x", MISSING)
            assert np.isnan(found["word"].numbers).sum() == 20
            assert found["list"].subgroups.labels == ("[1, 2]", "[1, 3]")
            assert found["time"].subgroups.labels[0].startswith("up to 2020-01-08")
        assert columns(frame["word"], n, np.arange(n))[0].name == "word"

    def test_dates_and_decimals_of_every_library(self):
        days = [date(2020, 1, 1), None, date(2020, 1, 3)]
        prices = [Decimal("1.5"), None, Decimal("2.5")]
        for frame in (
            pd.DataFrame({"day": pd.Series(days, dtype="date32[pyarrow]"), "price": prices}),
            pl.DataFrame({"day": days, "price": prices}),
            pa.table({"day": days, "price": prices}),
        ):
            day, price = columns(frame, 3, np.arange(3))
            assert day.subgroups.labels == ("up to 2020-01-01T00:00", "above 2020-01-01T00:00", MISSING)
            assert_allclose(price.numbers, [1.5, np.nan, 2.5])
            assert day.is_numeric
            assert price.is_numeric

    @pytest.mark.parametrize(
        ("words", "label"),
        [
            (["2024-01-31", "2024-02-01", None], "2024-01-31T00:00"),
            (["2024/01/31", "2024/02/01", None], "2024-01-31T00:00"),
            (["2024-01-31 12:30", "2024-02-01 00:00", None], "2024-01-31T12:30"),
            (["2024-01-31T12:30:15.123456789", "2024-02-01T00:00:00", None], "2024-01-31T12:30"),
            (["2024-01-31T12:30:15Z", "2024-02-01T00:00:00+02:00", None], "2024-01-31T12:30"),
            ([date(2024, 1, 31), date(2024, 2, 1), None], "2024-01-31T00:00"),
            ([datetime(2024, 1, 31, 12, 30, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC), None], "2024-01-31T12:30"),
        ],
    )
    def test_dates_in_words_are_dates(self, words, label):
        tables = [np.array([[word] for word in words], object), pd.DataFrame({"x": pd.Series(words, dtype=object)})]
        if isinstance(words[0], str):
            tables += [
                pl.DataFrame({"x": words}),
                pa.table({"x": words}),
                pl.DataFrame({"x": words}).cast(pl.Categorical),
            ]
            tables += [np.array([[word or words[0]] for word in words])]
        for table in tables:
            (column,) = columns(table, 3, np.arange(3))
            assert column.is_numeric
            assert column.values[0] < column.values[1]
            assert column.subgroups.labels[0] == f"up to {label}"

    def test_arrays_of_dates(self):
        moments = np.array([["2024-01-31"], ["2024-02-01"], ["NaT"]], "datetime64[D]")
        assert columns(moments, 3, np.arange(3))[0].subgroups.labels[0] == "up to 2024-01-31T00:00"
        assert columns(moments - moments[0], 3, np.arange(3))[0].subgroups.labels[0] == "up to 0 seconds"

    @pytest.mark.parametrize(
        "words",
        [
            ["2024-01-31", "unknown"],
            ["2024-02-30", "2024-01-31"],
            ["31.01.2024", "01.02.2024"],
            ["2024-01-31T00:00:00Z", "2024-01-31T00:00:00"],  # of the second the zone is not known
            ["20240131", "20240201"],
            ["2024-01-31-7", "2024-02-01-9"],
            [date(2024, 1, 31), "no date"],
        ],
    )
    def test_what_may_be_no_date_is_a_category(self, words):
        for table in (
            pd.DataFrame({"x": pd.Series(words, dtype=object)}),
            np.array([[word] for word in words], object),
        ):
            assert not columns(table, 2, np.arange(2))[0].is_numeric
        assert not columns(pl.DataFrame({"x": [str(word) for word in words]}), 2, np.arange(2))[0].is_numeric

    def test_arrays_of_objects(self):
        table = np.array([[1, "a"], [None, "b"], [2.5, 3]], dtype=object)
        table[1, 1] = ["b"]
        number, word = columns(table, 3, np.arange(3))
        assert word.subgroups.labels == ("3", "['b']", "a")
        assert (number.is_numeric, word.is_numeric) == (True, False)
        assert word.place == 1
        assert_allclose(number.values, [1, np.nan, 2.5])

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (sparse.csr_array(np.ones((4, 1))), "X is a sparse matrix"),
            (np.ones((3, 2)), r"for each of the 4 targets; got \(3, 2\)"),
            (np.ones((4, 0)), r"got \(4, 0\)"),
            (np.ones((4, 1), complex), "dtype complex128"),
        ],
    )
    def test_bad_features(self, X, message):
        with pytest.raises(ValueError, match=message):
            diagnose(np.arange(4.0), np.zeros(4), X)


class TestOrder:
    # 300 draws: a fraction of .05 has a standard error of .013.
    def test_false_alarms_are_as_frequent_as_stated(self):
        noise = np.random.default_rng(1).standard_normal((300, 100))
        for test in (order.drift, order.serial_dependence):
            p_values = np.array([test(errors).p_value for errors in noise])
            assert abs(np.mean(p_values <= 0.05) - 0.05) < 3 * 0.013
            assert abs(np.mean(p_values <= 0.5) - 0.5) < 3 * 0.029

    @pytest.mark.parametrize("step", [1, -1])
    def test_rows_sorted_by_their_target_are_no_drift(self, step):
        """Intervals that follow such an order are far off on rows in any other; with time it is looked at."""
        rng = np.random.default_rng(3)
        y_pred = rng.standard_normal(1000)
        y = y_pred + rng.standard_normal(1000)
        rows = np.argsort(y)[::step]
        found = diagnose(y[rows], y_pred[rows])
        assert not {"drift", "serial"} & set(found.raised)
        assert found["drift"].sentence == found["serial"].sentence == order.SORTED
        assert np.isfinite(found["rows"].lower)
        timed = diagnose(y[rows], y_pred[rows], time=np.arange(1000))
        assert "drift" in timed.raised

    def test_rows_of_one_moment_are_no_drift(self):
        """100 rows of each of ten moments, with .4 of the variance in common; without time 47 % are called a drift."""
        rng = np.random.default_rng(0)
        moment = np.repeat(np.arange(10), 100)
        y_pred = rng.uniform(size=1000)
        residuals = 0.6**0.5 * rng.standard_normal((20, 1000)) + 0.4**0.5 * rng.standard_normal((20, 10))[:, moment]
        raised = ["drift" in diagnose(y_pred + own, y_pred, time=moment).raised for own in residuals]
        assert sum(raised) <= 2  # 1 % each: three or more of 20 have a probability of .001
        drifting = rng.standard_normal(1000) + np.linspace(0.0, 1.0, 1000)
        assert "drift" in diagnose(y_pred + drifting, y_pred, time=np.arange(1000) // 2).raised

    @pytest.mark.parametrize("is_mixed", [False, True])
    def test_groups_of_rows_that_resemble_each_other_are_no_drift(self, is_mixed):
        """Groups one after the other, the largest last, or in any order: 1 % each, five of 150 have probability .02."""
        rng = np.random.default_rng(2)
        n_found = 0
        for _ in range(150):
            groups = np.repeat(np.arange(30), np.sort(rng.geometric(0.1, 30)))
            groups = rng.permutation(groups) if is_mixed else groups
            residuals = rng.standard_normal(len(groups)) + 2.0 * rng.standard_normal(30)[groups]
            n_found += order.drift_of_groups(residuals, groups).p_value <= 0.01
        assert n_found < 5

    def test_a_drift_that_groups_have_in_common(self):
        X, _, y_pred, noise = rows(n=1000)
        groups = np.arange(1000) % 50
        noise += np.linspace(-1.0, 1.0, 1000)
        when = np.arange(1000)[::-1]
        found = measure(y_pred + noise, y_pred, X=X, groups=groups)
        assert "drift" in found.diagnosis.raised
        assert "online = OnlineIntervals(intervals).fit(X, y_true)" in found.code
        timed = measure((y_pred + noise)[::-1], y_pred[::-1], X=X[::-1], groups=groups[::-1], time=when[::-1])
        assert timed.diagnosis["drift"].p_value == found.diagnosis["drift"].p_value
        timed = measure(y_pred + noise, y_pred, X=X, groups=groups, time=when)
        assert "drift" in timed.diagnosis.raised
        assert "OnlineIntervals(intervals).fit(X, y_true, time=time)" in timed.code
        few = diagnose(y_pred + noise, y_pred, X, groups=groups % 5)
        assert few["drift"].sentence == "Too few groups to see a drift: 5 groups, at least 10 are needed."

    def test_drift_and_dependence_are_told_apart(self):
        rng = np.random.default_rng(0)
        noise = rng.standard_normal(500)
        trend = noise + np.linspace(-1, 1, 500)
        linked = np.convolve(rng.standard_normal(520), np.ones(4), "valid")[:500]
        assert order.drift(trend).p_value < 0.01 < order.serial_dependence(trend).p_value
        assert order.serial_dependence(linked).p_value < 0.01 < order.drift(linked).p_value
        assert order.drift(noise * np.linspace(1, 3, 500)).p_value < 0.01


class TestForest:
    """The scale that `diagnose` tries a scaled width with."""

    def test_it_has_the_numbers_of_the_scaled_width_that_it_stands_for(self):
        width = pm.ScaledWidth()
        assert (scaled.ROWS_IN_LEAF, scaled.MIN_SCALE) == (forest.IN_LEAF, forest.MIN_SCALE)
        assert width.power == forest.POWER

    @pytest.mark.parametrize(
        "spread",
        [
            lambda X: np.where(X[:, 1] > 0.7, 4.0, 1.0),
            lambda X: np.where((X[:, 1] > 0.5) & (X[:, 2] > 0.5), 4.0, 1.0),
            lambda X: 1.0 + 4.0 * X[:, 0],
        ],
    )
    def test_it_is_about_as_near_to_the_truth_as_that_of_scikit_learn(self, spread):
        X, _, y_pred, noise = rows(n=2000)
        truth = np.log(spread(X))
        magnitudes, learned = np.abs(spread(X) * noise), np.arange(0, 2000, 2)
        ours = forest.learned_scale(forest.binned([*X.T, y_pred]), magnitudes, learned, np.random.default_rng(0))
        width = pm.ScaledWidth(RandomForestRegressor(min_samples_leaf=forest.IN_LEAF, random_state=0)).fit(
            X[learned],
            y_pred[learned, None],
            magnitudes[learned, None],
            confidence_level=0.95,
            tails="symmetric",
            random_state=0,
        )
        theirs = width.shape(X, y_pred[:, None]).scale[:, 0]
        far = [np.std((np.log(scale) / forest.POWER - truth)[1::2]) for scale in (ours, theirs)]
        assert (
            far[0] < 1.3 * far[1]
        )  # bins blur a jump: .89 to 1.47 in 24 draws, 1.11 on average; 1.23 at most in these
        assert far[0] < 0.5 * np.std(truth)

    def test_magnitudes_of_rows_to_judge_are_not_looked_at(self):
        X, _, _, noise = rows()
        bins, learned = forest.binned([*X.T]), np.arange(250)
        magnitudes = np.abs(noise)
        seen = forest.learned_scale(bins, magnitudes, learned, np.random.default_rng(0))
        magnitudes[250:] = np.nan
        assert (forest.learned_scale(bins, magnitudes, learned, np.random.default_rng(0)) == seen).all()
        assert len(np.unique(seen[250:])) > 100

    def test_missing_values_can_be_told_from_all_others(self):
        rng = np.random.default_rng(0)
        feature = np.where(np.arange(4000) % 4 == 0, np.nan, rng.uniform(size=4000))
        magnitudes = np.where(np.isnan(feature), 5.0, 1.0)
        scale = forest.learned_scale(forest.binned([feature]), magnitudes, np.arange(2000), rng)
        assert_allclose(scale / 2.0**-0.75, magnitudes**0.75)  # their mean is 2

    @pytest.mark.parametrize("feature", [np.zeros(200), np.full(200, np.nan)])
    def test_what_tells_nothing_leaves_the_scale_constant(self, feature):
        rng = np.random.default_rng(0)
        scale = forest.learned_scale(forest.binned([feature]), rng.exponential(size=200), np.arange(100), rng)
        assert len(np.unique(scale)) == 1


class TestDiagnose:
    def test_nothing_to_do(self):
        X, by, y_pred, noise = rows()
        found = diagnose(y_pred + noise, y_pred, X, by)
        assert found.raised == ()
        assert found.advice == ("Nothing to do: a constant width with symmetric tails is enough.",)
        first, made, last = found.code.splitlines()
        assert first == "from pimeter.regression import IntervalRegressor"
        settings = 'confidence_level=0.95, width="constant", tails="symmetric"'
        assert made == f"intervals = IntervalRegressor(model, {settings}).calibrate(X, y_true)"
        assert last == "lower, upper = intervals.predict_interval(X_new).T"
        assert found.code[slice(*found.level_span)] == "0.95"

    def test_a_bad_group_given_as_by_or_as_a_column(self):
        X, by, y_pred, noise = rows()
        y_true = y_pred + noise * np.where(by == "b", 4, 1)
        passed = measure(y_true, y_pred, by=by)
        assert str(diagnose(y_true, y_pred, by=by[:, None])) == str(passed.diagnosis)
        assert (passed.recommended_width, passed.diagnosis["width"].raised) == ("grouped", True)
        assert "in category b" in passed.diagnosis["width"].sentence
        frame = pd.DataFrame({"x": X[:, 0], "shop": by})
        assert "width=GroupedWidth(by='shop'), tails=\"symmetric\")" in diagnose(y_true, y_pred, frame).code

    @pytest.mark.parametrize(("kind", "n"), [*((kind, 400) for kind in IDS), ("numbered", 6000)])
    def test_ids_change_nothing_and_are_named(self, kind, n):
        rng = np.random.default_rng(0)
        shop = rng.choice(["a", "b"], n, p=[0.9, 0.1])
        y_pred = rng.uniform(size=n)
        y_true = y_pred + rng.standard_normal(n) * np.where(shop == "b", 4, 1)
        frame = pd.DataFrame({"shop": shop})
        plain = measure(y_true, y_pred, X=frame)
        assert "width=GroupedWidth(by='shop'), tails=\"symmetric\")" in plain.code
        ids = IDS[kind](n, rng)
        m = min(n, 5000)
        result = measure(y_true, y_pred, X=frame.assign(order_id=ids))
        found = result.diagnosis
        assert (result.advice, result.code, result.subgroups) == (plain.advice, plain.code, plain.subgroups)
        begin, end = (
            "1 column was looked at besides the prediction. Column 'order_id' is left out: ",
            " values are distinct.",
        )
        assert found["features"].sentence.startswith(begin)
        n_distinct, of = (
            int(word.replace(",", "")) for word in found["features"].sentence[len(begin) : -len(end)].split(" of ")
        )
        assert of == m
        assert n_distinct in ({m} if kind != "nearly all" else {m - 2, m - 1, m})
        assert found["features"].value == 1
        assert plain.diagnosis["features"].value == 0
        by = measure(y_true, y_pred, X=frame, by=np.asarray(ids))
        assert (by.advice, by.code, by.subgroups) == (plain.advice, plain.code, plain.subgroups)
        assert "by is left out: " in by.diagnosis["features"].sentence

    def test_numbers_that_are_measured_are_no_ids(self):
        rng = np.random.default_rng(0)
        n = 400
        y_pred = rng.uniform(size=n)
        inhabitants = np.round(rng.lognormal(12, 1, n))  # integers, nearly all of them distinct
        assert len(np.unique(inhabitants)) > 0.98 * n
        frame = pd.DataFrame(
            {"inhabitants": inhabitants, "cents": rng.choice(10**9, n, replace=False), "x": rng.uniform(size=n)}
        )
        found = diagnose(y_pred + rng.standard_normal(n), y_pred, frame)
        assert found["features"].sentence == "3 columns were looked at besides the prediction."
        few = diagnose(y_pred[:12] + 1.0, y_pred[:12], pd.DataFrame({"word": [f"w{i}" for i in range(12)]}))
        assert few["features"].value == 0

    @pytest.mark.parametrize("library", [pd, pl])
    def test_times_in_words_do_not_flip_the_advice(self, library):
        rng = np.random.default_rng(0)
        n = 600
        x = rng.uniform(size=n)
        when = pd.date_range("2024-01-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M:%S").tolist()
        for scale, width in ((np.ones(n), "constant"), (1 + 4 * x, "scaled")):
            y_true = x + scale * rng.standard_normal(n)
            plain, only, both = (
                measure(y_true, x, X=library.DataFrame(held) if held else None)
                for held in ({}, {"when": when}, {"x": x, "when": when})
            )
            assert plain.recommended_width == only.recommended_width == both.recommended_width == width
            # Without features there are no subgroups to search for.
            plain, *others = ({*one.diagnosis.raised} - {"worst_subgroup"} for one in (plain, only, both))
            assert all(one == plain for one in others)
            assert next(part.label for part in only.subgroups if part.of == "when").startswith("up to 2024-01-0")

    @pytest.mark.parametrize("name", ["by", "prediction"])
    def test_features_whose_names_have_a_meaning_here(self, name):
        _, by, y_pred, noise = rows()
        found = measure(y_pred + noise * np.where(by == "b", 4, 1), y_pred, X=pd.DataFrame({name: by}))
        assert f"where feature {name} is b" in found.diagnosis["width"].sentence
        assert "pass by=" not in found.diagnosis["width"].advice
        assert f"width=GroupedWidth(by='{name}'), tails=\"symmetric\")" in found.code
        assert [part.of for part in found.subgroups] == ["prediction"] * 5 + [f"feature {name}"] * 2

    @pytest.mark.parametrize("category", [[1, 2], {"a": 1}, np.arange(2)])
    def test_categories_that_cannot_be_looked_up(self, category):
        by = np.empty(30, object)
        by[:] = [category for _ in range(30)]
        y_true, y_pred = np.sin(np.arange(30.0)), np.full(30, 0.5)
        for judge in (
            lambda: diagnose(y_true, y_pred, by=by),
            lambda: scorecard(y_true > 0, y_pred, by=by),
            lambda: pm.SetClassifier(DummyClassifier()).fit(y_true[:, None], y_true > 0, by=by),
        ):
            with pytest.raises(ValueError, match="categories must be strings or numbers"):
                judge()

    def test_a_growing_spread(self):
        X, _, y_pred, noise = rows()
        found = diagnose(y_pred + (1 + 4 * X[:, 0]) * noise, y_pred, X, confidence_level=0.9)
        assert 'IntervalRegressor(model, confidence_level=0.9, width="scaled", tails="symmetric")' in found.code
        assert found["gain"].lower > 0

    @pytest.mark.parametrize(
        ("plant", "name", "tails"),
        [
            (lambda noise: noise + 0.5, "bias", "equal"),
            (lambda noise: np.exp(noise) - 1, "skew", "equal"),
            (lambda noise: -np.exp(noise) + 1, "skew", "equal"),
            (lambda noise: np.sign(noise) * np.abs(noise) ** 2.5, "heavy", "symmetric"),
            (lambda noise: np.where(np.arange(500) == 7, 1e3, noise), "outliers", "symmetric"),
            (lambda noise: np.where(np.arange(500) % 25 == 7, 0.0, noise), "zeros", "symmetric"),
        ],
    )
    def test_shape_of_errors(self, plant, name, tails):
        _, _, y_pred, noise = rows()
        found = measure(y_pred + plant(noise), y_pred)
        assert name in found.diagnosis.raised
        assert found.recommended_tails == tails
        assert found.diagnosis[name].sentence.endswith(".")

    def test_targets_0_and_1_look_like_classes(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=200)
        y = (rng.uniform(size=200) < score).astype(float)
        assert "use scorecard" in diagnose(y, score)["discrete"].advice
        assert "scorecard" not in diagnose(2 * y, 2 * score)["discrete"].advice

    def test_discrete_targets(self):
        _, _, y_pred, noise = rows()
        found = diagnose(np.round(y_pred + noise), y_pred)
        assert "discrete" in found.raised
        assert "steps of 1" in found["discrete"].advice
        # Zero errors of whole predictions are no copies of training rows.
        assert "zeros" not in diagnose(np.round(y_pred + noise), np.round(y_pred)).raised

    @pytest.mark.parametrize(
        ("values", "step"),
        [
            (np.arange(12.0), 1.0),
            (np.arange(12) * 0.1 + 100.0, 0.1),
            ((np.arange(12, dtype=np.float32) / np.float32(10)), 0.1),
            (1e9 + 0.25 * np.array([0, 1, 2, 5, 9, 30, 31]), 0.25),
            (np.array([9.99, 14.99, 19.99, 49.99, 99.99]), 5.0),
            (np.array([0.3, 0.1 + 0.2, 0.6, 0.9, 1.2]), 0.3),  # two of them differ by rounding alone
            (np.array([1.0, 2.5, 7.0, 30.0, 31.3]), None),
            (np.array([0.0, 3.8]), None),  # two values lie on any grid
            (np.sort(np.random.default_rng(1).uniform(0, 40, 12)), None),
            (np.array([0.0, 1.0, 2.0, 3.002]), None),
        ],
    )
    def test_steps_are_those_of_a_grid(self, values, step):
        rng = np.random.default_rng(0)
        y_true = rng.choice(np.asarray(values, float), 600)
        y_pred = np.asarray(y_true, float) + 0.3 * rng.standard_normal(600)
        finding = diagnose(y_true.astype(values.dtype), y_pred)["discrete"]
        n = len(values) - (values[0] == 0.3)
        assert finding.value == n
        if step is None:
            assert "steps of" not in finding.sentence + finding.advice
            assert f"few values, {n} in these rows, in no common steps" in finding.advice
        else:
            assert f"in steps of {step:.3g}: the target is discrete." in finding.sentence
            assert f"The target comes in steps of {step:.3g}: move the bounds of intervals inwards" in finding.advice

    def test_steps_that_are_small_beside_the_margin_are_no_matter(self):
        rng = np.random.default_rng(0)
        y_true = np.round(rng.normal(100, 40, 3000))
        assert "discrete" not in diagnose(y_true, y_true + 20 * rng.standard_normal(3000)).raised

    @pytest.mark.parametrize("unit", [1.0, 0.01, 0.1, 25.0])
    def test_zeros_of_a_grid_common_to_targets_and_predictions_are_no_copies(self, unit):
        rng = np.random.default_rng(0)
        y_pred = np.round(rng.uniform(500, 1000, 3000)) * unit
        for noise in (12 * rng.standard_normal(3000), rng.laplace(scale=5, size=3000)):
            finding = diagnose(y_pred + np.round(noise) * unit, y_pred)["zeros"]
            assert finding.value > 0.02
            assert not finding.raised
        # One row in ten is a copy: far more zeros than errors of one step.
        copied = np.where(np.arange(3000) % 10, np.round(20 * rng.standard_normal(3000)), 0.0)
        assert diagnose(y_pred + copied * unit, y_pred)["zeros"].raised
        # Predictions that lie on no grid have no zeros by chance, however small the errors are.
        near = np.where(np.arange(3000) % 10, 12 * rng.standard_normal(3000), 0.0)
        assert diagnose(y_pred, y_pred - near * unit)["zeros"].raised

    def test_zeros_that_a_bound_makes_are_no_copies(self):
        _, _, y_pred, noise = rows()
        rain, said = np.maximum(y_pred - 4 + noise, 0), np.maximum(y_pred - 4, 0)
        found = diagnose(rain, said)
        assert found["zeros"].value > 0.2
        assert "zeros" not in found.raised
        price = np.round(100 + np.cumsum(noise), 2)
        price[1::10] = price[::10]
        advice = diagnose(price[1:], price[:-1])["zeros"].advice
        assert "was the model trained on them" in advice
        assert "price, is no fault" in advice

    def test_order(self):
        _, _, y_pred, noise = rows()
        drifting = diagnose(y_pred + noise + np.linspace(-1, 1, 500), y_pred)
        assert drifting.raised == ("drift",)
        assert "online = OnlineIntervals(intervals).fit(X, y_true)" in drifting.code

    def test_a_rhythm_of_the_rows_changes_nothing(self):
        # 120,000 hourly rows, of which every 24th is midnight: 5,000 rows at equal distances would be midnights alone.
        rng = np.random.default_rng(0)
        n = 120_000
        hour = np.arange(n) % 24
        errors = rng.standard_normal(n) * (1 + hour / 12)
        errors[rng.choice(np.flatnonzero(hour == 12), 31, replace=False)] = 100.0
        y_pred = rng.uniform(size=n)
        shuffled = rng.permutation(n)
        given, mixed = (
            measure(y_pred[own] + errors[own], y_pred[own], X=hour[own, None]) for own in (np.arange(n), shuffled)
        )
        assert given.recommended_width == mixed.recommended_width == "scaled"
        given, mixed = given.diagnosis, mixed.diagnosis
        assert given["outliers"].value == mixed["outliers"].value == 31
        assert given["outliers"].rows == n
        assert given["outliers"].sentence == mixed["outliers"].sentence
        assert given.raised == mixed.raised == ("width", "worst_subgroup", "gain", "outliers")
        assert (
            sum("Let the width follow the features" in line for line in given.advice) == 1
        )  # of three that ask for it
        # Ranges of the gain are SURE standard errors wide, so two of them, from other rows, hold each other's value.
        assert mixed["gain"].lower < given["gain"].value < mixed["gain"].upper
        assert given["gain"].lower < mixed["gain"].value < given["gain"].upper

    @pytest.mark.parametrize("m", [20, 21, 22, 23, 300])
    def test_outliers_are_those_of_numpy(self, m):
        errors = np.random.default_rng(m).standard_t(1, m)
        low, median, high = np.quantile(errors, [0.25, 0.5, 0.75])
        finding = diagnose(errors, np.zeros(m))["outliers"]
        assert finding.value == np.count_nonzero(np.abs(errors - median) > 10 * (high - low))
        assert not finding.raised  # tails of t1 have such residuals
        errors[3] = 1e9
        found = diagnose(errors, np.zeros(m))["outliers"]
        assert found.raised or m < 100  # five rows may say too little of the tails
        assert not found.raised or "such as row 3 (1e+09) (counted from 0)" in found.advice

    def test_differences_that_do_not_matter_raise_no_alarm(self):
        X, _, y_pred, noise = rows(n=100_000)
        noise[1:] += 0.1 * noise[:-1]
        noise *= np.where(noise > 0, 1.12, 1.0) * (1 + 0.1 * (X[:, 0] - 0.5))
        found = diagnose(y_pred + noise + 0.02 + np.linspace(-0.2, 0.2, 100_000), y_pred, X)
        assert found.raised == ()
        for name in ("width", "bias", "skew", "serial"):
            assert "too little to matter." in found[name].sentence
        assert found["drift"].sentence.endswith("a drift too small to matter.")
        assert (found["bias"].rows, found["drift"].rows, found["gain"].rows) == (100_000, 5_000, 2_000)

    @pytest.mark.parametrize("m", [2000, 5000])
    def test_ties_that_lift_the_coverage_of_all_rows_equally_ask_for_no_width(self, m):
        rng = np.random.default_rng(0)
        y_pred = rng.uniform(0, 100, m).round()
        tied = measure(y_pred + rng.choice([-1, 0, 1], size=m, p=[0.2, 0.6, 0.2]), y_pred)
        assert (tied.diagnosis.raised, tied.recommended_width) == (("discrete",), "constant")
        grown = diagnose(y_pred + np.round(np.where(y_pred > 80, 3, 1) * rng.standard_normal(m)), y_pred)
        assert {"width", "gain"} & set(grown.raised)

    @pytest.mark.parametrize("name", ["skew", "heavy"])
    @pytest.mark.parametrize("distribution", SYMMETRIC)
    def test_symmetric_errors_in_steps_raise_no_alarm(self, distribution, name):
        """`benchmarks/false_alarms.py` has more draws and distributions: there less than 2 % of the draws raise one."""
        checks = {"skew": lambda errors: Skewness().judge(errors, 0.95), "heavy": HeavyTails().judge}
        rng = np.random.default_rng(0)
        raised = [checks[name](SYMMETRIC[distribution](rng, m)).raised for m in (200, 1000) for _ in range(50)]
        # At 2 % six of 100 have a probability of 1.5 %; before, 30 to 99 of 100 of some distributions were.
        assert sum(raised) < 6

    @pytest.mark.parametrize("distribution", SKEWED)
    def test_skewed_errors_are_found(self, distribution):
        rng = np.random.default_rng(0)
        found = [Skewness().judge(SKEWED[distribution](rng, 300), 0.95) for _ in range(20)]
        # Each is found with a probability of more than .97.
        assert sum(finding.raised for finding in found) >= 18
        assert all(finding.value > 0.0 for finding in found)
        assert Skewness().judge(-SKEWED[distribution](rng, 300), 0.95).value < 0.0

    def test_skewness_is_hoggs(self):
        errors = np.random.default_rng(0).exponential(size=200)
        upper, lower, middle = (np.sort(errors)[own].mean() for own in (slice(190, 200), slice(10), slice(50, 150)))
        finding = diagnose(errors, np.zeros(200))["skew"]
        assert_allclose(finding.value, (upper + lower - 2 * middle) / (upper - lower))
        assert f"largest 5 % of the residuals lie {upper - middle:.3g} above" in finding.sentence
        assert "Residuals extend farther above than below" in finding.advice
        assert "largest 20 % of the residuals" in diagnose(errors, np.zeros(200), confidence_level=0.6)["skew"].sentence
        for unit in (1e-300, 1e300):
            assert_allclose(diagnose(errors * unit, np.zeros(200))["skew"].value, finding.value)

    def test_a_sequential_p_value_is_that_of_all_flips(self, monkeypatch):
        rng = np.random.default_rng(0)
        for errors in (rng.standard_normal(100), rng.gamma(20.0, size=100), rng.exponential(size=100)):
            soon = symmetry.p_value(errors, 0.05)
            with monkeypatch.context() as patched:
                patched.setattr(check, "N_EXTREME", 10**9)
                late = symmetry.p_value(errors, 0.05)
            # Ten exceedances give a p-value to within a third or so; fewer are never cut short.
            assert late == soon if soon < 0.01 else 0.3 * late < soon < 3.0 * late

    def test_a_median_that_chance_picks_is_no_skew(self):
        seeds = [np.random.default_rng(seed) for seed in range(5)]
        raised = [diagnose(rng.integers(2, size=1000), np.full(1000, 0.5)).raised for rng in seeds]
        assert not any("skew" in names for names in raised)
        seldom = np.where(seeds[0].uniform(size=1000) < 0.6, 0.0, seeds[0].exponential(size=1000))
        assert "skew" in diagnose(seldom, np.zeros(1000)).raised

    def test_simultaneous_intervals_hold_the_coverage(self):
        X, by, y_pred, noise = rows()
        found = measure(y_pred + noise, y_pred, X=X, by=by)
        assert [part.of for part in found.subgroups].count("prediction") == 5
        assert len(found.subgroups) == 5 + 2 + 15
        for part in found.subgroups:
            assert part.lower <= part.coverage <= part.upper
            tail = 0.003 / 2 / 22
            inside = round(part.coverage * part.rows)
            assert_allclose(stats.binom.sf(inside - 1, part.rows, part.lower) if inside else tail, tail, rtol=1e-6)

    def test_errors_that_are_nothing_beside_others_are_tied(self):
        y_true = np.where(np.arange(200) % 9 < 2, 1.0, 5e-324 * (np.arange(200) % 5))
        finding = diagnose(y_true, np.zeros(200))["heavy"]
        assert np.isnan(finding.value)
        assert "Half of the residuals or more are tied" in finding.sentence

    def test_few_rows(self):
        _, _, y_pred, noise = rows(n=15)
        found = diagnose(y_pred + noise, y_pred)
        assert found.raised == ("rows",)
        assert "they can guarantee 93.8 %, and 19 are needed" in found["rows"].sentence
        assert "360 rows" in found["rows"].sentence

    def test_ties_are_said_only_where_they_are(self):
        _, _, y_pred, noise = rows(n=100)
        noise[np.argsort(np.abs(noise))[:2]] = 0.0  # far from the margin
        found = diagnose(y_pred + noise, y_pred)["rows"].sentence
        assert "with 360 rows it would be within 2." in found
        assert "tied" not in found
        assert "as residuals are tied at the margin" in diagnose(np.sign(noise), np.zeros(100))["rows"].sentence

    def test_same_rows_same_answer_and_an_unknown_finding(self):
        X, by, y_pred, noise = rows(n=60)
        first, second = (diagnose(y_pred + noise, y_pred, X, by) for _ in range(2))
        assert str(first) == str(second)
        assert [finding.value for finding in first.findings] == pytest.approx(
            [finding.value for finding in second.findings], rel=0, nan_ok=True
        )
        with pytest.raises(KeyError, match="'widht' is not a finding; there are rows, variation, features, width"):
            first["widht"]


def pasted(code, **names):
    """What the code makes of these names, without those of a module."""
    held = {"model": lambda X: 4 * np.asarray(X)[:, 0].astype(float), **names}
    exec(code, held)
    return held


class TestRecommendation:
    @pytest.mark.parametrize("is_online", [False, True])
    @pytest.mark.parametrize("tails", ["symmetric", "equal"])
    @pytest.mark.parametrize(
        ("width", "by"),
        [("constant", None), ("scaled", None), ("quantile", None), ("grouped", None), ("grouped", "shop")],
    )
    def test_every_line_runs_when_pasted(self, width, by, tails, is_online):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"x": rng.uniform(size=400), "shop": rng.choice(["a", "b"], 400)})
        y_true = 4 * X["x"].to_numpy() + rng.exponential(size=400)
        names = {"X": X, "X_new": X[:50], "y_true": y_true, "y_pred": 4 * X["x"].to_numpy(), "y_new": y_true[:50]}
        names |= {"by": X["shop"], "by_new": X["shop"][:50], "groups": np.arange(400) // 2}
        copies = ("", "groups", "duplicate_groups(X, y_true)", "duplicate_groups(np.column_stack([y_true, y_pred]))")
        groups = copies[len(width) % 4 if is_online else len(tails) % 4]
        code = Recommendation(width, tails, by, 0.0, groups, is_online).code(0.9)
        held = pasted(code, **names)
        assert held["lower"].shape == held["upper"].shape == (50,)
        assert (held["lower"] >= 0.0).all()
        assert (held["lower"] < held["upper"]).all()
        assert np.mean((held["lower"] <= y_true[:50]) & (y_true[:50] <= held["upper"])) > 0.7  # .9 but for 4.7 errors
        assert held["intervals"].confidence_level == 0.9
        if is_online:  # the comment behind the last line runs, too
            assert pasted(code.rpartition("# then ")[2], **held)["online"].intervals is held["intervals"]

    def test_findings_compose(self):
        X, by, y_pred, noise = rows(n=2000)
        noise[1:] += 0.6 * noise[:-1]
        noise = np.where(noise > 0, 2.0, 1.0) * noise * (1 + 4 * X[:, 0])
        found = diagnose(y_pred + noise, y_pred, X, by)
        assert {"gain", "skew", "serial"} <= set(found.raised)
        assert 'width="scaled", tails="equal", shuffle=False' in found.code
        assert "OnlineIntervals(intervals)" in found.code
        uneven = measure(y_pred + noise * np.where(by == "b", 12, 1), y_pred, X=X, by=by)
        assert uneven.recommended_width == "grouped"  # gains more than a width that follows the features
        assert "calibrate(X, y_true, by=by)" in uneven.code

    def test_bands_are_advised_where_they_gain_more_than_they_cost(self):
        X, by, y_pred, noise = rows(n=1500)
        steep = noise + 0.5 * np.sqrt(12) * (X[:, 1] - 0.5) * noise.std()
        bent = noise + 3.0 * ((X[:, 1] - 0.5) ** 2 - 1 / 12) * noise.std()  # explains 5 % of the squares
        assert measure(y_pred + steep, y_pred, X=X, by=by).recommended_width == "quantile"
        found = measure(y_pred + bent, y_pred, X=X, by=by)
        assert "bias" in found.diagnosis.raised
        assert (found.recommended_width, found.recommended_tails) == ("constant", "symmetric")
        shifted = measure(y_pred + bent + 0.5, y_pred, X=X, by=by)  # a mean error still has two bounds of its own
        assert (shifted.recommended_width, shifted.recommended_tails) == ("constant", "equal")

    def test_counts_are_cut_at_0(self):
        rng = np.random.default_rng(0)
        rate = rng.uniform(0.5, 4, 500)
        found = measure(rng.poisson(rate), rate)
        assert "y_min=0" in found.code
        assert any("No target is negative" in line for line in found.advice)
        assert found.diagnosis.options[-2:] == ("--y-min", "0")
        assert "y_min" not in measure(rng.normal(rate), rate).code
        assert "y_min" not in measure(100 + rng.poisson(rate), 100 + rate).code
        positive = rate * rng.exponential(size=500)  # no zeros, but residuals like these would make some negative
        assert "y_min=0" in measure(positive, rate).code

    def test_groups_and_copies(self):
        X, _, y_pred, noise = rows(n=300)
        grouped = measure(y_pred + noise, y_pred, X=X, groups=np.arange(300) // 3)
        assert "calibrate(X, y_true, groups=groups)" in grouped.code
        y_true, pairs = np.tile(y_pred + noise, 2), np.tile(y_pred, 2)
        copied = measure(y_true, pairs, X=np.tile(X, (2, 1)))
        assert "groups=duplicate_groups(X, y_true))" in copied.code
        held = pasted(copied.code, X=np.tile(X, (2, 1)), X_new=X, y_true=y_true)
        assert held["intervals"].n_calibration_ == 300

    def test_widths_are_not_learned_where_few_groups_would_be_left_to_calibrate(self):
        """Bands gain 4 %; with 50 groups to calibrate their bounds would be those of the largest residuals."""
        X, _, y_pred, noise = rows(n=2000)
        y_true = y_pred + noise + 0.4 * 12**0.5 * (X[:, 2] - 0.5)
        assert measure(y_true, y_pred, X=X).recommended_width == "quantile"
        assert measure(y_true, y_pred, X=X, groups=np.arange(2000) // 2).recommended_width == "quantile"
        few = measure(y_true, y_pred, X=X, groups=np.arange(2000) // 20)
        assert (few.recommended_width, few.recommended_tails) == ("constant", "symmetric")
        exact = measure(y_pred, y_pred, X=X, groups=np.arange(2000) // 20)
        assert exact.recommended_width == "constant"

    def test_advice_says_where_the_code_keeps_a_constant_width(self):
        """Half of 30 groups would be too few to calibrate a width that the other half has learned."""
        X, _, y_pred, noise = rows(n=1000)
        y_true = y_pred + (1.0 + 4.0 * X[:, 2]) * noise
        kept, followed = (measure(y_true, y_pred, X=X, groups=np.arange(1000) % n) for n in (30, 1000))
        assert (kept.recommended_width, followed.recommended_width) == ("constant", "scaled")
        assert ["keeps a constant width" in " ".join(one.advice) for one in (kept, followed)] == [True, False]

    def test_a_bias_that_did_not_last_asks_for_no_bounds_of_its_own(self):
        _, _, y_pred, noise = rows(n=1000)
        lasting = measure(y_pred + noise + 0.3, y_pred)
        assert (lasting.diagnosis.raised, lasting.recommended_tails) == (("bias",), "equal")
        fading = measure(y_pred + noise + np.repeat([0.45, -0.05], 500), y_pred)
        assert "bias" in fading.diagnosis.raised
        assert "drift" in fading.diagnosis.raised or fading.recommended_tails == "symmetric"
        assert recommendation.is_bias_kept(noise + 0.3, 0.95)
        assert not recommendation.is_bias_kept(noise + np.repeat([0.45, -0.05], 500), 0.95)

    def test_copies_count_once(self):
        """50 rows, each there eight times: as rows they are biased, of a spread that differs, and dependent."""
        raised = set()
        for seed in range(10):
            X, _, y_pred, noise = rows(seed, 50)
            once = diagnose(y_pred + noise, y_pred, X)
            found = diagnose(np.tile(y_pred + noise, 8), np.tile(y_pred, 8), np.tile(X, (8, 1)))
            raised |= set(found.raised)
            ranges = [one["bias"].upper - one["bias"].lower for one in (found, once)]
            assert ranges[0] == pytest.approx(ranges[1], rel=0.15)  # by a bootstrap of groups, and of rows
            assert found["serial"].value == once["serial"].value
            assert found["drift"].p_value == once["drift"].p_value
        assert raised == {"copies"}

    @pytest.mark.parametrize("groups", [np.zeros(60), np.arange(60) // 59, np.minimum(np.arange(60), 3)])
    def test_rows_that_nearly_all_belong_together_say_little(self, groups):
        X, _, y_pred, noise = rows(n=60)
        found = diagnose(y_pred + noise + 3.0, y_pred, X, groups=groups)
        assert "too many rows belong together" in found["gain"].sentence
        assert found.raised == ("rows",)
        assert "too few to guarantee 95 % with one row of each: 19 are needed" in found["rows"].sentence
        assert "nan" not in str(found)

    def test_rows_are_named_as_they_were_given(self):
        _, _, y_pred, noise = rows(n=300)
        noise[7] = 1e4
        assert "such as row 7 (10000)" in diagnose(y_pred + noise, y_pred)["outliers"].advice
        assert "such as row 7 (10000)" in diagnose(y_pred + noise, y_pred, time=-np.arange(300))["outliers"].advice

    @pytest.mark.parametrize("time", [None, -np.arange(300)])
    def test_rows_with_an_index_are_named_by_it(self, time):
        _, _, y_pred, noise = rows(n=300)
        noise[7] = 1e4
        for index, name in (
            ([f"id{i}" for i in range(300)], "id7"),
            (pd.date_range("2024-01-01", periods=300), "2024-01-08"),
        ):
            found = diagnose(pd.Series(y_pred + noise, index=index), y_pred, time=time)["outliers"]
            assert re.search(rf"such as index {name}( 00:00:00)? \(10000\): a slip", found.advice)
        counted = diagnose(pd.Series(y_pred + noise), y_pred, time=time)["outliers"]
        assert "row 7 (10000) (counted from 0)" in counted.advice

    def test_rows_in_another_order_are_followed_in_that_of_time(self):
        X, _, y_pred, noise = rows(n=1000)
        y_true, order = y_pred + noise + np.linspace(0, 2, 1000), np.random.default_rng(0).permutation(1000)
        found = measure(y_true[order], y_pred[order], X=X[order], time=order)
        assert "fit(X, y_true, time=time)" in found.code
        assert found.diagnosis.options[-1] == "--online"
        given = {"X_new": X[-5:], "model": lambda X: 4.0 * X[:, 0] + 4.0 * X[:, 1]}
        mixed = pasted(found.code, X=X[order], y_true=y_true[order], time=order, **given)
        sorted_ = pasted(measure(y_true, y_pred, X=X).code, X=X, y_true=y_true, **given)
        assert_allclose(mixed["upper"], sorted_["upper"])

    def test_a_drift_beside_rows_of_a_larger_spread_matters(self):
        rng = np.random.default_rng(0)
        spread = np.where(np.arange(2000) % 4 == 0, 10.0, 1.0)  # the margin of all is that of these rows, about 16
        residuals = spread * rng.standard_normal(2000) + np.linspace(-1, 1, 2000)
        assert diagnose(residuals, np.zeros(2000))["drift"].raised


class TestBias:
    """Where the mean residual is not 0; `benchmarks/diagnosis_advice.py` has the power, of 95 % or more."""

    def test_by_category(self):
        X, _, y_pred, noise = rows(n=1000)
        by = np.random.default_rng(1).choice(list("abcd"), 1000)
        found = diagnose(y_pred + noise + np.select([by == "a", by == "b"], [0.7, -0.7], 0.0), y_pred, X, by)
        assert found.raised == ("bias",)
        assert found["bias"].lower < found["bias"].value < found["bias"].upper
        assert abs(found["bias"].value) == pytest.approx(0.7, abs=0.25)  # 250 rows: four standard errors
        assert "their prediction in category" in found["bias"].advice
        assert "correct the model by category" in found["bias"].advice

    @pytest.mark.parametrize(("at", "named"), [(0, "column 0"), (None, "its own prediction")])
    def test_along_a_number(self, at, named):
        X, _, y_pred, noise = rows(n=1000)
        x = y_pred if at is None else X[:, at]
        found = diagnose(y_pred + noise + 0.4 * (x - x.mean()) / x.std(), y_pred, None if at is None else X)
        assert "bias" in found.raised
        assert named in found["bias"].advice or at == 0
        assert "correct the model along" in found["bias"].advice

    def test_a_bend_without_a_slope(self):
        X, _, y_pred, noise = rows(n=1000)
        found = diagnose(y_pred + noise + 6 * ((X[:, 2] - 0.5) ** 2 - 1 / 12), y_pred, X)
        assert "where column 2 is" in found["bias"].advice

    def test_skewed_residuals_of_mean_0_are_not_biased(self):
        """Their median is -.65; a t-test alone rejects 5 % of such samples where it should reject .6 %."""
        rng = np.random.default_rng(0)
        raised = [Bias().judge(rng.lognormal(size=30) - np.exp(0.5), 4.0).raised for _ in range(400)]
        assert sum(raised) < 16  # 1.6 % of 400 are 6.4, and 16 are 3.8 standard errors more

    def test_a_spread_that_differs_is_no_bias(self):
        rng = np.random.default_rng(0)
        raised = 0
        for _ in range(100):
            x = rng.uniform(size=300)
            shift = local_shift((0.1 + x) ** 2 * rng.standard_t(3, 300), [Criterion("x", quintiles(x), x)])
            raised += Bias().is_local(shift, 1.0)
        assert raised < 7  # 1.2 % are expected; 7 of 100 have a probability of .0002

    def test_the_range_of_a_subgroup_holds_the_mean(self):
        """Also of six rows, and of groups whose rows resemble each other; all places together 99.4 %."""
        rng = np.random.default_rng(0)
        held = np.zeros(2)
        for _ in range(200):
            x, group = rng.uniform(size=31), np.repeat(np.arange(31), 10)
            shift = local_shift(rng.standard_normal(31), [Criterion("x", quintiles(x), x)])
            held[0] += shift.lower <= 0.0 <= shift.upper
            residuals, x = rng.standard_normal(31)[group] + rng.standard_normal(310), x[group]
            shift = local_shift(residuals, [Criterion("x", quintiles(x), x)], Units.of_groups(group))
            held[1] += shift.lower <= 0.0 <= shift.upper
        assert (held >= 194).all()  # 1.2 of 200 are to miss; with normal quantiles, of rows, 23 and 88 do

    def test_missing_values_constants_and_few_rows(self):
        _, _, y_pred, noise = rows(n=300)
        X = pd.DataFrame({"gap": [np.nan, 1.0, 2.0] * 100, "none": np.nan, "same": 1.0, "word": ["x"] * 300})
        found = diagnose(y_pred + noise + np.where(np.isnan(X["gap"]), 2.0, -1.0), y_pred, X)
        assert "where gap is missing" in found["bias"].sentence
        assert "too few" in diagnose(noise[:10], np.zeros(10))["bias"].sentence
        assert not diagnose(np.ones(50), np.ones(50), pd.DataFrame({"same": [1.0] * 50}))["bias"].raised
        assert diagnose(np.full(50, 3.0), np.ones(50))["bias"].raised

    def test_a_mean_error_that_is_not_0_is_never_passed_over(self):
        """Beside a range that does not hold 0 stands more than that there is nothing to do."""
        rng = np.random.default_rng(3)
        seen = 0
        for _ in range(25):
            y_pred = rng.uniform(size=200)
            found = measure(y_pred + 0.16 + rng.standard_normal(200), y_pred)
            score = found.scores["mean_error"]
            if not found.diagnosis.raised and not score.lower <= 0.0 <= score.upper:
                seen += 1
                assert any("their prediction on average" in line for line in found.advice)
                assert "Nothing to do" not in found.advice[0] or "too little to matter" in found.advice[1]
        assert seen > 2


class TestRowsTheModelWasTrainedOn:
    def test_what_can_be_seen_and_what_cannot(self):
        _, _, y_pred, noise = rows(n=1000)
        assert "Small ones" not in diagnose(y_pred + noise, y_pred)["zeros"].sentence
        known = np.where(np.arange(1000) % 5, 1.0, 0.3) * noise
        for residuals in (known, np.random.default_rng(0).standard_t(3, 1000)):
            finding = diagnose(y_pred + residuals, y_pred)["zeros"]
            assert "residuals alone cannot tell which" in finding.sentence
            assert not finding.raised

    def test_ties_are_no_small_residuals(self):
        _, _, y_pred, noise = rows(n=1000)
        assert "Small ones" not in diagnose(np.round(y_pred) + np.round(noise), np.round(y_pred))["zeros"].sentence


class TestLimits:
    """Limits of findings are in the units of their values, and the code reads no sentences."""

    @pytest.mark.parametrize("unit", [1.0, 1e6])
    @pytest.mark.parametrize(
        "kind", ["skewed", "heavy", "steps", "trained on", "scaled", "shifted", "somewhere", "serial"]
    )
    def test_what_is_raised_is_beyond_its_limit(self, kind, unit):
        rng = np.random.default_rng(3)
        x, noise = rng.uniform(size=1000), rng.standard_normal(1000)
        residuals = {
            "skewed": np.exp(noise),
            "heavy": rng.standard_t(1.5, 1000),
            "steps": np.round(noise),
            "trained on": noise * (np.arange(1000) % 10 > 0),
            "scaled": noise * (0.2 + 3.0 * x),
            "shifted": noise + 0.5,
            "somewhere": noise + 1.5 * (x > 0.8),
            "serial": np.convolve(rng.standard_normal(1004), np.ones(5), "valid"),
        }[kind]
        found = diagnose(unit * residuals, np.zeros(1000), X=x[:, None])
        limited = [one for one in found.findings if one.raised and not np.isnan(one.threshold)]
        assert limited
        for one in limited:
            assert abs(one.value - one.reference) >= one.threshold * (1 - 1e-9)
        for one in found.findings:
            assert not one.raised or np.isnan(one.p_value) or one.p_value <= one.significance

    def test_where_ids_are_all_that_was_given(self):
        y = np.random.default_rng(0).normal(size=200)
        ids = pd.DataFrame({"id": np.arange(200)})
        for found in (
            pm.measure(y, 1e-3 * y[::-1], X=ids),
            pm.measure(y, intervals=np.stack([y - 1, y + 1], axis=1), X=ids, confidence_level=0.9),
        ):
            assert found.diagnosis["worst_subgroup"].sentence == "No features are left to look at."


class TestFalseAlarms:
    """All checks of a report fraction 5 %."""

    def test_the_parts_are_no_more_than_the_whole(self):
        assert sum(one.significance for one in CHECKS) <= check.FALSE_ALARMS + 1e-12
        # What excludes chance at 99.7 % is never called chance.
        assert min(one.significance for one in CHECKS if one.significance) >= 0.003

    def test_what_is_unusual_is_not_called_chance(self):
        assert check.by_chance(0.2) == ", which chance explains."
        assert "chance" not in check.by_chance(0.01)

    def test_two_hills_are_no_heavy_tails(self):
        """Their median lies in one of them: beside it half of the residuals are near, and the others far."""
        rng = np.random.default_rng(0)
        hills = [rng.choice([-2.0, 2.0], 300, p=[q, 1 - q]) + 0.05 * rng.standard_normal(300) for q in (0.4, 0.5, 0.6)]
        assert not any(HeavyTails().judge(one).raised for one in hills)
        assert HeavyTails().judge(rng.standard_t(2, 300)).raised

    def test_heavy_tails_have_no_outliers(self):
        rng = np.random.default_rng(0)
        for draw in (
            lambda: rng.standard_t(2, 1000),
            lambda: rng.lognormal(size=1000),
            lambda: rng.standard_cauchy(1000),
        ):
            raised = [Outliers().judge(np.sort(errors), errors).raised for errors in (draw() for _ in range(200))]
            assert sum(raised) < 6  # .4 % of 200 are .8; 6 have a probability of .0002

    def test_a_drift_of_half_a_standard_deviation_is_found(self):
        rng = np.random.default_rng(0)
        found = [Drift().judge(rng.standard_normal(1000) + np.linspace(0, 0.5, 1000), 1.96).raised for _ in range(60)]
        assert sum(found) > 36  # .8 of 60 are 48, with a standard error of 3


def test_one_of_many_is_said_in_the_singular():
    residuals = np.sin(np.arange(60.0))
    residuals[:2] = 1e3, 0.0
    found = measure(residuals + np.arange(60.0), np.arange(60.0)).diagnosis
    assert found["outliers"].sentence.startswith("1 of 60 residuals is farther than")
    assert found["zeros"].sentence.startswith("1 of 60 residuals is exactly 0")


def test_code_that_leaves_copies_of_labels_out_runs():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    y_score, y_true = np.tile(score, 2), np.tile((rng.random(200) < score).astype(int), 2)
    found = scorecard(y_true, y_score)
    assert "copies" in found.diagnosis.raised
    names = {"y_score": y_score, "y_true": y_true}
    exec(found.code, names)
    assert len(names["first_rows"]) == 200


class TestFoundBySimulation:
    """Faults that a report had, each of which a simulation found; rates are of alarms where nothing is wrong."""

    @staticmethod
    def alarms(name, draw, n=20):
        return sum(name in measure(**draw(np.random.default_rng(seed))).diagnosis.raised for seed in range(n))

    def test_groups_count_in_subgroups_of_more_rows_than_are_looked_at_one_by_one(self):
        """The spread differs by group, not by prediction: it was an alarm in 30 of 40 reports on 20,000 rows."""

        def draw(rng):
            groups = np.repeat(np.arange(60), 100)
            y_pred = rng.normal(size=60)[groups] + 0.1 * rng.normal(size=6000)
            residuals = rng.normal(size=6000) * np.exp(0.8 * rng.normal(size=60))[groups]
            return {"y_true": y_pred + residuals, "y_pred": y_pred, "groups": groups, "confidence_level": 0.9}

        assert self.alarms("width", draw) <= 1

    def test_dependence_that_is_found_counts_in_all_checks(self):
        """Slow features say nothing of residuals in spells: they did in 20 of 60 reports."""

        def slow(rng):
            return lfilter([1.0], [1.0, -0.97], rng.normal(size=2000)) * 0.24

        def draw(rng):
            y_pred, spread = rng.normal(size=2000), np.exp(0.8 * slow(rng))
            X = np.column_stack([slow(rng), slow(rng)])
            return {"y_true": y_pred + rng.normal(size=2000) * spread, "y_pred": y_pred, "X": X}

        assert max(self.alarms(name, draw) for name in ("width", "worst_subgroup", "gain")) <= 1
        assert self.alarms("serial", draw) >= 18

    def test_bounds_and_common_values_that_are_hit_are_no_training_rows(self):
        def clipped(rng):
            y_pred = rng.normal(0.5, 0.25, 300)
            return {"y_true": (y_pred + 0.2 * rng.normal(size=300)).clip(0, 1), "y_pred": y_pred.clip(0, 1)}

        def trained(rng):
            y_pred, noise = rng.normal(size=(2, 300))
            noise[:30] = 0.0
            return {"y_true": y_pred + noise, "y_pred": y_pred}

        assert self.alarms("zeros", clipped) == 0
        assert self.alarms("zeros", trained) == 20

    def test_subgroups_without_a_rare_event_are_not_biased(self):
        """Predictions are the true means: an alarm in 18 % of reports."""

        def draw(rng):
            y_pred = 0.005 * np.exp(0.5 * rng.normal(size=1000) - 0.125)
            return {"y_true": rng.poisson(y_pred).astype(float), "y_pred": y_pred}

        assert self.alarms("bias", draw) == 0

    def test_the_farthest_residual_of_a_group_counts_once(self):
        def draw(rng):
            groups = np.repeat(np.arange(100), 50)
            residuals = np.exp(rng.normal(size=100))[groups] - 1.65 + 0.1 * rng.normal(size=5000)
            y_pred = rng.normal(size=5000)
            return {"y_true": y_pred + residuals, "y_pred": y_pred, "groups": groups}

        assert self.alarms("outliers", draw) <= 1
        rng = np.random.default_rng(0)
        y_pred, noise = rng.normal(size=(2, 1000))
        noise[7] = 100.0
        found = measure(y_pred + noise, y_pred, groups=np.arange(1000) // 10).diagnosis["outliers"]
        assert "such as row 7 (100)" in found.advice

    def test_amounts_that_are_mostly_zero_are_not_discrete(self):
        rng = np.random.default_rng(0)
        y_true = np.where(rng.random(300) < 0.05, rng.gamma(2.0, size=300), 0.0)
        y_pred = 0.1 + 0.01 * rng.normal(size=300)
        assert "discrete" not in measure(y_true, y_pred).diagnosis.raised
        assert "discrete" in measure(rng.poisson(2.0, 300).astype(float), y_pred).diagnosis.raised

    def test_the_mean_of_unequal_groups_has_its_own_range(self):
        """Groups of 5 and of 100 rows: the range was of totals, which differ by the number of rows."""
        groups = np.repeat(np.arange(20), [5, 100] * 10)
        rng = np.random.default_rng(0)
        y_pred = rng.normal(size=len(groups))
        result = measure(y_pred + 10.0 + rng.normal(size=len(groups)), y_pred, groups=groups)
        found, score = result.diagnosis["bias"], result.scores["mean_error"]
        assert (found.lower, found.upper) == (score.lower, score.upper)
        shift = mean_residual(y_pred * 0.0 + 10.0 + rng.normal(size=len(groups)), Units.of_groups(groups))
        assert 9.8 < shift.lower < shift.upper < 10.2
