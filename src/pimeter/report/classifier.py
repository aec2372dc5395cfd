"""A classifier's scorecard as one HTML page that needs no network; its script only moves along the thresholds."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from pimeter.coverage import percent, rounded
from pimeter.report.drawing import Line, against_diagonal, bars, in_percent, lines
from pimeter.report.page import UNKNOWN, plain_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.report.drawing import Plot


def classifier_html(data: Mapping[str, Any], about: Mapping[str, str], meaning: Mapping[str, str]) -> str:
    """The page of a scorecard, given as plain values, and a few words for each metric."""
    found = data["uncertainty"]
    level = percent(found["confidence_level"])
    rows = [{**row, "value": figure(row["value"]), "interval": interval(row)} for row in found["rows"]]
    tables = [(threshold, list(some)) for threshold, some in groupby(rows, lambda row: row["threshold"])]
    cuts, at = data["cuts"], found["rows"][0]["threshold"]
    nearest = 0 if cuts is None else min(range(len(cuts["threshold"])), key=lambda i: abs(cuts["threshold"][i] - at))
    return plain_html(
        "classifier.html",
        data,
        about,
        title="Classifier",
        plots=_plots(data, level),
        tables=tables,
        meaning=meaning,
        level=level,
        script="classifier.js" if cuts is not None else "",
        nearest=nearest,
    )


def _plots(data: Mapping[str, Any], level: str) -> list[Plot]:
    found = []
    bins, cuts = data["reliability"], data["cuts"]
    if bins is not None:
        found.append(
            against_diagonal(
                "Do scores mean what they say?",
                "Fraction of positives against the mean score, in bins of equally many rows, with Clopper-Pearson "
                f"intervals for {level} of each bin by itself; a cross contradicts its score, also when all bins are "
                "taken together.",
                ("mean score", "positives"),
                bins["score"],
                bins["proportion"],
                list(zip(bins["lower"], bins["upper"], strict=True)),
                bins["is_off"],
                ("calibrated", "consistent", "not consistent"),
            )
        )
    if cuts is not None:
        found.append(
            lines(
                "What would another threshold do?",
                "Precision: positives among rows called positive. Sensitivity: positives that are found. "
                "A threshold chosen here has to be judged on other rows, or by what is guaranteed above.",
                ("threshold", "%"),
                cuts["threshold"],
                [
                    Line("precision", "out", in_percent(cuts["ppv"])),
                    Line("sensitivity", "in", in_percent(cuts["tpr"])),
                    Line("accuracy", "rule", in_percent(cuts["accuracy"])),
                ],
            )
        )
    for outcome in data["outcomes"]:
        caption = f"Number of rows by score; dashed: the threshold of {outcome['threshold']:g}."
        title = f"{outcome['name'].capitalize()}: {outcome['rows']:,}"
        found.append(
            bars(title, caption, outcome["counts"], "out" if outcome["is_wrong"] else "in", outcome["threshold"])
        )
    return found


def figure(value: float | None) -> str:
    """A metric in four decimals, or as many digits as it takes to tell it from 0 and from 1."""
    if value is None:
        return UNKNOWN
    text = f"{value:.4f}"
    if value in {0.0, 1.0} or float(text) not in {0.0, 1.0}:
        return text
    return rounded(value) if float(text) else f"{value:.1g}"


def interval(row: Mapping[str, Any]) -> str:
    """Bounds of the interval of a metric."""
    bounds = [figure(row[key]) for key in ("lower", "upper")]
    return UNKNOWN if bounds == [UNKNOWN, UNKNOWN] else " to ".join(bounds)
