"""Every public name on hostile input: a right answer or a clean error.

A few examples of each run with the other tests, many more with `make fuzz`.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils.validation import _num_samples

import pimeter as pm
from pimeter import paper
from pimeter._kernels import reference
from pimeter.errors import horizon_errors
from pimeter.scorers import coverage_scorer, crps_scorer, interval_scorer
from tests.hostile import COLUMNS, Draw, Given, Refused, arrays, categories, fuzzed, is_level, levels, outcome, tables


class Target(NamedTuple):
    """How a public name is tried."""

    attempt: Callable[[Draw], bool]  # whether there was an answer
    fraction: float  # of the examples that a cheap name gets


TARGETS: dict[str, Target] = {}


def target(*names: str, fraction: float = 1.0) -> Callable[[Callable[[Draw], bool]], Callable[[Draw], bool]]:
    def register(attempt: Callable[[Draw], bool]) -> Callable[[Draw], bool]:
        TARGETS.update(dict.fromkeys(names, Target(attempt, fraction)))
        return attempt

    return register


def lengths() -> st.SearchStrategy[int]:
    return st.sampled_from([1, 2, 3, 5, 8, 20, 60])


def mostly(usable: list[Any], odd: list[Any]) -> st.SearchStrategy[Any]:
    """One of what can be used, or now and then one of the others."""
    return st.sampled_from([None] * 7 + [odd]).flatmap(lambda some: st.sampled_from(some or usable))


def same_rows(draw: Draw, n: int, *shape: int) -> tuple[Given, Given]:
    return draw(arrays((n, *shape))), draw(arrays((n, *shape)))


def no_silent_gap(found: Any, *given: Given) -> None:
    """Finite numbers give finite numbers."""
    if all(one.is_finite for one in given):
        assert np.isfinite(found).all(), found


def fits(found: Any, *given: Given) -> bool:
    """An answer; tame input has one, whatever else is refused."""
    if isinstance(found, Refused):
        assert not all(one.is_tame for one in given), found.why
        return False
    return True


# ---------------------------------------------------------------------------------------------------- errors


@target("absolute_errors", "sided_errors")
def errors(draw: Draw) -> bool:
    y, f = same_rows(draw, draw(lengths()), *draw(st.sampled_from([(), (), (2,)])))
    found = outcome(lambda: pm.absolute_errors(y.value, f.value), ("y_true", "y_pred"), y, f)
    sides = outcome(lambda: paper.sided_errors(y.value, f.value), ("y_true", "y_pred", "one column"), y, f)
    if not fits(found, y, f):
        assert isinstance(sides, Refused)
        return False
    if found.dtype.itemsize <= 8:  # differences in long doubles go farther
        assert_allclose(found, np.abs(y.numbers - f.numbers), rtol=2e-3, atol=1e-3 * np.finfo(found.dtype).tiny)
    assert np.isfinite(found).all()
    if not isinstance(sides, Refused):
        assert sorted(np.concatenate(sides)) == sorted(found[found > 0.0])
    return True


@target("horizon_errors")
def horizons(draw: Draw) -> bool:
    n, h = draw(lengths()), draw(st.integers(1, 4))
    f = draw(arrays((n, h)))
    y = draw(arrays(draw(st.sampled_from([(n, h), (n + h - 1,)]))))
    found = outcome(lambda: horizon_errors(y.value, f.value), ("y_true", "y_pred"), y, f)
    if fits(found, y, f):
        assert found.shape == f.numbers.shape
        no_silent_gap(found, y, f)
        return True
    return False


@target("outcome_errors", "score_spread")
def outcomes(draw: Draw) -> bool:
    n = draw(lengths())
    y, score = draw(arrays((n,), ["labels"])), draw(arrays((n,), ["fractions", "labels", "subnormal", "huge"]))
    cut = draw(levels())
    found = outcome(
        lambda: paper.outcome_errors(y.value, score.value, threshold=cut), ("y_true", "y_score", "threshold"), y, score
    )
    if isinstance(found, Refused):
        return False
    spread = outcome(lambda: paper.score_spread(y.value, score.value, threshold=cut), CLASSES, y, score)
    if not isinstance(spread, Refused):
        assert not np.isinf([*spread.value.values(), *spread.upper.values()]).any()
    joined = np.concatenate(found)
    assert len(joined) == len(y.numbers)
    assert ((joined >= 0.0) & (joined <= 1.0)).all()
    return True


# ------------------------------------------------------------------------------------------------- quantiles


@target("quantile", fraction=3.0)
def quantiles(draw: Draw) -> bool:
    shape = draw(st.sampled_from([(1,), (2,), (7,), (40,), (300,), (6, 4), (2, 3, 5), (0,)]))
    a = draw(arrays(shape))
    q = draw(mostly([0.0, 0.1, 0.5, 0.9, 1.0, [0.2, 0.8], [[0.9], [0.1]], []], [-0.1, 1.1, np.nan, "a", None]))
    axis = draw(mostly([None, None, None, 0, -1, (0,)], [5, "0", 0.5]))
    beta = draw(mostly(["auto", "auto", "auto", 10.0, 1e-300, 1e300], [0.0, -1, "sharp", np.inf, None]))
    options = {"reflect": draw(st.sampled_from([False, False, True])), "keepdims": draw(st.booleans())}
    weights = draw(st.sampled_from([None, None, None, "draw"]))
    w = draw(arrays(shape, ["magnitudes", "labels", "zeros", "ties", "huge", "subnormal"])) if weights else None
    found = outcome(
        lambda: pm.quantile(a.value, q, axis, weights=None if w is None else w.value, beta=beta, **options),
        ("a ", "q ", "axis", "weights", "beta", "reflect"),
        a,
        w,
    )
    if isinstance(found, Refused):
        return False
    x = a.numbers
    if axis is None and w is None and x.size:
        if np.isfinite(x).all():
            assert np.all((found >= x.min() - abs(x.min()) * 1e-3) & (found <= x.max() + abs(x.max()) * 1e-3))
        if a.is_tame and beta == "auto" and not options["reflect"]:
            asked = np.ravel(np.asarray(q, np.float64))
            is_inner = (asked > 0.0) & (asked < 1.0)
            levels_inside, place = np.unique(asked[is_inner], return_inverse=True)
            row = np.ascontiguousarray(x, np.float64).reshape(1, -1)
            by_hand, _ = reference.automatic_rows(row, levels_inside)
            assert_allclose(np.ravel(found)[is_inner], by_hand[0][place], rtol=1e-9, atol=1e-12)
            assert_allclose(np.ravel(found)[~is_inner], np.quantile(x, asked[~is_inner]))
    no_silent_gap(found, a)
    return True


@target("grouped_quantile")
def group_quantiles(draw: Draw) -> bool:
    m = draw(lengths())
    e, by = draw(arrays((m,))), draw(categories(m))
    q = draw(mostly([0.0, 0.5, 0.9, [0.1, 0.9]], [1.1, np.nan, "a", None]))
    beta, reflect = draw(mostly(["auto", 10.0], [0.0, "sharp"])), draw(st.sampled_from([False, False, True]))
    found = outcome(
        lambda: pm.grouped_quantile(e.value, by, q, beta=beta, reflect=reflect),
        ("errors", "by ", "q ", "rows", "labels", "beta", "reflect", "a "),
        e,
        by,
    )
    if isinstance(found, Refused):
        return False
    no_silent_gap(found.quantiles, e)
    names = np.asarray(by).tolist()
    for label, rows, one in zip(found.labels.tolist(), found.rows, np.moveaxis(found.quantiles, -1, 0), strict=True):
        own = e.numbers[[name == label for name in names]]
        assert len(own) == rows
        if e.is_tame:
            assert_allclose(one, pm.quantile(own, q, beta=beta, reflect=reflect), rtol=1e-9)
    return True


@target("QuantileNeuron", "DescendingNeuron", fraction=0.5)
def neurons(draw: Draw) -> bool:
    m = draw(lengths())
    e = draw(
        arrays(
            draw(st.sampled_from([(m,), (m, 2)])),
            ["magnitudes", "normal", "ties", "constant", "zeros", "huge", "subnormal", "all magnitudes"],
        )
    )
    w = draw(st.one_of(st.none(), arrays((m,), ["magnitudes", "labels", "zeros", "subnormal"])))
    level = draw(levels())
    settings = {
        "learning_rate": draw(mostly([None, 0.05, 1e-300, 1e300], [0.0, "a", np.nan])),
        "max_iter": draw(mostly([50, 1], [0, 1.5])),
    }
    beta = draw(mostly(["auto", "auto", 10.0, 1e300], [-1.0]))
    is_trained = draw(st.booleans())
    neuron = paper.DescendingNeuron(level, beta=beta, **settings) if is_trained else pm.QuantileNeuron(level, beta=beta)
    words = (
        *("confidence_level", "errors", "sample", "beta", "learning_rate", "max_iter", "data"),
        *("Input", "array", "feature", "convert"),  # scikit-learn's words
    )
    weights = None if w is None else w.value
    found = outcome(lambda: neuron.fit(e.value, sample_weight=weights), words, e, w)
    if isinstance(found, Refused):
        assert not hasattr(neuron, "quantile_")
        return False
    learned, x = np.atleast_1d(neuron.quantile_), e.numbers.reshape(len(e.numbers), -1)
    assert np.isfinite(learned).all()
    if not is_trained:  # a descent that is cut short may end anywhere, and says so
        assert (learned >= x.min() - abs(x.min()) * 1e-3).all()
        assert (learned <= x.max() + abs(x.max()) * 1e-3).all()
    assert e.is_finite
    fractions = outcome(lambda: neuron.smoothed_coverage(e.value), words, e)
    if not isinstance(fractions, Refused):
        assert np.all((fractions >= -1e-9) & (fractions <= 1.0 + 1e-9)), fractions
    return True


@target("OnlineNeuron")
def online(draw: Draw) -> bool:
    e = draw(arrays((draw(lengths()),)))
    neuron = pm.OnlineNeuron(
        draw(levels()),
        learning_rate=draw(mostly(["adaptive", "adaptive", "decaying", "decaying", 0.1, 1e300], ["none", 0.0, None])),
        horizon=draw(mostly([1, 1, 2], [0, 1.5])),
    )
    words = ("error", "confidence_level", "learning_rate", "horizon")
    found = outcome(lambda: neuron.learn_many(e.value), words, e)
    one = draw(st.sampled_from([1.0, 0, True, np.float32(2.0), 1e308, np.nan, np.inf, None, "1", 1j, [1.0]]))
    after = outcome(lambda: clone(neuron).learn_one(one), words)
    assert isinstance(after, Refused) or math.isfinite(after.quantile_)
    if isinstance(found, Refused):
        assert math.isnan(neuron.quantile_)
        return False
    assert e.is_finite or not e.numbers.size
    if e.numbers.size:
        assert math.isfinite(neuron.quantile_)
    singly = clone(neuron)
    for error in e.numbers.tolist():
        singly.learn_one(error)
    assert_allclose(singly.quantile_, neuron.quantile_, rtol=1e-9)
    return True


@target("QuantileSketch")
def sketches(draw: Draw) -> bool:
    words = ("values", "weights", "size", "sketch", "Sketch", "q ")
    size = draw(mostly([16, 64, 2048], [0, 15.5, "a", 2**40]))
    sketch = outcome(lambda: pm.QuantileSketch(size), words)
    if isinstance(sketch, Refused):
        return False
    x = draw(arrays((draw(st.sampled_from([1, 3, 40, 200])),)))
    w = draw(st.one_of(st.none(), arrays((40,), ["magnitudes", "labels", "zeros", "huge"])))
    found = outcome(lambda: sketch.update(x.value, None if w is None else w.value), words, x, w)
    if isinstance(found, Refused):
        assert sketch.count == 0.0
        return False
    if not sketch.count:
        return False
    low, high = (x.numbers.min(), x.numbers.max()) if w is None else (-math.inf, math.inf)
    q = draw(st.sampled_from([0.0, 0.5, 1.0, [0.1, 0.9], np.nan, "a", None]))
    for one in (sketch, sketch.merge(pm.QuantileSketch(32).update([low if w is None else 0.0]))):
        learned = outcome(lambda one=one: one.quantile(q), words)
        if not isinstance(learned, Refused):
            assert np.all(np.isfinite(learned))
            assert np.all((learned >= low - abs(low) * 1e-9) & (learned <= high + abs(high) * 1e-9)), (
                learned,
                low,
                high,
            )
    sent = bytearray(sketch.to_bytes())
    place, what = draw(st.integers(0, len(sent) - 1)), draw(st.integers(1, 255))
    assert pm.QuantileSketch.from_bytes(bytes(sent)).to_bytes() == bytes(sent)
    sent[place] ^= what
    broken = outcome(lambda: pm.QuantileSketch.from_bytes(bytes(sent[: draw(st.integers(0, len(sent)))])), words)
    assert isinstance(broken, Refused)
    return True


@target("rows_needed", "CoverageWarning")
def rows(draw: Draw) -> bool:
    level, within = draw(levels()), draw(st.one_of(levels(), st.sampled_from([1e-5, 1e-12, 1e-300])))
    found = outcome(lambda: pm.rows_needed(level, within), ("confidence_level", "within"))
    if isinstance(found, Refused):
        return False
    assert isinstance(found, int)
    assert found >= 1
    return True


# ---------------------------------------------------------------------------------------------------- scores


def intervals(draw: Draw, n: int, *shape: int) -> Given:
    """Lower and upper bounds, most of them in order."""
    bounds = draw(arrays((n, *shape, 2)))
    if bounds.numbers is None or bounds.numbers.shape != (n, *shape, 2) or draw(st.sampled_from([False] * 5 + [True])):
        return bounds
    ordered = np.sort(bounds.numbers, axis=-1)
    return Given(ordered, ordered, bounds.is_tame)


@target("worst_slab_coverage_score", "excess_risk_score", "worst_subgroup", fraction=0.3)
def conditional_scores(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 5, 45]))
    X, y, bounds = draw(arrays((n, 2))), draw(arrays((n,))), intervals(draw, n)
    words = ("X", "y_true", "y_interval", "bound", "rows say nothing")
    found = [
        outcome(lambda: pm.worst_slab_coverage_score(X.value, y.value, bounds.value), words, X, y, bounds),
        outcome(lambda: pm.excess_risk_score(X.value, y.value, bounds.value, 0.9), words, X, y, bounds),
        outcome(lambda: pm.worst_subgroup(X.value, y.value, bounds.value), words, X, y, bounds),
    ]
    if not isinstance(found[0], Refused):
        assert np.isnan(found[0]) or 0.0 <= found[0] <= 1.0
        assert np.isfinite(found[1])
        assert found[1] <= 0.9**2 + 1e-9
    return not isinstance(found[0], Refused)


@target("coverage_score", "mean_width_score", "coverage_width_criterion", "interval_score", fraction=0.7)
def interval_scores(draw: Draw) -> bool:
    n = draw(lengths())
    y, bounds = draw(arrays((n,))), intervals(draw, n)
    w = draw(st.one_of(st.none(), st.none(), arrays((n,), ["magnitudes", "labels", "zeros", "subnormal", "huge"])))
    weight = None if w is None else w.value
    level = draw(levels())
    words = ("y_true", "y_interval", "bound", "sample_weight", "confidence_level", "target_range", "range")
    args = (y, bounds, *([] if w is None else [w]))
    calls: dict[str, Callable[[], Any]] = {
        "coverage": lambda: pm.coverage_score(y.value, bounds.value, sample_weight=weight),
        "width": lambda: pm.mean_width_score(bounds.value, sample_weight=weight),
        "criterion": lambda: paper.coverage_width_criterion(y.value, bounds.value, level, sample_weight=weight),
        "score": lambda: pm.interval_score(y.value, bounds.value, level, sample_weight=weight),
    }
    found = {name: outcome(call, words, *args) for name, call in calls.items()}
    for one in found.values():
        if not isinstance(one, Refused):
            no_silent_gap(one, *([bounds] if one is found["width"] else args))
    counts = w is None or (w.fits(n) and (w.numbers >= 0.0).all() and w.numbers.any())
    if y.is_tame and bounds.is_tame and counts and (bounds.numbers[:, 0] <= bounds.numbers[:, 1]).all():
        lower, upper = bounds.numbers.T
        fraction = np.ones(n) if w is None else w.numbers / w.numbers.max()
        inside = [a <= t <= b for a, t, b in zip(lower, y.numbers, upper, strict=True)]
        if w is not None and not w.is_tame and isinstance(found["coverage"], Refused):
            return False
        assert_allclose(found["coverage"], np.average(inside, weights=fraction))
        assert_allclose(found["width"], np.average(upper - lower, weights=fraction))
        if is_level(level) and 1e-6 < level < 1.0 - 1e-6:
            misses = np.maximum(lower - y.numbers, 0.0) + np.maximum(y.numbers - upper, 0.0)
            score = upper - lower + 2.0 / (1.0 - level) * misses
            assert_allclose(found["score"], np.average(score, weights=fraction), rtol=1e-6)
    return not isinstance(found["score"], Refused)


@target("crps_score")
def crps(draw: Draw) -> bool:
    n, k = draw(lengths()), draw(st.integers(1, 3))
    y, quantile_table = draw(arrays((n,))), draw(arrays((n, k)))
    asked = draw(st.one_of(st.just(np.linspace(0.1, 0.9, k)), st.just([0.5]), levels()))
    w = draw(st.one_of(st.none(), arrays((n,), ["magnitudes", "labels", "zeros"])))
    words = ("y_true", "quantiles", "levels", "sample_weight")
    found = outcome(
        lambda: pm.crps_score(y.value, quantile_table.value, asked, sample_weight=None if w is None else w.value),
        words, y, quantile_table, w,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    no_silent_gap(found, y, quantile_table)
    return True


# ------------------------------------------------------------------------------------------------ regression


class Still(RegressorMixin, BaseEstimator):
    """Learns the first target, whatever X is: what fails is not the model."""

    def fit(self, X: Any, y: Any) -> Still:
        self.first_ = np.asarray(y)[0]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        found = np.repeat(self.first_[None], X.shape[0] if hasattr(X, "shape") else len(X), axis=0)
        return (found, 1.0 + np.arange(len(found)) % 3.0) if return_std else found


class Known:
    """Predicts the row's number."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        found = np.arange(n) % 5.0
        return (found, 1.0 + found % 3.0) if return_std else found


