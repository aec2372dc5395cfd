"""matplotlib's pyplot, where it is installed."""

from __future__ import annotations

from types import ModuleType


def pyplot() -> ModuleType:
    """The module, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        msg = "Plots need matplotlib: pip install 'pimeter[plot]'."
        raise ImportError(msg) from missing
    return plt
