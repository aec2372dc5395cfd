"""The command line: from a file of predictions to an answer in words and a page to send to a colleague.

Only typer is imported at the top, so that help comes at once; each command brings what it needs.
"""

# isort: skip_file - commands in the order of the help
from pimeter.cli import classify, forecast, interval, measure
from pimeter.cli.app import run

__all__ = ["classify", "forecast", "interval", "measure", "run"]
