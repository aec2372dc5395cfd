"""Widths that know where the model is weak: local neurons, bands of quantiles, the choice among them; joint ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pimeter import (
    AutoWidth,
    GroupedWidth,
    IntervalRegressor,
    LocalWidth,
    QuantileWidth,
    ScaledWidth,
    coverage_score,
    interval_score,
    quantile,
)
from pimeter._kernels.arrays import nearby_quantiles
from pimeter.conformal.guarantee import effective_counts
from pimeter.regression import QuantileForestWidth, nearness, surroundings
from pimeter.regression.features import Features
from pimeter.regression.surroundings import Surroundings
from pimeter.scorers import interval_scorer

WIDTHS = ["local", LocalWidth(nearness="kernel"), "quantile", QuantileWidth(QuantileRegressor(alpha=0)), "auto"]
WIDTHS.append(ScaledWidth("neighbours"))
WANTED = {"confidence_level": 0.9, "tails": "symmetric", "random_state": 0}


def zero(X):
    return np.zeros(len(X))


def steep_data(n, seed=0, d=2):
    """Errors whose standard deviation grows tenfold along the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, rng.normal(scale=10 ** X[:, 0])


class TestNearbyQuantiles:
    def test_are_those_of_each_weighting(self):
        rng = np.random.default_rng(0)
        x = np.sort(rng.standard_t(3, size=150))
        nearness = rng.uniform(size=(40, 150)) * (rng.uniform(size=(40, 150)) < rng.uniform(0.1, 1.0, size=(40, 1)))
        levels = np.array([0.1, 0.5, 0.95])
        expected = []
        for weights in nearness:
            counts = effective_counts(weights)
            digits = 1 - int(np.floor(np.log10(counts.sum())))
            expected.append(quantile(x, levels, weights=counts * (round(counts.sum(), digits) / counts.sum())))
        assert_allclose(nearby_quantiles(x, nearness.copy(), levels), expected, rtol=1e-9)

    def test_carry_ratios_only(self):
        rng = np.random.default_rng(1)
        x, weights, levels = np.sort(rng.normal(size=60)), rng.uniform(size=(3, 60)), np.array([0.8])
        assert_allclose(nearby_quantiles(x, 1e6 * weights, levels), nearby_quantiles(x, weights, levels), rtol=1e-9)


