"""Callbacks of scikit-learn follow `fit`, where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import pimeter as pm

X = np.random.default_rng(0).uniform(size=(200, 2))
Y = X[:, 0] + np.random.default_rng(1).normal(size=200)


class Listening:
    """Remembers what it hears."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.heard.append(f"end {context.task_name}")


needs_callbacks = pytest.mark.skipif(
    not hasattr(pm.IntervalRegressor, "set_callbacks"), reason="no peer: scikit-learn has no callbacks before 1.9"
)


@needs_callbacks
def test_callbacks_hear_of_each_model():
    listening = Listening()
    model = clone(pm.IntervalRegressor(Ridge(), cv=3, random_state=0).set_callbacks(listening)).fit(X, Y)
    each = ["begin model", "end model"]
    assert listening.heard == ["setup", "begin fit", *each, *each, *each, "end fit", "teardown"]
    assert not hasattr(model, "_callback_fit_ctx")
    plain = pm.IntervalRegressor(Ridge(), cv=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict_interval(X), plain.predict_interval(X))


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bars(n_jobs, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    model = pm.IntervalRegressor(Ridge(), cv=4, n_jobs=n_jobs, random_state=0).set_callbacks(ProgressBar()).fit(X, Y)
    assert "IntervalRegressor" in capsys.readouterr().out
    assert len(model.estimator_) == 4
