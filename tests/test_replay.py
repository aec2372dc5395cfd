"""Quick runs of benchmarks are repeated by the code that stored a result and by that of now."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess

import pytest

from benchmarks import provenance
from experiments import __main__ as cli
from experiments import replay as replaying
from experiments import status
from experiments.protocol import RefusedError
from experiments.replay import replay, replays

SCRIPT = """import sys
sys.path.insert(0, "src")
from numbers_of import FACTOR
from pathlib import Path
assert "--quick" in sys.argv
print("numpy 1.26.4, seeds 1 to 20", *range(12))
print("|", *(FACTOR * i for i in range(12)))
"""
HOURS = itertools.count(0, 3600)


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (next(HOURS), next(HOURS)))  # long ago, and at another time than the file that was there
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "change")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """One with a benchmark, its stored result, and a change since then."""
    git(tmp_path, "init", "-q")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setattr(provenance, "RESULTS", tmp_path / "benchmarks" / "results")
    monkeypatch.setattr(provenance, "_is_elsewhere", lambda: False)

    @contextlib.contextmanager
    def built(then):
        tree = tmp_path / ".git" / "tree"
        git(tmp_path, "worktree", "add", "--detach", str(tree), then)
        yield tree
        git(tmp_path, "worktree", "remove", "--force", str(tree))

    monkeypatch.setattr(replaying, "built", built)
    commit(tmp_path, benchmarks__a_one_py=SCRIPT, src__numbers_of_py="FACTOR = 3\n")
    provenance.save(tmp_path / "benchmarks" / "a_one.py", "# One\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "store")
    return tmp_path


def changed(repository, script):
    commit(repository, benchmarks__a_one_py=script)
    return status.of_benchmark(provenance.RESULTS, "a_one")


def test_a_result_is_confirmed_while_the_code_stays(repository):
    assert changed(repository, SCRIPT.replace("FACTOR * i", "i * FACTOR")).state == "stale"
    found = replay("a_one")
    assert found.n_numbers == 12
    assert replays(provenance.RESULTS) == {"a_one": found}
    said = status.of_benchmark(provenance.RESULTS, "a_one")
    assert said.state == "confirmed"
    assert said.why.startswith("12 numbers of its quick run are the same at ")
    assert changed(repository, SCRIPT.replace("range(12)", "range(0, 12)")).state == "stale"


def test_another_result_than_the_one_that_was_repeated_is_not_confirmed(repository):
    changed(repository, SCRIPT.replace("FACTOR * i", "2 * FACTOR * i"))
    provenance.save(repository / "benchmarks" / "a_one.py", "# Two\n")  # of other code
    assert changed(repository, SCRIPT.replace("FACTOR * i", "i * FACTOR")).state == "stale"
    path = provenance.RESULTS / "a_one.json"
    second = path.read_text(), path.with_suffix(".md").read_text()
    git(repository, "checkout", "HEAD~2", "--", "benchmarks/results")  # what the code of now was compared with
    replay("a_one")
    assert status.of_benchmark(provenance.RESULTS, "a_one").state == "confirmed"
    path.write_text(second[0])
    path.with_suffix(".md").write_text(second[1])
    assert status.of_benchmark(provenance.RESULTS, "a_one").state == "stale"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            SCRIPT.replace("FACTOR *", "1 + FACTOR *"),
            r"does not print what it printed; run it again\.\n(.|\n)*\+\| 1 4 7",
        ),
        (SCRIPT.replace("12", "len(FACTOR)"), "failed in"),
    ],
)
def test_what_differs_is_refused(repository, script, said):
    changed(repository, script)
    with pytest.raises(RefusedError, match=said):
        replay("a_one")
    assert replays(provenance.RESULTS) == {}


def test_a_run_of_few_numbers_tells_nothing(repository):
    short = SCRIPT.replace("i in range(12)", "i in range(9)")
    changed(repository, short)
    provenance.save(repository / "benchmarks" / "a_one.py", "# One\n")
    with pytest.raises(RefusedError, match="have 9 numbers, too few"):
        replay("a_one")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"dirty": ["src/a.py"]}, "was not made by the code of one commit"),
        ({"commit": "0" * 40}, "which is not in this history"),
    ],
)
def test_results_of_code_that_is_not_there_cannot_be_confirmed(repository, record, said):
    path = provenance.RESULTS / "a_one.json"
    held = json.loads(path.read_text())
    held["sessions"][0] |= record
    path.write_text(json.dumps(held))
    with pytest.raises(RefusedError, match=said):
        replay("a_one")


def test_what_has_no_record_or_no_script_is_refused(repository):
    with pytest.raises(RefusedError, match="has no record"):
        replay("another")
    with pytest.raises(RefusedError, match="no script of a result 'another'"):
        replaying._script("another", provenance.RESULTS)
    assert replaying._script("a_one_auto", provenance.RESULTS) == ("benchmarks/a_one.py", ["--auto"])


def test_a_name_that_goes_on_without_a_break_is_of_no_script(repository):
    """Neither to repeat, nor to be told as stale or not run."""
    for name in ("a_one_auto", "a_ones"):
        provenance.save(repository / "benchmarks" / "a_one.py", "# One\n", name=name)
    commit(repository, benchmarks__a_one_py=SCRIPT, benchmarks__a_o_py="")
    with pytest.raises(RefusedError, match="no script of a result 'a_ones'"):
        replay("a_ones")
    found = {one.name: one.state for one in status.of_benchmarks(provenance.RESULTS)}
    assert found["benchmarks/a_o"] == "not run"


def test_command(repository, capsys):
    changed(repository, SCRIPT.replace("FACTOR * i", "i * FACTOR"))
    assert cli.main(["confirm", "benchmarks/a_one"]) == 0
    assert "a_one: the quick run prints the same 12 numbers" in capsys.readouterr().out
    changed(repository, SCRIPT.replace("FACTOR *", "2 * FACTOR *"))
    assert cli.main(["confirm", "benchmarks/a_one"]) == 2
    assert "run it again" in capsys.readouterr().err