class TestLocal:
    @pytest.mark.parametrize("kind", ["forest", "kernel"])
    @pytest.mark.parametrize("tails", ["symmetric", "equal", "lower", "upper", "sided"])
    def test_width_follows_the_errors(self, kind, tails):
        X, y = steep_data(3000)
        model = IntervalRegressor(zero, confidence_level=0.9, width=LocalWidth(nearness=kind), tails=tails)
        model.set_params(random_state=0, y_min=-1e3, y_max=1e3).calibrate(X, y)
        new = np.array([[0.05, 0.5], [0.95, 0.5]])
        low, high = model.predict_interval(new).T
        margin = high if tails == "upper" else -low
        assert 4.0 < margin[1] / margin[0] < 14.0  # 10^.9 = 7.9
        X, y = steep_data(4000, seed=1)
        bounds = model.predict_interval(X)
        hard = X[:, 0] > 0.9
        assert coverage_score(y, bounds) == pytest.approx(0.9, abs=0.035)
        assert coverage_score(y[hard], bounds[hard]) > 0.82

    def test_blocks_do_not_change_numbers(self, monkeypatch):
        X, y = steep_data(400)
        model = IntervalRegressor(zero, width="local", random_state=0).calibrate(X, y)
        whole = model.predict_interval(X)
        monkeypatch.setattr(nearness, "WEIGHTS_AT_ONCE", 1000)
        assert_array_equal(model.predict_interval(X), whole)

    def test_neighbours_weigh_less_with_distance_and_nothing_beyond_the_last(self):
        X = np.arange(10.0)[:, None]
        weights = nearness.Neighbours(X, 4).weights(np.array([[0.0], [4.5]]))
        assert_allclose(weights[0], np.maximum(1.0 - X[:, 0] ** 2 / 16.0, 0.0), atol=1e-6)
        assert (weights[1] > 1e-6).sum() == 4

    def test_copies_of_a_row_are_equally_near(self):
        X = np.array([[0.0]] * 30 + [[1.0]])
        weights = nearness.Neighbours(X, 25).weights(np.array([[0.0]]))
        assert_array_equal(weights[0], [1.0] * 30 + [0.0])
        near = nearness._within(np.array([[0.0, 0.0, 0.0, 0.5, 0.9]]), 2)
        assert_array_equal(near[0], [1.0, 1.0, 1.0, 0.0, 0.0])

    def test_leaves_divide_their_weight(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(200, 3))
        width = LocalWidth().fit(X, np.zeros((200, 1)), rng.normal(size=(200, 1)), **WANTED)
        weights = width.neurons_[0].near.weights(np.column_stack([X[:7], np.zeros(7)]))
        assert_allclose(weights.sum(axis=1), 1.0)
        assert (weights[np.arange(7), np.arange(7)] > 1 / 200).all()

    def test_far_off_rows_have_neighbours(self):
        X, y = steep_data(500)
        model = IntervalRegressor(zero, width=LocalWidth(nearness="kernel"), random_state=0).calibrate(X, y)
        assert np.isfinite(model.predict_interval(np.array([[1e9, -1e9]]))).all()

    def test_unit_of_y_does_not_matter(self):
        X, y = steep_data(300)
        for width in ("local", "quantile"):
            model = IntervalRegressor(zero, width=width, random_state=0)
            assert_allclose(
                model.calibrate(X, 1e-6 * y).predict_interval(X), 1e-6 * model.calibrate(X, y).predict_interval(X)
            )

    @pytest.mark.parametrize("width", WIDTHS)
    def test_a_perfect_model_has_no_width(self, width):
        X, _ = steep_data(100)
        model = IntervalRegressor(lambda X: X[:, 0], width=width, random_state=0).calibrate(X, X[:, 0])
        assert_array_equal(model.predict_interval(X), np.column_stack([X[:, 0]] * 2))


