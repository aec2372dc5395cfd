"""`DescendingNeuron`: the paper's way to train a neuron, step by step."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from pimeter import bandwidth
from pimeter._kernels import reference
from pimeter.neuron import QuantileNeuron
from pimeter.smoothing import SmoothedSample, counts_or_empty

if TYPE_CHECKING:
    import dask.array as da
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array

    Floats = NDArray[np.floating]

PACE = 0.03  # default learning rate, in units of the map or of the errors' spread: nothing is 200 steps away
MOMENTUM, MEMORY, EPSILON = 0.9, 0.999, 1e-8  # Adam's own defaults
CLOSE_ENOUGH = 1e-9  # this near to its target, in level, a neuron has arrived


class DescendingNeuron(QuantileNeuron):
    """A neuron trained as in the paper: Adam on the loss ``[F(w) - p]^2``, all errors in each step, stopped early.

    The weight kept is that of the closest approach, where ``|F(w) - p|`` was smallest. `QuantileNeuron` solves for the
    same weight at once; a descent is slower and, with a numeric beta, apt to stall between two errors.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Proportion of errors that should lie below the quantile, between 0 and 1.
    beta : "auto" or float, default="auto"
        Steepness of the sigmoid. ``"auto"`` follows the errors; a number is the paper's beta in the errors' own unit.
    reflect : bool, default=False
        The errors are absolute ones, whose density goes on below 0 as its mirror image.
    learning_rate : float or None, default=None
        About how far one step moves the weight, in the errors' unit (the paper: 0.005 with ``beta=1000``). None
        follows the data.
    max_iter : int, default=5000
        Most steps a neuron takes.
    patience : int, default=200
        A neuron stops after this many steps without coming closer to its target.
    start : float or None, default=None
        First weight. None is halfway between the quartiles of the errors: from the data, but not from the answer, and
        where errors are, however far the farthest.

    Attributes
    ----------
    quantile_ : float or ndarray of shape (k,)
        The weights that were kept.
    standard_error_ : float or ndarray of shape (k,)
        Standard error of the root, for independent errors; `error_bound_` is not in it. NaN where fewer than five
        errors are expected beyond the quantile.
    quantile_range_ : ndarray of shape (2,) or (k, 2)
        Two of the errors that have the true quantile between them with 95 % confidence, if errors are independent.
    quantile_range_level_ : float
        The exact confidence of `quantile_range_`; below 0.95 only where there are too few errors.
    n_iter_ : int or ndarray of shape (k,)
        Steps taken.
    converged_ : bool or ndarray of shape (k,)
        Whether the output came as near to its target as matters: half an error, or a tenth of its standard error.
    loss_curve_, weight_curve_ : ndarray of shape (n_iter + 1,) or (largest n_iter + 1, k)
        Losses ``[F - p]^2`` and weights from the start on; NaN after a neuron stopped.
    error_bound_ : float or ndarray of shape (k,)
        About how far the trained weight is from the root, see Notes.

    Notes
    -----
    With ``beta="auto"`` a step moves along the map on which `QuantileNeuron` measures errors, towards the same target.

    `error_bound_` is the paper's ``sigma_p / (2 c_p rho^2)`` (appendix A.1) with ``sigma_p = 2 c_p |F - p| rho``, the
    tolerance that the loss has in fact reached. The speed c_p cancels, and ``|F - p| / rho`` remains, rho being the
    smoothed density at the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import QuantileNeuron
    >>> from pimeter.paper import DescendingNeuron
    >>> errors = np.random.default_rng(0).exponential(size=2000)
    >>> trained = DescendingNeuron(0.9, beta=1000, learning_rate=0.005).fit(errors)
    >>> round(trained.quantile_, 4), round(QuantileNeuron(0.9, beta=1000).fit(errors).quantile_, 4)
    (2.3149, 2.3149)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuantileNeuron._parameter_constraints,
        "learning_rate": [None, Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "start": [None, Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        beta: float | Literal["auto"] = "auto",
        reflect: bool = False,
        learning_rate: float | None = None,
        max_iter: int = 5000,
        patience: int = 200,
        start: float | None = None,
    ) -> None:
        super().__init__(confidence_level, beta=beta, reflect=reflect)
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.patience = patience
        self.start = start

    def _fit_lazily(self, errors: da.Array, sample_weight: da.Array | ArrayLike | None) -> Self:  # noqa: ARG002
        msg = "DescendingNeuron trains on errors in memory; use QuantileNeuron for dask collections."
        raise ValueError(msg)

    def _weights(self, samples: Floats, counts: Array | None, columns: list[SmoothedSample]) -> Floats:
        """Train all neurons side by side; warn of those that stopped too early."""
        level = (1.0 + self.confidence_level) / 2.0 if self.reflect else float(self.confidence_level)
        by_neuron = None if counts is None else np.array([column.counts for column in columns])
        path = self._descent([self._task(column, level) for column in columns], by_neuron, columns[0])
        weights = np.array([column.smoother.errors(at) for column, at in zip(columns, path.best, strict=True)])
        self._refuse_infinite(weights, "floats")
        curves = [column.smoother.errors(at) for column, at in zip(columns, path.positions.T, strict=True)]
        m = columns[0].m
        converged = path.distance <= max(0.5 / m, 0.1 * bandwidth.standard_error(level, m))
        densities = np.array([column.density(w) for column, w in zip(columns, weights, strict=True)])
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(path.distance > 0.0, path.distance / densities, 0.0)
        self.n_iter_ = self._own(path.n_iter)
        self.converged_ = self._own(converged)
        self.error_bound_ = self._own(bound)
        self.loss_curve_ = path.losses[:, 0] if self._is_single else path.losses
        self.weight_curve_ = curves[0] if self._is_single else np.stack(curves, axis=1)
        if not converged.all():
            cure = "raise max_iter and patience" if isinstance(self.beta, str) else "lower beta or raise max_iter"
            msg = (
                f"{(~converged).sum()} of {converged.size} neurons stalled; {cure}. "
                f"The quantile may be off by about {bound[~converged].max():.2g}."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=3)
        with np.errstate(over="ignore"):
            self._refuse_infinite(np.asarray(weights, samples.dtype), str(samples.dtype))
        return weights

    def _refuse_infinite(self, weights: Floats, kind: str) -> None:
        if not np.isfinite(weights).all():
            rate = self.learning_rate
            msg = f"A descent with learning_rate={rate} left all {kind}; give a smaller learning_rate, or None."
            raise ValueError(msg)

    def _task(self, sample: SmoothedSample, level: float) -> _Task:
        """Describe the descent: none where there is no spread, then the plain quantile is the answer."""
        smoother, error_map = sample.smoother, sample.smoother.error_map
        if math.isinf(smoother.steepness):
            (weight,) = sample.hazen(level)
            return _Task(np.full(sample.x.size, weight), 1.0, 0.5, 1.0, weight)
        if error_map is None:
            bounds, target = sample.x[[sample.n_mirrored, -1]], level
            rate = PACE * reference.spread(sample.x, counts_or_empty(sample.counts)) or 1.0 / smoother.steepness
        else:
            error = bandwidth.BRACKET * bandwidth.standard_error(level, error_map.m)
            bounds, target = sample.hazen(level - error, level + error), bandwidth.shrunk(level, error_map.h)
            rate = PACE
        start = sample.middle() if self.start is None else float(self.start)
        if self.learning_rate is not None:
            rate = self.learning_rate * smoother.slope(start)
        # `QuantileNeuron` keeps its answer between these bounds: the output at the nearer one can be attained.
        target = float(np.clip(target, sample.output(bounds[0]), sample.output(bounds[1])))
        at = float(smoother.positions(np.asarray(start)))
        return _Task(smoother.positions(sample.x), smoother.steepness, target, rate, at)

    def _descent(self, tasks: list[_Task], counts: Array | None, sample: SmoothedSample) -> _Path:
        """Adam on ``[F - p]^2`` until each neuron has arrived, lost its patience or run out of steps."""
        positions, steepness, target, rate, at = (np.array(column) for column in zip(*tasks, strict=True))
        k = at.size
        best, distance, closest, n_iter = at.copy(), np.full(k, math.inf), np.zeros(k, int), np.zeros(k, int)
        path: list[Array] = []
        losses: list[Array] = []
        mean, square = np.zeros(k), np.zeros(k)
        running = np.arange(k)  # the arrays of the loop hold the running neurons alone
        for step in range(self.max_iter + 1):
            output = reference.activation((at[:, None] - positions) * steepness[:, None], sample.smoother.saturation)
            offset = np.average(output, axis=1, weights=counts) - target
            for curve, values in ((path, at), (losses, offset**2)):
                curve.append(np.full(k, math.nan))
                curve[-1][running] = values
            closer = np.abs(offset) < distance[running]
            came = running[closer]
            best[came], distance[came], closest[came] = at[closer], np.abs(offset[closer]), step
            n_iter[running] = step
            goes_on = (distance[running] > CLOSE_ENOUGH) & (step - closest[running] < self.patience)
            if not goes_on.any():
                break
            gradient = 2.0 * offset * np.average(output * (1.0 - output), axis=1, weights=counts) * steepness
            mean = MOMENTUM * mean + (1.0 - MOMENTUM) * gradient
            square = MEMORY * square + (1.0 - MEMORY) * gradient**2
            unbiased, unbiased_square = mean / (1.0 - MOMENTUM ** (step + 1)), square / (1.0 - MEMORY ** (step + 1))
            at = at - rate * unbiased / (np.sqrt(unbiased_square) + EPSILON)
            if not goes_on.all():
                running = running[goes_on]
                at, mean, square, positions, steepness, target, rate = (
                    values[goes_on] for values in (at, mean, square, positions, steepness, target, rate)
                )
                counts = None if counts is None else counts[goes_on]
        return _Path(best, distance, n_iter, np.array(path), np.array(losses))


class _Task(NamedTuple):
    """One neuron's descent, in units of its axis."""

    positions: Array
    steepness: float
    target: float
    rate: float
    start: float


class _Path(NamedTuple):
    """What descent leaves behind, a column per neuron."""

    best: Array
    distance: Array  # |F - p| at the closest approach
    n_iter: NDArray[np.int64]
    positions: Array  # (steps + 1, k), NaN after a neuron stopped
    losses: Array
