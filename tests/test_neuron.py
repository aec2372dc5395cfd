"""Neurons that are solved and trained, what it says about its own accuracy, and Theorem 1."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import expon, lognorm, norm, t, uniform
from scipy.stats.mstats import mjci
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from pimeter import QuantileNeuron, quantile
from pimeter.coverage import quantile_ranks
from pimeter.forecast.boxes import Box
from pimeter.paper import DescendingNeuron

NEURONS = pytest.mark.parametrize("Neuron", [QuantileNeuron, DescendingNeuron])


@parametrize_with_checks(
    [
        QuantileNeuron(),
        QuantileNeuron(0.5, beta=2.0),
        QuantileNeuron(reflect=True),
        DescendingNeuron(),
        DescendingNeuron(0.5, beta=2.0, reflect=True, learning_rate=0.1, patience=50),
    ]
)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


# --- one neuron, a column of neurons -------------------------------------------------------------------------------


@NEURONS
@pytest.mark.parametrize("beta", ["auto", 3.0])
@pytest.mark.parametrize("reflect", [False, True])
def test_columns_do_not_influence_each_other(Neuron, beta, reflect):
    errors = np.random.default_rng(1).exponential([1.0, 100.0, 0.01], size=(60, 3))
    together = Neuron(0.9, beta=beta, reflect=reflect)
    alone = clone(together)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one beta for three units
        together.fit(errors)
        for j in range(3):
            alone.fit(errors[:, j])
            assert isinstance(alone.quantile_, float)
            assert alone.quantile_ == together.quantile_[j]
            assert_array_equal(alone.standard_error_, together.standard_error_[j])
            assert_array_equal(alone.quantile_range_, together.quantile_range_[j])
            if Neuron is DescendingNeuron:
                assert alone.n_iter_ == together.n_iter_[j]
                assert_array_equal(alone.loss_curve_, together.loss_curve_[: alone.n_iter_ + 1, j])
                assert_array_equal(alone.weight_curve_, together.weight_curve_[: alone.n_iter_ + 1, j])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_width_is_kept(dtype):
    errors = np.random.default_rng(2).normal(size=(50, 2)).astype(dtype)
    neuron = QuantileNeuron().fit(errors)
    assert {neuron.quantile_.dtype, neuron.standard_error_.dtype, neuron.quantile_range_.dtype} == {np.dtype(dtype)}


def test_root_is_the_public_quantile():
    errors = np.random.default_rng(3).exponential(size=(80, 4))
    neuron = QuantileNeuron(0.8, reflect=True).fit(errors)
    assert_array_equal(neuron.quantile_, quantile(errors, 0.8, axis=0, reflect=True))


@NEURONS
@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("beta", ["auto", 3.0])
def test_weights_are_copies(Neuron, beta, reflect):
    rng = np.random.default_rng(4)
    errors, counts = rng.exponential(size=(40, 2)), rng.integers(0, 4, size=40)
    weighted = Neuron(0.8, beta=beta, reflect=reflect).fit(errors, sample_weight=counts)
    copied = clone(weighted).fit(np.repeat(errors, counts, axis=0))
    assert_allclose(weighted.quantile_, copied.quantile_, rtol=1e-7)
    assert_allclose(weighted.standard_error_, copied.standard_error_, rtol=1e-6)
    assert_array_equal(weighted.quantile_range_, copied.quantile_range_)
    assert weighted.quantile_range_level_ == copied.quantile_range_level_


@pytest.mark.parametrize("counts", [lambda rng: rng.integers(1, 9, 60) + 0.0, lambda rng: 2.0 * rng.random(60)])
@NEURONS
def test_order_of_tied_errors_with_weights_leaves_no_trace(Neuron, counts):
    rng = np.random.default_rng(40)
    for _ in range(5):
        errors, own = np.round(rng.exponential(size=60), 1), counts(rng)
        one = Neuron(0.8, reflect=True).fit(errors, sample_weight=own)
        order = rng.permutation(60)
        two = clone(one).fit(errors[order], sample_weight=own[order])
        assert (one.quantile_, one.standard_error_) == (two.quantile_, two.standard_error_)


def test_counts_of_a_quadrillion_rows():
    """Their binomial probabilities, one by one, took gigabytes."""
    neuron = QuantileNeuron(0.5).fit(np.arange(20.0), sample_weight=np.full(20, 4e13))
    assert_array_equal(neuron.quantile_range_, [9.0, 10.0])
    assert 0.95 <= neuron.quantile_range_level_ < 0.9500001


def test_fractional_weights_have_no_ranks():
    neuron = QuantileNeuron(0.5).fit([1.0, 2.0, 3.0, 5.0], sample_weight=[1.0, 5.5, 3.0, 1.5])
    assert np.isfinite([neuron.quantile_, neuron.standard_error_]).all()
    assert np.isnan([*neuron.quantile_range_, neuron.quantile_range_level_]).all()


# --- what it says of itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", ["auto", 5.0])
@pytest.mark.parametrize("reflect", [False, True])
def test_smoothed_coverage_of_its_own_errors_is_the_target(beta, reflect):
    errors = np.abs(np.random.default_rng(5).normal(size=(2000, 3)))
    neuron = QuantileNeuron(0.9, beta=beta, reflect=reflect).fit(errors)
    # With beta="auto" the target is nearer to 1/2, by .4 * (pi h)^2 / 6 = .0008 at h = .034.
    assert_allclose(neuron.smoothed_coverage(errors), 0.9, atol=2e-3 if beta == "auto" else 1e-9)
    assert_allclose(neuron.smoothed_coverage(errors + 1000.0), 0.0, atol=1e-9)
    assert_allclose(neuron.smoothed_coverage(errors / 1000.0), 1.0, atol=2e-3 if beta == "auto" else 1e-1)


def test_smoothed_coverage_without_spread_is_the_plain_fraction():
    assert_allclose(QuantileNeuron(0.9).fit([2.0, 2.0]).smoothed_coverage([1.0, 2.0, 3.0, 4.0]), 0.375, rtol=1e-12)


@pytest.mark.parametrize(("m", "level"), [(10, 0.5), (100, 0.05), (100, 0.95), (200, 0.9), (500, 0.99), (2000, 0.95)])
@pytest.mark.parametrize(
    "distribution", [norm(), t(2), lognorm(1), uniform(), expon()], ids=lambda distribution: distribution.dist.name
)
def test_standard_error_is_honest(distribution, m, level):
    """Also with five errors beyond the quantile. 400 samples know a fraction to .013 and a standard deviation to 3.5 %.

    Of 2,000 samples .93 to .97 were held; few errors of heavy tails make the standard error too large.
    """
    errors = distribution.rvs(size=(m, 400), random_state=np.random.default_rng(6))
    neuron = QuantileNeuron(level).fit(errors)
    off = np.abs(neuron.quantile_ - distribution.ppf(level))
    assert 0.89 < np.mean(off <= 1.96 * neuron.standard_error_) < 0.995
    most = 1.8 if m * min(level, 1.0 - level) < 6.0 else 1.4
    assert 0.9 < np.median(neuron.standard_error_) / neuron.quantile_.std() < most


@pytest.mark.parametrize(("m", "level"), [(20, 0.95), (50, 0.99), (99, 0.95), (9, 0.5), (50, 0.09)])
@pytest.mark.parametrize("beta", ["auto", 0.5, 1000.0])
def test_standard_error_is_unknown_with_few_errors_beyond_the_quantile(m, level, beta):
    """Whatever the errors look like: q +- 1.96 of it held .64 to .81 at 95 % and m = 20, and some were infinite."""
    rng = np.random.default_rng(41)
    for errors in (rng.standard_t(2, m), rng.random(m), np.ones(m)):
        assert np.isnan(QuantileNeuron(level, beta=beta).fit(errors).standard_error_)


@pytest.mark.parametrize("beta", ["auto", 0.5, 1000.0])
@pytest.mark.parametrize("reflect", [False, True])
def test_standard_error_is_finite_with_enough_errors(beta, reflect):
    rng = np.random.default_rng(42)
    far_off = np.append(np.abs(rng.standard_normal(99)), 1e300)
    gap = np.repeat([0.0, 1e9], 50) + rng.random(100)
    for errors in (np.abs(rng.standard_t(0.5, 100)), far_off, gap, np.round(far_off), 1e-300 * np.arange(100.0)):
        for level in (0.05, 0.5, 0.95):
            neuron = QuantileNeuron(level, beta=beta, reflect=reflect).fit(errors)
            assert not np.isinf(neuron.standard_error_)
            is_end = beta != "auto" and neuron.quantile_ in (errors.min(), errors.max())
            assert is_end or neuron.standard_error_ >= 0.0


def test_standard_error_of_a_blunt_neuron():
    """400 samples know a standard deviation to 3.5 %; where the root lies beyond the errors it was a seventh of it."""
    errors = np.random.default_rng(44).standard_normal((100, 400))
    blunt = QuantileNeuron(0.8, beta=2.0).fit(errors)
    assert_allclose(blunt.standard_error_.mean() / blunt.quantile_.std(), 1.0, atol=0.12)
    beyond = QuantileNeuron(0.8, beta=0.3).fit(errors)
    assert_array_equal(beyond.quantile_, errors.max(axis=0))
    assert np.isnan(beyond.standard_error_).all()


def test_standard_error_of_ranks_is_that_of_maritz_and_jarrett():
    errors = np.random.default_rng(43).exponential(size=5000)
    for level in (0.05, 0.5, 0.9, 0.999):
        found = QuantileNeuron(level).fit(errors).standard_error_
        assert_allclose(found, mjci(errors, [level])[0], rtol=0.15 if level == 0.999 else 0.02)  # he rounds ranks
    assert QuantileNeuron(0.5).fit([2.0] * 20).standard_error_ == 0.0


@pytest.mark.parametrize(("beta", "reflect"), [(2.0, False), (1000.0, False), ("auto", True)])
def test_standard_error_is_honest_for_other_sights(beta, reflect):
    errors = np.abs(np.random.default_rng(7).normal(size=(500, 400)))
    neuron = QuantileNeuron(0.9, beta=beta, reflect=reflect).fit(errors)
    assert_allclose(neuron.standard_error_.mean() / neuron.quantile_.std(), 1.0, atol=0.15)


@pytest.mark.parametrize("errors", [[3.0], [1.0, 4.0], [2.0] * 10])
def test_without_spread_the_quantile_is_a_plain_one(errors):
    assert QuantileNeuron().fit(errors).quantile_ == pytest.approx(max(errors))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_quantile_range_holds_the_quantile_as_often_as_it_says(level):
    errors = np.random.default_rng(8).exponential(size=(100, 4000))
    neuron = QuantileNeuron(level, beta=1.0).fit(errors)
    low, high = neuron.quantile_range_.T
    true = expon.ppf(level)
    exact = neuron.quantile_range_level_
    assert exact == quantile_ranks(100, level)[2]
    # Three standard errors of a fraction of 4,000.
    assert_allclose(np.mean((low < true) & (true < high)), exact, atol=3 * np.sqrt(exact * (1 - exact) / 4000))


def test_quantile_range_of_too_few_errors_says_its_level():
    neuron = QuantileNeuron(0.95).fit(np.arange(20.0))
    assert_array_equal(neuron.quantile_range_, [0, 19])
    assert_allclose(neuron.quantile_range_level_, 0.6415, atol=1e-4)


# --- Theorem 1 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Neuron", "lengths"),
    [
        (QuantileNeuron, {100: 200, 1000: 100, 10_000: 40, 100_000: 10, 1_000_000: 4}),
        (DescendingNeuron, {100: 200, 1000: 100, 10_000: 20, 100_000: 6, 1_000_000: 1}),
    ],
)
def test_error_falls_like_the_square_root_of_the_number_of_errors(Neuron, lengths):
    """Each size is weighted by its samples: a root mean square of n of them is known to 1/sqrt(2 n).

    With the samples at hand the exponent is then known to .019 and .024, and three times that is allowed.
    """
    rng = np.random.default_rng(15)
    true = expon.ppf(0.9)
    misses = [Neuron(0.9).fit(rng.exponential(size=size)).quantile_ - true for size in lengths.items()]
    lengths_log, misses_log = np.log(list(lengths)), [np.log(np.mean(miss**2)) / 2 for miss in misses]
    exponent = np.polyfit(lengths_log, misses_log, 1, w=np.sqrt(list(lengths.values())))[0]
    assert_allclose(exponent, -0.5, atol=0.07)
    # One standard error of the plain quantile is sqrt(p (1 - p) / m) / density = 3 / sqrt(m); none is far beyond it.
    assert all(np.abs(miss).max() < 4 * 3 / np.sqrt(m) for m, miss in zip(lengths, misses, strict=True))


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"confidence_level": 0.0},
            "'confidence_level' parameter of QuantileNeuron must be a float in the range (0.0, 1.0)",
        ),
        (
            {"confidence_level": 95},
            "'confidence_level' parameter of QuantileNeuron must be a float in the range (0.0, 1.0)",
        ),
        (
            {"beta": 0.0},
            "'beta' parameter of QuantileNeuron must be a str among {'auto'} or a float in the range (0.0, inf)",
        ),
        ({"beta": np.inf}, "'beta' parameter of QuantileNeuron must be"),
        ({"beta": "sharp"}, "'beta' parameter of QuantileNeuron must be a str among {'auto'}"),
        ({"reflect": "yes"}, "'reflect' parameter of QuantileNeuron must be an instance of 'bool'"),
    ],
)
def test_bad_parameters_are_explained(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        QuantileNeuron(**parameters).fit([1.0, 2.0, 3.0])


@NEURONS
@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([1.0, np.nan], "Input X contains NaN"),
        ([1.0, np.inf], "Input X contains infinity"),
        ([], "Found array with 0 sample(s)"),
        (np.ones((2, 2, 2)), "Found array with dim 3"),
        (1.0, "Expected 2D array, got scalar array instead"),
    ],
)
def test_bad_errors_are_explained(Neuron, errors, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Neuron().fit(errors)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 1.0], "none negative and not all zero, 1e+15 in all at most; got -1 to 1"),
        ([0.0, 0.0, 0.0], "none negative and not all zero, 1e+15 in all at most; got 0 to 0"),
        ([1.0, np.nan, 1.0], "Input sample_weight contains NaN"),
        ([1.0, 2.0], "inconsistent numbers of samples"),
        (np.ones((3, 2)), "one count per row; got (3, 2)"),
    ],
)
def test_bad_weights_are_explained(weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        QuantileNeuron().fit([1.0, 2.0, 3.0], sample_weight=weights)


def test_negative_absolute_errors_are_refused():
    with pytest.raises(ValueError, match=re.escape("the smallest given is -2.0. Use absolute_errors")):
        QuantileNeuron(reflect=True).fit([1.0, -2.0])


def test_targets_and_predictions_are_not_errors():
    with pytest.raises(ValueError, match=re.escape("fit(absolute_errors(y_true, y_pred))")):
        QuantileNeuron().fit([1.0, 2.0], [1.5, 1.5])


def test_coverage_wants_a_fitted_neuron_and_as_many_columns():
    with pytest.raises(NotFittedError):
        QuantileNeuron().smoothed_coverage([1.0])
    with pytest.raises(ValueError, match="1 features, but QuantileNeuron is expecting 2"):
        QuantileNeuron().fit(np.ones((4, 2))).smoothed_coverage([1.0])


class TestBox:
    """The joint neuron's view of several outputs."""

    def test_a_row_is_inside_if_and_only_if_its_score_is_at_most_the_size(self):
        rng = np.random.default_rng(0)
        errors = rng.standard_t(3, size=(2000, 4)) + 1.0
        box = Box(below=rng.random(4) + 0.5, above=rng.random(4) + 0.5, centre=rng.normal(size=4))
        scores = box.scores(errors)
        for size in (0.0, 0.7, 2.5):
            below, above = box.margins(size).T
            inside = ((errors >= -below) & (errors <= above)).all(axis=1)
            assert_array_equal(inside, scores <= size)

    def test_no_end_and_no_width(self):
        one_sided = Box(below=np.full(2, np.inf), above=np.ones(2), centre=np.zeros(2))
        assert_array_equal(one_sided.scores(np.array([[-99.0, 0.5], [-1.0, -1.0]])), [0.5, 0.0])
        assert_array_equal(one_sided.margins(0.0), [[np.inf, 0.0]] * 2)
        flat = Box(below=np.zeros(1), above=np.zeros(1), centre=np.zeros(1))
        assert_array_equal(flat.scores(np.array([[0.0], [1e-9]])), [0.0, np.inf])
        assert_array_equal(flat.margins(np.inf), [[np.inf, np.inf]])
        assert np.isnan(one_sided.scores(np.array([[0.5, np.nan]]))).all()

    @pytest.mark.parametrize("own_rows", [False, True])
    def test_rank_on_scores_covers_whole_rows_if_the_shape_saw_other_rows(self, own_rows):
        # 5 outputs, 40 rows that calibrate, rank 39 of 40: 39/41 = .9512 on average if the shape is from other rows.
        rng = np.random.default_rng(1)
        hits = []
        for _ in range(1500):
            errors = rng.standard_normal((81, 5)) * [1, 2, 4, 8, 16]
            shape, calibration, new = errors[:40], errors[40:80], errors[80:]
            seen = np.abs(calibration if own_rows else shape)
            radius = np.sort(seen, axis=0)[38]
            box = Box(below=radius, above=radius, centre=np.zeros(5))
            size = np.sort(box.scores(calibration))[38]
            hits.append(box.scores(new)[0] <= size)
        # The standard error is sqrt(.0464 / 1500) = .0056.
        if own_rows:
            assert np.mean(hits) < 0.9512 - 3 * 0.0056
        else:
            assert abs(np.mean(hits) - 0.9512) < 3 * 0.0056


