"""Hostile input: arrays and frames as no tidy program would pass them, and what a call may do with them.

A call on hostile input gives a right answer or a clean error, and nothing else: no other exception, no warning but our
own, no NaN or infinity from finite numbers, no change of what was passed in, no hang.

The test suite tries a few examples. `PIMETER_FUZZ=1000` asks for a thousand of each cheap name, fewer of a dear one
(`make fuzz`): what is done with the same code is not done again, and the table goes to `benchmarks/results/fuzz.md`.
"""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import math
import os
import pickle
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, UndefinedMetricWarning

from benchmarks.provenance import Origin, origin, save, write
from pimeter import CoverageWarning

Draw = Callable[[st.SearchStrategy[Any]], Any]

ROOT = Path(__file__).parents[1]
FEW = 8  # examples of a cheap name in the test suite
ASKED = int(os.environ.get("PIMETER_FUZZ", "0"))
DONE = ROOT / "benchmarks" / ".parts" / "fuzz.json"
USES = ["tests.test_fuzz", "tests.test_fuzz_files", "pimeter.__main__"]  # and all that these import
SECONDS = 120  # after which one example counts as a hang
ALLOWED = (CoverageWarning, ConvergenceWarning, DataConversionWarning, UndefinedMetricWarning)

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "magnitudes": lambda rng, shape: rng.exponential(size=shape),
    "fractions": lambda rng, shape: rng.random(shape),
    "labels": lambda rng, shape: rng.integers(2, size=shape).astype(np.float64),
    "ties": lambda rng, shape: rng.integers(-2, 3, size=shape).astype(np.float64),
    "constant": lambda rng, shape: np.full(shape, rng.standard_normal()),
    "zeros": lambda rng, shape: rng.choice([0.0, -0.0], shape),
    "huge": lambda rng, shape: rng.choice([-1.7e308, 1e308, 1.7e308, 8e307], shape),
    "subnormal": lambda rng, shape: rng.integers(-3, 4, shape) * 5e-324,
    "all magnitudes": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, shape),
    "far away": lambda rng, shape: 1e15 + rng.standard_normal(shape),
    "one far": lambda rng, shape: np.where(rng.random(shape) < 0.1, 1e12, rng.standard_normal(shape)),
}
POISON = {"nan": [np.nan], "inf": [np.inf], "-inf": [-np.inf], "any": [np.nan, np.inf, -np.inf]}


class Given(NamedTuple):
    """An argument: what is passed, and the numbers that it stands for."""

    value: Any
    numbers: np.ndarray | None  # NaN for what is missing or masked; None: no array of real numbers
    is_tame: bool  # a plain array of moderate, finite numbers of the shape that was asked for

    @property
    def is_finite(self) -> bool:
        return self.numbers is not None and bool(np.isfinite(self.numbers).all())

    def fits(self, *shape: int) -> bool:
        """Whether it holds finite numbers of this shape."""
        return self.is_finite and np.shape(self.numbers) == shape


def _strided(x: np.ndarray) -> np.ndarray:
    wide = np.full(tuple(2 * n for n in x.shape), 7.0, x.dtype)
    part = tuple(slice(None, None, 2) for _ in x.shape)
    wide[part] = x
    return wide[part]


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _wide(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[..., ::-1])[..., ::-1] if x.ndim else x


