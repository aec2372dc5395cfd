"""`QuantileNeuron`: a single neuron whose weight is a quantile of errors, as a scikit-learn estimator."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from pimeter._kernels.arguments import LARGEST_COUNT
from pimeter.arrays import even_array, is_dask, real_array, unmasked
from pimeter.clusters import MIN_EXPECTED_MISSES, Units, group_numbers
from pimeter.constraints import Level
from pimeter.coverage import RANGE_CONFIDENCE, ROUNDING, effective_ranks, quantile_ranks, warn_of_coverage
from pimeter.frames import refuse_other_orders
from pimeter.quantiles import quantile
from pimeter.smoothing import MIN_BEYOND, SmoothedSample

if TYPE_CHECKING:
    import dask.array as da
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from pimeter.protocols import Array

    Floats = NDArray[np.floating]


class QuantileNeuron(BaseEstimator):
    """A neuron that learns one number: the quantile of errors at a confidence level.

    Its output is the smoothed proportion of errors below its weight (the paper's F_m), its target the confidence level,
    and the weight at which the output meets the target (the paper's w_p) is the quantile: the root of an equation,
    found to machine precision. Of `absolute_errors` it is the half-width of a prediction interval.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Proportion of errors that should lie below the quantile, between 0 and 1.
    beta : "auto" or float, default="auto"
        Steepness of the sigmoid. ``"auto"`` follows the errors, so that the quantile scales and shifts with them. A
        number is the paper's beta in the errors' own unit, and its meaning changes with that unit: 2,000 half-normal
        errors with ``beta=10`` in units from .01 to 100 covered 69 % to 100 % where 90 % were asked for.
    reflect : bool, default=False
        The errors are absolute ones, whose density goes on below 0 as its mirror image.

    Attributes
    ----------
    quantile_ : float or ndarray of shape (k,)
        The learned weights; a float for errors of shape (m,).
    standard_error_ : float or ndarray of shape (k,)
        Standard error of the quantile, for independent errors; rather too large than too small. NaN where fewer than
        five errors are expected beyond the quantile, ``m min(p, 1 - p) < 5``: below 100 errors at 95 %; and where a
        numeric beta is so blunt that the quantile becomes the smallest or the largest error. For a range that holds
        the quantile take `quantile_range_`; see Notes.
    quantile_range_ : ndarray of shape (2,) or (k, 2)
        Two of the errors that have the true quantile between them with 95 % confidence, whatever the distribution of
        the errors, if they are independent: the nearest such pair of ranks, by the binomial distribution. With fewer
        errors than that takes, the smallest and the largest. NaN with fractional weights, which have no ranks. With
        `groups` approximate, by the ranks of as many independent errors as vary as much.
    quantile_range_level_ : float
        The exact confidence of `quantile_range_`; below 0.95 only where there are too few errors.
    n_features_in_ : int
        Number of neurons.

    See Also
    --------
    quantile : Quantiles as a function, for any axis and many levels.
    pimeter.paper.DescendingNeuron : Trained step by step, as in the paper.

    Notes
    -----
    With ``beta="auto"`` the neuron measures errors on a map that is stretched where they are dense, and its target
    is a little nearer to 1/2 than the level, which cancels the bias of smoothing (`pimeter.bandwidth`).

    The standard error is the standard deviation of the errors under the Beta distribution of their ranks (Maritz and
    Jarrett, 1978). It knows no density, which heavy tails make infinite or wrong, nor that the neuron is more accurate
    than ranks: over five distributions, from uniform to t2, its mean is 1.0 to 1.3 times the standard deviation of the
    quantile with 20 errors beyond it, and up to 2.1 times with 5. ``quantile_ +- 1.96 standard_error_`` held the true
    quantile in 93 to 97 % of samples (`benchmarks/neuron_ranges.py`), where `quantile_range_` keeps its level exactly.
    With a numeric beta that is less sharp than ``"auto"`` it is that of a root of ``mean F_i(w) = p`` instead: the
    standard deviation of the contributions ``F_i`` over ``sqrt(m)`` and the slope of F.

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
        "confidence_level": [Level()],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "reflect": ["boolean"],
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        beta: float | Literal["auto"] = "auto",
        reflect: bool = False,
    ) -> None:
        self.confidence_level = confidence_level
        self.beta = beta
        self.reflect = reflect

    @np.errstate(over="ignore", invalid="ignore")  # of errors near the largest float only the quantile is known
    def fit(
        self,
        errors: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
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
        groups : array-like of shape (m,), optional
            Rows of one group belong together: `standard_error_` and `quantile_range_` then allow for it, and are NaN
            with fewer than 10 groups, or fewer than two of g groups of equal size beyond the quantile on average,
            ``g min(p, 1 - p) < 2``. With fewer than five there is no standard error, and the range counts each group as
            one error. Not with `sample_weight`, nor for dask collections.

        Returns
        -------
        QuantileNeuron
            The neuron itself.
        """
        self._validate_params()
        if is_dask(errors):
            _refuse_targets(np.ndim(errors) == 1, y)
            _refuse_lazy_groups(groups)
            return self._fit_lazily(errors, sample_weight)
        self._is_single = even_array("errors", errors).ndim == 1
        _refuse_targets(self._is_single, y)
        refuse_other_orders({"errors": errors, "groups": groups, "sample_weight": sample_weight})
        samples = self._columns(errors, reset=True)
        counts = None if sample_weight is None else _checked_counts(sample_weight, samples)
        if counts is not None:
            samples, counts = samples[counts > 0.0], counts[counts > 0.0]
        units = None if groups is None else _units(groups, samples, counts)
        level, width = float(self.confidence_level), samples.dtype
        columns = [SmoothedSample.of(column, counts, self.beta, self.reflect) for column in samples.T]
        self._smoothers = [column.smoother for column in columns]
        learned = self._weights(samples, counts, columns)
        self.quantile_ = self._own(np.asarray(learned, width))
        standard_errors = [column.standard_error(w, level) for column, w in zip(columns, learned, strict=True)]
        self.standard_error_ = self._own(np.array(standard_errors, width))
        self._count_rows(samples, counts, columns)
        if units is not None:
            self._count_groups(samples, columns, units)
        return self

    def _count_rows(self, samples: Floats, counts: Array | None, columns: list[SmoothedSample]) -> None:
        """Ranges of the quantiles from ranks of independent rows."""
        level, width = float(self.confidence_level), samples.dtype
        ranges, self.quantile_range_level_ = np.full((len(columns), 2), math.nan, width), math.nan
        if counts is None or (counts % 1.0 == 0.0).all():
            m = samples.shape[0] if counts is None else int(counts.sum())
            ranks = quantile_ranks(m, level)
            self.quantile_range_level_ = ranks.level
            ranges = np.array([column.ranked(ranks.low, ranks.high) for column in columns], width)
        self.quantile_range_ = ranges[0] if self._is_single else ranges

    def _count_groups(self, samples: Floats, columns: list[SmoothedSample], units: Units) -> None:
        """Standard errors and ranges of rows that belong together: of as many rows as vary as much, if independent.

        Where few groups are expected beyond the quantile, how their rows go together is not known: each group is one.
        """
        is_beyond = (samples > np.atleast_1d(self.quantile_)).T.astype(np.float64)
        m, level = len(samples), float(self.confidence_level)
        effects = units.widened_effect(is_beyond, RANGE_CONFIDENCE)
        errors = np.atleast_1d(self.standard_error_) * np.sqrt(units.design_effect(is_beyond))
        n_beyond = units.n_equal * min(level, 1.0 - level)
        if n_beyond < MIN_BEYOND - ROUNDING:
            effects, errors[:] = np.maximum(effects, m / units.n_equal), math.nan
        ranks = [effective_ranks(m, level, float(effect), RANGE_CONFIDENCE) for effect in effects]
        ranges = np.array(
            [one.ranked(own.low, own.high) for one, own in zip(columns, ranks, strict=True)], samples.dtype
        )
        self.quantile_range_level_ = min(own.level for own in ranks)
        refusal = units.refusal
        if not refusal and n_beyond < MIN_EXPECTED_MISSES - ROUNDING:
            least = f"{MIN_EXPECTED_MISSES:g}"
            refusal = f"{n_beyond:.2g} of equal size expected beyond the quantile, at least {least} are needed"
        if refusal:
            warn_of_coverage(f"groups: {refusal} for standard_error_ and quantile_range_, which are NaN.")
            ranges[:], errors[:], self.quantile_range_level_ = math.nan, math.nan, math.nan
        self.standard_error_ = self._own(errors.astype(samples.dtype))
        self.quantile_range_ = ranges[0] if self._is_single else ranges

    def _weights(self, samples: Floats, counts: Array | None, columns: list[SmoothedSample]) -> Floats:  # noqa: ARG002
        """The weight of each neuron: the root of its equation."""
        level = float(self.confidence_level)
        found: Floats = quantile(samples, level, axis=0, weights=counts, beta=self.beta, reflect=self.reflect)
        return found

    def _fit_lazily(self, errors: da.Array, sample_weight: da.Array | ArrayLike | None) -> Self:
        """Learn from dask arrays or frames, in three reads: from what stands for the errors near the level."""
        from pimeter._kernels.dask.bins import Task
        from pimeter._kernels.dask.quantiles import samples

        level = float(self.confidence_level)
        h = None if self.beta == "auto" else 1.0 / float(self.beta)
        found = samples(errors, sample_weight, Task((level,), h, self.reflect))
        neurons = [clone(self).fit(one.errors, sample_weight=one.counts) for one in found]
        self._is_single = errors.ndim == 1
        self.n_features_in_ = len(found)
        self._smoothers = [neuron._smoothers[0] for neuron in neurons]
        self.quantile_ = self._own(np.array([one.quantile for one in found]))
        self.standard_error_ = self._own(np.array([neuron.standard_error_ for neuron in neurons]))
        ranges = np.array([neuron.quantile_range_ for neuron in neurons])
        self.quantile_range_ = ranges[0] if self._is_single else ranges
        self.quantile_range_level_ = neurons[0].quantile_range_level_
        return self

    def smoothed_coverage(self, errors: ArrayLike) -> float | Floats:
        """Smoothed proportion of the given errors below the learned quantile: the neuron's output for them.

        On the errors of `fit` it is the neuron's target: the confidence level or, with ``beta="auto"``, a value that is
        nearer to 1/2 by as much as smoothing shifts it.

        Parameters
        ----------
        errors : array-like of shape (n,) or (n, k)
            Errors of any rows, for as many neurons as were fitted.

        Returns
        -------
        float or ndarray of shape (k,)
            Smoothed proportions; a float if the neuron was fitted on errors of shape (m,).

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
        cells = zip(self._smoothers, np.atleast_1d(self.quantile_), samples.T.astype(np.float64), strict=True)
        images = (1.0, -1.0) if self.reflect else (1.0,)
        outputs = [np.mean([smoother.outputs(w, sign * x) for sign in images]) for smoother, w, x in cells]
        proportions = 2.0 * np.array(outputs) - 1.0 if self.reflect else np.array(outputs)
        return float(proportions[0]) if self._is_single else proportions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = bool(self.reflect)
        return tags

    @np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
    def _columns(self, errors: ArrayLike, *, reset: bool) -> Floats:
        """Finite floats of shape (m, k), not negative if they are absolute errors."""
        array = even_array("errors", errors)
        if array.dtype.kind in "mMVUS" or (
            array.ndim == 0 and not issparse(errors)
        ):  # no array, but scikit-learn tries
            real_array("errors", array)
        table = array[:, None] if array.ndim == 1 else unmasked(errors)
        samples: Floats = validate_data(self, table, reset=reset, dtype=[np.float64, np.float32, np.float16])
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


def _refuse_targets(is_single: bool, y: object) -> None:
    if is_single and y is not None:
        msg = (
            "fit takes errors of shape (m,) alone; got y as well. If these are targets and predictions, use "
            "fit(absolute_errors(y_true, y_pred))."
        )
        raise ValueError(msg)


def _units(groups: ArrayLike, samples: Floats, counts: Array | None) -> Units:
    """Rows that belong together."""
    if counts is not None:
        msg = "groups cannot be used with sample_weight; give one of them."
        raise ValueError(msg)
    return Units.of_groups(group_numbers(groups, len(samples)))


def _refuse_lazy_groups(groups: object) -> None:
    if groups is not None:
        msg = "groups needs errors in memory; got a dask collection. Give errors.compute()."
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
    if (counts < 0.0).any() or not counts.any() or counts.max() > LARGEST_COUNT / len(counts):
        found = f"{counts.min():g} to {counts.max():g}"
        msg = (
            f"sample_weight must hold counts, none negative and not all zero, {LARGEST_COUNT:g} in all at most; "
            f"got {found}."
        )
        raise ValueError(msg)
    return counts
