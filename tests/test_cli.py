"""The command line: answers, files that appear whole or not at all, and one clear line for each mistake."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from polars.testing import assert_frame_equal

import pimeter
from pimeter import Measurement, cli, files
from pimeter._kernels.dispatch import kernel_name
from pimeter.cli import terminal
from pimeter.files import text as text_files

GOOD = "y,y_hat,g\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(60))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frame(tmp_path):
    rng = np.random.default_rng(0)
    y_hat = rng.uniform(10, 20, size=300)
    made = pl.DataFrame({"y": y_hat + rng.normal(size=300), "y_hat": y_hat, "size": rng.normal(size=300)})
    made = made.with_columns(shop=pl.Series(["north", "south", "a, b"] * 100))
    made.write_csv("good.csv")
    return made


@pytest.fixture
def pimeter_command(monkeypatch, capfd):
    """Runs a command line; gives its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    return run


class TestMeasure:
    def test_rows_that_belong_together(self, frame, pimeter_command):
        n = frame.height
        day = [f"2024-{1 + i // 28 % 12:02d}-{1 + i % 28:02d}" for i in range(n)]
        made = frame.with_columns(shop=pl.Series([i % 20 for i in range(n)]), day=pl.Series(day))
        made[::-1].write_csv("together.csv")
        expected = pimeter.measure(made["y"][::-1], made["y_hat"][::-1], groups=made["shop"][::-1])
        code, out, err = pimeter_command("measure", "together.csv", "--groups", "shop", "--json")
        assert code == 0, err
        assert Measurement.from_json(out) == expected
        code, out, err = pimeter_command("measure", "together.csv", "--time", "day", "--json")
        assert code == 0, err
        assert Measurement.from_json(out) == pimeter.measure(made["y"][::-1], made["y_hat"][::-1], time=day[::-1])
        made.with_columns(shop=pl.Series([i % 3 for i in range(n)])).write_csv("few.csv")
        said = pimeter_command("measure", "few.csv", "--groups", "shop")[1]
        assert "mean error, median error, r2: no range: 3 groups, at least 10 are needed." in said
        made.with_columns(day=pl.Series([None, *day[1:]])).write_csv("gap.csv")
        assert "left out 1 of" in pimeter_command("measure", "gap.csv", "--time", "day")[2]
        code, _, err = pimeter_command("measure", "few.csv", "--groups", "shop", "--engine", "dask")
        assert code == 2
        assert "--groups needs rows in memory" in err

    def test_the_command_that_is_printed_follows_the_order_and_knows_the_groups(self, pimeter_command):
        rng = np.random.default_rng(0)
        y_hat = rng.uniform(10, 20, 600)
        made = pl.DataFrame({"y_hat": y_hat, "day": rng.permutation(600), "shop": np.arange(600) // 6})
        made = made.with_columns(y=y_hat + made["day"] / 200 + rng.standard_normal(600))
        made.write_csv("drifts.csv")
        made.sort("day")[-5:].drop("y").write_csv("new.csv")
        said = pimeter_command("measure", "drifts.csv", "--time", "day")[1]
        command = next(line for line in said.splitlines() if line.startswith("pimeter interval"))
        assert "--online --time day" in command
        code, out, err = pimeter_command(*command.split()[1:])
        assert code == 0, err
        assert "They follow 600 rows in the order of time, and nothing is guaranteed of rows to come" in out
        middle = pl.read_csv("new-with-intervals.csv").select((pl.col("lower") + pl.col("upper")) / 2 - pl.col("y_hat"))
        assert 2.5 < middle.to_series().mean() < 3.5  # the level of the last rows, which is 3; the mean of all is 1.5
        said = pimeter_command("measure", "drifts.csv", "--groups", "shop")[1]
        command = next(line for line in said.splitlines() if line.startswith("pimeter interval"))
        assert command.endswith("--groups shop")
        code, out, err = pimeter_command(*command.split()[1:])
        assert code == 0, err
        assert (
            "95 % of new targets are expected between" in out
        )  # each group counts once: of a new one that is guaranteed
        code, _, err = pimeter_command(*command.split()[1:-2], "--time", "day")
        assert code == 2
        assert "--time 'day' says in which order --online follows the rows" in err

    def test_rows_are_named_by_their_number_in_the_file(self, frame, pimeter_command):
        y = frame["y"].to_list()
        y[3], y[77] = None, 1e4
        frame.with_columns(y=pl.Series(y)).write_csv("gap.csv")
        assert "such as row 77 (" in pimeter_command("measure", "gap.csv")[1]

    def test_every_kind_of_file_gives_the_same_answer(self, frame, pimeter_command, tmp_path):
        frame.write_csv("a.tsv", separator="\t")
        frame.write_csv("semicolons.txt", separator=";")
        frame.write_parquet("a.parquet")
        frame.write_ndjson("a.jsonl")
        frame.lazy().sink_csv("a.csv.zst", compression="zstd")
        for name in ("good.csv", "a.jsonl"):
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        expected = pimeter.measure(frame["y"], frame["y_hat"], confidence_level=0.9)
        for name in (
            "good.csv",
            "a.tsv",
            "semicolons.txt",
            "a.parquet",
            "a.jsonl",
            "good.csv.gz",
            "a.jsonl.gz",
            "a.csv.zst",
        ):
            code, out, err = pimeter_command("measure", name, "--level", 0.9, "--json")
            assert code == 0, err
            assert pimeter.Measurement.from_json(out) == expected
            assert err == (
                f"note: guessed that the target in '{name}' is column 'y'\n"
                f"note: guessed that the prediction in '{name}' is column 'y_hat'\n"
            )

    @pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
    def test_standard_input(self, frame, kind, pimeter_command, monkeypatch):
        sent = io.BytesIO()
        {
            "csv": frame.write_csv,
            "csv.gz": frame.write_csv,
            "jsonl": frame.write_ndjson,
            "parquet": frame.write_parquet,
        }[kind](sent)
        text = gzip.compress(sent.getvalue()) if kind == "csv.gz" else sent.getvalue()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        code, out, err = pimeter_command("measure", "-", "--json")
        assert code == 0, err
        assert pimeter.Measurement.from_json(out) == pimeter.measure(frame["y"], frame["y_hat"])

    def test_marks_of_other_systems_and_odd_names(self, frame, pimeter_command, tmp_path):
        """A byte order mark, line breaks of two characters, an empty last line, and odd names."""
        text = (tmp_path / "good.csv").read_text().replace("\n", "\r\n")
        (tmp_path / "[a]*.csv").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n")
        frame.write_ndjson("[a]*.jsonl")
        for name in ("[a]*.csv", "[a]*.jsonl"):
            code, out, err = pimeter_command("measure", name, "--json")
            assert code == 0, err
            assert pimeter.Measurement.from_json(out) == pimeter.measure(frame["y"], frame["y_hat"])

    @pytest.mark.parametrize("engine", ["memory", "dask"])
    def test_ids_and_times_do_not_flip_the_advice(self, frame, engine, pimeter_command):
        numbers = np.random.default_rng(1).permutation(300)
        days = pl.datetime_range(pl.datetime(2024, 1, 1), interval="1h", eager=True, end=pl.datetime(2024, 1, 13, 11))
        frame.with_columns(
            order_id=pl.Series(numbers + 1000),
            code=pl.Series([f"A{number:04d}" for number in numbers]),
            when=days.dt.strftime("%Y-%m-%d %H:%M:%S"),
        ).write_csv("ids.csv")
        columns = ("--target", "y", "--prediction", "y_hat", "--json", "--engine", engine)
        plain = pimeter_command("measure", "good.csv", *columns, "--features", "all")
        found = pimeter_command("measure", "ids.csv", *columns, "--features", "all")
        one, other = (pimeter.Measurement.from_json(out) for _, out, _ in (plain, found))
        assert one.diagnosis.raised == other.diagnosis.raised
        assert one.advice == other.advice
        assert {part.of for part in other.subgroups} == {"prediction", "size", "shop", "when"}
        said = "Column 'order_id' is left out: 300 of 300 values are distinct. Column 'code' is left out: 300 of 300"
        assert said in found[2]
        assert "left out" not in plain[2]
        assert "by is left out" in pimeter_command("measure", "ids.csv", *columns, "--by", "code")[2]

    def test_words_features_and_categories(self, frame, pimeter_command, tmp_path):
        columns = ("--target", "y", "--prediction", "y_hat")
        code, out, err = pimeter_command(
            "measure", "good.csv", *columns, "--by", "shop", "--features", "all", "--out", "report.html"
        )
        expected = pimeter.measure(frame["y"], frame["y_hat"], X=frame.select("size"), by=frame["shop"].to_numpy())
        assert (code, err) == (0, "")
        assert out.startswith(str(expected.headline))
        command = "pimeter interval good.csv --apply new.csv --out new-with-intervals.csv "
        command += "--level 0.95 --target y --prediction y_hat"
        assert out.rstrip().splitlines()[-2] == f"{command} {' '.join(expected.diagnosis.options)}"
        assert "IntervalRegressor" not in out
        assert out.endswith("Report: report.html\n")
        page = (tmp_path / "report.html").read_text()
        assert expected.headline.claim in page
        assert "pimeter measure good.csv --target y" in page
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        code, out, err = pimeter_command("measure", "good.csv", *columns, "--features", "size,shop", "--json")
        assert "where shop is" in out or '"of": "shop"' in out
        assert pimeter_command("measure", "good.csv", *columns, "--features", "size, shop,size", "--json")[1] == out

    @pytest.mark.parametrize(
        ("cells", "said"),
        [
            (" {}", ""),  # padded
            ("{}", ""),
            ("#DIV/0!", "'odd.csv' holds '#DIV/0!', which is not a number: it is taken for categories"),
        ],
    )
    def test_features_that_are_nearly_numbers(self, cells, said, pimeter_command, tmp_path):
        rows = [f"{i % 7}, {i % 5}, {cells.format(i / 8) if i % 30 == 3 else i / 8}\n" for i in range(60)]
        (tmp_path / "odd.csv").write_text("y,y_hat,x\n" + "".join(rows))
        code, out, err = pimeter_command("measure", "odd.csv", "--features", "x", "--json")
        assert code == 0, err
        assert ("holds" in err) == bool(said)
        assert said in err
        assert ("Column 'x' is left out: 59 of 60 values are distinct" in err) == bool(said)
        assert ('"of": "x"' in out) == (not said)

    def test_commas_within_quotes_of_the_header(self, frame, pimeter_command, tmp_path):
        rows = "".join(f"{y};{y_hat};1\n" for y, y_hat in zip(frame["y"], frame["y_hat"], strict=True))
        (tmp_path / "quoted.csv").write_text(f'"y";"y_hat";"size, in m, mean"\n{rows}')
        code, out, err = pimeter_command("measure", "quoted.csv", "--json")
        assert code == 0, err
        assert pimeter.Measurement.from_json(out) == pimeter.measure(frame["y"], frame["y_hat"])

    def test_rows_without_a_number_are_left_out_and_counted(self, pimeter_command, tmp_path):
        (tmp_path / "gaps.csv").write_text(GOOD + "NA,3,a\n,2,b\n1,nan,a\n 4 , 3,b\n")
        code, out, err = pimeter_command("measure", "gaps.csv", "--json")
        assert code == 0
        assert "left out 3 of 64 rows that have no target or no prediction" in err
        assert json.loads(out)["body"]["n_rows"] == 61

    def test_other_columns_may_hold_what_they_like(self, pimeter_command, tmp_path):
        mixed = "y,y_hat,x\n" + "".join(f"{i % 7},{i % 5},{i if i < 11_000 else 'word'}\n" for i in range(11_050))
        (tmp_path / "mixed.csv").write_text(mixed)
        assert pimeter_command("measure", "mixed.csv", "--json")[0] == 0
        assert pimeter_command("measure", "mixed.csv", "--features", "x", "--json")[0] == 0
        quoted = 'y,y_hat,note\n1,2,"a, b"\n2,2,"two\nlines"\n3,2.5,\n'
        (tmp_path / "quoted.csv").write_text(quoted)
        assert pimeter_command("measure", "quoted.csv", "--json")[0] == 0
        agreed = f'y,y_hat,note\n1,2,a "b" c\n2,2,"{"long, " * 30_000}"\n3,2.5, "d"\n'
        (tmp_path / "agreed.csv").write_text(agreed)
        assert '"n_rows": 3' in pimeter_command("measure", "agreed.csv", "--json")[1]


class TestMeasureByDask:
    """CSV files are read as without dask."""

    ROWS = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(60))

    def test_files_that_hold_other_kinds_of_numbers(self, tmp_path):
        other = self.ROWS.replace("1,", "1.5,").replace(",2\n", ",\n") + "n/a,1,0.25\n 3 ,2,1\n"
        for name, rows in {"part-1.csv": self.ROWS, "part-2.csv": other, "all.csv": self.ROWS + other}.items():
            (tmp_path / name).write_text(f"y_hat;y;x\n{rows.replace(',', ';')}")
        found = files.lazy_frame("part-*.csv", ["y", "y_hat"], ["x"]).compute()
        with files.opened("all.csv") as table:
            expected = table.read(["y", "y_hat"], ["x"])
        assert list(found.columns) == expected.columns
        assert_allclose(found, expected.to_numpy())  # nothing where there is nothing

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_only_files_that_match_are_read(self, kind, frame, pimeter_command, tmp_path):
        for name in ("part", ".hidden", "deep/part"):
            path = tmp_path / "some" / f"{name}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            getattr(frame.to_pandas(), f"to_{kind}")(path)
        for pattern in (f"some/*.{kind}", f"some/**/*.{kind}"):  # without recursion ** is one folder
            code, out, err = pimeter_command("measure", pattern, "--json", "--engine", "dask")
            assert code == 0, err
            assert pimeter.Measurement.from_json(out).n_rows == frame.height

    @pytest.mark.parametrize(
        ("last", "said"), [("NA", ""), ("1.5", ""), ("abc", "column 'x' holds 'abc', which is no")]
    )
    def test_numbers_whose_kind_changes_late(self, last, said, pimeter_command, tmp_path):
        rows = "".join(f"{i % 7},{i % 5},{i}\n" for i in range(60_000))
        (tmp_path / "late.csv").write_text(f"y,y_hat,x\n{rows}1,2,{last}\n")
        code, out, err = pimeter_command("measure", "late.csv", "--features", "x", "--engine", "dask", "--json")
        assert code == (2 if said else 0), err
        assert said in err
        if not said:
            assert pimeter_command("measure", "late.csv", "--features", "x", "--json")[1] == out

    @pytest.mark.parametrize("word", ["NA", "#N/A", "NaN", "none", ""])
    def test_a_number_that_is_not_known_leaves_the_others_numbers(self, word, pimeter_command, tmp_path):
        rng = np.random.default_rng(0)
        rows = [f"{rng.normal(scale=1 + 9 * x)},0,{x if i % 50 else word}" for i, x in enumerate(rng.random(300))]
        (tmp_path / "gaps.csv").write_text("\n".join(["y,y_hat,x", *rows]))
        code, out, err = pimeter_command("measure", "gaps.csv", "--features", "x", "--json")
        assert code == 0, err
        assert "where x is up to" in out or "where x is above" in out
        assert pimeter_command("measure", "gaps.csv", "--features", "x", "--json", "--engine", "dask")[1] == out

    @pytest.mark.parametrize(
        ("shops", "labels"),
        [(("none", "NA", ""), '["NA", "none", "missing"]'), (("7", "NA", "13"), '["7", "13", "missing"]')],
    )
    def test_categories_that_are_words_and_those_that_are_numbers(self, shops, labels, pimeter_command, tmp_path):
        rows = [f"{i % 7},{i % 5},{shops[i % 3]}" for i in range(90)]
        (tmp_path / "shops.csv").write_text("\n".join(["y,y_hat,shop", *rows]))
        code, out, err = pimeter_command("measure", "shops.csv", "--features", "shop", "--by", "shop", "--json")
        assert code == 0, err
        assert f'"labels": {labels}' in out
        again = pimeter_command(
            "measure", "shops.csv", "--features", "shop", "--by", "shop", "--json", "--engine", "dask"
        )
        assert again[1] == out

    @pytest.mark.parametrize(
        ("second", "said"),
        [
            ("y,y_hat\n1,2\n", "'part-2.csv' has no column 'x', only 'y', 'y_hat'"),
            ("y,y_hat,x,y\n1,2,3,4\n", "'part-2.csv' has several columns 'y'"),
            ("y,y_hat,x\n0,1,2,3\n", "'part-2.csv': line 2 has 4 fields, expected 3 as in the header"),
            (
                "y,y_hat,x\n1,2,3\ntwo,2,3\n",
                "a part of 'part-2.csv': row 2 of column 'y' holds 'two', which is not a number",
            ),
            ("y;y_hat;x\n1;2;3\n", "all with the same character between fields"),
        ],
    )
    def test_what_is_refused_without_it(self, second, said, pimeter_command, tmp_path):
        (tmp_path / "part-1.csv").write_text("y,y_hat,x\n" + self.ROWS)
        (tmp_path / "part-2.csv").write_text(second)
        TestMistakes().check(pimeter_command("measure", "part-*.csv", "--features", "x", "--engine", "dask"), said)


BAD = {
    "missing column": (GOOD, ["--target", "nope"], "has no column 'nope', only 'y', 'y_hat', 'g'"),
    "no usual name": (
        "a,b\n1,2\n",
        [],
        "no column has a usual name for the target; give --target NAME. Columns: 'a', 'b'",
    ),
    "two usual names": ("y,target,y_hat\n1,2,3\n", [], "several columns have a usual name for the target"),
    "two of a name": ("y,y,y_hat\n1,2,3\n", [], "has several columns 'y'"),
    "empty": ("", [], "is empty"),
    "header only": ("y,y_hat\n", [], "has no rows"),
    "text": (GOOD + "3,two,a\n", [], "row 61 of column 'y_hat' holds 'two', which is not a number"),
    "all missing": ("y,y_hat\nnan,1\n,2\n", [], "column 'y' has no number; all 2 rows are missing"),
    "infinite": (GOOD + "inf,1,a\n", [], "inf"),
    "short row": (GOOD + "1\n", [], "line 62 has 1 field, expected 3 as in the header"),
    "long row": (GOOD + "1,2,a,4\n", [], "line 62 has 4 fields, expected 3 as in the header"),
    "short and long rows": (GOOD + "1\n1,2,a,4,5\n", [], "line 62 has 1 field, expected 3 as in the header"),
    "short row with quotes": ('y,y_hat,g\n1,2,"a,b"\n1,2\n', [], "line 3 has 2 fields, expected 3 as in the header"),
    "inch mark": ("y,y_hat,g\n" + '1,2,5" pipe\n' * 60, [], "line 2 has a quote within a field"),
    "two inch marks": ('g,y,h,y_hat\na,1,b,2\n5" pipe,1,3" pipe,2\n', [], "line 3 has a quote within a field"),
    "open quote": (GOOD + '"1,2,a\n1,2,b\n', [], "line 62 has a quote within a field, or one that is never closed"),
    "encoding": (
        b"y,y_hat,g\n1,2,\xc3\xa9\n3,4,\xe9\n",
        [],
        "line 3 is not UTF-8 text. Save the file as UTF-8, or give",
    ),
    "encoding of the header": (b"y,y_hat,\x81\n1,2,a\n", [], "line 1 is not UTF-8 text"),
    "zip": (b"PK\x03\x04" + GOOD.encode(), [], "'bad.csv' is a zip archive; extract it, or compress it as .gz or .zst"),
    "level": (GOOD, ["--level", "95"], "'--level': it must lie between 0 and 1; got 95"),
    "option": (GOOD, ["--levle", "0.9"], "--levle"),
    "level in words": (GOOD, ["--level", "high"], "Invalid value for '--level'"),
    "gzip broken in the header": (gzip.compress(GOOD.encode())[:14], [], "'bad.csv' cannot be read: unexpected end"),
    "broken gzip": (gzip.compress(GOOD.encode() * 99)[:-40], [], "'bad.csv' cannot be read: unexpected end of file"),
}


class TestMistakes:
    @pytest.mark.parametrize(("content", "options", "said"), BAD.values(), ids=BAD)
    def test_one_line_and_nothing_left_behind(self, content, options, said, pimeter_command, tmp_path):
        (tmp_path / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        self.check(pimeter_command("measure", "bad.csv", *options, "--out", "report.html"), said)
        assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]

    def check(self, answer, said):
        code, out, err = answer
        assert (code, out) == (2, "")
        assert err.startswith("pimeter: ")
        assert err.count("\n") == 1
        assert said in err

    def test_a_scheduler_of_no_engine(self, frame, pimeter_command):
        code, out, err = pimeter_command("measure", "good.csv", "--scheduler", "tcp://10.0.0.1:8786")
        assert (code, out) == (2, "")
        assert "--scheduler 'tcp://10.0.0.1:8786' is for --engine dask; add it" in err

    @pytest.mark.parametrize(
        ("module", "extra", "option"), [("dask", "dask", ["--engine", "dask"]), ("jinja2", "app", ["--out", "a.html"])]
    )
    def test_an_extra_that_is_missing(self, module, extra, option, frame, pimeter_command, monkeypatch, tmp_path):
        for name in [name for name in sys.modules if name.partition(".")[0] == module] or [module]:
            monkeypatch.setitem(sys.modules, name, None)
        self.check(pimeter_command("measure", "good.csv", *option), f"pip install 'pimeter[{extra}]'")
        assert [path.name for path in tmp_path.iterdir()] == ["good.csv"]

    def test_files_that_are_none(self, pimeter_command, tmp_path):
        (tmp_path / "folder").mkdir()
        self.check(pimeter_command("measure", "folder"), "'folder' is a folder")
        self.check(pimeter_command("measure", "nowhere.csv"), "'nowhere.csv' cannot be read: No such file")

    def test_broken_parquet(self, frame, pimeter_command, tmp_path):
        frame.write_parquet("whole.parquet")
        whole = (tmp_path / "whole.parquet").read_bytes()
        for name, content in {"cut.parquet": whole[:-300], "cut": whole[:-9], "no.parquet": b"y,y_hat\n1,2\n"}.items():
            (tmp_path / name).write_bytes(content)
            self.check(pimeter_command("measure", name), f"'{name}' is not a complete Parquet file")
        frame.with_columns(y=pl.col("shop")).write_parquet("words.parquet")
        self.check(pimeter_command("measure", "words.parquet"), "row 1 of column 'y' holds 'north'")
        frame.with_columns(y=pl.date(2026, 1, 1)).write_parquet("dates.parquet")
        self.check(pimeter_command("measure", "dates.parquet"), "column 'y' holds Date, not numbers")

    @pytest.mark.parametrize("text", ["y,y_hat\x01\x01\n1,\xff2\n", 'y,y_hat\n1,2\r3,4\r"5\n'])
    def test_odd_separators_and_line_breaks(self, text, pimeter_command, tmp_path):
        (tmp_path / "odd.csv").write_bytes(text.encode("latin-1"))
        code, out, err = pimeter_command("measure", "odd.csv")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1

    def test_what_a_file_holds_comes_before_its_ending(self, frame, pimeter_command, tmp_path):
        expected = pimeter_command("measure", "good.csv")[1]
        frame.write_csv("table.parquet.csv")
        frame.write_csv("TABLE.CSV")
        for name in ("parquet.csv", "parquet.jsonl", "parquet.gz"):
            frame.write_parquet(name)
        for name in ("table.parquet.csv", "TABLE.CSV", "parquet.csv", "parquet.jsonl", "parquet.gz"):
            assert pimeter_command("measure", name)[1].replace(name, "good.csv") == expected, name

    def test_broken_json_lines(self, pimeter_command, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"y":1,"y_hat":2}\n{"y":1.5,"y_hat":"two"}\n')
        self.check(pimeter_command("measure", "a.jsonl"), "row 2 of column 'y_hat' holds 'two'")
        (tmp_path / "a.jsonl").write_text('{"y":1,"y_hat":2}\n{"y":1.5,\n')
        self.check(pimeter_command("measure", "a.jsonl"), "line 2 is not JSON")
        (tmp_path / "a.jsonl").write_text('{"y":1,"y_hat":2}\n{"y":1.5,"y_hat":NaN}\n')
        self.check(pimeter_command("measure", "a.jsonl"), "line 2 is not JSON: NaN is not a number there; write null")
        (tmp_path / "a.jsonl").write_text('{"y":1,"y_hat":2}\n3\n')
        self.check(pimeter_command("measure", "a.jsonl"), "'a.jsonl' cannot be read: ")

    @pytest.mark.parametrize("out", ["no/such/folder/report.html", "folder.html", "/proc/report.html"])
    def test_output_that_cannot_be_written(self, frame, out, pimeter_command, tmp_path):
        (tmp_path / "folder.html").mkdir()
        self.check(pimeter_command("measure", "good.csv", "--out", out), f"'{out}' cannot be written")
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder.html", "good.csv"]

    @pytest.mark.parametrize(
        "command",
        [
            ["measure", "good.csv"],
            ["measure", "g*.csv", "--engine", "dask"],
            ["interval", "good.csv", "--apply", "new.csv"],
            ["interval", "new.csv", "--apply", "good.csv"],
            ["forecast", "good.csv"],
            ["classify", "good.csv"],
            ["classify", "new.csv", "--method", "calibrated", "--calibration", "good.csv"],
        ],
        ids=" ".join,
    )
    def test_what_is_read_is_not_written_over(self, frame, command, pimeter_command, tmp_path):
        frame.write_csv("new.csv")
        before = (tmp_path / "good.csv").read_bytes()
        (tmp_path / "link.csv").symlink_to("good.csv")
        for out in ("good.csv", "link.csv"):
            self.check(pimeter_command(*command, "--out", out), f"'{out}' cannot be written: it is read by the same")
        assert (tmp_path / "good.csv").read_bytes() == before

    def test_standard_input_is_not_written_over(self, frame, tmp_path):
        before = (tmp_path / "good.csv").read_bytes()
        (tmp_path / "good.html").write_bytes(before)
        with (tmp_path / "good.html").open("rb") as sent:
            done = subprocess.run(
                [sys.executable, "-m", "pimeter", "measure", "-", "--out", "good.html"],
                stdin=sent,
                capture_output=True,
                text=True,
                check=False,
            )
        self.check((done.returncode, done.stdout, done.stderr), "'good.html' cannot be written: it is read by the same")
        assert (tmp_path / "good.html").read_bytes() == before

    def test_standard_input_that_is_closed(self, pimeter_command, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        self.check(pimeter_command("measure", "-"), "standard input is closed; give a file")

    def test_a_name_that_is_not_text(self, frame, pimeter_command, tmp_path):
        name = os.fsdecode(b"caf\xe9.csv")
        (tmp_path / "good.csv").rename(tmp_path / name)
        self.check(pimeter_command("measure", name), "its name is not UTF-8. Rename it.")

    def test_labels_that_are_lists(self, pimeter_command, tmp_path):
        pl.DataFrame({"label": [[1], [0]], "score": [0.5, 0.6]}).write_parquet(tmp_path / "lists.parquet")
        self.check(
            pimeter_command("classify", "lists.parquet"), "column 'label' holds List(Int64), neither strings nor"
        )

    def test_a_report_that_fails_leaves_the_old_one(self, frame, pimeter_command, tmp_path):
        (tmp_path / "report.html").write_text("old")
        self.check(pimeter_command("measure", "good.csv", "--level", 2, "--out", "report.html"), "--level")
        assert (tmp_path / "report.html").read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 2

    def test_long_and_hostile_names_stay_on_a_short_line(self, pimeter_command, tmp_path):
        (tmp_path / "bad.csv").write_text(f"y,{'long' * 2500},\x1b[31mred\n1,2,3\n")
        answer = pimeter_command("measure", "bad.csv")
        self.check(answer, r"'\x1b[31mred'")
        assert len(answer[2]) < 400

    def test_commands_and_arguments(self, pimeter_command):
        self.check(pimeter_command("mesure"), "No such command 'mesure'")
        self.check(pimeter_command("measure"), "Missing argument")
        self.check(pimeter_command("plan", "--within", 0), "within must lie between 0 and 1")


class TestInterval:
    @pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "csv.gz", "json", "feather"])
    def test_lower_and_upper_stand_beside_what_was_there(self, frame, ending, pimeter_command):
        new = frame.select(id=pl.Series([f"00{i}" for i in range(300)]), y_hat="y_hat", note="shop")
        new.write_csv("new.csv")
        code, out, err = pimeter_command("interval", "good.csv", "--apply", "new.csv", "--out", f"out.{ending}")
        assert code == 0, err
        assert "95 % of new targets are expected within" in out
        kinds = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson, "json": pl.read_json, "feather": pl.read_ipc}
        read = kinds.get(ending.removesuffix(".gz"), pl.read_csv)
        found = read(f"out.{ending}", **({"separator": "\t"} if ending == "tsv" else {}))
        assert found.columns == ["id", "y_hat", "note", "lower", "upper"]
        assert found["note"].to_list() == new["note"].to_list()
        margin = pimeter.measure(frame["y"], frame["y_hat"]).margin[0]
        assert_allclose(found["lower"], new["y_hat"] - margin, rtol=1e-12)
        assert_allclose(found["upper"], new["y_hat"] + margin, rtol=1e-12)
        if ending == "jsonl":
            assert found["id"].to_list() == new["id"].to_list()  # not made a number

    @pytest.mark.parametrize(
        ("width", "tails"),
        [
            *(("constant", tails) for tails in ("symmetric", "equal", "sided", "lower", "upper")),
            *(("scaled", "symmetric"), ("local", "equal"), ("quantile", "upper"), ("auto", "symmetric")),
        ],
    )
    def test_widths_and_tails_are_those_of_python(self, frame, width, tails, pimeter_command):
        features = [] if width == "constant" else ["--features", "size,shop"]
        given = ("interval", "good.csv", "--apply", "good.csv", "--out", "out.csv", "--y-max", 30)
        code, out, err = pimeter_command(*given, "--width", width, "--tails", tails, *features)
        assert code == 0, err
        assert "95 % of new targets are expected" in out
        model = pimeter.IntervalRegressor(
            lambda X: np.asarray(X[:, 0]), width=width, tails=tails, y_max=30.0, random_state=0
        )
        X = frame.select("y_hat", "size", "shop") if features else frame.select("y_hat").to_numpy()
        expected = model.calibrate(X, frame["y"].to_numpy()).predict_interval(X)
        assert_allclose(pl.read_csv("out.csv").select("lower", "upper").to_numpy(), expected, rtol=1e-9)

    def test_categories_are_covered_and_reported(self, frame, pimeter_command):
        frame = frame.with_columns(shop=pl.Series(["north", "south"] * 145 + ["rare"] * 10))
        frame.write_csv("shops.csv")
        new = pl.DataFrame({"y_hat": [1.0, 2.0, 3.0, 4.0], "shop": ["south", "rare", "new", None]})
        new.write_csv("new.csv")
        code, out, err = pimeter_command(
            "interval", "shops.csv", "--apply", "new.csv", "--out", "out.csv", "--by", "shop"
        )
        assert code == 0, err
        model = pimeter.IntervalRegressor(lambda X: X[:, 0], width="grouped")
        with pytest.warns(pimeter.CoverageWarning):
            model.calibrate(frame["y_hat"].to_numpy()[:, None], frame["y"].to_numpy(), by=frame["shop"].to_numpy())
        expected = model.predict_interval(new["y_hat"].to_numpy()[:, None], by=["south", "rare", "new", "missing"])
        assert_allclose(pl.read_csv("out.csv").select("lower", "upper").to_numpy(), expected, rtol=1e-12)
        lines = [re.split("  +", line)[:4] for line in out.splitlines()[2:7]]
        margins = [f"-{below:.3g} to +{above:.3g}" for below, above in model.margin_]
        assert lines == [
            ["shop", "rows", "margin", "guaranteed"],
            ["north", "145", margins[0], "95 %"],
            ["south", "145", margins[1], "95 %"],
            ["(1 small)", "10", margins[2], "90.91 %"],
            ["(never seen)", "0", margins[3], "not known"],
        ]
        assert out.startswith("90.91 % of new targets are expected in intervals that are ")

    def test_margins_on_one_side_of_the_prediction(self, pimeter_command):
        rng = np.random.default_rng(0)
        frame = pl.DataFrame({"y_hat": rng.normal(size=300), "shop": rng.choice(["north", "south"], 300)})
        frame = frame.with_columns(y=pl.col("y_hat") + 5.0 + rng.uniform(-1.0, 1.0, 300))
        frame.write_csv("low.csv")
        arguments = ("interval", "low.csv", "--apply", "low.csv", "--out", "out.csv", "--tails")
        assert re.search(
            r"between 4\.\d+ above and 5\.9\d* above the prediction", pimeter_command(*arguments, "equal")[1]
        )
        assert "at most 5.8" in pimeter_command(*arguments, "upper")[1]
        assert re.search(r"at least 4\.\d+ above the prediction", pimeter_command(*arguments, "lower")[1])
        assert re.search(r"north +\d+ +\+4\.\d+ to \+5\.9", pimeter_command(*arguments, "equal", "--by", "shop")[1])

    def test_copies_are_counted_once_as_the_command_says(self, pimeter_command):
        rng = np.random.default_rng(1)
        x = rng.normal(size=300)
        frame = pl.DataFrame(
            {"y_hat": 2.0 * x, "size, m2": x, "y": 2.0 * x + rng.normal(size=300) * (1.0 + 2.0 * (x > 0.0))}
        )
        pl.concat([frame, frame.head(60)]).write_csv("copies.csv")
        frame.write_csv("new.csv")
        out = pimeter_command("measure", "copies.csv", "--features", "all")[1]
        (command,) = (line for line in out.splitlines() if line.startswith("pimeter interval"))
        assert "--count-copies-once" in command
        assert """'"size, m2"'""" in command
        code, out, err = pimeter_command(*shlex.split(command)[1:])
        assert code == 0, err
        assert "95 % of new targets are expected" in out
        again = (
            "interval",
            "copies.csv",
            "--apply",
            "new.csv",
            "--out",
            "out.csv",
            "--count-copies-once",
            "--groups",
            "y",
        )
        assert "both say which rows belong together" in pimeter_command(*again)[2]

    def test_rows_to_come_are_taken_in_the_order_of_time(self, pimeter_command):
        rng = np.random.default_rng(2)
        days = [f"{d}" for d in np.datetime64("2024-01-01") + np.arange(210)]
        frame = pl.DataFrame({"date": days, "y_hat": 0.0, "y": np.cumsum(rng.normal(size=210))})
        frame[:200].write_csv("past.csv")
        frame[200:].write_csv("next.csv")
        frame[200:].reverse().write_csv("reversed.csv")
        frame[200:].drop("date").write_csv("undated.csv")
        bounds = {}
        for name in ("next", "reversed", "undated", "past"):
            arguments = (
                "interval",
                "past.csv",
                "--apply",
                f"{name}.csv",
                "--out",
                "out.csv",
                "--online",
                "--time",
                "date",
            )
            code, _, err = pimeter_command(*arguments)
            assert code == 0, err
            bounds[name] = pl.read_csv("out.csv").select("lower", "upper").to_numpy()
            assert ("has no column 'date'" in err) == (name == "undated")
            assert ("199 of 200 rows of past.csv are of a time before" in err.replace("'", "")) == (name == "past")
        assert_allclose(bounds["reversed"][::-1], bounds["next"])
        assert_allclose(bounds["undated"], bounds["next"])

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--by", "shop", "--width", "scaled"], "--by goes with --width grouped"),
            (["--width", "grouped"], "--by goes with --width grouped"),
            (["--features", "size"], "--features with --width scaled, local, quantile, auto; got --width constant"),
            (["--by", "size"], "column 'size' holds no categories: 300 of 300 values are distinct"),
            (["--by", "nope"], "'good.csv' has no column 'nope'"),
            (["--width", "scaled", "--features", "nope"], "'good.csv' has no column 'nope'"),
            (["--width", "scale"], "'--width'"),
            (["--y-max", "12"], "beyond y_min=None or y_max=12.0"),
        ],
        ids=lambda one: " ".join(one) if isinstance(one, list) else "",
    )
    def test_options_that_do_not_fit(self, options, said, frame, pimeter_command, tmp_path):
        answer = pimeter_command("interval", "good.csv", "--apply", "good.csv", "--out", "out.csv", *options)
        TestMistakes().check(answer, said)
        assert [path.name for path in tmp_path.iterdir()] == ["good.csv"]

    def test_features_that_number_rows_or_change_their_kind(self, frame, pimeter_command):
        frame.with_columns(order_id=np.arange(300) + 7).write_csv("ids.csv")
        scaled = ("--out", "out.csv", "--width", "scaled", "--features", "all")
        code, _, err = pimeter_command("interval", "ids.csv", "--apply", "ids.csv", *scaled)
        assert code == 0, err
        assert "Column 'order_id' is left out: 300 of 300 values are distinct" in err
        frame.with_columns(size=pl.lit("large")).write_csv("new.csv")
        said = "'new.csv': column 'size' holds String, and Float64 in the calibration rows"
        TestMistakes().check(pimeter_command("interval", "ids.csv", "--apply", "new.csv", *scaled), said)

    def test_decimal_commas_stay_in_text_and_become_numbers_elsewhere(self, frame, pimeter_command):
        texts = pl.col("y", "y_hat").cast(pl.String).str.replace(".", ",", literal=True)
        frame.with_columns(texts).write_csv("commas.csv", separator=";")
        expected = frame["y_hat"] + pimeter.measure(frame["y"], frame["y_hat"]).margin[0]
        for out in ("out.csv", "out.tsv", "out.parquet"):
            code, _, err = pimeter_command("interval", "commas.csv", "--apply", "commas.csv", "--out", out)
            assert code == 0, err
            with files.opened(out) as table:
                assert_allclose(table.read(["upper", "y_hat"])["upper"], expected, rtol=1e-12)
        assert pl.read_parquet("out.parquet")["upper"].dtype == pl.Float64
        assert pl.read_csv("out.csv", separator=";", decimal_comma=True)["upper"].dtype == pl.Float64

    def test_targets_of_few_decimals_are_inside(self, pimeter_command):
        """1.4 - |.33 - 1.4| is more than .33 in floats."""
        pl.DataFrame({"y": [0.33, 1.5] * 50, "y_hat": [1.4] * 100}).write_csv("cents.csv")
        assert pimeter_command("interval", "cents.csv", "--apply", "cents.csv", "--out", "out.csv")[0] == 0
        assert (pl.read_csv("out.csv")["lower"] <= 0.33).all()

    def test_copies_of_rows_are_said_and_nothing_is_claimed(self, frame, pimeter_command):
        pl.concat([frame, frame]).write_csv("twice.csv")
        code, out, err = pimeter_command("interval", "twice.csv", "--apply", "good.csv", "--out", "out.csv")
        assert code == 0, err
        assert "note: 300 of 600 rows are copies of others" in err
        assert out.startswith("How many new targets lie within ±")
        assert "of the prediction is not known: some rows are copies of others." in out
        assert "nan" not in out
        code, out, err = pimeter_command("measure", "twice.csv")
        assert code == 0, err
        assert "300 of 600 rows are copies of others, which say nothing new: measure each row once" in out

    def test_keys_and_decimals_of_late_lines_are_kept(self, frame, pimeter_command, tmp_path):
        late = {"y_hat": 2.5, "late": 7, "in": {"a": 1, "b": 2}}
        lines = ['{"y_hat":1,"in":{"a":1}}'] * 10_001 + [json.dumps(late)]
        (tmp_path / "new.jsonl").write_text("\n".join(lines))
        code, _, err = pimeter_command("interval", "good.csv", "--apply", "new.jsonl", "--out", "out.jsonl")
        assert code == 0, err
        assert late.items() <= json.loads((tmp_path / "out.jsonl").read_text().splitlines()[-1]).items()

    def test_too_few_rows_are_said(self, frame, pimeter_command):
        frame.head(12).write_csv("few.csv")
        code, out, err = pimeter_command("interval", "few.csv", "--apply", "good.csv", "--out", "out.csv")
        assert code == 0
        assert "12 scores can guarantee 92.3 %, not 95 %; 19 are needed" in err
        assert out.startswith("92.31 % of new targets")

    def test_gaps_have_no_interval(self, frame, pimeter_command, tmp_path):
        (tmp_path / "new.csv").write_text("y_hat\n1\nNA\n3\n")
        code, _, err = pimeter_command("interval", "good.csv", "--apply", "new.csv", "--out", "out.csv")
        assert code == 0
        assert "1 row without a prediction has no interval" in err
        assert pl.read_csv("out.csv")["lower"].is_null().to_list() == [False, True, False]
        pl.DataFrame({"y_hat": [1, None, 3]}).write_parquet("new.parquet")
        assert pimeter_command("interval", "good.csv", "--apply", "new.parquet", "--out", "out.parquet")[0] == 0
        assert pl.read_parquet("out.parquet")["lower"].is_null().to_list() == [False, True, False]

    def test_mistakes_leave_nothing_behind(self, frame, pimeter_command, tmp_path):
        (tmp_path / "text.csv").write_text("y_hat\n1\ntwo\n")
        check = TestMistakes().check
        run = ("interval", "good.csv", "--apply")
        check(pimeter_command(*run, "text.csv", "--out", "out.csv"), "row 2 of column 'y_hat' holds 'two'")
        check(pimeter_command(*run, "good.csv", "--out", "out.xls"), "let it end in .csv")
        frame.with_columns(lower=1).write_csv("taken.csv")
        check(pimeter_command(*run, "taken.csv", "--out", "out.csv"), "has a column 'lower' already")
        check(
            pimeter_command("interval", "-", "--apply", "-", "--out", "out.csv"), "cannot both come from standard input"
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "taken.csv", "text.csv"]


