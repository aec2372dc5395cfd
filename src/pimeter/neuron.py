"""`QuantileNeuron`: a single neuron whose weight is a quantile of errors, the paper's way to train it, joint boxes."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import betainc
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from pimeter import bandwidth
from pimeter._kernels import reference
from pimeter._kernels.arrays import MOST
from pimeter.arrays import even_array, real_array, unmasked
from pimeter.promise import ROUNDING, quantile_ranks
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

PACE = 0.03  # default learning rate, in units of the map or of the errors' spread: nothing is 200 steps away
MOMENTUM, MEMORY, SMALL = 0.9, 0.999, 1e-8  # Adam's own defaults
REACHED = 1e-9  # this near to its target, in level, a neuron has arrived
FEWEST_BEYOND = 5.0  # errors on either side of the quantile, on average, from which on its standard error is known
SATURATED = 40.0  # where the sigmoid of a numeric beta ends: exp(-40) is nothing beside 1 in floats


@dataclass(frozen=True, kw_only=True)
class Descent:
    """The paper's training: Adam on the loss ``[F(w) - p]^2``, all errors in each step, stopped early.

    The weight kept is that of the closest approach, where ``|F(w) - p|`` was smallest.

    Parameters
    ----------
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

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import Descent, QuantileNeuron
    >>> errors = np.random.default_rng(0).exponential(size=2000)
    >>> paper = QuantileNeuron(0.9, beta=1000, solver=Descent(learning_rate=0.005))
    >>> round(paper.fit(errors).quantile_, 4), round(QuantileNeuron(0.9, beta=1000).fit(errors).quantile_, 4)
    (2.3149, 2.3149)
    """

    learning_rate: float | None = None
    max_iter: int = 5000
    patience: int = 200
    start: float | None = None

    def __post_init__(self) -> None:
        rate, start = self.learning_rate, self.start
        if rate is not None and not (isinstance(rate, Real) and 0.0 < rate < math.inf):
            msg = f"learning_rate must be a positive number or None, which follows the data; got {rate!r}."
            raise ValueError(msg)
        for name, value in (("max_iter", self.max_iter), ("patience", self.patience)):
            if not (isinstance(value, Integral) and value >= 1):
                msg = f"{name} must be a whole number of steps, at least 1; got {value!r}."
                raise ValueError(msg)
        if start is not None and not (isinstance(start, Real) and math.isfinite(start)):
            msg = f"start must be a finite number or None, the middle of the errors; got {start!r}."
            raise ValueError(msg)


def _or_empty(counts: Array | None) -> Array:
    """Counts as the kernels want them: no counts are an empty array."""
    return np.empty(0) if counts is None else counts


class _Sight(NamedTuple):
    """How one neuron sees errors: the axis it measures them on, and how steeply its sigmoid rises there."""

    error_map: reference.Map | None  # None: the errors' own axis
    factor: float  # errors are multiplied by this before they meet the map
    steepness: float  # infinite: a step
    end: float  # where the sigmoid saturates

    def position(self, errors: Any) -> Any:
        """From errors to the axis."""
        return errors if self.error_map is None else self.error_map.position(np.asarray(errors) * self.factor)

    def error(self, positions: Any) -> Any:
        """Go the way back."""
        return positions if self.error_map is None else self.error_map.error(np.asarray(positions)) / self.factor

    def slope(self, weight: float) -> float:
        """Units of the axis per unit of error."""
        if self.error_map is None:
            return 1.0
        cell = int(np.searchsorted(self.error_map.knots, weight * self.factor, side="right")) - 1
        return float(self.error_map.slopes[min(max(cell, 0), self.error_map.slopes.size - 1)]) * self.factor

    def outputs(self, weight: float, errors: Array) -> Array:
        """Sigmoid of each error: what it adds to the neuron's output."""
        with np.errstate(over="ignore"):
            ahead = self.position(weight) - self.position(errors)
            steep = np.sign(ahead) * self.end if math.isinf(self.steepness) else ahead * self.steepness
        # Rounding may leave a little more than 1, and densities would be negative.
        return np.minimum(reference.activation(steep, self.end), 1.0)


