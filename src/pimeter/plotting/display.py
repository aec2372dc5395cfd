"""What all displays have in common: axes, a legend, and intervals of one output; and matplotlib's pyplot."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from pimeter.extras import how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from pimeter.interval_arrays import Aligned
    from pimeter.protocols import Array, FeatureTable, IntervalPredictor

# Told apart also by those who do not tell red from green, and in print.
INSIDE_COLOUR, OUTSIDE_COLOUR, LINE_COLOUR = "#0072b2", "#d55e00", "#222222"
FIGURE = (4.5, 3.4)  # inches


def pyplot() -> ModuleType:
    """The module, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        msg = f"Plots need matplotlib: {how_to_install('plot')}."
        raise ImportError(msg) from missing
    return plt


class Display:
    """What all displays have: axes and a figure."""

    ax_: Axes
    figure_: Figure

    def _begin(self, ax: Axes | None) -> Axes:
        """The axes to draw on: those given, or new ones; remembered with their figure."""
        self.ax_ = pyplot().subplots(figsize=FIGURE, layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.get_figure()  # type: ignore[assignment]
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.grid(alpha=0.2)
        self.ax_.set_axisbelow(True)
        return self.ax_

    def _legend(self, n_columns: int) -> None:
        """A legend above the axes, where it hides nothing."""
        self.ax_.legend(
            loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns, fontsize="small", frameon=False,
            handletextpad=0.4, columnspacing=1.0, borderaxespad=0.2,
        )  # fmt: skip


def predicted_bounds(
    estimator: IntervalPredictor, X: FeatureTable, level: ArrayLike | None, by: ArrayLike | None
) -> Array:
    """What an estimator predicts, or a TypeError."""
    if not hasattr(estimator, "predict_interval"):
        name = type(estimator).__name__
        msg = f"{name} has no predict_interval. Wrap it: IntervalRegressor({name}(...)), or use from_predictions."
        raise TypeError(msg)
    asked = {} if by is None else {"by": by}
    return np.asarray(estimator.predict_interval(X, **asked, **({} if level is None else {"confidence_level": level})))


def one_output(given: Aligned, *, has_levels: bool) -> Aligned:
    """Intervals of one output, with an axis of levels or without; or a ValueError if they have other axes."""
    if given.outputs or has_levels != (given.n_levels is not None):
        expected = "(n, 2, L), with an axis of levels" if has_levels else "(n, 2), at one level"
        msg = f"a display shows one output; y_interval must have shape {expected}. Show outputs one by one."
        raise ValueError(msg)
    return given