RESULTS = [  # a command that writes a result, and the columns of its table
    (["measure", "good.csv"], ["score", "value", "lower", "upper", "meaning", "assumes"]),
    (
        ["forecast", "series.csv"],
        [
            *("step", "confidence_level", "margin", "static_coverage", "updated_coverage"),
            *("static_width", "updated_width", "prediction", "lower", "upper", "target"),
        ],
    ),
    (
        ["classify", "scores.csv"],
        ["threshold", "metric", "value", "lower", "upper", "method", "note", "confidence_level"],
    ),
]


@pytest.fixture
def scores(frame):
    frame.drop("shop").write_csv("series.csv")
    score = np.linspace(0.0, 1.0, 300)
    pl.DataFrame({"label": np.arange(300) % 3 < 2 * score, "score": score}).write_csv("scores.csv")


@pytest.mark.usefixtures("scores")
class TestTheEndingDecides:
    @pytest.mark.parametrize(("command", "columns"), RESULTS, ids=["measure", "forecast", "classify"])
    def test_what_is_written(self, command, columns, pimeter_command, tmp_path):
        before = {*tmp_path.iterdir()}
        names = ("out.html", "out.csv", "out.parquet", "out.json", "OUT.CSV")
        for name in names:
            code, said, err = pimeter_command(*command, "--out", name)
            assert code == 0, err
            assert said.endswith(f"{'Report' if name == 'out.html' else 'Wrote'}: {name}\n")
        assert {path.name for path in {*tmp_path.iterdir()} - before} == {*names}
        assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
        table = pl.read_parquet("out.parquet")
        assert table.columns == columns
        assert_frame_equal(pl.read_csv("out.csv"), table, check_dtypes=False)  # integers have no kind in text
        assert (tmp_path / "OUT.CSV").read_bytes() == (tmp_path / "out.csv").read_bytes()
        assert (tmp_path / "out.json").read_text() + "\n" == pimeter_command(*command, "--json")[1]
        if command[0] == "measure":
            result = pimeter.Measurement.from_json((tmp_path / "out.json").read_text())
            assert_frame_equal(result.to_frame("polars").fill_nan(None), table)

    @pytest.mark.parametrize("command", ["measure", "forecast", "classify", "demo"])
    @pytest.mark.parametrize("out", ["out.txt", "out", "out.csv.gz", "out.htm", "out.json.zst", "/dev/stdout", ".csv"])
    def test_others_are_refused_before_anything_is_read(self, command, out, pimeter_command, tmp_path):
        before = {*tmp_path.iterdir()}
        file = [] if command == "demo" else ["nowhere.csv"]
        code, said, err = pimeter_command(command, *file, "--out", out)
        assert (code, said) == (2, "")
        assert ".html (a page), .csv (a table), .parquet (a table), .json (everything)." in err
        assert "nowhere" not in err
        assert {*tmp_path.iterdir()} == before

    @pytest.mark.parametrize("out", ["out.html", "out.xlsx", "out", "out.gz", "out.parquet.gz", "out.csv.zip"])
    def test_a_table_of_intervals_is_no_page(self, out, pimeter_command, tmp_path):
        code, said, err = pimeter_command("interval", "nowhere.csv", "--apply", "nowhere.csv", "--out", out)
        assert (code, said) == (2, "")
        assert "let it end in .csv, .tsv, .jsonl (also .gz or .zst), .json, .parquet or .feather." in err

    @pytest.mark.parametrize(
        "command", [["forecast", "series.csv"], ["classify", "scores.csv"]], ids=lambda one: one[0]
    )
    @pytest.mark.parametrize("ending", ["html", "csv", "parquet", "json"])
    def test_nothing_is_half_written(self, command, ending, pimeter_command, tmp_path, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        (tmp_path / f"out.{ending}").write_text("old")
        monkeypatch.setattr(Path, "write_text", full)
        for name in ("sink_csv", "sink_parquet"):
            monkeypatch.setattr(pl.LazyFrame, name, full)
        before = {*tmp_path.iterdir()}
        code, said, err = pimeter_command(*command, "--out", f"out.{ending}")
        assert (code, said) == (2, "")
        assert f"'out.{ending}' cannot be written: No space left on device." in err
        assert {*tmp_path.iterdir()} == before
        assert (tmp_path / f"out.{ending}").read_text() == "old"


def test_links_and_modes_are_kept_and_a_pipe_is_written_to(tmp_path):
    real, link, pipe = tmp_path / "real.html", tmp_path / "link.html", tmp_path / "pipe"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to("real.html")
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        for path in (link, pipe):
            with files.replaced(path) as draft:
                draft.write_text("new")
        assert reader.read() == b"new"
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o640)
    assert pipe.is_fifo()
    assert len(list(tmp_path.iterdir())) == 3


