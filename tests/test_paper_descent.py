"""The paper's training of a neuron: it finds the root, or says how far off it may be."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from pimeter import QuantileNeuron, quantile
from pimeter.paper import DescendingNeuron


@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("m", [2, 10, 100, 1000])
@pytest.mark.parametrize("beta", ["auto", 4.0])
@pytest.mark.parametrize("reflect", [False, True])
def test_descent_finds_the_root(level, m, beta, reflect):
    errors = np.abs(np.random.default_rng(9).normal(size=(m, 5)))
    root = QuantileNeuron(level, beta=beta, reflect=reflect).fit(errors)
    trained = DescendingNeuron(level, beta=beta, reflect=reflect).fit(errors)
    assert trained.converged_.all()
    assert_allclose(trained.quantile_, root.quantile_, rtol=1e-4)
    assert (np.abs(trained.quantile_ - root.quantile_) <= 2.0 * trained.error_bound_ + 1e-7).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-6, 1e6, 1e300])
def test_descent_with_auto_follows_the_unit(unit):
    errors = np.random.default_rng(10).standard_t(3, size=200)
    here, there = (DescendingNeuron().fit(scale * errors) for scale in (1.0, unit))
    assert_allclose(there.quantile_ / unit, here.quantile_, rtol=1e-6)


def test_far_outliers_do_not_stall_descent():
    errors = np.append(np.random.default_rng(11).normal(size=99), 1e9)
    trained = DescendingNeuron(0.9).fit(errors)
    assert_allclose(trained.quantile_, quantile(errors, 0.9), rtol=1e-6)


def test_curves_start_at_the_start_and_pass_the_closest_approach():
    errors = np.random.default_rng(12).exponential(size=(300, 2))
    neuron = DescendingNeuron(0.9, beta=20.0, start=0.5).fit(errors)
    assert neuron.loss_curve_.shape == neuron.weight_curve_.shape == (neuron.n_iter_.max() + 1, 2)
    assert_array_equal(neuron.weight_curve_[0], 0.5)
    closest = np.nanargmin(neuron.loss_curve_, axis=0)
    assert_array_equal(neuron.weight_curve_[closest, [0, 1]], neuron.quantile_)
    fractions = 1 / (1 + np.exp(20.0 * (errors - 0.5)))
    assert_allclose(neuron.loss_curve_[0], (fractions.mean(axis=0) - 0.9) ** 2)
    assert_array_equal(np.isnan(neuron.loss_curve_).sum(axis=0), neuron.n_iter_.max() - neuron.n_iter_)


def test_first_step_is_the_learning_rate():
    """Adam divides the gradient by its own size."""
    neuron = DescendingNeuron(0.9, beta=2.0, learning_rate=0.25, start=1.0).fit(np.arange(9.0))
    assert_allclose(neuron.weight_curve_[1], 1.25, rtol=1e-6)


def test_the_papers_settings_stall_on_few_errors_and_say_so():
    errors = np.abs(np.random.default_rng(13).normal(size=(20, 20)))
    neuron = DescendingNeuron(0.95, beta=1000.0, learning_rate=0.005)
    with pytest.warns(ConvergenceWarning, match=r"^20 of 20 neurons stalled; lower beta .* off by about"):
        neuron.fit(errors)
    assert not neuron.converged_.any()
    off = np.abs((errors <= neuron.quantile_).mean(axis=0) - 0.95)
    assert (off > 0.1).mean() > 0.8
    # The bound is of first order, so right in size, not in digits.
    distance = np.abs(neuron.quantile_ - QuantileNeuron(0.95, beta=1000.0).fit(errors).quantile_)
    assert 0.3 < np.median(neuron.error_bound_ / distance) < 3.0


def test_the_papers_settings_work_on_many_errors():
    errors = np.abs(np.random.default_rng(14).normal(size=(10_000, 2)))
    neuron = DescendingNeuron(0.95, beta=1000.0, learning_rate=0.005).fit(errors)
    assert neuron.converged_.all()
    root = QuantileNeuron(0.95, beta=1000.0).fit(errors)
    assert_allclose(neuron.quantile_, root.quantile_, atol=0.1 * root.standard_error_.min())


def test_a_descent_cut_short_is_reported():
    neuron = DescendingNeuron(max_iter=3)
    with pytest.warns(ConvergenceWarning, match="1 of 1 neurons stalled; raise max_iter"):
        neuron.fit(np.arange(50.0))
    assert (neuron.n_iter_, neuron.converged_) == (3, False)
    assert neuron.loss_curve_.shape == (4,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rate": 0.0}, "'learning_rate' parameter of DescendingNeuron must be None or a float in the range"),
        ({"learning_rate": "fast"}, "'learning_rate' parameter of DescendingNeuron must be None or a float"),
        ({"learning_rate": np.inf}, "'learning_rate' parameter of DescendingNeuron must be None or a float"),
        ({"max_iter": 0}, "'max_iter' parameter of DescendingNeuron must be an int in the range [1, inf)"),
        ({"patience": 1.5}, "'patience' parameter of DescendingNeuron must be an int in the range [1, inf)"),
        ({"start": np.nan}, "'start' parameter of DescendingNeuron must be None or a float in the range (-inf, inf)"),
    ],
)
def test_bad_settings_of_descent_are_explained(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        DescendingNeuron(**parameters).fit([1.0, 2.0, 3.0])


def test_a_descent_does_not_take_dask_collections():
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="use QuantileNeuron for dask collections"):
        DescendingNeuron().fit(da.ones(50))


def test_a_descent_that_stops_far_off_knows_nothing_of_its_error():
    with pytest.warns(ConvergenceWarning, match="1 of 1 neurons stalled; .* off by about inf"):
        far = DescendingNeuron(learning_rate=1e3, max_iter=5).fit(np.random.default_rng(0).normal(size=50))
    assert far.error_bound_ == np.inf


def test_a_descent_that_leaves_all_floats_is_refused():
    with pytest.raises(ValueError, match=r"learning_rate=1.7e\+308.* left all floats; give a smaller learning_rate"):
        DescendingNeuron(learning_rate=1.7e308).fit(np.random.default_rng(0).normal(size=50))


def test_a_descent_beyond_the_floats_of_the_errors_is_refused():
    errors = np.random.default_rng(0).exponential(size=60).astype(np.float16)
    with (
        pytest.warns(ConvergenceWarning),
        pytest.raises(ValueError, match="left all float16; give a smaller learning_rate"),
    ):
        DescendingNeuron(0.999, learning_rate=1e300, max_iter=1).fit(errors)
