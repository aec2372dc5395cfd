"""`replaced`: a file is written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pimeter.files.naming import shown
from pimeter.files.opening import STDIN


def _is_same(path: Path, source: str) -> bool:
    """Whether a source, maybe standard input, is this very file."""
    there = Path("/dev/stdin" if source == STDIN else source)
    return there.exists() and path.samefile(there)


@contextmanager
def replaced(path: Path, *sources: str) -> Iterator[Path]:
    """A file to write to, which takes the place of another when all went well and leaves nothing behind otherwise.

    A link stays one, and what is written to a pipe or a device goes there.

    Raises
    ------
    ValueError
        If nothing can be written there or it is one of the sources, which is said before anything else is done; or not
        all of it can be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pimeter.files import replaced
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "page.html") as draft:
    ...         _ = draft.write_text("whole or not at all")
    ...     [path.name for path in Path(folder).iterdir()]
    ['page.html']
    """
    place = Path(os.path.realpath(path))
    is_stream = path.exists() and not path.is_file()
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if path.is_file() and any(_is_same(path, source) for source in sources):
            raise FileExistsError(0, "it is read by the same command; write to another file")
        handle, name = tempfile.mkstemp(prefix=".pimeter-", dir=None if is_stream else place.parent)
    except OSError as why:
        msg = f"{shown(path)} cannot be written: {why.strerror}."
        raise ValueError(msg) from why
    draft = Path(name)
    try:
        os.close(handle)
        yield draft
        if is_stream:
            with draft.open("rb") as made, path.open("wb") as stream:
                shutil.copyfileobj(made, stream)
        else:
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~mask)  # not as a temporary file
            draft.replace(place)
    except OSError as why:  # such as a disk that is full
        msg = f"{shown(path)} cannot be written: {why.strerror or why}."
        raise ValueError(msg) from why
    finally:
        draft.unlink(missing_ok=True)
