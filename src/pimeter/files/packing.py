"""Packed files: how large they are when they are unpacked, before all of that is in memory."""

from __future__ import annotations

import gzip
import mmap
import zlib
from pathlib import Path

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # first bytes
ZLIB = {bytes([0x78, level]) for level in (0x01, 0x5E, 0x9C, 0xDA)}
ZSTD_BLOCK = 1 << 17  # bytes
MAX_LINE_BYTES = 1 << 24  # bytes
MAX_UNPACKED_BYTES = 1 << 27  # that a packed file may hold, ...
MAX_UNPACKED_RATIO = 100  # ... or so many times its own size


def check_size(name: str, path: Path, start: bytes) -> None:
    """Refuse a line without end and a packed file that is next to nothing, before all of it is in memory."""
    if start[:2] in ZLIB:
        msg = f"{name} is compressed by zlib; decompress it, or compress it as .gz or .zst."
        raise ValueError(msg)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        size, endless = len(held), None
        if start[:4] == ZSTD:
            size = zstd_size(held)
        elif start[:2] == GZIP:
            size, endless = gzip_size(held, most_unpacked(size))
        else:
            whole = range(0, size - MAX_LINE_BYTES + 1, MAX_LINE_BYTES)
            endless = next((i for i in whole if held.find(b"\n", i, i + MAX_LINE_BYTES) < 0), None)
    if endless is not None:
        which = "its first line" if endless == 0 else f"a line around byte {endless:,}"
        what = f"{name}: {which} is longer than {MAX_LINE_BYTES >> 20} MB"
        msg = f"{what}. Is it a table? In JSON, write a line for each row."
        raise ValueError(msg)
    check_unpacked(name, size, path.stat().st_size)


def check_unpacked(name: str, size: int, n_bytes: int) -> None:
    """Refuse a file of so many bytes that unpacks to this size."""
    most = most_unpacked(n_bytes)
    if size > most:
        what = f"{name} decompresses to more than {most >> 20:,} MB, {MAX_UNPACKED_RATIO} times its size or more"
        msg = f"{what}. If it is a table, save it as plain CSV."
        raise ValueError(msg)


def most_unpacked(n_bytes: int) -> int:
    """Bytes that a packed file of so many may hold."""
    return max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * n_bytes)


def gzip_size(packed: mmap.mmap, most: int) -> tuple[int, int | None]:
    """Bytes that a gzip file unpacks to, not counted much beyond `most`, and where a line without end is, if one is."""
    size = 0
    with gzip.open(packed) as text:
        try:
            while size <= most and (block := text.read(MAX_LINE_BYTES)):
                if len(block) == MAX_LINE_BYTES and b"\n" not in block:
                    return size, size
                size += len(block)
        except (EOFError, OSError, zlib.error):
            pass  # what is broken is said later, with its place
    return size, None


def zip_parts(path: Path) -> dict[str, int]:
    """Bytes that each part of a zip file unpacks to; none where it is another file, or broken."""
    import zipfile  # takes long to load

    try:
        with zipfile.ZipFile(path) as packed:
            return {part.filename: part.file_size for part in packed.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return {}


def zstd_size(packed: mmap.mmap) -> int:
    """Bytes that frames of Zstandard (RFC 8878) unpack to at most: each block tells its size, or holds 128 kB."""

    def number(n_bytes: int) -> int:
        return int.from_bytes(packed[place : place + n_bytes], "little")

    total = place = 0
    while place + 8 < len(packed):
        magic = number(4)
        place += 4
        if magic >> 4 == 0x184D2A5:  # a frame to skip
            place += 4 + number(4)
            continue
        descriptor = number(1)
        is_single = descriptor >> 5 & 1
        place += 2 - is_single + (0, 1, 2, 4)[descriptor & 3] + (is_single, 2, 4, 8)[descriptor >> 6]
        is_last = magic != int.from_bytes(ZSTD, "little")  # broken: said later
        while not is_last and place < len(packed):
            header = number(3)
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            total += ZSTD_BLOCK if kind == 2 else size
            place += 3 + (1 if kind == 1 else size)
        place += 4 * (descriptor >> 2 & 1)
    return total
