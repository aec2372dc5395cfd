"""A backtest of forecasts as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pimeter.report.page import FOLDER, environment, style_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Points = Sequence[float | None]

WIDTH, HEIGHT = 520, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 28, 40


class Line(NamedTuple):
    """A line of a picture, with a mark at each point."""

    name: str
    style: str  # "in": the first colour, "out": the second, "rule": dashed, "dots": marks alone
    values: Points


class Picture(NamedTuple):
    """What a template needs to draw lines over common places."""

    title: str
    caption: str
    ticks: list[tuple[float, str]]
    rungs: list[tuple[float, str]]
    paths: list[tuple[str, str]]  # style, path
    marks: list[tuple[str, float, float]]
    names: list[tuple[str, str, float]]
    band: str  # path of the area between the first two lines, if it is one


def cone_html(data: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The page of a backtest, given as plain values."""
    level, static, updated, last = (data[key] for key in ("confidence_level", "static", "updated", "last"))
    steps = [float(i + 1) for i in range(len(data["radius"]))]
    asked = [level] * len(steps)
    first, then, rest = data["headline"].partition(" Over ")
    pictures = [
        _picture(
            "The newest forecast",
            "Intervals around each step of the newest window, and the targets that are known by now.",
            "steps ahead",
            steps,
            [
                Line("", "in", last["upper"]),
                Line("interval", "in", last["lower"]),
                Line("forecast", "rule", last["prediction"]),
                Line("target", "dots", last["target"]),
            ],
            has_band=True,
        ),
        _picture(
            "Is the level kept at each step?",
            f"Share of targets inside, over {data['n_tested']:,} windows that the cone was not fitted to.",
            "steps ahead",
            steps,
            [
                Line("updated", "in", updated["by_step"]),
                Line("static", "out", static["by_step"]),
                Line("asked for", "rule", asked),
            ],
        ),
        _picture(
            "How wide is the cone?",
            "Mean width over the same windows.",
            "steps ahead",
            steps,
            [Line("updated", "in", updated["width"]), Line("static", "out", static["width"])],
            from_zero=True,
        ),
        _picture(
            "Is the level kept as time goes by?",
            "Share of targets inside, all steps together, for windows from this one on.",
            "window",
            [float(start) for start in data["blocks"]],
            [
                Line("updated", "in", updated["over_time"]),
                Line("static", "out", static["over_time"]),
                Line("asked for", "rule", [level] * len(data["blocks"])),
            ],
        ),
    ]
    table = zip(
        range(1, len(steps) + 1),
        data["radius"],
        static["by_step"],
        updated["by_step"],
        static["width"],
        updated["width"],
        strict=True,
    )
    style, style_hash = style_of(FOLDER / "page.css")
    return (
        environment()
        .get_template("cone.html")
        .render(
            title=about.get("file") or "Forecasts",
            about=about,
            data=data,
            headline=(first, f"{then.strip()} {rest}"),
            pictures=pictures,
            table=list(table),
            style=style,
            style_hash=style_hash,
            size=(WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM),
        )
    )


def _picture(
    title: str,
    caption: str,
    what: str,
    places: Sequence[float],
    lines: Sequence[Line],
    *,
    has_band: bool = False,
    from_zero: bool = False,
) -> Picture:
    known = [value for line in lines for value in line.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low = min(low, 0.0) if from_zero else low
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = (0.0 if from_zero and low == 0.0 else low - margin), high + margin
    start, end = places[0], places[-1]

    def x(value: float) -> float:
        share = 0.5 if end == start else (value - start) / (end - start)
        return round(LEFT + 8 + share * (WIDTH - RIGHT - LEFT - 16), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP), 1)

    paths, marks, names = [], [], []
    place = float(WIDTH - RIGHT)
    for line in lines:
        points = [(x(at), y(value)) for at, value in zip(places, line.values, strict=True) if value is not None]
        if line.style != "dots" and points:
            paths.append((line.style, "M" + "L".join(f"{a} {b}" for a, b in points)))
        if (line.style != "rule" and not has_band) or line.style == "dots":
            marks += [(line.style, *point) for point in points]
        if line.name:
            names.append((line.style, line.name, place))
            place -= 7.2 * len(line.name) + 26
    band = ""
    if has_band:
        upper, lower = (path for _, path in paths[:2])
        band = f"{upper}L{'L'.join(reversed(lower[1:].split('L')))}Z"
    step = max(1, len(places) // 6)
    ticks = [(x(at), f"{at:g}") for at in places[::step]]
    rungs = [(y(value), f"{value:.3g}") for value in (low + (high - low) * i / 4 for i in range(5))]
    return Picture(title, f"{caption} Horizontal: {what}.", ticks, rungs, paths, marks, names, band)
