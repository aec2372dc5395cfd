"""Copies of rows: a hash of each row finds them, and the other rows say whether chance explains them.

Copies are not independent: a model that was trained on a row knows its copies, and a calibration row that is there
three times counts three times. Rows that are equal because few values are possible are another matter: they are
exchangeable like any others.
"""

from __future__ import annotations

import hashlib
import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import pdtr

from pimeter.arrays import even_array, is_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import narwhals as nw
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Bits = NDArray[np.uint64]
    Index = NDArray[np.intp]

# The constants of splitmix64, whose last steps mix the bits.
STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
MISSING = {"None", "nan", "NaT", "<NA>"}  # what stands for no value in columns of objects
BLOCK = 32_768  # rows that are hashed at a time: their bits stay in the cache
EXACT = 2**53  # integers from here on are not all floats

# When copies are no chance, see `copies`.
FEWEST = 3  # values that only copies share
PURE = 10  # as many times the values that rows share which differ elsewhere
COMMON = 20  # the inverse share of rows from which on a value is common, such as 0, a bound, or none at all
GRID = 10  # the inverse share of gaps from which on numbers lie on a grid
ROUNDING = 4.0 * np.finfo(np.float64).eps  # of a decimal that is scaled
CHANCE = 1e-6  # of so few rows with the same value among random ones
FEWEST_DISTINCT = 20  # rows whose numbers say something: .5**20 is 1e-6
MULTIPLES = 0.9  # the share of these numbers that are multiples
N_SPARSE = 12  # hashes of a row of a sparse matrix
FEWEST_COLUMNS = 5  # of which two thirds say something about the others
N_SPLITS = 10  # of the columns into thirds
MOST_ROWS = 100_000  # rows that are compared, drawn at random; all rows are counted
MOST_VALUES = 20_000_000  # values that are compared one column at a time
UNPROVEN = "nothing is guaranteed (guaranteed_level_ is NaN)"


