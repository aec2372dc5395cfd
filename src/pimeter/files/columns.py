"""Columns of text as numbers or strings, with null for what says that a value is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pimeter.files.naming import shown

if TYPE_CHECKING:
    import polars as pl

MISSING = ["", "na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>"]  # strings that say that a value is not known


def as_number(name: str) -> pl.Expr:
    """A column as floats; null for what is not a number."""
    import polars as pl

    return pl.col(name).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)


def as_numbers_if_all_are(column: pl.Series) -> pl.Series:
    """Strings as floats where they are all numbers or say that there is none; a column of other strings as it is."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    found = column.to_frame().select(as_number(column.name)).to_series()
    is_number = found.is_not_null()
    return found if is_number.any() and (is_number | as_strings(column).is_null()).all() else column


def as_strings(column: pl.Series) -> pl.Series:
    """A column as strings, numbers and truth values in their shortest form; null for what is missing.

    Examples
    --------
    >>> import polars as pl
    >>> from pimeter.files import as_strings
    >>> [as_strings(pl.Series(values)).to_list() for values in ([1.0, 0.5], [" yes", "n/a"], [True, None])]
    [['1', '0.5'], ['yes', None], ['true', None]]
    """
    import polars as pl

    if column.dtype.is_nested():
        msg = f"column {shown(column.name)} holds {column.dtype}, neither strings nor numbers."
        raise ValueError(msg)
    if column.dtype.is_float():
        return column.fill_nan(None).cast(pl.String).str.replace(r"\.0$", "")
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)
