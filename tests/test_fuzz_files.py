"""The command line on broken files: a right answer, or exit code 2 and one clear line; never code from a file."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from pimeter import cli
from pimeter.files import packing
from tests.hostile import fuzzed
from tests.test_files import workbook

N = 60
RNG = np.random.default_rng(0)
SCORE = RNG.random(N)
TABLES = {
    "measure": pl.DataFrame(
        {"y": RNG.standard_normal(N), "y_hat": RNG.standard_normal(N), "größe": ["a", "b, c", 'd"e'] * (N // 3)}
    ),
    "forecast": pl.DataFrame(
        {
            "window": np.repeat(np.arange(N // 3), 3),
            "step": np.tile([1, 2, 3], N // 3),
            "y": RNG.standard_normal(N),
            "y_hat": RNG.standard_normal(N),
        }
    ),
    "classify": pl.DataFrame({"label": (RNG.random(N) < SCORE).astype(int), "score": SCORE}),
}
TABLES["interval"] = TABLES["measure"]
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".feather", ".xlsx", ".csv.gz", ".csv.zst", "")
OPTIONS: dict[str, list[list[str]]] = {
    "measure": [
        *([], ["--json"], ["--features", "all"], ["--by", "größe"], ["--level", "2"]),
        *(["--decimal", ","], ["--thousands", "x"], ["--encoding", "utf-16"], ["--no-header"], ["--sheet", "2"]),
    ],
    "forecast": [[], ["--json"], ["--step", "step", "--window", "window"], ["--window", "y"]],
    "classify": [[], ["--json"], ["--threshold", "0.3"], ["--method", "prediction-powered"], ["--positive", "1"]],
    "interval": [[], ["--level", "0.5"], ["--by", "größe"], ["--tails", "equal", "--y-min", "-9"]],
}


def packed(table: pl.DataFrame, ending: str) -> bytes:
    """The table as a file of this kind."""
    made = io.BytesIO()
    if ending == ".parquet":
        table.write_parquet(made)
    elif ending == ".jsonl":
        table.write_ndjson(made)
    elif ending == ".json":
        table.write_json(made)
    elif ending == ".feather":
        table.write_ipc(made)
    elif ending == ".xlsx":
        workbook(made, {"A": [table.columns, *map(list, table.iter_rows())]})
    else:
        table.write_csv(made, separator="\t" if ending == ".tsv" else ",")
    if ending == ".csv.gz":
        return gzip.compress(made.getvalue(), mtime=0)
    if ending == ".csv.zst":
        return bytes(pa.Codec("zstd").compress(made.getvalue(), asbytes=True))
    return made.getvalue()


def recoded(data: bytes, name: str) -> bytes:
    return data.decode("utf-8", "replace").encode(name, "replace")


MUTATIONS: dict[str, Any] = {
    "none": lambda data, rng: data,
    "cut": lambda data, rng: data[: rng.integers(len(data) + 1)],
    "headless": lambda data, rng: data[rng.integers(len(data)) :],
    "flipped": lambda data, rng: flipped(data, rng, 1),
    "flipped often": lambda data, rng: flipped(data, rng, 50),
    "NUL": lambda data, rng: spliced(data, rng, b"\0"),
    "noise": lambda data, rng: spliced(data, rng, rng.bytes(40)),
    "not UTF-8": lambda data, rng: spliced(data, rng, b"\xff\xfe\xc3("),
    "quote": lambda data, rng: spliced(data, rng, b'"'),
    "lines": lambda data, rng: spliced(data, rng, b"\n\n,,,\r\r\n"),
    "huge": lambda data, rng: spliced(data, rng, b"9" * 500),
    "words": lambda data, rng: spliced(data, rng, b"inf,nan,-inf,1e999,0x10,1_000,True,None"),
    "UTF-16": lambda data, rng: recoded(data, "utf-16"),
    "Latin-1": lambda data, rng: recoded(data, "latin-1"),
    "mark": lambda data, rng: b"\xef\xbb\xbf" + data,
    "two encodings": lambda data, rng: data + recoded(data, "utf-16-le"),
    "twice": lambda data, rng: data + data,
    "returns": lambda data, rng: data.replace(b"\n", b"\r"),
    "semicolons": lambda data, rng: data.replace(b",", b";"),
    "pickle": lambda data, rng: pickle.dumps({"y": [1, 2], "y_hat": data[:20]}),
    "array": lambda data, rng: npy(),
    "spaces": lambda data, rng: b" " * 1000 + data,
    "nothing": lambda data, rng: b"",
    "newlines": lambda data, rng: b"\n" * 50,
    "brackets": lambda data, rng: b"{" * 20_000,
}


def flipped(data: bytes, rng: np.random.Generator, n: int) -> bytes:
    changed = np.frombuffer(data, np.uint8).copy()
    changed[rng.integers(len(data), size=n)] ^= rng.integers(1, 256, size=n).astype(np.uint8)
    return changed.tobytes()


def spliced(data: bytes, rng: np.random.Generator, part: bytes) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + part + data[place:]


def npy() -> bytes:
    made = io.BytesIO()
    np.save(made, np.array([{"y": 1}], object), allow_pickle=True)
    return made.getvalue()


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["pimeter", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
            cli.run()
    finally:
        sys.argv = before
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def right_or_clean(command: str, file: Path, *options: object, out: Path | None = None) -> bool:
    """Whether there was an answer; everything but an answer and a clean error is a fault."""
    beside = {*file.parent.iterdir()}
    code, said, complained = run(command, file, *options, *(["--out", out] if out else []))
    assert code in {0, 2}, complained
    new = {*file.parent.iterdir()} - beside
    if code == 2:
        assert complained.startswith("pimeter: ")
        assert complained.count("\n") == 1, complained
        assert len(complained) > 25
        assert "Traceback" not in complained
        assert not said
        assert not new, new
        return False
    assert new == ({out} if out else set())
    assert said
    if "--json" in options:
        json.loads(said, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    return True


def test_broken_files(tmp_path):
    def attempt(draw: Any) -> bool:
        command = draw(st.sampled_from(sorted(TABLES)))
        ending = draw(st.sampled_from(ENDINGS))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        data = packed(TABLES[command], ending)
        for name in draw(st.lists(st.sampled_from(sorted(MUTATIONS)), max_size=2)):
            data = MUTATIONS[name](data, rng) if data else data
        file = tmp_path / f"file{ending}"
        file.write_bytes(data)
        options: list[Any] = draw(st.sampled_from(OPTIONS[command]))
        out = draw(st.sampled_from([None, None, tmp_path / "out.html"]))
        if command == "interval":
            out = tmp_path / draw(st.sampled_from(["out.csv", "out.parquet", "out.jsonl.gz", "out.doc"]))
            options = [*options, "--apply", file]
        try:
            return right_or_clean(command, file, *options, out=out)
        finally:
            (tmp_path / "out.html" if out is None else out).unlink(missing_ok=True)

    fuzzed("command line", attempt, fraction=0.1)


def test_broken_logs(tmp_path):
    """`pimeter monitor` on a log that was right once: an answer, or a clean error and the state as it was."""
    log, state = tmp_path / "log.csv", tmp_path / "watch.json"
    table = pl.DataFrame({"y": RNG.standard_normal(N), "lower": [-1.5] * N, "upper": [1.5] * N, "id": range(N)})
    whole = packed(table, ".csv")

    def attempt(draw: Any) -> bool:
        for path in tmp_path.iterdir():
            path.unlink()
        options = draw(st.sampled_from([[], ["--id", "id"], ["--by", "id", "--json"]]))
        log.write_bytes(packed(table[:40], ".csv"))
        assert run("monitor", log, "--state", state, "--level", "0.9", *options)[0] == 0
        rng, before = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), state.read_bytes()
        log.write_bytes(MUTATIONS[draw(st.sampled_from(sorted(MUTATIONS)))](whole, rng))
        code, said, complained = run("monitor", log, "--state", state, *options)
        assert code in {0, 2, 3}, complained
        if code != 2:
            assert said
            return True
        assert complained.startswith("pimeter: ")
        assert complained.count("\n") == 1, complained
        assert not said
        assert state.read_bytes() == before
        return False

    fuzzed("logs of monitors", attempt, fraction=0.1)


def test_a_hundred_thousand_columns(tmp_path):
    file = tmp_path / "wide.csv"
    names = ",".join(["y", "y_hat", *(f"x{i}" for i in range(100_000))])
    file.write_text(names + "\n" + "\n".join(",".join(["1"] * 100_002) for _ in range(3)) + "\n")
    assert right_or_clean("measure", file)
    file.write_text(names.replace("y_hat", "x"))
    code, _, complained = run("measure", file)
    assert code == 2
    assert len(complained) < 1000


MEMORY = r"""
import re, resource, sys
from pimeter import cli
from pimeter.files import packing
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
sys.argv = ["pimeter", *sys.argv[1:]]
try:
    cli.run()
