"""Numbers of README and docs that come from stored results: each is marked, so that it can be compared and renewed.

A mark is a comment right after the number, or after its unit, which no reader sees:

    The error is .867<!-- result: quantile_accuracy_sets "ten, .*" "against numpy's default" --> of numpy's.
    It takes 4.2 s<!-- result: report_speed max ".*" "time with 1,000 rows" -->.
    They were 7 million<!-- result: simulate "# simulated calibrations" x1e-6 -->.

It names a result, `benchmarks/results/NAME.md` or `experiments/results/NAME.md` with its `tables/NAME.*.csv`. What
follows are cells by which a row of a table is known, and the column, each by its
text or as a regular expression; or a piece of text with # for the number, and ... for other words. Of a cell its first
number counts. With `min` or `max` there may be several. `x100` at the end multiplies. The number has to be the stored
one, rounded to as many digits as it has. A line `<!-- result table: NAME -->` above a table says that all of its rows
are there, too.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from benchmarks.provenance import write

NUMBER = r"(?:(?<!\d)[-+])?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?"
MARKED = re.compile(rf"(?P<number>{NUMBER})(?P<unit>[^\d\n<]{{0,15}})<!-- result: (?P<what>.*?) -->")
ANY_MARK = re.compile(r"<!-- result: .*? -->")
TABLE = re.compile(r"^<!-- result table: (?P<name>\S+) -->\n\n?(?P<table>(?:\|.*\n)+)", flags=re.MULTILINE)
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Quoted:
    """A number as a page has it, and where it comes from."""

    page: str
    line: int
    text: str
    what: str

    @property
    def name(self) -> str:
        """The result."""
        return shlex.split(self.what)[0]

    @property
    def decimals(self) -> int:
        """How many digits it has after the point; fewer than none of 2e3."""
        return -int(_plain(self.text).as_tuple().exponent)

    def stored(self) -> float:
        """What the result says; a mark that leads nowhere is a mistake."""
        name, *rest = shlex.split(self.what)
        scale = 1.0
        if len(rest) > 1 and re.fullmatch(rf"x{NUMBER}", rest[-1]):
            scale = float(rest.pop()[1:])
        pick = {"min": min, "max": max}.get(rest[0])
        text = result_text(name)
        found = _in_text(text, rest[0]) if len(rest) == 1 else _in_tables(text, rest[pick is not None :])
        if not found or (pick is None and len(found) > 1):
            msg = f"{self.page}, line {self.line}: {self.what!r} is found {len(found)} times in {name}, expected once."
            raise ValueError(msg)
        return scale * (pick or max)(found)

    def is_right(self) -> bool:
        """Whether it is the stored number, rounded."""
        return abs(_value(self.text) - self.stored()) <= 0.5 * 10.0**-self.decimals * (1 + 1e-9)

    def renewed(self) -> str:
        """The stored number in the shape of this one."""
        rounded = Decimal(self.stored()).quantize(_plain(self.text))
        fresh = f"{rounded:{',' if ',' in self.text else ''}{'e' if 'e' in self.text else 'f'}}"
        return fresh.replace("0.", ".", 1) if self.text.startswith(".") and fresh.startswith("0.") else fresh


def pages() -> list[Path]:
    """Where marks may stand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def quoted(path: Path) -> Iterator[Quoted]:
    """The marked numbers of a page."""
    text = path.read_text()
    for found in MARKED.finditer(text):
        yield Quoted(path.name, text.count("\n", 0, found.start()) + 1, found["number"], found["what"])


def marks_without_number(path: Path) -> list[str]:
    """Marks that follow no number."""
    text = path.read_text()
    right = {found.end() for found in MARKED.finditer(text)}
    return [found.group() for found in ANY_MARK.finditer(text) if found.end() not in right]


def renew(path: Path) -> int:
    """Write the stored numbers into a page; how many have changed."""
    text = path.read_text()
    changed = 0

    def fresh(found: re.Match[str]) -> str:
        nonlocal changed
        one = Quoted(path.name, 0, found["number"], found["what"])
        if one.is_right():
            return found.group()
        changed += 1
        return f"{one.renewed()}{found.group()[len(one.text) :]}"

    write({path: MARKED.sub(fresh, text)})
    return changed


def missing_rows(path: Path) -> list[str]:
    """Rows of marked tables that are not, or not so, in a table of their result."""
    missing = []
    for found in TABLE.finditer(path.read_text()):
        known = [row for table in tables(result_text(found["name"])) for row in table]
        (shown,) = tables(found["table"])
        missing += [
            f"{path.name}: {' | '.join(row.values())}"
            for row in shown
            if not any(row.items() <= other.items() for other in known)
        ]
    return missing


def result_text(name: str) -> str:
    """A result as it is stored."""
    for folder in ("benchmarks", "experiments"):
        path = ROOT / folder / "results" / f"{name}.md"
        if path.exists():
            wide = sorted((path.parent / "tables").glob(f"{name}.*csv"))
            return "\n\n".join([path.read_text(), *(_as_table(one.read_text()) for one in wide)])
    msg = f"There is no result {name!r}: neither a file in benchmarks/results, nor one of the experiments."
    raise ValueError(msg)


def _as_table(text: str) -> str:
    """A CSV as a table of Markdown."""
    header, *lines = csv.reader(io.StringIO(text))
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def tables(text: str) -> list[list[dict[str, str]]]:
    """The tables of a Markdown text, each a list of rows: texts by column."""
    found = []
    for block in re.findall(r"(?:^\|.*\|$\n?){2,}", text, flags=re.MULTILINE):
        header, _, *lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.strip().split("\n")]
        found.append([dict(zip(header, line, strict=False)) for line in lines])
    return found


def _in_tables(text: str, words: list[str]) -> list[float]:
    """First numbers of cells in a column, of rows in which all other words are cells."""
    *cells, column = words
    return [
        _value(number.group())
        for table in tables(text)
        for row in table
        if all(any(_is(cell, one) for one in row.values()) for cell in cells)
        for name, one in row.items()
        if _is(column, name) and (number := re.search(NUMBER, one))
    ]


def _is(pattern: str, text: str) -> bool:
    return pattern == text or re.fullmatch(pattern, text) is not None


def _in_text(text: str, words: str) -> list[float]:
    """Numbers that stand where these words have #."""
    pattern = re.escape(" ".join(words.split())).replace(re.escape("..."), ".*?")
    pattern = pattern.replace(re.escape("#"), f"({NUMBER})", 1)
    return [_value(number) for number in re.findall(pattern, " ".join(text.split()))]


def _value(text: str) -> float:
    return float(_plain(text))


def _plain(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))
