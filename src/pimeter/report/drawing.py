"""Plots as the few numbers that a template needs to draw them: places on a page, not values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    PlottedValues = Sequence[float | None]

WIDTH, HEIGHT = 520, 270
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 28, 44
LETTERS_BELOW_PLOT = 48  # letters that have room below a plot
PLOT_SIZE = (WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)


class Line(NamedTuple):
    """A line of a plot."""

    name: str
    style: str  # "in": the first colour, "out": the second, "rule": dashed, "dots": marks alone
    values: PlottedValues

    def points(self, places: Sequence[float]) -> list[tuple[float, float]]:
        """Its points over these places, as far as they are known."""
        return [(at, value) for at, value in zip(places, self.values, strict=True) if value is not None]


class Plot(NamedTuple):
    """What a template needs to draw a plot."""

    title: str
    caption: str
    axes: tuple[str, str]  # what is along and what is up
    ticks: list[tuple[float, str]]
    rungs: list[tuple[float, str]]
    areas: list[tuple[str, str]]  # style, path
    paths: list[tuple[str, str]]
    marks: list[tuple[str, float, float]]
    names: list[tuple[str, str, float]]


class Scales(NamedTuple):
    """How values become places in a plot."""

    start: float
    end: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Place from the left."""
        along = 0.5 if self.end == self.start else (value - self.start) / (self.end - self.start)
        return round(LEFT + 8 + along * (WIDTH - RIGHT - LEFT - 16), 1)

    def y(self, value: float) -> float:
        """Place from the top."""
        return round(HEIGHT - BOTTOM - (value - self.low) / (self.high - self.low) * (HEIGHT - BOTTOM - TOP), 1)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through points."""
        return "M" + "L".join(f"{self.x(a)} {self.y(b)}" for a, b in points)

    def marks(self, line: Line, places: Sequence[float]) -> list[tuple[str, float, float]]:
        """Marks at the points of a line."""
        return [(line.style, self.x(a), self.y(b)) for a, b in line.points(places)]

    @property
    def rungs(self) -> list[tuple[float, str]]:
        """Values to write at the left."""
        return [(self.y(value), f"{value:g}") for value in _round_values(self.low, self.high)]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Values to write below."""
        return [(self.x(value), f"{value:g}") for value in _round_values(self.start, self.end)]


def in_percent(values: PlottedValues) -> list[float | None]:
    """Fractions in per cent, as far as they are known."""
    return [None if value is None else 100.0 * value for value in values]


def lines(
    title: str,
    caption: str,
    axes: tuple[str, str],
    places: Sequence[float],
    drawn: Sequence[Line],
    *,
    labels: Sequence[str] | None = None,
    lowest: float | None = None,
) -> Plot:
    """Lines over common places, which may have labels, with marks on all but dashed ones; `lowest` is to be seen."""
    scales = _fitting(places, drawn, lowest)
    paths = [
        (line.style, scales.path(line.points(places))) for line in drawn if line.style != "dots" and line.points(places)
    ]
    marks = [mark for line in drawn if line.style != "rule" for mark in scales.marks(line, places)]
    ticks = _labelled(scales, places, labels)
    return Plot(title, caption, axes, ticks, scales.rungs, [], paths, marks, _placed(drawn))


def band(
    title: str,
    caption: str,
    axes: tuple[str, str],
    places: Sequence[float],
    bounds: tuple[Line, Line],
    others: Sequence[Line],
) -> Plot:
    """The area between an upper and a lower line, and other lines, of which those of dots alone have marks."""
    upper, lower = bounds
    drawn = [upper, lower, *others]
    scales = _fitting(places, drawn, None)
    outline = [*upper.points(places), *reversed(lower.points(places))]
    paths = [(line.style, scales.path(line.points(places))) for line in drawn if line.style != "dots"]
    marks = [mark for line in others if line.style == "dots" for mark in scales.marks(line, places)]
    areas = [("fill", f"{scales.path(outline)}Z")]
    ticks = _labelled(scales, places, None)
    return Plot(title, caption, axes, ticks, scales.rungs, areas, paths, marks, _placed(drawn))


