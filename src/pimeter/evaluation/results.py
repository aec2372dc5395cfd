"""What `measure`, `compare`, `backtest` and `scorecard` return has one form: headline, diagnosis, table, page."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pimeter.encoding import plain, with_nulls
from pimeter.files import replaced
from pimeter.findings import Diagnosis, Headline  # noqa: TC001 - `encoding.built` looks the types of fields up
from pimeter.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from pimeter.findings import Finding
    from pimeter.protocols import Columns


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Result(ABC):
    """What is known of a model, as plain numbers and sentences.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    """

    headline: Headline
    diagnosis: Diagnosis

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One for each question, those that raise an alarm and those that do not."""
        return self.diagnosis.findings

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences."""
        return self.diagnosis.advice

    @property
    def code(self) -> str:
        """Lines of code to paste; empty if there are none."""
        return self.diagnosis.code

    @abstractmethod
    def _table(self) -> Columns:
        """The numbers that matter most, as columns."""

    @abstractmethod
    def _page(self, about: Mapping[str, str]) -> str:
        """The report as HTML."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, numbers and strings: what reports are made of."""
        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """Everything as JSON text, with null for numbers that JSON does not have."""
        return json.dumps(with_nulls(self.to_dict()), allow_nan=False)

    def to_frame(self, library: Any = "pandas") -> Any:
        """The numbers that matter most, as a frame of this library, such as "pandas" or "polars"."""
        return frame_of(self._table(), library)

    def to_html(self, path: str | PathLike[str] | None = None, *, about: Mapping[str, str] | None = None) -> str:
        """The report: one page with plots, which needs no network.

        Parameters
        ----------
        path : path-like, optional
            Where to write it; the file appears complete or not at all.
        about : mapping of str to str, optional
            What was measured and how, shown at the end of the page; "file" or "data" is its title, too.

        Returns
        -------
        str
            The page.

        Raises
        ------
        ValueError
            If nothing can be written there.
        """
        page = self._page(about or {})
        if path is not None:
            with replaced(Path(path)) as draft:
                draft.write_text(page, encoding="utf-8")
        return page

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def __str__(self) -> str:
        return "\n".join([str(self.headline), "", *self.advice, *([self.code] if self.code else [])])

    def _repr_html_(self) -> str:
        from pimeter.report.summary import summary_html

        return summary_html(self.to_dict(), self._table(), self._plot_png())

    def _plot_png(self) -> bytes | None:
        """Plots for a notebook as PNG, if there are some and matplotlib is installed."""
        return None

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())
