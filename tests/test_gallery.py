"""The gallery's examples run as they stand, and there is one for each kind of model and for each question."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

from tests.test_prediction import KINDS

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("*.py"))
EXAMPLE_OF = {
    "regressor": "regressor",
    "pipeline": "pipeline",
    "one column": "one_column",
    "partial least squares": "one_column",
    "function": "function",
    "object that predicts": "with_predict",
    "object that predicts one column": "one_column",
    "object that fits and predicts": "with_predict",
    "Keras": "with_keras",
    "torch": "with_torch",
    "torch, exported": "with_torch_export",
    "XGBoost booster": "with_xgboost",
    "LightGBM booster": "with_lightgbm",
    "CatBoost": "with_catboost",
    "ONNX Runtime": "with_onnx",
    "statsmodels": "with_statsmodels",
    "statsmodels, formula": "with_formula",
}


def imported(example: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(example.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs_prints_and_draws(example, monkeypatch, capsys):
    for name in sorted(imported(example)):
        root = name.partition(".")[0]
        pytest.importorskip(root, reason=f"no peer: {root} is not installed")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    plt.switch_backend("agg")
    try:
        runpy.run_path(str(example))
        for number in shown:
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
    assert shown
    assert capsys.readouterr().out or example.stem == "reliability"


def test_every_kind_of_model_has_an_example():
    assert set(EXAMPLE_OF) == set(KINDS)
    assert set(EXAMPLE_OF.values()) == {path.stem for path in (GALLERY / "models").glob("*.py")}


def test_every_question_leads_to_its_example():
    text = (ROOT / "docs" / "asked.md").read_text()
    questions = re.findall(r"^\*\*(.*?)\*\*", text, flags=re.MULTILINE)
    linked = [re.fullmatch(r"\[.*\]\(\.\./examples/gallery/asked/(\w+)\.py\)", one) for one in questions]
    assert all(linked), questions
    assert sorted(one[1] for one in linked) == sorted(path.stem for path in (GALLERY / "asked").glob("*.py"))
    assert len(EXAMPLES) >= 20
