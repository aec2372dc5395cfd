"""A result as a few lines of HTML, for notebooks."""

from __future__ import annotations

import math
from base64 import b64encode
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

from pimeter.coverage import rounded
from pimeter.report.page import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.protocols import Columns


def summary_html(data: Mapping[str, Any], table: Columns, plots: bytes | None = None) -> str:
    """Headline, advice and plots (PNG); code, a table and findings are folded. Every word is escaped."""
    headline, diagnosis = data["headline"], data["diagnosis"]
    advice = "".join(f"<li>{escape(line)}</li>" for line in diagnosis["advice"])
    code = f"<pre>{escape(diagnosis['code'])}</pre>" if diagnosis["code"] else ""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in table)
    rows = "".join(
        f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*(list(column) for column in table.values()), strict=True)
    )
    found = diagnosis["findings"]
    findings = "".join(
        f"<li>{'<strong>To do.</strong> ' if finding['advice'] else ''}{escape(finding['sentence'])}</li>"
        for finding in found
    )
    shown = ""
    if plots is not None:
        source = f"data:image/png;base64,{b64encode(plots).decode()}"
        shown = f"<img alt='Plots of the measurement' style='max-width:100%' src='{source}'>"
    return (
        f"<div><p><strong>{escape(headline['claim'])}</strong> {escape(headline['evidence'])}</p>"
        f"<ul>{advice}</ul>{shown}{_folded('Code', code) if code else ''}"
        + _folded("Scores", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
        + _folded(f"{len(found)} findings", f"<ul>{findings}</ul>")
        + "</div>"
    )


def _folded(title: str, content: str) -> str:
    """What is shown when its title is clicked."""
    return f"<details><summary>{title}</summary>{content}</details>"


def _cell(value: object) -> str:
    """A number, or text, which begins at the left."""
    if not isinstance(value, Real):
        return f"<td style='text-align:left'>{escape(str(value))}</td>"
    return f"<td>{UNKNOWN if math.isnan(value) else rounded(float(value))}</td>"
