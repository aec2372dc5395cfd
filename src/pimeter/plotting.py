"""matplotlib's pyplot, where it is installed."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """The module, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        msg = "Pictures need matplotlib: pip install 'pimeter[plot]'."
        raise ImportError(msg) from missing
    return plt
