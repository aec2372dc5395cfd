"""Files as people have them: the right numbers with each guess printed, or a message with the cure."""

from __future__ import annotations

import gzip
import json
import re
import sys
import zipfile
from xml.sax.saxutils import escape

import numpy as np
import polars as pl
import pytest

import pimeter
from pimeter import cli
from pimeter.files import Reading, opened

RNG = np.random.default_rng(0)
Y_HAT = RNG.uniform(100.0, 9000.0, 60).round(2)
Y = (Y_HAT + RNG.normal(scale=200.0, size=60)).round(2)
DAYS = pl.date_range(pl.date(2024, 1, 1), interval="1d", end=pl.date(2024, 2, 29), eager=True)
TOWN = ["Köln", "Orléans", "Malmö"] * 20


def german(x: float, decimals: int = 2) -> str:
    return f"{x:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


def text(separator: str = ",", number=str, header: str | None = "y{0}y_hat{0}town", quote: str = "") -> str:
    """The table with numbers written in some way."""
    rows = [
        separator.join([f"{quote}{number(y)}{quote}", f"{quote}{number(y_hat)}{quote}", town])
        for y, y_hat, town in zip(Y, Y_HAT, TOWN, strict=True)
    ]
    return "".join(f"{line}\n" for line in ([] if header is None else [header.format(separator)]) + rows)


