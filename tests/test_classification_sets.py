"""Sets of classes: what is guaranteed, to whom, and that draws belong to rows."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from pimeter import CoverageWarning, SetClassifier
from pimeter.classification.conformity import PENALTIES, Penalty, aps, chosen_penalty, lac
from pimeter.conformal.guarantee import NOT_ALL_OTHERS, rank_guarantee
from pimeter.row_hashes import row_draws

K = 4


def model(X):
    """Knows the classes' log-odds, and takes them for more than they are."""
    return softmax(1.5 * np.asarray(X, float), axis=1)


def rows(n, seed=0, k=K):
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=1.5, size=(n, k))
    return X, (X + rng.gumbel(size=(n, k))).argmax(axis=1)


X, Y = rows(300)
NEW, Y_NEW = rows(500, 1)


def covered(sets, y):
    return sets[np.arange(len(y)), y]


def test_scores_by_hand():
    p = np.array([[0.5, 0.2, 0.3]])
    assert_allclose(lac(p, None, Penalty()), [[0.5, 0.8, 0.7]])
    assert_allclose(aps(p, None, Penalty()), [[0.0, 0.8, 0.5]])
    assert_allclose(aps(p, np.array([0.25]), Penalty()), [[0.375, 0.95, 0.725]])
    assert_allclose(aps(p, None, Penalty(0.1, 1)), [[0.0, 1.0, 0.6]])


def test_limit_is_the_score_of_its_rank():
    found = SetClassifier(model, confidence_level=0.9).calibrate(X, Y)
    scores = np.sort(1 - model(X)[np.arange(300), Y])
    assert found.limit_ == scores[271 - 1]
    assert_array_equal(found.predict_set(NEW), 1 - model(NEW) <= scores[270])
    assert found.guaranteed_level_ == 0.9
    neuron = SetClassifier(model, confidence_level=0.95, guarantee="approximate").calibrate(X, Y)
    assert neuron.guaranteed_level_ == rank_guarantee(300, 0.95, kind="approximate").level == 285 / 301
    assert found.n_calibration_ == 300
    assert 0.86 < found.coverage_range_[0] < 0.9 < found.coverage_range_[1] < 0.94


@pytest.mark.parametrize(
    ("score", "randomized"), [("lac", False), ("aps", False), ("aps", True), ("raps", False), ("raps", True)]
)
@pytest.mark.parametrize("guarantee", ["marginal", "approximate"])
def test_coverage_on_average_over_calibration_sets(score, randomized, guarantee):
    p, m, fractions = 0.8, 60, []
    for seed in range(150):
        sets = SetClassifier(
            model,
            confidence_level=p,
            conformity_score=score,
            randomized=randomized,
            guarantee=guarantee,
            random_state=seed,
        )
        sets.calibrate(*rows(m, [seed, 0]))
        new, y = rows(300, [seed, 1])
        fractions.append(covered(sets.predict_set(new), y).mean())
    error = np.std(fractions) / len(fractions) ** 0.5
    m = m - m // 5 if score == "raps" else m
    slack = 0.0 if guarantee == "marginal" else 1 / (m + 1)
    assert np.mean(fractions) > p - slack - 3 * error
    if score == "lac" or randomized:  # without ties
        assert np.mean(fractions) < p + 1 / (m + 1) + 3 * error


def test_guarantee_for_the_set_at_hand():
    kept = []
    for seed in range(120):
        sets = SetClassifier(model, confidence_level=0.8, guarantee="training-conditional").calibrate(
            *rows(80, [seed, 2])
        )
        new, y = rows(2000, [seed, 3])
        kept.append(covered(sets.predict_set(new), y).mean() >= 0.8)
    # 2,000 new rows blur the border by .009; guaranteed are 95 %.
    assert np.mean(kept) > 0.87