def test_plan_says_how_many_rows(pimeter_command):
    code, out, _ = pimeter_command("plan", "--level", 0.95, "--within", 0.02)
    assert code == 0
    assert out.startswith(f"Hold out {pimeter.rows_needed(0.95, 0.02)} rows: ")
    assert "between 93 and 97 %" in out


def test_demo_writes_a_report_and_says_where(pimeter_command, tmp_path):
    code, out, err = pimeter_command("demo")
    assert (code, err) == (0, "")
    assert out.endswith("Report: pimeter-demo.html\n")
    assert out.startswith("95 % of future residuals are expected within ±")
    assert f"<span>{out.partition(' With ')[0]}</span>" in (tmp_path / "pimeter-demo.html").read_text()
    assert pimeter_command("demo", "--out", "demo.csv")[1].endswith("Wrote: demo.csv\n")
    assert pl.read_csv("demo.csv")["score"][0] == "coverage"


def test_lines_fit_on_a_terminal_and_stay_whole_elsewhere(monkeypatch, capsys):
    code = "def f(x):\n    return  x"
    answer = ("a headline of words", ("score", "value"), [("coverage", "0.9"), ("r2", "-1.5")], ["some advice", code])
    table = ["", "score     value", "coverage    0.9", "r2         -1.5", ""]
    terminal.print_table(*answer)
    assert capsys.readouterr().out.splitlines() == ["a headline of words", *table, "some advice", *code.splitlines()]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "16")
    terminal.print_table(*answer)
    printed = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert printed.splitlines() == ["a headline of", "words", *table, "some advice", *code.splitlines()]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_says_how_far_a_command_is_on_a_terminal_alone(monkeypatch, is_terminal):
    seen = io.StringIO()
    seen.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", seen)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress(2) as step:
        step("Reading it")
        step("Judging it")
    assert ("Judging it" in seen.getvalue()) == is_terminal
    assert ("━" in seen.getvalue()) == is_terminal
    assert bool(seen.getvalue()) == is_terminal


