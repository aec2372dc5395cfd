"""Columns as a data frame, of the library that the caller's table is from."""

from __future__ import annotations

from typing import Any

import narwhals as nw


def library_of(table: Any) -> Any:
    """What narwhals calls the library of a frame; pandas for what is no frame."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame.implementation if isinstance(frame, nw.DataFrame) else "pandas"


def frame_of(columns: dict[str, Any], library: Any = "pandas") -> Any:
    """A frame of these columns.

    Raises
    ------
    ImportError
        If the library is not installed.

    Examples
    --------
    >>> from pimeter.frames import frame_of
    >>> frame_of({"lower": [1.0, 2.0], "upper": [3.0, 4.0]}).shape
    (2, 2)
    """
    try:
        return nw.from_dict(columns, backend=library).to_native()
    except ImportError as missing:
        msg = (
            f"a frame needs {library}, which is not installed: pip install {library}. The numbers come without it, too."
        )
        raise ImportError(msg) from missing
