"""Pictures as the few numbers that a template needs to draw them: places on a page, not values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    Points = Sequence[float | None]

WIDTH, HEIGHT = 520, 270
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 28, 40
TEXT = 48  # letters that have room below a picture
SIZE = (WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM)


class Line(NamedTuple):
    """A line of a picture, with a mark at each point."""

    name: str
    style: str  # "in": the first colour, "out": the second, "rule": dashed, "dots": marks alone
    values: Points


class Picture(NamedTuple):
    """What a template needs to draw a picture."""

    title: str
    caption: str
    ticks: list[tuple[float, str]]
    rungs: list[tuple[float, str]]
    areas: list[tuple[str, str]]  # style, path
    paths: list[tuple[str, str]]
    marks: list[tuple[str, float, float]]
    names: list[tuple[str, str, float]]


class Scales(NamedTuple):
    """Values to places."""

    start: float
    end: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Place from the left."""
        share = 0.5 if self.end == self.start else (value - self.start) / (self.end - self.start)
        return round(LEFT + 8 + share * (WIDTH - RIGHT - LEFT - 16), 1)

    def y(self, value: float) -> float:
        """Place from the top."""
        return round(HEIGHT - BOTTOM - (value - self.low) / (self.high - self.low) * (HEIGHT - BOTTOM - TOP), 1)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through points."""
        return "M" + "L".join(f"{self.x(a)} {self.y(b)}" for a, b in points)

    @property
    def rungs(self) -> list[tuple[float, str]]:
        """Values to write at the left."""
        return [(self.y(value), f"{value:g}") for value in _round_values(self.low, self.high)]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Values to write below."""
        return [(self.x(value), f"{value:g}") for value in _round_values(self.start, self.end)]


def lines(
    title: str,
    caption: str,
    what: str,
    places: Sequence[float],
    drawn: Sequence[Line],
    *,
    labels: Sequence[str] | None = None,
    has_band: bool = False,
    from_zero: bool = False,
) -> Picture:
    """Lines over common places, which may have labels; with a band, the area between the first two."""
    known = [value for line in drawn for value in line.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low = min(low, 0.0) if from_zero else low
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    scales = Scales(places[0], places[-1], 0.0 if from_zero and low == 0.0 else low - margin, high + margin)
    points = [
        [(at, value) for at, value in zip(places, line.values, strict=True) if value is not None] for line in drawn
    ]
    paths, marks = [], []
    for line, own in zip(drawn, points, strict=True):
        if line.style != "dots" and own:
            paths.append((line.style, scales.path(own)))
        if (line.style != "rule" and not has_band) or line.style == "dots":
            marks += [(line.style, scales.x(a), scales.y(b)) for a, b in own]
    names = [(line.style, line.name) for line in drawn if line.name]
    areas = [("fill", f"{scales.path([*points[0], *reversed(points[1])])}Z")] if has_band else []
    texts = [f"{at:g}" for at in places] if labels is None else labels
    room = max(1, min(8, TEXT // max(map(len, texts))))
    ticks = [(scales.x(at), text) for at, text in zip(places, texts, strict=True)][:: max(1, -(-len(places) // room))]
    return Picture(title, f"{caption} Horizontal: {what}.", ticks, scales.rungs, areas, paths, marks, _placed(names))


def against_diagonal(
    title: str,
    caption: str,
    places: Sequence[float],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    is_off: Sequence[bool],
    names: tuple[str, str, str],
) -> Picture:
    """Shares with intervals, against what they should be; names of the diagonal, of points on it and off it."""
    scales = Scales(0.0, 1.0, 0.0, 1.0)
    styles = ["out" if off else "in" for off in is_off]
    paths = [("rule", scales.path([(0.0, 0.0), (1.0, 1.0)]))]
    paths += [
        (style, scales.path([(at, end) for end in pair])) for style, at, pair in zip(styles, places, ends, strict=True)
    ]
    marks = [(style, scales.x(at), scales.y(value)) for style, at, value in zip(styles, places, values, strict=True)]
    shown = [pair for pair in zip(("rule", "in", "out"), names, strict=True) if pair[0] in {"rule", *styles}]
    return Picture(title, caption, scales.ticks, scales.rungs, [], paths, marks, _placed(shown))


def bars(title: str, caption: str, counts: Sequence[int], style: str, rule: float) -> Picture:
    """Counts in equal parts of 0 to 1, with a dashed line across."""
    n = len(counts)
    scales = Scales(0.0, 1.0, 0.0, 1.06 * max(*counts, 1))
    corners = [(0.0, 0.0)]
    for i, count in enumerate(counts):
        corners += [(i / n, count), ((i + 1) / n, count)]
    area = scales.path([*corners, (1.0, 0.0)]) + "Z"
    across = scales.path([(rule, 0.0), (rule, scales.high)])
    return Picture(title, caption, scales.ticks, scales.rungs, [(style, area)], [("rule", across)], [], [])


def _placed(names: Sequence[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """Names side by side above a picture, from the right."""
    place: float = WIDTH - RIGHT
    found = []
    for style, name in names:
        found.append((style, name, place))
        place -= 9.0 * len(name) + 24
    return found


def _round_values(low: float, high: float) -> list[float]:
    """Four to ten values between two others, in steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / 4.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= raw)
    digits = 12 - math.floor(math.log10(step))
    return [round(i * step, digits) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
