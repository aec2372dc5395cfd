"""The command line: `python -m experiments list | run NAME [--quick] | confirm NAME | status | quoted | report |
download FOLDER`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.provenance import write
from experiments import (
    coverage,
    fig1,
    fig2,
    fig3,
    fig4,
    labelled,
    quoted,
    song_year,
    status,
    steps,
    summary,
    table1,
    table1_paper,
    table2,
    table3,
    table3_paper,
    table4,
    table4_paper,
    theory,
    theory_bound,
    uci,
    uci_networks,
    uci_page,
    uci_quality,
    uci_reasons,
    uci_tuning,
    uci_widths,
)
from experiments.confirm import confirm
from experiments.data import folder
from experiments.download import SOURCES, download
from experiments.protocol import Experiment, Record, RefusedError, Store, Unit, run
from experiments.replay import FILE, replay
from experiments.report import Brief, command, draw, pages, table_text, tables

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.file_name: experiment
    for experiment in (
        fig1.EXPERIMENT,
        table1_paper.EXPERIMENT,
        table1.EXPERIMENT,
        fig2.EXPERIMENT,
        fig3.EXPERIMENT,
        table2.PSIG,
        uci.EXPERIMENT,
        uci.PEERS,
        uci.SONG_YEAR,
        song_year.PSIG,
        song_year.PAPER,
        song_year.QD,
        uci_tuning.EXPERIMENT,
        uci_networks.PAPER,
        uci_widths.EXPERIMENT,
        uci_networks.QD,
        uci_reasons.EXPERIMENT,
        uci_quality.EXPERIMENT,
        table3_paper.EXPERIMENT,
        table3.EXPERIMENT,
        coverage.EXPERIMENT,
        fig4.EXPERIMENT,
        table4_paper.EXPERIMENT,
        table4.EXPERIMENT,
        theory.EXPERIMENT,
        theory_bound.EXPERIMENT,
        steps.EXPERIMENT,
    )
}
BRIEF = {  # where tables are wide or long, or what an item is judged by lies in several results
    "fig1": Brief(fig1.brief),
    "fig3": Brief(fig3.brief),
    "table2-paper": Brief(uci_page.brief_paper, ("table2-pimeter", "table2-psig"), uci_page.IMAGE),
    "table2-qd": Brief(uci_page.brief_qd, ("table2-qd-reasons", "table2-pimeter"), uci_page.IMAGE),
    "table2-qd-reasons": Brief(uci_page.brief_kinds),
    "table2-peers": Brief(uci_page.brief_scores),
    "table2-widths": Brief(uci_page.brief_scores),
    "table3": Brief(table3.brief, ("table3-paper",)),
    "table3-paper": Brief(table3_paper.brief, ("table3",)),
    "table3-coverage": Brief(coverage.brief),
}
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
QUICK = ROOT / "build" / "quick"
BENCHMARKS = "benchmarks/"  # what names of their results begin with
LARGE = ("song-year",)  # datasets that are downloaded when they are named


def main(arguments: Sequence[str] | None = None, *, results: Path = RESULTS, quick: Path = QUICK) -> int:
    """Run one command; the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.command == "run":
        return _run_columns(asked, results, quick)
    if asked.command == "confirm":
        return _confirm(asked, results)
    if asked.command == "quoted":
        return _quoted(renew=asked.renew)
    if asked.command == "download":
        return _download(asked)
    {"list": _list, "status": _status, "report": _report}[asked.command](results)
    return 0


