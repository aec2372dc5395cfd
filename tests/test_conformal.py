from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit

import pimeter as pm
from pimeter.conformal import guarantee as of_scores
from pimeter.conformal.estimator import Replaceable
from pimeter.conformal.folds import FoldModels
from pimeter.conformal.guarantee import COPIES, GROUPS, ORDER, rank_guarantee
from pimeter.conformal.scores import TAILS, CalibrationScores

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1.0, size=(400, 2))
Y = RNG.normal(scale=X[:, 0])


def zero(X):
    return np.zeros(len(X))


def guarantee(numbers, tails, p, kind, *, doubt=None, in_folds=False, has_unequal_weights=False, new=None, **case):
    """Of so many scores, of each sign where there are two numbers."""
    residuals = np.repeat([-1.0, 1.0][: len(numbers)], numbers)[:, None]
    m = len(residuals)
    scores = CalibrationScores(
        residuals,
        doubts=() if doubt is None else (doubt,),
        folds=FoldModels(np.arange(m) % 5, np.eye(5)) if in_folds else None,
        importance=np.linspace(1.0, 2.0, m) if has_unequal_weights else None,
        **case,
    )
    return of_scores.guarantee(scores, slice(None), 0, tails, p, kind, **(new or {}))


class TestGuarantee:
    """Each line of the table of cases."""

    def test_of_a_rank(self):
        found = guarantee([100], TAILS["symmetric"], 0.9, "marginal")
        assert found == rank_guarantee(100, 0.9)
        assert (found.level, found.reason) == (0.9, "")

    @pytest.mark.parametrize("tails", TAILS.values())
    def test_rows_that_are_not_exchangeable(self, tails):
        found = guarantee([100] * (1 + tails.is_by_sign), tails, 0.9, "marginal", doubt=COPIES)
        assert np.isnan([found.level, *found.coverage_range]).all()
        assert found.reason == COPIES

    def test_full_sets_keep_any_level_even_of_copies(self):
        found = guarantee([3], TAILS["upper"], 0.9, "marginal", doubt=COPIES, is_full_if_few=True)
        assert (found.level, found.reason) == (0.9, "")
        enough = guarantee([30], TAILS["upper"], 0.9, "marginal", doubt=COPIES, is_full_if_few=True)
        assert math.isnan(enough.level)

    def test_each_sign_by_itself(self):
        sided = TAILS["sided"]
        assert guarantee([50, 70], sided, 0.9, "marginal").level == 0.9
        few = guarantee([5, 70], sided, 0.9, "marginal")
        assert math.isnan(few.level)
        assert few.reason == "9 scores of each sign are needed, and there are 5"
        assert "CV+" in guarantee([50, 70], sided, 0.9, "marginal", in_folds=True).reason

    @pytest.mark.parametrize(("tails", "roots"), [("symmetric", 1), ("upper", 1), ("equal", 2)])
    def test_folds(self, tails, roots):
        found = guarantee([200], TAILS[tails], 0.9, "marginal", in_folds=True)
        assert_allclose(found.level, 2 * 0.9 - 1 - roots * math.sqrt(2 / 200))
        assert np.isnan(found.coverage_range).all()

    @pytest.mark.parametrize(
        ("tails", "case", "is_known"),
        [
            ("symmetric", {"has_unequal_weights": True}, False),
            ("symmetric", {"is_joint": True}, True),
            ("equal", {"is_joint": True}, False),
        ],
    )
    def test_where_only_the_range_is_unknown(self, tails, case, is_known):
        found = guarantee([200], TAILS[tails], 0.9, "marginal", **case)
        assert found.level == 0.9
        assert np.isnan(found.coverage_range).all() != is_known

    @pytest.mark.parametrize("is_full_if_few", [True, False])
    @pytest.mark.parametrize("m", [3, 100])
    def test_categories_never_seen(self, m, is_full_if_few):
        found = guarantee([m], TAILS["upper"], 0.9, "marginal", new={"is_unseen": True}, is_full_if_few=is_full_if_few)
        assert np.isnan([found.level, *found.coverage_range]).all()
        assert found.reason == of_scores.NEVER_SEEN

    def test_without_rows_that_are_too_heavy(self):
        case = {"has_unequal_weights": True, "new": {"heavy": 0.2}}
        assert_allclose(guarantee([200], TAILS["equal"], 0.9, "marginal", **case).level, (0.9 - 0.2) / 0.8)
        assert guarantee([200], TAILS["equal"], 0.1, "marginal", **case).level == 0.0
        for tails, doubt in (("sided", None), ("equal", COPIES)):
            numbers = [100] * (1 + TAILS[tails].is_by_sign)
            found = guarantee(numbers, TAILS[tails], 0.9, "marginal", doubt=doubt, **case)
            assert math.isnan(found.level)
            assert found.reason == (doubt or of_scores.TOO_HEAVY)

    @pytest.mark.parametrize(
        ("settings", "given", "reason"),
        [
            ({"shuffle": False}, {}, ORDER),
            ({"tails": "sided"}, {"groups": np.arange(400) // 4}, GROUPS),
            ({"shuffle": False, "tails": "sided"}, {"groups": np.arange(400) // 4}, f"{ORDER}; {GROUPS}"),
        ],
    )
    def test_an_estimator_knows_the_reason(self, settings, given, reason):
        model = pm.IntervalRegressor(zero, **settings).calibrate(X, Y, **given)
        assert math.isnan(model.guaranteed_level_)
        assert model.guarantee_reason_ == reason

    def test_sets_know_the_reason_and_none_where_there_is_a_guarantee(self):
        P, labels = np.column_stack([X[:, 0], 1 - X[:, 0]]), (Y > 0).astype(int)
        sets = pm.SetClassifier(lambda P: P, shuffle=False).calibrate(P, labels)
        assert (math.isnan(sets.guaranteed_level_), sets.guarantee_reason_) == (True, ORDER)
        assert sets.set_params(shuffle=True).calibrate(P, labels).guarantee_reason_ == ""
        few = pm.SetClassifier(lambda P: P, shuffle=False)
        with pytest.warns(pm.CoverageWarning, match="their sets are full"):
            few.calibrate(P[:5], labels[:5])
        assert (few.guaranteed_level_, few.guarantee_reason_) == (0.95, "")


class TestScores:
    def test_directions_of_a_band(self):
        scores = CalibrationScores(np.array([[1.0], [-4.0]]), np.array([[-3.0], [2.0]]))
        assert_array_equal(scores.towards(1, 0).values, [1.0, -4.0])
        assert_array_equal(scores.towards(-1, 0).values, [-3.0, 2.0])
        assert_array_equal(scores.towards(0, 0).values, [1.0, 2.0])

    def test_importance_is_a_ratio_and_counts_are_rows(self):
        scores = CalibrationScores(np.ones((3, 1)), importance=np.array([2.0, 1.0, 1.0]))
        assert_allclose(scores.n_counted, 16 / 6)
        assert_allclose(scores.counts, np.array([2.0, 1.0, 1.0]) * (4 / 6))
        assert CalibrationScores(np.ones((3, 1))).counts is None

    def test_doubts_of_both_parts_are_kept_once(self):
        one, other = (CalibrationScores(np.ones((2, 1)), doubts=doubts) for doubts in ((ORDER,), (ORDER, COPIES)))
        assert one.joined(other).doubts == (ORDER, COPIES)


class NoiseColumn(pm.Width):
    """A width as a user writes it."""

    learns = False

    def __init__(self, column=0):
        self.column = column

    def shape(self, X, prediction):
        return pm.IntervalShape(scale=X[:, [self.column]])


class Learned(pm.Width):
    def fit(self, X, prediction, residuals, **wanted):
        self.wanted_, self.rows_ = wanted, X
        self.scale_ = np.abs(residuals).mean()
        return self

    def shape(self, X, prediction):
        return pm.IntervalShape(scale=np.full(prediction.shape, self.scale_))


class TestWidthOfOnesOwn:
    def test_intervals_follow_it(self):
        model = pm.IntervalRegressor(zero, width=NoiseColumn(), confidence_level=0.9).calibrate(X, Y)
        lower, upper = model.predict_interval(X).T
        assert_allclose(upper, model.margin_[1] * X[:, 0], rtol=1e-12)
        assert_allclose(lower, -upper)
        assert_allclose(model.margin_[1], np.sort(np.abs(Y / X[:, 0]))[361 - 1])  # ceil(401 * .9)
        assert (model.guaranteed_level_, model.n_calibration_) == (0.9, 400)

    @pytest.mark.parametrize("cv", [None, 4])
    def test_in_folds_and_after_a_split(self, cv):
        model = pm.IntervalRegressor(DummyRegressor(), width=NoiseColumn(1), cv=cv, random_state=0).fit(X, Y)
        assert np.isfinite(model.predict_interval(X)).all()

    def test_what_learns_sees_rows_that_do_not_calibrate(self):
        model = pm.IntervalRegressor(zero, width=Learned(), tails="equal", random_state=0).calibrate(X, Y)
        assert model.n_calibration_ == len(model.width_.rows_) == 200
        assert model.width_.wanted_ == {
            "confidence_level": 0.95,
            "tails": "equal",
            "random_state": model.width_.wanted_["random_state"],
        }

    def test_what_learns_need_not_return_itself(self):
        class Silent(Learned):
            def fit(self, X, prediction, residuals, **wanted):
                super().fit(X, prediction, residuals, **wanted)

        one, other = (
            pm.IntervalRegressor(DummyRegressor(), width=width, cv=4, random_state=0).fit(X, Y)
            for width in (Silent(), Learned())
        )
        assert_array_equal(one.predict_interval(X), other.predict_interval(X))

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            (lambda X: X[:, 0], "must give an IntervalShape.*; got ndarray\\."),
            (lambda X: pm.IntervalShape(lower=X[:, :1]), "both lower and upper or neither"),
            (lambda X: pm.IntervalShape(scale=X[:, :1].tolist()), "scale as a NumPy array; got list\\."),
            (lambda X: pm.IntervalShape(scale=X[:, 0]), r"scale of shape \(400,\).* expected .*\(400, 1\)"),
            (lambda X: pm.IntervalShape(scale=-X[:, :1]), "scale with values that are finite and positive"),
            (lambda X: pm.IntervalShape(scale=X[:, :1] * np.nan), "scale with values that are finite and positive"),
            (
                lambda X: pm.IntervalShape(lower=X[:, :1], upper=X[:, :1] * np.inf),
                "upper with values that are finite; some are not",
            ),
        ],
    )
    def test_shapes_that_no_interval_follows_from(self, shape, message):
        class Wrong(NoiseColumn):
            def shape(self, X, prediction):
                return shape(X)

        with pytest.raises(ValueError, match=rf"^Wrong\.shape .*{message}"):
            pm.IntervalRegressor(zero, width=Wrong()).calibrate(X, Y)

    @pytest.mark.parametrize("cv", [None, 5])
    def test_knows_the_model_where_several_outputs_are_covered_at_once(self, cv):
        class OfModel(NoiseColumn):
            def of_model(self, model, confidence_level, tails):
                self.model_ = model
                return super().of_model(model, confidence_level, tails)

            def shape(self, X, prediction):
                return pm.IntervalShape(scale=1.0 + np.abs(self.model_.predict(X)))

        both = np.stack([Y, Y], axis=1)
        model = pm.IntervalRegressor(DummyRegressor(), width=OfModel(), joint=True, cv=cv).fit(X, both)
        assert model.predict_interval(X).shape == (len(X), 2, 2)
        if cv is None:
            assert model.calibrate(X, both).guaranteed_

    def test_is_named_where_it_is_one_of_several_outputs_or_candidates(self):
        class Wrong(NoiseColumn):
            def shape(self, X, prediction):
                return X[:, 0]

        both = np.stack([Y, Y], axis=1)
        with pytest.raises(ValueError, match=r"^Wrong\.shape .*IntervalShape"):
            pm.IntervalRegressor(lambda X: np.zeros((len(X), 2)), width=Wrong(), joint=True).calibrate(X, both)


FOLDS = np.arange(400).reshape(4, 100)
TWO_PARTS = np.split(np.arange(400), [100])
ALTERNATING = np.arange(400) % 2


def all_but(left_out):
    return np.setdiff1d(np.arange(400), left_out)


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        ([(FOLDS[i - 1], FOLDS[i]) for i in range(4)], of_scores.NOT_ALL_OTHERS),
        ([(all_but(part), part) for part in TWO_PARTS], of_scores.UNEQUAL_FOLDS),
        ([(all_but(part), part) for part in FOLDS[:3]], of_scores.NOT_ONCE),
        ([(all_but(part), part) for part in (*FOLDS, FOLDS[0])], of_scores.NOT_ONCE),
        ([(all_but(part), part) for part in FOLDS], ""),
    ],
)
def test_the_reason_why_folds_prove_nothing_is_the_one_that_is_true(splits, reason):
    model = pm.IntervalRegressor(DummyRegressor(), cv=splits).fit(X, Y)
    assert math.isnan(model.guaranteed_level_) == bool(reason)
    assert model.guarantee_reason_ == reason


