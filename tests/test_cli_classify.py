"""`pimeter classify`: from a file of labels and scores to metrics with intervals, and what it says of wrong files."""

from __future__ import annotations

import json
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from statsmodels.stats.proportion import proportion_confint

import pimeter
from pimeter import cli, scorecard


def scored(n=600, seed=0):
    """Calibrated scores of two classes in words, and a category."""
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 1.2, n)
    is_yes = rng.uniform(size=n) < score
    return pl.DataFrame({"label": np.where(is_yes, "yes", "no"), "score": score, "shop": rng.choice(["a", "b"], n)})


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored().write_csv("good.csv")


@pytest.fixture
def classify(monkeypatch, capfd):
    """Runs the command; gives its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pimeter", "classify", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return left.value.code, *capfd.readouterr()

    return run


def test_answers_are_those_of_the_library(classify):
    frame = scored()
    code, out, err = classify("good.csv", "--threshold", 0.5, "--threshold", 0.3, "--level", 0.9, "--json")
    assert code == 0, err
    assert err.splitlines() == [
        "note: guessed that the label in 'good.csv' is column 'label'",
        "note: guessed that the score in 'good.csv' is column 'score'",
        "note: took 'yes' for the positive class in 'good.csv'",
    ]
    expected = pimeter.classification_uncertainty(
        frame["label"].to_numpy(),
        frame["score"].to_numpy(),
        threshold=[0.5, 0.3],
        confidence_level=0.9,
        pos_label="yes",
        random_state=0,
    )
    found = json.loads(out)
    rows = found["uncertainty"].pop("rows")
    assert {**found["uncertainty"], "rows": rows[:-4]} == expected.to_dict()
    of_scores = pimeter.classification_uncertainty(
        frame["label"].to_numpy(),
        frame["score"].to_numpy(),
        metrics=["roc_auc", "average_precision", "brier", "log_loss"],
        confidence_level=0.9,
        pos_label="yes",
    )
    assert rows[-4:] == [{**row, "threshold": None} for row in of_scores.to_dict()["rows"]]  # once, at no threshold
    assert found["calibration_error"] == pytest.approx(
        pimeter.calibration_error(frame["label"].to_numpy() == "yes", frame["score"].to_numpy(), method="lower")
    )
    counts = {outcome["name"]: outcome["rows"] for outcome in found["outcomes"]}
    assert counts["true positives"] == ((frame["label"] == "yes") & (frame["score"] > 0.5)).sum()
    assert all(sum(outcome["counts"]) == outcome["rows"] for outcome in found["outcomes"])


def test_a_high_level_needs_more_resamples(classify):
    code, _, err = classify("good.csv", "--level", 0.999)
    assert code == 2
    assert "n_resamples=10000 or more" in err
    code, out, _ = classify("good.csv", "--level", 0.999, "--n-resamples", 10_000, "--json")
    assert (code, json.loads(out)["uncertainty"]["confidence_level"]) == (0, 0.999)


def test_words_and_report(classify, tmp_path):
    code, out, err = classify("good.csv", "--by", "shop", "--out", "report.html")
    assert code == 0, err
    assert out.startswith("The classifier is right for ")
    assert "Can scores be read as probabilities? Nothing speaks against it: none of" in out
    assert "Is it as good everywhere?" in out
    assert out.endswith("Report: report.html\n")
    page = (tmp_path / "report.html").read_text()
    assert out.split(" With ")[0] in page
    assert all(f"{name} {of}s" in page for name in ("True", "False") for of in ("positive", "negative"))
    assert "pimeter classify good.csv --by shop" in page
    assert page.count("<script>") == 1  # that of the slider
    assert "script-src 'sha256-" in page
    assert "http" not in page.replace("http-equiv", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "report.html"]


@pytest.mark.parametrize(
    "labels", [[1, 0], [1.0, 0.0], [True, False], ["1", "0"], [1, -1], ["Yes", "No"], ["positive", "negative"]]
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_kinds_of_labels_and_files(classify, labels, kind):
    frame = scored(60)
    named = frame.with_columns(label=pl.Series([labels[0] if one == "yes" else labels[1] for one in frame["label"]]))
    {"csv": named.write_csv, "parquet": named.write_parquet, "jsonl": named.write_ndjson}[kind](f"a.{kind}")
    code, out, err = classify(f"a.{kind}", "--json")
    assert code == 0, err
    expected = scorecard((frame["label"] == "yes").to_numpy(), frame["score"].to_numpy())
    assert json.loads(out) == json.loads(expected.to_json())


def test_scores_keep_their_precision(classify):
    """A score of .3 in single precision is not above a threshold of .3, in the numbers and in the plots."""
    rng = np.random.default_rng(0)
    score = np.round(rng.uniform(size=400), 1)
    frame = pl.DataFrame({"label": rng.uniform(size=400) < score, "score": score, "shop": rng.choice(["a", "b"], 400)})
    frame.cast({"score": pl.Float32}).write_parquet("single.parquet")
    frame.write_parquet("double.parquet")
    single, double = (
        json.loads(classify(f"{name}.parquet", "--by", "shop", "--threshold", 0.3, "--json")[1])
        for name in ("single", "double")
    )
    of_scores = [[row["value"] for row in one["uncertainty"]["rows"][-2:]] for one in (single, double)]
    assert of_scores[0] == pytest.approx(of_scores[1], rel=1e-6)  # Brier score and log loss, which see every digit
    for part in ("cuts", "categories"):
        assert single[part] == double[part]
    assert single["uncertainty"]["rows"][:-2] == double["uncertainty"]["rows"][:-2]
    assert [one["rows"] for one in single["outcomes"]] == [one["rows"] for one in double["outcomes"]]


def test_the_positive_class_is_asked_for_where_it_is_not_obvious(classify):
    scored().with_columns(label=pl.col("label").replace({"yes": "cat", "no": "dog"})).write_csv("pets.csv")
    code, _, err = classify("pets.csv")
    assert code == 2
    assert "holds 'cat', 'dog'; say which one scores are about with --positive" in err
    code, out, err = classify("pets.csv", "--positive", "cat", "--json")
    assert code == 0, err
    assert json.loads(out) == json.loads(classify("good.csv", "--json")[1])


@pytest.mark.parametrize(("label", "positive"), [("yes", "yes"), ("no", "yes"), ("dog", "dog"), ("0", "1")])
def test_one_class_where_it_is_said_which(classify, label, positive):
    frame = scored(80).with_columns(label=pl.lit(label))
    frame.write_csv("one.csv")
    code, out, err = classify("one.csv", "--positive", positive, "--json")
    assert code == 0, err
    found = {row["metric"]: row for row in json.loads(out)["uncertainty"]["rows"]}
    missing = "tnr" if label == positive else "tpr"
    assert (found[missing]["value"], found[missing]["lower"], found[missing]["upper"]) == (None, 0.0, 1.0)
    code, _, err = classify("one.csv")
    assert code == 2
    assert "two are needed, or --positive to say which of two it is" in err
    code, _, err = classify("one.csv", "--positive", "maybe")
    assert code == 2
    assert "--positive 'maybe' is none of them" in err


def test_rows_without_a_label(classify):
    frame = scored().with_row_index("i")
    partly = frame.with_columns(label=pl.when(pl.col("i") < 200).then("label").otherwise(pl.lit("NA")))
    partly.write_csv("partly.csv")
    code, out, err = classify("partly.csv", "--json")
    assert "left out 400 of 600 rows that have no label or no score" in err
    assert json.loads(out)["uncertainty"]["n_rows"] == 200
    code, out, err = classify("partly.csv", "--method", "prediction-powered", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["n_labelled"], found["uncertainty"]["n_rows"]) == (200, 600)
    assert "200 labels among 600 rows" in found["headline"]["evidence"]


def test_no_labels_at_all(classify):
    frame = scored()
    frame.drop("label").write_csv("bare.csv")
    code, out, err = classify("bare.csv", "--method", "calibrated", "--out", "report.html")
    assert code == 0, err
    assert "assuming perfectly calibrated scores" in out
    assert "Can scores be read" not in out
    code, out, err = classify("bare.csv", "--method", "calibrated", "--calibration", "good.csv", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert "calibration rows drawn like these rows" in found["headline"]["evidence"]
    rows = (frame["label"] == "yes").to_numpy(), frame["score"].to_numpy()
    expected = pimeter.classification_uncertainty(
        None, rows[1], method="calibrated", calibration=rows, threshold=[0.5], random_state=0
    )
    assert found["uncertainty"] == expected.to_dict()


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("label,score\nyes,0.5\nno,1.5\n", [], "row 2 of column 'score' holds 1.5; scores lie between 0 and 1"),
        ("label,score\nyes,0.5\nno,high\n", [], "row 2 of column 'score' holds 'high', which is not a number"),
        ("label,score\nyes,0.5\nyes,0.2\n", [], "column 'label' holds one class ('yes'); two are needed"),
        ("label,score\na,0.5\nb,0.2\nc,0.2\n", [], "holds 3 classes ('a', 'b', 'c'); two are needed"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--positive", "maybe"], "--positive 'maybe' is none of them"),
        ("label,score\n,0.5\nNA,0.2\n", [], "column 'label' has no label; all 2 rows are missing"),
        ("label,score\nyes,\nno,nan\n", [], "column 'score' has no number; all 2 rows are missing"),
        ("a,score\nyes,0.5\nno,0.2\n", [], "no column has a usual name for the label; give --label NAME"),
        ("label,a\nyes,0.5\nno,0.2\n", [], "no column has a usual name for the score; give --score NAME"),
        ("label,score\n1,1\n0,0\n", ["--label", "score"], "'score' cannot be both the label and the score"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--by", "shop"], "has no column 'shop'"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--method", "guess"], "method must be one of wilson"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--threshold", "1.5"], "threshold must be a number"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--level", "95"], "95 % is 0.95"),
        ("label,score\nyes,0.5\nno,0.2\n", ["--calibration", "good.csv"], 'calibration is for method="calibrated"'),
        ("label,score\nyes,0.5\nno,0.2,1\n", [], "line 3 has 3 fields, expected 2"),
        ("", [], "is empty"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(classify, tmp_path, text, arguments, says):
    (tmp_path / "wrong.csv").write_text(text)
    code, out, err = classify("wrong.csv", *arguments, "--out", "report.html")
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "wrong.csv"]


def test_rows_cannot_come_twice_from_standard_input(classify):
    code, out, err = classify("-", "--method", "calibrated", "--calibration", "-")
    assert (code, out) == (2, "")
    assert err == "pimeter: rows and calibration rows cannot both come from standard input.\n"


class TestScorecard:
    def test_the_code_of_its_advice_runs(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=400)
        y = rng.uniform(size=400) < 0.5 + 0.4 * (score - 0.5)
        names = {"y_true": y, "y_score": score, "new_score": score[:5]}
        exec(scorecard(y, score).code, names)
        assert np.ptp(names["new_probability"]) < np.ptp(score[:5])

    def test_has_metrics_of_scores_where_both_classes_have_ten_rows(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=200)
        y = rng.uniform(size=200) < score
        text = str(scorecard(y, score, threshold=[0.3, 0.5]))
        assert [text.count(f"\n{name} ") for name in ("roc auc", "average precision", "brier", "log loss")] == [1] * 4
        assert "accuracy at 0.3" in text
        assert "Metrics of scores" in scorecard(y, score).to_html()
        few = y & (np.cumsum(y) < 10)
        some = np.where(np.arange(200) < 150, y, np.nan)
        for labels, method in ((few, "wilson"), (None, "calibrated"), (some, "prediction-powered")):
            assert "roc auc" not in str(scorecard(labels, score, method=method))
        never = scorecard(y, np.where(np.cumsum(y) == 1, 0.0, score))  # a positive with a score of 0
        assert "inf  not known" in str(never)
        assert "not known to" not in str(never) + never.to_html()
        assert "log loss: 1 row had probability 0 for what happened." in str(never).splitlines()
        assert json.loads(never.to_json())["uncertainty"]["rows"][-1]["value"] is None

    def test_a_classifier_that_is_worse_than_the_majority_class_raises_alarm(self):
        rng = np.random.default_rng(0)
        y = rng.uniform(size=2000) < 0.05
        score = np.where(rng.uniform(size=2000) < 0.3, 0.9, 0.1)
        found = {finding.question: finding for finding in scorecard(y, score).findings}
        asked = found["Is it better than always predicting the majority class?"]
        assert asked.raised
        assert asked.sentence.startswith("No:")
        assert found["Can scores be read as probabilities?"].raised

    def test_one_positive_among_many_unlikely_rows_is_no_contradiction(self):
        """One such row comes in 18 of 100 samples; Wilson's interval of its bin excludes the score of .001."""
        score = 0.001 + np.arange(200) * 1e-9
        found = scorecard(np.arange(200) == 100, score)
        (asked,) = (one for one in found.findings if "probabilities" in one.question)
        assert asked.sentence == "Nothing speaks against it: none of 10 bins contradicts the score."
        assert not asked.raised
        assert found.reliability["p_value"] > 0.1

    def test_a_score_of_0_that_is_positive_contradicts_unless_it_is_rounded(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=600)
        label = rng.uniform(size=600) < score
        wrong = np.where(np.arange(600) == np.flatnonzero(label)[np.argmin(score[label])], 0.0, score)
        said = [scorecard(label, own).diagnosis["calibration"] for own in (score, wrong)]
        assert [one.raised for one in said] == [False, True]
        assert said[1].sentence.startswith("No: 1 of 1 row with a score of 0 or 1 is of the other class")
        assert said[1].p_value == 0.0
        rounded = np.round(score, 1)
        rounded[label & (rounded == 0.0)] = 0.1
        first = np.flatnonzero(label)[np.argmin(score[label])]
        rounded[first] = 0.0  # one of 26 rows with a score of 0, which may stand for up to .05
        found = scorecard(label, rounded).diagnosis["calibration"]
        assert found.sentence.endswith("with a score of 0 or 1 is of the other class, as rounded scores may be.")

    def test_labels_that_contradict_scores_together_but_in_no_bin(self):
        score = 0.02 + np.arange(1000) * 1e-9
        found = scorecard(np.arange(1000) % 25 == 0, score)
        (asked,) = (one for one in found.findings if "probabilities" in one.question)
        assert asked.raised
        assert asked.sentence.startswith("No: the labels contradict them (p = 0.00")
        assert "though no single one of 10 bins does" in asked.sentence

    def test_intervals_of_categories_hold_for_all_together(self):
        """Clopper-Pearson's at a tenth of the miss: Wilson's miss far more often than that near 1."""
        rng = np.random.default_rng(0)
        score = rng.uniform(size=200)
        y = (score > 0.5) == (np.arange(200) % 40 != 0)
        for part in scorecard(y, score, by=np.arange(200) // 20).categories:
            right = round(part.accuracy * 20)
            expected = proportion_confint(right, 20, 0.005, "beta")
            assert_allclose([part.lower, part.upper], np.nan_to_num(expected, nan=1.0), rtol=1e-9)

    def test_one_answer_for_all_is_the_majority_class(self):
        found = scorecard(np.arange(100) < 20, np.full(100, 0.2))
        (alarm,) = (one.sentence for one in found.findings if "majority" in one.question)
        assert alarm.startswith("No: it calls no row positive")

    def test_categories_need_labels(self):
        with pytest.raises(ValueError, match="by compares the accuracy of categories, which needs labels"):
            scorecard(None, [0.2, 0.7], by=["a", "b"], method="calibrated")

    def test_each_row_needs_a_category(self):
        with pytest.raises(ValueError, match=r"by must give one category for each of the 2 rows; got shape \(3,\)"):
            scorecard([0, 1], [0.2, 0.7], by=["a", "b", "c"])

    def test_few_rows_of_a_class_raise_alarm(self):
        found = scorecard([1, 1, 0, 0, 0, 0], [0.9, 0.4, 0.1, 0.2, 0.3, 0.6])
        assert any("very few rows" in finding.advice for finding in found.findings if finding.raised)

    def test_a_category_that_differs_is_named_and_equal_ones_are_not(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=3000)
        by = np.repeat(["good", "bad", "poor"], 1000)
        y = np.where(by == "good", score > 0.5, rng.uniform(size=3000) < score)
        found = scorecard(y, score, by=by)
        odd = {part.label for part in found.categories if part.is_different}
        assert odd == {"good", "bad", "poor"}
        right = (y == (score > 0.5)).reshape(3, 1000).mean(axis=1)
        assert_allclose(
            [part.accuracy for part in sorted(found.categories, key=lambda one: one.label)], right[[1, 0, 2]]
        )
        same = scorecard(y[1000:], score[1000:], by=by[1000:])
        assert not any(part.is_different for part in same.categories)

    @pytest.mark.parametrize(("n_categories", "n_rows"), [(20, 1), (10, 20)])
    def test_small_categories_that_do_not_differ_rarely_raise_alarm(self, n_categories, n_rows):
        alarms = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            score = rng.uniform(size=n_categories * n_rows)
            y = (score > 0.5) == (rng.uniform(size=score.size) < 0.95)
            found = scorecard(y, score, by=np.repeat(np.arange(n_categories), n_rows))
            alarms += any(part.is_different for part in found.categories)
        assert alarms <= 8  # 5 % of 60, with room for chance

    def test_says_which_rows_are_scarce(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=400)
        y = np.where(np.arange(400) < 100, rng.uniform(size=400) < score, np.nan)
        for labels, method, scarce in ((y[:100], "wilson", "many rows about"), (y, "prediction-powered", "a label")):
            found = scorecard(labels, score[: len(labels)], method=method)
            assert any(scarce in finding.sentence for finding in found.findings)

    def test_masked_rows_have_no_label_and_no_score(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=300)
        y = np.ma.MaskedArray((rng.uniform(size=300) < score).astype(float), mask=np.arange(300) >= 150)
        found = scorecard(y, score, method="prediction-powered")
        assert found == scorecard(y.filled(np.nan), score, method="prediction-powered")
        assert "With 150 labels among 300 rows" in found.headline.evidence
        with pytest.raises(ValueError, match="y_score"):
            scorecard(y.data, np.ma.MaskedArray(score, mask=y.mask))

    def test_labels_may_be_strings_and_the_positive_class_is_told(self):
        rng = np.random.default_rng(0)
        score = rng.uniform(size=300)
        y = rng.uniform(size=300) < score
        words = np.where(y, "yes", "no")
        assert scorecard(words, score, pos_label="yes", threshold=[0.3, 0.5]) == scorecard(
            y, score, threshold=(0.3, 0.5)
        )
        with pytest.raises(ValueError, match="y_true holds 'no' and 'yes': say with pos_label"):
            scorecard(words, score)
        with pytest.raises(ValueError, match="y_true holds 'yes': say with pos_label"):
            scorecard(["yes", "yes"], [0.2, 0.7])
        assert scorecard(["no", "no"], [0.2, 0.7], pos_label="yes") == scorecard([0, 0], [0.2, 0.7])

    @pytest.mark.parametrize("y_score", [[0.1, 0.2, 0.3], np.eye(3)])
    def test_several_classes_are_for_classification_uncertainty(self, y_score):
        with pytest.raises(ValueError, match=r"scorecard is for two classes; .*Use classification_uncertainty"):
            scorecard(["a", "b", "c"], y_score)

    def test_two_columns_of_scores_are_one_too_many(self):
        with pytest.raises(ValueError, match=r"one score for each row.*y_score\[:, 1\]; got shape \(2, 2\)"):
            scorecard([0, 1], [[0.3, 0.7], [0.2, 0.8]])

    @pytest.mark.parametrize(("y", "which"), [([1], "positive"), ([0] * 30, "negative")])
    def test_one_class_says_nothing_of_the_majority(self, y, which):
        found = scorecard(y, np.linspace(0.1, 0.4, len(y)))
        assert found.diagnosis["majority"].sentence == f"Not known: all rows with a label are {which}."
        assert "Label rows of the other class, too" in found.diagnosis["classes"].advice
        assert ("few rows say little" in found.diagnosis["calibration"].sentence) == (len(y) == 1)
        assert ("With 1 labelled row and" in found.headline.evidence) == (len(y) == 1)

    def test_what_beats_the_majority_class_is_said_in_rows_that_are_right(self):
        score = np.linspace(0.01, 0.99, 200)
        found = scorecard(score > 0.7, score, threshold=0.7)
        said = "Yes: at least 98.1 % right, against 70.5 % for always predicting the majority class."
        assert found.diagnosis["majority"].sentence == said

    def test_python_prints_what_the_terminal_prints(self, classify, tmp_path):
        rng = np.random.default_rng(1)
        score = rng.uniform(size=200)
        y = (rng.uniform(size=200) < score).astype(int)
        path = tmp_path / "scores.csv"
        path.write_text("label,score\n" + "".join(f"{a},{b!r}\n" for a, b in zip(y, score.tolist(), strict=True)))
        _, out, _ = classify(str(path))
        assert out == f"{scorecard(y, score)}\n"

    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [
            (["10", "9", "x", "1"], ["1", "9", "10", "x"]),
            (np.array(["c", None, "a", "b"], object), ["a", "b", "c", "missing"]),
        ],
    )
    def test_categories_are_in_order(self, kinds, expected):
        score = np.linspace(0.1, 0.9, 80)
        found = scorecard(score > 0.5, score, by=np.tile(kinds, 20)).categories
        assert [one.label for one in found] == expected
        assert [one.rows for one in found] == [20] * 4


