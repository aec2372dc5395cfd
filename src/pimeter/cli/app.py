"""The application that commands join, and how their mistakes are told."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

app = typer.Typer(
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How far can predictions be trusted? Give a file with two columns: what happened, and what the model said.",
    epilog="""Examples:

pimeter demo

pimeter measure predictions.csv --out report.html

pimeter interval predictions.csv --apply new.csv --out with-intervals.csv

pimeter compare predictions.csv --models ridge,forest

pimeter recalibrate held-out.csv --lower lo-90 --upper hi-90 --apply new.csv --out calibrated.csv

pimeter apply calibration.json new.csv --out with-intervals.csv

pimeter monitor log.csv --state watch.json --level 0.9

pimeter plan --level 0.95 --within 0.02

pimeter forecast forecasts.csv --out cone.html

pimeter classify scores.csv --out classifier.html""",
)


def run() -> None:
    """Run a command; a user's mistake is one line and exit code 2."""
    mistyped: Any = typer.BadParameter.__base__  # commands and options that are wrong: the class has no public name
    try:
        sys.exit(app(prog_name="pimeter", standalone_mode=False) or 0)
    except mistyped as why:
        text = f"{why.format_message()} Try: pimeter --help"
    except (ValueError, OSError, ImportError) as why:  # an extra that is not installed names itself
        text = str(why)
    typer.echo(f"pimeter: {' '.join(text.split())}", err=True)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version, and which kernel is in use.")] = False,
) -> None:
    """Without a command there is the version, or help."""
    if context.invoked_subcommand is None:
        if version:
            from pimeter.versions import summary

            typer.echo(summary())
        else:
            typer.echo(context.get_help())
