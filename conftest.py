"""Examples in docstrings of a kernel or an adapter run where its package is installed."""

from importlib.util import find_spec

FOLDERS = {"dask": "_kernels", "torch": "_kernels", "skpro": "integrations", "sktime": "integrations"}
collect_ignore_glob = [f"src/pimeter/{folder}/{name}*" for name, folder in FOLDERS.items() if find_spec(name) is None]
