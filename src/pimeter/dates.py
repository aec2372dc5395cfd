"""Dates in strings: those of ISO 8601, from the year down. Others cannot be told apart."""

from __future__ import annotations

import re
from datetime import datetime

DATE = re.compile(r"\d{4}([-/])\d{2}\1\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?", re.ASCII)
MONTH = re.compile(r"\d{4}[-/]\d{2}", re.ASCII)


def date_of(text: str) -> datetime | None:
    """The date that a string holds, with its time of day where there is one; None of other strings."""
    text = text.strip()
    if not DATE.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:  # such as the 30th of February
        return None


def moment_of(text: str) -> datetime | None:
    """The moment that a string tells: a date, or the first day of a month; None of other strings."""
    text = text.strip()
    return date_of(f"{text}{text[4]}01" if MONTH.fullmatch(text) else text)
