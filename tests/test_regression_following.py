from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pimeter import interval_score
from pimeter.regression import IntervalRegressor, OnlineIntervals


def model(X):
    return 4.0 * X[:, 0]


def series(noise, seed=0, n=3000):
    """Features and targets in the order of time."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, model(X) + noise(rng, X)


def autoregressive(rng, X):
    noise = rng.standard_normal(len(X))
    for i in range(1, len(noise)):
        noise[i] = 0.5 * noise[i - 1] + 0.75**0.5 * noise[i]
    return noise


def score_ratio(noise, seed, **settings):
    """Interval score on the last third of the rows, followed in their order, over that of the calibrated intervals."""
    X, y = series(noise, seed)
    intervals = IntervalRegressor(model, random_state=0, **settings).calibrate(X[:2000], y[:2000])
    online = OnlineIntervals(intervals).fit(X[:2000], y[:2000])
    scores = [
        interval_score(y[2000:], found, 0.95)
        for found in (online.follow(X[2000:], y[2000:]), intervals.predict_interval(X[2000:]))
    ]
    return scores[0] / scores[1]


@pytest.mark.parametrize(
    ("noise", "most"),
    [
        (lambda rng, X: rng.standard_normal(len(X)), 1.01),
        (autoregressive, 0.92),  # .866 with the coefficient known
        (lambda rng, X: np.linspace(-1, 2, len(X)) + rng.standard_normal(len(X)), 0.6),
        (lambda rng, X: np.linspace(1, 3, len(X)) * rng.standard_normal(len(X)), 0.9),
    ],
)
@pytest.mark.parametrize("tails", ["symmetric", "equal"])
def test_what_goes_on_is_followed_and_chance_is_not(noise, most, tails):
    assert np.mean([score_ratio(noise, seed, tails=tails) for seed in range(3)]) < most + 0.01 * (tails == "equal")


def test_the_width_is_kept():
    found = score_ratio(lambda rng, X: (1 + 4 * X[:, 0]) * autoregressive(rng, X), 0, width="scaled", shuffle=False)
    assert found < 0.95


def test_row_by_row_is_all_at_once():
    X, y = series(autoregressive, n=400)
    intervals = IntervalRegressor(model, y_min=-1.0).calibrate(X[:300], np.maximum(y[:300], -1.0))
    followed = OnlineIntervals(intervals).fit(X[:300], y[:300]).follow(X[300:], y[300:])
    assert followed.min() >= -1.0
    again = OnlineIntervals(intervals).fit(X[:300], y[:300])
    for i in range(300, 400):
        assert again.predict_interval(X[[i]])[0].tolist() == followed[i - 300].tolist()
        again.follow(X[[i]], y[[i]])


@pytest.mark.parametrize("limits", [{"y_max": 4.0}, {"y_min": 0.0}])
def test_limits_of_targets_cut_bounds_and_move_nothing(limits):
    X, y = series(lambda rng, X: rng.standard_normal(len(X)), n=400)
    y = np.clip(y, limits.get("y_min"), limits.get("y_max"))
    free, cut = (
        OnlineIntervals(IntervalRegressor(model, **some).calibrate(X[:300], y[:300])).fit(X[:300], y[:300])
        for some in ({}, limits)
    )
    expected = np.clip(free.follow(X[300:], y[300:]), limits.get("y_min"), limits.get("y_max"))
    np.testing.assert_array_equal(cut.follow(X[300:], y[300:]), expected)


def test_refusals():
    X, y = series(autoregressive, n=100)
    one_sided = IntervalRegressor(model, tails="upper").calibrate(X, y)
    with pytest.raises(ValueError, match='tails="upper" cannot be followed'):
        OnlineIntervals(one_sided).fit(X, y)
    intervals = IntervalRegressor(model).calibrate(X, y)
    with pytest.raises(ValueError, match="one target for each of the 100 rows"):
        OnlineIntervals(intervals).fit(X, y[:50])
    with pytest.raises(ValueError, match="finite"):
        OnlineIntervals(IntervalRegressor(model, confidence_level=0.9).calibrate(X, y)).fit(X, np.full(100, np.nan))


def test_rows_are_put_in_the_order_of_time():
    X, y = series(autoregressive, n=400)
    intervals = IntervalRegressor(model).calibrate(X, y)
    mixed = np.random.default_rng(1).permutation(400)
    days = np.datetime64("2024-01-01") + np.arange(400)
    expected = OnlineIntervals(intervals).fit(X, y).predict_interval(X[:3])
    found = OnlineIntervals(intervals).fit(X[mixed], y[mixed], time=days[mixed]).predict_interval(X[:3])
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="one moment for each of the 400 rows"):
        OnlineIntervals(intervals).fit(X, y, time=days[:9])


def test_rows_far_ahead_are_covered_as_often_as_the_next():
    # 60 series, 40 rows ahead of each: the mean has a standard error of about .01, as neighbours resemble each other.
    covered, width = [], []
    for seed in range(60):
        X, y = series(autoregressive, seed, n=640)
        online = OnlineIntervals(IntervalRegressor(model, confidence_level=0.9).calibrate(X[:600], y[:600]))
        lower, upper = online.fit(X[:600], y[:600]).predict_interval(X[600:]).T
        covered.append((lower <= y[600:]) & (y[600:] <= upper))
        width.append(upper - lower)
    assert abs(np.mean(covered) - 0.9) < 0.03
    next_row, last = np.mean(width, axis=0)[[0, -1]]
    assert 1.1 < last / next_row < 1.2  # 1.155 = 1 / sqrt(1 - .5**2)


def test_targets_that_are_not_finite_are_refused_and_change_nothing():
    X, y = series(autoregressive, n=400)
    intervals = IntervalRegressor(model).calibrate(X, y)
    wrong = y.copy()
    wrong[5] = np.nan
    online = OnlineIntervals(intervals)
    with pytest.raises(ValueError, match=r"y must be finite; y\[5\] is nan"):
        online.fit(X, wrong)
    with pytest.raises(NotFittedError):
        online.predict_interval(X)
    before = online.fit(X, y).predict_interval(X[:3])
    for learn in (online.follow, online.fit):
        with pytest.raises(ValueError, match=r"y must be finite; y\[5\] is nan"):
            learn(X, wrong)
        np.testing.assert_array_equal(online.predict_interval(X[:3]), before)
