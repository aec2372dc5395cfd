"""A comparison of models as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pimeter.report.drawing import ranges
from pimeter.report.page import plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.report.drawing import Plot

MAX_PLACES = 25  # subgroups in one plot


def comparison_html(
    data: Mapping[str, Any], about: Mapping[str, str], meaning: Mapping[str, str], *, words: str, is_lower_better: bool
) -> str:
    """The page of a comparison, given as plain values, with what scores mean, and the name of the one that decides."""
    plots = _plots(data, words, is_lower_better=is_lower_better)
    return plain_html("comparison.html", data, about, title="Comparison", plots=plots, meaning=meaning)


def _plots(data: Mapping[str, Any], name: str, *, is_lower_better: bool) -> list[Plot]:
    """Differences of all pairs, then of the best and the next model in subgroups."""
    score = data["decided_by"]
    pairs = [one for one in data["contrasts"] if one["score"] == score]
    found = [
        ranges(
            f"How much do models differ in {name}?",
            "Score of the first model less that of the second, with ranges that hold for all pairs together.",
            ("models", f"difference in {name}"),
            [f"{one['model']} − {one['other']}" for one in pairs],
            [one["value"] for one in pairs],
            [(one["lower"], one["upper"]) for one in pairs],
        )
    ]
    best, other = data["best"], "the next model"
    difference = f"{best} less that of {other}" if is_lower_better else f"{other} less that of {best}"
    caption = f"{name[0].upper()}{name[1:]} of {difference}; below 0 {best} is better."
    divisions = dict.fromkeys(place["of"] for place in data["places"])
    return [*found, *(_by(division, data, name, caption) for division in divisions)]


def _by(division: str, data: Mapping[str, Any], name: str, caption: str) -> Plot:
    """Differences of the best and the next model in subgroups."""
    places = [place for place in data["places"] if place["of"] == division][:MAX_PLACES]
    return ranges(
        f"By {division}" if division != "by" else "By category",
        f"{caption} Ranges hold for all subgroups together.",
        ("category" if division == "by" else division, f"difference in {name}"),
        [place["label"] for place in places],
        [place["value"] for place in places],
        [(place["lower"], place["upper"]) for place in places],
    )