class TestNeighbours:
    """`ScaledWidth("neighbours")`."""

    def twins(self, n, seed=0):
        """Rows of which half are near-copies, target included, of the others."""
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n, 4)), rng.normal(size=n)
        X[n // 2 :], y[n // 2 :] = X[: n // 2] + 1e-3, y[: n // 2]
        order = rng.permutation(n)
        return X[order], y[order]

    def test_rows_with_twins_have_narrow_intervals(self):
        rng = np.random.default_rng(1)
        X, y = self.twins(1200)
        alone, lonely_y = rng.normal(size=(400, 4)), rng.normal(size=400)
        rows = np.concatenate([X, alone]), np.concatenate([y, lonely_y])
        model = IntervalRegressor(KNeighborsRegressor(1), width=ScaledWidth("neighbours"), cv=5, random_state=0)
        model.fit(*rows)
        new = np.concatenate([X[:100] + 1e-3, rng.normal(size=(100, 4))])
        wide = np.diff(model.predict_interval(new))[:, 0]
        plain = model.set_params(width="scaled").fit(*rows).predict_interval(new)
        assert wide[:100].mean() < 0.5 * wide[100:].mean()
        assert wide.mean() < 0.8 * np.diff(plain)[:, 0].mean()

    def test_a_row_is_not_its_own_neighbour(self):
        X, _ = steep_data(60)
        nothing, errors = np.zeros((60, 1)), np.arange(60.0)[:, None]
        around = Surroundings(X, nothing, errors, 0)
        known = around.known(X, nothing)
        assert (known[:, 3] > 0.0).all()
        assert_array_equal(around.transform(X, nothing)[:, 3], np.zeros(60))

    def test_neighbours_of_many_rows_are_found_among_some(self, monkeypatch):
        monkeypatch.setattr(surroundings, "ROWS_TO_SEARCH", 50)
        X, y = steep_data(300)
        around = Surroundings(X, np.zeros((300, 1)), y[:, None], 0)
        known = around.known(X, np.zeros((300, 1)))
        assert len(around.rows) == 50
        assert known.shape == (300, 3 + 8)
        others = np.setdiff1d(np.arange(300), around.rows)
        assert_array_equal(around.transform(X, np.zeros((300, 1)))[others], known[others])

    def test_sparse_rows(self):
        X, y = steep_data(300)
        model = IntervalRegressor(Ridge(), width=ScaledWidth("neighbours"), random_state=0)
        bounds = model.fit(csr_matrix(X), y).predict_interval(csr_matrix(X))
        assert_allclose(bounds, model.fit(X, y).predict_interval(X))


class TestQuantileForest:
    def test_band_is_of_targets_not_of_residuals(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(600, 2))
        y = np.where(X[:, 0] < 0.5, 0.0, 10.0) + rng.uniform(size=600)
        wrong = np.full((600, 1), 4.0)  # a model that knows nothing
        width = QuantileForestWidth().fit(X, wrong, y[:, None] - wrong, **WANTED)
        _, lower, upper = width.shape(np.array([[0.2, 0.5], [0.8, 0.5]]), np.array([[4.0], [4.0]]))
        assert_allclose((4.0 - lower)[:, 0], [0.0, 10.0], atol=0.2)
        assert_allclose((4.0 + upper)[:, 0], [1.0, 11.0], atol=0.2)
        # The prediction has no part in where the band is, only in how it is told.
        _, moved, _ = width.shape(np.array([[0.2, 0.5]]), np.array([[4.0]]))
        assert_allclose(moved, lower[:1])

    def test_rows_that_it_knows_are_judged_by_trees_that_have_not_seen_them(self):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(300, 3)), rng.normal(size=300)
        none = np.zeros((300, 1))
        width = QuantileForestWidth().fit(X, none, y[:, None], **WANTED)
        seen, unseen = width.shape(X, none), width.shape_unseen(X, none, np.arange(300))
        covered = [np.mean((-one.lower[:, 0] <= y) & (y <= one.upper[:, 0])) for one in (seen, unseen)]
        assert covered[1] < covered[0]
        assert covered[1] == pytest.approx(0.9, abs=0.07)  # 4 standard errors of 300 rows

    def test_unit_and_zero_of_the_target_do_not_matter(self):
        X, y = steep_data(200)
        model = IntervalRegressor(Ridge(), width=QuantileForestWidth(), cv=5, random_state=0)
        bounds = model.fit(X, y).predict_interval(X)
        assert_allclose(model.fit(X, 8.0 * y + 16.0).predict_interval(X), 8.0 * bounds + 16.0, rtol=1e-6)


class TestQuantile:
    def test_is_conformalised_quantile_regression(self):
        X, y = steep_data(400)
        model = IntervalRegressor(zero, confidence_level=0.8, width=QuantileWidth(QuantileRegressor(alpha=0)))
        bounds = model.set_params(random_state=0).calibrate(X, y).predict_interval(X)
        low, high = (one.predict(X) * model.width_.mean_[0] for one in model.width_.models_[0])
        assert_allclose(bounds, np.column_stack([low - model.margin_[0], high + model.margin_[1]]))
        inside = (bounds[:, 0] <= y) & (y <= bounds[:, 1])
        assert inside.mean() == pytest.approx(0.8, abs=0.05)
        assert model.n_calibration_ == 200

    def test_radius_is_the_score_of_rank_k(self):
        X, y = steep_data(99)
        width = QuantileWidth(QuantileRegressor(alpha=0)).fit(X, zero(X)[:, None], y[:, None], **WANTED)
        shape = width.shape(X, zero(X)[:, None])
        scores = shape.scores(y[:, None])
        assert_allclose(scores.above, y[:, None] - shape.upper)
        assert_allclose(scores.below, -shape.lower - y[:, None])

    def test_another_level_moves_the_band(self):
        X, y = steep_data(600)
        model = IntervalRegressor(zero, width="quantile", random_state=0).calibrate(X, y)
        bounds = model.predict_interval(X, [0.5, 0.95])
        moved = bounds[:, 1, 1] - bounds[:, 1, 0]
        assert (moved > 0.0).all()
        not_crossed = bounds[:, 0, 0] < bounds[:, 1, 0]
        assert_allclose(moved[not_crossed], moved[not_crossed][0])

    def test_bounds_that_cross_meet_in_the_middle(self):
        X, y = steep_data(600)
        model = IntervalRegressor(zero, confidence_level=0.95, width="quantile", random_state=0).calibrate(X, y)
        low, high = model.predict_interval(X, 0.02).T
        assert (low <= high).all()
        assert (low == high).any()

    @pytest.mark.parametrize(
        "learner",
        [
            GradientBoostingRegressor(loss="quantile", n_estimators=5),
            make_pipeline(StandardScaler(), QuantileRegressor(alpha=0.0)),
        ],
    )
    def test_finds_the_parameter_for_the_level(self, learner):
        X, y = steep_data(400)
        before = str(learner.get_params())
        model = IntervalRegressor(zero, width=QuantileWidth(learner), confidence_level=0.9, random_state=0)
        low, high = model.calibrate(X, y).width_.models_[0]
        name = "alpha" if isinstance(learner, GradientBoostingRegressor) else "quantileregressor__quantile"
        assert (low.get_params()[name], high.get_params()[name]) == pytest.approx((0.05, 0.95))
        assert str(learner.get_params()) == before

    @pytest.mark.parametrize(
        "learner", [LinearRegression(), Ridge(), GradientBoostingRegressor(), HistGradientBoostingRegressor()]
    )
    def test_refuses_a_learner_that_predicts_no_quantiles(self, learner):
        # The penalty of ridge regression is called alpha, too.
        X, y = steep_data(50)
        with pytest.raises(ValueError, match=f"{type(learner).__name__} that does not predict quantiles"):
            IntervalRegressor(zero, width=QuantileWidth(learner)).calibrate(X, y)