class _Column(NamedTuple):
    """The sample of one neuron, sorted, its mirror image before it if it reflects, and how the neuron sees it."""

    x: Array
    counts: Array | None
    n_mirrored: int
    sight: _Sight
    automatic: _Sight  # the sight of beta="auto"

    @classmethod
    def of(cls, errors: NDArray[Any], counts: Array | None, beta: float | str, reflect: bool) -> _Column:
        """Sort, mirror and lay the map on."""
        x = errors.astype(np.float64)
        x, counts = (np.sort(x), None) if counts is None else reference.in_order(x, counts)
        if reflect:
            x = np.concatenate([-x[::-1], x])
            counts = None if counts is None else np.concatenate([counts[::-1], counts])
        factor = bandwidth.safe_factor(max(-x[0], x[-1]))
        error_map = reference.fit_map(factor * x, _or_empty(counts))
        automatic = _Sight(
            error_map, factor, math.inf if error_map is None else 1.0 / error_map.h, bandwidth.SATURATION
        )
        sight = automatic if isinstance(beta, str) else _Sight(None, 1.0, float(beta), SATURATED)
        return cls(x, counts, errors.size if reflect else 0, sight, automatic)

    @property
    def m(self) -> float:
        """Number of errors, mirror images among them."""
        return float(self.x.size if self.counts is None else self.counts.sum())

    def hazen(self, *levels: float) -> Array:
        """Plain quantiles, never below the smallest error of a mirrored sample."""
        plain: Array = np.maximum(
            reference.hazen(self.x, _or_empty(self.counts), np.array(levels)), self.x[self.n_mirrored]
        )
        return plain

    def middle(self) -> float:
        """Halfway between the quartiles of the errors."""
        own = slice(self.n_mirrored, None)
        quartiles = reference.hazen(self.x[own], _or_empty(self.counts)[own], np.array([0.25, 0.75]))
        return float(quartiles @ [0.5, 0.5])

    def share(self, weight: float) -> float:
        """Output of the neuron: the smoothed share of errors below its weight."""
        return float(np.average(self.sight.outputs(weight, self.x), weights=self.counts))

    def density(self, weight: float) -> float:
        """Smoothed density of the sample, seen as sharply as the neuron sees or as the errors allow."""
        sight = self.smoother(weight)
        output = sight.outputs(weight, self.x)
        return float(np.average(output * (1.0 - output), weights=self.counts)) * sight.steepness * sight.slope(weight)

    def smoother(self, weight: float) -> _Sight:
        """Take the less sharp one of the two sights."""
        return min(self.automatic, self.sight, key=lambda sight: sight.steepness * sight.slope(weight))

    def standard_error(self, weight: float, level: float) -> float:
        """Of the quantile by ranks; of a neuron that looks less sharply than the errors allow, of its weight as a root.

        NaN with too few errors beyond the quantile, or where that root is: the quantile is an end of the sample then.
        """
        x, counts = self.x[self.n_mirrored :], None if self.counts is None else self.counts[self.n_mirrored :]
        m = float(x.size if counts is None else counts.sum())
        if m * min(level, 1.0 - level) < FEWEST_BEYOND - ROUNDING:
            return math.nan
        density = self.density(weight)
        if self.smoother(weight) is not self.automatic and density > 0.0:
            if not x[0] < weight < x[-1]:
                return math.nan
            output = self.sight.outputs(weight, self.x)
            if self.n_mirrored:  # an error and its mirror image are one observation
                output = (output[: self.n_mirrored][::-1] + output[self.n_mirrored :]) / 2.0
            variance = np.average((output - np.average(output, weights=counts)) ** 2, weights=counts) / (m - 1.0)
            return math.sqrt(variance) / density
        return _standard_error_of_ranks(x, counts, level)

    def ranked(self, *ranks: int) -> Array:
        """Errors of these ranks, whole counts being copies."""
        places = np.array(ranks) - 1
        if self.counts is not None:
            places = np.searchsorted(np.cumsum(self.counts[self.n_mirrored :]), ranks)
        ranked: Array = self.x[self.n_mirrored :][places]
        return ranked

    def task(self, level: float, how: Descent) -> _Task:
        """Describe the descent: none where there is no spread, then the plain quantile is the answer."""
        sight, error_map = self.sight, self.sight.error_map
        if math.isinf(sight.steepness):
            (weight,) = self.hazen(level)
            return _Task(np.full(self.x.size, weight), 1.0, 0.5, 1.0, weight)
        if error_map is None:
            ends, target = self.x[[self.n_mirrored, -1]], level
            rate = PACE * reference.spread(self.x, _or_empty(self.counts)) or 1.0 / sight.steepness
        else:
            error = bandwidth.BRACKET * bandwidth.standard_error(level, error_map.m)
            ends, target, rate = self.hazen(level - error, level + error), bandwidth.shrunk(level, error_map.h), PACE
        start = self.middle() if how.start is None else float(how.start)
        rate = rate if how.learning_rate is None else how.learning_rate * sight.slope(start)
        # The root solver keeps its answer between these ends: the output at the nearer one is a target within reach.
        target = float(np.clip(target, self.share(ends[0]), self.share(ends[1])))
        return _Task(sight.position(self.x), sight.steepness, target, rate, float(sight.position(start)))


