"""A measurement as a few lines of HTML, for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from pimeter.coverage import rounded

if TYPE_CHECKING:
    from collections.abc import Mapping


def summary_html(data: Mapping[str, Any], headline: str) -> str:
    """Headline, scores, findings and advice; every word is escaped."""
    scores = "".join(
        f"<tr><th scope='row' style='text-align:left'>{escape(name)}</th><td>{_number(score['value'])}</td>"
        f"<td>{_number(score['lower'])} to {_number(score['upper'])}</td>"
        f"<td style='text-align:left'>{escape(score['meaning'])}</td></tr>"
        for name, score in data["scores"].items()
    )
    found = data["diagnosis"]["findings"]
    findings = "".join(
        f"<li>{'<strong>To do.</strong> ' if finding['advice'] else ''}{escape(finding['sentence'])}</li>"
        for finding in found
    )
    *advice, code = data["diagnosis"]["advice"]
    return (
        f"<div><p><strong>{escape(headline)}</strong></p>"
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in advice)}</ul><pre>{escape(code)}</pre>"
        "<table><thead><tr><th>score</th><th>value</th><th>range (90 % confidence)</th><th>what it is</th></tr></thead>"
        f"<tbody>{scores}</tbody></table>"
        f"<details><summary>{len(found)} findings</summary><ul>{findings}</ul></details></div>"
    )


def _number(value: float) -> str:
    return "not known" if math.isnan(value) else rounded(value)
