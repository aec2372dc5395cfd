"""What `measure`, `backtest` and `scorecard` return has one form, and pages arrange fields: they parse no sentence."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re

import numpy as np
import pytest

import pimeter as pm
from pimeter.encoding import built, plain, with_names, with_nulls
from pimeter.evaluation import backtest_checks, classifier_checks, probabilistic_checks
from pimeter.evaluation.diagnosis import checks
from pimeter.evaluation.scorecards import Scorecard
from pimeter.findings import Diagnosis, Finding, Headline

HEADLINE = Headline("Right. With <b> Over 3 rows", "With 7 rows the true coverage, for 95 %, Over 9 windows.")


def measurement():
    rng = np.random.default_rng(0)
    y_pred = rng.uniform(10, 20, size=300)
    return pm.measure(y_pred + rng.normal(size=300) * np.where(y_pred > 17, 5, 1), y_pred)


def backtest():
    rng = np.random.default_rng(0)
    windows = np.lib.stride_tricks.sliding_window_view(np.cumsum(rng.standard_normal(300)), 3)
    return pm.backtest(windows[:, 1:], np.repeat(windows[:, :1], 2, axis=1), names=[f"w{i}" for i in range(298)])


def scorecard():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=400)
    return pm.scorecard(rng.uniform(size=400) < score**2, score, by=rng.choice(["a", "b"], 400))


@pytest.fixture(scope="module", params=[measurement, backtest, scorecard])
def result(request):
    return request.param()


class TestOneForm:
    def test_what_is_said(self, result):
        first, empty, *rest = str(result).splitlines()
        assert first == f"{result.headline.claim} {result.headline.evidence}" == str(result.headline)
        assert empty == ""
        told = [*result.advice, *result.code.splitlines()]
        assert rest[-len(told) :] == told
        if isinstance(result, Scorecard):
            assert all(f"{one.question} {one.sentence}" in rest for one in result.findings)
        else:
            assert rest == told
        assert repr(result) == f"<{type(result).__name__}: {result.headline}>"
        assert result.findings == result.diagnosis.findings
        for finding in result.findings:
            assert finding.sentence.endswith(".")
            assert finding.question.endswith("?")
            assert finding.raised == bool(finding.advice)
            assert finding.rows > 0
            assert result.diagnosis[finding.name] is finding

    def test_a_page_shows_the_fields_as_they_are(self, result, tmp_path):
        changed = dataclasses.replace(result, headline=HEADLINE)
        page = changed.to_html(tmp_path / "page.html", about={"file": "a.csv"})
        assert (tmp_path / "page.html").read_text() == page
        claim, evidence = re.search(r"<h1[^>]*><span>(.*?)</span> <small>(.*?)</small></h1>", page).groups()
        assert (html.unescape(claim), html.unescape(evidence)) == (HEADLINE.claim, HEADLINE.evidence)
        shown = html.unescape(re.sub('<span id="code-level">(.*?)</span>', r"\1", page))
        assert all(finding.sentence in shown for finding in result.findings)
        assert all(finding.advice in shown for finding in result.findings)
        assert all(line in shown for line in result.code.splitlines())
        assert "a.csv" in shown
        assert all(line in shown for line in result.advice)

    def test_a_notebook_shows_them_too(self, result):
        shown = html.unescape(dataclasses.replace(result, headline=HEADLINE)._repr_html_())
        assert HEADLINE.claim in shown
        assert HEADLINE.evidence in shown
        assert all(line in shown for line in (*result.advice, *result.code.splitlines()))

    def test_plain_values_and_json(self, result):
        values = result.to_dict()
        assert values["headline"] == {"claim": result.headline.claim, "evidence": result.headline.evidence}
        assert [one["name"] for one in values["diagnosis"]["findings"]] == [one.name for one in result.findings]
        json.loads(result.to_json(), parse_constant=pytest.fail)
        same = dataclasses.replace(result)
        assert same == result
        assert hash(same) == hash(result)
        assert dataclasses.replace(result, headline=HEADLINE) != result
        assert result != "a result"

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_a_frame_has_as_many_rows_as_the_table(self, result, library):
        frame = result.to_frame(library)
        assert len(frame) == {"Measurement": 8, "Backtest": 2, "Scorecard": 16}[type(result).__name__]


class TestDiagnosis:
    def finding(self, name, **fields):
        return Finding(name=name, question="Why?", sentence="So.", rows=1, **fields)

    def test_advice_and_code_are_those_of_alarms(self):
        raised = self.finding("a", advice="Do it.", code="do()")
        quiet = self.finding("b", code="never()")
        found = Diagnosis.of([raised, quiet], "Nothing.", "then()")
        assert (found.advice, found.code, found.raised) == (("Do it.",), "do()\nthen()", ("a",))
        assert str(found) == "! So.\n  So.\n\nDo it.\ndo()\nthen()"
        assert Diagnosis.of([quiet], "Nothing.").advice == ("Nothing.",)
        with pytest.raises(KeyError, match="'c' is not a finding; there are a, b"):
            found["c"]


@pytest.mark.parametrize(
    "listed",
    [
        checks.CHECKS,
        classifier_checks.CHECKS,
        probabilistic_checks.CHECKS,
        backtest_checks.CHECKS,
        backtest_checks.CHECKS_OF_PANELS,
    ],
)
def test_checks_say_what_they_are(listed):
    assert len({check.name for check in listed}) == len(listed)
    for check in listed:
        assert check.question.endswith("?")
        assert check.looks_at
        assert check.statistic


def test_a_backtest_that_misses_its_level_says_what_to_do():
    rng = np.random.default_rng(0)
    y_true = rng.standard_normal((400, 1)) * np.where(np.arange(400) < 200, 1.0, 6.0)[:, None]
    found = pm.backtest(y_true, np.zeros((400, 1)))
    assert found.diagnosis["static"].value < 0.6
    assert found.diagnosis.raised
    assert not math.isnan(found.diagnosis["static"].threshold)
    assert pm.backtest(rng.standard_normal((400, 1)), np.zeros((400, 1))).diagnosis.raised == ()
    said = "cone = ForecastIntervals(confidence_level=0.95).fit(y_true, y_pred)  # all windows; update it from here on"
    assert found.code.splitlines() == ["from pimeter import ForecastIntervals", said]
    calm = rng.standard_normal((400, 1))
    exec(found.code, {"y_true": calm, "y_pred": np.zeros((400, 1))})


def test_names_of_windows_are_those_of_blocks():
    found = backtest()
    assert found.block_names == [f"w{start}" for start in found.blocks]
    assert found.block_names[0] in found.to_html()


class TestEncoding:
    def test_numbers_that_json_does_not_have(self):
        value = plain({"a": (1.0, math.nan), "b": [(-math.inf,)]})
        assert with_nulls(value) == {"a": [1.0, None], "b": [[None]]}
        assert with_names(value) == {"a": [1.0, "nan"], "b": [["-inf"]]}

    def test_back_again_and_what_does_not_fit(self):
        kind = tuple[float, float]
        assert built(kind, [1.0, "inf"], "x") == (1.0, math.inf)
        assert built(Headline, {"claim": "a", "evidence": "b"}, "x") == Headline("a", "b")
        assert built(dict[str, int], {"a": 1}, "x") == {"a": 1}
        for wrong, value, where in [
            (kind, [1.0], "x"),
            (kind, [1.0, "1"], r"x\[1\]"),
            (int, True, "x"),
            (Headline, {"claim": "a"}, "x"),
            (Headline, {"claim": "a", "evidence": 1}, "x.evidence"),
        ]:
            with pytest.raises(ValueError, match=rf"to_json\(\) wrote: {where} is "):
                built(wrong, value, "x")
