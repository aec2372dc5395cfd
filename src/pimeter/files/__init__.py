"""Tables in files: columns of numbers come in, whole files go out, and what is wrong is said with its place."""

from pimeter.files.columns import as_strings
from pimeter.files.lazy import cluster, lazy_frame, matches
from pimeter.files.naming import listed, shown
from pimeter.files.opening import opened
from pimeter.files.reading import Reading
from pimeter.files.table import PARQUET, FileTable
from pimeter.files.writing import replaced

__all__ = [
    "PARQUET",
    "FileTable",
    "Reading",
    "as_strings",
    "cluster",
    "lazy_frame",
    "listed",
    "matches",
    "opened",
    "replaced",
    "shown",
]
