"""Groups that overlap, and new groups: each is covered, whatever others its rows belong to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.stats import norm

from pimeter import CoverageWarning, GroupedWidth, IntervalRegressor, SetClassifier
from pimeter.conformal.group_regression import GroupRegression


def zero(X):
    return np.zeros(len(X))


def rows(rng, n):
    """Six groups of which rows have several, and targets whose spread depends on them."""
    groups = rng.random((n, 6)) < [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    return groups, np.exp(groups @ [0.8, 0.0, -0.4, 0.3, 0.0, 0.2]) * rng.standard_normal(n)


class TestGroupRegression:
    def test_is_the_solution_of_the_linear_program(self):
        rng = np.random.default_rng(0)
        groups, y = rows(rng, 300)
        holds, scores = np.column_stack([groups, np.ones(300)]).astype(float), np.abs(y)
        fit = GroupRegression(holds, scores, 0.9)
        for new in holds[:10]:
            for t in (0.8123, 0.4321, -0.0512):
                b = -t * new
                peer = linprog(-scores, A_eq=holds.T, b_eq=b, bounds=(-0.1, 0.9), method="highs")
                assert_allclose(fit.largest_score(new, t), -peer.eqlin.marginals @ new, rtol=1e-6)

    @pytest.mark.parametrize("n", [9, 19, 50, 99, 100])
    def test_of_one_group_is_the_score_of_its_rank(self, n):
        scores = np.random.default_rng(n).normal(size=n)
        found = GroupRegression(np.ones((n, 1)), scores, 0.9).largest_score(np.ones(1))
        assert_allclose(found, np.sort(scores)[int(np.ceil(0.9 * (n + 1) - 1e-9)) - 1])

    def test_ties_and_few_rows(self):
        assert GroupRegression(np.ones((20, 1)), np.ones(20), 0.9).largest_score(np.ones(1)) == 1.0
        assert GroupRegression(np.ones((8, 1)), np.arange(8.0), 0.9).largest_score(np.ones(1)) == np.inf


class TestOverlappingGroups:
    def test_each_group_is_covered(self):
        rng = np.random.default_rng(1)
        inside, n = np.zeros(6), np.zeros(6)
        for _ in range(60):
            (groups, y), (new, y_new) = rows(rng, 200), rows(rng, 60)
            model = IntervalRegressor(zero, confidence_level=0.8, width="grouped").calibrate(groups, y, by=groups)
            lower, upper = model.predict_interval(new, by=new).T
            inside += ((lower <= y_new) & (y_new <= upper)).astype(float) @ new
            n += new.sum(axis=0)
        # Standard errors .4 / sqrt(360) = .021 of the smallest group to .009.
        assert (inside / n > 0.8 - 3.0 * np.sqrt(0.16 / n)).all()
        assert model.guaranteed_level_ == 0.8
        assert np.isnan(model.margin_).all()

    def test_randomised_covers_no_more_than_asked_for(self):
        rng = np.random.default_rng(2)
        inside = []
        for seed in range(60):
            (groups, y), (new, y_new) = rows(rng, 100), rows(rng, 60)
            width = GroupedWidth(randomized=True)
            model = IntervalRegressor(zero, confidence_level=0.8, width=width, random_state=seed)
            lower, upper = model.calibrate(groups, y, by=groups).predict_interval(new, by=new).T
            inside.append(np.mean((lower <= y_new) & (y_new <= upper)))
        assert abs(np.mean(inside) - 0.8) < 0.025  # standard error of 60 sets of 60 rows: .4 / 60 and that of the sets

    def test_several_outputs_at_once_keep_what_the_width_says(self):
        rng = np.random.default_rng(3)
        X, y = rng.integers(0, 2, (60, 2)), rng.normal(size=(60, 2))
        most = []
        for randomized in (False, True):
            width = GroupedWidth(by=[0, 1], randomized=randomized)
            model = IntervalRegressor(np.zeros_like, confidence_level=0.8, width=width, joint=True, random_state=0)
            most.append(model.calibrate(X, y).predict_interval(np.zeros((40, 2), int))[:, 0, 1])
            assert sorted(line.label for line in model.categories_) == ["0 = 0", "0 = 1", "1 = 0", "1 = 1"]
        assert np.ptp(most[0]) == 0.0 < np.ptp(most[1])

    def test_of_disjoint_groups_are_those_of_categories(self):
        rng = np.random.default_rng(3)
        label = rng.choice(list("abc"), 300)
        X, y = np.zeros((300, 1)), rng.standard_t(3, 300) * np.where(label == "a", 3.0, 1.0)
        new = np.zeros((3, 1))
        for tails in ("symmetric", "equal", "upper"):
            one = IntervalRegressor(zero, confidence_level=0.9, width="grouped", tails=tails)
            several = IntervalRegressor(zero, confidence_level=0.9, width="grouped", tails=tails)
            expected = one.calibrate(X, y, by=label).predict_interval(new, by=["a", "b", "c"])
            flags = label[:, None] == list("abc")
            found = several.calibrate(X, y, by=flags).predict_interval(new, by=np.eye(3, dtype=bool))
            assert_allclose(found, expected, rtol=1e-12)

    @pytest.mark.parametrize("library", [pd, pl])
    def test_columns_of_frames_and_functions_are_groupings(self, library):
        rng = np.random.default_rng(4)
        n = 400
        columns = {"region": rng.choice(list("nse"), n), "sex": rng.choice(list("fm"), n), "x": rng.uniform(size=n)}
        X, y = library.DataFrame(columns), rng.normal(size=n) * np.where(columns["sex"] == "f", 2.0, 1.0)

        def is_high(X):
            return X["x"].to_numpy() > 0.5

        width = GroupedWidth(by=["region", "sex", is_high])
        model = IntervalRegressor(zero, confidence_level=0.9, width=width).calibrate(X, y)
        assert {line.label for line in model.categories_} == {
            "region = n", "region = s", "region = e", "sex = f", "sex = m", "is_high"
        }  # fmt: skip
        assert [line.level for line in model.categories_] == [0.9] * 6
        found = model.predict_interval(X)
        widths = found[:, 1] - found[:, 0]
        assert widths[columns["sex"] == "f"].mean() > 1.5 * widths[columns["sex"] == "m"].mean()
        assert np.isfinite(found).all()
        upper = model.predict_quantile(X, 0.9)
        assert np.mean(y <= upper) > 0.85
        with pytest.raises(ValueError, match="predict_cdf is not known for groups that overlap"):
            model.predict_cdf(X, 0.0)

    def test_small_groups_are_finite_and_say_what_is_guaranteed(self):
        rng = np.random.default_rng(5)
        groups = np.column_stack([np.ones(200, bool), np.arange(200) < 4])
        y = rng.normal(size=200)
        with pytest.warns(CoverageWarning, match="4 scores can guarantee 80 %, not 90 %; 9 are needed"):
            model = IntervalRegressor(zero, confidence_level=0.9, width="grouped").calibrate(groups, y, by=groups)
        large, small = model.categories_
        assert small.level == 0.8
        assert large.level == pytest.approx(0.9 - 1 / 201)
        found = model.predict_interval(groups[:1], by=groups[:1])
        assert_allclose(found[0, 1], np.abs(y).max())

    @pytest.mark.filterwarnings("ignore:no calibration row is in the same groups", "ignore:.* scores can guarantee")
    def test_large_groups_with_a_thin_combination_say_what_is_guaranteed(self):
        """Of the cells a and x, a and y, b and y the second has few rows, and the hardest: a covered .93, not .95."""
        cells, fraction = np.array([["a", "x"], ["a", "y"], ["b", "y"]]), np.array([0.42, 0.05, 0.53])
        scale, rng = np.array([1.0, 20.0, 1.0]), np.random.default_rng(7)
        gain = []
        for _ in range(120):
            kind = rng.choice(3, 60, p=fraction)
            y = rng.normal(size=60) * scale[kind]
            model = IntervalRegressor(zero, confidence_level=0.95, width="grouped", tails="upper")
            model.calibrate(kind[:, None], y, by=cells[kind])
            line = next(one for one in model.categories_ if one.label.endswith("= a"))
            assert line.level == pytest.approx(
                0.95 - 1 / (line.rows + 1) if line.rows >= 19 else 1 - 1 / (line.rows + 1)
            )
            high = model.predict_interval(np.arange(3)[:, None], by=cells)[:, 1] / scale
            gain.append((norm.cdf(high)[:2] @ fraction[:2]) / fraction[:2].sum() - line.level)
        assert np.mean(gain) > -3.0 * np.std(gain) / np.sqrt(120)

    @pytest.mark.parametrize(("n_rare", "is_full"), [(8, False), (9, False), (10, True), (11, True)])
    def test_what_can_be_cut_is_decided_with_a_row_to_spare(self, n_rare, is_full):
        """A cell is bounded from 9 rows on; from 10 on it also is if one of them is the new row."""
        cells = np.array([["a", "x"], ["a", "y"], ["b", "y"]])[np.repeat([0, 1, 2], [60, n_rare, 60])]
        y = np.random.default_rng(8).normal(size=len(cells))
        model = IntervalRegressor(zero, confidence_level=0.9, width="grouped").calibrate(cells, y, by=cells)
        assert model.guaranteed_ is is_full
        cut = 0.0 if is_full else 1 / (61 + n_rare)
        assert model.categories_[0].level == pytest.approx(0.9 - cut)

    @pytest.mark.parametrize("n_groups", [4, 8])
    def test_combinations_are_bounded_by_all_rows_or_one_by_one(self, n_groups):
        """With 16 combinations each can be looked at; with 256 only a bound on all of them, for which rows must do."""
        rng = np.random.default_rng(9)
        model = IntervalRegressor(zero, confidence_level=0.9, width="grouped")
        for n, is_full in ((100, n_groups == 4), (3000, True)):
            groups = rng.random((n, n_groups)) < 0.5
            assert model.calibrate(groups, rng.normal(size=n), by=groups).guaranteed_ is is_full

    def test_groups_without_rows_and_rows_without_groups(self):
        rng = np.random.default_rng(6)
        groups = np.column_stack([rng.random(100) < 0.5, np.zeros(100, bool)])
        y = rng.normal(size=100)
        model = IntervalRegressor(zero, confidence_level=0.9, width="grouped")
        with pytest.warns(CoverageWarning, match="group 1: no calibration row is there.* 9 rows would do"):
            model.calibrate(groups, y, by=groups)
        assert np.isnan(model.categories_[1].level)
        assert model.guaranteed_level_ == pytest.approx(0.9 - 1 / (1 + groups[:, 0].sum()))
        with pytest.warns(CoverageWarning, match="nothing is guaranteed"):
            wide = model.predict_interval(groups[:1], by=np.array([[False, True]]))
        assert_allclose(wide[0, 1], np.abs(y).max())
        assert np.isfinite(model.predict_interval(groups[:1], by=np.array([[False, False]]))).all()

    def test_a_category_never_seen_is_not_taken_for_another(self):
        rng = np.random.default_rng(7)
        X = np.column_stack([rng.integers(3, size=300), rng.integers(2, size=300)])
        y = rng.normal(size=300)
        model = IntervalRegressor(zero, confidence_level=0.9, width=GroupedWidth(by=[0, 1])).calibrate(X, y)
        with pytest.warns(CoverageWarning, match="no calibration row is in the same groups"):
            found = model.predict_interval(np.array([[7, 1]]))
        assert_allclose(found[0, 1], np.abs(y[X[:, 1] == 1]).max())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"guarantee": "training-conditional"}, "not proven to be covered with guarantee='training-conditional'"),
            ({"tails": "sided"}, 'not proven to be covered with tails="sided"'),
        ],
    )
    def test_what_is_not_proven_is_refused(self, options, message):
        groups, y = rows(np.random.default_rng(0), 100)
        with pytest.raises(ValueError, match=message):
            IntervalRegressor(zero, width="grouped", **options).calibrate(groups, y, by=groups)

    def test_bad_groupings_are_refused(self):
        X, y = np.zeros((100, 2)), np.random.default_rng(0).normal(size=100)
        for by, width, message in (
            (np.ones((7, 2), bool), "grouped", r"must have shape \(100, groupings\)"),
            (None, GroupedWidth(by=[]), "names no grouping"),
            (None, GroupedWidth(by=[0, 5]), "by=5 is not the position"),
            (None, GroupedWidth(by=[0, lambda X: X]), "one label for each of the 100 rows"),
            (np.ones(100), GroupedWidth(by=[0, 1]), "by is given twice"),
            (np.zeros((100, 2), bool), "grouped", "by is False in all calibration rows"),
        ):
            with pytest.raises(ValueError, match=message):
                IntervalRegressor(zero, width=width).calibrate(X, y, by=by)


class TestNewGroups:
    def test_rows_of_a_new_group_are_covered(self):
        rng, group = np.random.default_rng(8), np.repeat(np.arange(19), 10)
        inside = []
        for _ in range(400):
            y = 2.0 * rng.standard_normal(19)[group] + rng.standard_normal(190)
            model = IntervalRegressor(zero, confidence_level=0.9).calibrate(np.arange(190.0)[:, None], y, groups=group)
            new = 2.0 * rng.standard_normal(50) + rng.standard_normal(50)
            inside.append(np.mean(np.abs(new) <= model.margin_[1]))
        assert np.mean(inside) > 0.9 - 3 * np.std(inside) / 20
        assert model.guaranteed_level_ == 0.9
        assert np.isnan(model.coverage_range_).all()

    def test_each_group_counts_once(self):
        y = np.concatenate([np.full(100, 1.0), np.arange(2.0, 21.0)])
        group = np.concatenate([np.zeros(100), np.arange(1.0, 20.0)])
        model = IntervalRegressor(zero, confidence_level=0.9, y_min=-99).calibrate(
            np.arange(119.0)[:, None], y, groups=group
        )
        assert_allclose(model.margin_[1], 19.0)  # the 19th of 20, not the 108th of 119

    @pytest.mark.parametrize("size", [5, 49, 103, 196])
    def test_just_enough_groups_are_enough_whatever_their_size(self, size):
        n = 9 * size
        X, group = np.arange(float(n))[:, None], np.arange(n) % 9
        y = np.random.default_rng(0).normal(size=n)
        model = IntervalRegressor(zero, confidence_level=0.9).calibrate(X, y, groups=group)
        assert model.guaranteed_level_ == 0.9
        assert model.guaranteed_
        sets = SetClassifier(lambda X: np.tile([0.6, 0.4], (len(X), 1)), confidence_level=0.9)
        assert np.isfinite(sets.calibrate(X, (y > 0.0).astype(int), groups=group).limit_)

    def test_few_groups_say_what_they_can_guarantee(self):
        y = np.random.default_rng(0).normal(size=100)
        with pytest.warns(CoverageWarning, match="5 scores, one for each group, can guarantee 83.3 %, not 95 %; 19"):
            model = IntervalRegressor(zero).calibrate(np.arange(100.0)[:, None], y, groups=np.arange(100) % 5)
        assert model.guaranteed_level_ == pytest.approx(5 / 6)
        assert_allclose(model.margin_, np.abs(y).max())
