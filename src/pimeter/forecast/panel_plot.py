"""Plots of some series of a panel with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import as_frame
from pimeter.plotting import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from pimeter.forecast.long_frames import Names

FORECAST_COLOUR = "#08306b"  # the darkest of matplotlib's Blues


def draw_panel(
    frame: Any, names: Names, model: str, levels: NDArray[np.float64], n_series: int, ax: Axes | None
) -> NDArray[Any]:
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
            name, shade = f"{100 * level:.6g}", pyplot().cm.Blues(0.2 + 0.35 * i / max(len(levels) - 1, 1))
            low, high = (own.get_column(f"{model}-{side}-{name}").to_numpy() for side in ("lo", "hi"))
            axis.fill_between(time, low, high, color=shade, linewidth=0.0, label=f"{name} %")
        axis.plot(time, own.get_column(model).to_numpy(), color=FORECAST_COLOUR, label=model)
        axis.set_title(str(one), loc="left", fontsize="medium")
        axis.tick_params(axis="x", labelrotation=20.0)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}  # the bands leave no room within
    axes[0].legend(**above, fontsize="small", ncols=len(levels) + 1, frameon=False)
    return np.asarray(axes)