def _parser() -> argparse.ArgumentParser:
    benchmarks = sorted(f"{BENCHMARKS}{path.stem}" for path in provenance.RESULTS.glob("*.json") if path.name != FILE)
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Repeat the paper's experiments.")
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="list | run NAME | confirm NAME | status | quoted | report | download FOLDER",
    )
    commands.add_parser("list", help="name the experiments and say how far each has come")
    one = commands.add_parser("run", help="run one experiment, or go on with it where it stopped")
    names = list(dict.fromkeys(experiment.name for experiment in EXPERIMENTS.values()))
    one.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    one.add_argument("--columns", type=_words, default=(), metavar="A,B", help="only these of a table, such as psig")
    one.add_argument("--datasets", type=_words, default=(), metavar="A,B", help="only these datasets")
    one.add_argument("--splits", type=_count, metavar="N", help="only the first splits of each dataset")
    one.add_argument("--minutes", type=_count, default=math.inf, metavar="N", help="begin nothing new after that time")
    one.add_argument("--quick", action="store_true", help="a small version that takes seconds and is kept apart")
    one.add_argument("--fresh", action="store_true", help="discard the stored rows and start anew")
    one.add_argument("--mixed", action="store_true", help="go on where sources or versions have changed since")
    one.add_argument("--jobs", type=_count, default=2, metavar="N", help="processes for a full run (2)")
    some = commands.add_parser("confirm", help="compute some units anew and compare them with the stored rows")
    some.add_argument(
        "name",
        choices=[*EXPERIMENTS, *benchmarks],
        metavar="NAME",
        help="of the result, such as table2-paper; or benchmarks/NAME, whose quick run is compared with its commit's",
    )
    some.add_argument("--units", type=_words, default=(), metavar="A,B", help="datasets, or other names of units")
    some.add_argument("--splits", type=_count, metavar="N", help="only the first splits of each dataset")
    commands.add_parser("status", help="list all results, also of benchmarks: current, stale and why, or unknown")
    numbers = commands.add_parser("quoted", help="compare the marked numbers of README and docs with stored results")
    numbers.add_argument("--renew", action="store_true", help="write the stored numbers into the pages")
    commands.add_parser("report", help="write the pages of all results from the stored rows")
    fetch = commands.add_parser("download", help="get the datasets from their public homes and check them")
    fetch.add_argument("folder", type=Path, metavar="FOLDER", help="where to; PIMETER_DATA then has to name it")
    fetch.add_argument(
        "--datasets",
        type=_words,
        default=(),
        metavar="A,B",
        help="only these datasets; song-year, 200 MB, has to be named",
    )
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        msg = f"expected an integer from 1 up, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _list(results: Path) -> None:
    for experiment in EXPERIMENTS.values():
        record = Store(results, experiment.file_name).record()
        n_units = len(experiment.units(experiment.settings))
        state = "not run yet" if record is None else f"{len(record.done)} of {n_units} units done"
        print(f"{experiment.file_name:12} {experiment.title} ({state})")


def _status(results: Path) -> None:
    found = status.of_all(EXPERIMENTS.values(), results)
    print(status.table(found))
    lines = status.of_quoted(found, quoted.pages())
    if lines:
        print("\nNumbers of README and docs whose result is not current:", *lines, sep="\n  ")


def _report(results: Path) -> None:
    """All pages, the summary last: it links to those that are there."""
    found = [status.of_experiment(one, Store(results, one.file_name)) for one in EXPERIMENTS.values()]
    states = {one.name.partition("/")[2]: one.short for one in found}
    joint = uci_page.pages(results, states)  # first: its figure is on pages of columns, too
    write(pages(EXPERIMENTS.values(), results, states, BRIEF) | joint)
    write({results / "misses.md": summary.misses(EXPERIMENTS, results, states)})
    write({results / "README.md": summary.page(results, states)})
    print(f"Wrote {_short(results / 'README.md')} and the pages beside it.")


def _quoted(*, renew: bool) -> int:
    quoted_pages = quoted.pages()
    if renew:
        for page in quoted_pages:
            n = quoted.renew(page)
            if n:
                print(f"{_short(page)}: {n} numbers renewed.")
    numbers = [one for page in quoted_pages for one in quoted.quoted(page)]
    wrong = [one for one in numbers if not one.is_right()]
    for one in wrong:
        print(f"{one.page}:{one.line}: {one.text}, but {one.name} says {one.stored():g}")
    missing = [row for page in quoted_pages for row in quoted.missing_rows(page)]
    print(*(f"{row}: no such row in the result" for row in missing), sep="\n", end="\n" if missing else "")
    print(f"{len(numbers)} numbers are marked, {len(wrong)} differ from their result.")
    return int(bool(wrong or missing))


