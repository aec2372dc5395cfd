"""Units of stored results are computed anew and compared with what is stored."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import provenance
from experiments import __main__ as cli
from experiments import confirm as confirming
from experiments import status, summary
from experiments.confirm import confirm, kept
from experiments.protocol import Experiment, RefusedError, Store, run


@dataclasses.dataclass(frozen=True)
class Settings:
    seed: int = 3


def measure(settings, unit, rng):
    return [{"name": unit[0], "draw": float(rng.normal()), "missing": math.nan, "n": 7} for _ in range(2)]


TOY = Experiment(
    name="toy",
    title="draws",
    settings=Settings(),
    quick=Settings(),
    units=lambda _: [("a", 0), ("b", 0), ("b", 1)],
    measure=measure,
    tables=lambda rows: {"Draws": rows},
    headline=lambda rows: f"{len(rows)} draws.",
    finding=lambda rows: f"{len(rows)} draws.",
)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A result whose code is not there any more."""
    monkeypatch.setattr(confirming, "is_in_history", lambda _: False)
    monkeypatch.setattr(provenance, "STARTED", math.inf)  # another may edit a file of the repository meanwhile
    monkeypatch.setattr(provenance, "_built", lambda: math.inf)  # nor does it matter which kernel is there
    store = Store(tmp_path, "toy")
    run(TOY, TOY.settings, store)
    return store


@pytest.fixture
def stale(store):
    """A result of other sources."""
    record = json.loads(store.json.read_text())
    record["sessions"][0]["sources"] = dict.fromkeys(record["sessions"][0]["sources"], "another")
    store.json.write_text(json.dumps(record))
    return store


def changed(**values):
    return dataclasses.replace(TOY, measure=lambda *args: [row | values for row in measure(*args)])


def test_units_that_come_out_the_same_are_kept(store):
    found = confirm(TOY, store, lambda unit: unit[0] == "b")
    assert found.units == [("b", 0), ("b", 1)]
    assert kept(store.folder) == {"toy": found}


@pytest.mark.parametrize(
    ("values", "said"), [({"n": 8}, "n 7 stored, 8 now"), ({"missing": 0.0}, "missing nan stored, 0.0 now")]
)
def test_what_differs_is_refused(store, values, said):
    with pytest.raises(RefusedError, match=said):
        confirm(changed(**values), store, lambda _: True)
    assert kept(store.folder) == {}


def test_rounding_is_no_difference(store):
    def rounded(*args):
        return [row | {"draw": row["draw"] * (1 + 1e-9)} for row in measure(*args)]

    assert len(confirm(dataclasses.replace(TOY, measure=rounded), store, lambda _: True).units) == 3


def test_another_number_of_rows_is_refused(store):
    fewer = dataclasses.replace(TOY, measure=lambda *args: measure(*args)[:1])
    with pytest.raises(RefusedError, match="2 rows stored, 1 now"):
        confirm(fewer, store, lambda _: True)


def test_an_unfinished_result_is_not_current(tmp_path):
    store = Store(tmp_path, "toy")
    run(TOY, TOY.settings, store, is_wanted=lambda unit: unit[0] == "a")
    confirm(TOY, store, lambda _: True)
    assert status.of_experiment(TOY, store).short.startswith("stale: unfinished, 1 of 3 units")


EARLIER = """
import math
import types
def measure(settings, unit, rng):
    return [{"name": unit[0], "draw": float(rng.normal()), "missing": math.nan, "n": N} for _ in range(2)]
EXPERIMENTS = {"toy": types.SimpleNamespace(measure=measure, settings=types.SimpleNamespace(seed=3))}
"""


@pytest.fixture
def of_another_machine(store, tmp_path, monkeypatch):
    """A result whose code gives 8 where 7 is stored."""
    tree = tmp_path / "tree"
    (tree / "experiments").mkdir(parents=True)
    (tree / "experiments" / "__init__.py").touch()
    (tree / "experiments" / "__main__.py").write_text(EARLIER.replace("N}", "8}"))
    protocol = Path(confirming.__file__).with_name("protocol.py").read_text()
    (tree / "experiments" / "protocol.py").write_text(protocol)
    (tree / "benchmarks").symlink_to(Path(provenance.__file__).parent)
    monkeypatch.setattr(confirming, "built", lambda _: contextlib.nullcontext(tree))
    monkeypatch.setattr(confirming, "is_in_history", lambda _: True)
    record = json.loads(store.json.read_text())
    sources = dict.fromkeys(record["sessions"][0]["sources"], "another")
    record["sessions"][0] |= {"commit": "c" * 40, "dirty": [], "sources": sources}
    store.json.write_text(json.dumps(record))
    return store


def test_what_the_code_of_its_commit_gives_here_is_no_difference(of_another_machine):
    with pytest.raises(RefusedError, match="n 8 at cccccccccc, 9 now"):
        confirm(changed(n=9), of_another_machine, lambda _: True)
    found = confirm(changed(n=8), of_another_machine, lambda unit: unit[0] == "b")
    assert (found.units, found.then) == ([("b", 0), ("b", 1)], "c" * 40)
    assert kept(of_another_machine.folder) == {"toy": found}
    assert " as by the code of cccccccccc on that machine" in status.of_experiment(TOY, of_another_machine).why


