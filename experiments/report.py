"""What stored rows say: tables beside the published ones, figures, and a page for each experiment."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.protocol import PUBLISHED, Experiment, Record, Row, Store, Value, parsed

MOST_COLUMNS, MOST_ROWS = 10, 12  # of a table on a page; wider and longer ones are CSV files


@dataclass(frozen=True)
class Brief:
    """Short tables of a page, from the rows of its experiment and then of `others`; and a figure drawn elsewhere."""

    tables: Callable[..., Mapping[str, Sequence[Row]]]
    others: tuple[str, ...] = ()
    image: str = ""


def table_text(rows: Sequence[Row]) -> str:
    """A table that reads well on a terminal and in Markdown."""
    columns = list(rows[0])
    cells = [columns, *([cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    numeric = [all(isinstance(row[column], int | float) or row[column] == "" for row in rows) for column in columns]
    lines = [
        "| " + " | ".join(f"{c:{'>' if n else '<'}{w}}" for c, w, n in zip(line, widths, numeric, strict=True)) + " |"
        for line in cells
    ]
    rule = "|" + "|".join("-" * (w + 1) + (":" if n else "-") for w, n in zip(widths, numeric, strict=True)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def table_csv(rows: Sequence[Row]) -> str:
    """The same cells as a CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([list(rows[0]), *([cell(value) for value in row.values()] for row in rows)])
    return text.getvalue()


def beside_published(rows: Sequence[Row], keys: Sequence[str], path: Path) -> list[Row]:
    """Rows with the paper's value after each published column, and "miss" where ours is outside its tolerance.

    The CSV at `path` has the key columns and, for each published column, COLUMN and COLUMN_tolerance.
    """
    paper = parsed(path.read_text())
    columns = [name for name in paper[0] if name not in keys and not name.endswith("_tolerance")]
    known = {tuple(row[key] for key in keys): row for row in paper}
    return [_joined(row, known.get(tuple(row[key] for key in keys)), columns) for row in rows]


def tables(experiment: Experiment[Any], rows: Sequence[Row], published: Path = PUBLISHED) -> dict[str, Sequence[Row]]:
    """The experiment's tables, beside the published ones where there are any."""
    own, whole = (published / f"{name}.csv" for name in (experiment.file_name, experiment.name))
    paper = own if own.exists() else whole
    return {
        title: beside_published(table, experiment.keys, paper)
        if experiment.keys and paper.exists() and set(experiment.keys) <= set(table[0])
        else table
        for title, table in experiment.tables(rows).items()
    }


def short(rows: Sequence[Row], keys: Sequence[str] = ()) -> list[Row]:
    """A table with the published value in brackets after ours, and a star where it is missed.

    Where it would still be wide, only the keys and what is published are shown.
    """
    beside = [name.removesuffix(", paper") for name in rows[0] if name.endswith(", paper")]
    found = _in_brackets(rows)
    if beside and len(found[0]) > MOST_COLUMNS:
        return [{name: line[name] for name in (*keys, *beside)} for line in found]
    return found


