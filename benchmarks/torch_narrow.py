"""Are intervals narrower with their width in the loss? What `examples/narrow_intervals.py` finds on protein data.

    PIMETER_DATA=FOLDER python benchmarks/torch_narrow.py [--quick]

Four splits, each with networks from the same start: by squared error, by likelihood, and by squared error and width.
The quick run has one split of scikit-learn's diabetes data.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from provenance import save

EXAMPLE = Path(__file__).parents[1] / "examples" / "narrow_intervals.py"
SPLITS = 4
DATA = "regression/protein.csv.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one split of few rows, nothing saved")
    quick = parser.parse_args().quick
    environment = dict(os.environ)
    if quick:
        environment.pop("PIMETER_DATA", None)
    elif not Path(environment.get("PIMETER_DATA", ""), DATA).exists():
        print(f"Nothing done: PIMETER_DATA has to name a folder with {DATA}.")
        return
    command = [sys.executable, str(EXAMPLE), "1" if quick else str(SPLITS)]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch"))
    lines = "\n".join(f"- {line}" for line in said.splitlines())
    text = f"# Width in the loss\n\n`python benchmarks/torch_narrow.py`: {versions}.\n\n{lines}\n"
    print(text)
    if not quick:
        save(__file__, text, packages=["torch"], data=[DATA], uses=["examples.narrow_intervals"])


if __name__ == "__main__":
    main()
