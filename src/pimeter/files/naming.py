"""Names of files and columns in messages: short, quoted, on one line."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAME_LENGTH = 60  # characters of a name
MAX_LISTED_NAMES = 8


def shown(name: object) -> str:
    """A name in quotes, short and on one line; it cannot control the terminal."""
    text = str(name)
    return repr(text if len(text) <= MAX_NAME_LENGTH else f"{text[: MAX_NAME_LENGTH - 1]}…")


def listed(names: Sequence[str]) -> str:
    """The first few names."""
    some = ", ".join(map(shown, names[:MAX_LISTED_NAMES]))
    return some if len(names) <= MAX_LISTED_NAMES else f"{some} and {len(names) - MAX_LISTED_NAMES} more"


def first_line(why: BaseException) -> str:
    """What an exception says first."""
    return str(why).partition("\n")[0].rstrip(".")