finally:
    print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.parametrize("ending", [".jsonl", ".csv.gz"])
def test_a_line_without_end_is_refused_early(tmp_path, ending):
    file = tmp_path / f"line{ending}"
    if ending.endswith(".gz"):
        file.write_bytes(gzip.compress(b"\0" * (1 << 22)) * 250)  # 4 MB that decompress to 1 GB
    else:
        with file.open("wb") as made:
            made.truncate(1 << 30)  # takes no room on the disk
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, "measure", file], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert "first line" in done.stderr
    assert done.stderr.count("\n") == 1
    assert int(done.stdout.split()[-1]) < 600_000  # kB


HEADER = b"y,y_hat\n1,2\n"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".csv.gz"])
def test_a_later_line_without_end_is_refused_early(tmp_path, ending):
    file = tmp_path / f"line{ending}"
    header = b'{"y": 1.0, "y_hat": 2.0}\n' if ending == ".jsonl" else HEADER
    with file.open("wb") as made:
        if ending == ".csv.gz":
            made.write(gzip.compress(header) + gzip.compress(b"7" * (1 << 20)) * 40)
        else:
            made.write(header)
            made.truncate(1 << 30)  # takes no room on the disk
    code, _, complained = run("measure", file)
    assert code == 2
    assert "a line around byte 16,777,216 is longer than 16 MB" in complained


