"""What was calibrated as JSON text: scores, groups and level, which apply to predictions without the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import label_list
from pimeter.conformal.scores import CalibrationScores
from pimeter.encoding import CALIBRATION, with_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = ("above", "below", "importance", "groups")
LABEL_TYPES = (str, int, float, bool)


def calibration_text(owner: str, body: dict[str, Any]) -> str:
    """Plain values as text that says what it is, whose, and of which version, with a check sum."""
    return json.dumps(CALIBRATION.sealed(with_names(body), of=owner), allow_nan=False)


def owner_of(text: str) -> str:
    """Name of the class whose calibration a text holds."""
    return str(CALIBRATION.opened(text).get("of"))


def calibration_body(text: str, owner: str) -> dict[str, Any]:
    """The plain values of a text, or a ValueError that says what is wrong with it."""
    values = CALIBRATION.opened(text)
    if values.get("of") != owner:
        found = values.get("of")
        msg = f"the calibration is that of {found}, not of {owner}: read it with {found}.from_json."
        raise ValueError(msg)
    return dict(values["body"])


def plain_scores(scores: CalibrationScores) -> dict[str, Any]:
    """Scores and what is known of their rows, without hashes of rows."""
    columns = {name: getattr(scores, name) for name in COLUMNS}
    plain = {name: None if column is None else column.tolist() for name, column in columns.items()}
    known = {"n_groups": scores.n_groups, "effective_size": scores.effective_size, "doubts": list(scores.doubts)}
    return {**plain, "labels": None if scores.labels is None else _plain_labels(scores.labels), **known}


def _plain_labels(labels: NDArray[Any]) -> list[Any]:
    """Categories as JSON has them, or a ValueError."""
    found = [label_list(row) for row in labels] if labels.ndim == 2 else label_list(labels)
    other = [
        one for one in np.ravel(np.array(found, object)).tolist() if one is not None and type(one) not in LABEL_TYPES
    ]
    if other:
        msg = f"categories in a file are strings, numbers or truth values; {other[0]!r} is {type(other[0]).__name__}."
        raise ValueError(msg)
    return found


def scores_of(values: dict[str, Any]) -> CalibrationScores:
    """Scores from plain values, or a ValueError."""
    try:
        columns = {name: _column(values[name], np.intp if name == "groups" else np.float64) for name in COLUMNS}
        labels = None if values["labels"] is None else _labels(values["labels"])
        known = {name: values[name] for name in ("n_groups", "effective_size")}
        doubts = tuple(map(str, values["doubts"]))
    except (KeyError, TypeError, ValueError) as why:
        msg = f"the calibration has no complete scores ({type(why).__name__}: {why}). Write it anew with to_json()."
        raise ValueError(msg) from why
    above: Any = columns["above"]
    lengths = {len(one) for one in (*columns.values(), labels) if one is not None}
    if above is None or above.ndim != 2 or len(lengths) != 1 or np.isnan(above).any():
        msg = "the calibration has no complete scores: one for each row and output. Write it anew with to_json()."
        raise ValueError(msg)
    return CalibrationScores(**columns, labels=labels, **known, doubts=doubts)


def _column(found: Any, kind: type[np.generic]) -> Any:
    """Numbers of rows as an array; None stays None."""
    return None if found is None else np.array(found, kind)


def _labels(found: list[Any]) -> NDArray[Any]:
    """Categories as an array that keeps their type."""
    array = np.array(found, object)
    return np.array(found) if len(set(map(type, array.ravel().tolist()))) == 1 else array