def _download(asked: argparse.Namespace) -> int:
    known = (*SOURCES, *labelled.NAMES)
    unknown = [name for name in asked.datasets if name not in known]
    if unknown:
        print(f"There is no dataset {unknown[0]!r}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    try:
        for name in asked.datasets or (name for name in known if name not in LARGE):
            if name in labelled.NAMES:
                labelled.download(name, asked.folder)
            else:
                download([name], asked.folder)
            print(f"{name}: downloaded and checked.")
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _run_columns(asked: argparse.Namespace, results: Path, quick: Path) -> int:
    """Those of one experiment that are asked for, one after the other."""
    chosen = [experiment for experiment in EXPERIMENTS.values() if experiment.name == asked.name]
    known = {experiment.columns for experiment in chosen}
    if not set(asked.columns) <= known:
        print(f"{asked.name} has the columns {', '.join(sorted(known - {''})) or 'of no name'}.", file=sys.stderr)
        return 2
    chosen = [
        experiment
        for experiment in chosen
        if (experiment.columns in asked.columns if asked.columns else not experiment.only_if_named)
    ]
    if (asked.datasets or asked.splits) and not all(experiment.by_split for experiment in chosen):
        some = ", ".join(command(experiment) for experiment in EXPERIMENTS.values() if experiment.by_split)
        print(f"--datasets and --splits are for {some}.", file=sys.stderr)
        return 2
    for experiment in chosen if asked.datasets else ():
        settings = experiment.quick if asked.quick else experiment.settings
        names = list(dict.fromkeys(str(unit[0]) for unit in experiment.units(settings)))
        unknown = [name for name in asked.datasets if name not in names]
        if unknown:
            print(f"{command(experiment)} has no dataset {unknown[0]!r}; it has {', '.join(names)}.", file=sys.stderr)
            return 2
    deadline = time.monotonic() + 60.0 * asked.minutes
    for experiment in chosen:
        failed = _run(experiment, asked, results, quick, deadline - time.monotonic())
        if failed:
            return failed
    return 0


def _confirm(asked: argparse.Namespace, results: Path) -> int:
    if asked.name.startswith(BENCHMARKS):
        return _replay(asked.name.removeprefix(BENCHMARKS))
    experiment = EXPERIMENTS[asked.name]

    def is_wanted(unit: Unit) -> bool:
        number = unit[-1] if isinstance(unit[-1], int) else math.inf
        return (not asked.units or str(unit[0]) in asked.units) and (not asked.splits or number < asked.splits)

    try:
        found = confirm(experiment, Store(results, experiment.file_name), is_wanted)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    if not found.units:
        print(f"{experiment.file_name} has no such units.", file=sys.stderr)
        return 2
    how = f"by the code of {found.then[:10]} on this machine" if found.then else "they are stored"
    print(f"{experiment.file_name}: {len(found.units)} units come out as {how}.")
    return 0


def _replay(name: str) -> int:
    try:
        found = replay(name)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{name}: the quick run prints the same {found.n_numbers} numbers as at {found.then[:10]}.")
    return 0


def _run(experiment: Experiment[Any], asked: argparse.Namespace, results: Path, quick: Path, seconds: float) -> int:
    name = experiment.file_name
    store = Store(quick, f"{name}-quick") if asked.quick else Store(results, name)
    settings = experiment.quick if asked.quick else experiment.settings
    n_jobs = 1 if asked.quick else asked.jobs

    def is_wanted(unit: Unit) -> bool:
        return (not asked.datasets or unit[0] in asked.datasets) and (not asked.splits or int(unit[1]) < asked.splits)

    try:
        if experiment.reads(settings):
            folder()
        before = None if asked.fresh or asked.quick else store.record()
        rows = run(
            experiment,
            settings,
            store,
            fresh=asked.fresh or asked.quick,
            mixed=asked.mixed,
            n_jobs=n_jobs,
            is_wanted=is_wanted,
            seconds=seconds,
        )
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    except ImportError as missing:
        cure = "" if "pip install" in str(missing) else ". What experiments need: pip install 'pimeter[experiments]'."
        print(f"{missing}{cure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. Finished units are kept; the same command goes on from there.", file=sys.stderr)
        return 130
    if not rows:
        print("There was no time for a single unit of work.")
        return 0
    print(_computed_or_read(experiment, before, store))
    for title, table in tables(experiment, rows).items():
        print(f"\n{title}\n\n{table_text(table)}")
    print(f"\n{experiment.headline(rows) if asked.quick else experiment.finding(rows)}\n")
    print(f"Rows: {_short(store.csv)}")
    image = store.csv.with_suffix(".png")
    if draw(experiment, rows, image):
        print(f"Figure: {_short(image)}")
    elif experiment.figure:
        print("No figure: matplotlib is not installed (pip install 'pimeter[plot]').")
    return 0


def _computed_or_read(experiment: Experiment[Any], before: Record | None, store: Store) -> str:
    """How many units were there already, and whether what made them is still the same."""
    after = store.record()
    n_read = len(before.done) if before else 0
    n_all = len(after.done) if after else 0
    said = f"{experiment.file_name}: {n_read} units read from {_short(store.folder)}, {n_all - n_read} computed."
    if not (before and n_read):
        return said
    made = status.of_experiment(experiment, store)
    return said if made.state == "current" else f"{said} What was read is {made.state}: {made.why}."


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