@pytest.fixture
def three_classes(tmp_path):
    rng = np.random.default_rng(3)
    y = rng.choice(3, size=200, p=[0.5, 0.3, 0.2])
    odds = np.exp(rng.normal(size=(200, 3)) + 2 * np.eye(3)[y])
    score = odds / odds.sum(axis=1, keepdims=True)
    names = np.array(["cat", "dog", "fox"])
    columns = {"label": names[y], **{f"p_{name}": score[:, i] for i, name in enumerate(names)}}
    pl.DataFrame(columns).write_csv(tmp_path / "three.csv")
    return names, y, score


def test_several_classes_have_a_column_each(classify, three_classes):
    _, y, score = three_classes
    code, out, err = classify("three.csv", "--json")
    assert code == 0, err
    rows = {row["metric"]: row["value"] for row in json.loads(out)["rows"]}
    assert rows["accuracy"] == np.mean(score.argmax(axis=1) == y)
    is_fox = score.argmax(axis=1) == 2
    assert rows["precision[fox]"] == pytest.approx(np.mean(y[is_fox] == 2))
    assert "'p_cat', 'p_dog', 'p_fox' for the probabilities of 'cat', 'dog', 'fox'" in err
    asked = classify("three.csv", "--score", "p_fox,p_cat,p_dog", "--json")
    assert {row["metric"]: row["value"] for row in json.loads(asked[1])["rows"]} == rows
    code, out, _ = classify("three.csv")
    assert (code, out.splitlines()[0]) == (0, "200 rows, intervals for 95 %")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--score", "p_cat,p_dog"], "no column of probabilities can be told to be that of 'fox'"),
        (["--score", "p_cat,p_dog,p_fox,label"], "has the name of none of the classes"),
        (["--score", "p_cat,p_dog,p_wolf"], "has no column 'p_wolf'"),
        (["--threshold", 0.3], "--threshold is for two classes"),
        (["--precision", 0.9], "--precision is for two classes"),
        (["--out", "report.html"], "--out is for two classes"),
    ],
)
def test_several_classes_refused(classify, three_classes, arguments, said):
    code, _, err = classify("three.csv", *arguments)
    assert code != 0
    assert said in err


