"""`quantile`: the one door; the array's type chooses the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from pimeter._kernels import arrays
from pimeter.arrays import library_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Axis = int | tuple[int, ...]
    Beta = float | Literal["auto"]

Tensor = TypeVar("Tensor", bound="_Tensor")


class _Tensor(Protocol):
    """A tensor of torch's, for type checkers that may not have torch."""

    def __torch_function__(self, *args: Any) -> object: ...


class Lazy(Protocol):
    """A collection of dask's, for type checkers that may not have dask."""

    def compute(self) -> NDArray[np.floating]:
        """The values, computed."""

    def __dask_graph__(self) -> object: ...


@overload
def quantile(
    a: Tensor,
    q: ArrayLike,
    axis: Axis | None = None,
    *,
    weights: Tensor | None = None,
    beta: Beta = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> Tensor: ...
@overload
def quantile(
    a: Lazy,
    q: ArrayLike,
    axis: Axis | None = None,
    *,
    weights: Lazy | ArrayLike | None = None,
    beta: Beta = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> Lazy: ...
@overload
def quantile(
    a: ArrayLike,
    q: float,
    axis: None = None,
    *,
    weights: ArrayLike | None = None,
    beta: Beta = "auto",
    reflect: bool = False,
    keepdims: Literal[False] = False,
) -> np.floating: ...
@overload
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis | None = None,
    *,
    weights: ArrayLike | None = None,
    beta: Beta = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> NDArray[np.floating]: ...
def quantile(
    a: ArrayLike | _Tensor | Lazy,
    q: ArrayLike,
    axis: Axis | None = None,
    *,
    weights: ArrayLike | _Tensor | Lazy | None = None,
    beta: Beta = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> object:
    """Quantiles by a single neuron: more accurate than ranking, in `numpy.quantile`'s calling convention.

    Parameters
    ----------
    a : array
        The sample, or samples along `axis`. float16, 32 and 64 give the same width back, integers float64.
    q : float or array of float
        Levels in [0, 1]; 0 and 1 are the minimum and the maximum. The result has the shape of `q` first.
    axis : int, tuple of int or None
        Where the sample lies; None takes all values as one sample.
    weights : array, optional
        **Counts**, as many as values along `axis` or of the shape of `a`: 2 equals the value twice, 0 removes it;
        fractions are allowed.
    beta : "auto" or float
        How sharply the neuron distinguishes: "auto" follows the sample (`pimeter.bandwidth`), so that the quantile
        scales and shifts with it and quantiles of different levels never cross. A number is the paper's beta in the
        sample's own unit: the root of `mean sigmoid(beta (w - a)) = q`, whatever that means for the unit at hand.
    reflect : bool
        The values are absolute errors, whose density goes on below 0 as its mirror image.
    keepdims : bool
        Keep the reduced axes with length 1.

    Returns
    -------
    float or array
        NaN for a sample that holds NaN. Of a sample with infinities, which have no distance to others, a value is
        taken: numpy's "inverted_cdf".

    Notes
    -----
    A higher level never gives a lower quantile, whether asked for in one call or in two (but for rounding, 1e-12 of the
    sample's range), and each level gives the same bits however many others are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.random.default_rng(0).standard_normal(200)
    >>> print(round(quantile(errors, 0.9), 2))
    1.3
    >>> quantile(errors.reshape(4, 50), [0.5, 0.9], axis=1).shape
    (2, 4)
    """
    library = library_of(a)
    if library == "torch":
        _load_tensor_kernel()
        return _tensor_kernel[0].quantile(a, q, axis, weights, beta, reflect, keepdims)
    if library == "dask":
        from pimeter._kernels.dask.quantiles import quantile as lazy_quantile

        return lazy_quantile(a, q, axis, weights, beta, reflect, keepdims)
    values: Any = a
    counts: Any = weights
    return arrays.quantile(values, q, axis, weights=counts, beta=beta, reflect=reflect, keepdims=keepdims)


def _load_tensor_kernel() -> None:
    if not _tensor_kernel:
        from pimeter._kernels import torch

        _tensor_kernel.append(torch)


_tensor_kernel: list[Any] = []
_load_tensor_kernel._dynamo_marked_constant = True  # type: ignore[attr-defined] # torch.compile calls, not traces it
