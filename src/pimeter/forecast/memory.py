"""What a cone with a context keeps: the context, and the misses of the intervals that it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.forecast.context import WARM_UP, CentreAndScale, Context
from pimeter.forecast.features import Standardised, feature_array
from pimeter.forecast.window_arrays import as_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.conformal.scores import Tails
    from pimeter.protocols import Array, FeatureTable, Index

LARGEST_SQUARED = 1e100  # error or forecast: squares stay finite
SMALLEST_UNIT = 1e-100  # mean absolute error that is a unit
MAX_DEBT = 100.0  # misses beyond those allowed from which on a margin is twice the largest score


class StartedMemory(NamedTuple):
    """A memory of the windows of `fit`, and the errors of these, standardised: (series, h, n)."""

    memory: Memory
    standardised: Array


class Memory:
    """Context and misses of the steps of one series or of several, a column for each.

    `debts` and `largest` have a row for each direction of the tails: misses beyond those allowed, counted against the
    margins that were in force when the window was made, and the largest standardised residual.
    """

    def __init__(self, context: Context, features: Standardised, shape: tuple[int, int], tails: Tails) -> None:
        self._context, self._standardised, self._shape, self._tails = context, features, shape, tails
        n_columns, size = len(context.unit), int(context.until_known.max()) + 1
        self.debts = np.zeros((len(tails.directions), n_columns))
        self.largest = np.zeros(n_columns)
        self._issued = np.zeros((size, *self.debts.shape))
        self._n_rows = 0

    @classmethod
    def started(
        cls, errors: Array, y_pred: ArrayLike, until_known: Index, features: FeatureTable | None, tails: Tails
    ) -> StartedMemory:
        """A memory that knows all that is known when the window after the last one of `fit` is made."""
        n_series, h, n = errors.shape
        rows, forecasts = as_columns(errors), as_columns(forecast_columns(y_pred, errors))
        table = feature_array(features, n, n_series, h)
        delays = np.tile(until_known, n_series)
        known = arriving(rows, delays), arriving(forecasts, delays)
        if np.isnan(known[0]).all(axis=0).any():
            step = int(np.isnan(known[0]).all(axis=0).argmax()) % h + 1
            msg = f"No target of step {step} was known when the window after the last one was made; give more windows."
            raise ValueError(msg)
        unit = np.nanmean(np.abs(known[0]), axis=0)
        is_unit = unit > SMALLEST_UNIT
        first = np.arange(n_series).repeat(h) * h
        context = Context(np.where(is_unit, unit, 1.0), known[1], first, delays, table.shape[-1])
        memory = cls(context, Standardised.of(table), (n_series, h), tails)
        units = memory._standardised.units(table)
        found = np.full_like(rows, np.nan)
        for i, (row, forecast, own) in enumerate(zip(*known, units, strict=True)):
            context.make_window(own)
            found[i] = context.learn(row, forecast)
        found[: min(WARM_UP, n // 4)] = np.nan
        memory.largest = np.fmax.reduce(np.abs(found), axis=0, initial=0.0)
        return StartedMemory(memory, by_window(found, delays).T.reshape(n_series, h, n))

    def learn(self, errors: Array, forecasts: Array, features: Array, margins: list[Array], level: float) -> Array:
        """A window was made with these margins in force, then a row became known (k,): standardised errors (k,)."""
        size, now = len(self._issued), self._n_rows % len(self._issued)
        self._issued[now] = np.stack([one.ravel() for one in margins])
        self._context.make_window(self._standardised.units(features))
        found = self._context.learn(errors, forecasts)
        delays = self._context.until_known
        was_given = delays <= self._n_rows + 1
        issued = self._issued[(self._n_rows + 1 - delays) % size, :, np.arange(len(delays))].T
        for i, direction in enumerate(self._tails.directions):
            score = self._tails.scores(found, direction)
            counts = was_given & ~np.isnan(score)
            self.debts[i] += np.where(counts, (score > issued[i]) - (1.0 - level), 0.0)
        self.largest = np.fmax(self.largest, np.abs(found))
        self._n_rows += 1
        return found

    def features(self, given: FeatureTable | None, n: int) -> Array:
        """Features of n windows (n, k, q), as many as in `fit`."""
        table = feature_array(given, n, *self._shape)
        expected = len(self._standardised.location)
        if table.shape[-1] != expected:
            msg = f"features must have {expected} columns, as in fit; got {table.shape[-1]}."
            raise ValueError(msg)
        return table

    def widened(self, quantiles: list[Array]) -> list[Array]:
        """Quantiles of each direction, (series, h); twice the largest score where misses are far too many."""
        return [
            np.where(debt.reshape(own.shape) < MAX_DEBT, own, np.maximum(own, 2.0 * self.largest.reshape(own.shape)))
            for debt, own in zip(self.debts, quantiles, strict=True)
        ]

    def centre_and_scale(self, forecast: Array, features: Array) -> CentreAndScale:
        """What is expected now of the residuals of windows, ([series,] n, h)."""
        n_series, h = self._shape
        columns = forecast.reshape(n_series, -1, h).transpose(1, 0, 2).reshape(-1, n_series * h)
        table = self._standardised.units(features)
        outlooks = [self._context.now(own, units) for own, units in zip(columns, table, strict=True)]
        back = [
            np.array(values).reshape(len(columns), *self._shape).transpose(1, 0, 2).reshape(forecast.shape)
            for values in ([one.centre for one in outlooks], [one.scale for one in outlooks])
        ]
        return CentreAndScale(*back)


class Newest(NamedTuple):
    """The newest windows, whose later steps become known while others are made: (series, h, windows) each."""

    errors: Array
    forecasts: Array
    until_known: Index

    @classmethod
    def of(cls, errors: Array, y_pred: ArrayLike, until_known: Index, *, is_learned: bool) -> Newest:
        """The newest windows of `fit`; nothing of them is to come if all was learned there."""
        size = int(until_known.max())
        forecasts = forecast_columns(y_pred, errors)
        room = np.full((*errors.shape[:2], max(size - errors.shape[-1], 0)), np.nan)
        kept = [np.concatenate([room, one[..., -size:]], axis=-1) for one in (errors, forecasts)]
        newest = cls(kept[0], kept[1], until_known)
        return newest.forgotten() if is_learned else newest

    def forgotten(self) -> Newest:
        """Nothing of them is to come: it was learned, or comes by itself."""
        return self._replace(errors=np.full_like(self.errors, np.nan))

    def followed(self, errors: Array, forecasts: Array) -> Followed:
        """What becomes known after each of these windows is made, and the newest ones after all of them."""
        size, n = self.errors.shape[-1], errors.shape[-1]
        joined = [np.concatenate(pair, axis=-1) for pair in ((self.errors, errors), (self.forecasts, forecasts))]
        first = size + 1 - self.until_known
        rows = [np.stack([one[:, j, i : i + n] for j, i in enumerate(first)], axis=1) for one in joined]
        kept = [one[..., n:] for one in joined]
        return Followed(
            arriving=Newest(rows[0], rows[1], self.until_known), newest=Newest(kept[0], kept[1], self.until_known)
        )


class Followed(NamedTuple):
    """What became known while windows were made, and the newest windows after them."""

    arriving: Newest
    newest: Newest


def forecast_columns(y_pred: ArrayLike, errors: Array) -> Array:
    """Forecasts as errors are laid out, (series, h, n)."""
    return np.asarray(y_pred, np.float64).reshape(len(errors), -1, errors.shape[1]).transpose(0, 2, 1)


def arriving(rows: Array, delays: Index) -> Array:
    """Rows of windows (n, k) as they become known: row i has what is new when window i + 1 is made, NaN before any."""
    found = np.full_like(rows, np.nan)
    for column, delay in enumerate(delays.tolist()):
        found[delay - 1 :, column] = rows[: max(len(rows) - delay + 1, 0), column]
    return found


def by_window(arrived: Array, delays: Index) -> Array:
    """Rows as they became known (n, k) as rows of windows, NaN for what is not known yet."""
    found = np.full_like(arrived, np.nan)
    for column, delay in enumerate(delays.tolist()):
        found[: max(len(arrived) - delay + 1, 0), column] = arrived[delay - 1 :, column]
    return found


def check_magnitudes(errors: Array, y_pred: ArrayLike) -> None:
    """Refuse errors and forecasts that are too large to be squared."""
    largest = max(np.fmax.reduce(np.abs(each), axis=None, initial=0.0) for each in (errors, np.asarray(y_pred)))
    if largest > LARGEST_SQUARED:
        msg = f"a context takes y_true and y_pred up to {LARGEST_SQUARED:g}; got {largest:g}. Choose a larger unit."
        raise ValueError(msg)
