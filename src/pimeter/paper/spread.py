"""How the paper looks at the spread of errors: White's test, and the entropy of their power spectrum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import fdtrc

from pimeter.bandwidth import safe_factor
from pimeter.validation import finite_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array

MAX_CELLS = 2e7  # of cross products


@dataclass(frozen=True)
class WhiteTest:
    """What White's test says about the spread of errors.

    Attributes
    ----------
    statistic, p_value : float
        F statistic of the regression of squared errors, and how often a constant spread exceeds it.
    form : {"full", "reduced"}
        Whether the features stand with all their products, or with their squares alone.
    n_rows, n_columns : int
        Size of the table that the squared errors were regressed on.
    """

    statistic: float
    p_value: float
    form: Literal["full", "reduced"]
    n_rows: int
    n_columns: int


def white_test(errors: ArrayLike, X: ArrayLike, *, residuals: Literal["errors", "linear"] = "errors") -> WhiteTest:
    """White's test: whether the spread of errors depends on the features, their squares and their products.

    A small p-value says that the spread is not constant, not that it varies by much: with 100,000 rows the test rejects
    a spread that varies by 5 %. To decide whether a constant width is enough look at coverage (`measure`).

    Parameters
    ----------
    errors : array-like of shape (n,)
        Errors of a model on rows that it was not trained on; or, with ``residuals="linear"``, whatever is to be
        regressed on X first.
    X : array-like of shape (n, d)
        Features: finite numbers.
    residuals : {"errors", "linear"}, default="errors"
        "errors": the errors as they are. "linear": their residuals from a linear regression on X, fitted to the same
        rows; with targets in the place of errors this is what the paper did.

    Returns
    -------
    WhiteTest
        Also says which form was used. It is chosen before anything is computed: the reduced form, features and their
        squares without products, where the full one has as many columns as rows or more than 2e7 cells.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is not finite, errors all have the same absolute value, or rows are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.paper import white_test
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(500, 2))
    >>> round(white_test(rng.normal(size=500), X).p_value, 2)
    0.79
    >>> growing = white_test(X[:, 0] * rng.normal(size=500), X)
    >>> growing.p_value < 1e-6, growing.form
    (True, 'full')
    """
    error = _column("errors", errors)
    error = error * safe_factor(float(np.abs(error).max()))
    table = finite_numbers("X", X)
    if table.ndim != 2 or len(table) != len(error):
        msg = f"X must have shape (n, d) with one row for each of the {len(error)} errors; got {table.shape}."
        raise ValueError(msg)
    if residuals not in {"errors", "linear"}:
        msg = f"residuals must be 'errors' or 'linear'; got {residuals!r}."
        raise ValueError(msg)
    scaled = _standardised(table)
    form, design = _design(scaled)
    n = len(scaled)
    if residuals == "linear":
        linear = np.column_stack([np.ones(n), scaled])
        error = error - linear @ np.linalg.lstsq(linear, error, rcond=None)[0]
    error = error / (np.abs(error).max() or 1.0)
    squares = error**2
    if np.ptp(squares) == 0.0:
        msg = "White's test cannot be made: all errors have the same absolute value."
        raise ValueError(msg)
    # Squares and products of features may repeat others, as the square of a column of zeros and ones does; the degrees
    # of freedom follow the rank. These lines say what statsmodels' het_white says; it takes a second to load.
    coefficients, _, rank, _ = np.linalg.lstsq(design, squares, rcond=None)
    rest = squares - design @ coefficients
    unexplained, explained = float(rest @ rest), float(np.square(squares - squares.mean()).sum())
    if rank == 1 or unexplained <= (n * np.finfo(np.float64).eps) ** 2 * explained:
        msg = "White's test cannot be made: X determines the absolute values of errors."
        raise ValueError(msg)
    statistic = (explained / unexplained - 1.0) * (n - rank) / (rank - 1)
    p_value = fdtrc(rank - 1, n - rank, max(statistic, 0.0))
    return WhiteTest(float(statistic), float(p_value), form, n, design.shape[1])


def _standardised(table: Array) -> Array:
    """Features that vary, in units of their spread: products of raw features lose their rank to rounding."""
    table = table / np.maximum(np.abs(table).max(axis=0), np.finfo(np.float64).tiny)
    table = table[:, np.ptp(table, axis=0) > 0.0]
    scaled: Array = (table - table.mean(axis=0)) / table.std(axis=0)
    return scaled


def _design(scaled: Array) -> tuple[Literal["full", "reduced"], Array]:
    """Which form it is, and its table: ones, features, their squares and, in the full form, their products."""
    n, d = scaled.shape
    n_full, n_reduced = (d + 1) * (d + 2) // 2, 2 * d + 1
    is_reduced = n_full >= n or n_full * n > MAX_CELLS
    n_columns = n_reduced if is_reduced else n_full
    if d == 0 or n_columns >= n:
        why = "no feature varies" if d == 0 else f"{n} rows are too few for {d} features; {n_columns + 1} are needed"
        msg = f"White's test cannot be made: {why}."
        raise ValueError(msg)
    linear = np.column_stack([np.ones(n), scaled])
    if is_reduced:
        return "reduced", np.column_stack([linear, scaled**2])
    first, second = np.triu_indices(d + 1)
    return "full", linear[:, first] * linear[:, second]


def power_spectral_entropy(errors: ArrayLike, *, squared: bool = False) -> float:
    """Entropy of the power spectrum of errors in the order given, from 0 (one frequency) to 1 (all frequencies equal).

    ``-sum p_i log p_i / log n``, where p_i is the proportion of the power in the i-th of n Fourier components. For
    independent errors it is about ``1 - .4228 / log n``, not 1.

    Parameters
    ----------
    errors : array-like of shape (n,)
        Errors, in a meaningful order; at least two.
    squared : bool, default=False
        False: the spectrum of the errors themselves, as the paper defines it. True: that of their squares, as the
        paper's table was made; it follows the kurtosis of the errors (independent uniform errors .53, normal .72, t3
        .91 at n = 300) more than any pattern.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there are fewer than two errors, one is not finite, or all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.paper import power_spectral_entropy
    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> round(power_spectral_entropy(noise), 2), round(power_spectral_entropy(np.sin(np.arange(1000)) + noise / 9), 2)
    (0.94, 0.19)
    >>> round(power_spectral_entropy(noise, squared=True), 2)
    0.74
    """
    error = _column("errors", errors)
    largest = float(np.abs(error).max())
    if len(error) < 2 or largest == 0.0:
        msg = f"errors must be at least two, not all of them 0; got {len(error)} of size up to {largest}."
        raise ValueError(msg)
    scaled = error / largest
    power = np.abs(np.fft.fft(scaled**2 if squared else scaled)) ** 2
    proportion = power / power.sum()
    proportion = proportion[proportion > 0.0]
    return float(-(proportion @ np.log(proportion)) / math.log(len(error)))


def _column(name: str, values: ArrayLike) -> Array:
    """One column of finite numbers."""
    column = finite_numbers(name, values)
    if column.ndim != 1:
        msg = f"{name} must have shape (n,); got {column.shape}. ravel() turns a single column into it."
        raise ValueError(msg)
    return column
