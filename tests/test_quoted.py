"""Numbers in README and docs are those of the stored results."""

from __future__ import annotations

import re

import pytest

from experiments import __main__ as cli
from experiments import status
from experiments.quoted import (
    MARKED,
    TABLE,
    Quoted,
    marks_without_number,
    missing_rows,
    pages,
    quoted,
    renew,
    result_text,
)
from experiments.status import Status

RESULT = """# A result

|t4| errors are no table. Of 7,000,134 draws

| what | m | ratio | ± |
|---|---|---|---|
| ours, level .5 | 10 | 0.125 ± 0.002 | 1 |
| ours, level .9 | 10 | 0.252 ± 0.002 | 2 |
| theirs | 10 | 98.0% | |
"""
FIGURE = """# fig1: a figure

Up to 93 % of neurons
stalled. Up to 12 % of others.

| a | b |
|---|--:|
| x | 1.250 |
"""
WIDE = "c,d\ny,2.500\n"


LEVELS = {".5", "0.5", ".7", ".8", ".9", ".95", ".99", ".995", ".999", "99.5"}
NOT_MEASURED = {
    "classification.md": {".1", "0.1"},  # such as, and a setting
    "conditional.md": {"2305.12616"},  # of arXiv
    "cost.md": {"0.3", "0.4", "2.1"},  # pi / 1024; bytes of the sums that tasks hand on
    "decisions.md": {"0.3", ".1"},  # a risk that is asked for
    "forecasts.md": {".02", ".03"},  # gamma, and a tolerance
    "given_intervals.md": {"66.7"},  # (s - 1) / (s + 1)
    "good_enough.md": {"0.00"},  # the paper's
    "guarantees.md": {".01", ".03"},  # what a guarantee leaves
    "measure.md": {".4"},  # a slope that is simulated
    "panels.md": {"1.2", "2.1"},  # versions of sktime and statsforecast
    "report.md": {"12.5", ".50", ".01"},  # a cell, and stops of the slider
    "theory.md": {"1.45", ".85"},  # a rule's limit, and a proven bound
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with one result of a benchmark, and one of an experiment."""
    monkeypatch.setattr(cli.quoted, "ROOT", tmp_path)
    for folder, name, text in (("benchmarks", "one.md", RESULT), ("experiments", "fig1.md", FIGURE)):
        (tmp_path / folder / "results").mkdir(parents=True)
        (tmp_path / folder / "results" / name).write_text(text)
    (tmp_path / "experiments" / "results" / "tables").mkdir()
    (tmp_path / "experiments" / "results" / "tables" / "fig1.1.csv").write_text(WIDE)
    return tmp_path


def written(root, text):
    (root / "README.md").write_text(text)
    return root / "README.md"


class TestPages:
    @pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
    def test_marked_numbers_are_those_of_their_results(self, page):
        wrong = [f"{one.line}: {one.text}, stored {one.stored():g}" for one in quoted(page) if not one.is_right()]
        assert not wrong, f"{page.name}: `python -m experiments quoted --renew` writes the stored ones"
        assert not marks_without_number(page)
        assert not missing_rows(page)

    def test_most_marks_are_found(self):
        assert sum(1 for page in pages() for _ in quoted(page)) > 60
        assert sum(len(TABLE.findall(page.read_text())) for page in pages()) >= 7

    @staticmethod
    def prose(page):
        """What people read of a page, but for code, links and what is marked."""
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        text = MARKED.sub("", TABLE.sub("", text))
        return re.sub(r"\]\(.*?\)", "]", re.sub(r"`[^`\n]*`", "", text))

    def test_decimals_of_the_readme_are_marked(self):
        """Roughly what is measured; a level would be in code."""
        assert set(re.findall(r"(?<![\w.])\d*\.\d+", self.prose(pages()[0]))) <= {"3.11"}

    @pytest.mark.parametrize("page", pages()[1:], ids=lambda page: page.name)
    def test_decimals_of_docs_are_marked_or_known_to_be_no_measurements(self, page):
        """Levels, settings and what follows from a formula are listed; a new decimal is marked, or listed here."""
        found = set(re.findall(r"(?<![\w.])\d*\.\d+(?![\w.])", self.prose(page)))
        assert found <= NOT_MEASURED.get(page.name, set()) | LEVELS

    @pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
    def test_times_are_marked(self, page):
        found = re.findall(r"(?<![\w.])[\d.,]*\d (?:ns|µs|ms|s|seconds|minutes|hours)\b", self.prose(page))
        assert set(found) <= {"240 s"}  # a prediction


class TestMarks:
    @pytest.mark.parametrize(
        ("number", "what", "stored"),
        [
            (".13", 'one "ours, level .5" ratio', 0.125),
            (".1", 'one min "ours, .*" ratio', 0.125),
            (".3", 'one max "ours, .*" 10 ratio', 0.252),
            ("2", 'one "ours, level .9" ±', 2.0),
            ("98", "one theirs ratio", 98.0),
            ("7", 'one "Of # draws" x1e-6', 7.000134),
            ("93", 'fig1 "# % of neurons stalled"', 93.0),
            ("12", 'fig1 "neurons ... Up to # %"', 12.0),
            ("-1.3", "fig1 x b x-1", -1.25),
            ("2.5", "fig1 y d", 2.5),
            ("1.3e0", "fig1 x b", 1.25),
            ("1.3e-2", "fig1 x b x0.01", 0.0125),
            ("7e6", 'one "Of # draws"', 7000134),
        ],
    )
    def test_what_is_stored(self, root, number, what, stored):
        one = Quoted("README.md", 1, number, what)
        assert one.stored() == pytest.approx(stored)
        assert one.is_right()
        assert not Quoted("README.md", 1, str(float(number) + 1), what).is_right()

    @pytest.mark.parametrize("what", ['one "ours, .*" ratio', "one theirs width", 'one "Of # rows"', 'fig1 "Up to #"'])
    def test_marks_that_lead_nowhere_or_to_several_are_mistakes(self, root, what):
        with pytest.raises(ValueError, match=r"README\.md, line 3: .* expected once"):
            Quoted("README.md", 3, "1", what).stored()

    def test_an_unknown_result_is_a_mistake(self, root):
        with pytest.raises(ValueError, match="There is no result 'two'"):
            result_text("two")

    @pytest.mark.parametrize(("text", "is_right"), [(".252", True), (".253", False), (".25", True), (".26", False)])
    def test_a_wrong_number_is_noticed_and_renewed(self, root, text, is_right):
        mark = '<!-- result: one "ours, level .9" ratio -->'
        page = written(root, f"Some\n{text} s{mark} and 1,000{mark.replace('ratio', 'm')}.\n")
        first, second = quoted(page)
        assert (first.text, first.line, first.is_right()) == (text, 2, is_right)
        assert (second.text, second.is_right()) == ("1,000", False)
        assert renew(page) == 2 - is_right
        assert (
            page.read_text()
            == f"Some\n{text if is_right else '.252'[: len(text)]} s{mark} and 10{mark.replace('ratio', 'm')}.\n"
        )

    @pytest.mark.parametrize(("text", "fresh"), [("2e-8", "1.25000000e+0"), ("1.3e-1", "1.25e+0"), ("2e3", "0e+3")])
    def test_a_wrong_number_with_an_exponent_is_noticed_and_renewed(self, root, text, fresh):
        page = written(root, f"{text}<!-- result: fig1 x b -->\n")
        assert [one.is_right() for one in quoted(page)] == [False]
        renew(page)
        assert page.read_text().startswith(f"{fresh}<")

    @pytest.mark.parametrize(("text", "number"), [("3-4", "4"), ("3 to -4", "-4"), ("3, +4", "+4"), ("2e-4", "2e-4")])
    def test_a_dash_between_numbers_is_no_sign(self, root, text, number):
        assert [one.text for one in quoted(written(root, f"{text}<!-- result: fig1 x b -->"))] == [number]

    def test_a_mark_without_a_number_is_noticed(self, root):
        page = written(root, "Words<!-- result: one theirs ratio -->")
        assert list(quoted(page)) == []
        assert marks_without_number(page) == ["<!-- result: one theirs ratio -->"]

    @pytest.mark.parametrize(("value", "n_missing"), [("0.125 ± 0.002", 0), ("0.126 ± 0.002", 1)])
    def test_rows_of_tables(self, root, value, n_missing):
        table = f"| what | ratio |\n|---|---|\n| ours, level .5 | {value} |\n| theirs | 98.0% |\n"
        page = written(root, f"<!-- result table: one -->\n\n{table}")
        assert len(missing_rows(page)) == n_missing

    def test_numbers_of_stale_results_are_reported(self, root):
        page = written(root, "A .252<!-- result: one x y -->, 2<!-- result: table2 x y -->, 3<!-- result: two x y -->")
        found = [
            Status("benchmarks/one", "stale"),
            Status("benchmarks/two", "current"),
            Status("experiments/table2-peers", "current"),
            Status("experiments/table2-qd", "unknown"),
        ]
        assert status.note(found, page).startswith("*Measured with an earlier state of the code: one, table2;")
        assert status.note(found[1:2], page) == ""
        assert status.of_quoted(found, [page]) == ["one, stale: .252 (README.md:1)", "table2, unknown: 2 (README.md:1)"]


class TestCommandLine:
    def test_compares_all(self, capsys):
        assert cli.main(["quoted"]) == 0
        assert re.fullmatch(r"\d+ numbers are marked, 0 differ from their result\.\n", capsys.readouterr().out)

    def test_tells_a_wrong_number_and_renews_it(self, root, capsys):
        page = written(root, ".5<!-- result: one theirs ratio -->\n")
        assert cli.main(["quoted"]) == 1
        assert "README.md:1: .5, but one says 98" in capsys.readouterr().out
        assert cli.main(["quoted", "--renew"]) == 0
        assert page.read_text() == "98.0<!-- result: one theirs ratio -->\n"
