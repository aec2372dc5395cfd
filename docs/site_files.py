"""What a built site has beside its pages: a way in at its root, and llms.txt for language models."""

from __future__ import annotations

from pathlib import Path

HOME = "docs/index.html"
ABOUT = """# pimeter

> Prediction intervals with a coverage guarantee for any trained model, by conformal prediction (split conformal, \
CV+, CQR, normalised and Mondrian), and a meter for anyone's intervals, forecasts and classifiers. In Python: \
`import pimeter as pm`.

Most of the links lead to Markdown or reStructuredText.
"""
SECTIONS = {
    "Guide": "docs/guide",
    "API": "docs/api",
    "Examples": "docs/gallery/index",
    "Results": "docs/benchmarks",
}


def write_site_files(app, failed) -> None:
    """Called by Sphinx when all pages are written."""
    if failed or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    (folder / "index.html").write_text(
        f'<meta http-equiv="refresh" content="0; url={HOME}"><a href="{HOME}">pimeter</a>\n'
    )
    (folder / "llms.txt").write_text(
        "\n".join([ABOUT, *_lists(app.env, folder)])
    )


def _lists(env, folder: Path):
    """A list of links for each section, in the order of its tables of contents."""
    for name, page in SECTIONS.items():
        yield f"## {name}\n"
        for one in _pages(env, page):
            yield f"- [{env.titles[one].astext()}]({_readable(one, folder)})"
        yield ""


def _pages(env, page: str):
    """Those below it, without lists of others."""
    for one in env.toctree_includes.get(page, []):
        yield from _pages(env, one) if one in env.toctree_includes else [one]


def _readable(page: str, folder: Path) -> str:
    """Its source, or, of a public name, the page itself: the source says only which docstring to show."""
    if page.startswith("docs/api/"):
        return f"{page}.html"
    (source,) = (folder / "_sources").glob(f"{page}.*.txt")
    return source.relative_to(folder).as_posix()
