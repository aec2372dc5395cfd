"""What was known when a forecast was made, and what it says of the residual to come: a centre and a scale.

Two regressions for each step ahead, fitted by least squares that slowly forget. The first predicts the residual from
the newest residuals known by then, the forecast, how it differs from the newest ones, and the caller's features. The
second predicts the logarithm of the absolute innovation, the residual less that centre, from how large innovations were
of late, and so how wide the interval has to be. Residuals that follow count in these units, so that what remains for
the neurons hardly depends on the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

LAGS = 3  # newest residuals of a step that are looked at, and as many of its newest forecasts
FRESH = 2  # newest residuals of the first step, which are the newest of all
MAGNITUDE_RATES = (0.3, 0.1, 0.03, 0.005)  # weights of the newest innovation in the means of absolute ones
MEMORY_OF_CENTRE, MEMORY_OF_SCALE = 0.9995, 0.999  # what a row counts one row later
PENALTY_OF_CENTRE, PENALTY_OF_SCALE = 10.0, 30.0  # rows that speak for coefficients as they were at the start
MAX_SCALES_FOR_CENTRE = 6.0  # scales beyond which an innovation counts no more for the centre
RANGE_OF_LOGS = (0.05, 20.0)  # absolute innovations, in scales, between which logarithms are taken
MEAN_LOG = -0.635  # of the absolute value of a standard normal
LEAST_MAGNITUDE = 1e-3  # smallest size, in units of the residuals of `fit`
MAX_LOG_SCALE = 2.5  # by which the logarithm of a scale differs from that of the slowest mean at most
MAX_UNITS = 1e8  # units beyond which residuals and forecasts are all the same
MOST_WEIGHT = 1e6  # of a squared input: matrices stay far from singular
WARM_UP = 300  # rows whose innovations do not count, or a quarter of all: coefficients are not learned yet


class Outlook(NamedTuple):
    """What is said of the residuals of one window, or was said of those that arrive in one row; all by column."""

    centre: Array  # (k,)
    scale: Array  # (k,)
    for_centre: Array  # (k, d) what the centre was predicted from
    for_scale: Array  # (k, e)


class CentreAndScale(NamedTuple):
    """Where the residuals of windows are expected, with an entry for each step."""

    centre: Array  # how far off the forecast
    scale: Array


class ForgettingRegressions:
    """One least-squares fit for each of k columns; rows count less as they age, the penalty does not."""

    def __init__(self, start: Array, memory: float, penalty: float) -> None:
        self.start, self.memory, self.penalty = start, memory, penalty
        n_columns, n_inputs = start.shape
        self.coefficients = start
        self._matrix = np.tile(penalty * np.eye(n_inputs), (n_columns, 1, 1))
        self._vector = np.zeros_like(start)

    def learn(self, inputs: Array, targets: Array, weights: Array) -> None:
        """One row of inputs (k, d) and targets (k,); columns of weight 0 stay as they are."""
        memory = np.where(weights > 0.0, self.memory, 1.0)[:, None]
        weighted = weights[:, None] * inputs
        matrix = memory[..., None] * self._matrix
        matrix += weighted[:, :, None] * inputs[:, None, :]
        diagonal = np.einsum("kdd->kd", matrix)
        diagonal += (1.0 - memory) * self.penalty
        surprise = targets - np.einsum("kd,kd->k", inputs, self.start)
        self._matrix, self._vector = matrix, memory * self._vector + weighted * surprise[:, None]
        self.coefficients = self.start + np.linalg.solve(matrix, self._vector[..., None])[..., 0]


class Context:
    """What the cone remembers of k columns, the steps of one series or of several, as rows of residuals arrive.

    A row has one residual for each column: that of step j is of the window made ``until_known[j]`` windows before.

    Parameters
    ----------
    unit : array of shape (k,)
        Typical absolute residual of each column.
    forecasts : array of shape (n, k)
        Those of `fit`, by which later ones are standardised.
    first : array of int of shape (k,)
        The column of the first step of the same series.
    until_known : array of int of shape (k,)
        How many windows later a residual is known.
    n_features : int
        Of the caller, for each column.
    """

    def __init__(self, unit: Array, forecasts: Array, first: Index, until_known: Index, n_features: int) -> None:
        k = len(unit)
        self.unit, self.first, self.until_known = unit, first, until_known
        self.location = np.nanmean(forecasts, axis=0)
        spread = np.nanstd(forecasts, axis=0)
        self.spread = np.where(spread > 0.0, spread, unit)
        self._columns = np.arange(k)
        self._is_first = first == self._columns
        start = np.zeros((k, 1 + len(MAGNITUDE_RATES) + FRESH + 2 + n_features))
        start[:, 1 + MAGNITUDE_RATES.index(0.03)] = 1.0
        self.of_centre = ForgettingRegressions(
            np.zeros((k, 2 + 2 * LAGS + FRESH + n_features)), MEMORY_OF_CENTRE, PENALTY_OF_CENTRE
        )
        self.of_scale = ForgettingRegressions(start, MEMORY_OF_SCALE, PENALTY_OF_SCALE)
        self._n_known = np.zeros(k)
        # Of each of the newest windows as they were when it was made, the present moment in the place of the next one.
        size = int(until_known.max()) + 1
        self._now = 0
        self._residuals = np.zeros((size, LAGS, k))
        self._forecasts = np.tile(self.location, (size, LAGS, 1))
        self._magnitudes = np.tile(unit, (size, len(MAGNITUDE_RATES), 1))
        self._largest = np.tile(unit, (size, 1))  # absolute residual: no centre is further from the forecast
        self._for_centre = np.tile(self.of_centre.coefficients, (size, 1, 1))
        self._for_scale = np.tile(start, (size, 1, 1))
        self._features = np.zeros((size, k, n_features))

    def make_window(self, features: Array) -> None:
        """A window is made: with these features of its steps (k, n_features), and with what is known now."""
        now, after = self._now, (self._now + 1) % len(self._residuals)
        self._features[now] = features
        rings = (self._residuals, self._forecasts, self._magnitudes, self._largest, self._for_centre, self._for_scale)
        for ring in rings:
            ring[after] = ring[now]
        self._now = after

    def now(self, forecast: Array, features: Array) -> Outlook:
        """What is to be said of a window (k,) that would be made at this moment."""
        return self._outlook(np.full(len(forecast), self._now), forecast, features)

    def learn(self, residuals: Array, forecasts: Array) -> Array:
        """Learn a row of residuals (k,), NaN where not known, of these forecasts; gives the standardised ones."""
        made = (self._now - self.until_known) % len(self._residuals)
        forecast = np.where(np.isnan(forecasts), self._forecasts[self._now, 0], forecasts)
        outlook = self._outlook(made, forecast, self._features[made, self._columns])
        is_known = ~np.isnan(residuals)
        innovation = np.where(is_known, residuals - outlook.centre, 0.0)
        standardised = innovation / outlook.scale
        usual = (
            outlook.centre + np.clip(standardised, -MAX_SCALES_FOR_CENTRE, MAX_SCALES_FOR_CENTRE) * outlook.scale
        ) / self.unit
        weights = np.minimum((self.unit / outlook.scale) ** 2, MOST_WEIGHT / (outlook.for_centre**2).max(axis=1))
        self.of_centre.learn(outlook.for_centre, usual, np.where(is_known, weights, 0.0))
        logs = np.log(np.clip(np.abs(standardised), *RANGE_OF_LOGS) * outlook.scale / self.unit) - MEAN_LOG
        self.of_scale.learn(outlook.for_scale, logs, is_known.astype(np.float64))
        self._remember(np.where(is_known, residuals, np.nan), forecast, np.where(is_known, np.abs(innovation), np.nan))
        return np.where(is_known, standardised, np.nan)

    def _remember(self, residuals: Array, forecasts: Array, innovations: Array) -> None:
        """The present moment, after a row became known; what is missing stays as it was."""
        now, is_known = self._now, ~np.isnan(residuals)
        for ring, newest in ((self._residuals, residuals), (self._forecasts, forecasts)):
            ring[now] = np.where(is_known, np.concatenate([newest[None], ring[now, :-1]]), ring[now])
        self._n_known += is_known
        rates = np.maximum(np.array(MAGNITUDE_RATES)[:, None], 1.0 / (self._n_known + 5.0))
        moved = self._magnitudes[now] + rates * (innovations - self._magnitudes[now])
        self._magnitudes[now] = np.where(is_known, moved, self._magnitudes[now])
        self._for_centre[now] = self.of_centre.coefficients
        self._for_scale[now] = self.of_scale.coefficients
        self._largest[now] = np.fmax(self._largest[now], np.abs(residuals))

    def _outlook(self, made: Index, forecast: Array, features: Array) -> Outlook:
        """What was said of the window that each column is of, by the places (k,) of these windows."""
        own, fresh = self._columns, self.first
        unit = self.unit[:, None]
        residuals = np.clip(self._residuals[made, :, own] / unit, -MAX_UNITS, MAX_UNITS)
        magnitudes = self._logs(self._magnitudes[made, :, own], unit)
        level = self._residuals[made, 0, own] + self._forecasts[made, 0, own]
        others = np.where(self._is_first, 0.0, 1.0)[:, None]
        ones = np.ones_like(unit)
        for_centre = np.concatenate(
            [
                ones,
                residuals,
                others * np.clip(self._residuals[made, :FRESH, fresh] / unit, -MAX_UNITS, MAX_UNITS),
                np.clip((forecast[:, None] - self._forecasts[made, :, own]) / unit, -MAX_UNITS, MAX_UNITS),
                np.clip((forecast - self.location) / self.spread, -MAX_UNITS, MAX_UNITS)[:, None],
                features,
            ],
            axis=1,
        )
        centre = np.einsum("kd,kd->k", for_centre, self._for_centre[made, own]) * self.unit
        centre = np.clip(centre, -self._largest[made, own], self._largest[made, own])
        change = np.abs(centre / self.unit - residuals[:, 0])[:, None] + 0.1
        magnitude_of_level = np.maximum(np.abs(level), 0.05 * self.spread) / self.spread
        for_scale = np.concatenate(
            [
                ones,
                magnitudes,
                others * self._logs(self._magnitudes[made, :FRESH, fresh], self.unit[fresh][:, None]),
                np.log(change),
                np.log(magnitude_of_level)[:, None],
                features,
            ],
            axis=1,
        )
        log_scale = np.einsum("kd,kd->k", for_scale, self._for_scale[made, own])
        log_scale = np.clip(log_scale, magnitudes[:, -1] - MAX_LOG_SCALE, magnitudes[:, -1] + MAX_LOG_SCALE)
        return Outlook(centre, np.exp(log_scale) * self.unit, for_centre, for_scale)

    @staticmethod
    def _logs(magnitudes: Array, unit: Array) -> Array:
        """Logarithms of magnitudes, in units of the residuals of `fit`, none too small."""
        return np.log(np.maximum(magnitudes / unit, LEAST_MAGNITUDE))
