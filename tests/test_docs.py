"""The code in README and docs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs_and_prints_what_the_page_shows(page, capsys):
    text = page.read_text()
    blocks, shown = (
        re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE) for kind in ("python", "text")
    )
    assert blocks
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": page.stem})
    printed = capsys.readouterr().out
    assert all(block in printed for block in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_exist(page):
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page.read_text()):
        assert f"def {name}(" in tests, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
