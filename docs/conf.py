"""How `make docs` builds the pages: from the root of the repository, so that links to results lead to pages, too."""

import re

import pimeter

project = "pimeter"
author = "pimeter developers"
copyright = author  # noqa: A001
release = version = pimeter.__version__
root_doc = "docs/index"
include_patterns = ["docs/*", "benchmarks/results/*", "experiments/results/*"]
exclude_patterns = ["docs/_build"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"pimeter {release}"
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
suppress_warnings = ["ref.python"]  # names of attributes are no links, and several classes have the same
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstrings say it in words


def _is_skipped(_app, _what, name, _object, skip, _options):
    """Methods that scikit-learn adds, whose docstrings link to its own pages."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def _with_underscores(_app, _what, _name, _object, _options, lines):
    """A learned value ends in an underscore, which is no link."""
    lines[:] = [re.sub(r"_(?=[,:])", r"\\_", line) if line.startswith(":ivar") else line for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _with_underscores, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", _is_skipped)