def _fitting(places: Sequence[float], drawn: Sequence[Line], lowest: float | None) -> Scales:
    """Scales that have room for all lines; they begin at `lowest`, if given, unless a line goes below it."""
    known = [value for line in drawn for value in line.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low = low if lowest is None else min(low, lowest)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Scales(places[0], places[-1], low if low == lowest else low - room, high + room)


def _labelled(scales: Scales, places: Sequence[float], labels: Sequence[str] | None) -> list[tuple[float, str]]:
    """Texts below a plot, as many as there is room for."""
    texts = [f"{at:g}" for at in places] if labels is None else labels
    n_shown = max(1, min(8, LETTERS_BELOW_PLOT // max(map(len, texts))))
    every = max(1, -(-len(places) // n_shown))
    return [(scales.x(at), text) for at, text in zip(places, texts, strict=True)][::every]


def against_diagonal(
    title: str,
    caption: str,
    axes: tuple[str, str],
    places: Sequence[float],
    values: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    is_off: Sequence[bool],
    names: tuple[str, str, str],
) -> Plot:
    """Fractions with intervals, against what they should be; names of the diagonal, of points on it and off it."""
    scales = Scales(0.0, 1.0, 0.0, 1.0)
    styles = ["out" if off else "in" for off in is_off]
    paths = [("rule", scales.path([(0.0, 0.0), (1.0, 1.0)]))]
    paths += [
        (style, scales.path([(at, bound) for bound in pair]))
        for style, at, pair in zip(styles, places, bounds, strict=True)
    ]
    marks = [(style, scales.x(at), scales.y(value)) for style, at, value in zip(styles, places, values, strict=True)]
    styled = zip(("rule", "in", "out"), names, strict=True)
    shown = [Line(name, style, ()) for style, name in styled if style in {"rule", *styles}]
    return Plot(title, caption, axes, scales.ticks, scales.rungs, [], paths, marks, _placed(shown))


def ranges(
    title: str,
    caption: str,
    axes: tuple[str, str],
    labels: Sequence[str],
    values: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    rule: float = 0.0,
) -> Plot:
    """Numbers with their ranges side by side, crosses where a range does not contain the dashed line."""
    places = list(range(len(values)))
    known = [*values, *(bound for pair in bounds for bound in pair), rule]
    scales = _fitting([-0.5, len(values) - 0.5], [Line("", "dots", known)], None)
    styles = ["in" if low <= rule <= high else "out" for low, high in bounds]
    paths = [("rule", scales.path([(scales.start, rule), (scales.end, rule)]))]
    paths += [
        (style, scales.path([(at, bound) for bound in pair]))
        for style, at, pair in zip(styles, places, bounds, strict=True)
    ]
    marks = [(style, scales.x(at), scales.y(value)) for style, at, value in zip(styles, places, values, strict=True)]
    shown = [Line(f"range holds {rule:g}", "in", ()), Line(f"range excludes {rule:g}", "out", ())]
    names = _placed([line for line in shown if line.style in styles])
    return Plot(title, caption, axes, _labelled(scales, places, labels), scales.rungs, [], paths, marks, names)


def bars(title: str, caption: str, counts: Sequence[int], style: str, rule: float) -> Plot:
    """Counts in bins of equal width from 0 to 1, with a dashed line across."""
    n = len(counts)
    scales = Scales(0.0, 1.0, 0.0, 1.06 * max(*counts, 1))
    corners = [(0.0, 0.0)]
    for i, count in enumerate(counts):
        corners += [(i / n, count), ((i + 1) / n, count)]
    area = scales.path([*corners, (1.0, 0.0)]) + "Z"
    across = scales.path([(rule, 0.0), (rule, scales.high)])
    return Plot(
        title, caption, ("score", "rows"), scales.ticks, scales.rungs, [(style, area)], [("rule", across)], [], []
    )


def histogram(
    title: str, caption: str, axes: tuple[str, str], edges: Sequence[float], heights: Sequence[float], rule: float
) -> Plot:
    """Bars between rising edges, with a dashed line at a height."""
    scales = Scales(edges[0], edges[-1], 0.0, 1.06 * max(*heights, rule))
    corners = [(edges[0], 0.0)]
    for i, height in enumerate(heights):
        corners += [(edges[i], height), (edges[i + 1], height), (edges[i + 1], 0.0)]
    across = scales.path([(edges[0], rule), (edges[-1], rule)])
    areas = [("in", f"{scales.path(corners)}Z")]
    return Plot(title, caption, axes, scales.ticks, scales.rungs, areas, [("rule", across)], [], [])


def _placed(lines: Sequence[Line]) -> list[tuple[str, str, float]]:
    """Names of lines side by side above a plot, from the right."""
    place: float = WIDTH - RIGHT
    found = []
    for line in lines:
        if line.name:
            found.append((line.style, line.name, place))
            place -= 9.0 * len(line.name) + 24
    return found


def _round_values(low: float, high: float) -> list[float]:
    """Four to ten values between two others, in steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / 4.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= raw)
    digits = 12 - math.floor(math.log10(step))
    return [round(i * step, digits) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
