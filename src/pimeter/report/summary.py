"""A result as a few lines of HTML, for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from pimeter.coverage import rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def summary_html(data: Mapping[str, Any], table: Mapping[str, Sequence[Any]]) -> str:
    """Headline, advice, code, a table and findings; every word is escaped."""
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
    return (
        f"<div><p><strong>{escape(headline['claim'])}</strong> {escape(headline['evidence'])}</p>"
        f"<ul>{advice}</ul>{code}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<details><summary>{len(found)} findings</summary><ul>{findings}</ul></details></div>"
    )


def _cell(value: Any) -> str:
    """A number, or text, which begins at the left."""
    if isinstance(value, str):
        return f"<td style='text-align:left'>{escape(value)}</td>"
    return f"<td>{'not known' if math.isnan(value) else rounded(value)}</td>"
