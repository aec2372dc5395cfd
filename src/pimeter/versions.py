"""What a bug report should say: versions, and which kernel computes quantiles."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import pimeter
from pimeter._kernels.dispatch import kernel_name

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "narwhals", "statsmodels", "polars", "pandas", "dask", "torch", "matplotlib",
)  # fmt: skip


def summary() -> str:
    """Version and kernel on one line."""
    return f"pimeter {pimeter.__version__} ({kernel_name()} kernel)"


def show_versions() -> None:
    """Print versions of pimeter, Python and other packages, and which kernel is in use: native code or NumPy.

    Examples
    --------
    >>> show_versions()
    pimeter 0.1.0 (... kernel)
    Python ...
    numpy ...
    """
    print(summary())  # noqa: T201
    print(f"Python {sys.version.split()[0]} on {platform.platform()}")  # noqa: T201
    for name in PACKAGES:
        try:
            print(f"{name} {version(name)}")  # noqa: T201
        except PackageNotFoundError:
            print(f"{name} is not installed")  # noqa: T201