def workbook(path, sheets: dict[str, list[list[object]]]) -> None:
    """An Excel file with these sheets."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"

    def links(**targets: tuple[str, str]) -> str:
        made = [
            f'<Relationship Id="{name}" Type="{office}/{kind}" Target="{target}"/>'
            for name, (kind, target) in targets.items()
        ]
        return f'<Relationships xmlns="{package}">{"".join(made)}</Relationships>'

    def cell(held: object) -> str:
        if isinstance(held, str):
            return f'<c t="inlineStr"><is><t>{escape(held)}</t></is></c>'
        return f"<c><v>{held}</v></c>"

    names = {f"r{i}": name for i, name in enumerate(sheets, 1)}
    listed = "".join(f'<sheet name="{name}" sheetId="{key[1:]}" r:id="{key}"/>' for key, name in names.items())
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("_rels/.rels", links(r1=("officeDocument", "xl/workbook.xml")))
        made.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>'
        )
        made.writestr(
            "xl/_rels/workbook.xml.rels", links(**{key: ("worksheet", f"worksheets/{key}.xml") for key in names})
        )
        for key, name in names.items():
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            made.writestr(
                f"xl/worksheets/{key}.xml", f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
            )


FRAME = pl.DataFrame({"y": Y, "y_hat": Y_HAT, "town": TOWN})
SHEET = [["y", "y_hat", "town"], *map(list, FRAME.iter_rows())]


def commas_of(rows: list[list[object]]) -> list[list[object]]:
    """Rows with numbers as strings that have decimal commas."""
    return [[cell if isinstance(cell, str) else comma(cell) for cell in row] for row in rows]


def rows_of(rows: list[list[object]]) -> list[dict[object, object]]:
    """Rows by the names in the first."""
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def excel(*before: str):
    return lambda path: workbook(path, {**{name: [["note"], ["nothing"]] for name in before}, "Data": SHEET})


def comma(x: float) -> str:
    return str(x).replace(".", ",")


# Files as people have them: name, content, options, and the guess that is printed.
VARIANTS = {
    "semicolons and decimal commas": ("a.csv", text(";", comma), [], f"'{comma(Y[0])}' is {Y[0]}"),
    "points between thousands": ("a.csv", text(";", german), [], f"'{german(Y[0])}' is {Y[0]}"),
    "quoted, commas between thousands": ("a.csv", text(",", "{:,}".format, quote='"'), [], f"'{Y[0]:,}' is {Y[0]}"),
    "currency": ("a.csv", text(";", lambda x: f"{german(x)} €"), [], f"'{german(Y[0])} €' is {Y[0]}"),
    "Latin-1": (
        "a.csv",
        text().encode("cp1252"),
        [],
        "'a.csv' is in Latin-1 (cp1252): line 2 is not UTF-8; --encoding",
    ),
    "UTF-16 of a spreadsheet": ("a.txt", text("\t").encode("utf-16"), [], ""),
    "mark, bounds of Windows, empty lines": (
        "a.csv",
        (text() + "\n\n").replace("\n", "\r\n").encode("utf-8-sig"),
        [],
        "left out 2 of 62 rows",
    ),
    "no header": (
        "a.csv",
        FRAME.select("y", "y_hat").write_csv(include_header=False),
        ["--target", "column_1", "--prediction", "column_2"],
        "guessed that 'a.csv' has no header, as its first line holds values: columns are 'column_1', 'column_2'",
    ),
    "Excel": ("a.xlsx", excel(), [], ""),
    "Excel, second sheet": ("a.xlsx", excel("About"), ["--sheet", "Data"], ""),
    "Feather": ("a.feather", lambda path: FRAME.write_ipc(path, compression="lz4"), [], ""),
    "Parquet": ("a.parquet", FRAME.write_parquet, [], ""),
    "JSON": ("a.json", json.dumps(FRAME.to_dicts()), [], ""),
    "JSON lines": ("a.jsonl", FRAME.write_ndjson(), [], ""),
    "dates of Germany": (
        "a.csv",
        FRAME.with_columns(when=DAYS.dt.strftime("%d.%m.%Y")).write_csv(separator=";"),
        ["--features", "when"],
        "guessed how dates are written in 'a.csv': '01.01.2024' is 2024-01-01 (column 'when'); --date-format",
    ),
}
COLUMNS = FRAME.to_dict(as_series=False)
MORE = {
    "percent": ("a.csv", text(",", "{} %".format), [], f"'{Y[0]} %' is {Y[0]}"),
    "currency before": ("a.csv", text(",", "${:,}".format, quote='"'), [], f"'${Y[0]:,}' is {Y[0]}"),
    "spaces between thousands": (
        "a.tsv",
        text("\t", lambda x: comma(f"{x:,}".replace(",", "\u202f"))),
        [],
        f" is {Y[0]}",
    ),
    "Swiss": ("a.csv", text(",", lambda x: f"{x:,}".replace(",", "’")), [], f" is {Y[0]}"),
    "decimal commas, quoted": ("a.csv", text(",", comma, quote='"'), [], f"'{comma(Y[0])}' is {Y[0]}"),
    "decimal commas in a sheet": ("a.xlsx", lambda path: workbook(path, {"A": commas_of(SHEET)}), [], f" is {Y[0]}"),
    "decimal commas in JSON": ("a.json", json.dumps(rows_of(commas_of(SHEET))), [], f" is {Y[0]}"),
    "decimal commas, told": ("a.csv", text(";", german), ["--decimal", ",", "--thousands", "."], ""),
    "UTF-16 without a mark": ("a.csv", text().encode("utf-16-le"), [], ""),
    "UTF-16, told": ("a.csv", text().encode("utf-16-be"), ["--encoding", "utf-16-be"], ""),
    "Latin-1, packed and told": ("a.csv.gz", gzip.compress(text().encode("latin-1")), ["--encoding", "latin-1"], ""),
    "UTF-8, told": ("a.csv", text().encode(), ["--encoding", "UTF8"], ""),
    "JSON lines with a mark": ("a.jsonl", FRAME.write_ndjson().encode("utf-8-sig"), [], ""),
    "JSON on many lines": ("a.json", json.dumps(FRAME.to_dicts(), indent=1), [], ""),
    "JSON of columns": ("a.json", json.dumps(COLUMNS), [], ""),
    "JSON of pandas": ("a.json", FRAME.to_pandas().to_json(), [], ""),
    "JSON of pandas, split": ("a.json", FRAME.to_pandas().to_json(orient="split"), [], ""),
    "JSON of a service, packed": ("a.json.gz", gzip.compress(json.dumps({"data": FRAME.to_dicts()}).encode()), [], ""),
    "Arrow file of another name": ("a.bin", FRAME.write_ipc, [], ""),
    "Excel, first of two sheets": (
        "a.xlsx",
        lambda path: workbook(path, {"Data": SHEET, "About": [["note"]]}),
        [],
        "read sheet 'Data' of 'a.xlsx', one of 'Data', 'About'; --sheet says otherwise",
    ),
    "Excel, sheet by number": ("a.xlsx", excel("About", "More"), ["--sheet", "3"], ""),
    "Excel without header": (
        "a.xlsx",
        lambda path: workbook(path, {"A": [row[:2] for row in SHEET[1:]]}),
        ["--target", "column_1", "--prediction", "column_2"],
        "guessed that 'a.xlsx' has no header",
    ),
    "header of numbers, told": (
        "a.csv",
        FRAME.select(pl.col("y").alias("2023"), pl.col("y_hat").alias("2024")).write_csv(),
        ["--header", "--target", "2023", "--prediction", "2024"],
        "",
    ),
    "header of pandas": (
        "a.csv",
        FRAME.select(pl.col("y").alias("0"), pl.col("y_hat").alias("1")).write_csv(),
        ["--target", "0", "--prediction", "1"],
        "",
    ),
    "a text file that is called a sheet": ("a.xls", text("\t"), [], ""),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs a command line; gives its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    return run


def write(path, content) -> None:
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


class TestVariants:
    @pytest.mark.parametrize(("name", "content", "options", "said"), VARIANTS.values(), ids=VARIANTS)
    def test_files_as_people_have_them(self, name, content, options, said, run, tmp_path):
        assert len(VARIANTS) == 15
        self.check(name, content, options, said, run, tmp_path)

    @pytest.mark.parametrize(("name", "content", "options", "said"), MORE.values(), ids=MORE)
    def test_more_of_them(self, name, content, options, said, run, tmp_path):
        self.check(name, content, options, said, run, tmp_path)

    def check(self, name, content, options, said, run, tmp_path):
        write(tmp_path / name, content)
        code, out, err = run("measure", name, *options, "--json")
        assert code == 0, err
        X = pl.DataFrame({"when": DAYS}) if "--features" in options else None
        assert pimeter.Measurement.from_json(out) == pimeter.measure(Y, Y_HAT, X=X)
        notes = [line for line in err.splitlines() if not re.search("guessed that the|compiler", line)]
        assert len(notes) == bool(said), notes
        assert said in err


SMALL = "".join(f"{1 + i % 7},{1 + i % 5}\n" for i in range(30))
REFUSED = {
    "decimal commas between commas": (
        "a.csv",
        "y,y_hat\n1,5,2,5\n",
        "expected 2 as in the header. If there are decimal commas, save the file with semicolons",
    ),
    "a title above the header": (
        "a.csv",
        f"Sales of 2024\n\ny,y_hat\n{SMALL}",
        "Columns: 'Sales of 2024'. Delete the lines above the header",
    ),
    "a note to Excel": ("a.csv", "sep=;\ny;y_hat\n1;2\n", "Delete the first line, which is a note to Excel."),
    "commas that may be either": (
        "a.tsv",
        "y\ty_hat\n1,234\t1,111\n",
        "commas or stand between thousands. Give --decimal , or --thousands , to say which",
    ),
    "two notations in a column": (
        "a.csv",
        "y;y_hat\n1,5;2,5\n2,5;1\n1.75;3\n",
        "row 3 of column 'y' holds '1.75', which is not a number like the others, which have a",
    ),
    "a unit that some lack": (
        "a.csv",
        "y,y_hat\n1 %,2\n5,2\n",
        "row 1 of column 'y' holds '1 %', which is not a number with the same unit as the others",
    ),
    "a word among decimal commas": (
        "a.csv",
        "y;y_hat\n1,5;2,5\nzwei;1,5\n",
        "row 2 of column 'y' holds 'zwei', which is not a number. Leave the cell empty",
    ),
    "a first line of numbers": (
        "a.csv",
        "2023,2024\n1,2\n",
        "Columns: 'column_1', 'column_2'. Its first line is not taken for names; --header",
    ),
    "two encodings": (
        "a.csv",
        b"y,y_hat,g\n1,2,\xc3\xa9\n3,4,\xe9\n",
        "line 3 is not UTF-8 text. Save the file as UTF-8, or give its --encoding.",
    ),
    "not the encoding": ("a.csv", b"y,y_hat\n1,\xff\n", "cannot be read as 'ascii': ", "--encoding", "ascii"),
    "no such encoding": (
        "a.csv",
        b"y,y_hat\n1,2\n",
        "unknown encoding: utf-9. Save it as UTF-8, or give its --encoding",
        "--encoding",
        "utf-9",
    ),
    "no text encoding": ("a.csv", b"y,y_hat\n1,2\n", "'a.csv' cannot be read as 'zlib'", "--encoding", "zlib"),
    "broken JSON": ("a.json", '[{"y": 1,\n "y_hat" 2}]', "'a.json' is not JSON: Expecting ':' delimiter: line 2"),
    "JSON that is no table": ("a.json", "[1, 2]", 'is JSON, but not a table. Write a list of rows, like [{"y": 1.5'),
    "JSON of columns that differ": ("a.json", '{"y": [1, 2], "y_hat": [1]}', "is JSON, but not a table"),
    "JSON without end": ("a.json", "[" * 100_000, "is JSON, but not a table"),
    "no such sheet": (
        "a.xlsx",
        excel("About"),
        "'a.xlsx' has no sheet 'data', only 'About', 'Data'.",
        "--sheet",
        "data",
    ),
    "a broken sheet": ("a.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 2000, "'a.xls' is not a complete Excel file: "),
    "a web page": ("a.xls", "<html><table>", "is HTML or XML; open it in a spreadsheet, and save it as CSV or .xlsx."),
    "a pickle": ("a.pkl", b"\x80\x04\x95", "is a pickle, which could run any code; save the table as Parquet."),
    "half of an Arrow file": ("a.arrow", b"ARROW1\0\0" + b"x" * 40, "'a.arrow' is not a complete Arrow file: "),
    "not with --decimal": (
        "a.csv",
        "y,y_hat\n1.5,2\n",
        "holds '1.5', which is not a number with --decimal ,.",
        "--decimal",
        ",",
    ),
}


class TestCures:
    @pytest.mark.parametrize(
        ("name", "content", "said", "options"), [(a, b, c, d) for a, b, c, *d in REFUSED.values()], ids=REFUSED
    )
    def test_what_is_refused(self, name, content, said, options, run, tmp_path):
        write(tmp_path / name, content)
        code, out, err = run("measure", name, *options, "--out", "report.html")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert said in err
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_excel_without_its_package(self, run, tmp_path, monkeypatch):
        workbook(tmp_path / "a.xlsx", {"A": SHEET})
        monkeypatch.setitem(sys.modules, "fastexcel", None)
        code, _, err = run("measure", "a.xlsx")
        assert code == 2
        assert "'a.xlsx' is an Excel file, which needs fastexcel: pip install 'pimeter[excel]'" in err

    def test_a_sheet_of_a_file_that_has_none(self, run, tmp_path):
        (tmp_path / "a.csv").write_text(text())
        code, _, err = run("measure", "a.csv", "--sheet", "2")
        assert code == 0
        assert "--sheet says nothing about 'a.csv', which is not an Excel file" in err

    def test_dask_reads_files_as_they_are(self, run, tmp_path):
        (tmp_path / "a.csv").write_text(text(";", comma))
        (tmp_path / "b.csv").write_text(text(), encoding="cp1252")
        assert "holds" in run("measure", "a.csv", "--engine", "dask")[2]
        assert "leave it out, or the options" in run("measure", "a.csv", "--engine", "dask", "--decimal", ",")[2]
        assert "reads Parquet files and CSV in UTF-8" in run("measure", "b.csv", "--engine", "dask")[2]


def read(path, numbers, others=(), **told):
    reading = Reading(**told)
    with opened(str(path), reading) as table:
        return table.read(numbers, others), reading.notes


class TestNumbers:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["1,5", "1.234,5", None], [1.5, 1234.5, None]),
            (["1,234", "5,678.5"], [1234.0, 5678.5]),
            (["1.234", "987", "1.234.567"], [1234.0, 987.0, 1234567.0]),
            (["1'234.5", "12"], [1234.5, 12.0]),
            (["1\u00a0234,5", "12"], [1234.5, 12.0]),
            (["0,123", "1,234"], [0.123, 1.234]),  # no thousand begins with 0
            (["12345,678", "1,234"], [12345.678, 1.234]),
            (["1,234,567", "1,234"], [1234567.0, 1234.0]),
            (["(1,234.5)", "−2"], [-1234.5, -2.0]),
            (["$1,234.5", "-$2.25"], [1234.5, -2.25]),
            (["12,5 %", "7 %"], [12.5, 7.0]),
            (["1,5e3", ",5"], [1500.0, 0.5]),
            (["1,5", "n/a", "NaN"], [1.5, None, None]),
        ],
    )
    def test_the_whole_column_tells(self, cells, expected, tmp_path):
        pl.DataFrame({"y": cells, "i": range(len(cells))}).write_csv("a.csv", separator="\t")
        found, notes = read("a.csv", ["y"], ["i"])
        assert found["y"].to_list() == expected
        assert len(notes) == 1
        assert "--decimal and --thousands say otherwise" in notes[0]

    def test_a_decimal_comma_in_any_column_tells_what_points_are(self, tmp_path):
        (tmp_path / "a.csv").write_text("y;x\n1.234;0,5\n987;0,25\n")
        assert read("a.csv", ["y"])[0]["y"].to_list() == [1234.0, 987.0]
        assert read("a.csv", ["y"], ["x"])[0].to_dict(as_series=False) == {"y": [1234.0, 987.0], "x": [0.5, 0.25]}

    def test_points_that_may_be_thousands_are_noted(self, tmp_path):
        (tmp_path / "a.csv").write_text("y;x\n1.234;a\n987;b\n")
        found, notes = read("a.csv", ["y"])
        assert found["y"].to_list() == [1.234, 987.0]
        assert len(notes) == 1
        assert "'a.csv': '1.234' is 1.234 (column 'y'); --decimal and --thousands say otherwise" in notes[0]
        assert read("a.csv", ["y"], thousands=".")[0]["y"].to_list() == [1234.0, 987.0]
        assert read("a.csv", ["y"], decimal=".")[1] == []

    @pytest.mark.parametrize(("separator", "expected"), [(";", 1.234), (",", 1234.0)])
    def test_the_separator_tells_where_commas_do_not(self, separator, expected, tmp_path):
        (tmp_path / "a.csv").write_text(f'y{separator}x\n"1,234"{separator}1\n')
        assert read("a.csv", ["y"])[0]["y"].to_list() == [expected]
        assert read("a.csv", ["y"], decimal=",")[0]["y"].to_list() == [1.234]
        assert read("a.csv", ["y"], thousands=",")[0]["y"].to_list() == [1234.0]

    @pytest.mark.parametrize("cells", [["A0001", "A0002"], ["1.2.3", "1.10.0"], ["12:30", "13:45"], ["1,2 kg", "3"]])
    def test_what_stays_words(self, cells, tmp_path):
        pl.DataFrame({"y": [1.0, 2.0], "x": cells}).write_csv("a.csv")
        found, notes = read("a.csv", ["y"], ["x"])
        assert found["x"].to_list() == cells
        assert notes == []

    def test_told_wrong_guesses_are_overruled(self, tmp_path):
        (tmp_path / "a.csv").write_text('y,x\n1,"1,2"\n2,"2,3"\n')  # categories, not decimals
        assert read("a.csv", ["y"], ["x"])[0]["x"].to_list() == [1.2, 2.3]
        assert read("a.csv", ["y"], ["x"], decimal=".")[0]["x"].to_list() == ["1,2", "2,3"]

    def test_a_separator_may_stand_beside_decimal_commas(self, tmp_path):
        (tmp_path / "a.csv").write_text("1,5;2,5\n3,5;4,5\n")
        found, notes = read("a.csv", ["column_1", "column_2"])
        assert found.rows() == [(1.5, 2.5), (3.5, 4.5)]
        assert len(notes) == 2


class TestDates:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["31.12.2024", "1.2.2025"], ["2024-12-31", "2025-02-01"]),
            (["31.12.24", "01.02.25"], ["2024-12-31", "2025-02-01"]),
            (["12/31/2024", "01/02/2025"], ["2024-12-31", "2025-01-02"]),
            (["31/12/2024", "01/02/2025"], ["2024-12-31", "2025-02-01"]),
            (["05/01/2024", "03/02/2024"], ["2024-01-05", "2024-02-03"]),  # in the order of time
            (["2024-12-31", "n/a", "2025-02-01"], ["2024-12-31", None, "2025-02-01"]),
            (["2024/12/31", "2025/02/01"], ["2024-12-31", "2025-02-01"]),
            (["31-Dec-2024", "1-Feb-2025"], ["2024-12-31", "2025-02-01"]),
            (["31.12.2024 9:30", "01.02.2025 18:00"], ["2024-12-31 09:30:00", "2025-02-01 18:00:00"]),
            (["2024-12-31T09:30:00.5", "2025-02-01T18:00:00"], ["2024-12-31 09:30:00.500000", "2025-02-01 18:00:00"]),
        ],
    )
    def test_columns_of_dates_are_dates(self, cells, expected, tmp_path):
        pl.DataFrame({"y": range(len(cells)), "when": cells}).write_csv("a.csv")
        found, notes = read("a.csv", ["y"], ["when"])
        assert found["when"].dtype.is_temporal()
        assert [None if day is None else str(day) for day in found["when"]] == expected
        is_iso = cells[0].startswith("2024")
        assert len(notes) == (not is_iso)

    def test_a_format_that_is_told(self, tmp_path):
        pl.DataFrame({"y": [1, 2], "when": ["03/04/2024", "01/02/2025"]}).write_csv("a.csv")
        found, notes = read("a.csv", ["y"], ["when"], date_format="%d/%m/%Y")
        assert [str(day) for day in found["when"]] == ["2024-04-03", "2025-02-01"]
        assert notes == []
        assert str(read("a.csv", ["y"], ["when"])[0]["when"][0]) == "2024-03-04"

    @pytest.mark.parametrize("cells", [["31.02.2024", "x"], ["2024-12-31", "soon"], ["1.10.24", "1.9.0"]])
    def test_what_are_no_dates(self, cells, tmp_path):
        pl.DataFrame({"y": [1, 2], "when": cells}).write_csv("a.csv")
        assert read("a.csv", ["y"], ["when"])[0]["when"].to_list() == cells

    def test_truth_values_whatever_the_separator(self, tmp_path):
        frame = pl.DataFrame({"y": [1, 2], "x": [True, None]})
        for separator in ",;\t":
            frame.write_csv("a.csv", separator=separator)
            assert read("a.csv", ["y"], ["x"])[0]["x"].to_list() == [True, None]


class TestForecast:
    def test_german_dates_are_put_in_order(self, run, tmp_path):
        order = np.random.default_rng(0).permutation(60)
        frame = FRAME.select("y", "y_hat").with_columns(day=DAYS)
        outs = []
        for name, how in (("iso", "%Y-%m-%d"), ("german", "%d.%m.%Y")):
            frame[order].with_columns(pl.col("day").dt.strftime(how)).write_csv(f"{name}.csv", separator=";")
            code, out, err = run("forecast", f"{name}.csv", "--time", "day", "--json")
            assert code == 0, err
            outs.append(out)
        assert outs[0] == outs[1]
