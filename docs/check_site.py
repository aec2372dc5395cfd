"""Look through a built site for links that lead nowhere and words that its search lacks: check_site.py FOLDER.

Nothing is fetched: links to other sites are left alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SEARCHED = (
    "conformal",
    "keras",
    "monitor",
    "panel",
    "mlflow",
    "cqr",
    "mondrian",
)


class Page(HTMLParser):
    """The links of a page, and the places within it that links may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(
        self, _tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        named = {name: value for name, value in attrs if value}
        self.places |= {named[name] for name in ("id", "name") if name in named}
        self.links += [named[name] for name in ("href", "src") if name in named]


page = cache(Page)


def broken_links(folder: Path) -> Iterator[str]:
    """Each link of each page to a file or a place that is not there."""
    for path in sorted(folder.rglob("*.html")):
        if "_static" in path.relative_to(folder).parts:
            continue
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve()
                if parts.path
                else path
            )
            if not target.exists():
                yield f"{path.relative_to(folder)}: {link} is not there"
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in page(target).places
            ):
                yield f"{path.relative_to(folder)}: {link} names no place of that page"


def unknown_words(folder: Path, words: tuple[str, ...] = SEARCHED) -> list[str]:
    """Words that the index of the site's search lacks, which keeps them without their endings."""
    text = (folder / "searchindex.js").read_text()
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    known = {*index["terms"], *index["titleterms"]}
    return [
        word for word in words if known.isdisjoint({word, word[:-1], word[:-2]})
    ]


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    faults = [
        *broken_links(folder),
        *(f"the search finds no {word!r}" for word in unknown_words(folder)),
    ]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