def test_a_guaranteed_threshold(classify, tmp_path):
    rng = np.random.default_rng(4)
    score = rng.beta(0.3, 0.3, size=800)
    pl.DataFrame({"y": (rng.uniform(size=800) < score).astype(int), "score": score}).write_csv(tmp_path / "rows.csv")
    code, out, err = classify("rows.csv", "--precision", 0.9, "--json")
    assert code == 0, err
    found = json.loads(out)["uncertainty"]["rows"][0]["threshold"]
    control = pimeter.RiskController("precision", 0.9, confidence_level=0.95)
    frame = pl.read_csv(tmp_path / "rows.csv")
    assert found == control.fit(frame["y"].to_numpy(), frame["score"].to_numpy()).threshold_
    assert "keeps a precision of 90 % or more among rows like these, with 95 % confidence" in err
    assert classify("rows.csv", "--recall", 0.9, "--json")[0] == 0
    code, _, err = classify("rows.csv", "--precision", 0.9999)
    assert code != 0
    assert "cannot be guaranteed with these 800 rows" in err
    assert "give one of --threshold" in classify("rows.csv", "--recall", 0.9, "--threshold", 0.5)[2]


def test_a_recall_that_needs_all_rows_is_no_threshold(classify, tmp_path):
    """Of the positives 20 % have a score of 0, which no threshold between 0 and 1 declares positive."""
    y = np.arange(1000) % 2
    score = np.where(y == 1, np.where(np.arange(1000) % 10 < 2, 0.0, 0.9), 0.3)
    pl.DataFrame({"y": y, "score": score}).write_csv(tmp_path / "rows.csv")
    code, _, err = classify("rows.csv", "--recall", 0.95)
    assert (code, "only by declaring all rows positive" in err) == (2, True)
    assert classify("rows.csv", "--recall", 0.7)[0] == 0