def _masked(x: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.MaskedArray(np.where(np.isnan(x), 1e6, x), mask=np.isnan(x))


def _as(kind: type | str) -> Callable[[np.ndarray], np.ndarray]:
    def cast(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return x.astype(kind)

    return cast


def _frame(x: np.ndarray) -> Any:
    """A pandas object with an index that is no range, and columns of which two may have one name."""
    index = pd.Index(np.arange(len(x))[::-1] * 3)
    return pd.Series(x, index) if x.ndim == 1 else pd.DataFrame(x, index)


def _nullable(x: np.ndarray) -> Any:
    return _frame(x).astype("Float64")


def _polars(x: np.ndarray) -> Any:
    return pl.Series("x", x) if x.ndim == 1 else pl.DataFrame(x, schema=[f"x{i}" for i in range(x.shape[1])])


def _whole(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    """Integers keep what fits into their type."""

    def cast(x: np.ndarray) -> np.ndarray:
        info = np.iinfo(kind)
        kept = np.clip(np.nan_to_num(x), max(float(info.min), -(2.0**62)), min(float(info.max), 2.0**62))
        return kept.astype(kind)

    return cast


NUMERIC: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": np.array,
    "fortran": np.asfortranarray,
    "strided": _strided,
    "backwards": _wide,
    "read-only": _read_only,
    "big-endian": _as(">f8"),
    "float32": _as(np.float32),
    "float16": _as(np.float16),
    "long double": _as(np.longdouble),
    "int8": _whole("int8"),
    "int64": _whole("int64"),
    "uint64": _whole("uint64"),
    "bool": lambda x: np.nan_to_num(x) > 0.0,
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.tolist()),
    "masked": _masked,
    "pandas": _frame,
    "pandas array": lambda x: pd.array(x, dtype="Float64") if x.ndim == 1 else _frame(x),
    "nullable": _nullable,
    "polars": _polars,
    "objects": _as(object),
    "memory": lambda x: memoryview(np.ascontiguousarray(x)),
}
ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "objects with None": lambda x: np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, None, x.astype(object)),
    "words": lambda x: np.array([f"w{i % 3}" for i in range(x.size)]).reshape(x.shape),
    "number words": lambda x: x.astype(str),
    "bytes": lambda x: x.astype("S8"),
    "complex": lambda x: x + 1j,
    "moments": lambda x: (np.arange(x.size) * 10**9).reshape(x.shape).astype("datetime64[ns]"),
    "durations": lambda x: np.arange(x.size).reshape(x.shape).astype("timedelta64[s]"),
    "records": lambda x: np.zeros(x.shape, [("a", float), ("b", int)]),
    "categories": lambda x: pd.Series([f"c{i % 3}" for i in range(x.size)], dtype="category"),
    "moments with gaps": lambda x: pd.Series(pd.to_datetime(["2024-01-01", None] * x.size)[: x.size]),
    "ragged": lambda x: [[1.0], [1.0, 2.0], *x.tolist()],
    "sparse": lambda x: sparse.csr_array(np.zeros((len(x) if x.ndim else 1, 2))),
    "mixed": lambda x: [None, "a", 1.0, (), {}, *x.ravel().tolist()][: max(1, x.size)],
    "a word": lambda _: "word",
    "None": lambda _: None,
    "a set": lambda x: set(x.ravel().tolist()),
    "a dict": lambda x: dict(enumerate(x.ravel().tolist())),
    "an iterator": lambda x: iter(x.ravel().tolist()),
    "an object": lambda _: object(),
}


def _twisted(shape: tuple[int, ...], twist: str) -> tuple[int, ...]:
    """Another shape than the one that fits."""
    n = shape[0] if shape else 1
    return {
        "no rows": (0, *shape[1:]),
        "one row": (1, *shape[1:]),
        "more rows": (n + 1, *shape[1:]),
        "one more axis": (*shape, 1),
        "two columns": (n, 2),
        "no columns": (n, 0),
        "a scalar": (),
        "three axes": (n, 2, 2),
    }[twist]


TWISTS = ("no rows", "one row", "more rows", "one more axis", "two columns", "no columns", "a scalar", "three axes")


def _numbers(value: Any) -> np.ndarray:
    """What numbers an argument holds, by the plainest way there is."""
    if isinstance(value, np.ma.MaskedArray):
        return value.astype(np.float64).filled(np.nan)
    if isinstance(value, pd.DataFrame | pd.Series | pd.api.extensions.ExtensionArray):
        return value.to_numpy(dtype=np.float64, na_value=np.nan)
    found = np.asarray(value)
    return found.astype(np.float64)