def _standard_error_of_ranks(x: Array, counts: Array | None, level: float) -> float:
    """Standard deviation of errors under the Beta law of their ranks: Maritz and Jarrett's, with Harrell's weights.

    As `scipy.stats.mstats.mjci`, but with counts, and only of the errors that matter.
    """
    edges = np.arange(x.size + 1.0) if counts is None else np.append(0.0, np.cumsum(counts))
    m = edges[-1]
    reach = 9.0 * math.sqrt(m * level * (1.0 - level)) + 40.0  # what is farther away is less likely than 1e-15
    first, last = np.searchsorted(edges[1:-1], [m * level - reach, m * level + reach])
    share = np.diff(betainc((m + 1.0) * level, (m + 1.0) * (1.0 - level), edges[first : last + 2] / m))
    share /= share.sum()
    distance = x[first : last + 1] - share @ x[first : last + 1]
    unit = float(np.abs(distance).max()) or 1.0  # squares of extreme errors leave the floats
    return unit * math.sqrt(share @ (distance / unit) ** 2)


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


def _descend(tasks: list[_Task], counts: Array | None, end: float, how: Descent) -> _Path:
    """Adam on ``[F - p]^2`` until each neuron has arrived, lost its patience or run out of steps."""
    positions, steepness, target, rate, at = (np.array(column) for column in zip(*tasks, strict=True))
    k = at.size
    best, distance, closest, n_iter = at.copy(), np.full(k, math.inf), np.zeros(k, int), np.zeros(k, int)
    path: list[Array] = []
    losses: list[Array] = []
    mean, square = np.zeros(k), np.zeros(k)
    running = np.arange(k)  # the arrays of the loop hold the running neurons alone
    for step in range(how.max_iter + 1):
        output = reference.activation((at[:, None] - positions) * steepness[:, None], end)
        offset = np.average(output, axis=1, weights=counts) - target
        for curve, values in ((path, at), (losses, offset**2)):
            curve.append(np.full(k, math.nan))
            curve[-1][running] = values
        closer = np.abs(offset) < distance[running]
        came = running[closer]
        best[came], distance[came], closest[came] = at[closer], np.abs(offset[closer]), step
        n_iter[running] = step
        goes_on = (distance[running] > REACHED) & (step - closest[running] < how.patience)
        if not goes_on.any():
            break
        gradient = 2.0 * offset * np.average(output * (1.0 - output), axis=1, weights=counts) * steepness
        mean = MOMENTUM * mean + (1.0 - MOMENTUM) * gradient
        square = MEMORY * square + (1.0 - MEMORY) * gradient**2
        unbiased, unbiased_square = mean / (1.0 - MOMENTUM ** (step + 1)), square / (1.0 - MEMORY ** (step + 1))
        at = at - rate * unbiased / (np.sqrt(unbiased_square) + SMALL)
        if not goes_on.all():
            running, at, mean, square = running[goes_on], at[goes_on], mean[goes_on], square[goes_on]
            positions, steepness, target, rate = positions[goes_on], steepness[goes_on], target[goes_on], rate[goes_on]
            counts = None if counts is None else counts[goes_on]
    return _Path(best, distance, n_iter, np.array(path), np.array(losses))