def _in_brackets(rows: Sequence[Row]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        line: dict[str, Value] = {}
        for name, value in row.items():
            of = name.removesuffix(", paper").removesuffix(", verdict")
            if of == name:
                line[name] = value
            elif name.endswith(", paper") and value != "":
                line[of] = f"{cell(row[of])} ({cell(value)}){'*' if row[f'{of}, verdict'] else ''}"
        found.append(line)
    return found


def draw(experiment: Experiment[Any], rows: Sequence[Row], path: Path) -> bool:
    """Save the experiment's figure; False where there is none to draw or nothing to draw it with."""
    if experiment.figure is None or find_spec("matplotlib") is None:
        return False
    experiment.figure(rows, path)
    return True


def pages(
    experiments: Iterable[Experiment[Any]],
    folder: Path,
    states: Mapping[str, str],
    brief: Mapping[str, Brief] | None = None,
) -> dict[Path, str]:
    """The page of each experiment and its wide or long tables as CSV files; figures are drawn beside them.

    `states` says of each experiment whether its rows are current; `brief` makes short tables for some.
    """
    found: dict[Path, str] = {}
    for experiment in experiments:
        name = experiment.file_name
        found |= _page(experiment, folder, states.get(name, ""), brief.get(name) if brief else None)
    return found


def _page(experiment: Experiment[Any], folder: Path, state: str, brief: Brief | None) -> dict[Path, str]:
    name = experiment.file_name
    store = Store(folder, name)
    parts = [f"# {name}: {experiment.title}\n", "One of [all results](README.md).\n"]
    record, rows = store.record(), store.rows()
    run = f"python -m experiments run {command(experiment)}"
    files: dict[Path, str] = {}
    if record is None or not rows:
        parts.append(f"Not run yet: `{run}`.\n")
        return {folder / f"{name}.md": "\n".join(parts)}
    parts += [
        f"State: {state or 'not asked for'}{'' if state.endswith('.') else '.'}\n",
        *_missing_units(experiment, record),
    ]
    image = folder / ((brief and brief.image) or f"{name}.png")
    if draw(experiment, rows, image) or image.exists():
        parts.append(f"![{experiment.title}]({image.name})\n")
    parts.append(f"{experiment.finding(rows)}\n")
    if experiment.unpublished:
        parts.append(f"{experiment.unpublished}\n")
    for title, table in _short_tables(brief, folder, rows).items():
        parts.append(f"**{title.removesuffix('.')}.**\n\n{table_text(table)}\n")
    for i, (title, table) in enumerate(tables(experiment, rows).items(), start=1):
        is_beside = any(column.endswith(", paper") for column in table[0])
        narrow = short(table, experiment.keys)
        parts.append(f"**{title.removesuffix('.')}.**{_met(table) if is_beside else ''}\n")
        fits = len(narrow[0]) <= MOST_COLUMNS and len(narrow) <= MOST_ROWS
        if fits:
            parts.append(f"{table_text(narrow)}\n")
        if is_beside or not fits:
            wide = f"tables/{name}.{i}.csv"
            files[folder / wide] = table_csv(table)
            parts.append(f"All {'columns' if fits else f'{len(table)} rows'}: [{wide}]({wide}).\n")
    parts.append(f"`{run}` goes on where it stopped; `--fresh` computes all anew.")
    parts.append(f"Rows: [{store.csv.name}]({store.csv.name}). {_named('Settings', record.settings)}")
    parts.append(f"{_named('Versions', record.last.versions)}")
    parts.append(f"{_made(record)}\n")
    return {folder / f"{name}.md": "\n".join(parts), **files}


def _short_tables(brief: Brief | None, folder: Path, rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    """None where something that they need was not run."""
    others = [Store(folder, name).rows() for name in brief.others] if brief else []
    return brief.tables(rows, *others) if brief and all(others) else {}


def _met(table: Sequence[Row]) -> str:
    """How a table beside published values is read, and how many of these it meets."""
    columns = [name.removesuffix(", paper") for name in table[0] if name.endswith(", paper")]
    cells = [(row, column) for row in table for column in columns if row[f"{column}, paper"] != ""]
    n_met = sum(not row[f"{column}, verdict"] for row, column in cells)
    return (
        f" In brackets the paper's value, * where ours is outside its tolerance: {n_met} of {len(cells)} values are "
        "within it."
    )


def command(experiment: Experiment[Any]) -> str:
    """What follows `run` on the command line."""
    return f"{experiment.name} --columns {experiment.columns}" if experiment.columns else experiment.name


def _missing_units(experiment: Experiment[Any], record: Record) -> list[str]:
    """A warning where the stored run did not finish."""
    n_units = len(experiment.units(experiment.settings))
    if len(record.done) >= n_units:
        return []
    return [f"**Unfinished:** {len(record.done)} of {n_units} units of work are done.\n"]


def _made(record: Record) -> str:
    """The commits that made the rows, "+" for sources that were not committed."""
    commits = [
        f"{one.commit[:10]}{'+' * bool(one.dirty)}, {one.date[:10]}{f' ({one.machine})' if one.machine else ''}"
        for _, one in record.sessions
        if one.commit
    ]
    if not commits:
        return "The commit that made these rows was not recorded."
    edited = any(one.commit and one.dirty for _, one in record.sessions)
    return f"Made by {'; '.join(commits)}{' (+: with sources that were not committed)' * edited}."


def _joined(row: Row, paper: Row | None, columns: Sequence[str]) -> Row:
    joined: dict[str, Value] = {}
    for column, ours in row.items():
        joined[column] = ours
        if column in columns:
            missed = paper is not None and not abs(float(ours) - float(paper[column])) <= float(
                paper[f"{column}_tolerance"]
            )
            joined[f"{column}, paper"] = paper[column] if paper else ""
            joined[f"{column}, verdict"] = "miss" if missed else ""
    return joined


def _named(what: str, held: Mapping[str, Any]) -> str:
    return f"{what}: " + ", ".join(f"{key} {value}" for key, value in held.items()) + "."


def cell(value: Value) -> str:
    """A value as tables show it."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
