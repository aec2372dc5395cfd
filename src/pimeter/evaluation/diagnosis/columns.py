"""Features of any kind as columns, and columns as subgroups of the rows: quintiles of numbers, or categories."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import coded, columns_of, even_array, is_missing, is_sparse, numbers_of, some_rows
from pimeter.dates import date_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, FeatureTable, Index

N_CATEGORIES = 20  # that are looked at one by one: the largest; the others together
QUINTILES = (0.2, 0.4, 0.6, 0.8)
MAX_ROWS_FOR_QUINTILES = 100_000  # which tell their borders
WITHOUT_EXPONENT = 1e7  # numbers below it are written without an exponent
MISSING = "missing"
OWN = ("prediction", "interval width", "by")  # names of divisions that belong to no feature
MIN_VALUES_OF_IDS = 20  # fewer may well be distinct by chance
DISTINCT = 0.5  # fraction of distinct labels from which on there are fewer than two rows of each
ID = re.compile(r"(^|[^a-zA-Z])(id|uuid|guid|key|index)$|[a-z](Id|ID|Key|Index)$")  # how names of ids end


@dataclass(frozen=True)
class Subgroups:
    """Which subgroup each row belongs to, and what the subgroups are called."""

    codes: NDArray[np.integer[Any]]  # of each row, the place of its subgroup among the labels
    labels: tuple[str, ...]


class Column(NamedTuple):
    """A feature: numbers with NaN for what is missing, or labels."""

    name: str
    place: Any  # how `GroupedWidth(by=...)` finds it: the name in a frame, the position in an array
    values: NDArray[Any]
    is_numeric: bool
    text: Callable[[float], str] | None = None  # how to write what is not a plain number

    @property
    def subgroups(self) -> Subgroups:
        """Subgroups of the column: quintiles of numbers, or categories."""
        return quintiles(self.values, self.text) if self.is_numeric else categories(self.values)

    @property
    def numbers(self) -> Array:
        """Finite numbers, or NaN; categories as their codes."""
        if self.is_numeric:
            return np.where(np.isfinite(self.values), self.values, np.nan)
        found = coded(self.values)
        return np.where(np.array([label is None for label in found.labels])[found.codes], np.nan, found.codes)


class Given(NamedTuple):
    """What may tell where a model is weak, and sentences on what tells rows apart and nothing else."""

    columns: list[Column]  # of some rows
    labels: NDArray[Any] | None  # `by`, of all rows
    left_out: list[str]
    why_no_labels: str = ""  # why `by` is among them; empty if it is not

    @property
    def why_no_columns(self) -> str:
        """Why there are no columns, in a sentence."""
        return "No features are left to look at." if self.left_out else "No features were given."


def given(X: FeatureTable | None, by: ArrayLike | None, n: int, rows: Index) -> Given:
    """Some rows of X, which has n, as columns, and a category of each row; ids are left out."""
    kept, left_out = [], []
    for column in [] if X is None else columns(X, n, rows):
        why = _as_ids(column, n)
        if why:
            left_out.append(f"Column {column.place!r} is left out: {why}.")
        else:
            kept.append(column)
    labels = labels_of(by, n)
    why = "" if labels is None else _as_labels_of_ids(labels)
    if why:
        left_out.append(f"by is left out: {why}. Give categories of several rows each.")
    return Given(kept, None if why else labels, left_out, why)


def _as_ids(column: Column, n: int) -> str:
    """How many values are distinct, if the column is one of ids, as far as can be told; empty otherwise.

    Numbers are ids if they are integers, no two are tied, and they count the n rows or are called ids: numbers that are
    measured may all be distinct, too.
    """
    if not column.is_numeric:
        return _as_labels_of_ids(column.values)
    known = column.values[np.isfinite(column.values)]
    if len(known) < MIN_VALUES_OF_IDS or column.text is not None or (known != np.floor(known)).any():
        return ""
    n_distinct = len(np.unique(known))
    is_numbered = known.max() / 2.0 - known.min() / 2.0 < n or ID.search(column.name) is not None
    return _of(n_distinct, len(known)) if n_distinct == len(known) and is_numbered else ""


def _as_labels_of_ids(labels: NDArray[Any]) -> str:
    """How many labels are distinct, if most belong to a single row; empty otherwise."""
    found = coded(labels)
    n_known = int(np.count_nonzero(np.array([label is not None for label in found.labels])[found.codes]))
    n_distinct = len(found.labels) - (None in found.labels)
    return _of(n_distinct, n_known) if n_known >= MIN_VALUES_OF_IDS and n_distinct > DISTINCT * n_known else ""


def _of(n_distinct: int, n: int) -> str:
    return f"{n_distinct:,} of {n:,} values are distinct"


def columns(X: FeatureTable, n: int, rows: Index) -> list[Column]:
    """Some rows of X, which has n, as columns."""
    if is_sparse(X):
        msg = "X is a sparse matrix; give X.toarray(), or only the columns that matter."
        raise ValueError(msg)
    table: Any = X if hasattr(X, "shape") else even_array("X", X)
    if len(table.shape) not in {1, 2} or table.shape[0] != n or 0 in table.shape:
        msg = f"X must have shape (n, d) with one row for each of the {n} targets; got {table.shape}."
        raise ValueError(msg)
    is_array = isinstance(table, np.ndarray)
    return [_column(place, values, is_array) for place, values in columns_of(table, rows).items()]


def division_name(feature: str) -> str:
    """What divisions of the rows by a feature of a frame are called."""
    return f"feature {feature}" if feature in OWN else feature


def _column(place: object, values: NDArray[Any], is_array: bool) -> Column:
    """Numbers, dates and durations as numbers; all else as labels."""
    name = f"column {place}" if is_array else division_name(str(place))
    numbers = numbers_of(values)
    if numbers is None and values.dtype.kind in "OU" and (dates := _dates(values)) is not None:
        values, numbers = dates, numbers_of(dates)
    kind = values.dtype.kind
    if numbers is not None:
        unit = {"M": "m", "m": "s"}.get(kind)
        text = None if unit is None else lambda x: str(np.int64(x).astype(f"{kind}8[us]").astype(f"{kind}8[{unit}]"))
        return Column(name, place, numbers, True, text)
    if kind not in "OUS":
        msg = f"X[{name!r}] has dtype {values.dtype}; give numbers or categories."
        raise ValueError(msg)
    return Column(name, place, _strings(values.tolist()) if kind == "O" else values, False)


def quintiles(values: Array, text: Callable[[float], str] | None = None) -> Subgroups:
    """Five subgroups of about as many rows each, by value; fewer where values are tied. Missing values are one more."""
    missing = np.isnan(values)
    has_missing = bool(missing.any())
    known = values[~missing] if has_missing else values
    if not len(known):
        return Subgroups(np.zeros(len(values), np.intp), (MISSING,))
    some = known[some_rows(len(known), MAX_ROWS_FOR_QUINTILES)]
    edges = np.unique(np.quantile(some, QUINTILES, method="inverted_cdf"))
    edges = edges[edges < known.max()]
    codes = np.zeros(len(values), np.uint8)
    for edge in edges:
        codes += values > edge
    shown = (edges if len(edges) else known[:1]).tolist()
    names = distinct_texts(shown) if text is None else [text(x) for x in shown]
    if not len(edges):
        labels = names
    else:
        between = [f"{low} to {high}" for low, high in pairwise(names)]
        labels = [f"up to {names[0]}", *between, f"above {names[-1]}"]
    if has_missing:
        codes[missing] = len(labels)
        labels.append(MISSING)
    return Subgroups(codes, tuple(labels))


def distinct_texts(values: list[float]) -> list[str]:
    """Numbers with three digits, or as many more as it takes to tell them apart; up to millions without exponents."""
    names: list[str] = []
    for digits in range(3, 18):
        names = [f"{x:.{max(digits, len(f'{abs(x):.0f}')) if abs(x) < WITHOUT_EXPONENT else digits}g}" for x in values]
        if len(set(names)) == len(names):
            break
    return names


def categories(values: NDArray[Any]) -> Subgroups:
    """The largest categories by themselves, all others as one."""
    found = coded(values)
    names = [MISSING if label is None else _text(label) for label in found.labels]
    order = sorted(range(len(names)), key=lambda i: (found.labels[i] is None, *_by_number(names[i])))
    codes, names = np.argsort(order)[found.codes], [names[i] for i in order]
    if len(names) > N_CATEGORIES + 1:
        counts = np.bincount(codes, minlength=len(names))
        kept = np.sort(np.argsort(-counts, kind="stable")[:N_CATEGORIES])
        place = np.full(len(names), N_CATEGORIES)
        place[kept] = np.arange(N_CATEGORIES)
        codes = place[codes]
        names = [names[i] for i in kept] + [f"{len(names) - N_CATEGORIES} others"]
    return Subgroups(codes, tuple(names))


def _by_number(name: str) -> tuple[bool, float, str]:
    """Key that sorts numbers in strings by their value, before other strings."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    return (True, 0.0, name) if math.isnan(number) else (False, number, name)