class QuantileNeuron(BaseEstimator):
    """A neuron that learns one number: the quantile of errors at a confidence level.

    Its output is the smoothed share of errors below its weight (the paper's F_m), its target the confidence level, and
    the weight that reaches the target (the paper's w_p) is the quantile. Fed with `absolute_errors`, it is the half
    width of a prediction interval.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Share of errors that shall lie below the quantile, between 0 and 1.
    beta : "auto" or float, default="auto"
        Steepness of the sigmoid. ``"auto"`` follows the errors, so that the quantile scales and shifts with them. A
        number is the paper's beta in the errors' own unit, and its meaning changes with that unit: 2,000 half-normal
        errors with ``beta=10`` in units from .01 to 100 covered 69 % to 100 % where 90 % were asked for.
    reflect : bool, default=False
        The errors are absolute ones, whose density goes on below 0 as its mirror image.
    solver : "root", "descent" or Descent, default="root"
        How the weight is found. ``"root"`` solves for it, to machine precision. ``"descent"`` or a `Descent` with
        settings of its own is the paper's training, slower and, with a numeric beta, apt to stall between two errors.

    Attributes
    ----------
    quantile_ : float or ndarray of shape (k,)
        The learned weights; a float for errors of shape (m,).
    standard_error_ : float or ndarray of shape (k,)
        Standard error of the quantile, for independent errors; rather too large than too small. NaN where fewer than
        five errors are expected beyond the quantile, ``m min(p, 1 - p) < 5``: below 100 errors at 95 %; and where a
        numeric beta is so blunt that the quantile ends up as the smallest or the largest error. For a range that holds
        the quantile take `quantile_range_`; see Notes.
    quantile_range_ : ndarray of shape (2,) or (k, 2)
        Two of the errors that have the true quantile between them with 95 % confidence, whatever the law of the
        errors, if they are independent: the nearest such pair of ranks, by the binomial law. With fewer errors than
        that takes, the smallest and the largest. NaN with fractional weights, which have no ranks.
    quantile_range_level_ : float
        The exact confidence of `quantile_range_`; below 0.95 only where there are too few errors.
    n_features_in_ : int
        Number of neurons.
    n_iter_ : int or ndarray of shape (k,)
        Steps that a descending neuron took; this and all below only after a descent.
    converged_ : bool or ndarray of shape (k,)
        Whether the output came as near to its target as matters: half an error, or a tenth of its standard error.
    loss_curve_, weight_curve_ : ndarray of shape (n_iter + 1,) or (largest n_iter + 1, k)
        Losses ``[F - p]^2`` and weights from the start on; NaN after a neuron stopped.
    error_bound_ : float or ndarray of shape (k,)
        About how far the trained weight is from the root, see Notes.

    See Also
    --------
    quantile : The same quantiles as a function, for any axis and many levels.
    Descent : Settings of the paper's training.

    Notes
    -----
    With ``beta="auto"`` the neuron measures errors on a map that is stretched where they are dense, and its target
    is a little nearer to 1/2 than the level, which cancels the bias of smoothing (`pimeter.bandwidth`). Descent moves
    along the map towards the same target, so both solvers have the same answer.

    The standard error is the standard deviation of the errors under the Beta law of their ranks (Maritz and Jarrett,
    1978). It knows no density, which heavy tails make infinite or wrong, nor that the neuron is more accurate than
    ranks: over five laws, from uniform to t2, its mean is 1.0 to 1.3 times the standard deviation of the quantile with
    20 errors beyond it, and up to 2.1 times with 5. ``quantile_ +- 1.96 standard_error_`` held the true quantile in
    93 to 97 % of samples (`benchmarks/neuron_ranges.py`), where `quantile_range_` keeps its level exactly. With a
    numeric beta that is less sharp than ``"auto"`` it is that of a root of ``mean F_i(w) = p`` instead: the standard
    deviation of the contributions ``F_i`` over ``sqrt(m)`` and the slope of F. Of a descent it is that of the root, and
    `error_bound_` is not in it.

    `error_bound_` is the paper's ``sigma_p / (2 c_p rho^2)`` (appendix A.1) with ``sigma_p = 2 c_p |F - p| rho``, the
    tolerance that the loss has in fact reached. The speed c_p cancels, and ``|F - p| / rho`` remains, rho being the
    smoothed density at the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import QuantileNeuron
    >>> errors = np.abs(np.random.default_rng(0).standard_normal(400))
    >>> neuron = QuantileNeuron(0.9).fit(errors)
    >>> round(neuron.quantile_, 2), round(neuron.standard_error_, 2)
    (1.52, 0.07)
    >>> neuron.quantile_range_.round(2), round(neuron.quantile_range_level_, 3)
    (array([1.42, 1.69]), 0.955)

    A column is a neuron:

    >>> QuantileNeuron(0.9).fit(errors.reshape(100, 4)).quantile_.shape
    (4,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "reflect": ["boolean"],
        "solver": [StrOptions({"root", "descent"}), Descent],
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        beta: float | Literal["auto"] = "auto",
        reflect: bool = False,
        solver: Literal["root", "descent"] | Descent = "root",
    ) -> None:
        self.confidence_level = confidence_level
        self.beta = beta
        self.reflect = reflect
        self.solver = solver

    @np.errstate(over="ignore", invalid="ignore")  # of errors near the largest float only the quantile is known
    def fit(self, errors: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the quantile of each column of errors.

        Parameters
        ----------
        errors : array-like of shape (m,) or (m, k)
            One sample, or one per neuron. Dask arrays, series and frames are read three times, chunk by chunk.
        y : None
            Not used; there for scikit-learn's pipelines. With errors of shape (m,) it is a `ValueError`: a model's
            targets and predictions go through `absolute_errors` first.
        sample_weight : array-like of shape (m,), optional
            Counts: 2 equals the row twice, 0 removes it; fractions are allowed.

        Returns
        -------
        QuantileNeuron
            The neuron itself.
        """
        self._validate_params()
        for name in ("n_iter_", "converged_", "loss_curve_", "weight_curve_", "error_bound_"):
            self.__dict__.pop(name, None)
        if type(errors).__module__.partition(".")[0] == "dask":
            _refuse_targets(np.ndim(errors) == 1, y)
            return self._fit_lazily(errors, sample_weight)
        self._is_single = even_array("errors", errors).ndim == 1
        _refuse_targets(self._is_single, y)
        samples = self._columns(errors, reset=True)
        counts = None if sample_weight is None else _checked_counts(sample_weight, samples)
        if counts is not None:
            samples, counts = samples[counts > 0.0], counts[counts > 0.0]
        level, width = float(self.confidence_level), samples.dtype
        columns = [_Column.of(column, counts, self.beta, self.reflect) for column in samples.T]
        self._sights = [column.sight for column in columns]
        if isinstance(self.solver, str) and self.solver == "root":
            learned = quantile(samples, level, axis=0, weights=counts, beta=self.beta, reflect=self.reflect)
        else:
            how = Descent() if isinstance(self.solver, str) else self.solver
            learned = self._descent(columns, (1.0 + level) / 2.0 if self.reflect else level, how)
            with np.errstate(over="ignore"):
                is_finite = np.isfinite(np.asarray(learned, width)).all()
            if not is_finite:
                msg = f"solver={how} left all {width}; give a smaller learning_rate, or None."
                raise ValueError(msg)
        self.quantile_ = self._own(np.asarray(learned, width))
        standard_errors = [column.standard_error(w, level) for column, w in zip(columns, learned, strict=True)]
        self.standard_error_ = self._own(np.array(standard_errors, width))
        ranges, self.quantile_range_level_ = np.full((len(columns), 2), math.nan, width), math.nan
        if counts is None or (counts % 1.0 == 0.0).all():
            m = samples.shape[0] if counts is None else int(counts.sum())
            low, high, self.quantile_range_level_ = quantile_ranks(m, level)
            ranges = np.array([column.ranked(low, high) for column in columns], width)
        self.quantile_range_ = ranges[0] if self._is_single else ranges
        return self

    def _fit_lazily(self, errors: Any, sample_weight: Any) -> Self:
        """Learn from dask arrays or frames, in three reads: from what stands for the errors near the level."""
        from pimeter._kernels import dask

        if self.solver != "root":
            msg = f"solver={self.solver!r} trains on errors in memory; dask collections need solver='root'."
            raise ValueError(msg)
        level = float(self.confidence_level)
        h = None if self.beta == "auto" else 1.0 / float(self.beta)
        task = dask.Task((level,), h, self.reflect)
        found = dask.samples(errors, sample_weight, task)
        neurons = [clone(self).fit(values, sample_weight=counts) for values, counts, _ in found]
        self._is_single = errors.ndim == 1
        self.n_features_in_ = len(found)
        self._sights = [neuron._sights[0] for neuron in neurons]
        self.quantile_ = self._own(np.array([w for _, _, w in found]))
        self.standard_error_ = self._own(np.array([neuron.standard_error_ for neuron in neurons]))
        ranges = np.array([neuron.quantile_range_ for neuron in neurons])
        self.quantile_range_ = ranges[0] if self._is_single else ranges
        self.quantile_range_level_ = neurons[0].quantile_range_level_
        return self

    def smoothed_coverage(self, errors: ArrayLike) -> float | NDArray[np.floating[Any]]:
        """Smoothed share of the given errors that lie below the learned quantile: the neuron's output for them.

        On the errors of `fit` it is the neuron's target: the confidence level or, with ``beta="auto"``, a value that is
        nearer to 1/2 by as much as smoothing shifts it.

        Parameters
        ----------
        errors : array-like of shape (n,) or (n, k)
            Errors of any rows, for as many neurons as were fitted.

        Returns
        -------
        float or ndarray of shape (k,)
            Smoothed shares; a float if the neuron was fitted on errors of shape (m,).

        Examples
        --------
        >>> import numpy as np
        >>> from pimeter import QuantileNeuron
        >>> errors = np.random.default_rng(0).exponential(size=1000)
        >>> neuron = QuantileNeuron(0.9).fit(errors[:500])
        >>> round(neuron.smoothed_coverage(errors[:500]), 2), round(neuron.smoothed_coverage(errors[500:]), 2)
        (0.9, 0.92)
        """
        check_is_fitted(self)
        samples = self._columns(errors, reset=False)
        cells = zip(self._sights, np.atleast_1d(self.quantile_), samples.T.astype(np.float64), strict=True)
        images = (1.0, -1.0) if self.reflect else (1.0,)
        outputs = [np.mean([sight.outputs(w, sign * x) for sign in images]) for sight, w, x in cells]
        shares = 2.0 * np.array(outputs) - 1.0 if self.reflect else np.array(outputs)
        return float(shares[0]) if self._is_single else shares

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = bool(self.reflect)
        return tags

    @np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
    def _columns(self, errors: ArrayLike, *, reset: bool) -> NDArray[np.floating[Any]]:
        """Finite floats of shape (m, k), not negative if they are absolute errors."""
        array = even_array("errors", errors)
        if array.dtype.kind in "mMVUS" or (
            array.ndim == 0 and not issparse(errors)
        ):  # no array, but scikit-learn tries
            real_array("errors", array)
        table = array[:, None] if array.ndim == 1 else unmasked(errors)
        samples: NDArray[np.floating[Any]] = validate_data(
            self, table, reset=reset, dtype=[np.float64, np.float32, np.float16]
        )
        if self.reflect and (samples < 0.0).any():
            msg = (
                f"Negative values in data: reflect=True takes absolute errors, the smallest given is {samples.min()}. "
                "Use absolute_errors(y_true, y_pred), or reflect=False."
            )
            raise ValueError(msg)
        return samples

    def _own(self, values: NDArray[Any]) -> Any:
        """One value per neuron; the value itself for a single sample."""
        return values[0].item() if self._is_single else values

    def _descent(self, columns: list[_Column], level: float, how: Descent) -> Array:
        """Train all neurons side by side; warn of those that stopped too early."""
        counts = None if columns[0].counts is None else np.array([column.counts for column in columns])
        path = _descend([column.task(level, how) for column in columns], counts, columns[0].sight.end, how)
        weights = np.array([column.sight.error(at) for column, at in zip(columns, path.best, strict=True)])
        if not np.isfinite(weights).all():
            msg = f"solver={how} left all floats; give a smaller learning_rate, or None."
            raise ValueError(msg)
        curves = [column.sight.error(at) for column, at in zip(columns, path.positions.T, strict=True)]
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
        return weights


