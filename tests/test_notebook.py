"""The notebook runs as it stands, and prints what is stored in it."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"


def printed(notebook) -> list[str]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(one.get("text", "") for one in cell.outputs if one.get("name") == "stdout") for cell in cells]


def test_outputs_are_small():
    assert NOTEBOOK.stat().st_size < 100_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries; a cell that fails raises
def test_runs_and_prints_what_it_shows():
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    shown = printed(stored)
    assert any(shown)
    client.NotebookClient(stored, timeout=120).execute()
    assert printed(stored) == shown