class TestAuto:
    def test_finds_a_width_that_learns(self):
        X, y = steep_data(1000)
        width = IntervalRegressor(zero, width="auto", random_state=0).calibrate(X, y).width_
        table = {type(line.width).__name__: line.ratio for line in width.candidates_}
        assert table["ConstantWidth"] == pytest.approx(1.0)
        assert min(table.values()) < 0.8
        assert width.ratio_ < min(table.values()) + 0.02
        assert sum(line.weight for line in width.candidates_) == pytest.approx(1.0)
        best = max(width.candidates_, key=lambda line: line.weight)
        assert best.width.learns
        assert f"{best.weight:.0%} {type(best.width).__name__}" in width.reason_

    def test_combines_skew_and_scale(self):
        # Errors grow along one column and are skewed along another: neither a scale nor a plain band is enough.
        rng = np.random.default_rng(1)
        X = rng.uniform(size=(3000, 3))
        skewed = np.where(X[:, 1] > 0.5, rng.exponential(size=3000) - 0.7, 0.3 * rng.normal(size=3000))
        y = skewed * 5 ** X[:, 0]
        model = IntervalRegressor(zero, confidence_level=0.9, width="auto", random_state=0).calibrate(
            X[:1500], y[:1500]
        )
        constant, *others = model.width_.candidates_
        assert constant.weight < 0.1
        assert model.width_.ratio_ < min(one.ratio for one in others) + 0.01
        plain = IntervalRegressor(zero, confidence_level=0.9, random_state=0).calibrate(X[:1500], y[:1500])
        new, old = (interval_score(y[1500:], one.predict_interval(X[1500:]), 0.9) for one in (model, plain))
        assert new < 0.85 * old

    def test_prefers_a_constant_width_where_nothing_is_to_be_learned(self):
        rng = np.random.default_rng(0)
        chosen = []
        for seed in range(20):
            X, y = rng.uniform(size=(200, 2)), rng.normal(size=200)
            candidates = [ScaledWidth(Ridge()), QuantileWidth(QuantileRegressor(alpha=0))]
            width = AutoWidth(candidates).fit(X, np.zeros((200, 1)), y[:, None], **{**WANTED, "random_state": seed})
            chosen.append(width.candidates_[0].weight)
            assert (width.shape(X, np.zeros((200, 1))).scale is None) == (chosen[-1] == 1.0)
        assert chosen.count(1.0) >= 15

    def test_few_rows_are_not_compared(self):
        X, y = steep_data(80)
        width = IntervalRegressor(zero, width="auto", random_state=0).calibrate(X, y).width_
        assert "40 rows are too few" in width.reason_
        assert width.candidates_ == []

    def test_candidates_are_the_callers(self):
        X, y = steep_data(400)
        width = AutoWidth([ScaledWidth("prediction", power=1)])
        model = IntervalRegressor(lambda X: 10 ** X[:, 0], width=width, random_state=0).calibrate(X, y)
        assert isinstance(model.width_.candidates_[1].width, ScaledWidth)
        assert model.width_.candidates_[1].weight > 0.7

    def test_is_shrunk_towards_a_constant_width_as_by_60_more_rows(self):
        X, y = steep_data(600)
        width = AutoWidth([ScaledWidth("prediction", power=1)]).fit(X, 10 ** X[:, :1], y[:, None], **WANTED)
        assert 60 / 660 <= width.candidates_[0].weight < 60 / 660 + 0.05

    def test_a_perfect_model_has_a_constant_width(self):
        X, _ = steep_data(200)
        width = AutoWidth().fit(X, np.zeros((200, 1)), np.zeros((200, 1)), **WANTED)
        assert "all residuals are 0" in width.reason_

    def test_as_many_candidates_as_one_likes(self):
        X, y = steep_data(200)
        candidates = [ScaledWidth("prediction", power=power) for power in np.linspace(0.5, 1, 60)]
        width = AutoWidth(candidates).fit(X, 10 ** X[:, :1], y[:, None], **WANTED)
        assert sum(one.weight for one in width.candidates_) == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("candidates", "says"),
        [
            (["scaled"], "candidates must be a list of widths"),
            ([], "candidates must be a list of widths"),
            (ScaledWidth(), "candidates must be a list of widths"),
            ([ScaledWidth(power=-1)], "'power' parameter of ScaledWidth"),
            ([GroupedWidth(by=0)], "candidates must learn or scale"),
        ],
    )
    def test_says_what_a_candidate_has_to_be(self, candidates, says):
        X, y = steep_data(400)
        with pytest.raises(ValueError, match=says):
            IntervalRegressor(zero, width=AutoWidth(candidates)).calibrate(X, y)

    def test_one_sided_scores_do_not_depend_on_where_y_is(self):
        X, y = steep_data(600)
        width = AutoWidth([ScaledWidth("prediction", power=0.5)])
        here, there = (
            width.fit(X, 10 ** X[:, :1], (y + shift)[:, None], **{**WANTED, "tails": "upper"}).candidates_[1].error
            for shift in (0.0, -50.0)
        )
        assert 0.0 < here < 1.0
        assert 0.0 < there < 1.0


