"""How to install what only some of the library needs."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command for one of the extras of pyproject.toml, from a package index or in a checkout.

    Examples
    --------
    >>> from pimeter.extras import how_to_install
    >>> how_to_install("app")
    "pip install 'pimeter[app]', or in a checkout pip install '.[app]'"
    """
    return f"pip install 'pimeter[{extra}]', or in a checkout pip install '.[{extra}]'"
