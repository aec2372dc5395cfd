"""The command line: `python -m experiments list | run NAME [--quick] | report`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import coverage, fig1, fig2, fig3, fig4, table1, table2, table3, table4
from experiments.data import folder
from experiments.protocol import Experiment, RefusedError, Store, run
from experiments.report import command, draw, page, table_text, tables

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.file_name: experiment
    for experiment in (
        fig1.EXPERIMENT,
        table1.EXPERIMENT,
        fig2.EXPERIMENT,
        fig3.EXPERIMENT,
        table2.PSIG,
        table3.EXPERIMENT,
        coverage.EXPERIMENT,
        fig4.EXPERIMENT,
        table4.EXPERIMENT,
    )
}
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
QUICK = ROOT / "build" / "quick"


def main(arguments: Sequence[str] | None = None, *, results: Path = RESULTS, quick: Path = QUICK) -> int:
    """Run one command; the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.command == "list":
        _list(results)
    elif asked.command == "report":
        results.mkdir(parents=True, exist_ok=True)
        target = results / "README.md"
        target.write_text(page(EXPERIMENTS.values(), results))
        print(f"Wrote {_short(target)}.")
    else:
        name = f"{asked.name}-{asked.columns}" if asked.columns else asked.name
        if name not in EXPERIMENTS:
            known = "; ".join(f"run {command(experiment)}" for experiment in EXPERIMENTS.values())
            print(f"There is no such experiment; there are: {known}.", file=sys.stderr)
            return 2
        return _run(EXPERIMENTS[name], asked, results, quick)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Repeat the paper's experiments.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="list | run NAME | report")
    commands.add_parser("list", help="name the experiments and say how far each has come")
    one = commands.add_parser("run", help="run one experiment, or go on with it where it stopped")
    names = list(dict.fromkeys(experiment.name for experiment in EXPERIMENTS.values()))
    one.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    one.add_argument("--columns", default="", metavar="WORD", help="only these columns of a table, such as psig")
    one.add_argument("--quick", action="store_true", help="a small version that takes seconds and is kept apart")
    one.add_argument("--fresh", action="store_true", help="discard the stored rows and start anew")
    one.add_argument("--jobs", type=_count, default=2, metavar="N", help="processes for a full run (2)")
    commands.add_parser("report", help="write the page of all results from the stored rows")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        msg = f"expected a number of processes from 1 up, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _list(results: Path) -> None:
    for experiment in EXPERIMENTS.values():
        record = Store(results, experiment.file_name).record()
        n_units = len(experiment.units(experiment.settings))
        state = "not run yet" if record is None else f"{len(record.done)} of {n_units} units done"
        print(f"{experiment.file_name:12} {experiment.title} ({state})")


def _run(experiment: Experiment[Any], asked: argparse.Namespace, results: Path, quick: Path) -> int:
    name = experiment.file_name
    store = Store(quick, f"{name}-quick") if asked.quick else Store(results, name)
    settings = experiment.quick if asked.quick else experiment.settings
    n_jobs = 1 if asked.quick else asked.jobs
    try:
        if experiment.needs_data:
            folder()
        rows = run(experiment, settings, store, fresh=asked.fresh or asked.quick, n_jobs=n_jobs)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. Finished units are kept; the same command goes on from there.", file=sys.stderr)
        return 130
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


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