def test_each_unit_is_computed_by_the_code_that_stored_it(of_another_machine, monkeypatch):
    """Of a record of several sessions."""
    held = json.loads(of_another_machine.json.read_text())
    held["sessions"] += [held["sessions"][0] | {"units_before": 2, "commit": "d" * 40}]
    of_another_machine.json.write_text(json.dumps(held))
    right, asked = confirming._computed_at, []

    def computed(commit, name, units):
        asked.append((commit[0], units))
        return right(commit, name, units)

    monkeypatch.setattr(confirming, "_computed_at", computed)
    found = confirm(changed(n=8), of_another_machine, lambda _: True)
    assert asked == [("c", [("a", 0), ("b", 0)]), ("d", [("b", 1)])]
    assert found.then == f"{'c' * 40} {'d' * 40}"


def test_a_link_to_other_rows_counts_no_more(of_another_machine, monkeypatch):
    """Rows were stored anew after the confirmation: it says nothing of these."""
    store = of_another_machine
    confirm(changed(n=8), store, lambda _: True)
    store.csv.write_text(store.csv.read_text().replace(",7\n", ",6\n"))
    linked = kept(store.folder)["toy"].made.commit
    monkeypatch.setattr(confirming, "_computed_at", lambda commit, *_: pytest.fail(commit))
    with pytest.raises(pytest.fail.Exception, match="c" * 40):
        confirm(changed(n=8), store, lambda _: True)
    assert linked != "c" * 40


def test_no_machine_explains_another_number_of_rows(of_another_machine, monkeypatch):
    def longer(*args):
        return [row | {"n": 8} for row in measure(*args)] * (2 if args[1] == ("b", 1) else 1)

    monkeypatch.setattr(confirming, "_computed_at", lambda *_: {("b", 1): longer(None, ("b", 1), np.random)})
    with pytest.raises(RefusedError, match=r"\('b', 1\): 2 rows stored, 4 now"):
        confirm(dataclasses.replace(TOY, measure=longer), of_another_machine, lambda _: True)


def test_code_that_is_not_there_is_not_compared(store):
    with pytest.raises(RefusedError, match=r"n 7 stored, 8 now.*is not in the history"):
        confirm(changed(n=8), store, lambda _: True)


def test_code_that_fails_is_shown(of_another_machine, tmp_path):
    (tmp_path / "tree" / "experiments" / "__main__.py").write_text("raise ValueError('broken')")
    with pytest.raises(RefusedError, match=r"cannot be computed by the code of cccccccccc:\n(.|\n)*broken"):
        confirm(changed(n=8), of_another_machine, lambda _: True)


def test_rows_of_other_settings_cannot_be_compared(store):
    with pytest.raises(RefusedError, match="no rows of the present settings"):
        confirm(dataclasses.replace(TOY, settings=Settings(4)), store, lambda _: True)


def test_a_stale_result_is_confirmed_while_the_code_stays(stale, monkeypatch):
    assert status.of_experiment(TOY, stale).state == "stale"
    confirm(TOY, stale, lambda unit: unit[0] == "a")
    found = status.of_experiment(TOY, stale)
    assert found.state == "confirmed"
    assert found.why.startswith("1 of 3 units come out the same at ")
    assert "changed since" in found.why
    monkeypatch.setattr(status, "changes", lambda *_: ["changed since: everything"])
    assert status.of_experiment(TOY, stale).state == "stale"


def test_other_rows_than_those_that_came_out_the_same_are_stale(stale):
    confirm(TOY, stale, lambda unit: unit[0] == "a")
    assert status.of_experiment(TOY, stale).state == "confirmed"
    stale.csv.write_text(stale.csv.read_text().replace(",7\n", ",6\n"))
    assert status.of_experiment(TOY, stale).state == "stale"


def test_command(store, monkeypatch, capsys):
    monkeypatch.setitem(cli.EXPERIMENTS, "toy", TOY)
    monkeypatch.setattr(cli, "confirm", lambda experiment, _, is_wanted: confirm(experiment, store, is_wanted))
    assert cli.main(["confirm", "toy", "--units", "b", "--splits", "1"], results=store.folder) == 0
    assert "toy: 1 units come out as they are stored." in capsys.readouterr().out
    monkeypatch.setattr(confirming, "_is_same", lambda *_: False)
    assert cli.main(["confirm", "toy"], results=store.folder) == 2
    assert "run it again" in capsys.readouterr().err


def test_the_summary_says_how_long_each_experiment_takes(store):
    """By the seconds that a run keeps of all units, or else by those of units that were confirmed."""
    folder = store.folder
    (folder / "toy.md").write_text("")
    record = store.record()
    assert set(record.seconds) == {unit for unit, _ in record.done}
    assert summary.minutes(folder) == "toy under 1"
    store.vouch(dataclasses.replace(record, seconds={unit: 100.0 for unit, _ in record.done}))
    assert summary.minutes(folder) == "toy 5"
    store.vouch(dataclasses.replace(record, seconds={}))
    assert summary.minutes(folder) == "toy not recorded"
    confirm(TOY, store, lambda unit: unit[0] == "b")
    assert kept(folder)["toy"].seconds < 30
    assert summary.minutes(folder) == "toy under 1"
    slow = dataclasses.replace(kept(folder)["toy"], seconds=120.0)
    (folder / confirming.FILE).write_text(json.dumps({"toy": dataclasses.asdict(slow)}))
    assert summary.minutes(folder) == "toy about 3"
