"""How `make docs` builds the pages: from the root of the repository, so that links to results lead to pages, too."""

import ast
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pimeter

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from site_files import write_site_files

from experiments import status
from experiments.__main__ import EXPERIMENTS, RESULTS

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "gallery"
# Where the site of all versions lies, such as "/pimeter": versions.py says it. A single version has no list of others.
VERSIONS = os.environ.get("PIMETER_SITE", "")

project = "pimeter"
author = "pimeter developers"
copyright = author  # noqa: A001
release = version = pimeter.__version__
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/results/*",
    "experiments/results/*",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [
    "docs/_build",
    "docs/_static",
    "docs/_templates",
    "docs/gallery/*.py",
    "docs/gallery/*.ipynb",
]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = [
    str(ROOT / "docs" / "_templates")
]  # Sphinx looks in its source folder, not beside this file
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]
suppress_warnings = [
    "ref.python",
    "config.cache",
]  # attributes of several classes have the same name; functions below
napoleon_google_docstring = False
napoleon_use_ivar = True
default_role = "py:obj"  # `fit` in a docstring leads to the page of that name
autodoc_typehints = "none"  # the docstrings say it in words
toc_object_entries_show_parents = "hide"
copybutton_exclude = ".linenos, .gp, .go"  # neither prompts nor what is printed

html_theme = "pydata_sphinx_theme"
html_title = f"pimeter {release}"
html_static_path = ["_static"]
html_css_files = ["pimeter.css"]
html_show_sourcelink = False
html_sidebars = {"docs/index": [], "docs/trust": [], "CHANGELOG": []}
html_theme_options = {
    "logo": {"text": "pimeter"},
    "header_links_before_dropdown": 6,
    "navbar_end": [
        "version-switcher" if VERSIONS else "version",
        "theme-switcher",
    ],
    "switcher": {
        "json_url": f"{VERSIONS}/versions.json",
        "version_match": os.environ.get("PIMETER_VERSION", release),
    },
    "check_switcher": False,  # it is not there yet
    "show_prev_next": False,
    "show_version_warning_banner": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def _runs(example: Path) -> bool:
    """Whether all that it imports is installed; else it is shown as a recipe."""
    nodes = ast.walk(ast.parse(example.read_text()))
    names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes
             if isinstance(node, ast.Import | ast.ImportFrom)}  # fmt: skip
    return all(find_spec(name.partition(".")[0]) for name in names)


sphinx_gallery_conf = {
    "examples_dirs": ["examples/gallery"],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": "|".join(
        f"/{path.name}$"
        for path in sorted(EXAMPLES.rglob("*.py"))
        if _runs(path)
    ),
    "example_extensions": {".py"},
    "subsection_order": [
        f"examples/gallery/{name}"
        for name in ("models", "asked", "widths", "more")
    ],
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.rst",
    "doc_module": ("pimeter",),
    "backreferences_dir": "docs/gallery/backreferences",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "capture_repr": (),
    "matplotlib_animations": False,
    "default_thumb_file": str(ROOT / "docs" / "plots" / "intervals.png"),
}


def _is_skipped(_app, _what, name, member, skip, _options):
    """Methods that scikit-learn adds, whose docstrings link to its own pages."""
    function = getattr(member, "fget", None) or member
    module = getattr(function, "__module__", None) or "pimeter"
    return (
        skip
        or (name.startswith("set_") and name.endswith("_request"))
        or not module.startswith("pimeter")
    )


def _with_underscores(_app, _what, _name, _object, _options, lines):
    """A learned value ends in an underscore, which is no link."""
    lines[:] = [
        re.sub(r"_(?=[,:])", r"\\_", line) if line.startswith(":ivar") else line
        for line in lines
    ]


def _with_gallery(_app, _page, source):
    """A link to an example's source leads to its page of the gallery here."""
    text = re.sub(
        r"\]\((?:\.\./)?examples/gallery/(\w+/\w+)\.py\)",
        r"](/docs/gallery/\1.rst)",
        source[0],
    )
    source[0] = text.replace("](../examples/gallery)", "](gallery/index.rst)")


def _find_states(app):
    """Which results are still what the code gives."""
    app.states = status.of_all(EXPERIMENTS.values(), RESULTS)


def _with_states(app, page, source):
    """A page that quotes numbers of a result which is not current says so at its end."""
    path = ROOT / f"{page}.md"
    if path.exists():
        source[0] += f"\n\n{status.note(app.states, path)}\n"


def setup(app):
    app.connect("builder-inited", _find_states)
    app.connect("source-read", _with_states)
    app.connect("source-read", _with_gallery)
    app.connect(
        "autodoc-process-docstring", _with_underscores, priority=900
    )  # after napoleon
    app.connect("autodoc-skip-member", _is_skipped)
    app.connect("build-finished", write_site_files)
