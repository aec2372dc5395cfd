"""Given intervals, measured, as one HTML page that needs no network; without a script it shows the level judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pimeter.coverage import percent
from pimeter.report.drawing import Line, against_diagonal, histogram, in_percent, lines, ranges
from pimeter.report.page import plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.report.drawing import Plot

COVERED = "targets inside, %"  # axis


def probabilistic_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of measured intervals, given as plain values."""
    curve, level = data["reliability"], data["confidence_level"]
    at_levels = [{"name": percent(one["level"]), "data": one, "plots": _at_level(one)} for one in curve]
    return plain_html(
        "probabilistic.html",
        data,
        about,
        title="How good are these intervals?",
        script="levels.js" if len(curve) > 1 else "",
        plots=_plots(data),
        at_levels=at_levels,
        at=min(range(len(curve)), key=lambda i: abs(curve[i]["level"] - level)),
        level=percent(level),
    )


def _plots(data: Mapping[str, Any]) -> list[Plot]:
    """Reliability, sharpness and the PIT: what is of all levels."""
    curve = data["reliability"]
    found = [_reliability(curve)] if len(curve) > 1 else []
    known = sorted((one["coverage"], one["mean_width"]) for one in curve if math.isfinite(one["mean_width"]))
    if len(known) > 1:
        found.append(_sharpness(known))
    return [*found, _pit(data)] if data["pit"] else found


def _at_level(one: Mapping[str, Any]) -> list[Plot]:
    """Coverage over time and in subgroups, of intervals of one level."""
    blocks, level, found = one["over_time"], one["level"], []
    if blocks:
        found.append(
            lines(
                "Over time",
                f"Targets covered in blocks of rows; dashed: {percent(level)}.",
                ("block, the oldest first", COVERED),
                list(range(1, len(blocks) + 1)),
                [Line("covered", "in", in_percent(blocks)), Line("level", "rule", [100.0 * level] * len(blocks))],
            )
        )
    divisions = dict.fromkeys(part["of"] for part in one["subgroups"])
    return found + [_by(of, [part for part in one["subgroups"] if part["of"] == of], level) for of in divisions]


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


def _sharpness(known: list[tuple[float, float]]) -> Plot:
    """Mean width against coverage, of the levels given."""
    return lines(
        "How wide are they?",
        "Mean width against targets covered, a point for each level given: the lower, the sharper.",
        ("covered", "mean width"),
        [covered for covered, _ in known],
        [Line("as given", "in", [width for _, width in known])],
        labels=[f"{covered:.2g}" for covered, _ in known],
        lowest=0.0,
    )


def _pit(data: Mapping[str, Any]) -> Plot:
    """Histogram of the probability that distributions give to less than the target."""
    edges = [0.0]
    for cell in data["pit"]:
        edges.append(edges[-1] + cell["probability"])
    tested = next(one["sentence"] for one in data["diagnosis"]["findings"] if one["name"] == "calibration")
    return histogram(
        "Where do targets lie in the distributions?",
        f"Density of the probability integral transform (PIT); 1 is right, high at both sides: too narrow. {tested}",
        ("probability of less than the target", "density"),
        edges,
        [cell["rows"] / data["n_rows"] / cell["probability"] for cell in data["pit"]],
        1.0,
    )


def _by(division: str, places: list[Any], level: float) -> Plot:
    """Plot of coverage in subgroups."""
    return ranges(
        {"by": "By category", "prediction": "By the centre of the interval"}.get(division, f"By {division}"),
        f"Targets covered, with ranges for all subgroups together; dashed: {percent(level)}.",
        ({"by": "category"}.get(division, division), COVERED),
        [one["label"] for one in places],
        [100.0 * one["coverage"] for one in places],
        [(100.0 * one["lower"], 100.0 * one["upper"]) for one in places],
        100.0 * level,
    )