def test_categories_that_folds_divide_unequally_are_the_reason():
    model = pm.IntervalRegressor(DummyRegressor(), confidence_level=0.8, width="grouped", cv=4, random_state=0)
    model.fit(X, Y, by=ALTERNATING)
    assert math.isnan(model.guaranteed_level_)
    assert model.guarantee_reason_ == of_scores.UNEQUAL_CATEGORIES
    divided = model.set_params(cv=[(all_but(part), part) for part in FOLDS]).fit(X, Y, by=ALTERNATING)
    assert (math.isnan(divided.guaranteed_level_), divided.guarantee_reason_) == (False, "")


def test_a_draft_replaces_the_original_only_when_all_went_well():
    class Counter(Replaceable):
        def __init__(self):
            self.n, self.left = 0, True

        def grow(self, by):
            draft = self._draft()
            del draft.left
            draft.n += by
            draft.ratio = 1 / by
            return self._become(draft)

    counter = Counter()
    with pytest.raises(ZeroDivisionError):
        counter.grow(0)
    assert vars(counter) == {"n": 0, "left": True}
    assert vars(counter.grow(2)) == {"n": 2, "ratio": 0.5}


class TestOneSplit:
    """A single split is split conformal prediction, whoever chose the rows that calibrate."""

    SPLITS = (PredefinedSplit(np.where(np.arange(400) < 300, -1, 0)), ShuffleSplit(1, test_size=100, random_state=0))

    @pytest.mark.parametrize("cv", SPLITS)
    @pytest.mark.parametrize("width", ["constant", NoiseColumn()])
    def test_of_intervals(self, cv, width):
        model = pm.IntervalRegressor(LinearRegression(), width=width, cv=cv).fit(X, Y)
        rows, others = next(cv.split(X))
        plain = pm.IntervalRegressor(FrozenEstimator(LinearRegression().fit(X[rows], Y[rows])), width=width)
        plain.calibrate(X[others], Y[others])
        assert (model.guaranteed_level_, model.guarantee_reason_, model.n_calibration_) == (0.95, "", 100)
        assert_array_equal(model.coverage_range_, plain.coverage_range_)
        assert_array_equal(model.predict_interval(X), plain.predict_interval(X))
        assert model.update(X[rows] + 1e-9, Y[rows]).n_calibration_ == 400

    @pytest.mark.parametrize("cv", SPLITS)
    def test_of_sets(self, cv):
        labels = (Y > 0).astype(int)
        model = pm.SetClassifier(LogisticRegression(), cv=cv).fit(X, labels)
        rows, others = next(cv.split(X))
        plain = pm.SetClassifier(FrozenEstimator(LogisticRegression().fit(X[rows], labels[rows])))
        plain.calibrate(X[others], labels[others])
        assert (model.guaranteed_level_, model.limit_, model.n_calibration_) == (0.95, plain.limit_, 100)
        assert_array_equal(model.predict_set(X), plain.predict_set(X))
        assert model.calibrate(X, labels).n_calibration_ == 400

    def test_in_the_order_of_time_guarantees_nothing(self):
        model = pm.IntervalRegressor(LinearRegression(), cv=self.SPLITS[0], shuffle=False).fit(X, Y)
        assert model.guarantee_reason_ == ORDER


