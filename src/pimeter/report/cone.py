"""A backtest of forecasts as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pimeter.coverage import counted, percent
from pimeter.report.drawing import Line, band, in_percent, lines
from pimeter.report.page import UNKNOWN, plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping


def cone_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of a backtest, given as plain values."""
    level, static, updated, newest = (data[key] for key in ("confidence_level", "static", "updated", "newest"))
    steps = [float(i + 1) for i in range(len(data["margin"]))]
    asked = [100.0 * level] * len(steps)
    inside = "targets inside, %"
    plots = [
        band(
            "The newest forecast",
            "Intervals around each step of the newest window as they were made then; targets as far as known.",
            ("steps ahead", "value"),
            steps,
            (Line("", "in", newest["upper"]), Line("interval", "in", newest["lower"])),
            [Line("forecast", "rule", newest["prediction"]), Line("target", "dots", newest["target"])],
        ),
        lines(
            "Is the level kept at each step?",
            f"Targets inside, over {counted(data['n_scored'], 'window')} that the cone was not fitted to.",
            ("steps ahead", inside),
            steps,
            [
                Line("static", "out", in_percent(static["by_step"])),
                Line("updated", "in", in_percent(updated["by_step"])),
                Line("asked for", "rule", asked),
            ],
        ),
        lines(
            "How wide is the cone?",
            "Mean width over the same windows.",
            ("steps ahead", "width"),
            steps,
            [Line("static", "out", static["width"]), Line("updated", "in", updated["width"])],
            lowest=0.0,
        ),
        lines(
            "Is the level kept as time goes by?",
            "Targets inside, all steps together, for windows from this one on.",
            ("window", inside),
            [float(start) for start in data["blocks"]],
            [
                Line("static", "out", in_percent(static["over_time"])),
                Line("updated", "in", in_percent(updated["over_time"])),
                Line("asked for", "rule", [100.0 * level] * len(data["blocks"])),
            ],
            labels=data["block_names"],
        ),
    ]
    table = zip(
        range(1, len(steps) + 1),
        data["margin"],
        map(_percent, static["by_step"]),
        map(_percent, updated["by_step"]),
        static["width"],
        updated["width"],
        strict=True,
    )
    return plain_html(
        "cone.html",
        data,
        about,
        title="Forecasts",
        plots=plots,
        table=list(table),
    )


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else percent(value, 3)
