"""Coverage over many simulated calibrations, from the known distribution: what is guaranteed is kept.

The full table is `benchmarks/interval_coverage.py`. Here each output of y is one calibration, and seeds are fixed; a
bound is three standard errors of the mean coverage away from what theory says.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, Ridge

from pimeter import GroupedWidth, IntervalRegressor, ScaledWidth, coverage_score

DRAWS = 1000
DISTRIBUTIONS = {
    "normal": stats.norm(),
    "t2": stats.t(2),
    "exponential": stats.expon(-np.log(2)),
    "uniform": stats.uniform(-1, 2),
    "laplace": stats.laplace(),
}
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")]


def calibrated(distribution, m, p, **params):
    """The model of as many calibrations on m errors around 0, and the coverage of each."""
    y = distribution.rvs(size=(m, DRAWS), random_state=np.random.default_rng([m, round(1000 * p)]))
    model = IntervalRegressor(lambda X: np.zeros((len(X), DRAWS)), confidence_level=p, **params).calibrate(y[:, :1], y)
    return model, distribution.cdf(model.margin_[:, 1]) - distribution.cdf(-model.margin_[:, 0])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("tails", ["symmetric", "equal", "sided", "lower", "upper"])
@pytest.mark.parametrize("m", [12, 200])
def test_guarantee_of_ranks(distribution, tails, m):
    model, coverage = calibrated(DISTRIBUTIONS[distribution], m, 0.9, tails=tails)
    error = coverage.std() / DRAWS**0.5
    # 9 rows are needed, 19 with two tails of one sample; of 12 rows some draws have fewer than 9 of one sign.
    assert np.isnan(model.guaranteed_level_) == (tails == "sided" and m == 12)
    assert model.guaranteed_ == (m == 200 or tails in {"symmetric", "lower", "upper"})
    if not np.isnan(model.guaranteed_level_):
        assert coverage.mean() >= model.guaranteed_level_ - 3 * error
    if model.guaranteed_:
        assert coverage.mean() <= 0.9 + (2 if tails in {"equal", "sided"} else 1) / (m + 1) + 3 * error


def test_each_side_is_covered():
    """Of positive and of negative errors by themselves, the former four times as large."""
    y = np.random.default_rng(0).normal(size=(200, DRAWS))
    y = np.where(y > 0.0, 4.0 * y, y)
    model = IntervalRegressor(lambda X: np.zeros((len(X), DRAWS)), confidence_level=0.9, tails="sided")
    lower, upper = model.calibrate(y[:, :1], y).margin_.T
    for margin in (lower, upper / 4.0):
        coverage = 2.0 * stats.norm.cdf(margin) - 1.0
        error = coverage.std() / DRAWS**0.5
        assert 0.9 - 3 * error <= coverage.mean() <= 0.9 + 2.0 / 101 + 3 * error


@pytest.mark.parametrize("tails", ["symmetric", "equal", "sided", "upper"])
def test_guarantee_for_the_set(tails):
    model, coverage = calibrated(DISTRIBUTIONS["t2"], 200, 0.9, tails=tails, guarantee="training-conditional")
    assert model.guaranteed_
    assert (coverage >= 0.9).mean() >= 0.95 - 3 * (0.95 * 0.05 / DRAWS) ** 0.5


def test_ties_are_covered():
    y = np.random.default_rng(0).poisson(1.0, size=(40, DRAWS)).astype(float)
    model = IntervalRegressor(lambda X: np.zeros((len(X), DRAWS)), confidence_level=0.9).calibrate(y[:, :1], y)
    coverage = stats.poisson(1.0).cdf(model.margin_[:, 1])
    assert coverage.mean() >= 0.9 - 3 * coverage.std() / DRAWS**0.5


def test_neuron_is_narrower_than_interpolation_and_covers():
    # The yardstick is plain interpolation at rank (m + 1) p, numpy's "weibull".
    ratios = []
    for distribution in (
        *(DISTRIBUTIONS[name] for name in ("normal", "exponential", "uniform", "laplace")),
        stats.t(3),
    ):
        for m in (30, 50, 100):
            y = distribution.rvs(
                size=(m, DRAWS), random_state=np.random.default_rng([2026, m])
            )  # not the seeds of tuning
            zero = lambda X: np.zeros((len(X), DRAWS))  # noqa: E731
            radius = IntervalRegressor(zero, guarantee="approximate").calibrate(y[:, :1], y).margin_[:, 1]
            plain = np.quantile(np.abs(y), 0.95, axis=0, method="weibull")
            coverage = distribution.cdf(radius) - distribution.cdf(-radius)
            assert coverage.mean() >= 0.95 - 3 * coverage.std() / DRAWS**0.5
            ratios.append(radius.mean() / plain.mean())
    assert np.exp(np.mean(np.log(ratios))) <= 1.0


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@pytest.mark.parametrize("guarantee", ["marginal", "approximate"])
def test_categories_are_covered_each(guarantee):
    rng = np.random.default_rng(0)
    by = np.repeat([0, 1, 2, 3], [100, 60, 7, 5])  # the last two have one neuron
    scale = np.array([1.0, 5.0, 20.0, 20.0])
    y = rng.standard_t(2, size=(len(by), DRAWS)) * scale[by][:, None]
    zero = lambda X: np.zeros((len(X), DRAWS))  # noqa: E731
    model = IntervalRegressor(zero, confidence_level=0.9, width="grouped", guarantee=guarantee)
    radius = model.calibrate(by[:, None], y, by=by).margin_[:4, :, 1] / scale[:, None]
    coverage = stats.t(2).cdf(radius) - stats.t(2).cdf(-radius)
    error = coverage.std(axis=1) / DRAWS**0.5
    levels = np.array([line.level for line in model.categories_[:4]])
    assert (coverage.mean(axis=1) >= levels - 3 * error).all()
    assert [line.source for line in model.categories_[:4]] == ["own", "own", "shared", "shared"]
    for p in (0.5, 0.8, 0.99):  # the same categories have a neuron at all levels, and enough rows for some
        m = np.array([100, 60, 12, 12])
        asked = model.predict_interval(np.zeros((4, 1)), p, by=range(4))[..., 1] / scale[:, None]
        coverage = stats.t(2).cdf(asked) - stats.t(2).cdf(-asked)
        guaranteed = p - 1 / (m + 1) if guarantee == "approximate" else p
        error = coverage.std(axis=1) / DRAWS**0.5
        assert (coverage.mean(axis=1) >= np.minimum(guaranteed, m / (m + 1)) - 3 * error).all()


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
def test_small_categories_are_covered_together_where_hard_ones_are_small_by_chance():
    # Four rows make a category large, and hard ones have five on average. If none but the small ones were in the pool,
    # it would hold fewer rows of hard ones than there are among new rows of small ones: about .72 covered, not .8.
    rng = np.random.default_rng(0)
    fraction, scale = np.repeat([5.0, 1.5], [20, 70]), np.repeat([100.0, 1.0], [20, 70])
    fraction /= fraction.sum()
    covered, small = np.empty((2, 200))
    for i in range(200):
        by = rng.choice(90, size=205, p=fraction)
        zero = lambda X: np.zeros(len(X))  # noqa: E731
        model = IntervalRegressor(zero, confidence_level=0.8, width=GroupedWidth(by=0))
        model.calibrate(by[:, None], rng.normal(scale=scale[by]))
        bounds = model.predict_interval(np.arange(90)[:, None])[:, 1] / scale
        is_small = np.bincount(by, minlength=90) < 4
        covered[i] = (fraction * (2 * stats.norm.cdf(bounds) - 1))[is_small].sum()
        small[i] = fraction[is_small].sum()
    ratio = covered.sum() / small.sum()
    error = (covered - ratio * small).std() / small.mean() / 200**0.5
    assert 0.8 - 3 * error <= ratio <= 0.83


def test_categories_never_seen_are_covered_less_than_others_of_small_categories():
    # Rare ones are hard: of a hundred with one row on average a third is not seen, and .856 of their rows are covered.
    rng = np.random.default_rng(0)
    fraction, scale = np.repeat([0.3, 0.015, 0.0025], [2, 10, 100]), np.repeat([1.0, 1.0, 10.0], [2, 10, 100])
    totals = np.zeros((2, 2))  # covered and all, of those never seen and of all small ones
    for _ in range(100):
        by = rng.choice(112, size=400, p=fraction)
        model = IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=0.9, width=GroupedWidth(by=0))
        model.calibrate(by[:, None], rng.normal(scale=scale[by]))
        covered = 2 * stats.norm.cdf(model.predict_interval(np.arange(112)[:, None])[:, 1] / scale) - 1
        rows = np.bincount(by, minlength=112)
        for i, members in enumerate((rows == 0, rows < 9)):
            totals[i] += (fraction * covered)[members].sum(), fraction[members].sum()
        assert np.isnan(model.categories_[-1].level)  # so nothing is said of the former, and .9 of the latter
    unseen, together = totals[:, 0] / totals[:, 1]
    assert unseen < 0.87
    assert together > 0.89  # over 100 calibrations the standard error is .004


@pytest.mark.parametrize("tails", ["symmetric", "equal", "sided"])
def test_learned_scale_keeps_the_guarantee(tails):
    rng = np.random.default_rng(0)
    n_draws, new = 300, np.linspace(0.05, 0.95, 10)[:, None]
    coverage = []
    for _ in range(10):
        X = rng.uniform(size=(160, 1))
        y = rng.standard_t(3, size=(160, n_draws // 10)) * (0.3 + X)
        zero = lambda X: np.zeros((len(X), n_draws // 10))  # noqa: E731
        model = IntervalRegressor(zero, confidence_level=0.9, width=ScaledWidth(Ridge()), tails=tails, random_state=0)
        low, high = np.moveaxis(model.calibrate(X, y).predict_interval(new), 2, 0) / (0.3 + new)
        coverage.append((stats.t(3).cdf(high) - stats.t(3).cdf(low)).mean())
    assert model.n_calibration_ == 80
    assert np.mean(coverage) >= 0.9 - 3 * np.std(coverage) / 10**0.5


def test_least_squares_with_as_many_columns_as_rows():
    # Pooled out-of-fold errors around one refitted model cover 23 % here.
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(20):
        X, new = rng.standard_normal((2, 100, 100))
        y, y_new = X.sum(axis=1) / 10 + rng.normal(size=100), new.sum(axis=1) / 10 + rng.normal(size=100)
        model = IntervalRegressor(LinearRegression(), confidence_level=0.9, cv=5, random_state=0).fit(X, y)
        covered.append(coverage_score(y_new, model.predict_interval(new)))
    assert np.mean(covered) >= 0.9
