"""The command line: from a file of predictions to an answer in words and a page to send to a colleague.

Only typer is imported at the top, so that help comes at once; each command brings what it needs.
"""

# Commands in the order of the help.
from pimeter.cli import measure  # isort: skip
from pimeter.cli import interval  # isort: skip
from pimeter.cli import recalibrate  # isort: skip
from pimeter.cli import apply  # isort: skip
from pimeter.cli import monitor  # isort: skip
from pimeter.cli import compare  # isort: skip
from pimeter.cli import forecast  # isort: skip
from pimeter.cli import classify  # isort: skip
from pimeter.cli.app import run

__all__ = ["apply", "classify", "compare", "forecast", "interval", "measure", "monitor", "recalibrate", "run"]
