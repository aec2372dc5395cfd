"""A measurement as one HTML page that needs no network: its script only looks numbers up and draws them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from pimeter.coverage import percent, rounded
from pimeter.encoding import with_nulls
from pimeter.extras import how_to_install
from pimeter.report.drawing import PLOT_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment
    from markupsafe import Markup

FOLDER = Path(__file__).parent
# JSON within a page: these would end its element, or begin another one.
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}
UNKNOWN = "not known"
LEVEL_SCORES = ("coverage", "mean_width", "interval_score")  # scores that follow the slider


def page_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The report. Words pass jinja2's escaping, numbers and names for the script pass `escaped_json`."""
    template = _environment().get_template("page.html")
    style, style_hash = _own(FOLDER / "page.css")
    script, script_hash = _own(FOLDER / "page.js")
    curves = data["curves"]
    at = curves["levels"].index(data["confidence_level"])
    return template.render(
        title=about.get("file") or about.get("data") or "How good is this model?",
        about=about,
        data=data,
        at=at,
        level=percent(data["confidence_level"]),
        **_sorted_findings(data),
        is_guaranteed=_is_known(data["guaranteed_level"]),
        moving=LEVEL_SCORES,
        style=style,
        style_hash=style_hash,
        script=script,
        script_hash=script_hash,
        numbers=_marked(escaped_json({key: data[key] for key in ("confidence_level", "n_rows", "curves", "sample")})),
    )


def plain_html(
    template: str, data: Mapping[str, Any], about: Mapping[str, str], *, title: str, script: str = "", **values: Any
) -> str:
    """A page that can be read without a script; it may name a file with one."""
    page = _environment().get_template(template)
    style, style_hash = _own(FOLDER / "page.css")
    if script:
        values["script"], values["script_hash"] = _own(FOLDER / script)
    return page.render(
        title=about.get("file") or title,
        about=about,
        data=data,
        style=style,
        style_hash=style_hash,
        size=PLOT_SIZE,
        **_sorted_findings(data),
        **values,
    )


def _sorted_findings(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Findings that ask for something to be done, and the others."""
    findings = data["diagnosis"]["findings"]
    return {
        "raised": [finding for finding in findings if finding["advice"]],
        "others": [finding for finding in findings if not finding["advice"]],
    }


def _environment() -> Environment:
    """Templates of this folder, in which every word is escaped.

    Raises
    ------
    ImportError
        Without jinja2.
    """
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError as missing:
        msg = f"The report needs jinja2: {how_to_install('app')}."
        raise ImportError(msg, name=missing.name) from missing
    made = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"number": _number, "percent": _percent, "whole": _whole, "range": _range, "bounds": _bounds}
    return made


def _own(path: Path) -> tuple[Markup, str]:
    """Our own style or script as it is, and the hash that a browser compares it with before it uses it."""
    text = path.read_text(encoding="utf-8")
    return _marked(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _marked(text: str) -> Markup:
    """Text that needs no escaping any more."""
    from markupsafe import Markup

    return Markup(text)


def escaped_json(value: object) -> str:
    """JSON that may stand within a page, whatever the names in it; null for numbers that JSON does not have."""
    return json.dumps(with_nulls(value), allow_nan=False, separators=(",", ":")).translate(ESCAPES)


def _number(value: float | None) -> str:
    """A number in four digits."""
    return rounded(value) if _is_known(value) else UNKNOWN


def _percent(fraction: float | None) -> str:
    """A fraction in per cent."""
    return percent(fraction) if _is_known(fraction) else UNKNOWN


def _whole(fraction: float | None) -> str:
    """A fraction in per cent with one decimal."""
    return f"{100.0 * fraction:.1f} %" if _is_known(fraction) else "-"


def _range(bounds: Sequence[float | None]) -> str:
    """Two fractions in per cent."""
    low, high = bounds
    if not (_is_known(low) and _is_known(high)):
        return UNKNOWN
    return f"{rounded(100.0 * low, whole=100.0)} to {percent(high)}"


def _bounds(bounds: Sequence[float | None]) -> str:
    """Two numbers in four digits."""
    return " to ".join(map(_number, bounds)) if all(map(_is_known, bounds)) else UNKNOWN


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
