"""Plots of a measurement with matplotlib, from its plain dicts; axes in and out."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.coverage import percent, rounded
from pimeter.plotting.display import INSIDE_COLOUR, LINE_COLOUR, OUTSIDE_COLOUR, pyplot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pimeter.protocols import Flags

RANGE_COLOUR = "#bdbdbd"  # grey
N_INTERVALS = 60
LONGEST = 24  # characters of a label
HEADROOM = 1.18  # of a histogram, for its legend


def draw_overview(data: Mapping[str, Any], axes: NDArray[Any] | None = None) -> NDArray[Any]:
    """Residuals, coverage against level, coverage in subgroups, and residuals by prediction."""
    if axes is None:
        grid: NDArray[Any] = pyplot().subplots(2, 2, figsize=(11.5, 8), layout="constrained")[1]
    else:
        grid = np.asarray(axes)
        if grid.size != 4:
            msg = f"axes must be four; got {grid.size}. Give those of plt.subplots(2, 2), or none."
            raise ValueError(msg)
    for draw, ax in zip((draw_residuals, draw_coverage, draw_subgroups, draw_by_prediction), grid.ravel(), strict=True):
        draw(data, ax)
    return np.reshape(grid, (2, 2))


def overview_png(data: Mapping[str, Any]) -> bytes | None:
    """The overview as PNG, without a window; None where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 8), layout="constrained")
    draw_overview(data, figure.subplots(2, 2))
    file = BytesIO()
    figure.savefig(file, format="png", dpi=72)
    return file.getvalue()


