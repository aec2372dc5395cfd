"""Sums, means and sample paths of cones, and quantiles of single steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pimeter as pm

pytestmark = pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")


def walks(n, h=6, seed=0):
    """Windows of a random walk, the last value as forecast."""
    series = np.cumsum(np.random.default_rng(seed).standard_normal(n + h))
    windows = np.lib.stride_tricks.sliding_window_view(series, h + 1)
    return windows[:, 1:].copy(), np.repeat(windows[:, :1], h, axis=1)


def fitted(n=1500, **settings):
    y_true, y_pred = walks(2 * n)
    cone = pm.ForecastIntervals(0.9, **({"tails": "equal"} | settings)).fit(y_true[:n], y_pred[:n])
    return cone, y_true[n:], y_pred[n:]


def test_sums_with_a_context_follow_it():
    cone, y_true, y_pred = fitted(context="recent")
    steps = np.arange(6)
    past_true, past_pred = walks(3000)
    covered = []
    for i in range(500):
        lower, upper = cone.sum_interval(y_pred[i : i + 1])[0]
        covered.append(lower <= y_true[i].sum() <= upper)
        made = 1500 + i - steps
        cone.update(past_true[made, steps][None], past_pred[made, steps][None])
    assert abs(np.mean(covered) - 0.9) < 0.07  # a standard error of about .03


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_sums_and_means_are_covered(of):
    cone, y_true, y_pred = fitted()
    lower, upper = cone.sum_interval(y_pred, of=of).T
    total = getattr(y_true, of)(axis=1)
    # 1,500 windows that overlap by five of six steps: a standard error of about .02.
    assert abs(np.mean((lower <= total) & (total <= upper)) - 0.9) < 0.05


def test_weights_choose_steps():
    cone, _, y_pred = fitted()
    first = cone.sum_interval(y_pred[:1], weights=[1, 0, 0, 0, 0, 0])
    assert_allclose(first[0], cone.predict_interval(y_pred[:1])[0, 0], rtol=0.02)
    for wrong in ([1.0], np.full(6, np.nan)):
        with pytest.raises(ValueError, match="weights must hold 6 finite numbers, not all 0"):
            cone.sum_interval(y_pred[:1], weights=wrong)


@pytest.mark.parametrize("tails", ["equal", "symmetric"])
@pytest.mark.parametrize("is_updated", [False, True])
def test_paths_have_the_margins_of_the_cone(tails, is_updated):
    cone, y_true, y_pred = fitted(tails=tails)
    if is_updated:
        cone.update(3 * y_true[:50], 3 * y_pred[:50])
    n_paths = 2 * cone.n_windows_
    paths = cone.sample_paths(y_pred[:2], n_paths, random_state=0)
    assert paths.shape == (2, n_paths, 6)
    bounds = np.moveaxis(np.quantile(paths, [0.05, 0.95], axis=1, method="hazen"), 0, -1)
    expected = cone.predict_interval(y_pred[:2])
    width = np.diff(expected)
    assert_allclose((bounds - expected) / width, 0.0, atol=0.005)


@pytest.mark.parametrize("context", [None, "recent"])
def test_any_number_of_paths_has_the_margins_of_the_cone(context):
    cone, _, y_pred = fitted(n=400, context=context)
    paths = cone.sample_paths(y_pred[:2], 250, random_state=0)
    tails = np.moveaxis(np.quantile(paths, [0.05, 0.95], axis=1, method="hazen"), 0, -1)
    assert_allclose(tails, cone.predict_interval(y_pred[:2]), rtol=1e-9)
    assert_allclose(np.corrcoef(paths[0].T)[0, 1], np.corrcoef(cone.sample_paths(y_pred[:1], 800)[0].T)[0, 1], atol=0.1)


@pytest.mark.parametrize(("tails", "level", "side"), [("lower", 0.1, 0), ("upper", 0.9, 1)])
@pytest.mark.parametrize("n_paths", [300, 450])
def test_paths_have_the_one_bound_of_a_cone(tails, level, side, n_paths):
    y = np.cumsum(np.random.default_rng(1).standard_normal((300, 4)), axis=1)
    cone = pm.ForecastIntervals(0.9, tails=tails).fit(y, np.zeros((300, 4)))
    paths = cone.sample_paths(np.zeros((1, 4)), n_paths, random_state=0)[0]
    bound = cone.predict_interval(np.zeros((1, 4)))[0, :, side]
    assert_allclose(np.quantile(paths, level, axis=0, method="hazen"), bound, rtol=1e-12)


def test_sums_need_no_steps_that_do_not_count():
    y = np.cumsum(np.random.default_rng(1).standard_normal((300, 4)), axis=1)
    zeros, counts = np.zeros((300, 4)), [1, 1, 0, 0]
    whole = pm.ForecastIntervals(0.9, tails="equal").fit(y, zeros).sum_interval(zeros[:1], weights=counts)
    y[1:, 3] = np.nan
    found = pm.ForecastIntervals(0.9, tails="equal").fit(y, zeros).sum_interval(zeros[:1], weights=counts)
    assert_allclose(found, whole)


def test_paths_depend_on_each_other_as_the_past_did():
    cone, y_true, y_pred = fitted()
    paths = cone.sample_paths(np.zeros((1, 6)), 1500, random_state=1)[0]
    past = np.corrcoef((y_true - y_pred).T)
    assert_allclose(np.corrcoef(paths.T), past, atol=0.15)
    for reduce in (np.max, np.min, np.sum):
        lower, upper = np.quantile(reduce(paths, axis=1), [0.05, 0.95])
        seen = reduce(y_true - y_pred, axis=1)
        assert abs(np.mean((lower <= seen) & (seen <= upper)) - 0.9) < 0.05


def test_quantiles_of_steps():
    cone, _, y_pred = fitted()
    found = cone.predict_quantile(y_pred[:3], [0.05, 0.5, 0.95])
    assert found.shape == (3, 6, 3)
    assert_allclose(found[..., [0, 2]], cone.predict_interval(y_pred[:3]), atol=1e-9)
    assert_allclose(cone.predict_quantile(y_pred[:3], 0.5), found[..., 1])
    assert (np.diff(found, axis=-1) > 0).all()


def test_several_series_limits_and_missing_steps():
    pairs = [walks(300, h=3, seed=seed) for seed in (0, 1)]
    y_true, y_pred = (np.stack(each) for each in zip(*pairs, strict=True))
    y_true[:, ::5, 2] = np.nan
    cone = pm.ForecastIntervals(0.9, tails="equal").fit(y_true, y_pred)
    assert cone.sum_interval(y_pred[:, :4]).shape == (2, 4, 2)
    assert cone.sample_paths(y_pred[:, :4], 7, random_state=0).shape == (2, 4, 7, 3)
    alone = pm.ForecastIntervals(0.9, tails="equal").fit(y_true[1], y_pred[1])
    assert_allclose(cone.sum_interval(y_pred)[1], alone.sum_interval(y_pred[1]))
    bounded = pm.ForecastIntervals(0.9, y_min=-100.0).fit(*pairs[0])
    assert bounded.sample_paths(np.full((1, 3), -100.0), 50, random_state=0).min() == -100.0


def test_what_cannot_be_done():
    cone, y_true, y_pred = fitted(joint=True)
    with pytest.raises(ValueError, match="fitted step by step"):
        cone.sum_interval(y_pred[:1])
    holes = np.where(np.arange(6) == np.arange(len(y_true))[:, None] % 6, np.nan, y_true)
    with pytest.raises(ValueError, match="at least 2 windows of which all steps are known; got 0"):
        pm.ForecastIntervals(0.9).fit(holes, y_pred).sample_paths(y_pred[:1])
    with pytest.raises(ValueError, match="n_paths must be an integer"):
        fitted()[0].sample_paths(y_pred[:1], 0)