REGRESSION = (
    *(
        "X",
        "y ",
        "y_",
        "by",
        "importance_weight",
        "confidence_level",
        "prediction",
        "q ",
        "groups",
        "estimator",
        "joint",
    ),
    *("rows", "sample", "array", "feature", "column", "min_size", "width", "guarantee", "quantiles"),
    *("n_samples", "n_splits", "Complex", "sparse", "dimension"),  # scikit-learn's words
)


def regression(draw: Draw, width: Any, *, may_train: bool = True) -> bool:
    n = draw(st.sampled_from([1, 2, 3, 8, 25, 60]))
    X, y = draw(tables(n)), draw(arrays(draw(st.sampled_from([(n,), (n,), (n,), (n, 2)]))))
    w = draw(st.one_of(st.none(), st.none(), arrays((n,), ["magnitudes", "labels", "zeros", "subnormal", "huge"])))
    grouped = isinstance(width, pm.GroupedWidth)
    by = draw(categories(n)) if grouped and (width.by is None or draw(st.integers(0, 9)) == 0) else None
    trains = may_train and draw(st.booleans())
    model = pm.IntervalRegressor(
        Still() if trains else Known(),
        width=width,
        confidence_level=draw(st.sampled_from([0.5, 0.9, 0.9, 0.999])),
        tails=draw(st.sampled_from(["symmetric", "symmetric", "equal", "sided", "lower", "upper"])),
        cv=draw(st.sampled_from([None, None, 2, 100, TimeSeriesSplit(2)])) if trains else None,
        shuffle=draw(st.sampled_from([True, True, False])),
        guarantee=draw(st.sampled_from(["marginal", "marginal", "approximate", "training-conditional"])),
        joint=draw(st.sampled_from([False, False, True])),
        y_min=draw(st.sampled_from([None, None, 0.0, -1e300])),
        random_state=0,
    )
    weight = None if w is None else w.value
    learn = (lambda: model.fit(X.value, y.value, by=by)) if trains else (
        lambda: model.calibrate(X.value, y.value, by=by, importance_weight=weight)
    )  # fmt: skip
    found = outcome(learn, REGRESSION, X, y, by, *([] if w is None else [w]))
    if isinstance(found, Refused):
        assert not hasattr(model, "_rows")
        return False
    assert y.is_finite
    is_plain = width == "constant" and model.tails == "symmetric" and model.guarantee == "marginal"
    if is_plain and not trains and y.is_tame and y.numbers.ndim == 1 and w is None:
        rank = min(n, math.ceil((n + 1) * model.confidence_level - 1e-9))
        assert_allclose(model.margin_, np.sort(np.abs(y.numbers - np.arange(n) % 5.0))[rank - 1])
    new = X if draw(st.booleans()) else draw(tables(n))
    level = draw(st.one_of(st.none(), levels()))
    bounds = outcome(lambda: model.predict_interval(new.value, level, by=by), REGRESSION, new, by)
    if not isinstance(bounds, Refused):
        assert not np.isnan(bounds).any()
        lower, upper = (bounds[..., i, :] if np.ndim(level) else bounds[..., i] for i in (0, 1))
        assert (lower <= upper).all()
        if model.tails not in {"lower", "upper"} and w is None and not np.ma.is_masked(y.value):
            assert np.isfinite(bounds).all()
    q = draw(st.sampled_from([0.1, 0.5, 0.9, [0.1, 0.9], 0.0, np.nan, "a", None]))
    quantile_table = outcome(lambda: model.predict_quantile(new.value, q, by=by), REGRESSION, new, by)
    assert isinstance(quantile_table, Refused) or not np.isnan(quantile_table).any()
    at = draw(st.sampled_from([0.0, 1e308, np.inf, np.nan, "a", None, [[1.0, 2.0]] * n]))
    fractions = outcome(lambda: model.predict_cdf(new.value, at, by=by), REGRESSION, new, by)
    assert isinstance(fractions, Refused) or ((fractions >= 0.0) & (fractions <= 1.0)).all()
    n_before, before = model.n_calibration_, np.array(model.margin_)
    more = draw(arrays((n,)))
    grown = outcome(lambda: model.update(new.value, more.value, by=by), REGRESSION, new, more, by)
    if isinstance(grown, Refused):
        assert model.n_calibration_ == n_before
        np.testing.assert_array_equal(model.margin_, before)
    return True


