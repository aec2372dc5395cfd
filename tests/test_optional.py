"""Without an optional package: what does not need it gives the same numbers, and what does says what to install."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pimeter as pm
from pimeter.files import lazy_frame

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "dask", "distributed", "fastexcel", "jinja2", "lightgbm", "matplotlib", "pandas", "polars", "pyarrow", "rich",
    "statsmodels", "torch", "triton", "typer", "xgboost",
)  # fmt: skip
WORK = """
import warnings
import numpy as np
import pimeter as pm
from sklearn.linear_model import LogisticRegression, Ridge

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 3))
y = X @ [1.0, 2.0, 3.0] + rng.normal(scale=0.1 + X[:, 0])
model = pm.IntervalRegressor(Ridge(), width="scaled", random_state=0).fit(X, y)
sets = pm.SetClassifier(LogisticRegression(), confidence_level=0.8, random_state=0).fit(X, y > 3)
windows = np.lib.stride_tricks.sliding_window_view(np.cumsum(y - y.mean()), 4)
cone = pm.ForecastIntervals(0.8).fit(windows[:, 1:], np.repeat(windows[:, :1], 3, axis=1))
rates = pm.classification_uncertainty(y > 3, np.clip(X[:, 2], 0.01, 0.99), random_state=0)
sketch = pm.QuantileSketch().update(y)
measured = pm.measure(y, model.predict(X), X=X, by=(X[:, 1] > 0.5).astype(int))
assert pm.Measurement.from_json(measured.to_json()).margin == measured.margin
numbers = [
    *pm.quantile(y, [0.05, 0.5, 0.95]), pm.QuantileNeuron().fit(y).quantile_,
    pm.OnlineNeuron().learn_many(np.abs(y)).quantile_, *model.predict_interval(X[:3]).ravel(),
    float(sets.predict_set(X).sum()), *cone.margin_.ravel(), *rates.lower.values(), float(sketch.quantile(0.9)),
    *measured.margin, measured.coverage,
]
print(*map(float, numbers))
"""


class Missing:
    """Finds no module of some packages."""

    def __init__(self, *packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)  # noqa: EM102, TRY003 (as Python says it)


def numbers(*blocked: str) -> np.ndarray:
    code = f"import sys\n{inspect.getsource(Missing)}\nsys.meta_path.insert(0, Missing(*{blocked!r}))\n{WORK}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.split(), float)


def test_core_gives_the_same_numbers_without_any():
    assert_allclose(numbers(*PACKAGES), numbers(), rtol=1e-9)


def test_lowest_versions_are_the_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bounds = {
        re.sub(r"\[.*\]", "", need).replace(">=", "==")
        for need in [
            *project["dependencies"],
            *(need for name in ("plot", "app", "dask", "excel") for need in extras[name]),
        ]
        if ">=" in need
    }
    tested = set((ROOT / "constraints-lowest.txt").read_text().splitlines()[1:])
    assert bounds <= tested
    assert tested - bounds <= {need.replace(">=", "==") for need in extras["dev"]}


X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])
NEEDS = {
    "dask": (lambda: lazy_frame("rows.csv", ["y"]), r"pimeter\[dask\]"),
    "matplotlib": (lambda: pm.plot_reliability(Y, np.linspace(0.1, 0.9, 6)), r"pimeter\[plot\]"),
    "jinja2": (lambda: pm.measure(Y, Y + 1.0).to_html(), r"pimeter\[app\]"),
    "pandas": (lambda: pm.measure(Y, Y + 1.0).to_frame(), "pip install pandas"),
    "pandas, intervals": (
        lambda: pm.IntervalRegressor(lambda X: X[:, 0]).calibrate(X, X[:, 1]).predict_interval(X, as_frame=True),
        "pip install pandas",
    ),
    "pandas, sets": (
        lambda: pm.SetClassifier(lambda X: np.full((len(X), 2), 0.5)).calibrate(X, Y).predict_set(X, as_frame=True),
        "pip install pandas",
    ),
    "pandas, rates": (lambda: pm.classification_uncertainty(Y, Y * 0.5 + 0.2).to_frame(), "pip install pandas"),
}


@pytest.mark.filterwarnings("ignore::pimeter.CoverageWarning")
@pytest.mark.parametrize("package", NEEDS)
def test_what_needs_it_says_what_to_install(package, monkeypatch):
    call, remedy = NEEDS[package]
    name = package.partition(",")[0]
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing(name), *sys.meta_path])
    with pytest.raises(ImportError, match=remedy):
        call()