def test_too_few_rows_give_full_sets_and_the_guarantee_holds():
    with pytest.warns(
        CoverageWarning, match="12 scores can guarantee 92.3 %, not 95 %; 19 are needed: their sets are full"
    ):
        found = SetClassifier(model).calibrate(*rows(12))
    assert found.predict_set(NEW).all()
    assert found.guaranteed_level_ == 0.95
    assert found.limit_ == np.inf
    assert np.isnan(found.coverage_range_).all()


def test_each_class_is_covered():
    rng = np.random.default_rng(0)
    fractions = np.zeros((80, K))
    for i in range(80):
        X, y = rows(600, [i, 4])
        keep = (y != 0) | (rng.uniform(size=600) < 0.3)  # a rare class
        found = SetClassifier(model, confidence_level=0.8, by="class").calibrate(X[keep], y[keep])
        new, true = rows(1500, [i, 5])
        hit = covered(found.predict_set(new), true)
        fractions[i] = [hit[true == k].mean() for k in range(K)]
    error = fractions.std(axis=0) / 80**0.5
    assert (fractions.mean(axis=0) > 0.8 - 3 * error).all()
    assert (fractions.mean(axis=0) < 0.8 + 1 / 20 + 3 * error).all()
    assert [line.label for line in found.categories_] == list(range(K))
    assert found.limit_.shape == (K,)


def test_a_class_with_too_few_rows_is_in_every_set():
    keep = (Y != 2) | (np.cumsum(Y == 2) <= 5)
    with pytest.warns(CoverageWarning, match="5 scores of 1 of 4 classes can guarantee .* that class is in every set"):
        found = SetClassifier(model, by="class").calibrate(X[keep], Y[keep])
    assert found.predict_set(NEW)[:, 2].all()
    assert found.categories_[2].source == "none"
    assert found.guaranteed_level_ == 0.95


# In some draws the small categories together are too few, and have full sets.
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
def test_each_category_is_covered_and_small_ones_together():
    def data(n, seed):
        X, y = rows(n, seed)
        rng = np.random.default_rng(seed)
        kind = rng.choice(["calm", "wild", "rare", "odd"], n, p=[0.6, 0.3, 0.05, 0.05])
        return np.where((kind != "calm")[:, None], 0.3, 1.0) * X, y, kind  # harder than it looks

    fractions = []
    for i in range(60):
        X, y, kind = data(300, [i, 6])
        found = SetClassifier(model, confidence_level=0.9, guarantee="marginal").calibrate(X, y, by=kind)
        new, true, new_kind = data(1000, [i, 7])
        hit = covered(found.predict_set(new, by=new_kind), true)
        fractions.append([hit[new_kind == name].mean() for name in ("calm", "wild")])
    fractions = np.array(fractions)
    assert (fractions.mean(axis=0) > 0.9 - 3 * fractions.std(axis=0) / 60**0.5).all()
    few = SetClassifier(model, confidence_level=0.99).calibrate(X, y, by=kind)  # 99 rows are needed
    assert {line.label: line.source for line in few.categories_} == {
        "calm": "own",
        "wild": "shared",
        "rare": "shared",
        "odd": "shared",
    }
    # No small one has the guarantee, or the range of the pool, by itself.
    assert [("together" in line.note) for line in few.categories_] == [
        line.source == "shared" for line in few.categories_
    ]
    is_small = np.array([line.source == "shared" for line in few.categories_])
    assert (np.isnan(few.coverage_range_).all(axis=1) == is_small).all()
    assert found.predict_set(new[:5], by=["never seen"] * 5).shape == (5, K)


