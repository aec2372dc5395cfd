"""A backtest of a panel of forecasts as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pimeter.coverage import counted, percent
from pimeter.report.drawing import Line, band, in_percent, lines
from pimeter.report.page import plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLES = ("in", "out", "dots")  # of the first models; more than three would not be told apart


def panel_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of a panel's backtest, given as plain values."""
    level, models = data["confidence_level"], list(data["models"].items())
    drawn = list(zip(models, STYLES, strict=False))
    n_steps = max(len(found["by_step"]) for _, found in models)
    inside = "targets inside, %"
    tried = f"{counted(data['n_windows'], 'window')} that intervals were not fitted to"
    plots = [
        lines(
            "Is the level kept at each step?",
            f"Targets inside, over {tried}.",
            ("steps ahead", inside),
            [float(i + 1) for i in range(n_steps)],
            [
                *(Line(name, style, in_percent(found["by_step"])) for (name, found), style in drawn),
                Line("asked for", "rule", [100.0 * level] * n_steps),
            ],
        ),
        lines(
            "Is the level kept as time goes by?",
            "Targets inside, all series and steps together, for windows made at each moment.",
            ("made at", inside),
            [float(i) for i in range(len(data["cutoffs"]))],
            [
                *(Line(name, style, in_percent(found["over_time"])) for (name, found), style in drawn),
                Line("asked for", "rule", [100.0 * level] * len(data["cutoffs"])),
            ],
            labels=data["cutoffs"],
        ),
        *(
            band(
                str(one["series"]),
                f"The newest whole window that was tried, around {models[0][0]}; targets as far as known.",
                ("steps ahead", "value"),
                [float(i + 1) for i in range(len(one["prediction"]))],
                (Line("", "in", one["upper"]), Line("interval", "in", one["lower"])),
                [Line("forecast", "rule", one["prediction"]), Line("target", "dots", one["target"])],
            )
            for one in data["shown"]
        ),
    ]
    table = [(one["series"], percent(one["coverage"], 3), one["n"], one["width"]) for one in data["worst"]]
    named = [(name, percent(found["coverage"], 3), found["width"]) for name, found in models]
    return plain_html("panel.html", data, about, title="Forecasts of a panel", plots=plots, table=table, models=named)