def _refuse_targets(is_single: bool, y: object) -> None:
    if is_single and y is not None:
        msg = (
            "fit takes errors of shape (m,) alone; got y as well. If these are targets and predictions, use "
            "fit(absolute_errors(y_true, y_pred))."
        )
        raise ValueError(msg)


def _checked_counts(sample_weight: ArrayLike, samples: NDArray[Any]) -> Array:
    """Weights as counts, one per row."""
    counts: Array = check_array(
        real_array("sample_weight", sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if counts.ndim != 1:
        msg = f"sample_weight must have shape (m,), one count per row; got {counts.shape}."
        raise ValueError(msg)
    check_consistent_length(samples, counts)
    if (counts < 0.0).any() or not counts.any() or counts.max() > MOST / len(counts):
        found = f"{counts.min():g} to {counts.max():g}"
        msg = f"sample_weight must hold counts, none negative and not all zero, {MOST:g} in all at most; got {found}."
        raise ValueError(msg)
    return counts


@dataclass(frozen=True)
class Box:
    """The shape of a joint interval over k outputs or steps: one more neuron learns how large the box has to be.

    That neuron sees the `scores` of rows from which the shape was not learned: on its own rows the shape fits too well
    (5 outputs, 40 rows, 95 %: 91 % covered). A new row is inside the box of size r in all outputs at once if and only
    if its score is at most r, so that what holds for one neuron on scores holds for the whole row.

    Attributes
    ----------
    below, above : ndarray of shape (k,)
        How far the box of size 1 reaches down and up from its centre, not negative; infinite for no end there.
    centre : ndarray of shape (k,)
        Error in the middle, such as the median; 0 for an interval around the prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.neuron import Box
    >>> box = Box(below=np.array([1.0, 2.0]), above=np.array([1.0, 4.0]), centre=np.zeros(2))
    >>> box.scores(np.array([[0.5, 3.0], [-0.5, -3.0]]))
    array([0.75, 1.5 ])
    >>> box.radii(1.5)
    array([[1.5, 1.5],
           [3. , 6. ]])
    """

    below: Array
    above: Array
    centre: Array

    def scores(self, errors: Array) -> Array:
        """Least size of the box that holds all k errors of a row, (m,) for signed errors (m, k); NaN if one is NaN."""
        distance = errors - self.centre
        reach = np.where(distance < 0.0, self.below, self.above)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shares = np.where(distance == 0.0, 0.0, np.abs(distance) / reach)
        largest: Array = shares.max(axis=1)
        return largest

    def radii(self, size: float) -> Array:
        """How far the box of this size reaches below and above the prediction, (k, 2)."""
        sides = np.stack([self.below, self.above], axis=1)
        scaled = np.full(sides.shape, np.inf)
        if math.isfinite(size):
            with np.errstate(over="ignore"):  # a box beyond all floats has no end
                np.multiply(sides, size, out=scaled, where=np.isfinite(sides))
        return np.asarray(scaled + self.centre[:, None] * [-1.0, 1.0])