def test_a_category_that_a_row_less_makes_small_lends_its_scores():
    by = np.repeat(["big", "border", "small"], [len(Y) - 14, 9, 5])  # 9 rows are needed
    found = SetClassifier(model, confidence_level=0.9).calibrate(X, Y, by=by)
    pool = SetClassifier(model, confidence_level=0.9).calibrate(X[-14:], Y[-14:])
    alone = SetClassifier(model, confidence_level=0.9).calibrate(X[-14:-5], Y[-14:-5])
    for label, other in (("small", pool), ("never seen", pool), ("border", alone)):
        assert_array_equal(found.predict_set(NEW, by=[label] * len(NEW)), other.predict_set(NEW))
    assert [line.source for line in found.categories_] == ["own", "own", "shared"]


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@pytest.mark.parametrize("by", ["class", None])
@pytest.mark.parametrize("guarantee", ["marginal", "approximate", "training-conditional"])
def test_sets_of_a_higher_level_are_never_smaller(by, guarantee):
    """A category of 12 rows that the model is wrong about had its own limit at 90 %, and a lower one at 95 %."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(31), 12)
    P = rng.dirichlet(np.ones(3), len(kind))
    y = np.array([rng.choice(3, p=p) for p in P])
    P[kind == 0], y[kind == 0] = [0.98, 0.01, 0.01], 2
    found = SetClassifier(lambda P: P, confidence_level=0.9, by=by, guarantee=guarantee)
    found.calibrate(P, y, by=None if by else kind)
    sets = [found.predict_set(P, level, by=None if by else kind) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert all((low <= high).all() for low, high in pairwise(sets))
    assert_array_equal(sets[2], found.predict_set(P, by=None if by else kind))


def test_categories_are_looked_up_and_not_compared_with_each_other():
    class Label:
        compared = 0
        __hash__ = object.__hash__

        def __eq__(self, other):
            Label.compared += 1
            return self is other

    by = [Label() for _ in range(150)] * 2
    SetClassifier(model, confidence_level=0.5).calibrate(X, Y, by=by).predict_set(X, by=by)
    assert Label.compared < len(by)


def test_categories_of_another_type_make_a_warning():
    found = SetClassifier(model, confidence_level=0.8).calibrate(X, Y, by=np.arange(300) % 2)
    with pytest.warns(
        CoverageWarning, match=r"by holds '0' \(str\), which calibration has not seen; it has seen 0 \(int\)"
    ):
        sets = found.predict_set(NEW, by=(np.arange(500) % 2).astype(str))
    assert sets.all()
    with pytest.warns(CoverageWarning, match=r"2 categories never seen in calibration \('a', 'b'\), .* sets are full"):
        assert found.predict_set(NEW, by=np.array(["a", "b"])[np.arange(500) % 2]).all()
    assert not found.predict_set(NEW, by=np.arange(500) % 2).all()


def test_a_missing_category_is_a_category():
    by = np.where(X[:, 0] > 0, 1.0, np.nan)
    named = np.where(X[:, 0] > 0, "up", "missing")
    bounds = [SetClassifier(model, confidence_level=0.8).calibrate(X, Y, by=labels) for labels in (by, named)]
    new_by = np.where(NEW[:, 0] > 0, 1.0, np.nan)
    expected = bounds[1].predict_set(NEW, by=np.where(NEW[:, 0] > 0, "up", "missing"))
    assert_array_equal(bounds[0].predict_set(NEW, by=new_by), expected)


def test_categories_of_a_column_or_a_function():
    frame = pd.DataFrame(X, columns=list("abcd"))
    by = X[:, 0] > 0
    given = SetClassifier(model, confidence_level=0.8).calibrate(X, Y, by=by).predict_set(NEW, by=NEW[:, 0] > 0)
    function = SetClassifier(model, confidence_level=0.8, by=lambda X: np.asarray(X)[:, 0] > 0).calibrate(X, Y)
    assert_array_equal(function.predict_set(NEW), given)
    frame["kind"] = np.where(by, "up", "down")
    of_frame = SetClassifier(lambda F: model(F[list("abcd")]), confidence_level=0.8, by="kind").calibrate(frame, Y)
    new = pd.DataFrame(NEW, columns=list("abcd")).assign(kind=np.where(NEW[:, 0] > 0, "up", "down"))
    assert_array_equal(of_frame.predict_set(new), given)
    with pytest.raises(ValueError, match="by is given twice"):
        of_frame.predict_set(new, by=new["kind"])
    with pytest.raises(ValueError, match="by='hue' is not a column of X, which has"):
        SetClassifier(model, by="hue").calibrate(frame, Y)
    bounds = [SetClassifier(lambda X: model(X[:, :K]), confidence_level=0.8, by=by) for by in (K, -1)]
    table, new = (np.column_stack([rows, rows[:, 0] > 0]) for rows in (X, NEW))
    for positioned in bounds:
        assert_array_equal(positioned.calibrate(table, Y).predict_set(new), given)
    for by in (K + 1, -K - 2, "hue"):
        with pytest.raises(ValueError, match=f"by={by!r} is not the position of a column"):
            SetClassifier(model, by=by).calibrate(table, Y)


# Draws ----------------------------------------------------------------------------------------------------------------


def test_draws_belong_to_rows():
    found = SetClassifier(model, conformity_score="aps", randomized=True, random_state=0).calibrate(X, Y)
    sets = found.predict_set(NEW)
    order = np.random.default_rng(0).permutation(len(NEW))
    assert_array_equal(found.predict_set(NEW[order]), sets[order])
    assert_array_equal(np.vstack([found.predict_set(NEW[i : i + 1]) for i in range(20)]), sets[:20])
    frame = pd.DataFrame(NEW)
    assert_array_equal(found.predict_set(frame.to_numpy()), sets)
    other = SetClassifier(model, conformity_score="aps", randomized=True, random_state=1).calibrate(X, Y)
    assert (other.predict_set(NEW) != sets).any()


def test_randomized_sets_need_rows():
    model = SetClassifier(
        lambda _: np.array([[0.5, 0.5]]), confidence_level=0.5, conformity_score="aps", randomized=True
    )
    with pytest.raises(ValueError, match="X must have rows, but it is a dict"):
        model.calibrate({0: 0.1}, [1]).predict_set({0: 0.1})


def test_draws_are_uniform_and_independent_of_the_kind_of_table():
    table = np.random.default_rng(0).normal(size=(5000, 3))
    draws = row_draws(table, 3)
    assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)
    assert abs(np.corrcoef(draws, row_draws(table, 4))[0, 1]) < 0.05
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.05
    assert_array_equal(row_draws(pd.DataFrame(table), 3), draws)
    assert_array_equal(row_draws(pl.DataFrame(table), 3), draws)
    assert_array_equal(row_draws(table.tolist(), 3), draws)
    small = np.array([[0, -0.0, np.nan], [1, 2, 3]])
    assert row_draws(small, 0)[0] == row_draws([[0.0, 0, -np.nan]], 0)[0]
    words = row_draws(["one text", "another", "one text"], 0)
    assert words[0] == words[2] != words[1]
    mixed = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert len(set(row_draws(mixed, 0))) == 2
    matrix = sparse.csr_array(small[1:])
    assert row_draws(matrix, 0).shape == (1,)


def test_a_draw_depends_on_its_row_alone():
    frame = pd.DataFrame({"zip": ["10115", "80331", None, "D-1"], "v": [1, 2, 3, 4]}, dtype=object)
    alone = [row_draws(frame[i : i + 1], 0)[0] for i in range(4)]
    assert_array_equal(row_draws(frame, 0), alone)
    rows = sparse.csr_matrix(([1.0, 0.0, 2.0], [2, 1, 0], [0, 3]), shape=(1, 3))
    assert_array_equal(row_draws(rows, 0), row_draws(sparse.csr_matrix([[2.0, 0.0, 1.0]]), 0))
    assert_array_equal(rows.indices, [2, 1, 0])  # as they were given


@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 3], ["a", "b", "c"]])
def test_limits_of_classes_do_not_depend_on_their_names(names):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X[::2], np.array(names)[y[::2]])
    found = SetClassifier(model, confidence_level=0.8, by="class").calibrate(X[1::2], np.array(names)[y[1::2]])
    plain = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    expected = SetClassifier(plain, confidence_level=0.8, by="class").calibrate(X[1::2], y[1::2])
    assert np.isfinite(expected.limit_).all()
    assert_array_equal(found.limit_, expected.limit_)
    assert_array_equal(found.coverage_range_, expected.coverage_range_)


def test_a_function_has_to_give_a_column_for_each_class():
    with pytest.raises(ValueError, match=r"has to return \(n, n_classes\) probabilities"):
        SetClassifier(lambda X: X[:, 0]).calibrate(np.ones((5, 2)), np.zeros(5))


# RAPS -----------------------------------------------------------------------------------------------------------------


def test_raps_chooses_its_constants_on_rows_that_do_not_calibrate():
    found = SetClassifier(model, conformity_score="raps", random_state=0).calibrate(X, Y)
    assert found.n_calibration_ == 240
    assert found.penalty_.weight in PENALTIES
    assert 1 <= found.penalty_.n_free <= K
    p = model(NEW)
    chosen = chosen_penalty(p, Y_NEW, None, 0.9)
    magnitudes = {}
    for weight in PENALTIES:
        scores = aps(p, None, Penalty(weight, chosen.n_free))
        magnitudes[weight] = (scores <= np.sort(covered(scores, Y_NEW))[451 - 1]).sum()
    assert magnitudes[chosen.weight] == min(magnitudes.values())


# Training -------------------------------------------------------------------------------------------------------------


def test_fit_trains_calibrates_and_leaves_the_estimator_alone():
    estimator = LogisticRegression()
    found = SetClassifier(estimator, confidence_level=0.9, random_state=0).fit(X, Y)
    assert not hasattr(estimator, "coef_")
    assert found.n_calibration_ == 60
    assert found.score(NEW, Y_NEW) == (found.predict(NEW) == Y_NEW).mean()
    assert found.conformity_score == "lac"
    assert_allclose(found.predict_proba(NEW), found.estimator_.predict_proba(NEW))
    assert covered(found.predict_set(NEW), Y_NEW).mean() > 0.8
    again = SetClassifier(FrozenEstimator(found.estimator_), confidence_level=0.9).fit(X, Y)
    assert again.n_calibration_ == 300
    assert_array_equal(pickle.loads(pickle.dumps(again)).predict_set(NEW), again.predict_set(NEW))
    recalibrated = clone(found).fit(X, Y).calibrate(NEW, Y_NEW)
    assert recalibrated.n_calibration_ == 500


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_folds(score):
    fractions = []
    for seed in range(40):
        found = SetClassifier(GaussianNB(), confidence_level=0.8, conformity_score=score, cv=4, random_state=seed)
        found.fit(*rows(100, [seed, 8]))
        new, y = rows(400, [seed, 9])
        fractions.append(covered(found.predict_set(new), y).mean())
    # What is proven is less (0.46), but the model hardly changes when a fold is left out.
    assert np.mean(fractions) > 0.8 - 0.03
    if score == "lac":  # others are tied at 0 where the likeliest class is the true one
        assert np.mean(fractions) < 0.8 + 0.03
        uneven = [(np.arange(100, 300), np.arange(100)), (np.arange(100), np.arange(100, 300))]
        assert np.isnan(clone(found).set_params(cv=uneven).fit(X, Y).guaranteed_level_)  # nothing is proven
    n = 100 - 4 if score == "raps" else 100
    assert found.n_calibration_ == n
    assert found.guaranteed_level_ == pytest.approx(0.6 - (2 / n) ** 0.5)
    assert np.isnan(found.limit_)
    assert len(found.estimator_) == 4


def test_folds_of_models_that_lack_other_rows_guarantee_nothing():
    folds = np.array_split(np.arange(300), 3)
    complete = [(np.setdiff1d(np.arange(300), fold), fold) for fold in folds]
    of_one_fold = [(folds[i - 1], folds[i]) for i in range(3)]
    thinned = [(rows[::2], fold) for rows, fold in complete]
    found = SetClassifier(GaussianNB(), confidence_level=0.9)
    assert not np.isnan(found.set_params(cv=complete).fit(X, Y).guaranteed_level_)
    for splits in (of_one_fold, thinned):
        assert np.isnan(found.set_params(cv=splits).fit(X, Y).guaranteed_level_)
        assert found.guarantee_reason_ == NOT_ALL_OTHERS


def test_folds_count_calibration_scores_below():
    found = SetClassifier(LogisticRegression(), confidence_level=0.8, cv=KFold(3)).fit(X, Y)
    below = np.zeros((20, K))
    for fold, (_, left) in zip(found.estimator_, KFold(3).split(X), strict=True):
        own = 1 - fold.predict_proba(X[left])[np.arange(len(left)), Y[left]]
        below += ((1 - fold.predict_proba(NEW[:20]))[:, :, None] > own).sum(axis=2)
    assert_array_equal(found.predict_set(NEW[:20]), below < 241)


def test_a_class_that_a_model_has_not_seen_has_no_probability():
    y = np.where(np.arange(300) == 0, 9, Y)  # one row only
    found = SetClassifier(LogisticRegression(), confidence_level=0.8, cv=KFold(3)).fit(X, y)
    assert found.classes_.tolist() == [0, 1, 2, 3, 9]
    assert found.predict_proba(NEW).shape == (500, 5)
    assert_allclose(found.predict_proba(NEW).sum(axis=1), 1.0)


class Ordered(ClassifierMixin, BaseEstimator):
    """A model with columns in an order of its own, and classes that nobody gave it."""

    def __init__(self, extra=()):
        self.extra = extra

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = np.array([*self.inner_.classes_[::-1], *self.extra])
        return self

    def predict_proba(self, X):
        return np.pad(self.inner_.predict_proba(X)[:, ::-1], ((0, 0), (0, len(self.extra))))


def test_columns_belong_to_the_classes_of_the_model():
    names = np.array(["ant", "bee", "cat", "dog"])
    found, plain = (
        SetClassifier(one, confidence_level=0.9, random_state=0).fit(X, names[Y])
        for one in (Ordered(), LogisticRegression())
    )
    assert_array_equal(found.predict(NEW), plain.predict(NEW))
    assert_array_equal(found.predict_set(NEW), plain.predict_set(NEW))
    fitted = SetClassifier(found.estimator_, confidence_level=0.9).calibrate(NEW, names[Y_NEW])
    assert fitted.classes_.tolist() == names[::-1].tolist()
    assert_array_equal(fitted.predict(NEW), plain.predict(NEW))
    with pytest.raises(ValueError, match=r"estimator has classes that y does not hold: \['ape'\]"):
        SetClassifier(Ordered(["ape"]), random_state=0).fit(X, names[Y])


def test_other_levels_frames_and_names():
    names = np.array(["ant", "bee", "cat", "dog"])
    found = SetClassifier(LogisticRegression(), random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), names[Y])
    new = pd.DataFrame(NEW, columns=list("abcd"), index=np.arange(500) + 7)
    small, large = found.predict_set(new, 0.5), found.predict_set(new, 0.9)
    assert (small <= large).all()
    assert small.sum() < large.sum()
    frame = found.predict_set(new, 0.9, as_frame=True)
    assert frame.columns.tolist() == names.tolist()
    assert frame.index.equals(new.index)
    assert isinstance(found.predict_set(pl.DataFrame(new), as_frame=True), pl.DataFrame)
    assert found.predict(new).tolist()[0] in names


def test_an_object_without_classes_is_as_good_as_a_function():
    class Asked:
        predict_proba = staticmethod(model)

    found = SetClassifier(Asked(), confidence_level=0.9).calibrate(X, Y)
    assert found.classes_.tolist() == list(range(K))
    assert_array_equal(
        found.predict_set(NEW), SetClassifier(model, confidence_level=0.9).calibrate(X, Y).predict_set(NEW)
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence_level": 0.5},
        {"conformity_score": "lac", "randomized": False},
        {"by": 0},
        {"guarantee": "training-conditional"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_settings_that_change_count_from_the_next_calibration_on(changed):
    found = SetClassifier(
        model, confidence_level=0.9, conformity_score="aps", randomized=True, random_state=0
    ).calibrate(X, Y)
    before = [found.predict_set(NEW, level) for level in (None, 0.8)]
    found.set_params(**changed)
    for level, sets in zip((None, 0.8), before, strict=True):
        assert_array_equal(found.predict_set(NEW, level), sets)
    if "by" not in changed:
        again = found.calibrate(X, Y).predict_set(NEW)
        assert_array_equal(again, clone(found).calibrate(X, Y).predict_set(NEW))
        assert (again != before[0]).any()


def test_a_new_calibration_forgets_the_names_of_an_earlier_one():
    found = SetClassifier(model, confidence_level=0.9).calibrate(pd.DataFrame(X, columns=list("abcd")), Y)
    assert found.feature_names_in_.tolist() == list("abcd")
    found.calibrate(X, Y)
    assert not hasattr(found, "feature_names_in_")
    assert found.predict_set(NEW).shape == (500, K)


def test_grid_search_over_the_score():
    search = GridSearchCV(
        SetClassifier(LogisticRegression(), confidence_level=0.5), {"conformity_score": ["lac", "aps"]}, cv=2
    )
    assert search.fit(X, Y).best_params_["conformity_score"] in {"lac", "aps"}


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "call", "error", "message"),
    [
        ({"randomized": True}, "calibrate", ValueError, 'no meaning for conformity_score="lac"'),
        ({"conformity_score": "hps"}, "calibrate", ValueError, "'conformity_score' parameter"),
        ({"confidence_level": 95}, "calibrate", ValueError, "'confidence_level' parameter"),
        ({"estimator": LogisticRegression()}, "calibrate", NotFittedError, "is not fitted: call fit"),
        ({"estimator": LinearSVC()}, "fit", ValueError, "LinearSVC has no predict_proba"),
        (
            {"estimator": LogisticRegression(), "cv": 3, "guarantee": "training-conditional"},
            "fit",
            ValueError,
            "guarantee='training-conditional' is about one",
        ),
        (
            {"estimator": LogisticRegression(), "cv": ShuffleSplit(3)},
            "fit",
            ValueError,
            "leaves some rows out several times",
        ),
        (
            {"estimator": LogisticRegression(), "cv": [(np.arange(9), np.arange(0))]},
            "fit",
            ValueError,
            "cv has a split that leaves no row out of training: nothing to calibrate with",
        ),
        (
            {"estimator": lambda X: np.ones((len(X), 2))},
            "calibrate",
            ValueError,
            "classes that the model does not know: \\[2, 3\\]",
        ),
        ({"estimator": lambda X: -np.ones((len(X), 4))}, "calibrate", ValueError, "negative or not finite"),
        ({"estimator": lambda X: np.ones((1, 4))}, "calibrate", ValueError, "expected one column for each"),
    ],
)
def test_bad_settings(params, call, error, message):
    with pytest.raises(error, match=message):
        getattr(SetClassifier(**{"estimator": model, **params}), call)(X, Y)


def test_sparse_rows_are_for_estimators_that_take_them():
    with pytest.raises(ValueError, match=r"X is sparse, but sparse data is not supported .*; use X\.toarray\(\)"):
        SetClassifier(GaussianNB()).fit(sparse.csr_matrix(X), Y)


def test_folds_with_too_few_rows_give_full_sets():
    with pytest.warns(CoverageWarning, match="20 scores can guarantee 95.2 %, not 99 %; 99 are needed"):
        few = SetClassifier(LogisticRegression(), confidence_level=0.99, cv=2, random_state=0).fit(X[:20], Y[:20])
    assert few.predict_set(NEW).all()


def test_bad_rows_change_nothing():
    found = SetClassifier(model, confidence_level=0.9).calibrate(X, Y)
    before = found.predict_set(NEW)
    for y, message in (
        (Y[:5], "y has 5 rows"),
        (None, "requires y"),
        (np.where(Y == 0, np.nan, Y), "NaN"),
        (Y + 0.5, "continuous"),
        (np.where(Y == 0, None, Y), "y holds missing labels, first in row"),
        (pd.Series(np.where(Y == 0, None, "a"), dtype="string"), "y holds missing labels"),
        (pl.Series(np.where(Y == 0, None, "a").tolist()), "y holds missing labels"),
        (np.where(Y == 0, np.datetime64("NaT"), np.datetime64("2026-01-01")), "y contains NaN"),
        (np.array([1, "1"] * 150, object), "y has dtype object; .* all as numbers or all as strings"),
    ):
        with pytest.raises(ValueError, match=message):
            found.calibrate(X, y)
    with pytest.raises(ValueError, match="one category for each of the 300"):
        found.calibrate(X, Y, by=[1, 2])
    with pytest.raises(ValueError, match="by is given for new rows, but calibration had none"):
        found.predict_set(NEW, by=np.zeros(500))
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1; got 90"):
        found.predict_set(NEW, 90)
    with pytest.raises(ValueError, match="fit_params"):
        found.fit(X, Y, weight=3)
    assert_array_equal(found.predict_set(NEW), before)
    grouped = SetClassifier(model, confidence_level=0.9).calibrate(X, Y, by=Y % 2)
    with pytest.raises(ValueError, match="by is missing"):
        grouped.predict_set(NEW)
    with pytest.raises(NotFittedError):
        SetClassifier(model).predict_set(NEW)
    with pytest.raises(ValueError, match="one class only"):
        SetClassifier(LogisticRegression()).fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="one per fold"):
        SetClassifier(LogisticRegression(), cv=3, confidence_level=0.5).fit(X, Y).calibrate(X, Y)


def test_pandas_missing_category_is_a_category():
    by = pd.array(["a", None] * 40, dtype="string")
    odds = np.tile([0.3, 0.7], (80, 1))
    model = SetClassifier(lambda X: odds[: len(X)], confidence_level=0.8).calibrate(
        np.zeros((80, 1)), np.arange(80) % 2, by=by
    )
    assert [one.label for one in model.categories_] == ["a", None]


def test_records_are_no_classes():
    with pytest.raises(ValueError, match=r"y has dtype .*; give one class for each row"):
        SetClassifier(LogisticRegression()).fit(X, np.zeros(300, [("a", float), ("b", int)]))


def test_masked_features_are_missing():
    masked = np.ma.MaskedArray(X, mask=X < -3.0)

    def filled(X):
        return model(np.nan_to_num(X))

    found, plain = (
        SetClassifier(filled, confidence_level=0.6, conformity_score="aps", by=0, randomized=True, random_state=0)
        for _ in range(2)
    )
    some = [np.round(np.clip(x, -4.0, 0.0)) for x in (masked, np.where(X < -3.0, np.nan, X))]
    assert_array_equal(
        found.calibrate(some[0], Y).predict_set(some[0]), plain.calibrate(some[1], Y).predict_set(some[1])
    )
    with pytest.raises(ValueError, match="X contains NaN"):
        SetClassifier(LogisticRegression()).fit(masked, Y)


def test_a_column_of_no_array_has_no_categories():
    with pytest.raises(ValueError, match="by=0 is not the position of a column of X"):
        SetClassifier(LogisticRegression(), by=0).fit(X[:, 0], Y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [([], "cv has no splits"), ([(np.arange(300), np.arange(150))] * 2, "cv trains on 150 of the rows that it leaves")],
)
def test_splits_that_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        SetClassifier(GaussianNB(), cv=cv).fit(X, Y)


def test_classes_of_a_function_are_the_numbers_of_its_columns():
    X = np.zeros((40, 1))
    sets = SetClassifier(lambda X: np.full((len(X), 2), 0.5), confidence_level=0.9)
    with pytest.raises(ValueError, match=r"does not know: \['no', 'yes'\].*numbers of its columns: give these as y"):
        sets.calibrate(X, ["yes", "no"] * 20)
    with pytest.raises(ValueError, match=r"one class only \('barolo'\)"):
        SetClassifier(LogisticRegression()).fit(X, ["barolo"] * 40)
