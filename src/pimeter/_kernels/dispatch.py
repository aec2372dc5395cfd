"""The kernel for NumPy's arrays: native code, or plain NumPy where it was not built or cannot be loaded."""

from __future__ import annotations

import struct
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
ELF_HEADER = 64
ELF_OF_64_BITS = b"\x7fELF\x02\x01"  # and the little end first


def _native_file() -> Path:
    """The extension of this Python, another one, or where it should be."""
    own = [PACKAGE / f"_native{suffix}" for suffix in EXTENSION_SUFFIXES]
    return next((path for path in (*own, *PACKAGE.glob("_native*")) if path.exists()), own[0])


def _is_cut_short(file: Path) -> bool:
    """Whether a file stops before the table of sections that its ELF header tells of: Linux would crash loading it."""
    if not file.exists():
        return False
    with file.open("rb") as opened:
        header = opened.read(ELF_HEADER)
    if not header.startswith(ELF_OF_64_BITS):
        return False  # other loaders look for themselves
    if len(header) < ELF_HEADER:
        return True
    start, size, number = struct.unpack_from("<Q10xHH", header, 0x28)
    return bool(file.stat().st_size < start + size * number)


def _load() -> Any:
    file = _native_file()
    reason: Any = "the file is incomplete"
    if not _is_cut_short(file):
        try:
            from pimeter._kernels import native
        except (ImportError, AttributeError) as why:  # an older build lacks what is asked of it
            reason = why
        else:
            return native
    from pimeter._kernels import reference

    if not file.exists():
        msg = "pimeter was built without a compiler: NumPy is used, several times slower."
        warnings.warn(msg, stacklevel=4)
        return reference
    msg = (
        f"pimeter's native code cannot be loaded from {file} ({reason}): NumPy computes the same numbers several times "
        "more slowly. To build it, install pimeter again where there is a C++ compiler."
    )
    warnings.warn(msg, stacklevel=4)
    return reference


kernel = _load()


def kernel_name() -> str:
    """Name of the kernel in use, native or NumPy."""
    return "native" if kernel.__name__.endswith("native") else "NumPy"