class TestAll:
    @pytest.mark.parametrize("cv", [None, 3])
    @pytest.mark.parametrize("width", WIDTHS)
    def test_fit_covers_and_repeats_itself(self, width, cv):
        X, y = steep_data(400)
        model = IntervalRegressor(LinearRegression(), confidence_level=0.9, width=width, cv=cv, random_state=0)
        bounds = model.fit(X, y).predict_interval(X)
        assert coverage_score(y, bounds) >= 0.85
        assert_array_equal(clone(model).fit(X, y).predict_interval(X), bounds)
        assert_array_equal(pickle.loads(pickle.dumps(model)).predict_interval(X), bounds)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    @pytest.mark.parametrize(
        "width",
        ["local", LocalWidth(nearness="kernel"), "quantile", QuantileForestWidth(), "auto", ScaledWidth("neighbours")],
    )
    def test_mixed_and_missing_columns(self, library, width):
        frames = pytest.importorskip(library)
        rng = np.random.default_rng(0)
        kind = rng.choice(["easy", "hard"], 500)
        columns = {"a": rng.normal(size=500), "kind": kind.tolist(), "flag": rng.random(500) < 0.5}
        columns["a"][:50] = np.nan
        y = rng.normal(scale=np.where(kind == "hard", 8.0, 1.0))
        X = frames.DataFrame(columns)
        model = IntervalRegressor(lambda X: np.zeros(len(X)), width=width, random_state=0).calibrate(X, y)
        wide = np.diff(model.predict_interval(X))[:, 0]
        assert wide[kind == "hard"].mean() > 2.0 * wide[kind == "easy"].mean()
        unknown = frames.DataFrame({"a": [np.nan], "kind": ["never seen"], "flag": [True]})
        assert np.isfinite(model.predict_interval(unknown)).all()

    @pytest.mark.parametrize("width", ["scaled", LocalWidth(nearness="kernel"), "quantile", ScaledWidth("neighbours")])
    def test_columns_of_every_kind(self, width):
        pandas = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        hard = rng.random(600) < 0.5
        y = rng.normal(scale=np.where(hard, 8.0, 1.0))
        times = np.datetime64("2026-01-01") + np.where(hard, 400, 0).astype("m8[D]") + np.arange(600).astype("m8[s]")
        some = np.where(rng.random(600) < 0.1, None, np.where(hard, 1, 0))
        columns = {
            "nullable": pandas.array(some, dtype="Int64"),
            "words": pandas.array(np.where(hard, "b", "a"), dtype="string"),
            "times": times,
            "mixed": [1 if h else "a" for h in hard],
            "lengths": times - times[0],
            "pairs": [(1, 2) if h else (3, 4) for h in hard],
            "noise": rng.normal(size=600),
        }
        for names in (["nullable"], ["words", "noise"], ["times"], ["mixed", "noise"], ["lengths"], ["pairs", "noise"]):
            X = pandas.DataFrame({10 * i: columns[name] for i, name in enumerate(names)})  # numbers, but no places
            model = IntervalRegressor(lambda X: np.zeros(len(X)), width=width, random_state=0).calibrate(X, y)
            wide = np.diff(model.predict_interval(X))[:, 0]
            assert wide[hard].mean() > 2.0 * wide[~hard].mean(), names
        objects = np.array([[1.5, "b" if h else "a"] for h in hard], dtype=object)
        model = IntervalRegressor(lambda X: np.zeros(len(X)), width=width, random_state=0).calibrate(objects, y)
        wide = np.diff(model.predict_interval(objects))[:, 0]
        assert wide[hard].mean() > 2.0 * wide[~hard].mean()

    @pytest.mark.parametrize("word", ["nan", "NaT", "<NA>"])
    def test_a_word_that_looks_missing_is_a_word(self, word):
        missing = [None, np.nan, np.datetime64("NaT")]
        X = np.array([[word], ["a"], *([gap] for gap in missing)], dtype=object)
        codes = Features(for_distance=False).fit(X, np.zeros((5, 1))).transform(X, np.zeros((5, 1)))[:, 0]
        assert np.isfinite(codes[:2]).all()
        assert codes[0] != codes[1]
        assert np.isnan(codes[2:]).all()

    @pytest.mark.parametrize("width", WIDTHS)
    def test_each_side_of_the_prediction_is_covered(self, width):
        # Skewed errors: the middle of a band is far from the prediction.
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(8000, 1))
        y = rng.exponential(size=8000) * (0.1 + X[:, 0])
        model = IntervalRegressor(lambda X: 0.05 + 0 * X[:, 0], width=width, tails="sided", confidence_level=0.9)
        low, high = model.set_params(random_state=0).calibrate(X[:2000], y[:2000]).predict_interval(X[2000:]).T
        inside = (low <= y[2000:]) & (y[2000:] <= high)
        below = y[2000:] < 0.05
        assert model.guaranteed_level_ == 0.9
        assert inside[below].mean() > 0.8
        assert inside[~below].mean() > 0.87

    def test_low_levels_follow_the_errors(self):
        X, y = steep_data(4000)
        model = IntervalRegressor(zero, width="local", tails="upper", confidence_level=0.2, random_state=0)
        _, high = model.calibrate(X, y).predict_interval(np.array([[0.05, 0.5], [0.95, 0.5]])).T
        assert high[1] < high[0] < 0.0

    def test_a_scale_may_be_a_column(self):
        class Flat(Ridge):
            def predict(self, X):
                return super().predict(X)[:, None]

        X, y = steep_data(100)
        model = IntervalRegressor(zero, width=ScaledWidth(Flat()), random_state=0).calibrate(X, y)
        assert model.predict_interval(X).shape == (100, 2)

    def test_no_rows_have_no_intervals(self):
        X, y = steep_data(100)
        for width in ("constant", "scaled"):
            model = IntervalRegressor(zero, width=width, random_state=0).calibrate(X, y)
            assert model.predict_interval(X[:0]).shape == (0, 2)
            assert model.predict_quantile(X[:0], [0.1, 0.5]).shape == (0, 2)

    def test_names_of_columns_are_forgotten(self):
        pandas = pytest.importorskip("pandas")
        X, y = steep_data(100)
        model = IntervalRegressor(LinearRegression(), random_state=0).fit(pandas.DataFrame(X, columns=["a", "b"]), y)
        assert not hasattr(model.fit(X, y), "feature_names_in_")

    @pytest.mark.parametrize("width", ["scaled", "local", "quantile", QuantileForestWidth(), ScaledWidth("neighbours")])
    def test_rows_that_are_no_table(self, width):
        # Texts: what is known of them is the prediction alone.
        rng = np.random.default_rng(0)
        texts = ["x" * n for n in rng.integers(1, 50, 600)]
        y = rng.normal(scale=[len(text) for text in texts])
        model = IntervalRegressor(lambda X: np.array([len(text) for text in X]) / 10.0, width=width, random_state=0)
        wide = np.diff(model.calibrate(texts, y).predict_interval(["x", "x" * 49]))[:, 0]
        assert wide[1] > 3.0 * wide[0]

    def test_search_over_widths(self):
        X, y = steep_data(600)
        search = GridSearchCV(
            IntervalRegressor(LinearRegression(), random_state=0),
            {"width": ["constant", QuantileWidth(QuantileRegressor(alpha=0))]},
            scoring=interval_scorer,
            cv=3,
        ).fit(X, y)
        assert isinstance(search.best_params_["width"], QuantileWidth)

    def test_weakest_tenth_is_covered(self):
        # A standard deviation from 1 to 10: a constant width covers about half of the hardest rows.
        X, y = steep_data(4000)
        new, y_new = steep_data(8000, seed=1)
        hard = new[:, 0] > 0.9
        found = {
            width: coverage_score(
                y_new[hard],
                IntervalRegressor(zero, confidence_level=0.9, width=width, random_state=0)
                .calibrate(X, y)
                .predict_interval(new[hard]),
            )
            for width in ("constant", "local")
        }
        assert found["local"] > 0.85
        assert found["constant"] < 0.75


