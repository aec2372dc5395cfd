from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

import pimeter as pm
from pimeter import absolute_errors
from pimeter.errors import horizon_errors
from pimeter.paper import sided_errors

BOTH = pytest.mark.parametrize("errors_of", [absolute_errors, sided_errors])
WIDTHS = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])

moderate = st.floats(-1e6, 1e6)
pairs = hnp.array_shapes(max_dims=1, max_side=20).flatmap(
    lambda shape: st.tuples(hnp.arrays(float, shape, elements=moderate), hnp.arrays(float, shape, elements=moderate))
)


def test_columns_stay_columns():
    y_true, y_pred = np.arange(6.0).reshape(3, 2), np.full((3, 2), 2.0)
    assert_array_equal(absolute_errors(y_true, y_pred), [[2, 1], [0, 1], [2, 3]])


@WIDTHS
def test_float_width_is_kept(dtype):
    y_true, y_pred = np.array([1, 2, 4], dtype), np.array([2, 2, 1], dtype)
    assert absolute_errors(y_true, y_pred).dtype == dtype
    assert [side.dtype for side in sided_errors(y_true, y_pred)] == [dtype, dtype]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, bool])
def test_integers_become_float64_before_they_are_subtracted(dtype):
    errors = absolute_errors(np.array([0, 1], dtype), np.array([1, 0], dtype))
    assert errors.dtype == np.float64
    assert_array_equal(errors, [1, 1])


def test_arguments_are_left_alone():
    y_true, y_pred = np.array([1.0, 2.0]), np.array([3.0, 0.0])
    for values in (y_true, y_pred):
        values.flags.writeable = False
    below, above = sided_errors(y_true, y_pred)
    assert_array_equal(below, [2])
    assert_array_equal(above, [2])


@given(pairs)
def test_the_two_sides_are_the_absolute_errors_without_the_zeros(pair):
    below, above = sided_errors(*pair)
    errors = absolute_errors(*pair)
    assert_array_equal(np.sort(np.concatenate([below, above])), np.sort(errors[errors > 0]))


@given(pairs)
def test_swapping_targets_and_predictions_swaps_the_sides(pair):
    below, above = sided_errors(*pair)
    swapped_below, swapped_above = sided_errors(*pair[::-1])
    assert_array_equal(below, swapped_above)
    assert_array_equal(above, swapped_below)


def test_a_side_may_be_empty():
    below, above = sided_errors([1.0, 2.0], [1.0, 1.5])
    assert below.shape == (0,)
    assert_array_equal(above, [0.5])


def test_sides_of_several_columns_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=re.escape("got shape (4, 2)") + ".*once per column"):
        sided_errors(np.ones((4, 2)), np.zeros((4, 2)))


@BOTH
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([1.0, 2.0], [1.0], "same shape; got (2,) and (1,)"),
        ([[1.0], [2.0]], [1.0, 2.0], "same shape; got (2, 1) and (2,). Give one prediction per target; ravel()"),
        (1.0, 2.0, "y_true must have shape (m,) or (m, k); got ()"),
        ([1.0], np.ones((1, 1, 1)), "y_pred must have shape (m,) or (m, k); got (1, 1, 1)"),
        ([], [], "y_true must hold at least one value; got shape (0,)"),
        ([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], "y_true[1] is nan (1 such of 3 values)"),
        ([1.0, 2.0, 3.0], [1.0, np.inf, -np.inf], "y_pred[1] is inf (2 such of 3 values)"),
        ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, np.nan]], "y_pred[1, 1] is nan"),
        (["a", "b"], [1.0, 2.0], "y_true must hold real numbers; got dtype <U1"),
        ([1j, 2.0], [1.0, 2.0], "y_true must hold real numbers; got dtype complex128"),
        ([1.0, 1e308], [0.0, -1e308], "y_true[1] - y_pred[1] is too large for float64"),
        (np.float16([6e4]), np.float16([-6e4]), "y_true[0] - y_pred[0] is too large for float16"),
    ],
)
def test_bad_input_is_explained(errors_of, y_true, y_pred, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        errors_of(y_true, y_pred)


class TestHorizonErrors:
    def test_windows(self):
        y_true, y_pred = np.arange(6.0).reshape(3, 2), np.full((3, 2), 2.0)
        assert_array_equal(horizon_errors(y_true, y_pred), [[2, 1], [0, 1], [2, 3]])

    def test_a_series_is_rolled_over(self):
        rng = np.random.default_rng(0)
        series, y_pred = rng.random(12), rng.random((9, 4))
        expected = [[abs(series[i + j] - y_pred[i, j]) for j in range(4)] for i in range(9)]
        assert_array_equal(horizon_errors(series, y_pred), expected)

    @pytest.mark.parametrize(
        ("y_true", "y_pred", "message"),
        [
            (np.ones(3), np.ones((1, 4)), r"horizon of 4 steps is longer than the data: y_true holds 3"),
            (np.ones(5), np.ones((3, 4)), r"span 6 values; y_true holds 5"),
            (np.ones((3, 2)), np.ones((3, 4)), r"same shape; got \(3, 2\) and \(3, 4\)"),
            (np.ones(3), np.ones(3), r"y_pred must have shape \(n, h\)"),
            (np.ones(3), np.ones((3, 0)), r"y_pred must have shape \(n, h\)"),
            (np.full(6, np.nan), np.ones((3, 4)), r"y_true must be finite"),
        ],
    )
    def test_mistakes(self, y_true, y_pred, message):
        with pytest.raises(ValueError, match=message):
            horizon_errors(y_true, y_pred)


def test_windows_of_unequal_length():
    with pytest.raises(ValueError, match="y_true holds rows of unequal length"):
        horizon_errors([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]])