@target("IntervalRegressor", fraction=1.0)
def constant_width(draw: Draw) -> bool:
    return regression(draw, "constant")


@target("GroupedWidth", fraction=0.5)
def grouped_width(draw: Draw) -> bool:
    by = draw(st.sampled_from([None] * 6 + ["x0", "x0", 0, 0, 7, "nowhere", len]))
    return regression(draw, pm.GroupedWidth(by=by, min_size=draw(st.sampled_from([None, None, 1, 5]))))


@target("ScaledWidth", fraction=0.3)
def scaled_width(draw: Draw) -> bool:
    how = draw(st.sampled_from([None, "neighbours", "prediction", DummyRegressor()]))
    return regression(draw, pm.ScaledWidth(how, power=draw(st.sampled_from([0.75, 1.0, 0.0]))))


class OwnWidth(pm.Width):
    """A width as a user may write it, of one scale for all rows."""

    learns = False

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def shape(self, X: Any, prediction: np.ndarray) -> pm.IntervalShape:
        return pm.IntervalShape(scale=np.full(prediction.shape, self.scale))


@target("Width", "IntervalShape", fraction=0.2)
def own_width(draw: Draw) -> bool:
    return regression(draw, OwnWidth(draw(mostly([1.0, 0.1, 1e10], [0.0, -1.0, np.nan, np.inf]))))