def test_whole_counts_of_tied_errors_are_copies():
    """Also for ranks: a mean of counts, 8/3, three times is a little less than 8."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, counts = np.round(rng.normal(size=12), 1), rng.integers(1, 4, size=12)
        copies, counted = (
            QuantileNeuron(0.5).fit(np.repeat(x, counts)),
            QuantileNeuron(0.5).fit(x, sample_weight=counts),
        )
        assert_array_equal(counted.quantile_range_, copies.quantile_range_)
        x[x == x.max()] = np.inf
        found = quantile(x, [0.2, 0.5, 0.8], weights=counts)
        assert_array_equal(found, quantile(np.repeat(x, counts), [0.2, 0.5, 0.8]))


def test_a_box_beyond_all_floats_has_no_end():
    side = np.array([1e20, 1.0])
    assert Box(side, side, np.zeros(2)).margins(1e300).tolist() == [[np.inf, np.inf], [1e300, 1e300]]


def test_wrong_groups_leave_a_fitted_neuron_as_it_was():
    errors = np.random.default_rng(0).normal(size=100)
    neuron = QuantileNeuron(0.9).fit(errors)
    before = neuron.quantile_
    with pytest.raises(ValueError, match="groups must hold one group for each of the 100 rows"):
        neuron.fit(10 * errors, groups=[1, 2])
    assert neuron.quantile_ == before
