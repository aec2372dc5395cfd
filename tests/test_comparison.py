"""`compare`: differences of models on the same rows, whether chance explains them, and where they are."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import pimeter as pm
from pimeter import cli
from pimeter.evaluation import paired
from pimeter.evaluation.verdict import Contrast, choice


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    signal, noise = rng.normal(size=(2, 400))
    return signal, signal + noise


class TestDifferences:
    def test_are_those_of_the_scores(self, rows):
        signal, y = rows
        said = {"a": np.stack([signal - 2, signal + 2], axis=1), "b": np.stack([-2 + 0 * y, 3 + 0 * y], axis=1)}
        found = pm.compare(y, said, confidence_level=0.9)
        a, b = (pm.interval_score(y, one, 0.9) for one in said.values())
        assert_allclose(found.contrast("interval_score", "a", "b").value, a - b)
        assert_allclose(found.scores["interval_score"], (a, b))
        assert_allclose(found.scores["coverage"], [pm.coverage_score(y, one) for one in said.values()])
        assert_allclose(found.scores["mae"], [np.abs(y - signal).mean(), np.abs(y - 0.5).mean()])
        assert_allclose(
            found.contrast("rmse", "a", "b").value,
            np.sqrt(np.mean((y - signal) ** 2)) - np.sqrt(np.mean((y - 0.5) ** 2)),
        )
        assert found.contrast("mean_width", "a", "b").value == pytest.approx(-1.0)

    def test_turn_with_the_models(self, rows):
        signal, y = rows
        found = pm.compare(y, {"a": signal, "b": 0 * y})
        one, turned = found.contrast("mae", "a", "b"), found.contrast("mae", "b", "a")
        assert (turned.value, turned.lower, turned.upper) == (-one.value, -one.upper, -one.lower)
        assert one.better == turned.better == "a"

    def test_a_mean_of_normal_differences_has_students_range(self):
        losses = np.random.default_rng(1).normal(size=(4000, 2))
        found = paired.of_means(losses)
        expected = stats.ttest_rel(*losses.T).confidence_interval(0.95)
        assert_allclose([found.lower[0], found.upper[0]], expected, rtol=0.06, atol=0.002)

    def test_few_rows_that_decide_widen_the_range(self):
        calm, wild = np.zeros((2, 200))
        calm[::2], calm[1::2] = 1.0, -1.0
        wild[:2] = 10.0, -10.0  # the same variance
        ranges = [paired.of_means(np.stack([x, 0 * x], axis=1)) for x in (calm, wild)]
        widths = [(one.upper - one.lower)[0] for one in ranges]
        assert widths[1] > 1.3 * widths[0]

    def test_dependent_rows_widen_it_where_time_is_given(self, rows):
        rng = np.random.default_rng(2)
        errors = np.repeat(rng.normal(size=40), 10)
        said = {"a": errors, "b": 0.5 * errors + rng.normal(size=400) / 10}
        plain, timed = (pm.compare(0 * errors, said, time=time).contrasts[0] for time in (None, np.arange(400)))
        assert timed.upper - timed.lower > 2.0 * (plain.upper - plain.lower)
        order = rng.permutation(400)
        shuffled = pm.compare(0 * errors, {k: v[order] for k, v in said.items()}, time=order).contrasts[0]
        assert_allclose([shuffled.lower, shuffled.upper], [timed.lower, timed.upper])

    def test_more_models_mean_wider_ranges(self, rows):
        signal, y = rows
        rng = np.random.default_rng(3)
        said = {name: signal + rng.normal(size=400) for name in "abcdef"}
        two, six = (pm.compare(y, {k: said[k] for k in names}).contrast("mae", "a", "b") for names in ("ab", "abcdef"))
        assert six.upper - six.lower > 1.3 * (two.upper - two.lower)
        assert six.p_value >= two.p_value

    def test_no_difference_is_found_where_there_is_none(self):
        """At 95 % confidence for 15 pairs together: 100 draws, of which 12 have a probability of .4 %."""
        rng = np.random.default_rng(4)
        alarms = 0
        for _ in range(100):
            noise = rng.normal(size=(150, 1)) + rng.normal(size=(150, 6))
            found = pm.compare(np.zeros(150), dict(zip("abcdef", noise.T, strict=True)))
            alarms += any(one.better for one in found.contrasts if one.score == "mae")
        assert alarms <= 11


class TestClassifiers:
    def test_accuracy_is_tested_by_mcnemar(self):
        y = np.array(["x", "y"] * 30)
        a, b = y.copy(), y.copy()
        a[:4], b[10:22] = "z", "z"
        one = pm.compare(y, {"a": a, "b": b}).contrast("accuracy", "a", "b")
        assert_allclose(one.p_value, stats.binomtest(4, 16).pvalue)
        assert_allclose(one.value, 8 / 60)

    def test_areas_are_those_of_pairs_with_delongs_variance(self):
        rng = np.random.default_rng(5)
        y = rng.uniform(size=120) < 0.4
        scores = np.clip(np.round(rng.uniform(size=(120, 2)) + 0.3 * y[:, None], 1), 0, 1)  # with ties
        areas, pairs = paired.of_auc(scores, y)
        kernel = np.sign(scores[y][:, None] - scores[~y][None]) / 2 + 0.5  # positives, negatives, models
        assert_allclose(areas, kernel.mean(axis=(0, 1)))
        difference = kernel[..., 0] - kernel[..., 1]
        variance = difference.mean(axis=1).var(ddof=1) / y.sum() + difference.mean(axis=0).var(ddof=1) / (~y).sum()
        width = (pairs.upper - pairs.lower)[0]
        assert_allclose(width, 2 * 1.98 * np.sqrt(variance), rtol=0.12)

    def test_probabilities_of_two_classes(self):
        rng = np.random.default_rng(6)
        p = rng.uniform(size=500)
        y = (rng.uniform(size=500) < p).astype(int)
        found = pm.compare(y, {"sharp": p, "flat": np.full(500, 0.5)})
        assert found.decided_by == "log_loss"
        assert found.best == "sharp"
        assert_allclose(found.scores["brier"], [np.mean((p - y) ** 2), 0.25])
        assert found.scores["auc"][1] == 0.5

    def test_numbers_that_are_no_probabilities_are_predictions(self):
        y = np.array([0, 1] * 20)
        assert pm.compare(y, {"a": y + 0.5, "b": y - 0.1}).decided_by == "mae"


class TestWords:
    def test_too_few_rows_say_how_many_would_do(self):
        rng = np.random.default_rng(7)
        y = rng.normal(size=100)
        noise = rng.normal(size=(2, 100))
        found = pm.compare(y, {"a": y + noise[0], "b": y + 1.1 * noise[1]})
        assert "cannot be told apart" in found.headline.claim
        one = found.contrasts[0]
        assert found.advice[0].startswith("Not enough rows to tell; about ")
        told = paired.of_means(np.abs(rng.normal(size=(int(one.n_needed), 2)) * [1.0, 1.1]))
        assert told.upper[0] - told.lower[0] < one.upper - one.lower

    def test_a_subgroup_in_which_the_other_is_better_is_named(self):
        rng = np.random.default_rng(8)
        kind = rng.choice(["calm", "wild"], 600, p=[0.7, 0.3])
        y = rng.normal(size=600)
        said = {"a": y + np.where(kind == "calm", 0.2, 3.0) * rng.normal(size=600), "b": y + 1.8 * rng.normal(size=600)}
        found = pm.compare(y, said, by=kind)
        assert found.best == "a"
        assert found.diagnosis.raised == ("where",)
        assert found.advice[0].startswith(("Use a.", "Not enough"))
        assert "Use b in category wild" in found.advice[1]
        (wild,) = [place for place in found.places if (place.of, place.label) == ("by", "wild")]
        assert wild.lower > 0.0
        assert wild.rows == np.count_nonzero(kind == "wild")

    def test_the_best_of_several_is_named(self, rows):
        signal, y = rows
        found = pm.compare(y, {"none": 0 * y, "good": signal, "half": signal / 2})
        assert found.headline.claim.startswith("good is the best of 3 models: its mean absolute error is lower")
        assert found.advice == ("Use good.",)
        assert "good" in found.to_html()
        assert json.loads(found.to_json())["best"] == "good"
        assert list(found.to_frame()["score"].unique()) == ["mae", "rmse"]


def test_distributions_are_scored_by_the_crps():
    rng = np.random.default_rng(9)
    y = rng.normal(size=2000)
    levels = np.arange(1, 200) / 200
    normal = {"y_pred": 0 * y, "std": 1 + 0 * y}
    quantiles = {"quantiles": np.tile(stats.norm.ppf(levels), (2000, 1)), "levels": levels}
    draws = {"samples": rng.normal(size=(2000, 400))}
    found = pm.compare(y, {"normal": normal, "quantiles": quantiles, "samples": draws}, confidence_level=0.95)
    assert found.decided_by == "crps"
    assert_allclose(found.scores["crps"], [1 / np.sqrt(np.pi)] * 3, rtol=0.03)
    assert_allclose(found.scores["crps"][1], found.scores["crps"][0], rtol=1e-3)
    assert_allclose(found.scores["crps"][2], found.scores["crps"][0], rtol=0.01)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"a": np.zeros(20)}, "two models or more"),
        ({"a": np.zeros(20), "b": np.zeros(19)}, "'b' has 19 rows, but there are 20 targets"),
        ({"a": np.zeros(20), "b": np.zeros((20, 3))}, "Quantiles and samples are given as a dict"),
        ({"a": np.zeros(20), "b": np.full(20, np.nan)}, "b must be finite"),
        ({"a": np.zeros(20), "b": {"quantile": 1}}, "'b' is a dict with"),
        ({"a": np.zeros((20, 2)), "b": np.tile([1.0, 0.0], (20, 1))}, "cross in 20 of 20 rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(said, words):
    with pytest.raises(ValueError, match=words):
        pm.compare(np.arange(20.0), said)


def test_missing_classes_and_numbers_beside_strings_are_refused():
    y = np.array(["a", "b"] * 10, object)
    with pytest.raises(ValueError, match="y_true has missing classes"):
        pm.compare(np.array(["a", None] * 10, object), {"p": y, "q": y})
    with pytest.raises(ValueError, match="q holds numbers, and y_true strings"):
        pm.compare(y, {"p": y, "q": np.arange(20)})


def test_an_index_in_another_order_is_refused():
    y = pd.Series(np.arange(20.0))
    with pytest.raises(ValueError, match=r"models\['b'\] have the same index in another order"):
        pm.compare(y, {"a": y + 1, "b": y[::-1]})
    intervals = pd.DataFrame({"lower": y - 1, "upper": y + 1})
    assert pm.measure(y, intervals=intervals, confidence_level=0.9).coverage == 1.0
    with pytest.raises(ValueError, match="intervals have the same index in another order"):
        pm.measure(y, intervals=intervals[::-1], confidence_level=0.9)


@pytest.mark.parametrize("time", [np.array([np.nan, *range(19)]), np.array([None, *range(19)], object)])
def test_missing_times_are_refused(time):
    y = np.arange(20.0)
    with pytest.raises(ValueError, match="time has missing values"):
        pm.compare(y, {"a": y + 1, "b": y + np.arange(20) % 3}, time=time)


def test_tiny_and_shifted_numbers_have_the_same_ranges(rows):
    signal, y = rows
    plain, tiny = (pm.compare(y * u, {"a": signal * u, "b": 0 * y}).contrasts[0] for u in (1.0, 2.0**-400))
    assert_allclose([tiny.lower * 2.0**400, tiny.upper * 2.0**400], [plain.lower, plain.upper], rtol=1e-9)


def test_areas_depend_on_time_too():
    rng = np.random.default_rng(11)
    drift = np.repeat(rng.normal(size=40), 10)
    y = (drift + rng.normal(size=400) > 0).astype(int)
    said = {"a": 1 / (1 + np.exp(-drift)), "b": rng.uniform(size=400)}
    plain, timed = (pm.compare(y, said, time=t).contrast("auc", "a", "b") for t in (None, np.arange(400)))
    assert timed.upper - timed.lower > 1.2 * (plain.upper - plain.lower)


def test_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 10 rows"):
        pm.compare([1.0, 2.0], {"a": [1, 2], "b": [2, 3]})


def test_models_that_say_the_same_cannot_be_told_apart():
    y = np.arange(30.0)
    found = pm.compare(y, {"a": y + 1, "b": y + 1})
    assert [one.better for one in found.contrasts] == ["", ""]
    said = "These rows cannot tell them apart: they differ by 0 at most. Take the cheaper one if that is too little"
    assert found.advice[0].startswith(said)


def test_few_rows_do_not_make_models_equal():
    rng = np.random.default_rng(0)
    y, near, noise = rng.normal(size=(3, 12))
    found = pm.compare(y, {"a": near, "b": near[::-1] + 0.01 * noise})
    assert "as good as" not in found.advice[0]
    assert found.diagnosis["where"].sentence == "There are too few rows for subgroups."


def test_the_rows_that_are_needed_are_those_of_the_clearest_pair():
    def contrast(other, n_needed):
        return Contrast("mae", "a", other, 0.1, -0.2, 0.4, 0.07, n_needed, "")

    unclear = [contrast("b", np.inf), contrast("c", 424.0)]
    said = "Not enough rows to tell; about 430 would {}, were the difference as it seems."
    assert choice(unclear, "a", 200) == said.format("tell a from c")
    assert choice(unclear[1:], "a", 200) == said.format("do")
    assert choice(unclear, "a", 4).startswith("These rows cannot tell them apart: they differ by 0.4 at most.")


def test_from_the_command_line(monkeypatch, capfd, tmp_path, rows):
    signal, y = rows
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"y": y, "good": signal, "none": 0 * y, "day": np.arange(400)}).write_csv("rows.csv")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", "compare", "rows.csv", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    code, out, err = run("--models", "good,none", "--time", "day", "--features", "all", "--out", "c.html")
    assert code == 0, err
    assert "good is better than none" in out
    assert "good is better than none" in (tmp_path / "c.html").read_text()
    code, _, err = run("--models", "good")
    assert code == 2
    assert "give two or more" in err


def test_rows_needed_count_all_pairs():
    losses = np.random.default_rng(12).normal([0.0, 0.2, 0.1, 0.1, 0.1, 0.1], size=(200, 6))
    two = paired.of_means(losses[:, :2]).n_needed[0]
    assert paired.of_means(losses).n_needed[0] > 1.4 * two


def test_areas_need_ten_rows_of_each_class():
    y = np.arange(60) < 5
    said = {name: np.random.default_rng(i).uniform(size=60) for i, name in enumerate("ab")}
    assert "auc" not in pm.compare(y, said).scores


@pytest.mark.parametrize("n_discordant", [3, 5, 12])
@pytest.mark.parametrize("one_sided", [0.0, 0.5, 1.0])
def test_ranges_of_proportions_hold_for_few_rows(n_discordant, one_sided):
    """Exactly, by all counts of 100 rows: .93 to .975, where the row says .93 to .97 on average."""
    n, p = 100, n_discordant / 100
    less = p * (1 - one_sided) / 2
    more = p - less
    counts = np.arange(31)
    a, b = (x.ravel() for x in np.meshgrid(counts, counts))
    held = a + b <= n
    a, b = a[held], b[held]
    lower, upper = paired._difference_range(*(x.astype(float) for x in (a, b)), np.full(len(a), 100.0), 0.025)
    weight = stats.multinomial.pmf(np.stack([a, b, n - a - b], axis=1), n, [more, less, 1 - p])
    covered = weight[(lower <= more - less) & (more - less <= upper)].sum()
    assert 0.93 < covered < 0.975


def test_a_model_that_is_always_right_beside_one_that_never_is():
    found = pm.compare(np.repeat(["a", "b"], 10), {"right": np.repeat(["a", "b"], 10), "wrong": np.repeat("c", 20)})
    one = found.contrast("accuracy", "right", "wrong")
    assert one.value == one.upper == 1.0
    assert 0.7 < one.lower < 1.0
    assert one.better == "right"


class TestIntervalsFromTheCommandLine:
    @pytest.fixture
    def run(self, monkeypatch, capfd, tmp_path, rows):
        signal, y = rows
        frame = {"y": y, "A": signal, "B": 0 * y, "A-lo-80": signal - 1.28, "A-hi-80": signal + 1.28}
        frame |= {
            "A-lower-90": signal - 1.64,
            "A-upper-90": signal + 1.64,
            "B-lo-90": 0 * y - 2.3,
            "B-hi-90": 0 * y + 2.3,
        }
        monkeypatch.chdir(tmp_path)
        pl.DataFrame(frame).write_csv("a.csv")

        def call(*options):
            monkeypatch.setattr(sys, "argv", ["pimeter", "compare", "a.csv", "--models", "A,B", *options])
            with pytest.raises(SystemExit) as left:
                cli.run()
            return left.value.code, *capfd.readouterr()

        return call

    def test_bounds_are_found_by_the_names_of_models(self, run, rows):
        signal, y = rows
        code, out, err = run("--intervals", "--json")
        assert code == 0, err
        assert "compared intervals of level 0.9, the highest one that all models have" in err
        said = {"A": np.stack([signal - 1.64, signal + 1.64], axis=1), "B": np.tile([-2.3, 2.3], (len(y), 1))}
        expected = pm.compare(y, said, confidence_level=0.9).contrast("interval_score", "A", "B")
        found = next(one for one in json.loads(out)["contrasts"] if one["score"] == "interval_score")
        assert found["value"] == pytest.approx(expected.value)

    def test_without_it_points_are_compared(self, run):
        code, out, _ = run("--json")
        assert code == 0
        assert [*json.loads(out)["scores"]] == ["mae", "rmse"]

    def test_bounds_that_a_model_lacks_are_named(self, run):
        code, _, err = run("--intervals", "--level", "0.8")
        assert code != 0
        assert "there are no columns 'B-lo-80' and 'B-hi-80'" in err


def test_rows_of_one_moment_are_no_moments_of_their_own():
    """All rows of a moment have an effect of each model in common: a false "better" in a quarter of the comparisons."""
    told = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        time, effect = np.repeat(np.arange(14), 100), rng.normal(size=(14, 3))
        models = {name: 0.5 * effect[time, i] for i, name in enumerate("ab", 1)}
        y_true = effect[time, 0] + rng.normal(size=1400)
        told += bool(pm.compare(y_true, models, time=time).contrast("mae", "a", "b").better)
    assert told <= 4


def test_one_moment_tells_nothing():
    rng = np.random.default_rng(0)
    y_true = rng.normal(size=50)
    found = pm.compare(y_true, {"a": 0.1 * rng.normal(size=50), "b": rng.normal(size=50)}, time=np.zeros(50))
    assert not found.contrast("mae", "a", "b").better