@target("LocalWidth", fraction=0.3)
def local_width(draw: Draw) -> bool:
    return regression(draw, pm.LocalWidth(nearness=draw(st.sampled_from(["kernel", "kernel", "forest"]))))


@target("QuantileWidth", fraction=0.2)
def quantile_width(draw: Draw) -> bool:
    return regression(draw, pm.QuantileWidth())


@target("AutoWidth", fraction=0.2)
def auto_width(draw: Draw) -> bool:
    return regression(draw, pm.AutoWidth())


@target("EstimatorWidth", fraction=0.3)
def estimator_width(draw: Draw) -> bool:
    return regression(draw, pm.EstimatorWidth(draw(st.sampled_from(["additive", "multiplicative", "normalised"]))))


@target("IntervalCalibrator", fraction=0.5)
def calibrators(draw: Draw) -> bool:
    n, kind = (
        draw(st.sampled_from([1, 2, 8, 25, 60, 210])),
        draw(st.sampled_from(["intervals", "quantiles", "samples"])),
    )
    y, std = draw(arrays((n,))), draw(arrays((n,), ["magnitudes", "huge", "subnormal", "zeros", "ties"]))
    table = draw(arrays((n, {"intervals": 2, "quantiles": 3, "samples": 4}[kind])))
    is_in_order = table.numbers.dtype.kind == "f" and draw(st.sampled_from([True, True, True, False]))
    said: dict[str, Any] = {kind: np.sort(table.numbers, axis=1) if is_in_order else table.value}
    said |= {"levels": [0.1, 0.5, 0.9]} if kind == "quantiles" else {}
    if draw(st.integers(0, 3)) == 0:
        said = {"y_pred": np.arange(n) % 5.0, "std": std.value}
    calibrator = pm.IntervalCalibrator(
        draw(st.sampled_from([0.5, 0.9, 0.9, 0.999])),
        method=draw(st.sampled_from(["auto", "auto", "additive", "multiplicative", "normalised", "distributional"])),
        guarantee=draw(st.sampled_from(["marginal", "marginal", "approximate", "training-conditional"])),
        random_state=0,
    )
    words = ("y_true", "intervals", "quantiles", "samples", "std", "levels")
    found = outcome(lambda: calibrator.fit(y.value, **said), words, y, table, std)
    if isinstance(found, Refused):
        assert not hasattr(calibrator, "margin_")
        return False
    bounds = outcome(lambda: calibrator.predict_interval(**said, confidence_level=draw(levels())), words, table, std)
    if not isinstance(bounds, Refused):
        assert not np.isnan(bounds).any()
        assert (bounds[:, 0] <= bounds[:, 1]).all()
    return True


