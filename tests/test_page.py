"""The report in a browser, from disk: it shows what `measure` says at every level, and names in it are only text."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from pimeter import backtest, cli, measure, scorecard
from pimeter.report import page as report

SCRIPT = "</script><script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
LONG = "long name " * 1000
EMOJI = "🦊🌋👩‍🔬"
HOSTILE = [SCRIPT, IMAGE, LONG, EMOJI, "{{ 7 * 7 }}", "a\u2028b&amp;<!--"]


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium: `apt-get install chromium`, or any that is found under this name")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Opens a page from disk and notes whatever it does beside showing itself."""
    contexts = []

    def visit(path, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.events = []
        page.on("console", lambda message: page.events.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: page.events.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (page.events.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: page.events.append(f"request: {request.url}"))
        page.goto(path.as_uri())
        assert page.events.pop(0) == f"request: {path.as_uri()}"
        return page

    yield visit
    for context in contexts:
        context.close()


def rows(m=442, seed=0):
    rng = np.random.default_rng(seed)
    y_pred = rng.uniform(10, 20, size=m)
    return y_pred + rng.normal(size=m) * (y_pred - 9), y_pred


def test_every_stop_shows_what_measure_says(opened, tmp_path):
    y_true, y_pred = rows()
    by = np.where(np.arange(442) % 3, "often", "seldom")
    path = tmp_path / "report.html"
    measure(y_true, y_pred, by=by, confidence_level=0.975).to_html(path)
    page = opened(path)
    plots = ""
    for level in (0.5, 0.8, 0.95, 0.975, 0.995, 0.999):
        expected = measure(y_true, y_pred, by=by, confidence_level=level)
        levels = measure(y_true, y_pred, confidence_level=0.975).curves.levels
        page.locator("#level").fill(str(levels.index(level)))
        assert " ".join(page.locator("#headline").inner_text().split()) == str(expected.headline)
        assert page.locator("#shown").inner_text() == f"{100 * level:.4g} %"
        held = {
            name: page.locator(f"#{name}").evaluate("one => ({...one.dataset})")
            for name in ("margin", "coverage", "range", "guaranteed")
        }
        assert_allclose(float(held["margin"]["value"]), expected.margin[1], rtol=1e-6)
        assert_allclose(float(held["coverage"]["value"]), expected.coverage, rtol=1e-6)
        assert_allclose([float(held["range"][end]) for end in ("low", "high")], expected.coverage_range, rtol=1e-6)
        assert_allclose(float(held["guaranteed"]["value"]), expected.guaranteed_level, rtol=1e-6)
        for name in report.LEVEL_SCORES:
            cells = page.locator(f"[data-score={name}] td").all_inner_texts()
            score = expected.scores[name]
            assert_allclose(float(cells[0]), score.value, rtol=1e-3)
            bounds = [np.nan] * 2 if cells[1] == "not known" else [float(end) for end in cells[1].split(" to ")]
            assert_allclose(bounds, [score.lower, score.upper], rtol=1e-3)
            head = page.locator(f"[data-score={name}] th").inner_text()
            assert head == f"{name.replace('_', ' ')} at {100 * level:.4g} %"
        parts = page.locator("#subgroups tbody tr").evaluate_all("all => all.map(row => row.cells[2].textContent)")
        assert_allclose(
            [float(text.removesuffix(" %")) / 100 for text in parts],
            [part.coverage for part in expected.subgroups if part.of in {"prediction", "by"}],
            rtol=1e-3,
        )
        drawn = page.locator("#plots").inner_html()
        assert drawn != plots
        plots = drawn
    for figure in page.locator("figure").all():
        assert figure.locator("svg").get_attribute("aria-label") == figure.locator("figcaption").inner_text()
    assert page.events == []


@pytest.mark.parametrize("m", [1, 2, 12])
def test_few_rows_and_constant_ones(opened, tmp_path, m):
    path = tmp_path / "few.html"
    measure(np.arange(m) * 1.5, np.arange(m)[::-1]).to_html(path)
    page = opened(path)
    page.locator("#level").fill("3")
    assert "too few" in measure(np.arange(m) * 1.5, np.arange(m)[::-1]).headline.claim
    assert "NaN" not in page.content()
    covered = page.locator("#covered figcaption").inner_text()
    assert ("diamonds" in covered, "One row cannot be cross-fitted." in covered) == (False, m == 1)
    assert ("cross-fitted in" in page.content()) == (m > 1)
    measure(np.ones(30), np.ones(30)).to_html(path)
    page.reload()
    page.events.remove(f"request: {path.as_uri()}")
    assert "NaN" not in page.content()
    assert page.events == []


def test_one_of_many_stands_in_the_singular(opened, tmp_path):
    y_pred = np.linspace(0.0, 1.0, 100)
    y_true = y_pred + np.where(np.arange(100) == 50, 100.0, 0.1 * np.sin(np.arange(100)))
    path = tmp_path / "one.html"
    measure(y_true, y_pred, confidence_level=0.9).to_html(path)
    page = opened(path)
    page.locator("#level").fill(str(measure(y_true, y_pred).curves.levels.index(0.98)))
    assert "1 of the 100 residuals shown lies outside" in page.locator("#scatter figcaption").inner_text()
    assert "tend to be covered less" in page.locator("#widths figcaption").inner_text()


def test_a_level_near_1_is_not_100_percent(opened, tmp_path):
    path = tmp_path / "near.html"
    measure(*rows(3000), confidence_level=0.99996).to_html(path)
    page = opened(path)
    assert page.locator("#shown").inner_text() == "99.996 %"
    assert page.get_by_role("button", name="99.996 %").count() == 1
    assert page.locator("[data-score=coverage] td").all_inner_texts()[1].endswith(" to 0.99998")


def test_marks_of_an_axis_are_told_apart(opened, tmp_path):
    path = tmp_path / "far.html"
    y_pred = np.linspace(101_300.0, 101_390.0, 40)
    measure(y_pred + np.sin(np.arange(40)), y_pred).to_html(path)
    marks = opened(path).locator("#scatter text[text-anchor=middle]").all_text_contents()
    assert "101320" in marks
    assert len(set(marks)) == len(marks)


def test_predictions_that_differ_by_rounding_alone(opened, tmp_path):
    path = tmp_path / "same.html"
    y_pred = np.where(np.arange(40) % 2, 123456.789, np.nextafter(123456.789, np.inf))
    measure(y_pred + np.sin(np.arange(40)), y_pred).to_html(path)
    page = opened(path)
    assert page.locator("#scatter circle").count() > 30
    assert page.events == []


@pytest.mark.parametrize("name", [f"{SCRIPT}.csv", f"{IMAGE}.csv"])
def test_hostile_names_are_text(opened, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    y_true, y_pred = rows(600)
    frame = pl.DataFrame({SCRIPT: y_true, IMAGE: y_pred, LONG: y_pred, "kind": [HOSTILE[i % 6] for i in range(600)]})
    frame.write_csv(name)
    arguments = ["--target", SCRIPT, "--prediction", IMAGE, "--features", LONG, "--by", "kind", "--out", "report.html"]
    monkeypatch.setattr(sys, "argv", ["pimeter", "measure", name, *arguments])
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert left.value.code == 0, capsys.readouterr().err
    for width in (1280, 390):
        page = opened(tmp_path / "report.html", width)
        page.locator("#level").fill("10")
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        text = page.locator("body").inner_text()
        assert all(part in text for part in (SCRIPT, IMAGE, LONG.strip(), EMOJI, name, HOSTILE[4], HOSTILE[5]))
        level = float(page.locator("#level").get_attribute("aria-valuetext").removesuffix(" %")) / 100.0
        assert f"--level {level:g} --target" in page.locator("#code").inner_text()
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.wait_for_timeout(100)
        assert page.events == []


def test_dark_light_and_print_differ_and_fit(opened, tmp_path):
    path = tmp_path / "report.html"
    measure(*rows()).to_html(path, about={"data": "dark"})
    colours = []
    for scheme in ("light", "dark"):
        page = opened(path, 390, color_scheme=scheme)
        colours.append(page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert colours[0] != colours[1]
    page.emulate_media(media="print")
    assert not page.locator("#level").is_visible()
    assert page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)"
    page.pdf()
    assert page.locator("details").evaluate_all("all => all.every(one => one.open)")
    assert page.events == []


def test_the_page_of_a_classifier(opened, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    score = rng.uniform(size=600)
    label = np.where(rng.uniform(size=600) < score, SCRIPT, IMAGE)
    pl.DataFrame({LONG: label, SCRIPT: score, "kind": [HOSTILE[i % 6] for i in range(600)]}).write_csv(f"{EMOJI}.csv")
    arguments = ["--label", LONG, "--score", SCRIPT, "--positive", SCRIPT, "--by", "kind", "--out", "report.html"]
    monkeypatch.setattr(sys, "argv", ["pimeter", "classify", f"{EMOJI}.csv", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert left.value.code == 0, capsys.readouterr().err
    headline = capsys.readouterr().out.splitlines()[0]
    colours = set()
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(tmp_path / "report.html", width, color_scheme=scheme)
        assert " ".join(page.locator("h1").inner_text().split()) == headline
        text = page.locator("body").inner_text()
        assert all(part in text for part in (SCRIPT, LONG.strip(), EMOJI, HOSTILE[4], HOSTILE[5]))
        assert page.locator("script").count() == 1
        assert page.locator("img").count() == 0
        assert page.locator("figure").count() == 6
        slider, best = page.locator("#threshold"), page.locator("#choice b").first
        first = best.inner_text()
        slider.fill("16")
        assert page.locator("#at").inner_text() == "0.85"
        assert best.inner_text() != first
        assert best.inner_text() == page.locator("#thresholds tbody tr").nth(16).locator("td").first.text_content()
        for figure in page.locator("figure").all():
            assert figure.locator("svg").get_attribute("aria-label") == figure.locator("figcaption").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        colours.add(page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor"))
        assert page.events == []
    assert len(colours) == 2


def test_the_slider_listens_to_keys_and_buttons(opened, tmp_path):
    path = tmp_path / "report.html"
    measure(*rows()).to_html(path)
    page = opened(path)
    page.locator("#level").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#shown").inner_text() == "96 %"
    assert page.locator("#level").get_attribute("aria-valuetext") == "96 %"
    page.get_by_role("button", name="80 %").click()
    assert page.locator("#shown").inner_text() == "80 %"
    assert page.locator("#headline").inner_text().startswith("80 % of future residuals")
    assert "IntervalRegressor(model, confidence_level=0.8, " in page.locator("#code").inner_text()


def given(n=600):
    """Quantiles of five levels that are too narrow, with hostile names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    levels = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    quantiles = X[:, :1] + 0.8 * norm.ppf(levels)
    features = pl.DataFrame(X, schema=[SCRIPT, LONG])
    by = [HOSTILE[i % 6] for i in range(n)]
    return measure(
        X[:, 0] + rng.normal(size=n), quantiles=quantiles, levels=levels, X=features, by=by, time=np.arange(n)
    )


def test_the_slider_of_given_intervals_shows_what_measure_says(opened, tmp_path):
    found = given()
    path = tmp_path / "report.html"
    found.to_html(path)
    page = opened(path)
    assert page.locator("#shown").inner_text() == "90 %"
    assert page.locator("#level").get_attribute("max") == str(len(found.reliability) - 1) == "2"
    for i in (2, 1, 0):
        one = found.reliability[i]
        name = f"{100 * one.level:g} %"
        assert page.locator("#shown").inner_text() == page.locator("#level").get_attribute("aria-valuetext") == name
        tiles = page.locator(".tiles:visible")
        assert tiles.count() == 1
        text = tiles.inner_text()
        for number in (100 * one.coverage, 100 * one.lower, 100 * one.misses_below, one.mean_width, one.interval_score):
            assert f"{number:.4g}" in text
        where = page.locator("section[data-at]:visible").last
        assert name in where.locator("h2").first.inner_text()
        assert where.locator("figure").count() == 1 + len({group.of for group in one.subgroups})
        page.locator("#level").focus()
        page.keyboard.press("ArrowLeft")
    assert page.events == []


def test_given_intervals_in_dark_on_a_phone_and_in_print(opened, tmp_path):
    path = tmp_path / "report.html"
    given().to_html(path, about={"data": IMAGE})
    colours = set()
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(path, width, color_scheme=scheme)
        colours.add(page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("section[data-at]:visible summary").click()
        text = page.locator("section[data-at]:visible table").inner_text()
        assert all(part in text for part in (SCRIPT, IMAGE, LONG.strip(), EMOJI, HOSTILE[4], HOSTILE[5]))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("img").count() == 0
        for figure in page.locator("figure").all():
            caption = " ".join(figure.locator("figcaption").text_content().split())
            assert " ".join(figure.locator("svg").get_attribute("aria-label").split()) == caption
    assert len(colours) == 2
    page.emulate_media(media="print")
    assert not page.locator("#level").is_visible()
    assert page.locator(".tiles:visible").count() == 1
    page.pdf()
    without = opened(path, java_script_enabled=False)
    assert without.locator(".tiles:visible").count() == 1
    assert without.locator("#shown").inner_text() == "90 %"
    assert page.events == without.events == []


def test_one_given_interval_has_no_slider_and_no_script(opened, tmp_path):
    path = tmp_path / "report.html"
    y, centre = rows(200)
    measure(y, intervals=np.stack([centre - 9, centre + np.inf], axis=1), confidence_level=0.9).to_html(path)
    page = opened(path, 390)
    assert page.locator("script, #level").count() == 0
    assert page.locator(".tiles:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.events == []


class TestWithoutABrowser:
    def test_a_million_rows_give_a_small_page(self):
        y_true, y_pred = rows(1_000_000)
        by = np.arange(1_000_000) % 40
        assert len(measure(y_true, y_pred, by=by).to_html().encode()) < 2_000_000

    def test_json_for_a_page_holds_no_sign_of_markup_and_reads_back(self):
        value = {name: [name, 1.5, None, True] for name in HOSTILE}
        text = report.escaped_json(value)
        assert not set(text) & set("<>&\u2028")
        assert json.loads(text) == value
        assert report.escaped_json([float("nan"), float("inf")]) == "[null,null]"

    def test_the_page_names_no_other_place(self):
        page = measure(*rows()).to_html()
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
        assert "default-src 'none'" in page

    def test_the_feature_that_differs_most_is_shown_with_its_subgroups(self):
        y_true, y_pred = rows()
        rng = np.random.default_rng(1)
        X = pl.DataFrame({"calm": rng.uniform(size=442), "wild": y_pred, "kind": rng.choice(["a", "b"], 442)})
        found = measure(y_true, y_pred, X=X)
        page = found.to_html()
        shown = [one for one in found.subgroups if one.of == "wild"]
        assert min(found.subgroups, key=lambda one: one.upper).of in {"prediction", "wild"}
        assert all(f">wild {one.label}</th>" in page for one in shown)
        assert ">calm " not in page
        curves = found.curves.subgroups[-1]
        at = found.curves.levels.index(found.confidence_level)
        assert curves.of == "wild"
        assert [one[at] for one in curves.coverage] == [one.coverage for one in shown]
        assert [one[at] for one in curves.lower] == [one.lower for one in shown]
        assert [one.of for one in measure(y_true, y_pred).curves.subgroups] == ["prediction"]

    def test_a_page_that_cannot_be_written_is_said(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be written"):
            measure(*rows()).to_html(tmp_path / "no" / "report.html")

    def test_without_jinja_the_extra_is_named(self, monkeypatch):
        series = np.random.default_rng(0).standard_normal((90, 1))
        found = measure(*rows()), scorecard([0, 1], [0.2, 0.7]), backtest(series, np.zeros((90, 1)))
        for name in ("jinja2", "markupsafe"):
            monkeypatch.setitem(sys.modules, name, None)
        for result in found:
            with pytest.raises(ImportError, match=r"pip install 'pimeter\[app\]', or in a checkout .* '\.\[app\]'"):
                result.to_html()