def duplicate_groups(X: Any, y: ArrayLike | None = None) -> Index:
    """The group of each row: rows that are equal in all columns of X, and in y, belong to one.

    For ``groups=`` of `IntervalRegressor.fit`, so that no model is calibrated on copies of rows that it was trained on.
    ``np.unique(duplicate_groups(X, y), return_index=True)[1]`` are the first rows of all groups: the rows without
    copies.

    Parameters
    ----------
    X : frame, array, sparse matrix or list, of n rows
        Features. Numbers are compared by value whatever their type, so that -0.0 is 0.0; everything else as text. A
        missing value equals any other.
    y : array-like of shape (n,) or (n, k), optional
        Targets. Without them rows of the same features are one group, whatever their targets are.

    Returns
    -------
    ndarray of int, shape (n,)
        Numbers from 0 on, in the order in which groups appear. Rows are compared by a hash of 64 bits: that two
        different ones among a million share theirs has a probability of 3e-8.

    Raises
    ------
    ValueError
        If X has no rows, or y not one target for each.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import duplicate_groups
    >>> X = np.array([[1.0, np.nan], [2.0, 5.0], [1.0, np.nan], [2.0, 5.0]])
    >>> duplicate_groups(X)
    array([0, 1, 0, 1])
    >>> duplicate_groups(X, [7, 8, 7, 9])
    array([0, 1, 0, 2])
    """
    _, first, codes = np.unique(_hashes(_table(X, y)), return_index=True, return_inverse=True)
    place = np.empty(len(first), np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return place[codes.reshape(-1)]


class Copies(NamedTuple):
    """Rows that equal others."""

    n: int  # rows that are copies of one before them, where chance does not explain it
    n_equal: int  # all rows that equal one before them
    n_rows: int
    factor: float = 1.0  # by which ranges that count each row are too narrow: the root of the mean number of its copies
    compared: str = "X, y"  # what was compared

    def __str__(self) -> str:
        kind = "is a copy of another" if self.n == 1 else "are copies of others"
        return f"{self.n:,} of {self.n_rows:,} rows {kind}"

    def of_sample(self, n: int) -> Copies:
        """The same where these rows were drawn at random among n: there each row has more copies."""
        n_copies = (self.factor**2 - 1.0) * n / max(self.n_rows, 1)
        return self._replace(factor=math.sqrt(1.0 + n_copies))

    def warning(self, method: str, *, has_groups: bool) -> str:
        """What it means for a method that trains and calibrates, or calibrates only, and what to do."""
        if method == "fit":
            harm = "a model knows the copies of rows that it was trained on, so that it looks better than it is"
        else:
            harm = "copies say nothing new, so that the rows are worth less than their number"
        together = (
            "give copies the same group"
            if has_groups
            else f"keep them together and count them once: {method}(X, y, groups=duplicate_groups(X, y))"
        )
        where = " of other groups" if has_groups else ""
        return f"{self}{where}, target included: {harm}, and {UNPROVEN}. Drop them, or {together}."


def copies(
    keys: Bits | None, X: Any, y: ArrayLike | None, groups: Index | None = None, prediction: Array | None = None
) -> Copies:
    """Copies among the rows, or among rows of different groups, and whether chance explains them.

    Equal rows are no chance if one of these holds.

    - A column of numbers, or the target, tells rows apart: the values in it that several rows share, 3 or more of them,
      are shared by equal rows alone, with one exception in 11 at most. Values that more than 5 % of rows share do not
      count. Neither do columns whose values lie on a grid, where chance meets the same value as easily as the next one:
      the smallest gap between two values is that of a tenth of all, or of half as many as there are shared values.
      Where they are fewer than random numbers of that grid would share, as with the number of a row, they count.
    - In the target and in another column, equal rows alone share a number, be it a single one, and both hold decimals
      of which a hundred times as many are possible as there are pairs of rows, or more. Numbers of 0, none, and ends
      that three rows or more share do not count.
    - Nine tenths of the distinct rows, of at least 20, are there a multiple of 2, 3, 5 or 7 times.
    - There are 5 columns or more, and rows that agree in two thirds of them agree in all, again with one exception in
      11 at most, whichever third is left out (random thirds, ten times). Rounded measurements are so. A column on a
      grid that determines all others explains this, too.

    The first point says nothing where all columns are the same one or constant, as if there were no features, and
    values have two rows or more on average, but not all as many: then they are few.

    So 5 % of copies among 100 rows or more are found wherever one column is continuous, and independent rows of
    discrete columns raise no alarm, unless one that is on no grid determines all others and the target. Fewer than 10
    rows cannot tell whether values lie on a grid: only the third point says something of them. One pair of copies is
    found if the target is continuous, too: in a single column it may be one of a few hundred irregular values. Of more
    than 100,000 rows so many are looked at, drawn at random, and of very many columns the first.

    `keys` are the `row_keys` of X, y and the prediction; without them, as some models take what is no table, nothing
    is found. A `prediction` is a function of X: it tells rows apart only beside a target that does. X may be None.
    """
    if keys is None:
        return Copies(0, 0, 0)
    n_distinct = int(np.count_nonzero(_is_new(np.sort(keys))))
    if n_distinct == len(keys):
        return Copies(0, 0, len(keys))
    columns = _table(y, None) if X is None else _table(X, y)
    n_targets = 0 if y is None else len(columns) if X is None else int(np.prod(np.shape(y)[1:]))
    if prediction is not None:
        columns.append(prediction)
    if groups is not None:
        with np.errstate(over="ignore"):
            pairs = _mixed(keys + _mixed(groups.astype(np.uint64) * STEP))
        rows = np.unique(pairs, return_index=True)[1]
        columns, keys = [column[rows] for column in columns], keys[rows]
    n, n_equal = len(keys), len(keys) - n_distinct
    sizes = np.zeros(0, np.intp)
    if n_equal:
        told = columns if prediction is None else columns[:-1]
        if not (_is_one_variable(columns) and _are_few_values(keys)):
            sizes = _unexplained(told, keys)
        if not len(sizes) and (_are_multiples(keys) or _have_a_pair(columns, keys, n_targets)):
            sizes = _sizes_of_copies(keys, keys)
    n_copies = int(sizes.sum()) - len(sizes)
    n_pairs = float(sizes.astype(np.float64) @ (sizes - 1.0))  # of a row and another one that is its copy
    return Copies(n_copies, n_equal, n, math.sqrt(1.0 + n_pairs / n))


def row_keys(X: Any, y: ArrayLike | None = None) -> Bits | None:
    """A hash of each row by itself, equal for equal rows; None for what is no table."""
    try:
        return _hashes(_table(X, y))
    except (TypeError, ValueError):
        return None


def are_copies(groups: Index, keys: NDArray[Any] | None) -> bool:
    """Whether all rows of a group have the same key."""
    return keys is not None and bool(_runs(groups.astype(np.uint64), keys)[0].all())


def row_hashes(X: Any, seed: int) -> Bits:
    """A hash of each row of X by itself, another one for another seed."""
    return _hashes(_columns(X), seed)


def tells_copies(values: NDArray[Any], keys: Bits) -> bool:
    """Whether rows share values of this column only where they are copies, by their keys, and no grid explains it."""
    sizes = _pure_sizes(_bits(values), keys)
    return sizes is not None and not _is_on_a_grid(values, len(sizes)) and not _are_few_values(keys)


def _unexplained(columns: Sequence[NDArray[Any]], keys: Bits) -> Index:
    """Numbers of rows in those groups of equal rows that chance does not explain, see `copies`."""
    nothing = np.zeros(0, np.intp)
    n, d = len(keys), len(columns)
    rng = np.random.default_rng([d, n])
    rows = np.sort(rng.choice(n, MOST_ROWS, replace=False, shuffle=False)) if n > MOST_ROWS else np.arange(n)
    some = keys[rows]
    is_key = False
    for column in columns[: max(1, MOST_VALUES // len(rows))]:
        values = column[rows]
        sizes = _pure_sizes(_bits(values), some) if values.dtype.kind in "fiumM" else None
        if sizes is not None:
            if not _is_on_a_grid(values, len(sizes)) or _is_numbering(values):
                return _sizes_of_copies(_bits(column), keys)
            is_key = True
    if is_key or d < FEWEST_COLUMNS:
        return nothing
    columns = [column[rows] for column in columns]
    for _ in range(N_SPLITS):
        for third in np.array_split(rng.permutation(d), 3):
            kept = [columns[i] for i in np.setdiff1d(np.arange(d), third)]
            if _pure_sizes(_hashes(kept), some) is None:
                return nothing
    return _sizes_of_copies(keys, keys)


def _are_multiples(keys: Bits) -> bool:
    """Whether distinct rows are there a multiple of a number of times, which of each has a chance of 1/2 at most."""
    sizes = _runs(keys, keys)[1]
    if len(sizes) < FEWEST_DISTINCT:
        return False
    return any(np.count_nonzero(sizes % k == 0) >= MULTIPLES * len(sizes) for k in (2, 3, 5, 7))


def _have_a_pair(columns: Sequence[NDArray[Any]], keys: Bits, n_targets: int) -> bool:
    """Whether the target and another column hold long numbers, of which equal rows alone share any."""
    told = [_lone_keys(column, keys) for column in columns[:n_targets]]
    if not any(map(len, told)):
        return False
    found = np.unique(np.concatenate(told))
    others = columns[n_targets:][: max(1, MOST_VALUES // len(keys))]
    return any(np.isin(found, _lone_keys(column, keys)).any() for column in others)


def _lone_keys(column: NDArray[Any], keys: Bits) -> Bits:
    """Keys of equal rows that alone share a number, if no other rows of this column share one."""
    nothing = np.zeros(0, np.uint64)
    if column.dtype.kind != "f" or len(column) < GRID:
        return nothing
    known = column[np.isfinite(column)].astype(np.float64)
    width = float(np.ptp(known)) if len(known) else 0.0
    if not 0.0 < width < np.inf or GRID * _n_short(known, width) > len(known):
        return nothing
    bits = _bits(column)
    values, first, sizes = np.unique(bits, return_index=True, return_counts=True)
    is_pure = _runs(bits, keys)[0]  # in the same order
    held = column[first]
    is_end = ((held == known.min()) | (held == known.max())) & (sizes > 2)
    is_special = ~np.isfinite(held) | (held == 0.0) | is_end
    if (~is_pure & ~is_special).any() or _is_on_a_grid(column, len(values)):
        return nothing
    found: Bits = keys[first[is_pure & ~is_special & (sizes > 1)]]
    return found


def _n_short(values: Array, width: float) -> int:
    """How many numbers have so few decimals that n random ones within the width may meet: 100 n² places or fewer."""
    decimals = math.ceil(2.0 + 2.0 * math.log10(len(values)) - math.log10(width))
    if not -300 < decimals < 300:
        return len(values)
    scaled = values * 10.0**decimals if decimals > 0 else values / 10.0**-decimals
    return int(np.count_nonzero(np.abs(scaled - np.round(scaled)) <= ROUNDING * np.abs(scaled)))


def _is_numbering(values: NDArray[Any]) -> bool:
    """Whether fewer rows share a value than if these were drawn at random between their ends, in steps of the grid."""
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
    return bool(pdtr(n - len(known), expected) < CHANCE)


def _is_one_variable(columns: Sequence[NDArray[Any]]) -> bool:
    """Whether all columns are the same one, or constant."""
    found = set()
    for column in columns:
        bits = _bits(column)
        if (bits != bits[0]).any():
            found.add(_digest(bits.tobytes()))
            if len(found) > 1:
                return False
    return True


def _are_few_values(keys: Bits) -> bool:
    """Whether values have two rows or more on average, and not as equally many as copies of all rows have."""
    sizes = _runs(keys, keys)[1]
    return bool(sizes.mean() >= 2.0 and sizes.var() >= sizes.mean() / 4.0)


def _sizes_of_copies(bits: Bits, keys: Bits) -> Index:
    """How many rows share each of the values that equal rows alone share."""
    is_pure, sizes = _runs(bits, keys)
    return sizes[is_pure & (sizes > 1)]


def _pure_sizes(bits: Bits, keys: Bits) -> Index | None:
    """The same, if they are several, and nearly all of the values that rows share."""
    is_pure, sizes = _runs(bits, keys)
    n_others = int(np.count_nonzero(~is_pure & (sizes <= max(2, len(bits) // COMMON))))
    found = sizes[is_pure & (sizes > 1)]
    return found if len(found) >= max(FEWEST, PURE * n_others) else None


def _runs(bits: Bits, keys: NDArray[Any]) -> tuple[NDArray[np.bool_], Index]:
    """Of each distinct value whether the rows that have it are equal, by their keys, and how many they are."""
    order = np.argsort(bits)
    starts = np.flatnonzero(_is_new(bits[order]))
    keys = keys[order]
    sizes = np.diff(np.append(starts, len(bits)))
    return np.maximum.reduceat(keys, starts) == np.minimum.reduceat(keys, starts), sizes


def _is_new(rising: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether values in order are the first of their kind; faster than numpy's unique, which looks values up."""
    return np.append(True, rising[1:] != rising[:-1])


def _is_on_a_grid(values: NDArray[Any], n_pure: int) -> bool:
    """Whether the smallest gap is so frequent that chance may meet n values twice; also in units of the decade."""
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64))
    known = np.sort(values[np.isfinite(values)].astype(np.float64))
    known = known[_is_new(known)[: len(known)]]
    if len(known) < 2:
        return True
    low, high = np.sort(np.abs([known[:-1], known[1:]]), axis=0)
    with np.errstate(over="ignore"):  # of gaps from one end of all floats to the other
        gaps = np.diff(known)
    rounding = 8.0 * np.finfo(np.float64).eps * float(high.max())
    size = np.maximum(np.where(low > 0.0, low, high), np.finfo(np.float64).tiny)[gaps > rounding]
    gaps = gaps[gaps > rounding]
    for unit in (1.0, 10.0 ** np.floor(np.log10(size))):
        scaled = gaps / unit
        n_smallest = np.count_nonzero(scaled <= scaled.min(initial=np.inf) * (1.0 + 1e-6) + rounding / unit)
        if GRID * n_smallest > len(known) or n_pure <= 2 * n_smallest:
            return True
    return False


def _table(X: Any, y: ArrayLike | None) -> list[NDArray[Any]]:
    """Columns of the target, then those of X."""
    columns = _columns(X)
    if y is None:
        return columns
    target = even_array("y", y)
    if target.ndim == 0 or len(target) != len(columns[0]):
        msg = f"y has shape {target.shape}, but X has {len(columns[0])} rows: give one target for each row of X."
        raise ValueError(msg)
    return [*target.reshape(len(target), -1).T, *columns]


def _columns(X: Any) -> list[NDArray[Any]]:
    """Columns of a table; of a sparse matrix some hashes of each row, each of some columns."""
    if is_sparse(X) and hasattr(X, "tocoo"):
        return _sparse_columns(X.tocoo(copy=True))
    columns = _columns_of_frame(X)
    if columns is None:
        table = even_array("X", X)
        if not table.ndim:
            msg = f"X must have rows, but it is a {type(X).__name__}: give a table, one row for each target."
            raise ValueError(msg)
        columns = list(table.reshape(len(table), -1).T) if table.size else []
    if not columns or not len(columns[0]):
        msg = "X has no rows or no columns, so there is nothing to compare; give at least one of each."
        raise ValueError(msg)
    return columns


def _columns_of_frame(X: Any) -> list[NDArray[Any]] | None:
    """Columns of a frame; None for other tables, and for frames with two columns of one name."""
    if isinstance(X, np.ndarray):
        return None
    import narwhals as nw  # takes long to load

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return [_values(column) for column in frame.iter_columns()] if isinstance(frame, nw.DataFrame) else None


def _values(column: nw.Series[Any]) -> NDArray[Any]:
    """Of a column; large integers beside missing values are not rounded to floats."""
    if column.dtype.is_integer() and column.null_count() and max(-(column.min() or 0), column.max() or 0) >= EXACT:
        return np.array(column.to_list(), object)
    return column.to_numpy()


def _sparse_columns(X: Any) -> list[NDArray[Any]]:
    """Sums of hashes of a row's entries that are not 0, by column modulo a number."""
    X.sum_duplicates()
    bits = _bits(X.data)
    row, column = X.coords[0], X.coords[-1]
    found = np.zeros((X.shape[0], N_SPARSE), np.uint64)
    some = bits != 0
    with np.errstate(over="ignore"):
        entries = _mixed(_mixed(column.astype(np.uint64) * STEP) + bits)
        np.add.at(found, (row[some], column[some] % N_SPARSE), entries[some])
    return list(found.view("V8").T)


def _hashes(columns: Sequence[NDArray[Any]], seed: int = 0) -> Bits:
    """A hash of each row of these columns."""
    n = len(columns[0])
    found = np.full(n, np.uint64(seed))
    with np.errstate(over="ignore"):
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            for column in columns:
                found[rows] = _mixed(found[rows] * FIRST + _bits(column[rows]) + STEP)
    return found


def _mixed(x: Bits) -> Bits:
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def _bits(values: NDArray[Any]) -> Bits:
    """64 bits of each value: equal for equal numbers, whatever their type, and for equal texts."""
    kind = values.dtype.kind
    if kind == "O":
        return _bits_of_objects(values.tolist())
    if kind in "fiub":
        numbers = values.astype(np.float64) + 0.0  # no -0.0
        if kind == "f":
            numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.uint64)
        if kind in "iu" and values.dtype.itemsize == 8:
            beyond = np.flatnonzero(np.abs(numbers) >= EXACT)
            bits[beyond] = _bits_of_large(values[beyond], bits[beyond])
        return bits
    if kind in "mM":
        return values.astype(np.int64).view(np.uint64)
    if kind == "V" and values.dtype.itemsize == 8:
        return np.ascontiguousarray(values).view(np.uint64)
    words, codes = np.unique(values.astype(str), return_inverse=True)
    return np.array([_digest(word.encode()) for word in words.tolist()], np.uint64)[codes.reshape(-1)]


def _bits_of_large(values: NDArray[Any], bits: Bits) -> Bits:
    """Of integers that are floats the bits of these, of others a hash that no float shares but by chance."""
    with np.errstate(over="ignore"):
        size = values.astype(np.uint64)
        size = np.where(values < 0, ~size + np.uint64(1), size)
        is_float = size // (size & (~size + np.uint64(1))) < EXACT  # without the factors of 2
        return np.where(is_float, bits, _mixed(_mixed(size ^ STEP) + (values < 0).astype(np.uint64)))


def _bits_of_objects(values: list[Any]) -> Bits:
    """The same, whatever else the column holds."""
    if set(map(type, values)) <= {str, float, type(None)}:  # each text once
        known = {value: _bits_of(value) for value in dict.fromkeys(values)}
        return np.fromiter(map(known.__getitem__, values), np.uint64, len(values))
    return np.fromiter(map(_bits_of, values), np.uint64, len(values))


def _bits_of(value: Any) -> int:
    if isinstance(value, Integral) and abs(int(value)) >= EXACT:
        return _bits_of_integer(int(value))
    if isinstance(value, Real | np.bool_):
        try:
            return int(_bits(np.array([float(value)]))[0])
        except OverflowError:
            return _digest(repr(value).encode())
    if isinstance(value, np.ndarray | list | tuple):  # a long array's text would leave out its middle
        held = _bits(value.reshape(-1)) if isinstance(value, np.ndarray) else _bits_of_objects(list(value))
        return _digest(f"{type(value).__name__} {np.shape(held)}".encode() + held.tobytes())
    if not isinstance(value, str) and str(value) in MISSING:
        return int(_bits(np.array([np.nan]))[0])
    return _digest(str(value).encode())


def _bits_of_integer(value: int) -> int:
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            return int(_bits(np.array([value], kind))[0])
    try:
        if float(value) == value:
            return int(_bits(np.array([float(value)]))[0])
    except OverflowError:
        pass
    return _digest(hex(value).encode())


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
