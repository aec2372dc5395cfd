"""`pimeter` and `python -m pimeter`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from pimeter.cli import run
    except ImportError as missing:
        sys.exit(f"pimeter: the command line needs {missing.name}: pip install 'pimeter[app]'")
    run()


if __name__ == "__main__":
    main()
