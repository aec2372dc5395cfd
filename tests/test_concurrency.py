"""Threads, processes, Ctrl-C and full disks: what is fitted stays as it was, and files appear whole or not at all."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression

import pimeter as pm
from pimeter import cli

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.standard_normal(240) * (1.0 + X[:, 0] ** 2)
SCALED = pm.ScaledWidth(LinearRegression())
LABELS = (Y > 0.0).astype(int)


@pytest.fixture(scope="module")
def uses():
    """What many threads do with the same fitted objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)
        regressors = [
            pm.IntervalRegressor(LinearRegression(), width=width, random_state=0, cv=cv).fit(X, Y)
            for width, cv in (("constant", None), ("constant", 3), (SCALED, None), (pm.LocalWidth("kernel"), None))
        ]
        sets = pm.SetClassifier(LogisticRegression(), conformity_score="aps", randomized=True, random_state=0).fit(
            X, LABELS
        )
        cone = pm.ForecastIntervals(0.5).fit(Y.reshape(60, 4), np.zeros((60, 4)))
    neuron = pm.QuantileNeuron().fit(np.abs(X))
    measured = pm.measure(Y, np.zeros(240), X=X)
    return [
        *[lambda model=model: model.predict_interval(X, [0.5, 0.9]) for model in regressors],
        lambda: regressors[0].predict_quantile(X, [0.1, 0.9]),
        lambda: sets.predict_set(X),
        lambda: cone.predict_interval(np.zeros((3, 4))),
        lambda: neuron.smoothed_coverage(np.abs(X)),
        lambda: np.array(measured.to_html()),
        lambda: pm.quantile(X, [0.1, 0.9], axis=0),
        lambda: np.array(pm.measure(Y, np.zeros(240)).to_json()),
    ]


def test_eight_threads_on_the_same_objects(uses):
    alone = [use() for use in uses]
    with ThreadPoolExecutor(8) as pool:
        together = [[pool.submit(use) for use in uses] for _ in range(8)]
    for round_ in together:
        for future, expected in zip(round_, alone, strict=True):
            assert_array_equal(future.result(), expected)


def test_threads_that_read_a_sketch_which_is_not_merged_yet():
    """Reading merges what waits; a thread that came in between found the sketch empty, or counted twice."""
    values = RNG.standard_normal(6000)
    expected = pm.QuantileSketch().update(values).quantile(0.9)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            sketch = pm.QuantileSketch().update(values)
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda _, sketch=sketch: (float(sketch.quantile(0.9)), sketch.count), range(16)))
            assert set(found) == {(float(expected), 6000.0)}
    finally:
        sys.setswitchinterval(before)


def test_a_forked_child_uses_what_its_parent_fitted(uses):
    expected = [use() for use in uses]
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = all(np.array_equal(use(), one) for use, one in zip(uses, expected, strict=True))
        finally:
            os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


class Interrupted:
    """A model at whose nth answer the user presses Ctrl-C."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, X):
        self.n -= 1
        if self.n == 0:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        return np.tile([0.4, 0.6], (len(X), 1)) if X.shape[1] == 2 else np.zeros(len(X))


@pytest.mark.parametrize("how", ["calibrate", "fit", "update"])
@pytest.mark.parametrize("width", ["constant", SCALED])
def test_interrupted_calibration_leaves_the_last_one(how, width):
    model = pm.IntervalRegressor(Interrupted(-1), width=width, random_state=0).calibrate(X, Y)
    before = model.predict_interval(X)
    model.estimator.n = 2 if width is SCALED and how != "update" else 1
    with pytest.raises(KeyboardInterrupt):
        getattr(model, how)(X[:100], 2.0 * Y[:100])
    assert_array_equal(model.predict_interval(X), before)
    assert model.n_calibration_ == (240 if width == "constant" else 120)
    model.calibrate(X, 2.0 * Y)
    assert_array_equal(model.predict_interval(X)[:, 1], 2.0 * before[:, 1])


def test_interrupted_sets_leave_the_last_ones():
    model = pm.SetClassifier(Interrupted(-1), confidence_level=0.8).calibrate(X[:, :2], LABELS)
    before = model.limit_
    model.estimator.n = 2
    with pytest.raises(KeyboardInterrupt):
        model.calibrate(X[:50, :2], 1 - LABELS[:50])
    assert model.limit_ == before


def test_interrupted_quantile_answers_the_next_time():
    """Ctrl-C while threads of the library are at work."""
    x = RNG.standard_normal((64, 20_000))
    expected = pm.quantile(x, [0.1, 0.9], axis=1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (0.001, 0.004, 0.01):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                pm.quantile(x, [0.1, 0.9], axis=1)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            assert_array_equal(pm.quantile(x, [0.1, 0.9], axis=1), expected)
    finally:
        signal.signal(signal.SIGALRM, before)


@contextmanager
def full_disk(room):
    """Files end after so many bytes, with an OSError as on a disk without space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_report_on_a_full_disk_leaves_the_old_one(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("old")
    result = pm.measure(Y, np.zeros(240))
    with full_disk(10_000), pytest.raises(ValueError, match=r"' cannot be written: File too large"):
        result.to_html(page)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.read_text() == "old"


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_command_line_on_a_full_disk(out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("y,y_hat\n" + "".join(f"{y},{x}\n" for y, x in RNG.standard_normal((900, 2))))
    monkeypatch.setattr(sys, "argv", ["pimeter", "interval", "in.csv", "--apply", "in.csv", "--out", out])
    with full_disk(10_000), pytest.raises(SystemExit) as left:
        cli.run()
    said, complained = capsys.readouterr()
    assert (left.value.code, said) == (2, "")
    assert f"{out}' cannot be written" in complained
    assert complained.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_interrupted_command_line_says_nothing_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "pimeter", "measure", "-", "--out", "report.html"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)
    process.stdin.write("y,y_hat\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    # Until it reads. Before that tempfile leaves a file of another name for a moment, to see whether it may.
    while not any("pimeter-" in path.name for path in tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "")
    assert [*tmp_path.iterdir()] == []
