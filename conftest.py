"""Examples in docstrings of a kernel run where its package is installed."""

from importlib.util import find_spec

collect_ignore_glob = [f"src/pimeter/_kernels/{name}*" for name in ("dask", "torch") if find_spec(name) is None]