def zstd(part: bytes) -> bytes:
    """A frame that is written in pieces, so that it does not tell its size."""
    made = pa.BufferOutputStream()
    with pa.CompressedOutputStream(made, "zstd") as packed:
        for start in range(0, len(part), 1 << 20):
            packed.write(part[start : start + (1 << 20)])
    return bytes(made.getvalue())


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("part", [b"1,2\n3,5\n", b"\0"], ids=["rows", "line"])
def test_a_packed_file_of_next_to_nothing_is_refused_early(tmp_path, ending, part):
    file = tmp_path / f"bomb{ending}"
    pack = zstd if ending == ".csv.zst" else gzip.compress
    piece = HEADER + part * (15_000_000 // len(part)) + b"\n"
    file.write_bytes(pack(HEADER) + pack(piece) * 12)  # 180 MB
    code, _, complained = run("measure", file)
    assert code == 2
    assert "decompresses to more than 128 MB, 100 times its size or more" in complained


def test_a_sheet_of_next_to_nothing_is_refused_early(tmp_path):
    file = tmp_path / "bomb.xlsx"
    workbook(file, {"A": [["y", "y_hat"], [1, 2]]})
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/sharedStrings.xml", b" " * 180_000_000)
    code, _, complained = run("measure", file)
    assert code == 2
    assert "decompresses to more than 128 MB, 100 times its size or more" in complained


def test_a_parquet_file_of_next_to_nothing_is_refused_early(tmp_path):
    file = tmp_path / "bomb.parquet"
    pl.DataFrame({"y": np.zeros(17_000_000, np.int8)}).with_columns(y_hat="y").write_parquet(file)
    assert file.stat().st_size < 1 << 20
    code, _, complained = run("measure", file)
    assert code == 2
    assert "decompresses to more than 128 MB, 100 times its size or more" in complained


def test_the_size_of_zstandard_frames_is_told_by_their_blocks():
    text = TABLES["measure"].write_csv().encode() * 300
    noise = RNG.bytes(300_000)
    skipped = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    whole = pa.Codec("zstd").compress(text, asbytes=True)  # one part, which tells its size
    for packed, size in (
        (zstd(text), len(text)),
        (bytes(whole), len(text)),
        (zstd(noise), len(noise)),
        (zstd(text) + skipped + zstd(noise) + bytes(whole), 2 * len(text) + len(noise)),
        (zstd(b"\0" * 10_000_000), 10_000_000),
        (b"", 0),
        (zstd(text)[:1000], 0),
    ):
        assert size <= packing.zstd_size(packed) < size + 4 * packing.ZSTD_BLOCK


@pytest.mark.parametrize("method", ["collect", "sink_csv"])
def test_a_panic_of_polars_is_a_broken_file(tmp_path, monkeypatch, method):
    """Some bits of a Parquet file, flipped, make polars panic: no exception of the usual kinds."""

    def panic(*_: Any, **__: Any) -> None:
        raise pl.exceptions.PanicException

    file, out = tmp_path / "file.parquet", tmp_path / "out.csv"
    file.write_bytes(packed(TABLES["interval"], ".parquet"))
    monkeypatch.setattr(pl.LazyFrame, method, panic)
    code, _, complained = run("interval", file, "--apply", file, "--out", out)
    assert code == 2
    assert ("not a complete Parquet file" if method == "collect" else "cannot be written") in complained
    assert not out.exists()


def test_a_pipe_is_read_and_a_device_is_not(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(packed(TABLES["measure"], ".csv")))
    writer.start()
    code, said, _ = run("measure", pipe, "--json")
    writer.join()
    assert code == 0
    file = tmp_path / "file.csv"
    file.write_bytes(packed(TABLES["measure"], ".csv"))
    assert said == run("measure", file, "--json")[1]
    assert "'/dev/zero' is a device; give a file" in run("measure", "/dev/zero")[2]


class Trap:
    """Unpickled it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("engine", ["memory", "dask"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".npy", ".pkl", ".csv.gz"])
def test_nothing_in_a_file_is_executed(tmp_path, ending, engine):
    trap, file = tmp_path / "trapped", tmp_path / f"file{ending}"
    payload = pickle.dumps(Trap(trap))
    file.write_bytes(gzip.compress(payload) if ending == ".csv.gz" else payload)
    run("measure", file, "--engine", engine)
    assert not trap.exists()
    pickle.loads(payload)  # the trap works
    assert trap.exists()


def test_words_that_look_like_code_are_words(tmp_path):
    trap = tmp_path / "trapped"
    code = f"__import__('os').mkdir('{trap}')"
    file = tmp_path / "file.csv"
    file.write_text(f'y,y_hat,g\n1,2,"{code}"\n2,"{code}",=cmd()\n')
    for options in ([], ["--by", "g"], ["--target", code], ["--features", code]):
        assert not right_or_clean("measure", file, *options)
    assert not trap.exists()


@pytest.mark.parametrize("engine", ["memory", "dask"])
def test_a_pickle_in_the_schema_of_a_parquet_file_stays_one(tmp_path, engine):
    trap, file = tmp_path / "trapped", tmp_path / "file.parquet"
    kind = {"ARROW:extension:name": b"arrow.py_extension_type", "ARROW:extension:metadata": pickle.dumps(Trap(trap))}
    schema = pa.schema([pa.field(name, pa.float64(), metadata=kind) for name in ("y", "y_hat")])
    pq.write_table(pa.table([np.arange(40.0), np.arange(40.0) % 7], schema=schema), file)
    run("measure", file, "--engine", engine)
    assert not trap.exists()
