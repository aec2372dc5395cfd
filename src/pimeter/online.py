"""`OnlineNeuron`: a neuron that follows a stream in a few floats."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from pimeter._kernels import stream
from pimeter._kernels.dispatch import kernel
from pimeter.arrays import real_array
from pimeter.constraints import Level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array

LARGEST_ERROR = 1e300  # absolute error: distances and steps stay finite
LEARNING_RATES = [StrOptions({"adaptive", "decaying"}), Interval(Real, 0, None, closed="neither")]


class OnlineNeuron(BaseEstimator):
    """A neuron that learns from a stream, one error at a time, below which margin the next error lies.

    An error over the weight moves it up by p steps, any other down by 1 - p steps: the weight rests where the
    fraction p of errors lies below. The neuron keeps 14 floats and no error.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Fraction of errors that should lie below the quantile, between 0 and 1.
    learning_rate : {"adaptive", "decaying"} or float, default="adaptive"
        "adaptive" is for errors that drift or depend on those before: a step is a fraction of their recent distance
        from the weight, so it has no unit, and it grows while misses are too many or too few for chance; where large
        errors follow large ones, it learns how much larger the next margin has to be. "decaying" converges to the
        quantile of errors that do neither, and comes as near to it as that of all errors at once: after 10,000 errors
        1.25 times as far off at most, up to level .95 and tails like t2's. At .99 it is twice as far off then, and 30
        times where errors end abruptly (uniform); `benchmarks/online_accuracy.py`. A number is a fixed step in the
        errors' own unit, for the second bound in the Notes.
    horizon : int, default=1
        Which error the margin is for: 1 is the next one. Where a margin is asked for while the newest errors are not
        known yet, such as for the day after tomorrow, "adaptive" needs to know: from 2 on it follows errors that drift,
        and does not look at the newest ones.

    Attributes
    ----------
    quantile_ : float
        The margin for the next error; NaN before the first one.
    n_seen_ : int
        Number of errors learned.

    See Also
    --------
    QuantileNeuron : The quantile of errors that are all there.
    ForecastIntervals : One such neuron for each step ahead.

    Notes
    -----
    Both bounds hold whatever the errors are, for T errors after the first one, which only sets the weight, and for
    margins right before each error is learned.

    "adaptive": at most ``(1 - p) T + 102 + log2(B / b)`` errors lie over their margin, b being the absolute value of
    the first error that is not 0 and B that of the largest. While there are 100 more misses than allowed, the margin
    is twice the largest error so far, so that each further miss doubles that.

    With ``learning_rate=eta`` and errors between 0 and B the proportion of errors below their margin is
    within ``(B + eta) / (eta T)`` of the confidence level: each of them moves the weight by ``eta (miss - (1 - p))``,
    and the weight cannot leave ``[-eta, B + eta]``.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import OnlineNeuron
    >>> errors = np.abs(np.random.default_rng(0).standard_normal(5000))
    >>> neuron = OnlineNeuron(0.9).learn_many(errors)
    >>> steady = OnlineNeuron(0.9, learning_rate="decaying").learn_many(errors)
    >>> round(neuron.quantile_, 1), round(steady.quantile_, 2)  # the true one is 1.645
    (1.7, 1.62)

    Errors four times as large are followed within some hundred steps:

    >>> for error in 4 * errors[:400]:
    ...     neuron = neuron.learn_one(error)
    >>> round(neuron.quantile_)  # now 6.6
    6
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Level()],
        "learning_rate": LEARNING_RATES,
        "horizon": [Interval(Integral, 1, None, closed="left")],
    }

    # A column of one neuron; replaced, never written to.
    _state = np.array([[math.nan] + (stream.N_FLOATS - 1) * [0.0]])
    _checked: tuple[Any, ...] | None = None  # settings that are known to be fine

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        learning_rate: Literal["adaptive", "decaying"] | float = "adaptive",
        horizon: int = 1,
    ) -> None:
        self.confidence_level = confidence_level
        self.learning_rate = learning_rate
        self.horizon = horizon

    @property
    def quantile_(self) -> float:
        """The margin for the next error; NaN before the first one."""
        return stream.margin(self._state[0].tolist())

    @property
    def n_seen_(self) -> int:
        """Number of errors learned."""
        return int(self._state[0, 3])

    def learn_one(self, error: float) -> Self:
        """Learn one error.

        Parameters
        ----------
        error : float
            The newest error; for the half-width of an interval its absolute value.

        Returns
        -------
        OnlineNeuron
            Itself; as it was before if the error is not a finite number.
        """
        try:
            size = abs(float(error)) if isinstance(error, Real) else math.nan
        except OverflowError:  # an integer that no float holds
            size = math.inf
        if not size <= LARGEST_ERROR:
            msg = f"error must be a finite number; got {error!r}. Leave out errors that are not known."
            raise ValueError(msg)
        return self._learn(np.array([[error]], dtype=np.float64))

    def learn_many(self, errors: ArrayLike) -> Self:
        """Learn errors in their order: as `learn_one` for each of them, but compiled.

        Parameters
        ----------
        errors : array-like of shape (n,)
            Errors, the oldest first.

        Returns
        -------
        OnlineNeuron
            Itself; as it was before if any error is not a finite number.
        """
        given = real_array("errors", errors)
        if given.ndim != 1:
            msg = f"errors must have shape (n,); got {given.shape}."
            raise ValueError(msg)
        values = np.ascontiguousarray(given, dtype=np.float64)
        fine = np.abs(values) <= LARGEST_ERROR
        if not fine.all():
            first = int(np.flatnonzero(~fine)[0])
            msg = f"errors must be finite; errors[{first}] is {values[first]}. Leave out errors that are not known."
            raise ValueError(msg)
        return self._learn(values[:, None])

    def _learn(self, column: Array) -> Self:
        """Learn checked errors (n, 1)."""
        task, state = self._task(), self._state.copy()
        kernel.learn_columns(column, *task, state)
        self._state = state
        return self

    def _task(self) -> tuple[float, int, float]:
        """Level, kind of step and fixed step, as the kernels want them."""
        settings = (self.confidence_level, self.learning_rate, self.horizon)
        if settings != self._checked:
            self._validate_params()
            self._checked = settings
        adaptive = stream.ADAPT if self.horizon == 1 else stream.FOLLOW
        return float(self.confidence_level), *_rule(self.learning_rate, adaptive)


