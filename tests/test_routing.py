"""scikit-learn's metadata routing: `by`, `groups` and `sample_weight` come through searches, pipelines and scorers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm
from pimeter.scorers import coverage_scorer, crps_scorer, interval_scorer

rng = np.random.default_rng(0)
X = rng.uniform(size=(600, 2))
BY = np.where(X[:, 0] > 0.7, "hard", "easy")
Y = X @ [1.0, 2.0] + rng.normal(scale=np.where(BY == "hard", 3.0, 0.3))
WEIGHT = rng.uniform(0.1, 1.0, size=600)
GROUPS = np.arange(600) // 6


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def grouped(**settings):
    return pm.IntervalRegressor(Ridge(), width="grouped", confidence_level=0.8, random_state=0, **settings)


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
class TestEnabled:
    def test_categories_come_to_fit_and_scorers(self):
        scoring = {
            "interval": interval_scorer.set_score_request(by=True),
            "coverage": coverage_scorer.set_score_request(by=True),
            "crps": crps_scorer.set_score_request(by=True),
        }
        found = cross_validate(
            grouped().set_fit_request(by=True), X, Y, params={"by": BY}, scoring=scoring, cv=3, error_score="raise"
        )
        assert_allclose(found["test_coverage"], 0.8, atol=0.08)
        assert np.isfinite(found["test_interval"]).all()
        assert np.isfinite(found["test_crps"]).all()

    def test_the_score_is_that_of_a_fit_by_hand(self):
        train, test = np.arange(400), np.arange(400, 600)
        scorer = interval_scorer.set_score_request(by=True, sample_weight=True)
        model = grouped().set_fit_request(by=True)
        params = {"by": BY, "sample_weight": WEIGHT}
        model.estimator = Ridge().set_fit_request(sample_weight=True)
        found = cross_validate(model, X, Y, params=params, scoring=scorer, cv=[(train, test)], error_score="raise")
        by_hand = model.fit(X[train], Y[train], by=BY[train], sample_weight=WEIGHT[train])
        bounds = by_hand.predict_interval(X[test], by=BY[test])
        assert found["test_score"][0] == -pm.interval_score(Y[test], bounds, 0.8, sample_weight=WEIGHT[test])
        unweighted = grouped().fit(X[train], Y[train], by=BY[train])
        assert not np.array_equal(unweighted.predict(X), by_hand.predict(X))

    def test_groups_come_to_fit_and_splitter(self):
        model = pm.IntervalRegressor(Ridge(), random_state=0).set_fit_request(groups=True)
        found = cross_validate(
            model, X, Y, params={"groups": GROUPS}, cv=GroupKFold(3), scoring=coverage_scorer, return_estimator=True
        )
        assert [one._scores_seen.n_groups for one in found["estimator"]] == [14, 14, 14]

    def test_pipelines_within_searches(self):
        inside = grouped().set_fit_request(by=True)
        pipeline = make_pipeline(StandardScaler(), inside)
        search = GridSearchCV(
            pipeline,
            {"intervalregressor__estimator__alpha": [0.1, 10.0]},
            scoring=interval_scorer.set_score_request(by=True),
            cv=3,
            error_score="raise",
        ).fit(X, Y, by=BY)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        nested = cross_validate(
            search, X, Y, params={"by": BY}, cv=2, scoring=coverage_scorer.set_score_request(by=True), n_jobs=1
        )
        assert_allclose(nested["test_score"], 0.8, atol=0.1)

    def test_sets(self):
        model = pm.SetClassifier(LogisticRegression().set_fit_request(sample_weight=True), random_state=0)
        params = {"by": BY, "sample_weight": WEIGHT}
        found = cross_validate(
            model.set_fit_request(by=True),
            X,
            Y > 1,
            params=params,
            scoring=lambda model, X, y: 1.0,
            error_score="raise",
        )
        assert_array_equal(found["test_score"], 1.0)

    def test_what_nobody_asked_for_is_an_error(self):
        with pytest.raises(UnsetMetadataPassedError, match=r"\[by\]|by"):
            cross_validate(grouped(), X, Y, params={"by": BY}, scoring=interval_scorer)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            grouped().fit(X, Y, by=BY, sample_weight=WEIGHT)

    def test_other_names(self):
        scorer = coverage_scorer.set_score_request(by="shop")
        found = cross_validate(
            grouped().set_fit_request(by="shop"), X, Y, params={"shop": BY}, scoring=scorer, error_score="raise"
        )
        assert_allclose(found["test_score"], 0.8, atol=0.1)

    def test_scorers_are_copied_and_pickled(self):
        asking = interval_scorer.set_score_request(by=True)
        assert repr(pickle.loads(pickle.dumps(asking))) == repr(asking) == "interval_scorer.set_score_request(by=True)"
        assert repr(pickle.loads(pickle.dumps(interval_scorer))) == repr(interval_scorer) == "interval_scorer"


class TestDisabled:
    def test_fit_takes_arguments_of_the_model(self):
        model = grouped().fit(X, Y, by=BY, sample_weight=WEIGHT)
        assert not np.array_equal(model.predict(X), grouped().fit(X, Y, by=BY).predict(X))

    def test_scorers_that_lack_categories_say_how_to_get_them(self):
        with pytest.raises(
            ValueError, match=r"enable_metadata_routing=True\) is called, and then scorer.set_score_requ"
        ):
            cross_validate(grouped(), X, Y, params={"by": BY}, scoring=interval_scorer, error_score="raise")
        with pytest.warns(UserWarning, match="enable_metadata_routing=True"):
            cross_validate(grouped(), X, Y, params={"by": BY}, scoring=interval_scorer, cv=2)

    def test_requests_need_it(self):
        with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
            interval_scorer.set_score_request(by=True)

    def test_scorers_take_categories_by_hand(self):
        model = grouped().fit(X, Y, by=BY)
        expected = -pm.interval_score(Y, model.predict_interval(X, by=BY), 0.8)
        assert interval_scorer(model, X, Y, by=BY) == expected


def test_parameters_of_a_width_that_is_a_string():
    model = pm.IntervalRegressor(Ridge(), width="scaled").set_params(width__power=0.5)
    assert model.width.power == 0.5
    model = pm.IntervalRegressor(Ridge()).set_params(width="scaled", width__power=0.5)
    assert model.width.power == 0.5
    search = GridSearchCV(
        pm.IntervalRegressor(Ridge(), width="scaled", random_state=0),
        {"width__power": [0.5, 1.0]},
        scoring=interval_scorer,
        cv=2,
        error_score="raise",
    )
    assert search.fit(X, Y).best_params_["width__power"] in {0.5, 1.0}
    with pytest.raises(ValueError, match="Invalid parameter 'power' for estimator ConstantWidth"):
        pm.IntervalRegressor(Ridge()).set_params(width__power=0.5)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("levels", [None, 0.8, [0.8, 0.9], [0.9]])
@pytest.mark.parametrize("k", [1, 2])
def test_scores_take_the_frames_of_predict_interval(library, levels, k):
    table = library.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    target = Y if k == 1 else np.stack([Y, -Y], axis=1)
    model = pm.IntervalRegressor(Ridge(), random_state=0).fit(table, target)
    bounds = model.predict_interval(table, levels)
    frame = model.predict_interval(table, levels, as_frame=True)
    asked = 0.95 if levels is None else levels
    assert_array_equal(pm.coverage_score(target, frame), pm.coverage_score(target, bounds))
    assert_array_equal(pm.interval_score(target, frame, asked), pm.interval_score(target, bounds, asked))
    assert_array_equal(pm.mean_width_score(frame), pm.mean_width_score(bounds, bound_axis=k))
    if isinstance(levels, list):
        shuffled = frame.sample(fraction=1.0, seed=0, shuffle=True) if library is pl else frame.sample(frac=1.0)
        assert_array_equal(pm.coverage_score(target, shuffled), pm.coverage_score(target, bounds))
        with pytest.raises(ValueError, match=r"expected one for each of|must have shape"):
            pm.coverage_score(target, frame[1:])


def test_frames_of_several_levels_keep_the_index():
    table = pd.DataFrame(X, columns=["a", "b"], index=[f"house {i}" for i in range(600)])
    model = pm.IntervalRegressor(Ridge(), random_state=0).fit(table, Y)
    frame = model.predict_interval(table[:2], [0.8, 0.9], as_frame=True)
    assert frame.index.tolist() == ["house 0", "house 0", "house 1", "house 1"]
