"""The state of a monitor in a file: written as a whole or not at all, by one process at a time."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from pimeter.encoding import MONITOR_STATE
from pimeter.monitoring.recalibration import Recalibration
from pimeter.monitoring.settings import Settings
from pimeter.monitoring.stream import Stream


class StateFile:
    """A JSON file with a lock next to it, which is released when the process that holds it is gone.

    Raises
    ------
    ValueError
        If another process holds the lock, or it cannot be made there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir() or not path.parent.is_dir():
            why = "it is a folder" if path.is_dir() else f"{path.parent} is not a folder"
            msg = f"{path} cannot hold the state of a monitor: {why}."
            raise ValueError(msg)
        try:
            self._lock = sqlite3.connect(beside(path, "lock"), timeout=0.0, isolation_level=None)
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as why:
            is_locked = getattr(why, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
            msg = f"{path} is in use by another process. Wait until it has ended, or take another file."
            if not is_locked:
                msg = f"{path} cannot be locked with {beside(path, 'lock')}: {why}."
            raise ValueError(msg) from why

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()

    def read(self) -> dict[str, Any] | None:
        """What was saved, None if nothing was; a ValueError says what is wrong with the file, which stays as it is."""
        if not self.path.exists():
            return None
        held = MONITOR_STATE.opened(self.path.read_text(encoding="utf-8"), str(self.path))
        return dict(held["body"])

    def write(self, body: dict[str, Any]) -> None:
        """Put a new state in the place of the old one."""
        draft = beside(self.path, "draft")
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump(MONITOR_STATE.sealed(body), file, allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as why:
            msg = f"{self.path} cannot be written: {why.strerror or why}."
            raise ValueError(msg) from why


def _sync_folder(folder: Path) -> None:
    """Have the disk remember which file stands at a name; Windows has no such call, and does so by itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def beside(path: Path, ending: str) -> Path:
    """A file that belongs to this one."""
    return path.with_name(f"{path.name}.{ending}")


class Progress(NamedTuple):
    """Which rows with ids were counted."""

    counted: int = 0  # number of the last one
    earlier: int = 0  # place of the last one that was expected before this watch began, and does not count in it


class Restored(NamedTuple):
    """What a monitor goes on from."""

    stream: Stream
    progress: Progress
    recalibration: Recalibration | None


def body_of(stream: Stream, progress: Progress, recalibration: Recalibration | None) -> dict[str, Any]:
    """The state as plain values."""
    return {
        "settings": asdict(stream.settings),
        "progress": list(progress),
        "recalibration": None if recalibration is None else recalibration.to_dict(),
        "stream": stream.to_dict(),
    }


def restored(body: dict[str, Any], asked: dict[str, Any], path: Path) -> Restored:
    """What a monitor goes on from; a ValueError if it is asked for with other settings than it began with."""
    held = Settings(**{**body["settings"], "watch": tuple(body["settings"]["watch"])})
    known = asdict(held)
    if body["recalibration"] is not None:  # calibrated anew: on another number of rows than it began with
        known.pop("n_calibration")
        asked = {name: value for name, value in asked.items() if name != "n_calibration"}
    for name, value in asked.items():
        if name not in known or known[name] != (tuple(value) if name == "watch" else value):
            what = f"{name}={known.get(name)!r}, not {value!r}"
            msg = f"{path} was begun with {what}. Leave it out, or begin another file."
            raise ValueError(msg)
    recalibration = None if body["recalibration"] is None else Recalibration.from_dict(body["recalibration"])
    return Restored(Stream.restored(held, body["stream"]), Progress(*body["progress"]), recalibration)