@st.composite
def arrays(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    distributions: Sequence[str] = tuple(DISTRIBUTIONS),
    *,
    tameness: int = 12,
    kinds: Sequence[str] = tuple(NUMERIC),
) -> Given:
    """An array-like of this shape, or of another one, or of no numbers at all: the fewer, the more `tameness`."""
    distribution = draw(st.sampled_from(distributions))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Of tameness + 4 draws one each is odd, of another shape or poisoned.
    fault = draw(st.sampled_from(["", *[""] * tameness, "odd", "twist", "poison"]))
    asked = shape
    if fault == "twist":
        shape = _twisted(shape, draw(st.sampled_from(TWISTS)))
    x = np.asarray(DISTRIBUTIONS[distribution](rng, shape), np.float64)
    if fault == "poison" and x.size:
        bad = POISON[draw(st.sampled_from(sorted(POISON)))]
        x.ravel()[rng.integers(x.size, size=1 + x.size // 8)] = rng.choice(bad, 1 + x.size // 8)
    if fault == "odd":
        return Given(ODD[draw(st.sampled_from(sorted(ODD)))](x), None, False)
    kind = draw(st.sampled_from(kinds))
    if x.ndim not in {1, 2} and kind in {"pandas", "pandas array", "nullable", "polars", "tuple"}:
        kind = "plain"
    value = NUMERIC[kind](x)
    tame = fault == "" and shape == asked and distribution in {"normal", "magnitudes", "fractions", "labels"}
    return Given(value, _numbers(value), tame and kind in {"plain", "fortran", "strided", "read-only", "backwards"})


@st.composite
def tables(draw: st.DrawFn, n: int, *, tameness: int = 12) -> Given:
    """Features: an array, a sparse matrix, or a frame with columns of any kind."""
    d = draw(st.integers(1, 3))
    how = draw(st.sampled_from(["array"] * 5 + ["pandas", "polars"] * 2 + ["sparse", "repeated names"]))
    if how == "array":
        rows = draw(arrays((n, d), tameness=tameness))
        return rows._replace(value=np.asarray(rows.value)) if isinstance(rows.value, memoryview) else rows
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if how == "sparse":
        return Given(sparse.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)), None, False)
    if how == "repeated names":
        return Given(pd.DataFrame(rng.standard_normal((n, 2)), columns=["a", "a"]), None, False)
    column = st.sampled_from(sorted(COLUMNS))
    columns = {f"x{i}": COLUMNS[draw(column)](rng, n) for i in range(d)}
    if how == "polars":
        columns = {name: values.tolist() for name, values in columns.items()}
        return Given(pl.DataFrame(columns, strict=False), None, False)
    return Given(pd.DataFrame(columns, index=np.arange(n)[::-1]), None, False)


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "numbers": lambda rng, n: pd.Series(rng.standard_normal(n)).to_numpy(),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n)),
    "only gaps": lambda _, n: np.full(n, np.nan),
    "huge": lambda rng, n: rng.choice([-1.7e308, 1.7e308], n),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf, rng.standard_normal(n)),
    "constant": lambda _, n: np.ones(n),
    "truth": lambda rng, n: rng.random(n) < 0.5,
    "words": lambda rng, n: rng.choice(["north", "süd", "", "a, b"], n).astype(object),
    "words with gaps": lambda rng, n: np.where(rng.random(n) < 0.3, None, "x").astype(object),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["a", "b"], n)),
    "moments": lambda _, n: pd.date_range("2024-01-01", periods=n, tz="UTC"),
    "durations": lambda _, n: pd.to_timedelta(np.arange(n), unit="s"),
    "nullable": lambda rng, n: pd.array(rng.integers(5, size=n), dtype="Int64"),
    "nullable with gaps": lambda rng, n: pd.array(np.where(rng.random(n) < 0.3, None, 2.5), dtype="Float64"),
    "truth with gaps": lambda rng, n: pd.array(np.where(rng.random(n) < 0.3, None, True), dtype="boolean"),
}