@target("CoverageMonitor", fraction=0.5)
def monitors(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 2, 8, 60, 250]))
    y, table = draw(arrays((n,))), draw(arrays((n, 2)))
    by = draw(st.one_of(st.none(), categories(n)))
    is_in_order = table.numbers is not None and table.numbers.ndim == 2 and draw(st.sampled_from([True, True, False]))
    intervals = np.sort(table.numbers, axis=1) if is_in_order else table.value
    words = ("y_true", "intervals", "bound", "by ", "ids", "id ", "confidence_level", "tolerance", "categories")
    watch = draw(st.sampled_from([("misses",), ("misses", "few misses"), ("misses", "bounds", "residuals", "widths")]))
    level, tolerance = draw(levels()), draw(mostly([None, None, 0.01], [-1.0, "a", np.nan]))
    monitor = outcome(lambda: pm.CoverageMonitor(level, tolerance=tolerance, watch=watch), words)
    if isinstance(monitor, Refused):
        return False
    if draw(st.booleans()):
        found = outcome(lambda: monitor.update(y.value, intervals, by=by), words, y, table, by)
    else:
        ids = draw(st.one_of(st.just(list(range(n))), categories(n)))
        found = outcome(lambda: monitor.expect(ids, intervals, by=by).observe(ids, y.value), words, y, table, by, ids)
    if isinstance(found, Refused):
        assert monitor.n_seen_ == 0
        return False
    assert monitor.n_seen_ == n
    assert 0.0 <= monitor.estimate_.lower <= monitor.estimate_.value <= monitor.estimate_.upper <= 1.0
    assert monitor.alarm_ == (monitor.evidence_.value >= monitor.evidence_.threshold)
    explained = monitor.explain()
    assert json.loads(explained.to_json())["n_rows"] == n
    assert "<html" in explained.to_html()
    return True


@target("interval_scorer", "coverage_scorer", "crps_scorer", fraction=0.3)
def scorers(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 3, 25]))
    X, y = draw(tables(n)), draw(arrays((n,)))
    model = pm.IntervalRegressor(Known()).calibrate(np.zeros((40, 2)), np.arange(40.0))
    found = [
        outcome(lambda score=score: score(model, X.value, y.value), REGRESSION, X, y)
        for score in (interval_scorer, coverage_scorer, crps_scorer)
    ]
    for one in found:
        if not isinstance(one, Refused):
            no_silent_gap(one, y)
    return not isinstance(found[0], Refused)


@target("IntervalRegressor.explain", fraction=0.1)
def explanations(draw: Draw) -> bool:
    X, row = draw(tables(25)), draw(tables(draw(st.sampled_from([1, 1, 1, 2]))))
    width = draw(st.sampled_from(["constant", pm.ScaledWidth(DummyRegressor())]))
    model = pm.IntervalRegressor(Known(), width=width, random_state=0)
    known = outcome(lambda: model.calibrate(X.value, np.arange(25.0)), REGRESSION, X)
    if isinstance(known, Refused):
        return False
    found = outcome(lambda: model.explain(row.value), (*REGRESSION, "explain"), row)
    if isinstance(found, Refused):
        return False
    assert_allclose(found.typical_width + sum(one.width for one in found.contributions), found.width)
    assert str(found).startswith("Width ")
    return True


@target("shift_weights", fraction=0.3)
def shifts(draw: Draw) -> bool:
    n = draw(st.sampled_from([3, 8, 40]))
    X, new = draw(tables(n)), draw(tables(n))
    found = outcome(lambda: pm.shift_weights(X.value, new.value, random_state=0), REGRESSION, X, new)
    if isinstance(found, Refused):
        return False
    weights = np.concatenate([found.calibration, found.new])
    assert np.isfinite(weights).all()
    assert (weights > 0.0).all()
    return True


@target("duplicate_groups")
def equal_rows(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 3, 8, 40]))
    X, y = draw(tables(n)), draw(st.one_of(st.none(), arrays((n,))))
    found = outcome(lambda: pm.duplicate_groups(X.value, None if y is None else y.value), ("X ", "y "), X, y)
    if isinstance(found, Refused):
        return False
    assert found.shape == (n,)
    assert set(found.tolist()) == set(range(found.max() + 1))
    again = outcome(lambda: pm.duplicate_groups(X.value), ("X ",), X)
    assert isinstance(again, Refused) or again.max() <= found.max()
    return True


# ------------------------------------------------------------------------------------------------- forecasts