def _rule(learning_rate: str | float, adaptive: int) -> tuple[int, float]:
    """Kind of step and fixed step, as the kernels want them."""
    if isinstance(learning_rate, str):
        return {"adaptive": adaptive, "decaying": stream.SETTLE}[learning_rate], 0.0
    return stream.FIXED, float(learning_rate)


def learn_columns(errors: Array, level: float, learning_rate: str | float, states: Array) -> Array:
    """States of k neurons, a row each, after errors (n, k) of which NaN are not known yet.

    "adaptive" is as with a horizon of 2 and more: the newest errors are not known yet when a margin is asked for.
    """
    after = states.copy()
    kernel.learn_columns(np.ascontiguousarray(errors), level, *_rule(learning_rate, stream.FOLLOW), after)
    return after


def margins(states: Array) -> Array:
    """The margin for the next error of each neuron: its weight or, after far too many misses, twice the largest."""
    w, debt, largest = states[:, 0], states[:, 12], states[:, 13]
    return np.where(debt < stream.DEBT, w, np.maximum(w, 2.0 * largest))


def started(errors: Array, weights: Array, learning_rate: str | float) -> Array:
    """States of neurons that go on from these weights, quantiles of errors (n, k) of which NaN are not known."""
    n = np.maximum(np.count_nonzero(~np.isnan(errors), axis=0), 1)  # a weight without errors counts as one
    distance = np.abs(errors - weights)
    spread = np.nansum(distance, axis=0) / n
    states = np.zeros((len(weights), stream.N_FLOATS))
    states[:, [0, 1, 3, -1]] = np.stack(
        [weights, spread, n, np.fmax.reduce(np.abs(errors), axis=0, initial=0.0)], axis=1
    )
    if learning_rate == "decaying":
        window = stream.WINDOW * n**-stream.NARROWING
        states[:, 2] = 0.5 * np.count_nonzero(distance < window * spread, axis=0) / (n * window)
    return states