@st.composite
def categories(draw: st.DrawFn, n: int) -> Any:
    """One category for each row, of any type; or no such thing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    few = rng.integers(3, size=n)
    made: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "numbers": lambda: few,
        "words": lambda: np.array(["north", "süd", ""])[few],
        "pandas": lambda: pd.Series(pd.Categorical.from_codes(few, ["a", "b", "c"]), index=np.arange(n)[::-1]),
        "nullable": lambda: pd.Series(np.where(few == 0, None, "x"), dtype="string"),
        "pandas array": lambda: pd.array(np.where(few == 0, None, few), dtype="Int64"),
        "polars": lambda: pl.Series("by", few.tolist()),
        "with gaps": lambda: np.where(few == 0, np.nan, few),
        "objects": lambda: np.array([None, "a", 1.5, float("nan"), True], object)[few + rng.integers(3)],
        "each its own": lambda: np.arange(n),
        "moments": lambda: few.astype("datetime64[D]"),
        "lists": lambda: [[1]] * n,
        "too many": lambda: np.arange(n + 1),
        "table": lambda: np.zeros((n, 2)),
        "a word": lambda: "north",
    }
    return made[draw(st.sampled_from(list(made)))]()


def levels() -> st.SearchStrategy[Any]:
    """Confidence levels, most of them usable."""
    usable = [0.5, 0.9, 0.95, 0.95, 0.999, 0.01, 1e-9, 1.0 - 1e-9, np.float32(0.9)]
    odd = [0.0, 1.0, -0.1, 95, np.nan, np.inf, "0.9", None, True, [0.5, 0.9], [], np.array([[0.5]]), 0.5j, (0.1, "b")]
    return st.sampled_from(usable * 10 + odd)


def is_level(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, float | np.floating) and 0.0 < value < 1.0


class Refused(NamedTuple):
    """A clean error."""

    why: str


def outcome(call: Callable[[], Any], words: Sequence[str], *given: Any) -> Any:
    """What a call gives, or `Refused` for an error that says one of these words; everything else is a fault."""
    before = [_fingerprint(one) for one in given]
    _watch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ALLOWED:
            warnings.simplefilter("ignore", kind)
        # The first two are scikit-learn's; scores may well be lower for the positive class here.
        for said in (".*feature names", "The number of unique classes", ".*score is lower where", "y is boolean"):
            warnings.filterwarnings("ignore", said, UserWarning)
        try:
            found = call()
        except (ValueError, TypeError) as why:  # NotFittedError is a ValueError
            found = Refused(str(why))
            if not any(word in found.why for word in words):
                msg = f"unclear: {type(why).__name__}: {why}"
                raise AssertionError(msg) from why
    assert [_fingerprint(one) for one in given] == before, "the input was changed"
    return found


_armed = [-math.inf]


def _watch() -> None:
    """A hang stops the process with a traceback, also in compiled code; arming is slow, so it is done now and then."""
    if time.monotonic() - _armed[0] > SECONDS / 10:
        _armed[0] = time.monotonic()
        faulthandler.dump_traceback_later(SECONDS, exit=True)


def _fingerprint(value: Any) -> Any:
    """Bits of an argument."""
    if isinstance(value, Given):
        value = value.value
    if isinstance(value, np.ma.MaskedArray) or sparse.issparse(value):  # without scipy's notes on the order of indices
        names = ("data", "indices", "indptr") if sparse.issparse(value) else ("data", "mask")
        return [getattr(value, name).tobytes() for name in names]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.tobytes(), str(value.dtype), value.shape
    if isinstance(value, pl.DataFrame | pl.Series | pd.api.extensions.ExtensionArray):
        return str(value.to_dict() if isinstance(value, pl.DataFrame) else list(value))
    if isinstance(value, memoryview):
        return value.tobytes()
    if type(value).__name__.endswith("iterator") or type(value) is object:
        return None  # an iterator may be used up, and an object has no parts
    return pickle.dumps(copy.copy(value))


def fuzzed(names: str, attempt: Callable[[Draw], bool], fraction: float = 1.0) -> None:
    """Try examples until one is at fault; `attempt` tells whether there was an answer."""
    n = max(3, round((ASKED or FEW) * fraction))
    code = _digest()
    done = json.loads(DONE.read_text()) if ASKED and DONE.exists() else {}
    if done.get(names, {}).get("code") == code and done[names]["examples"] >= n:
        pytest.skip("done before with the same code")
    counts = {"examples": 0, "answers": 0}

    @settings(
        max_examples=n, deadline=None, database=None, derandomize=not ASKED, suppress_health_check=list(HealthCheck)
    )
    @given(data=st.data())
    def test(data: st.DataObject) -> None:
        counts["examples"] += 1
        counts["answers"] += attempt(data.draw)

    try:
        test()
    finally:
        faulthandler.cancel_dump_traceback_later()
        _armed[0] = -math.inf
    assert counts["examples"] > 0
    if ASKED:
        done[names] = {**counts, "code": code, "session": asdict(origin(__file__, uses=USES))}
        write({DONE: json.dumps(done, indent=1)})
        _save({name: one for name, one in done.items() if one["code"] == code})


def _digest() -> str:
    """Of the code that is tried, and of what tries it."""
    paths = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "tests").glob("*fuzz*.py")), Path(__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _save(done: dict[str, dict[str, Any]]) -> None:
    total = sum(one["examples"] for one in done.values())
    lines = [f"| {names} | {one['examples']:,} | {one['answers']:,} |" for names, one in sorted(done.items())]
    text = (
        f"# Hostile input\n\n`make fuzz`: {total:,} examples, each of them a right answer or a clean error. An example "
        "that is neither stops its row, which is not in the table then. Names of one row were tried on the same input. "
        f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
        "| names | examples | answered |\n|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    save(__file__, text, name="fuzz", uses=USES, earlier=[Origin(**one["session"]) for one in done.values()])