@target("ForecastIntervals", "baseline_interval")
def cones(draw: Draw) -> bool:
    n, h = draw(st.sampled_from([1, 2, 8, 40])), draw(st.integers(1, 8))
    shape = draw(st.sampled_from([(n, h), (n, h), (2, n, h)]))
    y, f = draw(arrays(shape)), draw(arrays(shape))
    level = draw(levels())
    cone = pm.ForecastIntervals(
        level,
        tails=draw(st.sampled_from(["symmetric", "equal", "sided", "lower", "upper"])),
        joint=draw(st.booleans()),
        smooth=draw(st.booleans()),
        learning_rate=draw(st.sampled_from(["adaptive", "decaying", 0.1])),
        context=draw(st.sampled_from([None, None, "recent"])),
    )
    words = (
        "y_true",
        "y_pred",
        "windows",
        "step",
        "confidence_level",
        "joint",
        "horizon",
        "n_past",
        "errors",
        "fitted",
    )
    found = outcome(lambda: cone.fit(y.value, f.value), words, y, f)
    if isinstance(found, Refused):
        assert isinstance(outcome(lambda: cone.predict_interval(f.value), words, f), Refused)
        return False
    new, later = draw(arrays(shape)), draw(arrays(shape))
    n_past = draw(st.sampled_from([1, 5, 0, None, np.nan]))
    for _ in range(2):
        bounds = outcome(lambda: cone.predict_interval(new.value), words, new)
        if not isinstance(bounds, Refused):
            assert not np.isnan(bounds).any()
            assert (bounds[..., 0] <= bounds[..., 1]).all()
            if cone.tails not in {"lower", "upper"} and not cone.joint:
                assert np.isfinite(bounds).all()
        base = outcome(lambda: paper.baseline_interval(later.value, new.value, n_past=n_past), words, later, new)
        assert isinstance(base, Refused) or np.isfinite(base).all()
        before = np.array(cone.margin_)
        if isinstance(outcome(lambda: cone.update(later.value, new.value), words, later, new), Refused):
            np.testing.assert_array_equal(cone.margin_, before)
    return True


@target("PanelIntervals", fraction=0.3)
def panels(draw: Draw) -> bool:
    n_series, n, h = draw(st.sampled_from([1, 3, 50])), draw(st.sampled_from([1, 4, 12])), draw(st.integers(1, 3))
    rows = n_series * n * h
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = np.tile(np.repeat(np.arange(n), h), n_series)
    columns = {
        "unique_id": np.repeat(np.arange(n_series), n * h),
        "cutoff": made,
        "ds": made + np.tile(np.arange(1, h + 1), n_series * n),
        "y": rng.standard_normal((n_series, n + h))[np.repeat(np.arange(n_series), n * h), made],
        "model": rng.standard_normal(rows),
    }
    for name in draw(st.lists(st.sampled_from(sorted(columns)), max_size=2)):
        columns[name] = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))](rng, rows)
    frame = pd.DataFrame(columns)
    if draw(st.booleans()):
        frame = frame.sample(frac=draw(st.sampled_from([0.5, 1.0])), random_state=0)
    intervals = pm.PanelIntervals(
        draw(levels()),
        season_length=draw(st.sampled_from([None, 2, 7])),
        pooling=draw(st.sampled_from(["auto", "series", "panel"])),
    )
    given = Given(frame, None, False)
    found = outcome(lambda: intervals.fit(frame), ("frame", "confidence_level"), given)
    if isinstance(found, Refused):
        return False
    ahead = pd.DataFrame({"unique_id": frame["unique_id"].iloc[0], "ds": [n + h + 1], "model": [1.0]})
    bounds = outcome(lambda: intervals.predict_interval(ahead), ("frame",), Given(ahead, None, False))
    if isinstance(bounds, Refused):
        return False
    lower, upper = (bounds.iloc[:, i].to_numpy() for i in (3, 4))
    assert (lower <= upper).all()
    again = outcome(lambda: intervals.update(frame), ("frame",), given)
    assert not isinstance(again, Refused)
    return True


# -------------------------------------------------------------------------------------------- classification

CLASSES = (
    "y_true",
    "y_score",
    "label",
    "score",
    "threshold",
    "sample_weight",
    "confidence_level",
    "calibration",
    "class",
    "method",
)


@target("classification_uncertainty", fraction=0.5)
def uncertainties(draw: Draw) -> bool:
    n = draw(lengths())
    y = draw(arrays((n,), ["labels", "labels", "labels", "ties"]))
    score = draw(
        arrays(draw(st.sampled_from([(n,), (n,), (n, 2), (n, 3)])), ["fractions", "fractions", "labels", "constant"])
    )
    if score.is_finite and score.numbers.ndim == 2 and draw(st.integers(0, 3)):
        odds = 1.0 + np.abs(score.numbers)
        fractions = odds / odds.sum(axis=1, keepdims=True)
        score = Given(fractions, fractions, score.is_tame)
    w = draw(st.one_of(st.none(), st.none(), arrays((n,), ["magnitudes", "labels", "zeros", "subnormal", "huge"])))
    method = draw(
        st.sampled_from(
            ["none", "wilson", "clopper-pearson", "normal", "bootstrap", "calibrated", "prediction-powered"]
        )
    )
    other = draw(st.one_of(st.none(), st.none(), st.tuples(arrays((n,), ["labels"]), arrays((n,), ["fractions"]))))
    found = outcome(
        lambda: pm.classification_uncertainty(
            y.value,
            score.value,
            method=method,
            confidence_level=draw(levels()),
            threshold=draw(mostly([0.5, 0.5, 0.1, 1e-9], [0.0, 1.0, -0.1, np.nan, "a", None, [0.5]])),
            sample_weight=None if w is None else w.value,
            calibration=None if other is None else (other[0].value, other[1].value),
            n_resamples=200,
            random_state=0,
        ),
        CLASSES,
        y,
        score,
        *([] if w is None else [w]),
    )
    if isinstance(found, Refused):
        return False
    for name in found.value:
        value, lower, upper = (np.atleast_1d(part[name]) for part in (found.value, found.lower, found.upper))
        assert not np.isinf([value, lower, upper]).any()
        known = ~np.isnan(value)
        assert (np.isnan(lower) | (lower <= upper))[known].all(), name
    assert found.to_frame().shape[0] > 0
    assert "<" in found._repr_html_()
    json.dumps(found.to_dict())
    return True


