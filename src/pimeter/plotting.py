"""matplotlib's pyplot, where it is installed."""

from __future__ import annotations

from types import ModuleType

from pimeter.extras import how_to_install


def pyplot() -> ModuleType:
    """The module, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        msg = f"Plots need matplotlib: {how_to_install('plot')}."
        raise ImportError(msg) from missing
    return plt
