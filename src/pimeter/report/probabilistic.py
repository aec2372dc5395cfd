"""Given intervals, measured, as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pimeter.coverage import percent
from pimeter.report.drawing import Line, against_diagonal, lines, ranges
from pimeter.report.page import plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.report.drawing import Plot


def probabilistic_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of measured intervals, given as plain values."""
    level = percent(data["confidence_level"])
    return plain_html(
        "probabilistic.html", data, about, title="How good are these intervals?", plots=_plots(data), level=level
    )


def _plots(data: Mapping[str, Any]) -> list[Plot]:
    """Reliability, cells of the distributions, coverage over time, and coverage in subgroups."""
    level = data["confidence_level"]
    found = [_reliability(data["reliability"])] if len(data["reliability"]) > 1 else []
    if data["pit"]:
        found.append(_cells(data))
    blocks = data["over_time"]
    if blocks:
        found.append(
            lines(
                "Over time",
                "Targets covered in blocks of rows.",
                ("block, the oldest first", "covered"),
                list(range(1, len(blocks) + 1)),
                [Line("covered", "in", blocks), Line("level", "rule", [level] * len(blocks))],
            )
        )
    divisions = dict.fromkeys(one["of"] for one in data["subgroups"])
    return found + [_by(of, [one for one in data["subgroups"] if one["of"] == of], level) for of in divisions]


def _reliability(curve: list[Any]) -> Plot:
    """Plot of coverage against level."""
    bounds = [(one["lower"], one["upper"]) for one in curve]
    return against_diagonal(
        "Do all levels hold?",
        "Targets covered against the level given, with ranges for all levels together.",
        ("level given", "covered"),
        [one["level"] for one in curve],
        [one["coverage"] for one in curve],
        bounds,
        [not low <= one["level"] <= high for one, (low, high) in zip(curve, bounds, strict=True)],
        ("as given", "may hold", "does not hold"),
    )


def _cells(data: Mapping[str, Any]) -> Plot:
    """Rows between neighbouring quantiles."""
    seen = [cell["rows"] / data["n_rows"] / cell["probability"] for cell in data["pit"]]
    return lines(
        "Where do targets lie in the distributions?",
        "Rows in each cell between two quantiles, over what the distributions say; 1 is right, high at both sides "
        "means too narrow.",
        ("cell, from the lowest to the highest", "rows over what they should be"),
        list(range(1, len(seen) + 1)),
        [Line("seen", "in", seen), Line("right", "rule", [1.0] * len(seen))],
        lowest=0.0,
    )


def _by(division: str, places: list[Any], level: float) -> Plot:
    """Plot of coverage in subgroups."""
    return ranges(
        {"by": "By category", "prediction": "By the centre of the interval"}.get(division, f"By {division}"),
        f"Targets covered, with ranges for all subgroups together; dashed: {percent(level)}.",
        (division, "covered"),
        [one["label"] for one in places],
        [one["coverage"] for one in places],
        [(one["lower"], one["upper"]) for one in places],
        level,
    )
