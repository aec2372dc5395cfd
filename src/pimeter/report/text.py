"""Results as plain text: a table with aligned columns, and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pimeter.coverage import percent
from pimeter.report.classifier import figure, interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TextTable(NamedTuple):
    """A table of words, whose second column holds numbers, and what is said below it."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    sentences: Sequence[str]

    @property
    def lines(self) -> list[str]:
        """The names of the columns and the rows, aligned."""
        widths = [max(map(len, column)) for column in zip(self.names, *self.rows, strict=True)]
        return [
            "  ".join(
                cell.rjust(n) if i == 1 else cell.ljust(n) for i, (cell, n) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (self.names, *self.rows)
        ]


def scorecard_table(data: Mapping[str, Any]) -> TextTable:
    """Metrics of a scorecard, given as plain values, with notes, findings, advice and code."""
    given, diagnosis = data["uncertainty"]["rows"], data["diagnosis"]
    thresholds = {row["threshold"] for row in given} - {None}
    names = [
        row["metric"].replace("_", " ")
        + ("" if len(thresholds) == 1 or row["threshold"] is None else f" at {row['threshold']:g}")
        for row in given
    ]
    rows = [(name, figure(row["value"]), interval(row), row["method"]) for name, row in zip(names, given, strict=True)]
    noted: dict[str, list[str]] = {}
    for name, row in zip(names, given, strict=True):
        if row["note"]:
            noted.setdefault(row["note"], []).append(name)
    kind = f"{percent(data['uncertainty']['confidence_level'])} interval"
    sentences = [f"{', '.join(which)}: {note}." for note, which in noted.items()]
    sentences += [f"{one['question']} {one['sentence']}" for one in diagnosis["findings"]]
    sentences += ["", *diagnosis["advice"], *filter(None, [diagnosis["code"]])]
    return TextTable(("metric", "value", kind, "method"), rows, sentences)


def scorecard_text(data: Mapping[str, Any]) -> str:
    """A scorecard, given as plain values, as the terminal shows it."""
    headline, table = data["headline"], scorecard_table(data)
    return "\n".join([f"{headline['claim']} {headline['evidence']}", "", *table.lines, "", *table.sentences])
