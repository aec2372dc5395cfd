"""`pimeter` and `python -m pimeter`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from pimeter.cli import run
    except ImportError as missing:
        from pimeter.extras import how_to_install

        sys.exit(f"pimeter: the command line needs {missing.name}: {how_to_install('app')}")
    run()


if __name__ == "__main__":
    main()
