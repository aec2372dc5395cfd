"""Arrays of intervals beside their targets: which axis is which, bounds in order, means over rows and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pimeter.arrays import as_frame
from pimeter.bandwidth import safe_factor
from pimeter.frames import refuse_other_order
from pimeter.validation import finite_numbers, first_index, known_numbers, levels_array, row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Flags, Table

Multioutput = Literal["uniform_average", "raw_values"]


@dataclass(frozen=True)
class Aligned:
    """Targets and bounds that broadcast."""

    target: Array
    lower: Array
    upper: Array
    outputs: bool  # whether the second axis is one of outputs
    n_levels: int | None  # length of the last axis where it is one of levels


def aligned(y_true: ArrayLike, y_interval: Table) -> Aligned:
    """Validate both; the targets get a last axis of length 1 where the intervals have levels."""
    refuse_other_order("y_true", y_true, "y_interval", y_interval)
    target, interval = targets(y_true), interval_numbers(y_interval)
    axis = target.ndim
    fits = interval.ndim in {axis + 1, axis + 2} and interval.shape[:axis] == target.shape and interval.shape[axis] == 2
    if not fits:
        shape = ", ".join(map(str, target.shape))
        msg = (
            f"For y_true of shape {target.shape} y_interval must have shape ({shape}, 2), or ({shape}, 2, L) for L "
            f"levels; got {interval.shape}. Give the lower and the upper bound of each target; ravel() makes a single "
            f"column of targets (n,), and of a frame take the columns lower and upper."
        )
        raise ValueError(msg)
    lower, upper = lower_and_upper(interval, axis)
    if interval.ndim == axis + 1:
        return Aligned(target, lower, upper, axis == 2, None)
    return Aligned(target[..., None], lower, upper, axis == 2, interval.shape[-1])


def interval_numbers(y_interval: Table) -> Array:
    """Bounds (n[, k], 2[, L]), of which none is NaN; also of a frame that ``predict_interval(as_frame=True)`` made."""
    frame = as_frame(y_interval)
    if frame is None or not {"lower", "upper"} <= set(frame.columns):
        return known_numbers("y_interval", y_interval)  # type: ignore[arg-type]
    bounds = known_numbers("y_interval", frame.select("lower", "upper").to_numpy())
    places = [name for name in ("row", "output", "level") if name in frame.columns]
    if "row" not in places:
        return bounds
    found = [np.unique(frame.get_column(name).to_numpy(), return_inverse=True) for name in places]
    shape = tuple(len(values) for values, _ in found)
    table = np.full((*shape, 2), np.nan)
    table[tuple(codes for _, codes in found)] = bounds
    if np.isnan(table).any() or table.size != bounds.size:
        msg = (
            f"y_interval is a frame of {len(bounds)} rows; expected one for each of {' x '.join(map(str, shape))} "
            f"{', '.join(places)}s. Give all that predict_interval(as_frame=True) returned."
        )
        raise ValueError(msg)
    return np.moveaxis(table, -1, -2) if "level" in places else table


def lower_and_upper(interval: Array, axis: int) -> tuple[Array, Array]:
    """Lower and upper bounds, or a ValueError where no number lies between them."""
    lower, upper = np.moveaxis(interval, axis, 0)
    empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if empty.any():
        msg = (
            f"A lower bound must not exceed its upper bound; at [{first_index(empty)}] they are {lower[empty][0]} and "
            f"{upper[empty][0]} ({empty.sum()} such of {empty.size}). Check the order of the bounds."
        )
        raise ValueError(msg)
    return lower, upper


def uncrossed(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds that meet in the middle where they cross, as they may below 50 % and where signed margins are learned."""
    crossed = lower > upper
    if not crossed.any():
        return lower, upper
    with np.errstate(invalid="ignore"):  # bounds that are both infinite do not cross
        middle = 0.5 * lower + 0.5 * upper
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


def bound_axis_of(shape: tuple[int, ...], given: int | None) -> int:
    """Which axis holds the bounds, found by its length or as told."""
    possible = [axis for axis in (1, 2) if len(shape) - axis in {1, 2} and shape[axis] == 2]
    if given is not None and given in possible:
        return given
    if given is not None or not possible:
        told = "" if given is None else f" and bound_axis={given}"
        expected = "(n, 2) or (n, k, 2), or (n, 2, L) or (n, k, 2, L) with L levels"
        msg = f"y_interval must have shape {expected}; got {shape}{told}."
        raise ValueError(msg)
    if len(possible) > 1:
        msg = (
            f"y_interval of shape {shape} may be two outputs or two levels. Say which axis holds the bounds: "
            f"bound_axis=2 for outputs, bound_axis=1 for levels."
        )
        raise ValueError(msg)
    return possible[0]


def targets(y_true: ArrayLike) -> Array:
    """Finite targets of shape (n,) or (n, k)."""
    target = finite_numbers("y_true", y_true)
    if target.ndim not in {1, 2}:
        msg = f"y_true must have shape (n,) or (n, k); got {target.shape}."
        raise ValueError(msg)
    return target


def interval_scores(target: Array, lower: Array, upper: Array, level: float | Array) -> Array:
    """Interval score of each row: the width, and ``2 / (1 - level)`` times how far the target lies outside."""
    outside = np.maximum(lower - target, 0.0) + np.maximum(target - upper, 0.0)
    return np.asarray(upper - lower + 2.0 / (1.0 - level) * outside)


def levels_of(confidence_level: ArrayLike, n_levels: int | None) -> Array:
    """The level of each interval: a number, or one for each place on the axis of levels."""
    level = levels_array("confidence_level", confidence_level)
    if level.shape not in ({()} if n_levels is None else {(n_levels,), ()} if n_levels == 1 else {(n_levels,)}):
        expected = "a number, as y_interval has no axis of levels" if n_levels is None else f"{n_levels} numbers"
        msg = f"confidence_level must be {expected}; got {level.tolist()}. Give the levels that y_interval aims at."
        raise ValueError(msg)
    return level


def relative_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    """Weights of n rows in a safe range: only ratios count, and sums of the largest floats are none."""
    if sample_weight is None:
        return None
    weights = row_weights("sample_weight", sample_weight, n)
    weights *= safe_factor(float(weights.max()))
    return weights


def mean_row(values: Array | Flags, sample_weight: ArrayLike | None) -> Array:
    """Mean over rows; those of weight 0 are left out, as 0 times an infinite width is not a number."""
    weight = relative_weights(sample_weight, len(values))
    if weight is None:
        return np.asarray(values.mean(axis=0))
    return np.asarray(np.average(values[weight > 0], axis=0, weights=weight[weight > 0]))


def over_outputs(score: Array, has_outputs: bool, multioutput: Multioutput, *origins: Array) -> float | Array:
    """Mean over outputs if there are any and it is asked for; what is one number becomes a float."""
    if multioutput not in {"uniform_average", "raw_values"}:
        msg = f"multioutput must be 'uniform_average' or 'raw_values'; got {multioutput!r}."
        raise ValueError(msg)
    if has_outputs and multioutput == "uniform_average":
        score = score.mean(axis=0)
    if not np.isfinite(score).all() and all(np.isfinite(part).all() for part in origins):
        msg = "The score is too large for float64: measure y_true and the intervals or quantiles in a larger unit."
        raise ValueError(msg)
    return score if np.ndim(score) else float(score)
