"""README and docs: code that runs as it stands, links, words that people search for, and what a page has to show."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import pimeter

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
WIDEST = 80  # characters of code beside two side bars, as docs/ruff.toml says; README has none


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


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_code_is_no_wider_than_the_column(page):
    blocks = re.findall(r"^```(?:python|py|sh|yaml)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert not [line for block in blocks for line in block.splitlines() if len(line) > WIDEST]
    assert tomllib.loads((DOCS / "ruff.toml").read_text())["line-length"] == WIDEST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_shows_an_output_or_a_picture(page):
    assert re.search(r"^```text|!\[", page.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_first_paragraph_says_what_it_is(page):
    first = re.search(r"^# .*?\n\n(.*?)\n\n", page.read_text(), flags=re.DOTALL | re.MULTILINE)[1]
    for word in ("conformal prediction", "split conformal", "CV+", "CQR", "Mondrian"):
        assert word in " ".join(first.split()), word


def test_every_public_name_has_a_page_of_its_own():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text(), flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(pimeter.__all__) <= set(listed)


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check_site():
    return script("check_site")


def test_words_that_people_search_for_are_in_the_pages(check_site):
    """`make docs` looks for them in the index of the search itself."""
    text = " ".join(page.read_text().lower() for page in PAGES[1:])
    assert not [word for word in check_site.SEARCHED if word not in text]


def test_links_of_a_built_site_are_followed(check_site, tmp_path):
    (tmp_path / "one.html").write_text(
        '<a id="here" href="two.html#there">x</a><a href="https://elsewhere.org/no">x</a>'
    )
    (tmp_path / "two.html").write_text('<h1 id="there"></h1><img src="plot.png"><a href="one.html#gone">x</a>')
    assert list(check_site.broken_links(tmp_path)) == [
        "two.html: plot.png is not there",
        "two.html: one.html#gone names no place of that page",
    ]


def test_search_of_a_built_site_is_asked(check_site, tmp_path):
    index = {"terms": {"conform": [0], "panel": 1}, "titleterms": {"mondrian": 2}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    words = ("conformal", "panel", "mondrian", "keras")
    assert check_site.unknown_words(tmp_path, words) == ["keras"]


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_site_lists_all_versions_and_leads_to_the_newest(tmp_path, monkeypatch):
    versions = script("versions")
    monkeypatch.setattr(versions, "git", lambda *_: "v0.9.1\nv0.10.0\nnightly\nv1.0.0rc1\n")
    assert versions.tagged() == ["0.10.0", "0.9.1"]
    (tmp_path / "0.10.0").mkdir()
    (tmp_path / "0.10.0" / "llms.txt").write_text("- [One](_sources/docs/one.md.txt)")
    versions.write_lists(tmp_path, ["dev", *versions.tagged()], "/pimeter")
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [one["url"] for one in listed] == ["/pimeter/dev/", "/pimeter/0.10.0/", "/pimeter/0.9.1/"]
    assert "url=0.10.0/docs/index.html" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "llms.txt").read_text() == "- [One](0.10.0/_sources/docs/one.md.txt)"


def test_list_for_language_models_leads_to_what_can_be_read(tmp_path):
    files = script("site_files")
    contents = {
        "docs/guide": ["docs/one"],
        "docs/api": ["docs/api/x"],
        "docs/gallery/index": ["docs/gallery/models/index"],
    }
    contents["docs/gallery/models/index"] = ["docs/gallery/models/function"]
    titles = {page: SimpleNamespace(astext=lambda page=page: page) for pages in contents.values() for page in pages}
    for source in ("docs/one.md.txt", "docs/gallery/models/function.rst.txt"):
        (tmp_path / "_sources" / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "_sources" / source).touch()
    env = SimpleNamespace(toctree_includes=contents, titles=titles)
    app = SimpleNamespace(outdir=tmp_path, env=env, builder=SimpleNamespace(format="html"))
    files.write_site_files(app, None)
    text = (tmp_path / "llms.txt").read_text()
    assert "conformal prediction" in text
    links = re.findall(r"\]\((.*?)\)", text)
    assert links == ["_sources/docs/one.md.txt", "docs/api/x.html", "_sources/docs/gallery/models/function.rst.txt"]
