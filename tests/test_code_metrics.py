"""What `benchmarks/code_metrics.py` counts stays as small as it is."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def metrics(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("code_metrics")


def test_a_call_is_followed_through_few_files_and_types(metrics):
    files, types = metrics.path_of_a_call()
    assert "regression/regressor.py" in files
    assert len([file for file in files if not metrics.is_leaf(file)]) <= 7, sorted(files)
    assert len(types) <= 6, sorted(types)


def test_no_function_is_complex(metrics):
    found = metrics.complexities()
    assert found[0][0] >= found[-1][0]
    assert not [one for one in found if one[0] > 12]
