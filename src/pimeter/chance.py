"""Whether chance explains that rows are equal: what the other rows and values of a table say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import pdtr

from pimeter.arrays import is_new
from pimeter.hashing import digest, hashed_rows, value_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Bits = NDArray[np.uint64]
    Column = NDArray[np.generic]
    Index = NDArray[np.intp]

MIN_PURE_VALUES = 3  # values that occur in several rows, all of which are equal
MIN_PURITY = 10  # as many times the values that occur in several rows which differ elsewhere
ROWS_PER_COMMON_VALUE = 20  # a value of more than one row in so many is common, such as 0, a bound, or none at all
GAPS_PER_GRID_STEP = 10  # numbers lie on a grid if one gap in so many is the smallest
ROUNDING = 4.0 * np.finfo(np.float64).eps  # of a decimal that is scaled
IMPROBABLE = 1e-6  # probability of so few rows with the same value among random ones
MIN_DISTINCT_ROWS = 20  # rows whose numbers say something: .5**20 is 1e-6
MIN_MULTIPLES = 0.9  # proportion of these numbers that are multiples
MIN_COLUMNS = 5  # of which two thirds say something about the others
N_SPLITS = 10  # of the columns into thirds
MAX_ROWS_COMPARED = 100_000  # drawn at random; all rows are counted
MAX_VALUES_COMPARED = 20_000_000  # one column at a time


def unexplained_counts(columns: Sequence[Column], keys: Bits) -> Index:
    """Numbers of rows in those groups of equal rows that chance does not explain; `duplicates.copies` says when."""
    n, d = len(keys), len(columns)
    rng = np.random.default_rng([d, n])
    rows = np.arange(n)
    if n > MAX_ROWS_COMPARED:
        rows = np.sort(rng.choice(n, MAX_ROWS_COMPARED, replace=False, shuffle=False))
    some = keys[rows]
    has_key_on_grid = False
    for column in columns[: max(1, MAX_VALUES_COMPARED // len(rows))]:
        kind = _key_kind(column[rows], some)
        if kind == "key":
            return counts_of_copies(value_bits(column), keys)
        has_key_on_grid |= kind == "key on a grid"
    if has_key_on_grid or d < MIN_COLUMNS or not _do_thirds_agree([column[rows] for column in columns], some, rng):
        return np.zeros(0, np.intp)
    return counts_of_copies(keys, keys)


def _key_kind(values: Column, keys: Bits) -> Literal["key", "key on a grid", "none"]:
    """Whether a column of numbers tells rows apart, and whether its values lie on a grid."""
    counts = pure_counts(value_bits(values), keys) if values.dtype.kind in "fiumM" else None
    if counts is None:
        return "none"
    return "key on a grid" if is_on_a_grid(values, len(counts)) and not _is_numbering(values) else "key"


def _do_thirds_agree(columns: Sequence[Column], keys: Bits, rng: np.random.Generator) -> bool:
    """Whether rows that agree in two thirds of the columns agree in all, whichever third is left out."""
    d = len(columns)
    for _ in range(N_SPLITS):
        for third in np.array_split(rng.permutation(d), 3):
            kept = [columns[i] for i in np.setdiff1d(np.arange(d), third)]
            if pure_counts(hashed_rows(kept), keys) is None:
                return False
    return True


def are_multiples(keys: Bits) -> bool:
    """Whether distinct rows are there a multiple of a number of times, which of each has a chance of 1/2 at most."""
    counts = runs(keys, keys)[1]
    if len(counts) < MIN_DISTINCT_ROWS:
        return False
    return any(np.count_nonzero(counts % k == 0) >= MIN_MULTIPLES * len(counts) for k in (2, 3, 5, 7))


def have_a_pair(columns: Sequence[Column], keys: Bits, n_targets: int) -> bool:
    """Whether the target and another column hold long numbers, some of which occur in equal rows alone."""
    told = [_lone_keys(column, keys) for column in columns[:n_targets]]
    if not any(map(len, told)):
        return False
    found = np.unique(np.concatenate(told))
    others = columns[n_targets:][: max(1, MAX_VALUES_COMPARED // len(keys))]
    return any(np.isin(found, _lone_keys(column, keys)).any() for column in others)


def _lone_keys(column: Column, keys: Bits) -> Bits:
    """Keys of equal rows that alone hold a number of this column, if no other rows have one in common."""
    nothing = np.zeros(0, np.uint64)
    if column.dtype.kind != "f" or len(column) < GAPS_PER_GRID_STEP:
        return nothing
    known = column[np.isfinite(column)].astype(np.float64)
    width = float(np.ptp(known)) if len(known) else 0.0
    if not 0.0 < width < np.inf or GAPS_PER_GRID_STEP * _n_short(known, width) > len(known):
        return nothing
    bits = value_bits(column)
    values, first, counts = np.unique(bits, return_index=True, return_counts=True)
    is_pure = runs(bits, keys)[0]  # in the same order
    held = column[first]
    is_extreme = ((held == known.min()) | (held == known.max())) & (counts > 2)
    is_special = ~np.isfinite(held) | (held == 0.0) | is_extreme
    if (~is_pure & ~is_special).any() or is_on_a_grid(column, len(values)):
        return nothing
    found: Bits = keys[first[is_pure & ~is_special & (counts > 1)]]
    return found


def _n_short(values: Array, width: float) -> int:
    """How many numbers have so few decimals that n random ones within the width may meet: 100 n² places or fewer."""
    decimals = math.ceil(2.0 + 2.0 * math.log10(len(values)) - math.log10(width))
    if not -300 < decimals < 300:
        return len(values)
    scaled = values * 10.0**decimals if decimals > 0 else values / 10.0**-decimals
    return int(np.count_nonzero(np.abs(scaled - np.round(scaled)) <= ROUNDING * np.abs(scaled)))


def _is_numbering(values: Column) -> bool:
    """Whether fewer rows have a value in common than if these were drawn at random over their range, on their grid."""
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64))
    known = np.unique(values[np.isfinite(values)].astype(np.float64))
    gaps = np.diff(known)
    if not len(gaps):
        return False
    n = int(np.count_nonzero(np.isfinite(values)))
    n_cells = float(known[-1] - known[0]) / float(gaps.min()) + 1.0
    if not n_cells < np.inf:
        return False
    expected = n - n_cells * -math.expm1(n * math.log1p(-1.0 / n_cells))
    return bool(pdtr(n - len(known), expected) < IMPROBABLE)


def is_one_variable(columns: Sequence[Column]) -> bool:
    """Whether all columns are the same one, or constant."""
    found = set()
    for column in columns:
        bits = value_bits(column)
        if (bits != bits[0]).any():
            found.add(digest(bits.tobytes()))
            if len(found) > 1:
                return False
    return True


def are_few_values(keys: Bits) -> bool:
    """Whether values have two rows or more on average, and not as equally many as copies of all rows have."""
    counts = runs(keys, keys)[1]
    return bool(counts.mean() >= 2.0 and counts.var() >= counts.mean() / 4.0)


def counts_of_copies(bits: Bits, keys: Bits) -> Index:
    """How many rows hold each of the values that occur several times, but in equal rows alone."""
    is_pure, counts = runs(bits, keys)
    return counts[is_pure & (counts > 1)]


def pure_counts(bits: Bits, keys: Bits) -> Index | None:
    """Counts of values that occur in equal rows alone, if they are several and nearly all that occur more than once."""
    is_pure, counts = runs(bits, keys)
    n_others = int(np.count_nonzero(~is_pure & (counts <= max(2, len(bits) // ROWS_PER_COMMON_VALUE))))
    found = counts[is_pure & (counts > 1)]
    return found if len(found) >= max(MIN_PURE_VALUES, MIN_PURITY * n_others) else None


def runs(bits: Bits, keys: Column) -> tuple[NDArray[np.bool_], Index]:
    """Of each distinct value whether the rows that have it are equal, by their keys, and how many they are."""
    order = np.argsort(bits)
    starts = np.flatnonzero(is_new(bits[order]))
    keys = keys[order]
    counts = np.diff(np.append(starts, len(bits)))
    return np.maximum.reduceat(keys, starts) == np.minimum.reduceat(keys, starts), counts


def is_on_a_grid(values: Column, n_pure: int) -> bool:
    """Whether the smallest gap is so frequent that chance may meet n values twice; also in units of the decade."""
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64))
    known = np.sort(values[np.isfinite(values)].astype(np.float64))
    known = known[is_new(known)[: len(known)]]
    if len(known) < 2:
        return True
    low, high = np.sort(np.abs([known[:-1], known[1:]]), axis=0)
    with np.errstate(over="ignore"):  # of gaps from one end of all floats to the other
        gaps = np.diff(known)
    rounding = 8.0 * np.finfo(np.float64).eps * float(high.max())
    magnitude = np.maximum(np.where(low > 0.0, low, high), np.finfo(np.float64).tiny)[gaps > rounding]
    gaps = gaps[gaps > rounding]
    for unit in (1.0, 10.0 ** np.floor(np.log10(magnitude))):
        scaled = gaps / unit
        n_smallest = np.count_nonzero(scaled <= scaled.min(initial=np.inf) * (1.0 + 1e-6) + rounding / unit)
        if GAPS_PER_GRID_STEP * n_smallest > len(known) or n_pure <= 2 * n_smallest:
            return True
    return False
