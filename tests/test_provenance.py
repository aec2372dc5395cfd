"""Results know what made them, and say when it has changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from benchmarks import provenance
from benchmarks.provenance import Unfinished, changes, is_in_history, joined, origin, save, sessions, sources, strangers
from experiments import status
from experiments.status import Status
from pimeter._kernels import reference

ROOT = Path(__file__).parents[1]
TOY = {
    "src/pimeter/__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pimeter.quantiles import quantile
    from pimeter.scores import score
else:
    def __getattr__(name): ...
""",
    "src/pimeter/quantiles.py": "def quantile():\n    from pimeter.kernels import fast\n    fast.solve()\n",
    "src/pimeter/scores.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pimeter import quantiles\n"
    "def score(a: quantiles):\n    b: quantiles = a\n",
    "src/pimeter/kernels/__init__.py": "",
    "src/pimeter/kernels/fast.py": "import numpy\n\n\ndef solve():\n    numpy.pi\n\n\ndef other():\n    pass\n",
    "src/pimeter/kernels/page.html": "<html>",
    "src/pimeter/cli.py": "print()\n",
    "benchmarks/draws.py": "import pimeter as pm\nx = 1\n",
    "benchmarks/one.py": "import pimeter as pm\nfrom draws import x\npm.quantile(x)\n",
    "benchmarks/other.py": "from pimeter import score\nscore()\n",
    "benchmarks/whole.py": "import pimeter\nfor name in names:\n    getattr(pimeter, name)\n",
}


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A repository with three benchmarks, committed an hour ago."""
    for name, text in TOY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (0, 0))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setattr(provenance, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(provenance, "_is_elsewhere", lambda: False)
    return tmp_path


def change(path, text):
    """As an editor would have done before the run."""
    path.write_text(text)
    os.utime(path, (0, 0))


def named(toy, script, **options):
    return list(sources(toy / "benchmarks" / script, **options))


class TestSources:
    """What is followed from a script; tests/test_dependencies.py has the ways in which names are bound."""

    def test_names_that_are_used_lead_to_their_modules(self, toy):
        own = ["benchmarks/draws.py", "benchmarks/one.py"]
        assert named(toy, "one.py") == [*own, "src/pimeter/kernels/fast.py", "src/pimeter/quantiles.py"]

    def test_imports_for_type_checkers_do_not_count(self, toy):
        assert named(toy, "other.py") == ["benchmarks/other.py", "src/pimeter/scores.py"]

    def test_a_package_that_is_used_as_a_whole_counts_as_a_whole(self, toy):
        library = ("__init__", "kernels/fast", "quantiles", "scores")
        assert named(toy, "whole.py") == ["benchmarks/whole.py", *(f"src/pimeter/{name}.py" for name in library)]

    def test_what_a_script_starts_by_name(self, toy):
        assert "src/pimeter/cli.py" in named(toy, "other.py", uses=["pimeter.cli"])


class TestUnfinished:
    def test_a_run_of_the_same_sources_goes_on(self, toy):
        script, calls = toy / "benchmarks" / "one.py", []

        def find():
            calls.append(1)
            return [len(calls), "found"]

        run = Unfinished(script, "seed 1")
        assert run("a", find) == run("a", find) == [1, "found"]
        again = Unfinished(script, "seed 1")
        assert again("a", find) == [1, "found"]
        assert again("b", find) == [2, "found"]
        assert Unfinished(script, "seed 2")("a", find) == [3, "found"]  # another setting
        change(toy / "benchmarks" / "draws.py", "x = 2\n")
        assert Unfinished(script, "seed 2")("a", find) == [4, "found"]  # other sources
        for path in (toy / "benchmarks" / ".parts").iterdir():
            path.write_text(path.read_text() + '["c", [')  # cut off
        last = Unfinished(script, "seed 2")
        assert last("a", find) == [4, "found"]
        last.close()
        assert Unfinished(script, "seed 2")("a", find) == [5, "found"]

    def test_a_look_with_other_settings_takes_nothing_away(self, toy):
        script = toy / "benchmarks" / "one.py"
        for seed in (1, 2, 1, 2):
            assert Unfinished(script, seed)("a", lambda seed=seed: seed) == seed
        assert Unfinished(script, 1)("a", lambda: "anew") == 1

    def test_a_run_with_other_versions_or_data_begins_anew(self, toy, monkeypatch):
        script, rows = toy / "benchmarks" / "one.py", toy / "rows.csv"
        rows.write_text("1\n")

        def found(value):
            return Unfinished(script, data=["rows.csv"])("a", lambda: value)

        assert found(1) == found(2) == 1
        rows.write_text("2\n")
        assert found(3) == 3
        right = provenance.metadata.version
        monkeypatch.setattr(provenance.metadata, "version", lambda name: "99" if name == "numpy" else right(name))
        assert found(4) == found(5) == 4

    def test_several_processes_find_what_is_missing(self, toy):
        script = toy / "benchmarks" / "one.py"
        assert Unfinished(script)("a", lambda: -1) == -1
        tasks = {name: partial(lambda i: [i, os.getpid()], i) for i, name in enumerate("abc")}
        found = dict(Unfinished(script).each(tasks, jobs=2))
        assert found.pop("a") == -1
        assert {i for i, _ in found.values()} == {1, 2}
        assert os.getpid() not in {process for _, process in found.values()}
        assert dict(Unfinished(script).each(dict.fromkeys("abc", lambda: None))) == {"a": -1} | found

    def test_nothing_is_kept_of_a_quick_look(self, toy):
        run = Unfinished(toy / "benchmarks" / "one.py", kept=False)
        assert [run("a", lambda i=i: i) for i in range(2)] == [0, 0]
        run.close()
        assert not (toy / "benchmarks" / ".parts").exists()


class TestSave:
    def test_round_trip(self, toy, monkeypatch):
        data = toy / "data"
        data.mkdir()
        (data / "rows.csv").write_text("1\n")
        monkeypatch.setenv("PIMETER_DATA", str(data))
        script = toy / "benchmarks" / "one.py"
        save(script, {".md": "| 1 |\n", ".csv": "1\n"}, packages=["pytest"], data=["rows.csv"])
        assert (toy / "results" / "one.md").read_text() == "| 1 |\n"
        assert (toy / "results" / "one.csv").read_text() == "1\n"
        (made,) = sessions(toy / "results" / "one.json")
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=toy, capture_output=True, text=True, check=True)
        assert (made.commit, list(made.dirty)) == (head.stdout.strip(), [])
        assert made.is_like(origin(script, packages=[*provenance.PACKAGES, "pytest"], data=[data / "rows.csv"]))
        assert list(made.sources) == named(toy, "one.py")
        assert made.versions["pytest"] == pytest.__version__
        assert list(made.data) == ["data/rows.csv"]
        assert changes(made) == strangers(toy / "results" / "one.json") == []
        assert str(toy) not in (toy / "results" / "one.json").read_text()

    def test_a_changed_source_file_is_named(self, toy):
        script = toy / "benchmarks" / "one.py"
        save(script, "text")
        change(toy / "src" / "pimeter" / "scores.py", "2\n")  # no source of this one
        (made,) = sessions(toy / "results" / "one.json")
        kernel = toy / "src" / "pimeter" / "kernels" / "fast.py"
        change(kernel, kernel.read_text().replace("pass", "return 3"))  # nor is this part of a file
        assert changes(made) == []
        change(kernel, kernel.read_text().replace("pi", "e"))
        (toy / "benchmarks" / "draws.py").unlink()
        assert changes(made) == ["changed since: benchmarks/draws.py, src/pimeter/kernels/fast.py"]

    def test_changed_data_and_versions_are_named(self, toy, monkeypatch):
        (toy / "rows.csv").write_text("1\n")
        save(toy / "benchmarks" / "one.py", "text", data=["rows.csv"])
        (made,) = sessions(toy / "results" / "one.json")
        (toy / "rows.csv").write_text("2\n")
        monkeypatch.setattr(provenance.platform, "python_version", lambda: "4.0")
        old = ".".join(map(str, sys.version_info[:3]))
        assert changes(made) == ["other data: rows.csv", f"other versions: python {old} then, 4.0 now"]
        made = replace(made, versions={**made.versions, "no-such-package": "1.0"})  # nothing can be said of it
        assert len(changes(made)) == 2
        (toy / "rows.csv").unlink()  # elsewhere: nothing can be said
        monkeypatch.setattr(provenance.sys, "prefix", str(toy / ".venv-other"))
        assert changes(made) == []

    def test_uncommitted_and_edited_sources_are_told(self, toy):
        change(toy / "benchmarks" / "draws.py", "x = 2\n")
        (toy / "benchmarks" / "one.py").touch()
        made = origin(toy / "benchmarks" / "one.py")
        assert list(made.dirty) == ["benchmarks/draws.py"]
        assert changes(made) == ["edited while it ran: benchmarks/one.py"]

    def test_without_git_the_commit_may_be_handed_over(self, toy, monkeypatch):
        monkeypatch.setenv("PATH", "")
        assert origin(toy / "benchmarks" / "one.py").commit is None
        monkeypatch.setenv("PIMETER_COMMIT", "abc")
        assert origin(toy / "benchmarks" / "one.py").commit == "abc"

    def test_a_commit_that_was_left_behind_is_told(self, toy):
        commit = origin(toy / "benchmarks" / "one.py").commit
        git(toy, "commit", "--allow-empty", "-qm", "more")
        assert is_in_history(commit)
        git(toy, "commit", "--amend", "--allow-empty", "-qm", "other words")
        assert is_in_history(commit)
        git(toy, "checkout", "-q", "--orphan", "other")
        git(toy, "commit", "-qm", "all of it")
        assert not is_in_history(commit)
        assert not is_in_history("0" * 40)

    def test_another_library_than_that_of_the_repository_is_not_vouched_for(self, toy, monkeypatch, capsys):
        monkeypatch.setattr(provenance, "_is_elsewhere", lambda: True)
        assert origin(toy / "benchmarks" / "one.py").sources == {}
        assert "which sources made this" in capsys.readouterr().err

    def test_a_script_outside_of_the_repository_is_not_vouched_for(self, toy, tmp_path_factory, capsys):
        scripts = [tmp_path_factory.mktemp("elsewhere") / "one.py", toy / "scratch.py"]
        for script in scripts:
            change(script, "import pimeter\n")
            assert origin(script, uses=["pimeter.cli"]).sources == {}
            assert "one.py is not of" in capsys.readouterr().err or script != scripts[0]
        save(scripts[0], "text", uses=["pimeter.cli"], folder=toy / "benchmarks" / "results")
        assert status.of_benchmark(toy / "benchmarks" / "results", "one").state == "unknown"

    @pytest.mark.parametrize(("built", "is_told"), [(300.0, False), (100.0, True), (0.0, True)])
    def test_native_code_that_did_not_run_is_told(self, toy, monkeypatch, capsys, built, is_told):
        """Built before its source was changed, or, at 0, not built at all."""
        change(toy / "benchmarks" / "draws.py", "x = 'pimeter._native'\n")
        (toy / "src" / "native").mkdir()
        (toy / "src" / "native" / "rule.hpp").touch()
        os.utime(toy / "src" / "native" / "rule.hpp", (200, 200))
        git(toy, "add", ".")
        git(toy, "commit", "-qm", "native")
        monkeypatch.setattr(provenance, "_built", lambda: built)
        made = origin(toy / "benchmarks" / "one.py")
        assert changes(made) == ["not built into what ran: src/native/rule.hpp"] * is_told
        assert made.is_committed is not is_told
        assert ("make builds it" in capsys.readouterr().err) is is_told

    def test_the_native_code_that_runs_has_a_date(self, monkeypatch):
        kernel = pytest.importorskip("pimeter._kernels.native", reason="pimeter is installed without native code")
        assert provenance._built() == Path(kernel._native.__file__).stat().st_mtime
        monkeypatch.setattr("pimeter._kernels.dispatch.kernel", reference)
        assert provenance._built() == 0

    def test_sessions_are_listed_each_once(self, toy):
        script, record = toy / "benchmarks" / "one.py", toy / "results" / "one.json"
        save(script, "1")
        save(script, "2", earlier=sessions(record))
        (first,) = sessions(record)
        git(toy, "commit", "--allow-empty", "-qm", "more")
        save(script, "3", earlier=sessions(record))
        assert [one.commit == first.commit for one in sessions(record)] == [True, False]
        assert joined([first, first], first) == [first]

    @pytest.mark.parametrize("n_replaced", [0, 1, 2])
    def test_killed_at_any_point_no_file_is_half_and_no_record_vouches_for_another(self, toy, monkeypatch, n_replaced):
        """The draft is written in full before the first file is replaced; the record comes last."""
        script, record = toy / "benchmarks" / "one.py", toy / "results" / "one.json"
        save(script, {".md": "old " * 1000, ".csv": "old"})
        right, done = Path.replace, []

        def replace(draft, path):
            if len(done) == n_replaced:
                raise KeyboardInterrupt
            done.append(path)
            return right(draft, path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", replace)
            with pytest.raises(KeyboardInterrupt):
                save(script, {".md": "new " * 2000, ".csv": "new"})
        texts = [(toy / "results" / f"one{ending}").read_text() for ending in (".md", ".csv")]
        assert texts == [["new " * 2000, "new"][i] if i < n_replaced else ["old " * 1000, "old"][i] for i in (0, 1)]
        assert strangers(record) == ["one.md", "one.csv"][:n_replaced][::-1]
        assert sorted(path.name for path in record.parent.iterdir()) == ["one.csv", "one.json", "one.md"]

    def test_a_result_changed_by_hand_is_a_stranger(self, toy):
        save(toy / "benchmarks" / "one.py", "text")
        (toy / "results" / "one.csv").write_text("another file of this name")
        (toy / "results" / "one.md").write_text("better text")
        assert strangers(toy / "results" / "one.json") == ["one.csv", "one.md"]
        assert json.loads((toy / "results" / "one.json").read_text())["files"].keys() == {"one.md"}


class TestStatus:
    """What `python -m experiments status` says of benchmarks; tests/test_experiments.py has the experiments."""

    @pytest.fixture
    def results(self, toy, monkeypatch):
        folder = toy / "benchmarks" / "results"
        monkeypatch.setattr(provenance, "RESULTS", folder)
        for name in ("a_one", "a_two", "a_three"):
            change(toy / "benchmarks" / f"{name}.py", TOY["benchmarks/one.py"])
            save(toy / "benchmarks" / f"{name}.py", "text")
        git(toy, "add", ".")
        git(toy, "commit", "-qm", "more")
        return folder

    def test_current_stale_unknown_and_not_run(self, toy, results):
        change(toy / "benchmarks" / "a_two.py", "import pimeter\n")
        change(toy / "benchmarks" / "a_new.py", "")
        (results / "a_three.md").write_text("better text")
        (results / "a_old.md").write_text("text")
        found = {one.name.partition("/")[2]: one for one in status.of_benchmarks(results)}
        assert {name: (one.state, one.why) for name, one in found.items()} == {
            "a_new": ("not run", ""),
            "a_old": ("unknown", "no record"),
            "a_one": ("current", ""),
            "a_three": ("unknown", "not what the record was written with: a_three.md"),
            "a_two": ("stale", "changed since: benchmarks/a_two.py"),
        }
        commit = sessions(results / "a_one.json")[0].commit
        assert found["a_one"].made.startswith(f"{commit[:10]}+ ")  # saved before it was committed

    def test_one_stale_session_is_enough(self, toy, results):
        before = sessions(results / "a_one.json")
        change(toy / "src" / "pimeter" / "quantiles.py", "quantile = 2\n")
        save(toy / "benchmarks" / "a_one.py", "text", earlier=before)
        found = status.of_benchmark(results, "a_one")
        assert (found.state, found.why) == ("stale", "changed since: src/pimeter/quantiles.py")
        assert len(found.made.split(", ")) == 2

    def test_table_is_readable(self):
        found = [Status("a", "current", "0123456789 2026-01-01"), Status("bcd", "stale", "", "word " * 40)]
        lines = status.table(found, width=80).splitlines()
        assert lines[0] == "a    current  0123456789 2026-01-01"
        assert all(len(line) <= 80 for line in lines)
        assert lines[1] == "bcd  stale"
        assert lines[2].index("word") == lines[3].index("word") == 4
        assert lines[-1] == "2 results: 1 current, 1 stale."


def test_docstrings_and_comments_change_no_number(tmp_path):
    first, second, third = (tmp_path / f"{name}.py" for name in "abc")
    first.write_text('"""One."""\n\n\ndef f(x):\n    """Two."""\n    return x  # three\n')
    second.write_text('def f(x):\n    """Other."""\n    return (\n        x\n    )\n')
    third.write_text("def f(x):\n    return x + 1\n")
    assert provenance.code_digest(first) == provenance.code_digest(second) != provenance.code_digest(third)
    page = tmp_path / "page.html"
    page.write_text("a")
    assert provenance.code_digest(page) == provenance.digest(page)


class TestOldRecords:
    """Records with hashes of whole files: their commit says what counted then."""

    KERNEL = "src/pimeter/kernels/fast.py"
    STARTS = ("benchmarks/one.py",)

    @pytest.fixture
    def made(self, toy):
        """As records were before they said what they start from."""
        now = origin(toy / "benchmarks" / "one.py")
        return replace(now, starts=(), sources={name: provenance.digest(toy / name) for name in now.sources})

    def alter(self, toy, old, new):
        path = toy / self.KERNEL
        change(path, path.read_text().replace(old, new))

    def test_nothing_has_changed(self, toy, made):
        assert changes(made, self.STARTS) == []
        assert changes(made) == []

    def test_what_does_not_count_has_changed(self, toy, made):
        self.alter(toy, "pass", "return 3")
        assert changes(made, self.STARTS) == []
        assert changes(made) == [f"changed since: {self.KERNEL}"]  # of what script?

    def test_what_counts_has_changed(self, toy, made):
        self.alter(toy, "pi", "e")
        assert changes(made, self.STARTS) == [f"changed since: {self.KERNEL}"]

    @pytest.mark.parametrize(
        "unsure",
        [{"commit": None}, {"commit": "0" * 40}, {"dirty": ["benchmarks/one.py"]}],
        ids=["none", "unknown", "dirty"],
    )
    def test_without_a_commit_that_can_be_trusted_whole_files_decide(self, toy, made, unsure):
        made = replace(made, **unsure)
        assert changes(made, self.STARTS) == []
        self.alter(toy, "pass", "return 3")
        assert changes(made, self.STARTS) == [f"changed since: {self.KERNEL}"]

    def test_edited_while_it_ran(self, toy, made):
        made = replace(made, sources={**made.sources, self.KERNEL: provenance.EDITED})
        assert changes(made, self.STARTS) == [f"edited while it ran: {self.KERNEL}"]

    def test_a_new_dependency(self, toy, made):
        change(toy / "benchmarks" / "draws.py", "from pimeter import score\nx = score()\n")
        assert changes(made, self.STARTS) == ["changed since: benchmarks/draws.py"]


def test_every_benchmark_saves_through_one_function():
    for script in [*(ROOT / "benchmarks").glob("*.py"), ROOT / "tests" / "hostile.py"]:
        text = script.read_text()
        if script.stem not in {
            "commits",
            "dependencies",
            "designs",
            "distributions",
            "models",
            "peermonitors",
            "provenance",
        }:  # no scripts of their own
            assert re.search(r"^from (benchmarks\.)?provenance import .*\bsave\b", text, flags=re.MULTILINE), (
                script.name
            )
            assert len(re.findall(r"\bsave\b", text)) > 1, script.name
            assert not re.search(r"RESULTS.*write_text|CELLS.*write", text), script.name
