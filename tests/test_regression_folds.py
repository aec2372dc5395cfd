"""CV+: the bounds are the order statistics that its definition names, by bisection and written out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pimeter import IntervalRegressor, ScaledWidth
from pimeter.conformal.folds import FoldModels, _bisected, _written_out, kth_smallest
from pimeter.regression.spread import tree_spread

RNG = np.random.default_rng(0)


def written_down(centres, scales, magnitudes, lists, k):
    """The definition."""
    return np.sort(centres[lists] + scales[lists] * magnitudes[:, None], axis=0)[k - 1]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 60),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-9, 1.0, 1e6]),
    st.booleans(),
)
def test_bisection_finds_the_order_statistic(n_lists, m, seed, apart, has_ties):
    rng = np.random.default_rng(seed)
    lists = np.concatenate([np.arange(n_lists), rng.integers(n_lists, size=m)])
    magnitudes = rng.normal(size=len(lists))
    magnitudes = np.round(magnitudes) if has_ties else magnitudes
    centres, scales = apart * rng.normal(size=(n_lists, 7)), rng.uniform(0.1, 3, size=(n_lists, 7))
    by_list = [np.sort(magnitudes[lists == i]) for i in range(n_lists)]
    for k in {1, len(magnitudes), int(rng.integers(1, len(magnitudes) + 1))}:
        expected = written_down(centres, scales, magnitudes, lists, k)
        assert_allclose(_bisected(centres, scales, by_list, k), expected, rtol=1e-14, atol=1e-14 * (1 + apart))
        assert_allclose(_written_out(centres, scales, magnitudes, lists, k), expected, rtol=1e-14)
        plain = written_down(centres, np.ones_like(scales), magnitudes, lists, k)
        assert_allclose(kth_smallest(centres, None, magnitudes, lists, k), plain, rtol=1e-14, atol=1e-14 * (1 + apart))


@pytest.mark.parametrize("offset", [0.0, 0.3, 1.7e9, 1e13])
@pytest.mark.parametrize("step", [0.1, 1e-3])
def test_bisection_stops_where_values_are_apart_by_rounding_alone(offset, step):
    rng = np.random.default_rng(int(10 * offset) + int(1 / step))
    for _ in range(50):
        magnitudes, lists = np.round(rng.normal(size=200) / step) * step, np.repeat(np.arange(4), 50)
        centres = offset + np.round(rng.normal(size=(4, 30)) / step) * step
        for scales in (None, rng.choice([0.1, 0.3, 1.7], size=(4, 30))):
            found = _bisected(centres, scales, list(np.sort(magnitudes.reshape(4, 50), axis=1)), 181)
            assert_array_equal(found, _written_out(centres, scales, magnitudes, lists, 181))


def test_bounds_of_cross_conformal_intervals():
    X, new = RNG.normal(size=(200, 3)), RNG.normal(size=(50, 3))
    y = X.sum(axis=1) + RNG.standard_t(3, size=200)
    cv = KFold(5, shuffle=True, random_state=1)
    model = IntervalRegressor(LinearRegression(), confidence_level=0.9, cv=cv).fit(X, y)
    lower, upper = np.empty((2, 200, 50))
    for train, test in cv.split(X):
        fold = LinearRegression().fit(X[train], y[train])
        size = np.abs(y[test] - fold.predict(X[test]))[:, None]
        lower[test], upper[test] = fold.predict(new) - size, fold.predict(new) + size
    expected = np.stack([np.sort(lower, axis=0)[200 - 181], np.sort(upper, axis=0)[180]], axis=1)  # ceil(201 * .9)
    assert_allclose(model.predict_interval(new), expected, rtol=1e-12)
    assert_allclose(model.predict(new), np.mean([fold.predict(new) for fold in model.estimator_], axis=0))


def bootstrap(n, n_resamples):
    rng = np.random.default_rng(1)
    for _ in range(n_resamples):
        rows = rng.integers(n, size=n)
        yield rows, np.setdiff1d(np.arange(n), rows)


def test_resamples_give_the_jackknife_after_bootstrap():
    X, new = RNG.normal(size=(80, 3)), RNG.normal(size=(9, 3))
    y = X.sum(axis=1) + RNG.normal(size=80)
    splits = list(bootstrap(80, 15))
    model = IntervalRegressor(Ridge(), confidence_level=0.9, cv=splits).fit(X, y)
    upper = []
    for i in range(80):
        without = [Ridge().fit(X[rows], y[rows]) for rows, others in splits if i in others]
        if without:
            size = abs(y[i] - np.mean([one.predict(X[[i]]) for one in without]))
            upper.append(np.mean([one.predict(new) for one in without], axis=0) + size)
    k = int(np.ceil((len(upper) + 1) * 0.9))
    assert model.n_calibration_ == len(upper)
    assert_allclose(model.predict_interval(new)[:, 1], np.sort(upper, axis=0)[k - 1])


def test_rows_that_no_split_leaves_out_do_not_calibrate():
    X, y = RNG.normal(size=(100, 2)), RNG.normal(size=100)
    model = IntervalRegressor(Ridge(), cv=ShuffleSplit(2, test_size=0.3, random_state=0)).fit(X, y)
    assert 30 <= model.n_calibration_ <= 60


def test_rows_left_out_together_have_one_list():
    folds = FoldModels.of(np.array([[True, False], [False, True], [True, True], [True, False]]))
    assert folds.list_of_row[0] == folds.list_of_row[3]
    assert_array_equal(folds.averaged(np.array([[1.0], [3.0]]))[folds.list_of_row].ravel(), [1, 3, 2, 1])


@pytest.mark.parametrize("width", ["constant", "scaled"])
def test_one_split_as_cv_is_the_split(width):
    X, y = RNG.normal(size=(300, 2)), RNG.normal(size=300)
    split = ShuffleSplit(1, test_size=0.2, random_state=0)
    folds = IntervalRegressor(Ridge(), width=width, cv=split, random_state=0).fit(X, y)
    assert_allclose(
        folds.predict_interval(X), folds.predict(X)[:, None] + np.diff(folds.predict_interval(X)) * [-0.5, 0.5]
    )


def test_memory_is_bounded():
    # 2,000 x 2,000 values would be 32 MB for each end.
    X, new = RNG.normal(size=(2, 2000, 4))
    model = IntervalRegressor(LinearRegression(), cv=5).fit(X, X.sum(axis=1) + RNG.normal(size=2000))
    tracemalloc.start()
    model.predict_interval(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


def test_what_is_proven_of_folds_is_guaranteed_of_fair_ones_alone():
    X = RNG.normal(size=(103, 2))
    y = X[:, 0] + RNG.normal(size=103)
    rows = np.arange(103)
    uneven = [(rows[30:], rows[:30]), (rows[:30], rows[30:])]
    partial = [(train[::2], left) for train, left in KFold(5).split(X)]
    levels = [
        IntervalRegressor(Ridge(), cv=cv).fit(X, y).guaranteed_level_
        for cv in (5, uneven, ShuffleSplit(8, test_size=0.3), TimeSeriesSplit(5), partial)
    ]
    assert_allclose(levels, [0.9 - (2 / 103) ** 0.5, *[np.nan] * 4])


def test_the_warning_of_too_few_rows_says_what_is_guaranteed():
    X = RNG.normal(size=(15, 1))
    with pytest.warns(
        UserWarning, match=r"15 scores can guarantee 51 %, not 95 %; 19 are needed \(with cv they guarantee 2"
    ):
        model = IntervalRegressor(Ridge(), cv=5).fit(X, X[:, 0])
    assert round(model.guaranteed_level_, 3) == 0.51


class CountingRidge(Ridge):
    """Remembers how many rows each fit had."""

    counts: list[int] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        CountingRidge.counts.append(len(y))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("width", ["scaled", "auto"])
def test_width_of_a_fold_has_seen_no_target_of_it(width):
    # What CV+ is proven from: the model and the width of a fold depend on the rows of all others alone.
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(200, 3)), rng.normal(size=(20, 3))
    y = X[:, 0] + rng.normal(size=200) * np.exp(X[:, 1])
    folds = list(KFold(4, shuffle=True, random_state=1).split(X))
    other = y.copy()
    other[folds[2][1]] = rng.normal(scale=50, size=len(folds[2][1]))
    one, two = (IntervalRegressor(Ridge(), width=width, cv=folds, random_state=0).fit(X, t) for t in (y, other))
    shapes = [[part[i].shape(new, np.zeros((20, 1))) for part in (one.width_, two.width_)] for i in range(4)]
    scales = [[np.ones((20, 1)) if shape.scale is None else shape.scale for shape in pair] for pair in shapes]
    assert_array_equal(*scales[2])
    assert all((before != after).any() for i, (before, after) in enumerate(scales) if i != 2)


def test_models_without_two_folds_serve_both():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    CountingRidge.counts.clear()
    IntervalRegressor(CountingRidge(), width="scaled", cv=5, random_state=0).fit(X, y)
    assert sorted(CountingRidge.counts) == [60] * 10 + [80] * 5
    CountingRidge.counts.clear()
    IntervalRegressor(CountingRidge(), width="scaled", cv=3, random_state=0).fit(X, y)
    assert len(CountingRidge.counts) == 3 * (1 + 5)  # two of three folds would leave a third of the rows to train on


class Interrupted(Ridge):
    """Stops at its twelfth fit, like a user who has waited long enough."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Interrupted.n_fits += 1
        if Interrupted.n_fits == 12:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def test_interrupted_fit_leaves_the_estimator_as_it_was(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = IntervalRegressor(Interrupted(), cv=5, random_state=0, verbose=1).fit(X, y)
    assert "[IntervalRegressor] model 5 of 5" in capsys.readouterr().out
    before = model.predict_interval(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(width="scaled").fit(X, y)
    assert "model 6 of 15" in capsys.readouterr().out
    assert_array_equal(model.predict_interval(X), before)


def test_scale_sees_how_far_trees_disagree():
    # Rows in one half have many neighbours, in the other one few: there the trees disagree, and errors are larger.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 4))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=600)
    forest = ExtraTreesRegressor(30, random_state=0)
    models = {
        "forest": IntervalRegressor(forest, width="auto", cv=5, random_state=0).fit(X, y),
        "pipeline": IntervalRegressor(
            make_pipeline(StandardScaler(), forest), width=ScaledWidth("neighbours"), random_state=0
        ).fit(X, y),
        "calibrated": IntervalRegressor(forest.fit(X[:300], y[:300]), width="auto", random_state=0).calibrate(
            X[300:], y[300:]
        ),
    }
    for name, model in models.items():
        width = model._widths()[0]
        scaled = width if isinstance(width, ScaledWidth) else width.candidates_[1].width
        spread = tree_spread(model._models()[0], X[:50])
        trees = model._models()[0]
        trees = trees[-1].estimators_ if name == "pipeline" else trees.estimators_
        seen = X[:50] if name != "pipeline" else model._models()[0][:-1].transform(X[:50])
        assert_allclose(spread[:, 0], np.std([tree.predict(seen) for tree in trees], axis=0), rtol=1e-9)
        assert scaled.models_[0].n_features_in_ == seen.shape[1] + 1 + 8 + 1  # prediction, neighbours, spread
        assert np.isfinite(model.predict_interval(X[:5])).all()
    assert tree_spread(Ridge().fit(X, y), X) is None