@target("calibration_error", "calibrated_scores", "ScalingBinning", fraction=0.3)
def calibrations(draw: Draw) -> bool:
    n = draw(lengths())
    distributions = ["fractions", "fractions", "labels", "constant", "subnormal"]
    y, score, new = draw(arrays((n,), ["labels"])), draw(arrays((n,), distributions)), draw(arrays((n,), distributions))
    n_bins = draw(st.sampled_from([1, 10, 1000, 0, "a", 2.5]))
    words = (*CLASSES, "n_bins", "y ", "y_", "sample", "array", "Input", "inconsistent", "X ")
    how = draw(mostly(["debiased", "plugin", "lower"], ["none"]))
    error = outcome(lambda: pm.calibration_error(y.value, score.value, n_bins=n_bins, method=how), words, y, score)
    assert isinstance(error, Refused) or 0.0 <= error <= 1.0
    method = draw(st.sampled_from(["sigmoid", "isotonic", "temperature", "scaling-binning", "none"]))
    mapped = outcome(lambda: pm.calibrated_scores(y.value, score.value, new.value, method=method), words, y, score, new)
    assert isinstance(mapped, Refused) or ((mapped >= 0.0) & (mapped <= 1.0)).all()
    binning = outcome(
        lambda: pm.ScalingBinning(n_bins).fit(score.value, y.value).transform(new.value), words, y, score, new
    )
    assert isinstance(binning, Refused) or ((binning >= 0.0) & (binning <= 1.0)).all()
    return not isinstance(error, Refused)


@target("plot_reliability", "plot_outcomes", fraction=0.03)
def classifier_pictures(draw: Draw) -> bool:
    from matplotlib import pyplot as plt

    n = draw(lengths())
    y, score = draw(arrays((n,), ["labels"])), draw(arrays((n,), ["fractions", "labels", "constant", "subnormal"]))
    words = (*CLASSES, "sample", "array", "Input", "inconsistent")
    found = [
        outcome(lambda draw_it=draw_it: draw_it(y.value, score.value), words, y, score)
        for draw_it in (pm.plot_reliability, paper.plot_outcomes)
    ]
    plt.close("all")
    return not isinstance(found[0], Refused)


