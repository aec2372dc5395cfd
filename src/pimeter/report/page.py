"""A measurement as one HTML page that needs no network: its script only looks numbers up and draws them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent
# JSON within a page: these would end its element, or begin another one.
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}
NEXT = " With "  # where a headline goes on to say how sure it is
LEVEL_SCORES = ("coverage", "mean_width", "interval_score")  # scores that follow the slider


def page_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The report. Words pass jinja2's escaping, numbers and names for the script pass `escaped_json`."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as missing:
        msg = "The report needs jinja2: pip install 'pimeter[app]'."
        raise ImportError(msg, name=missing.name) from missing

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = _number
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    curves = data["curves"]
    at = curves["levels"].index(data["confidence_level"])
    first, then, last = curves["headlines"][at].rpartition(NEXT)
    *advice, code = data["diagnosis"]["advice"]
    findings = data["diagnosis"]["findings"]
    return environment.get_template("page.html").render(
        title=about.get("file") or about.get("data") or "How good is this model?",
        about=about,
        data=data,
        at=at,
        headline=(first, f"{then.strip()} {last}"),
        level=f"{100 * data['confidence_level']:.4g}",
        advice=advice,
        code=code,
        raised=[finding for finding in findings if finding["advice"]],
        others=[finding for finding in findings if not finding["advice"]],
        moving=LEVEL_SCORES,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        numbers=Markup(escaped_json({key: data[key] for key in ("confidence_level", "n_rows", "curves", "sample")})),
    )


def escaped_json(value: Any) -> str:
    """JSON that may stand within a page, whatever the names in it; null for numbers that JSON has not."""
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":")).translate(ESCAPES)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _hash(text: str) -> str:
    """What a browser compares a script or a style with before it uses it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "not known"
