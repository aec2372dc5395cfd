"""What stored rows say: tables beside the published ones, figures, and one page for all experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.protocol import PUBLISHED, Experiment, Record, Row, Store, Value, parsed

INTRODUCTION = """\
# The paper's experiments, repeated

`python -m experiments report` writes this page from the rows stored beside it; every number below is computed from
them. Each CSV has a JSON file with the settings, the seed, the commit, the sources, the data and the versions that made
it; `python -m experiments status` says whether they are still the same.
"""


def table_text(rows: Sequence[Row]) -> str:
    """A table that reads well on a terminal and in Markdown."""
    columns = list(rows[0])
    cells = [columns, *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    numeric = [all(isinstance(row[column], int | float) or row[column] == "" for row in rows) for column in columns]
    lines = [
        "| " + " | ".join(f"{c:{'>' if n else '<'}{w}}" for c, w, n in zip(line, widths, numeric, strict=True)) + " |"
        for line in cells
    ]
    rule = "|" + "|".join("-" * (w + 1) + (":" if n else "-") for w, n in zip(widths, numeric, strict=True)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


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


def draw(experiment: Experiment[Any], rows: Sequence[Row], path: Path) -> bool:
    """Save the experiment's figure; False where there is none to draw or nothing to draw it with."""
    if experiment.figure is None or find_spec("matplotlib") is None:
        return False
    experiment.figure(rows, path)
    return True


def page(experiments: Iterable[Experiment[Any]], folder: Path) -> str:
    """All experiments as one Markdown page; figures are drawn beside it."""
    return "\n".join([INTRODUCTION, *(_section(experiment, folder) for experiment in experiments)])


def _section(experiment: Experiment[Any], folder: Path) -> str:
    store = Store(folder, experiment.file_name)
    heading = f"## {experiment.file_name}: {experiment.title}\n"
    record, rows = store.record(), store.rows()
    if record is None or not rows:
        return f"{heading}\nNot run yet: `python -m experiments run {command(experiment)}`.\n"
    parts = [heading, *_missing_units(experiment, record)]
    image = folder / f"{experiment.file_name}.png"
    if draw(experiment, rows, image) or image.exists():
        parts.append(f"![{experiment.title}]({image.name})\n")
    parts.append(f"{experiment.finding(rows)}\n")
    if experiment.unpublished:
        parts.append(f"{experiment.unpublished}\n")
    parts += [f"**{title}**\n\n{table_text(table)}\n" for title, table in tables(experiment, rows).items()]
    parts.append(f"Rows: [{store.csv.name}]({store.csv.name}). {_named('Settings', record.settings)}")
    parts.append(f"{_named('Versions', record.last.versions)}")
    parts.append(f"{_made(record)}\n")
    return "\n".join(parts)


def command(experiment: Experiment[Any]) -> str:
    """What follows `run` on the command line."""
    return f"{experiment.name} --columns {experiment.columns}" if experiment.columns else experiment.name


def _missing_units(experiment: Experiment[Any], record: Record) -> list[str]:
    """A warning where the stored run did not finish."""
    n_units = len(experiment.units(experiment.settings))
    if len(record.done) == n_units:
        return []
    return [f"**Unfinished:** {len(record.done)} of {n_units} units of work are done.\n"]


def _made(record: Record) -> str:
    """The commits that made the rows."""
    commits = [f"{one.commit[:10]}, {one.date[:10]}" for _, one in record.sessions if one.commit]
    return f"Made by {'; '.join(commits)}." if commits else "The commit that made these rows was not recorded."


def _joined(row: Row, paper: Row | None, columns: Sequence[str]) -> Row:
    joined: dict[str, Value] = {}
    for column, ours in row.items():
        joined[column] = ours
        if column in columns:
            missed = paper is not None and abs(float(ours) - float(paper[column])) > float(paper[f"{column}_tolerance"])
            joined[f"{column}, paper"] = paper[column] if paper else ""
            joined[f"{column}, verdict"] = "miss" if missed else ""
    return joined


def _named(what: str, held: Mapping[str, Any]) -> str:
    return f"{what}: " + ", ".join(f"{key} {value}" for key, value in held.items()) + "."


def _cell(value: Value) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
