"""What a monitor found as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pimeter.report.drawing import Line, band, in_percent, lines, ranges
from pimeter.report.page import plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pimeter.report.drawing import Plot

MAX_PLACES = 40  # points of a line
MAX_SUBGROUPS = 25  # in one plot
LEAST_EVIDENCE = 0.01  # that is drawn
BEYOND_ALARM = 10.0  # times the evidence of an alarm that is drawn


def monitoring_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of a monitor's findings, given as plain values."""
    return plain_html("monitoring.html", data, about, title="Monitoring", plots=_plots(data))


def _plots(data: Mapping[str, Any]) -> list[Plot]:
    """Evidence, coverage, misses and widths over time, and subgroups."""
    stretches = _stretches(data["history"])
    if not stretches:
        return []
    subgroups = data["subgroups"][:MAX_SUBGROUPS]
    of_subgroups = [_of_subgroups(subgroups, data["confidence_level"])] if subgroups else []
    return [_of_evidence(stretches, data), *_of_stretches(stretches, data), *of_subgroups]


def _of_evidence(stretches: Sequence[Mapping[str, float]], data: Mapping[str, Any]) -> Plot:
    """Evidence over time, and where it raises an alarm."""
    most = BEYOND_ALARM * data["threshold"]
    begun = "" if data["since"] is None else f" The change most likely began at row {data['since']:,}."
    return lines(
        "How much speaks against the intervals?",
        "Base-10 logarithm of the largest e-value in each stretch of rows, drawn up to 10 times that of an alarm. An "
        f"alarm stays.{begun}",
        ("row", "log10 of evidence"),
        [float(one["rows"]) for one in stretches],
        [
            Line("evidence", "in", [math.log10(min(max(one["evidence"], LEAST_EVIDENCE), most)) for one in stretches]),
            Line("alarm", "rule", [math.log10(data["threshold"])] * len(stretches)),
        ],
    )


def _of_stretches(stretches: Sequence[Mapping[str, float]], data: Mapping[str, Any]) -> list[Plot]:
    """Coverage, misses and widths over time."""
    places = [float(one["rows"]) for one in stretches]
    return [
        band(
            "How often do they hold?",
            "Mean coverage of all rows so far with its confidence sequence, which holds at all times together (95 %).",
            ("row", "targets inside, %"),
            places,
            (
                Line("", "in", in_percent([one["upper"] for one in stretches])),
                Line("95 % bounds", "in", in_percent([one["lower"] for one in stretches])),
            ),
            [
                Line("asked for", "rule", [100.0 * data["confidence_level"]] * len(places)),
                Line("coverage", "dots", in_percent([one["coverage"] for one in stretches])),
            ],
        ),
        lines(
            "At which bound do they miss?",
            "Targets below the lower and above the upper bound, in each stretch of rows.",
            ("row", "misses, %"),
            places,
            [
                Line("below", "out", in_percent([one["below"] for one in stretches])),
                Line("above", "in", in_percent([one["above"] for one in stretches])),
                Line("allowed at both", "rule", [100.0 * data["largest_miss_rate"]] * len(places)),
            ],
            lowest=0.0,
        ),
        lines(
            "How wide are they?",
            "Mean width in each stretch of rows.",
            ("row", "mean width"),
            places,
            [Line("", "in", [one["mean_width"] for one in stretches])],
            lowest=0.0,
        ),
    ]


def _of_subgroups(subgroups: Sequence[Mapping[str, Any]], level: float) -> Plot:
    """Coverage of each subgroup."""
    return ranges(
        "Which subgroups hold?",
        "Coverage with its confidence sequence, those with the most evidence against them first; each range "
        "holds for its subgroup alone.",
        ("subgroup", "targets inside, %"),
        [one["label"] for one in subgroups],
        [100.0 * one["coverage"] for one in subgroups],
        [(100.0 * one["lower"], 100.0 * one["upper"]) for one in subgroups],
        rule=100.0 * level,
    )


def _stretches(history: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """The history in at most so many stretches of about the same number of points."""
    every = -(-len(history) // MAX_PLACES) or 1
    found, before = [], 0.0
    for start in range(0, len(history), every):
        some = history[start : start + every]
        total = some[-1]["rows"] - before
        lengths = [
            now["rows"] - earlier for now, earlier in zip(some, [before, *(p["rows"] for p in some)], strict=False)
        ]
        means = {
            name: math.fsum(n * one[name] for n, one in zip(lengths, some, strict=True)) / total
            for name in ("below", "above", "mean_width")
        }
        found.append({**some[-1], **means, "evidence": max(one["evidence"] for one in some)})
        before = some[-1]["rows"]
    return found