def _text(label: object) -> str:
    """A label as text, an integer without decimals, whatever its type."""
    return str(label).removesuffix(".0") if isinstance(label, float) else str(label)


def labels_of(by: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Category of each row, as an array of shape (n,); None where none are given."""
    if by is None:
        return None
    labels = even_array("by", by)
    if labels.shape == (n, 1):
        labels = labels[:, 0]
    if labels.shape != (n,):
        given = (
            f"got {by!r}. Of a column give its values: by=X[{by!r}]"
            if isinstance(by, str)
            else f"got shape {labels.shape}"
        )
        msg = f"by must give one category for each of the {n} rows; {given}."
        raise ValueError(msg)
    return labels


def _dates(labels: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Labels as dates, if they are without exception, and all with a time zone or none of them; None otherwise."""
    found: list[datetime | None] = []
    for label in labels.tolist():
        moment = None if is_missing(label) else _date(label)
        if moment is None and not is_missing(label):
            return None
        found.append(moment)
    if len({moment.tzinfo is None for moment in found if moment is not None}) != 1:
        return None
    plain = [None if m is None else m.astimezone(UTC).replace(tzinfo=None) if m.tzinfo else m for m in found]
    return np.array(plain, "datetime64[us]")


def _date(label: object) -> datetime | None:
    """A date as text, or as one of Python's objects; None for all else."""
    if isinstance(label, datetime):
        return label
    if isinstance(label, date):
        return datetime.combine(label, time())
    return date_of(label) if isinstance(label, str) else None


def _strings(labels: list[Any]) -> NDArray[Any]:
    """Labels as they are, but lists and the like, which cannot be looked up, as strings."""
    is_plain = [not isinstance(label, Collection) or isinstance(label, str | bytes) for label in labels]
    return np.array([label if plain else str(label) for label, plain in zip(labels, is_plain, strict=True)], object)
