"""A number between 0 and 1 for each row, made from a seed and the row itself: neither batch nor order matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.hashing import row_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]

BITS = np.uint64(11)  # 53 of 64 make a float


def row_draws(X: FeatureTable, seed: int) -> Array:
    """Draws in [0, 1), one per row; equal rows have the same one.

    Parameters
    ----------
    X : frame, array, sparse matrix or list, of n rows
        Numbers count by value, whatever their type; everything else by its text.
    seed : int
        Another seed gives other draws.

    Examples
    --------
    >>> from pimeter.classification.draws import row_draws
    >>> row_draws([[1.0, 2.0], [3.0, 4.0]], 0).round(3)
    array([0.422, 0.208])
    >>> row_draws([[3, 4]], 0).round(3)
    array([0.208])
    """
    return np.asarray((row_hashes(X, seed) >> BITS) * 2.0**-53)
