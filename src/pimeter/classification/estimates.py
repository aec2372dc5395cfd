"""`ClassificationUncertainty`: metrics of a classifier with their intervals, as a table, a dict or text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from pimeter.coverage import counted, percent
from pimeter.frames import frame_of


@dataclass(frozen=True)
class Estimate:
    """A metric with its interval; NaN where it is not known."""

    value: float
    lower: float
    upper: float
    method: str  # how the interval was made
    note: str = ""  # what to know about it


@dataclass(frozen=True, repr=False)
class ClassificationUncertainty:
    """Metrics of a classifier with their intervals.

    Attributes
    ----------
    estimates : list of dict of str to Estimate
        One dict for each threshold.
    thresholds : tuple of float
        Empty for several classes, where the likeliest is predicted.
    is_single : bool
        Whether one threshold was asked for, so that entries are numbers.
    confidence_level : float
        Of the intervals.
    n_rows : int
        Rows that were looked at.
    assumes : str or None
        What has to be true beyond rows from the same distribution.
    """

    estimates: list[dict[str, Estimate]]
    thresholds: tuple[float, ...]
    is_single: bool
    confidence_level: float
    n_rows: int
    assumes: str | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The metrics: numbers, or arrays with an entry for each threshold."""
        return self._column("value")

    @property
    def lower(self) -> dict[str, Any]:
        """Lower bounds."""
        return self._column("lower")

    @property
    def upper(self) -> dict[str, Any]:
        """Upper bounds."""
        return self._column("upper")

    @property
    def method(self) -> dict[str, Any]:
        """How each interval was made: a string, or a list of strings."""
        return self._column("method")

    @property
    def note(self) -> dict[str, Any]:
        """What to know about each interval; empty strings where there is nothing."""
        return self._column("note")

    def _column(self, field: str) -> dict[str, Any]:
        if self.is_single:
            return {name: getattr(one, field) for name, one in self.estimates[0].items()}
        found = {name: [getattr(each[name], field) for each in self.estimates] for name in self.estimates[0]}
        return found if field in {"method", "note"} else {name: np.array(values) for name, values in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain strings, numbers, lists and dicts; NaN as None."""
        return {
            "confidence_level": self.confidence_level,
            "n_rows": self.n_rows,
            "assumes": self.assumes,
            "rows": [
                {key: None if isinstance(cell, float) and np.isnan(cell) else cell for key, cell in row.items()}
                for row in self._rows()
            ],
        }

    def to_frame(self, library: Any = "pandas") -> Any:
        """A row for each metric (and threshold), as a frame.

        Parameters
        ----------
        library : str, default="pandas"
            Name of the frame library, such as "polars".
        """
        rows = self._rows()
        return frame_of({key: [row[key] for row in rows] for key in rows[0]}, library)

    def _rows(self) -> list[dict[str, Any]]:
        thresholds = [{"threshold": threshold} for threshold in self.thresholds] or [{}]
        return [
            {**threshold, "metric": name, **asdict(one)}
            for threshold, each in zip(thresholds, self.estimates, strict=True)
            for name, one in each.items()
        ]

    @property
    def _headline(self) -> str:
        text = f"{counted(self.n_rows, 'row')}, intervals for {percent(self.confidence_level)}"
        return f"{text}, assuming {self.assumes}" if self.assumes else text

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(row["metric"]) for row in rows)
        lines = [
            (f"{row['threshold']:<6.4g} " if not self.is_single else "")
            + f"{row['metric']:<{width}}  {row['value']:7.4f}  [{row['lower']:7.4f}, {row['upper']:7.4f}]"
            + f"  {row['method']}"
            + (f" ({row['note']})" if row["note"] else "")
            for row in rows
        ]
        return "\n".join([self._headline, *lines])

    def _repr_html_(self) -> str:
        rows = self._rows()
        head = "".join(f"<th>{escape(key)}</th>" for key in rows[0])
        body = "".join(
            "<tr>"
            + "".join(
                f"<td>{f'{cell:.4f}' if isinstance(cell, float) else escape(str(cell))}</td>" for cell in row.values()
            )
            + "</tr>"
            for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><p>{escape(self._headline)}</p>{table}</div>"