def test_masked_values_are_not_taken_for_known():
    with pytest.raises(ValueError, match="y_true must be finite"):
        absolute_errors(np.ma.masked_equal([1.0, 2.0], 2.0), [1.0, 2.0])


def test_missing_words_are_no_word():
    """Of a list numpy makes the word "nan", and of what is masked the word "?"."""
    words = ["yes", "no"] * 20
    for partly in (
        [np.nan, *words[1:]],
        (np.datetime64("NaT"), *words[1:]),
        np.ma.MaskedArray(words, mask=np.arange(40) == 0),
    ):
        with pytest.raises(ValueError, match="y_true has 1 missing label, the first in row 0"):
            pm.classification_uncertainty(partly, np.linspace(0.0, 1.0, 40), pos_label="yes")
        with pytest.raises(ValueError, match="by holds missing labels"):
            pm.grouped_quantile(np.arange(40.0), partly, 0.5)
        with pytest.raises(ValueError, match="y holds missing labels, first in row 0"):
            pm.SetClassifier(len).calibrate(np.zeros((40, 1)), partly)
    assert pm.grouped_quantile([1.0, 2.0], ["nan", "a"], 0.5).labels.tolist() == ["a", "nan"]  # a word as it was given


def test_masks_of_pandas_are_its_own():
    pandas = pytest.importorskip("pandas")
    whole = pandas.array([1.0, 4.0], dtype="Float64")
    assert absolute_errors(whole, [1, 2]).tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match=r"y_true must hold real numbers|y_true must be finite"):
        absolute_errors(pandas.array([1, None], dtype="Int64"), [1, 2])


RAGGED = [[1.0], [1.0, 2.0]] * 20


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("X", lambda: pm.measure(np.arange(40.0), np.zeros(40), X=RAGGED)),
        ("by", lambda: pm.measure(np.arange(40.0), np.zeros(40), by=RAGGED)),
        ("by", lambda: pm.grouped_quantile(np.arange(40.0), RAGGED, 0.5)),
        ("by", lambda: pm.IntervalRegressor(len, width="grouped").calibrate(np.zeros((40, 1)), np.ones(40), by=RAGGED)),
        ("errors", lambda: pm.QuantileNeuron().fit(RAGGED)),
        ("X_new", lambda: pm.shift_weights(np.zeros((40, 2)), RAGGED)),
        ("y_true", lambda: pm.classification_uncertainty(RAGGED, np.linspace(0.0, 1.0, 40))),
    ],
)
def test_rows_of_unequal_length_are_named(name, call):
    with pytest.raises(ValueError, match=f"^{name} holds rows of unequal length"):
        call()


def test_texts_as_lists_of_words_are_no_table():
    y = np.arange(40.0)
    model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.8, width="scaled", random_state=0)
    assert np.isfinite(model.calibrate(RAGGED, y).predict_interval(RAGGED)).all()