@pytest.mark.parametrize("estimator", [zero, FrozenEstimator(LinearRegression().fit(X, Y))])
def test_folds_of_a_model_that_is_not_trained(estimator):
    with pytest.raises(ValueError, match=r"^cv=5 is given, but this estimator is not trained"):
        pm.IntervalRegressor(estimator, cv=5).fit(X, Y)
    with pytest.raises(ValueError, match=r"^cv=5 is given, but this estimator is not trained"):
        pm.SetClassifier(lambda X: X / X.sum(axis=1, keepdims=True), cv=5).fit(X, (Y > 0).astype(int))


def test_splits_of_rows_that_are_not_there():
    splits = [(np.arange(200), np.arange(200, 401))]
    with pytest.raises(ValueError, match=r"not among the 400 to split .*400.*from 0 to 399, or .* KFold\(5\)\.$"):
        pm.IntervalRegressor(DummyRegressor(), cv=splits).fit(X, Y)
    with pytest.raises(ValueError, match=r"not among the 384 to split .*RAPS.* needs a splitter"):
        pm.SetClassifier(LogisticRegression(), conformity_score="raps", cv=list(KFold(5).split(X))).fit(X, Y > 0)


def test_nothing_is_guaranteed_to_categories_never_seen_beside_heavy_rows():
    by, weights = np.arange(400) % 2, np.linspace(1.0, 2.0, 400)
    model = pm.IntervalRegressor(zero, width="grouped").calibrate(X, Y, by=by, importance_weight=weights)
    new = {"by": np.array([0, 0, 5, 5]), "importance_weight": np.array([1.0, 1e9, 1.0, 1e9])}
    with pytest.warns(pm.CoverageWarning):
        found = model.predict_interval(X[:4], as_frame=True, **new)
    assert_array_equal(found["guaranteed_level"], [(0.95 - 0.5) / 0.5, np.nan, np.nan, np.nan])
