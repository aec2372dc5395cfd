"""Why are these intervals wide? What features add to the widths of the widest that a model gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import is_missing, some_rows
from pimeter.evaluation.diagnosis import forest
from pimeter.evaluation.diagnosis.columns import MISSING, distinct_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.evaluation.diagnosis.columns import Column
    from pimeter.protocols import Array, Index

N_WIDEST = 5  # intervals that are explained
N_FEATURES_SHOWN = 3  # features of each, the largest contributions
LEAST_SHOWN = 0.05  # contribution that is shown, as a fraction of what the width has beyond the mean
MIN_ROWS_TO_LEARN_WIDTHS = 100  # below which trees see nothing
MAX_ROWS_TO_LEARN_WIDTHS = 2_000
MAX_FEATURES = 50
MAX_COMPOSED = 20_000  # rows with features of two others, in all orders together
N_ORDERS = 40  # in which features are exchanged, each with its reverse
IN_LEAF = 10  # rows: widths have little noise, if features explain them
HELD_OUT = 0.25  # fraction of the rows that say how much of the widths the features explain
MIN_EXPLAINED = 0.5  # fraction of the variance of widths, below which nothing is said


@dataclass(frozen=True)
class WidthContribution:
    """What a feature adds to the mean width of intervals; negative where it makes it narrower."""

    feature: str
    value: str
    width: float


@dataclass(frozen=True)
class WideInterval:
    """One of the widest intervals.

    Attributes
    ----------
    row : int
        Its place among the rows given, from 0.
    width : float
        Its width.
    contributions : tuple of WidthContribution
        Features that add or take most, the largest first.
    rest : float
        What other features add, and what no feature explains: with contributions and the mean width it makes the width.
    """

    row: int
    width: float
    contributions: tuple[WidthContribution, ...]
    rest: float


@dataclass(frozen=True)
class WideIntervals:
    """Why the widest intervals are wide, as far as features tell.

    Attributes
    ----------
    typical_width : float
        Mean width.
    explained : float
        Fraction of the variance of widths that features explain, on rows that trees have not learned from.
    rows : tuple of WideInterval
        The widest, the widest first.
    """

    typical_width: float
    explained: float
    rows: tuple[WideInterval, ...]


def widest(given_columns: Sequence[Column], every_width: Array, rows: Index) -> WideIntervals | None:
    """What features, of these rows, add to the widest intervals of them; None where they do not tell.

    A forest learns widths from features. Contributions are Shapley values of it, as those of `explain`: features of
    rows drawn at random are exchanged for those of the wide one, one by one, in many orders.
    """
    d, width = len(given_columns), every_width[rows]
    if not 0 < d <= MAX_FEATURES or len(width) < MIN_ROWS_TO_LEARN_WIDTHS or not np.isfinite(every_width).all():
        return None
    if np.ptp(width) <= 1e-9 * width.max():
        return None
    rng = np.random.default_rng(len(width))
    bins = forest.binned([column.numbers for column in given_columns])
    some = rng.permutation(some_rows(len(width), MAX_ROWS_TO_LEARN_WIDTHS))
    held_out, learned = np.split(some, [round(HELD_OUT * len(some))])
    wide = np.argsort(-width, kind="stable")[:N_WIDEST]
    orders = _orders(rng, d)
    background = rng.choice(learned, len(orders))
    composed = np.concatenate([_composed(bins[i], bins[background], orders) for i in wide])
    scale = width.max()
    predicted = scale * forest.expected(
        np.concatenate([bins, composed]),
        np.concatenate([width, np.zeros(len(composed))]) / scale,
        learned,
        rng,
        IN_LEAF,
    )
    unexplained = np.var(width[held_out] - predicted[held_out]) / max(float(np.var(width[held_out])), 1e-300)
    if 1.0 - unexplained < MIN_EXPLAINED:
        return None
    paths = predicted[len(bins) :].reshape(len(wide), len(orders), d + 1)
    adds = np.zeros((len(wide), d))
    for turn, order in enumerate(orders):
        adds[:, order] += np.diff(paths[:, turn]) / len(orders)
    typical = float(every_width.mean())
    found = tuple(
        _explained(given_columns, i, int(rows[i]), float(width[i]), float(width[i]) - typical, own)
        for i, own in zip(wide.tolist(), adds, strict=True)
    )
    return WideIntervals(typical, float(1.0 - unexplained), found)


def _explained(
    given_columns: Sequence[Column], i: int, row: int, width: float, beyond: float, adds: Array
) -> WideInterval:
    """The interval of the i-th of the rows that were looked at, with the features that add or take most."""
    parts = tuple(
        WidthContribution(given_columns[k].name, _text(given_columns[k], i), float(adds[k]))
        for k in np.argsort(-np.abs(adds), kind="stable")[:N_FEATURES_SHOWN].tolist()
        if abs(adds[k]) >= LEAST_SHOWN * beyond
    )
    return WideInterval(row, width, parts, beyond - sum(part.width for part in parts))


def _orders(rng: np.random.Generator, d: int) -> Index:
    """Orders of features, each followed by its reverse somewhere: fewer where features are many."""
    n = max(1, min(N_ORDERS, MAX_COMPOSED // (2 * N_WIDEST * (d + 1))))
    half = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    return np.concatenate([half, half[:, ::-1]])


def _composed(one: Index, others: Index, orders: Index) -> Index:
    """Rows between another one and the one, d + 1 for each order: features of the one come in, one by one."""
    d = len(one)
    turn = np.argsort(orders, axis=1)  # at which a feature is exchanged
    is_own = turn[:, None, :] < np.arange(d + 1)[:, None]
    return np.asarray(np.where(is_own, one, others[:, None, :]).reshape(-1, d))


def _text(column: Column, row: int) -> str:
    """The value of a row, as text."""
    value = column.values[row]
    if not column.is_numeric:
        return MISSING if is_missing(value) else str(value)
    if not np.isfinite(value):
        return MISSING
    return column.text(float(value)) if column.text else distinct_texts([float(value)])[0]