class Odds:
    """Probabilities by the row's number."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, X: Any) -> np.ndarray:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        odds = 1.0 + (np.arange(n)[:, None] + np.arange(self.k)) % 4
        return odds / odds.sum(axis=1, keepdims=True)


@target("SetClassifier", fraction=0.7)
def sets(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 2, 3, 8, 25, 60]))
    X, y = draw(tables(n)), draw(arrays((n,), ["labels", "ties"]))
    column = draw(st.sampled_from([None, None, "class", "x0", 0]))
    by = draw(categories(n)) if column is None or draw(st.integers(0, 9)) == 0 else None
    trains = draw(st.booleans())
    model = pm.SetClassifier(
        DummyClassifier(strategy="prior") if trains else Odds(2),
        confidence_level=draw(st.sampled_from([0.5, 0.9, 0.999])),
        conformity_score=draw(st.sampled_from(["lac", "aps", "raps"])),
        by=column,
        randomized=draw(st.booleans()),
        cv=draw(st.sampled_from([None, None, 2, 100])) if trains else None,
        guarantee=draw(st.sampled_from(["marginal", "marginal", "approximate", "training-conditional"])),
        random_state=0,
    )
    words = (*REGRESSION, *CLASSES, "Unknown label type")
    learn = (
        (lambda: model.fit(X.value, y.value, by=by)) if trains else (lambda: model.calibrate(X.value, y.value, by=by))
    )
    found = outcome(learn, words, X, y, by)
    if isinstance(found, Refused):
        assert not hasattr(model, "classes_")
        return False
    level = draw(st.one_of(st.none(), levels()))
    held = outcome(lambda: model.predict_set(X.value, level, by=by), words, X, by)
    if not isinstance(held, Refused):
        assert held.dtype == bool
        assert held.shape == (_num_samples(X.value), len(model.classes_))
    return True


@target("RiskController", fraction=0.7)
def decisions(draw: Draw) -> bool:
    n = draw(lengths())
    metric = draw(
        mostly(
            ["precision", "npv", "recall", "fpr", "exceedance", "shortfall", "set_size", ("npv", "precision")],
            ["accuracy", ("npv", "recall"), ()],
        )
    )
    y = draw(arrays((n,), ["labels"] if metric not in {"exceedance", "shortfall"} else ["fractions", "ties", "huge"]))
    score = draw(arrays((n, 3) if metric == "set_size" else (n,)))
    level = draw(mostly([0.5, 0.1, 0.9], [0.0, 1.0, 2, -1, "a", np.nan, (0.9, 0.8)]))
    control = pm.RiskController(
        metric,
        level,
        confidence_level=draw(levels()),
        guarantee=draw(st.sampled_from(["training-conditional", "training-conditional", "marginal"])),
        limit=draw(st.sampled_from([0.5, 0.5, None])),
        y_min=-3.0,
        y_max=draw(st.sampled_from([10.0, 10.0, None, 1e308])),
    )
    words = (
        *CLASSES,
        "'metric'",
        "'level'",
        "level",
        "guarantee",
        "metric",
        "limit",
        "y_max",
        "Targets",
        "confidence_",
    )
    found = outcome(lambda: control.fit(y.value, score.value), words, y, score)
    if isinstance(found, Refused):
        assert not hasattr(control, "threshold_")
        return False
    assert not np.isnan(control.threshold_).any()
    assert bool(control.guarantee_reason_) == bool(np.isnan(control.guaranteed_level_).any())
    answer = outcome(lambda: control.predict(score.value), words, score)
    assert np.isfinite(answer).all()
    return True


# --------------------------------------------------------------------------------------------------- measure

MEASURE = ("y_true", "y_pred", "X", "by", "groups", "time", "confidence_level", "column")


@target("measure", "Measurement", fraction=0.2)
def measurements(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 2, 3, 8, 25, 60]))
    y, f, by = draw(arrays((n,))), draw(arrays((n,))), draw(categories(n))
    X = draw(st.one_of(st.none(), tables(n)))
    level = draw(levels())
    groups, time = draw(st.one_of(st.none(), categories(n))), draw(st.one_of(st.none(), arrays((n,))))
    more = {"groups": groups, "time": None if time is None else time.value, "confidence_level": level}
    found = outcome(
        lambda: pm.measure(y.value, f.value, X=None if X is None else X.value, by=by, **more),
        MEASURE, y, f, by, X, groups, time,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    assert y.is_finite
    assert f.is_finite
    assert all(map(math.isfinite, (*found.margin, found.mean_width)))
    text = found.to_json()
    assert pm.Measurement.from_json(text) == found
    assert "<html" in found.to_html()
    place = draw(st.integers(0, len(text) - 1))
    changed = text[:place] + draw(st.sampled_from(["", "x", "0", '"', "{", "\x00"])) + text[place + 1 :]
    again = outcome(lambda: pm.Measurement.from_json(changed), ("text",))
    assert isinstance(again, Refused) or again == found
    return True


def given_intervals(draw: Draw) -> bool:
    """`measure` of what a probabilistic model says."""
    n = draw(st.sampled_from([1, 2, 8, 25, 60]))
    y, by = draw(arrays((n,))), draw(categories(n))
    kind = draw(st.sampled_from(["intervals", "quantiles", "std", "samples"]))
    values = draw(arrays((n,) if kind == "std" else (n, draw(st.sampled_from([2, 2, 3, 9])))))
    ordered = values
    if kind != "std" and values.numbers is not None and values.numbers.ndim == 2 and draw(st.booleans()):
        ordered = Given(np.sort(values.numbers, axis=1), np.sort(values.numbers, axis=1), values.is_tame)
    said = {kind: ordered.value}
    if kind == "quantiles":
        said["levels"] = np.arange(1, 4) / 4
    if kind == "std":
        said["y_pred"] = y.value
    level = draw(st.one_of(st.none(), levels()))
    time = draw(st.one_of(st.none(), st.none(), arrays((n,))))
    found = outcome(
        lambda: pm.measure(y.value, **said, by=by, time=None if time is None else time.value, confidence_level=level),
        (*MEASURE, "intervals", "quantiles", "levels", "std", "samples", "time"), y, ordered, by, time,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    assert 0.0 <= found.coverage <= 1.0
    for one in found.scores.values():
        assert np.isnan(one.lower) or one.lower <= one.upper
    assert json.loads(found.to_json())["headline"]["claim"]
    assert "<html" in found.to_html()
    return True


def test_given_intervals_are_measured_or_refused():
    fuzzed("measure of given intervals", given_intervals, 0.5)


@target("compare", fraction=0.3)
def comparisons(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 9, 10, 25, 60]))
    shape = draw(st.sampled_from([(n,), (n,), (n, 2), (n, 3)]))
    y, a, b = draw(arrays((n,))), draw(arrays(shape)), draw(arrays(shape))
    by, X = draw(categories(n)), draw(st.one_of(st.none(), tables(n)))
    time = draw(st.one_of(st.none(), arrays((n,))))
    found = outcome(
        lambda: pm.compare(
            y.value, {"a": a.value, "b": b.value}, X=None if X is None else X.value, by=by,
            time=None if time is None else time.value, confidence_level=draw(levels()),
        ),
        (*MEASURE, "models", "'a'", "'b'", "a ", "b ", "time", "intervals", "targets"), y, a, b, by, X, time,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    for one in found.contrasts:
        assert one.lower <= one.upper
        assert 0.0 <= one.p_value <= 1.0
        assert one.better in {"", "a", "b"}
    assert json.loads(found.to_json())["headline"]["claim"]
    assert "<html" in found.to_html()
    return True


@target("backtest", fraction=0.3)
def backtests(draw: Draw) -> bool:
    n, h = draw(st.sampled_from([1, 4, 12, 40])), draw(st.integers(1, 4))
    y, f = draw(arrays((n, h))), draw(arrays((n, h)))
    found = outcome(
        lambda: pm.backtest(y.value, f.value, confidence_level=draw(levels()), stride=draw(mostly([1, 2.0], [0, "a"]))),
        ("y_true", "y_pred", "window", "confidence_level", "stride", "errors"), y, f,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    assert len(found.margin) == h
    assert json.loads(found.to_json())["headline"]["claim"]
    assert "<html" in found.to_html()
    return True


@target("scorecard", fraction=0.3)
def scorecards(draw: Draw) -> bool:
    n = draw(st.sampled_from([1, 2, 8, 60]))
    y, score = (
        draw(arrays((n,), ["labels", "labels", "ties"])),
        draw(arrays((n,), ["fractions", "fractions", "constant"])),
    )
    by = draw(categories(n))
    found = outcome(
        lambda: pm.scorecard(y.value, score.value, by=by, confidence_level=draw(levels()), n_resamples=200),
        (*CLASSES, "by", "column"), y, score, by,
    )  # fmt: skip
    if isinstance(found, Refused):
        return False
    assert found.advice
    assert json.loads(found.to_json())["headline"]["claim"]
    assert "<html" in found.to_html()
    return True


@target("WhiteTest", "white_test", "power_spectral_entropy", fraction=0.5)
def spreads(draw: Draw) -> bool:
    n = draw(lengths())
    e, X = draw(arrays((n,))), draw(arrays((n, 2)))
    entropy = outcome(lambda: paper.power_spectral_entropy(e.value, squared=draw(st.booleans())), ("errors",), e)
    assert isinstance(entropy, Refused) or 0.0 <= entropy <= 1.0 + 1e-9
    how = draw(st.sampled_from(["errors", "linear", "none"]))
    found = outcome(
        lambda: paper.white_test(e.value, X.value, residuals=how), ("errors", "X ", "residuals", "White"), e, X
    )
    if isinstance(found, Refused):
        return False
    assert math.isfinite(found.statistic)
    assert 0.0 <= found.p_value <= 1.0
    return True


@target("show_versions")
def versions(draw: Draw) -> bool:
    """It takes nothing."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found = outcome(lambda: pm.show_versions(*draw(mostly([()], [(1,), ("a",)]))), ("show_versions",))
    return not isinstance(found, Refused) and printed.getvalue().startswith("pimeter ")


# --------------------------------------------------------------------------------------------------- the runs


def test_every_public_name_is_tried():
    elsewhere = {"horizon_errors", "interval_scorer", "coverage_scorer", "crps_scorer", "IntervalRegressor.explain"}
    assert sorted(TARGETS) == sorted([*pm.__all__, *paper.__all__, *elsewhere])


def groups() -> dict[str, Target]:
    """Names that are tried together, joined."""
    joined: dict[Callable[..., bool], list[str]] = {}
    for name, one in TARGETS.items():
        joined.setdefault(one.attempt, []).append(name)
    return {", ".join(names): TARGETS[names[0]] for names in joined.values()}


GROUPS = groups()


@pytest.mark.parametrize("names", GROUPS)
def test_right_answer_or_clean_error(names):
    fuzzed(names, *GROUPS[names])