def draw_residuals(data: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """How residuals are distributed, and the margin."""
    ax = _axes(ax)
    from matplotlib import patches

    edges, counts = (np.array(data["sample"][key], float) for key in ("bin_edges", "bin_counts"))
    lower, upper = data["margin"]
    bars = (edges[:-1], counts, np.diff(edges))
    ax.bar(*bars, align="edge", color=OUTSIDE_COLOUR, label="outside")
    within = ax.bar(*bars, align="edge", color=INSIDE_COLOUR, label="within the interval")
    # The bounds of the interval seldom are those of a bin.
    span = patches.Rectangle((-lower, 0), lower + upper, 1, transform=ax.get_xaxis_transform())
    for bar in within:
        bar.set_clip_path(span)
    for bound in (-lower, upper):
        ax.axvline(bound, ymax=1 / HEADROOM, color=LINE_COLOUR, linewidth=1, linestyle="--")  # the legend is above
    beyond = data["sample"]["n_beyond"]
    ax.set(xlabel="residual: target minus prediction" + (f" ({beyond:,} farther out)" if beyond else ""), ylabel="rows")
    ax.legend(edgecolor="none", framealpha=1, loc="upper left", ncols=2)
    ax.set_ylim(0, HEADROOM * max(counts.max(), 1))
    asked, guaranteed = data["confidence_level"], data["guaranteed_level"]
    expected = percent(guaranteed, 3) if guaranteed < asked else percent(asked)
    return _finished(ax, f"{expected} of residuals expected within ±{rounded(upper, 3)}")


def draw_coverage(data: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Cross-fitted coverage against the level asked for."""
    ax = _axes(ax)
    curves = data["curves"]
    levels = 100 * np.array(curves["levels"])
    coverage, low, high = (
        100 * np.array(curves[key], float) for key in ("coverage", "coverage_lower", "coverage_upper")
    )
    ax.fill_between(
        levels,
        low,
        high,
        color=RANGE_COLOUR,
        alpha=0.5,
        linewidth=0,
        label="where the true coverage lies (90 % confidence)",
    )
    ax.plot([levels[0], 100], [levels[0], 100], color=LINE_COLOUR, linewidth=1, linestyle="--", label="as asked for")
    ax.plot(levels, coverage, color=INSIDE_COLOUR, linewidth=2, label="measured (cross-fitted)")
    here = curves["levels"].index(data["confidence_level"])
    if np.isfinite(coverage[here]):
        ax.plot(levels[here], coverage[here], "o", color=INSIDE_COLOUR, markersize=8)
        text = f"{percent(curves['coverage'][here], 3)} at {percent(data['confidence_level'])}"
        ax.annotate(
            text,
            (levels[here], coverage[here]),
            (-6, -52),
            textcoords="offset points",
            ha="center",
            color=INSIDE_COLOUR,
        )
    else:
        ax.text(0.5, 0.5, "One row cannot be cross-fitted.", transform=ax.transAxes, ha="center", color=LINE_COLOUR)
    ax.set(xlabel="level asked for, %", ylabel="rows covered, %", xlim=(levels[0], 100))
    ax.legend(frameon=False, loc="upper left")
    return _finished(ax, "Coverage against the level asked for")


def draw_subgroups(data: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Cross-fitted coverage across quintiles of the prediction, per category, and by the feature that differs most."""
    ax = _axes(ax)
    shown = {division["of"] for division in data["curves"]["subgroups"]}
    subgroups = [subgroup for subgroup in data["subgroups"] if subgroup["of"] in shown]
    level = 100 * data["confidence_level"]
    if not subgroups:
        ax.text(0.5, 0.5, "One row has no subgroups.", transform=ax.transAxes, ha="center", color=LINE_COLOUR)
    place = np.arange(len(subgroups))[::-1]
    for y, subgroup in zip(place, subgroups, strict=True):
        coverage, low, high = (100 * subgroup[key] for key in ("coverage", "lower", "upper"))
        colour = INSIDE_COLOUR if low <= level <= high else OUTSIDE_COLOUR
        ax.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt", alpha=0.55)
        ax.plot(coverage, y, "o", color=colour, markersize=7)
    ax.axvline(level, color=LINE_COLOUR, linewidth=1, linestyle="--")
    ax.set_yticks(place, [f"{_short(subgroup)}\n({subgroup['rows']:,} rows)" for subgroup in subgroups])
    ax.set(
        xlabel=f"rows covered, %, with simultaneous intervals; dashed: {percent(data['confidence_level'])}",
        ylim=(-0.6, max(len(subgroups), 1) - 0.4),
    )
    return _finished(ax, "Cross-fitted coverage in subgroups of the rows")


def draw_by_prediction(data: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Residuals against predictions, with the interval around them."""
    ax = _axes(ax)
    target, prediction = (np.array(data["sample"][key], float) for key in ("y_true", "y_pred"))
    residuals = target - prediction
    lower, upper = data["margin"]
    ax.axhspan(-lower, upper, color=INSIDE_COLOUR, alpha=0.12, linewidth=0)
    ax.axhline(0, color=LINE_COLOUR, linewidth=1)
    _points(ax, prediction, residuals, (residuals >= -lower) & (residuals <= upper))
    n = len(residuals)
    shown = "all rows" if n == data["n_rows"] else f"{n:,} of {data['n_rows']:,} rows"
    ax.set(xlabel=f"prediction ({shown})", ylabel="residual: target minus prediction")
    return _finished(ax, "Residuals by prediction")


def draw_intervals(data: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Targets of some rows with their intervals, in the order of the prediction."""
    ax = _axes(ax)
    target, prediction = (np.array(data["sample"][key], float) for key in ("y_true", "y_pred"))
    target, prediction = target[:N_INTERVALS], prediction[:N_INTERVALS]  # rows of a sample are in random order
    order = np.argsort(prediction, kind="stable")
    target, prediction = target[order], prediction[order]
    lower, upper = data["margin"]
    place = np.arange(len(target))
    ax.vlines(
        place, prediction - lower, prediction + upper, color=INSIDE_COLOUR, alpha=0.35, linewidth=4, label="interval"
    )
    ax.plot(place, prediction, "_", color=LINE_COLOUR, markersize=6, label="prediction")
    _points(ax, place, target, (target >= prediction - lower) & (target <= prediction + upper))
    ax.set(
        xlabel=f"{len(target)} of {data['n_rows']:,} rows, from the lowest to the highest prediction", ylabel="target"
    )
    ax.set_xticks([])
    ax.legend(frameon=False, loc="upper left", ncols=4)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.12 * (high - low))
    return _finished(ax, f"Intervals for {percent(data['confidence_level'])}")


def _points(ax: Axes, x: NDArray[Any], y: NDArray[Any], inside: Flags) -> None:
    """Targets inside and outside of their interval, told apart by shape and colour."""
    ax.plot(x[inside], y[inside], ".", color=INSIDE_COLOUR, alpha=0.75, markersize=6, label="inside")
    ax.plot(x[~inside], y[~inside], "x", color=OUTSIDE_COLOUR, markersize=7, markeredgewidth=2, label="outside")


def _short(subgroup: Mapping[str, Any]) -> str:
    """A label that fits; a dollar sign would begin a formula."""
    label = str(subgroup["label"]).replace("\n", " ")
    label = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    of = "" if subgroup["of"] == "by" else f"{subgroup['of']} "
    return f"{of}{label}".replace("$", r"\$")


def _finished(ax: Axes, title: str) -> Axes:
    ax.set_title(title, loc="left", fontsize=12, color=LINE_COLOUR)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.2)
    ax.set_axisbelow(True)
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    new: Axes = pyplot().subplots(figsize=(7, 4.5), layout="constrained")[1]
    return new
