"""Plots of forecasts with their intervals: of one window, and of some series of a panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import as_frame
from pimeter.coverage import percent
from pimeter.forecast.long_frames import bound_column
from pimeter.plotting import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from pimeter.forecast.long_frames import Names
    from pimeter.protocols import Array

FORECAST_COLOUR, TARGET_COLOUR = "#08306b", "#d55e00"  # the darkest of matplotlib's Blues, and what is told from it


def draw_panel(frame: Any, names: Names, model: str, levels: Array, n_series: int, ax: Axes | None) -> NDArray[Any]:
    """One panel for each of the first series: forecasts and a band for each level."""
    held = as_frame(frame)
    assert held is not None  # predict_interval gives frames
    ids = list(dict.fromkeys(held.get_column(names.series).to_list()))[: 1 if ax is not None else n_series]
    if ax is None:
        _, grid = pyplot().subplots(len(ids), 1, figsize=(7.0, 2.2 * len(ids)), squeeze=False, layout="constrained")
        axes = grid[:, 0]
    else:
        axes = np.array([ax], dtype=object)
    for one, axis in zip(ids, axes, strict=True):
        own = held.filter(held.get_column(names.series) == one).sort(names.time)
        time = own.get_column(names.time).to_numpy()
        for i, level in enumerate(sorted(levels.tolist(), reverse=True)):  # the widest below all others, and lightest
            shade = pyplot().cm.Blues(0.2 + 0.35 * i / max(len(levels) - 1, 1))
            low, high = (own.get_column(bound_column(model, side, level)).to_numpy() for side in ("lo", "hi"))
            axis.fill_between(time, low, high, color=shade, linewidth=0.0, label=percent(level))
        axis.plot(time, own.get_column(model).to_numpy(), color=FORECAST_COLOUR, label=model)
        axis.set_title(str(one), loc="left", fontsize="medium")
        axis.tick_params(axis="x", labelrotation=20.0)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}  # the bands leave no room within
    axes[0].legend(**above, fontsize="small", ncols=len(levels) + 1, frameon=False)
    return np.asarray(axes)


def draw_cone(
    forecast: Array,
    bounds: Array,
    levels: Array,
    y_true: ArrayLike | None,
    ax: Axes | None,
) -> Axes:
    """A forecast (h,) with bands (h, 2, L) for all levels, and what happened."""
    axis: Axes = pyplot().subplots(figsize=(4.5, 3.4), layout="constrained")[1] if ax is None else ax
    step, order = np.arange(1, len(forecast) + 1), np.argsort(-levels)
    for i, place in enumerate(order):  # the widest below all others, and lightest
        shade = pyplot().cm.Blues(0.2 + 0.35 * i / max(len(levels) - 1, 1))
        low, high = bounds[:, :, place].T
        axis.fill_between(step, low, high, color=shade, linewidth=0.0, label=percent(levels[place]))
    axis.plot(step, forecast, color=FORECAST_COLOUR, label="forecast")
    if y_true is not None:
        axis.plot(step, np.asarray(y_true, np.float64).ravel(), "o", color=TARGET_COLOUR, markersize=4, label="target")
    axis.set(xlabel="steps ahead", ylabel="target")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize="small", ncols=len(levels) + 2, frameon=False,
        handlelength=1.2, handletextpad=0.4, columnspacing=1.0,
    )  # fmt: skip
    return axis
