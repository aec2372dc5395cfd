"""Labels of more than two classes in a file, with one column of probabilities for each class."""

from __future__ import annotations

import json
import re

from pimeter.cli.columns import complete_rows, names_in, refuse_no_probabilities
from pimeter.cli.terminal import warnings_as
from pimeter.files import FileTable, as_strings, listed, shown

METRICS = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "mcc")
PREFIX = r"(?:p|prob|proba|probability|score|y_prob|y_proba|y_score)"


def class_columns(table: FileTable, label: str, asked: str | None, notes: list[str]) -> dict[str, str] | None:
    """Column of each class, where there are more than two or several columns are asked for; else None."""
    named = _named(table, asked)
    if asked is not None and len(named) < 2:
        return None
    classes = _classes(table, label)
    if len(classes) <= 2 and not named:
        return None
    others = [name for name in named or table.columns if name != label]
    columns = {own: _columns_of(own, others) for own in classes}
    if not named and not any(columns.values()):
        return None
    found = _one_of_each(table, label, columns)
    _refuse_extra(table, named, found)
    notes.append(f"took {listed(list(found.values()))} for the probabilities of {listed(classes)}")
    return found


def _named(table: FileTable, asked: str | None) -> list[str]:
    """Columns that are asked for with commas between; none if one is."""
    if asked is None or asked in table.columns or "," not in asked:
        return []
    named = names_in(asked)
    table.check(named)
    return named


def _refuse_extra(table: FileTable, named: list[str], found: dict[str, str]) -> None:
    """Refuse columns that are of no class."""
    extra = [name for name in named if name not in found.values()]
    if extra:
        msg = f"{table.name}: column {shown(extra[0])} has the name of none of the classes {listed(list(found))}."
        raise ValueError(msg)


def _one_of_each(table: FileTable, label: str, columns: dict[str, list[str]]) -> dict[str, str]:
    """The column of each class, or a ValueError where there is none or more than one."""
    for own, held in columns.items():
        if len(held) != 1:
            many = "several columns" if held else "no column"
            msg = (
                f"{table.name}: column {shown(label)} holds {len(columns)} classes ({listed(list(columns))}), and "
                f"{many} of probabilities can be told to be that of {shown(own)}. Name columns by their class, such as "
                f"{shown('p_' + own)}, and give them as --score NAME,NAME,..."
            )
            raise ValueError(msg)
    return {own: held[0] for own, held in columns.items()}


def several_text(
    table: FileTable,
    label: str,
    columns: dict[str, str],
    level: float,
    n_resamples: int,
    notes: list[str],
    *,
    as_json: bool,
) -> str:
    """Metrics overall, averages, and of each class against all others."""
    from pimeter.classification import classification_uncertainty

    frame = table.read(list(columns.values()), [label])
    frame = frame.with_columns(as_strings(frame[label]).alias(label))
    frame = complete_rows(table, frame, [label, *columns.values()], notes, "label or no score")
    for name in columns.values():
        refuse_no_probabilities(table, frame[name])
    score = frame.select(columns.values()).to_numpy()
    with warnings_as(notes):
        found = classification_uncertainty(
            frame[label].to_numpy(),
            score,
            labels=list(columns),
            metrics=list(METRICS),
            confidence_level=level,
            n_resamples=n_resamples,
            random_state=0,
        )
    return json.dumps(found.to_dict()) if as_json else str(found)


def _columns_of(own: str, names: list[str]) -> list[str]:
    """Columns whose names say that they hold the probability of this class."""
    pattern = re.compile(rf"(?:{PREFIX}[ _.\-:\[(]*)?{re.escape(own)}[\])]?", re.IGNORECASE)
    return [name for name in names if pattern.fullmatch(name.strip())]


def _classes(table: FileTable, label: str) -> list[str]:
    """Names of the classes, sorted."""
    held = as_strings(table.read([], [label])[label]).drop_nulls().unique()
    return sorted(held.to_list())
