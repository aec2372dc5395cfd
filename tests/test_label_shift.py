"""Sets of classes: their scores, and frequencies of classes that changed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pimeter import CoverageWarning
from pimeter.classification import (
    label_shift_ratios,
    label_shift_sets,
    mean_set_size_score,
    set_coverage_score,
    size_stratified_coverage_score,
)

SETS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


def drawn(rng, n, frequency):
    y = rng.choice(3, size=n, p=frequency)
    odds = 1.5 * rng.standard_normal((n, 3)) + 2.0 * np.eye(3)[y]
    odds = np.exp(odds)
    return y, odds / odds.sum(axis=1, keepdims=True)


class TestScores:
    def test_by_hand(self):
        assert set_coverage_score([0, 2, 2, 1], SETS) == 0.5
        assert mean_set_size_score(SETS) == 1.25
        # Of size 0, 1, 2: none of one, one of one, one of two.
        assert size_stratified_coverage_score([0, 2, 2, 1], SETS, min_rows=1) == 0.0
        assert size_stratified_coverage_score([0, 2, 2, 1], SETS, min_rows=2) == 0.5
        assert size_stratified_coverage_score([0, 2, 2, 1], SETS) == 0.5

    def test_names_of_classes(self):
        y = np.array(["a", "c", "c", "z"])
        assert set_coverage_score(y, SETS.astype(int), labels=["a", "b", "c"]) == 0.5

    @pytest.mark.parametrize(
        ("y", "sets", "labels", "said"),
        [
            ([0, 1], [[0.5, 0.5], [0.2, 0.8]], None, "True or False"),
            ([0, 1], [True, False], None, "shape"),
            (["a", "b"], [[True, False], [False, True]], None, "give labels"),
            ([0, 1], [[True, False], [False, True]], [0], "name the 2 classes"),
            ([0], [[True, False], [False, True]], None, "one label for each"),
        ],
    )
    def test_refused(self, y, sets, labels, said):
        with pytest.raises(ValueError, match=said):
            set_coverage_score(y, sets, labels=labels)


class TestLabelShift:
    def test_ratios_are_found(self):
        rng = np.random.default_rng(0)
        y, score = drawn(rng, 20_000, OLD)
        found = label_shift_ratios(y, score, drawn(rng, 20_000, NEW)[1])
        assert_allclose(found, NEW / OLD, atol=0.1)
        assert found @ np.bincount(y) / len(y) == pytest.approx(1.0)

    def test_known_ratios_cover_and_without_them_sets_do_not(self):
        rng = np.random.default_rng(1)
        covered, plain = [], []
        for _ in range(200):
            y, score = drawn(rng, 200, OLD)
            y_new, new = drawn(rng, 200, NEW)
            covered.append(set_coverage_score(y_new, label_shift_sets(y, score, new, NEW / OLD, confidence_level=0.9)))
            plain.append(set_coverage_score(y_new, label_shift_sets(y, score, new, [1, 1, 1], confidence_level=0.9)))
        error = np.std(covered) / 200**0.5
        assert np.mean(covered) >= 0.9 - 3 * error
        assert np.mean(covered) <= 0.93

    def test_equal_ratios_are_split_conformal_prediction(self):
        rng = np.random.default_rng(2)
        y, score = drawn(rng, 99, OLD)
        own = np.sort(1.0 - score[np.arange(99), y])
        new = drawn(rng, 50, OLD)[1]
        assert_allclose(label_shift_sets(y, score, new, [2, 2, 2], confidence_level=0.9), 1.0 - new <= own[89])

    def test_too_few_rows_make_full_sets(self):
        assert label_shift_sets([0, 1], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5]], [1, 1]).all()

    def test_classes_that_look_the_same_are_told(self):
        with pytest.warns(CoverageWarning, match="hardly tells some classes apart"):
            label_shift_ratios(np.arange(100) % 2, np.full((100, 2), 0.5), np.full((10, 2), 0.5))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (([0, 1], [0.1, 0.9], [[0.5, 0.5]]), "a column for each class"),
            (([0, 1], [[0.1, 0.9], [0.5, 0.5]], [[0.5, 0.3, 0.2]]), "new_score has 3"),
            (([0, 3, 4], [[0.1, 0.9], [0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5]]), "does not fit the 2 columns"),
        ],
    )
    def test_refused(self, arguments, said):
        with pytest.raises(ValueError, match=said):
            label_shift_ratios(*arguments)

    def test_a_class_that_is_named_twice(self):
        with pytest.raises(ValueError, match=r"labels must name the 3 classes .*each once"):
            label_shift_ratios([0, 1], np.full((2, 3), 0.3), np.full((1, 3), 0.3), labels=[0, 1, 1])

    def test_a_class_without_rows(self):
        with pytest.raises(ValueError, match="no row of 1 of the classes"):
            label_shift_ratios([0, 0], [[0.1, 0.9], [0.5, 0.5]], [[0.5, 0.5]], labels=[0, 1])
