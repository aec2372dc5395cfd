"""The paper's baseline of forecasts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pimeter.paper import baseline_interval

H = 4


def windows(*shape):
    y_pred = np.random.default_rng(1).uniform(10.0, 20.0, shape)
    return y_pred + np.random.default_rng(0).standard_normal(shape) * np.arange(1.0, H + 1.0), y_pred


def test_formula():
    y_true, y_pred = windows(200, H)
    bounds = baseline_interval(y_true, y_pred, y_pred[:7], n_past=10)
    sigma = np.std(y_true - y_pred, ddof=1)
    assert_allclose(bounds[..., 1] - y_pred[:7], 1.959964 * sigma * np.sqrt(1.1), rtol=1e-6)
    assert_allclose(y_pred[:7] - bounds[..., 0], bounds[..., 1] - y_pred[:7])


def test_the_papers_own_looks_at_the_window():
    y_true, y_pred = windows(3, H)
    bounds = baseline_interval(y_true, y_pred, n_past=5)
    sigma = np.std(y_true - y_pred, axis=1, ddof=1)
    expected = np.repeat(2 * 1.959964 * sigma[:, None] * np.sqrt(1.2), H, 1)
    assert_allclose(np.ptp(bounds, axis=-1), expected, rtol=1e-6)


def test_each_series_has_its_own_sigma():
    y_true, y_pred = windows(2, 100, H)
    together = baseline_interval(y_true, y_pred, y_pred, n_past=3, confidence_level=0.9)
    alone = baseline_interval(y_true[1], y_pred[1], y_pred[1], n_past=3, confidence_level=0.9)
    assert_allclose(together[1], alone)
    assert baseline_interval(y_true, y_pred, n_past=3).shape == (2, 100, H, 2)


def test_targets_that_are_not_known_are_left_out():
    y_true, y_pred = windows(50, H)
    y_true[3, 1] = np.nan
    sigma = np.nanstd(y_true - y_pred, ddof=1)
    width = np.ptp(baseline_interval(y_true, y_pred, y_pred, n_past=1), axis=-1)
    assert_allclose(width, 2 * 1.959964 * sigma * np.sqrt(2.0), rtol=1e-6)


@pytest.mark.parametrize("n_past", [0, "10", None, True])
def test_a_wrong_number_of_observations(n_past):
    y_true, y_pred = windows(50, H)
    with pytest.raises(ValueError, match=r"n_past must be the number of observations .* at least 1; got"):
        baseline_interval(y_true, y_pred, n_past=n_past)


def test_one_error_has_no_deviation():
    with pytest.raises(ValueError, match="at least 2 known errors of a series or window; got 1"):
        baseline_interval([[1.0], [2.0]], [[0.0], [0.0]], n_past=1)
    with pytest.raises(ValueError, match="got 1"):
        baseline_interval([[1.0]], [[0.0]], [[0.0]], n_past=1)


def test_forecasts_of_another_horizon():
    y_true, y_pred = windows(50, H)
    with pytest.raises(ValueError, match=r"must have shape \(n, 4\)"):
        baseline_interval(y_true, y_pred, y_pred[:, :2], n_past=1)