class TestJoint:
    def data(self, n, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        noise = rng.normal(size=(n, 5)) + rng.normal(size=(n, 1))
        return X, noise * [1.0, 10.0, 0.1, 3.0, 1.0]

    @pytest.mark.parametrize("tails", ["symmetric", "equal", "lower", "upper"])
    def test_covers_all_outputs_at_once(self, tails):
        covered = []
        new, y_new = self.data(500, 999)
        for seed in range(60):
            X, y = self.data(80, seed)
            model = IntervalRegressor(lambda X: np.zeros((len(X), 5)), confidence_level=0.9, tails=tails, joint=True)
            low, high = np.moveaxis(model.set_params(random_state=0).calibrate(X, y).predict_interval(new), 2, 0)
            covered.append(((low <= y_new) & (y_new <= high)).all(axis=1).mean())
        error = np.std(covered) / 60**0.5
        assert np.mean(covered) >= 0.9 - 3 * error
        assert np.mean(covered) <= 0.9 + (1 if tails != "equal" else 4) / 41 + 3 * error + 0.02
        assert model.n_calibration_ == 40
        assert model.margin_.shape == (5, 2)
        assert np.isnan(model.coverage_range_).all() == (tails == "equal")

    def test_each_output_has_its_unit(self):
        X, y = self.data(400, 0)
        model = IntervalRegressor(lambda X: np.zeros((len(X), 5)), joint=True, random_state=0).calibrate(X, y)
        assert_allclose(model.margin_[:, 1] / model.margin_[0, 1], [1.0, 10.0, 0.1, 3.0, 1.0], rtol=0.4)
        assert_allclose(model.predict_interval(X)[0, :, 1], model.margin_[:, 1])

    @pytest.mark.slow
    @pytest.mark.parametrize("width", ["scaled", "quantile", ScaledWidth("neighbours")])
    @pytest.mark.parametrize("cv", [None, 3])
    def test_with_other_widths_and_folds(self, width, cv):
        X, y = self.data(300, 0)
        model = IntervalRegressor(LinearRegression(), width=width, cv=cv, joint=True, random_state=0).fit(X, y)
        new, y_new = self.data(500, 1)
        low, high = np.moveaxis(model.predict_interval(new), 2, 0)
        assert ((low <= y_new) & (y_new <= high)).all(axis=1).mean() > 0.88

    def test_one_output_needs_no_other_neuron(self):
        X, y = steep_data(50)
        alone = IntervalRegressor(zero, joint=True).calibrate(X, y)
        assert alone.n_calibration_ == 50
        assert_array_equal(alone.margin_, IntervalRegressor(zero).calibrate(X, y).margin_)

    def test_has_no_sides(self):
        X, y = self.data(50, 0)
        with pytest.raises(ValueError, match="joint=True looks at all outputs at once"):
            IntervalRegressor(LinearRegression(), joint=True, tails="sided").fit(X, y)

    @pytest.mark.parametrize("changed", [{"joint": True}, {"width": "scaled"}, {"tails": "sided"}])
    def test_a_width_that_is_set_later_is_not_updated(self, changed):
        X, y = self.data(100, 0)
        model = IntervalRegressor(lambda X: np.zeros((len(X), 5))).calibrate(X[:50], y[:50])
        with pytest.raises(ValueError, match=r"width, tails or joint were changed after calibration.* call calibrate"):
            model.set_params(**changed).update(X[50:], y[50:])
        assert model.n_calibration_ == 50
        assert model.calibrate(X, y).n_calibration_ in {50, 100}

    @pytest.mark.parametrize(
        "width", ["constant", "local", "quantile", QuantileForestWidth(), ScaledWidth("neighbours")]
    )
    def test_an_output_without_errors(self, width):
        X, y = self.data(200, 0)
        y[:, 2] = 0.0
        five = lambda X: np.zeros((len(X), 5))  # noqa: E731
        model = IntervalRegressor(five, joint=True, width=width, random_state=0).calibrate(X, y)
        bounds = model.predict_interval(X)
        assert np.isfinite(bounds).all()
        assert np.abs(bounds[:, 2]).max() < 1e-6


_BY_NEIGHBOURS = ScaledWidth(KNeighborsRegressor(3), power=1)
_BY_LINES = QuantileWidth(QuantileRegressor(alpha=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "width",
    [LocalWidth(nearness="kernel"), _BY_LINES, _BY_NEIGHBOURS, AutoWidth([_BY_NEIGHBOURS, _BY_LINES])],
    ids=["local", "quantile", "scaled", "auto"],
)
@pytest.mark.parametrize("tails", ["symmetric", "equal"])
def test_guarantee_of_learned_widths(width, tails):
    """Many calibrations with few rows; a scale of three neighbours that knew its calibration rows would cover .79."""
    rng = np.random.default_rng(0)
    new = np.linspace(0.05, 0.95, 7)[:, None]
    n_outputs, m, covered = 5, 40, []
    for _ in range(40):
        X = rng.uniform(size=(2 * m, 1))
        y = rng.standard_t(3, size=(2 * m, n_outputs)) * 10**X
        model = IntervalRegressor(lambda X: np.zeros((len(X), n_outputs)), confidence_level=0.9, width=width)
        model.set_params(tails=tails, random_state=0).calibrate(X, y)
        y_new = rng.standard_t(3, size=(400, 7, n_outputs)) * 10**new
        low, high = np.moveaxis(model.predict_interval(new), 2, 0)
        covered.append(((low <= y_new) & (y_new <= high)).mean())
    assert np.mean(covered) >= 0.9 - 3 * np.std(covered) / len(covered) ** 0.5


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_errors_whose_squares_are_no_numbers_are_refused(width):
    X = np.linspace(0.0, 1.0, 100)[:, None]
    y = 1e308 * np.sin(np.arange(100.0))
    with pytest.raises(ValueError, match="must not exceed 1e\\+150 in size to learn a width"):
        IntervalRegressor(zero, width=width).calibrate(X, y)
    with pytest.raises(ValueError, match="must not exceed 1e\\+150 in size to learn a width"):
        IntervalRegressor(Ridge(), width=width).fit(X, y / 10)
    assert np.isfinite(IntervalRegressor(zero, width=width).calibrate(X, y * 1e-160).predict_interval(X)).all()
