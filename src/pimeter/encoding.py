"""Results as plain values, plain values as JSON text, and back, without executing anything."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")


def plain(value: object) -> Any:
    """Dicts and lists of numbers and strings, with lists in the place of tuples."""
    if isinstance(value, dict):
        return {key: plain(held) for key, held in value.items()}
    return [plain(held) for held in value] if isinstance(value, list | tuple) else value


def with_nulls(value: object) -> object:
    """Plain values with None for numbers that JSON does not have."""
    return _replaced(value, lambda _: None)


def with_names(value: object) -> object:
    """Plain values with "nan", "inf" and "-inf" for numbers that JSON does not have: nothing is lost."""
    return _replaced(value, str)


def _replaced(value: object, otherwise: Callable[[float], str | None]) -> object:
    """Plain values with something else in the place of numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _replaced(held, otherwise) for key, held in value.items()}
    if isinstance(value, list):
        return [_replaced(held, otherwise) for held in value]
    return otherwise(value) if isinstance(value, float) and not math.isfinite(value) else value


def digest(value: object) -> str:
    """Check sum of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Envelope(NamedTuple):
    """What surrounds plain values that are read again: what they are, of which version, and a check sum."""

    format: str
    version: int
    name: str  # in messages, such as "calibration"
    expected: str  # what it has to be, in messages
    mistaken_for: str  # what it may be instead where it is not JSON, and what to do then
    remedy: str  # what to do about one that was changed

    def sealed(self, body: object, **more: str) -> dict[str, object]:
        """Plain values, with what surrounds them."""
        return {"format": self.format, "version": self.version, **more, "digest": digest(body), "body": body}

    def opened(self, text: str, where: str = "text") -> dict[str, Any]:
        """What `sealed` made, from JSON text; a ValueError says what is wrong with that, which is called `where`."""
        try:
            values = json.loads(text)
        except (TypeError, ValueError, RecursionError) as why:
            msg = f"{where} is not a complete {self.name}: {why}. Was it cut off, or is it {self.mistaken_for}"
            raise ValueError(msg) from why
        if not isinstance(values, dict) or values.get("format") != self.format:
            msg = f"{where} is not {self.expected}."
            raise ValueError(msg)
        if values.get("version") != self.version or isinstance(values["version"], bool):
            found = f"has version {values.get('version')!r}, expected {self.version}"
            msg = f"{where} {found}: use the version of pimeter that wrote it."
            raise ValueError(msg)
        body = values.get("body")
        if not isinstance(body, dict) or values.get("digest") != digest(body):
            msg = f"{where} was changed after it was written: its checksum is wrong. {self.remedy}"
            raise ValueError(msg)
        return values


# All that pimeter writes to be read again. Whoever changes what is in it raises its version.
CALIBRATION = Envelope(
    format="pimeter calibration",
    version=1,
    name="calibration",
    expected="a calibration that to_json() wrote",
    mistaken_for="the name of a file? Give its content.",
    remedy="Write it anew with to_json().",
)
MEASUREMENT = Envelope(
    format="pimeter measurement",
    version=5,
    name="measurement",
    expected="a measurement that to_json() wrote",
    mistaken_for="the name of a file? Give its content.",
    remedy="Measure again.",
)
MONITOR_STATE = Envelope(
    format="pimeter coverage monitor",
    version=1,
    name="state of a monitor",
    expected="the state of a monitor",
    mistaken_for="another file?",
    remedy="Restore it from a copy.",
)


def built(kind: Callable[..., T], value: object, where: str) -> T:
    """A value of this type from plain values, not finite numbers by name; a ValueError says what does not fit."""
    found: T | None = _of_parts(kind, value, where)
    if found is None and _is(kind, value):
        return kind(value)
    if found is None:
        expected = getattr(kind, "__name__", kind)
        msg = f"text is not what to_json() wrote: {where} is {str(value)[:40]!r}, expected {expected}."
        raise ValueError(msg)
    return found


def _of_parts(kind: Any, value: object, where: str) -> Any:
    """A dataclass, tuple or dict from what it consists of; None if it is none of these, or does not fit."""
    if is_dataclass(kind) and isinstance(value, dict):
        return _dataclass(kind, value, where)
    of = get_args(kind)
    if get_origin(kind) is tuple and isinstance(value, list) and (of[-1] is Ellipsis or len(of) == len(value)):
        return tuple(built(of[0], held, f"{where}[{i}]") for i, held in enumerate(value))
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: built(of[1], held, f"{where}[{key!r}]") for key, held in value.items()}
    return None


def _dataclass(kind: Any, value: dict[str, Any], where: str) -> Any:
    """A dataclass from the values of its fields; None if these are others."""
    kinds = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if sorted(value) != sorted(names):
        return None
    return kind(**{name: built(kinds[name], value[name], f"{where}.{name}") for name in names})


def _is(kind: object, value: object) -> bool:
    """Whether a plain value is of this type; numbers that are not finite are strings."""
    if kind is float:
        return isinstance(value, float) or (isinstance(value, str) and value in {"nan", "inf", "-inf"})
    return type(value) is kind