def test_version_and_help(pimeter_command):
    assert pimeter_command("--version") == (0, f"pimeter {pimeter.__version__} ({kernel_name()} kernel)\n", "")
    assert pimeter_command()[1] == pimeter_command("--help")[1]
    for command in ("measure", "interval", "plan"):
        assert f"pimeter {command} " in pimeter_command(command, "--help")[1].partition("Example")[2]


HEAVY = [
    "jinja2",
    "narwhals",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "scipy.stats",
    "sklearn",
    "statsmodels",
]
LOADED = {
    "--help": {"rich"},
    "--version": {"numpy"},
    "plan --level 0.9 --within 0.05": {"numpy", "scipy"},
    "measure few.csv": {"numpy", "polars", "scipy"},
    "measure few.csv --out few.html": {"jinja2", "numpy", "polars", "scipy"},
    "measure many.csv": {"numpy", "polars", "scipy"},
    "measure wide.csv --features x --out wide.html": {"jinja2", "narwhals", "numpy", "polars", "scipy"},
    "interval many.csv --apply few.csv --out new.csv": {"narwhals", "numpy", "polars", "scipy", "sklearn"},
}


@pytest.mark.parametrize("command", LOADED)
def test_a_command_loads_what_it_uses(command, tmp_path):
    rng = np.random.default_rng(0)
    for name, m in (("few", 30), ("many", 300)):
        lines = [f"{y},{y + e}" for y, e in rng.standard_normal((m, 2))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["y,y_pred", *lines]))
    wide = [f"{x},{x + x * e},{x}" for x, e in np.column_stack([np.linspace(1, 9, 300), rng.standard_normal(300)])]
    (tmp_path / "wide.csv").write_text("\n".join(["y_pred,y,x", *wide]))  # a scaled width pays there
    source = f"""
import sys
class NoPandas:  # which scikit-learn loads where it is installed
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
sys.argv = ["pimeter", *{command.split()!r}]
from pimeter.__main__ import main
try:
    main()
except SystemExit as left:
    assert left.code == 0, left.code
print(*(name for name in {HEAVY!r} if sys.modules.get(name)))
"""
    done = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    if "sklearn" in loaded:
        loaded -= {"pyarrow", "rich", "scipy.stats"}  # which some versions of it load themselves
    assert loaded == LOADED[command]


@pytest.mark.parametrize(
    ("text", "is_regular"),
    [
        (b"a,b\n1,2\n", True),
        (b"a,b\r\n1,2\r\n3,4", True),
        (b"a,b\n1,2\n3", False),
        (b"a,b\n1\n2,3,4\n", False),
        (b"a,b\n\n1,2\n", False),
        (b'a,b\n"1,2"\n', False),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), False),
    ],
)
def test_files_that_need_no_second_look(text, is_regular, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(text)
    for block in (1, 3, 1 << 20):
        monkeypatch.setattr(text_files, "BYTES_AT_ONCE", block)
        assert text_files.is_regular(tmp_path / "a.csv", ",", 2) == is_regular


def test_a_mistake_in_a_process_of_its_own_shows_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pimeter", "measure", "nowhere.csv"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pimeter: 'nowhere.csv' cannot be read: No such file or directory.\n"


def test_without_the_extra_it_is_named(monkeypatch):
    from pimeter.__main__ import main

    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("pimeter.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pimeter, "cli")
    with pytest.raises(SystemExit, match=r"pip install 'pimeter\[app\]'"):
        main()
