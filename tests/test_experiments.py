from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from benchmarks import provenance
from experiments import __main__ as cli
from experiments import (
    blackbox,
    claims,
    data,
    fig1,
    fig2,
    printed,
    protocol,
    report,
    status,
    steps,
    summary,
    table2,
    table4_paper,
    theory,
    theory_bound,
    uci,
    uci_networks,
    uci_page,
    uci_reasons,
    uci_tuning,
)
from experiments.protocol import Experiment, RefusedError, Store, run, stream
from pimeter.paper import outcome_errors, score_spread
from pimeter.paper.outcomes import propagated

ROOT = Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class ToySettings:
    seed: int = 3
    n_units: int = 5


def toy_measure(settings, unit, rng):
    return [{"unit": unit[0], "draw": float(x), "name": f'a, "{i}"'} for i, x in enumerate(rng.standard_normal(3))]


TOY = Experiment(
    name="toy",
    title="a toy",
    settings=ToySettings(),
    quick=ToySettings(n_units=2),
    units=lambda settings: [(i,) for i in range(settings.n_units)],
    measure=toy_measure,
    tables=lambda rows: {"Draws": rows},
    headline=lambda rows: f"{len(rows)} draws.",
    finding=lambda rows: f"There are {len(rows)} draws.",
    keys=("unit", "name"),
)
TINY = dataclasses.replace(
    fig1.EXPERIMENT,
    settings=fig1.Settings(sizes=(10, 30), n_samples=20, n_slow=3),
    quick=dataclasses.replace(fig1.QUICK, sizes=(10, 20), n_samples=10),
)


@pytest.fixture
def whole(tmp_path):
    """A run without interruption."""
    store = Store(tmp_path / "whole", "toy")
    run(TOY, TOY.settings, store)
    return store


def contents(store):
    """Rows, and the record but for its dates."""
    return store.csv.read_bytes(), re.sub(rb'"date": ".*?"', b'"date": ""', store.json.read_bytes())


def stop_after(n_units):
    """The toy experiment, interrupted in unit n_units; to its record the function is the same."""

    @functools.wraps(toy_measure)
    def measure(settings, unit, rng):
        if unit[0] == n_units:
            raise KeyboardInterrupt
        return toy_measure(settings, unit, rng)

    return dataclasses.replace(TOY, measure=measure)


class TestProtocol:
    def test_rows_come_back_as_they_were_measured(self, whole):
        measured = [row for i in range(5) for row in toy_measure(TOY.settings, (i,), stream(3, (i,)))]
        assert whole.rows() == measured

    def test_settings_seed_and_versions_are_saved(self, whole):
        record = json.loads(whole.json.read_text())
        assert record["settings"] == {"seed": 3, "n_units": 5}
        (session,) = record["sessions"]
        assert session["versions"]["numpy"] == np.__version__
        assert set(session["versions"]) == {"python", *TOY.packages}

    def test_sources_and_commit_are_saved(self, whole):
        (session,) = json.loads(whole.json.read_text())["sessions"]
        assert session["units_before"] == 0
        assert {"tests/test_experiments.py", "experiments/protocol.py", "src/pimeter/quantiles.py"} <= set(
            session["sources"]
        )
        assert session["commit"] == (provenance._git("rev-parse", "HEAD") or None)

    @pytest.mark.parametrize("n_units", range(5))
    def test_resumed_run_writes_the_same_bytes(self, tmp_path, whole, n_units):
        store = Store(tmp_path, "toy")
        with pytest.raises(KeyboardInterrupt):
            run(stop_after(n_units), TOY.settings, store)
        assert len(store.rows()) == 3 * n_units
        run(TOY, TOY.settings, store)
        assert contents(store) == contents(whole)

    def test_a_finished_run_is_not_repeated(self, whole):
        before = contents(whole)
        assert run(stop_after(0), TOY.settings, whole) == whole.rows()
        assert contents(whole) == before

    @pytest.fixture
    def same_origin(self, whole, monkeypatch):
        """Without a look at the sources before each of many runs."""
        made = whole.record().last
        monkeypatch.setattr(protocol, "made_by", lambda *_: made)

    def test_lengths_to_which_the_csv_can_be_cut(self, tmp_path, whole, same_origin):
        """Every tenth, and all next to the end of a line."""
        rows, record = contents(whole)
        store = Store(tmp_path, "toy")
        bounds = [i + near for i, byte in enumerate(rows) if byte == ord("\n") for near in (0, 1, 2)]
        for length in sorted({*range(0, len(rows), 10), *bounds} & set(range(len(rows)))):
            store.csv.write_bytes(rows[:length])
            store.json.write_bytes(record)
            run(TOY, TOY.settings, store)
            assert contents(store) == (rows, record)

    def test_every_point_at_which_writing_a_unit_can_be_killed(self, tmp_path, whole, same_origin):
        rows, record = contents(whole)
        held = json.loads(record)
        bounds = list(held["done"].values())
        held["done"] = dict(list(held["done"].items())[:2])
        store = Store(tmp_path, "toy")
        for length in range(bounds[1], bounds[2] + 1):
            store.csv.write_bytes(rows[:length])
            store.json.write_text(json.dumps(held))
            assert len(store.rows()) == 6
            run(TOY, TOY.settings, store)
            assert contents(store) == (rows, record)

    def test_other_settings_are_refused_and_change_nothing(self, whole):
        before = contents(whole)
        with pytest.raises(RefusedError, match=r"other settings \(seed: 3 there, 4 here\); --fresh"):
            run(TOY, ToySettings(seed=4), whole)
        assert contents(whole) == before

    def test_fresh_starts_anew(self, tmp_path, whole):
        other = Store(tmp_path, "toy")
        run(TOY, ToySettings(seed=4, n_units=2), other)
        run(TOY, TOY.settings, other, fresh=True)
        assert contents(other) == contents(whole)

    def test_other_versions_are_refused_while_work_is_left(self, tmp_path, monkeypatch):
        store = Store(tmp_path, "toy")
        with pytest.raises(KeyboardInterrupt):
            run(stop_after(2), TOY.settings, store)
        monkeypatch.setattr(provenance.platform, "python_version", lambda: "4.0")
        with pytest.raises(RefusedError, match=r"other versions \(python: .* there, 4\.0 here\)"):
            run(TOY, TOY.settings, store)

    @staticmethod
    def half_made_by_other_sources(store, monkeypatch):
        """Two units, one source file of which has changed since."""
        right = protocol.made_by

        def other(experiment, settings):
            now = right(experiment, settings)
            return dataclasses.replace(now, commit="a" * 40, sources={**now.sources, "experiments/protocol.py": "0"})

        with monkeypatch.context() as patch:
            patch.setattr(protocol, "made_by", other)
            with pytest.raises(KeyboardInterrupt):
                run(stop_after(2), TOY.settings, store)

    def test_other_sources_are_refused_while_work_is_left(self, tmp_path, monkeypatch):
        store = Store(tmp_path, "toy")
        self.half_made_by_other_sources(store, monkeypatch)
        before = contents(store)
        with pytest.raises(RefusedError, match=r"other sources \(experiments/protocol\.py\); .* --mixed goes on"):
            run(TOY, TOY.settings, store)
        assert contents(store) == before

    def test_mixed_goes_on_and_records_both(self, tmp_path, monkeypatch, whole):
        store = Store(tmp_path, "toy")
        self.half_made_by_other_sources(store, monkeypatch)
        run(TOY, TOY.settings, store, mixed=True)
        assert store.rows() == whole.rows()
        assert [n for n, _ in store.record().sessions] == [0, 2]
        assert [one.commit == "a" * 40 for _, one in store.record().sessions] == [True, False]
        found = status.of_experiment(TOY, store)
        assert (found.state, found.why) == ("stale", "changed since: experiments/protocol.py")

    def test_status_tells_other_settings_and_missing_units(self, whole):
        found = status.of_experiment(dataclasses.replace(TOY, settings=ToySettings(n_units=7)), whole)
        why = "other settings: n_units: 5 there, 7 here; unfinished, 5 of 7 units"
        assert (found.name, found.state, found.why) == ("experiments/toy", "stale", why)
        assert status.of_experiment(TOY, whole).state == "current"
        assert status.of_experiment(TOY, Store(whole.folder, "none")).state == "not run"

    def test_a_session_that_made_nothing_is_forgotten(self, tmp_path, monkeypatch, whole):
        store = Store(tmp_path, "toy")
        self.half_made_by_other_sources(store, monkeypatch)
        store.csv.write_bytes(b"")  # lost
        run(TOY, TOY.settings, store)
        assert contents(store) == contents(whole)

    def test_other_units_are_refused(self, whole):
        renamed = dataclasses.replace(TOY, units=lambda settings: [("x", i) for i in range(settings.n_units)])
        with pytest.raises(RefusedError, match="units of work"):
            run(renamed, TOY.settings, whole)

    def test_rows_without_a_record_are_refused(self, whole):
        whole.json.unlink()
        with pytest.raises(RefusedError, match=r"toy\.csv has no toy\.json"):
            run(TOY, TOY.settings, whole)

    def test_two_runs_at_once_are_refused(self, whole):
        with whole.locked(), pytest.raises(RefusedError, match="Another run"):
            run(TOY, TOY.settings, whole)

    def test_rows_with_different_columns_are_refused(self, tmp_path):
        uneven = dataclasses.replace(TOY, measure=lambda settings, unit, rng: [{f"column {unit[0]}": 1}])
        with pytest.raises(ValueError, match=r"got \['column 1'\] after \['column 0'\]"):
            run(uneven, TOY.settings, Store(tmp_path, "toy"))

    def test_a_unit_may_have_no_rows(self, tmp_path):
        def odd_units(settings, unit, rng):
            return toy_measure(settings, unit, rng) if unit[0] % 2 else []

        rows = run(dataclasses.replace(TOY, measure=odd_units), TOY.settings, Store(tmp_path, "toy"))
        assert [row["unit"] for row in rows] == [1, 1, 1, 3, 3, 3]

    def test_a_unit_draws_from_its_own_stream(self):
        draws = {stream(seed, unit).random() for seed in (1, 2) for unit in [(1,), (2,), ("1",), (1, 2)]}
        assert len(draws) == 8
        assert stream(1, (2,)).random() == stream(1, (2,)).random()

    def test_progress_bar_only_on_a_terminal(self, tmp_path, monkeypatch, capsys):
        run(TOY, TOY.settings, Store(tmp_path / "a", "toy"))
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        run(TOY, TOY.settings, Store(tmp_path / "b", "toy"))
        shown = capsys.readouterr().err
        assert "[..............................] 0/5" in shown
        assert "[##############################] 5/5" in shown


KILLED = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from experiments.protocol import Store, run

@dataclass(frozen=True)
class Settings:
    seed: int = 7

def units(settings):
    return [(i,) for i in range(8)]

def measure(settings, unit, rng):
    time.sleep(float(sys.argv[2]))
    return [{"unit": unit[0], "draw": x} for x in rng.standard_normal(4).tolist()]

if __name__ == "__main__":
    experiment = SimpleNamespace(
        name="slow",
        settings=Settings(),
        units=units,
        measure=measure,
        packages=("numpy",),
        reads=lambda settings: (),
    )
    run(experiment, experiment.settings, Store(Path(sys.argv[1]), "slow"), n_jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_kill_loses_and_doubles_nothing_and_leaves_no_process(tmp_path, how):
    script = tmp_path / "slow.py"
    script.write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

    def start(folder, seconds):
        command = [sys.executable, str(script), str(folder), str(seconds)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    killed, whole = Store(tmp_path / "killed", "slow"), Store(tmp_path / "whole", "slow")
    process = start(killed.folder, 0.3)
    deadline = time.monotonic() + 60
    while len(killed.rows()) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(how)
    # The workers hold the pipe as well: its end means that they are gone.
    process.communicate(timeout=60)
    assert 8 <= len(killed.rows()) < 32
    for store in (killed, whole):
        process = start(store.folder, 0)
        said = process.communicate(timeout=60)[0].decode().splitlines()
        assert process.returncode == 0
        assert all("slow.py is not of " in line for line in said)  # a script from elsewhere, and nothing else
    assert contents(killed) == contents(whole)


REAL = """
import dataclasses, sys
from pathlib import Path
from experiments import __main__ as cli, fig1
from tests.test_experiments import MANY

cli.EXPERIMENTS["fig1"] = dataclasses.replace(fig1.EXPERIMENT, quick=MANY)
sys.exit(cli.main(["run", "fig1", "--quick"], quick=Path(sys.argv[1])))
"""
MANY = dataclasses.replace(fig1.QUICK, sizes=tuple(range(10, 40)), n_samples=20, n_slow=3)


@pytest.mark.slow
def test_a_killed_figure_goes_on_where_it_stopped(tmp_path):
    def start(folder):
        return subprocess.Popen([sys.executable, "-c", REAL, folder], cwd=ROOT, stdout=subprocess.DEVNULL)

    killed, whole = (Store(tmp_path / name, "fig1-quick") for name in ("killed", "whole"))
    process = start(killed.folder)
    deadline = time.monotonic() + 120
    while not killed.rows() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    process.wait()
    before = killed.rows()
    assert start(killed.folder).wait(timeout=120) == 0
    run(fig1.EXPERIMENT, MANY, whole)
    assert 0 < len(before) < len(whole.rows())
    assert contents(killed) == contents(whole)


class TestPrinted:
    """The paper's neuron as printed."""

    def test_arrives_with_many_errors_and_is_not_available_with_few_far_away(self):
        rng = np.random.default_rng(0)
        errors = np.abs(rng.normal(size=(3000, 2))) * [0.1, 1.0]
        weights, arrived, bounds = printed.trained(errors, 0.95)
        assert_allclose(weights[0], np.quantile(errors[:, 0], 0.95), rtol=0.01)
        assert arrived[0]
        assert bounds.shape == (2,)
        assert np.isnan(printed.weight(np.full(5, 100.0) + np.arange(5), 0.95))
        assert np.isnan(printed.weight(np.empty(0), 0.95))
        assert_allclose(printed.start(0.95), 1.959964 / 5000**0.5, rtol=1e-6)

    def test_few_steps_are_the_beginning_of_all(self):
        errors = np.abs(np.random.default_rng(0).standard_normal((500, 3)))
        neurons = printed.descended(errors, 0.95)
        assert_allclose(printed.after(neurons, 10_000), neurons.quantile_)
        few = printed.after(neurons, 50)
        assert np.all(few <= printed.start(0.95) + 50 * printed.LEARNING_RATE)
        assert np.all(few < neurons.quantile_)

    def test_batches_see_their_own_outcome(self):
        rng = np.random.default_rng(0)
        errors = [0.5 * rng.random(4000), 0.2 * rng.random(4000), 0.3 * rng.random(2000), 0.4 * rng.random(2000)]
        weights = table4_paper._by_batches(errors, rng)
        assert_allclose(weights, [np.quantile(part, 0.95) for part in errors], rtol=0.1)

    def test_propagation_is_the_printed_one(self):
        rng = np.random.default_rng(1)
        score = rng.uniform(size=4000)
        true = (rng.uniform(size=4000) < score).astype(float)
        errors = outcome_errors(true, score)
        found = table4_paper._metrics(true, errors, [float(np.quantile(part, 0.95)) for part in errors])
        spread = score_spread(true, score, metrics=["accuracy", "ppv", "fpr"])
        for short, metric in (("ACC", "accuracy"), ("PPV", "ppv"), ("R_FP", "fpr")):
            assert_allclose(found[short], spread.value[metric])
            # The library's quantile is smoothed.
            assert_allclose(found[f"{short} PIM"], spread.upper[metric] - spread.value[metric], rtol=0.02)

    def test_theory_by_hand(self, tmp_path):
        rows = run(theory.EXPERIMENT, theory.QUICK, Store(tmp_path, "theory"))
        assert all(theory.value(rows, "theorem 1", "printed", "stalled", 20, beta) == 1.0 for beta in theory.BETAS)
        assert theory.value(rows, "theorem 1", "root", "RMSE", beta=theory.BETAS[-1]) < 0.5
        confidence = 0.5 + 1 / np.pi
        for premise, accuracy in (("usual premise", confidence), ("premise as printed", 0.5)):
            found = theory.value(rows, theory.PROOF, f"{premise}, Beta(.5, .5)", theory.SIDES[1])
            assert_allclose(found, accuracy, atol=0.01)  # 50,000 rows: four standard errors
        assert "does not shrink" in theory.finding(rows)

    @pytest.mark.parametrize("name", ["R*_TP", "R*_TN"])
    def test_printed_series_is_the_general_formula(self, name):
        def metric(*rates):
            return theory.metric(name, *rates)

        for delta in theory.DELTAS.values():
            general = propagated(metric, *(np.array([*held.values()]) for held in (theory.RATES, delta)))
            assert_allclose(theory.series(name, theory.RATES, delta), general)

    def test_error_of_a_descent_by_hand(self):
        """At r_p the two densities cancel, and |F - p| by the density is left."""
        row = {"m": 20, "weight": theory.Z, "root": 2.0, "gap": 0.01, "slope": 0.0, "estimated": 0.05}
        density = 2 * stats.norm.pdf(theory.Z)
        assert_allclose(theory_bound.printed(row, theory_bound.KNOWN), 0.01 / density)
        median = theory_bound.ratios([row], theory_bound.ESTIMATED, theory_bound.ROOT)[1]
        assert_allclose(median, (2.0 - theory.Z) / 0.05)
        assert theory_bound.ratios([row], theory_bound.LEFT, theory_bound.ROOT)[1] == np.inf

    def test_descents_side_by_side_are_those_one_by_one(self):
        rng = np.random.default_rng(0)
        samples = [rng.random(m) for m in (5, 800, 5)]
        for n, (weights, arrived) in steps._descents(samples, (40, 300)).items():
            neuron = printed.printed_neuron(steps.LEVEL).set_params(max_iter=n, patience=n)
            for i, errors in enumerate(samples):
                with warnings.catch_warnings(action="ignore"):
                    neuron.fit(errors)
                assert_allclose(weights[i], neuron.quantile_, rtol=1e-6)
                assert arrived[i] == neuron.converged_

    def test_more_steps_close_a_part_of_the_gap(self):
        held = [("sonar", 0.9), ("musk1", 0.1)]
        rows = [
            {"errors": name, "number": i, "steps": n, "found": 1.0 + (n > 5) * part, "root": 2.0}
            for name, part in held
            for i in range(4)
            for n in (5, 50)
        ]
        assert {name: round(one.part, 6) for name, one in steps.ways(rows).items()} == dict(held)
        assert [*steps.limited(rows)] == ["sonar"]
        rows[1]["found"], rows[3]["found"] = 1.0, 1.0  # of two of four shuffles: the interval has one half in it
        assert not steps.limited(rows)


class TestReport:
    def test_table_aligns_words_left_and_numbers_right(self):
        text = report.table_text([{"name": "a", "x": 1.23456, "n": 1}, {"name": "bbbbb", "x": 10.0, "n": ""}])
        assert text.splitlines() == [
            "| name  |      x | n |",
            "|-------|-------:|--:|",
            "| a     |  1.235 | 1 |",
            "| bbbbb | 10.000 |   |",
        ]

    def test_published_values_stand_beside_ours_and_a_miss_is_shown(self, tmp_path):
        ours = [{"unit": i, "name": "a", "draw": 0.5, "n": 3} for i in range(3)]
        (tmp_path / "toy.csv").write_text("unit,name,draw,draw_tolerance\n0,a,0.52,0.05\n1,a,0.7,0.05\n")
        (table,) = report.tables(dataclasses.replace(TOY, tables=lambda _: {"Draws": ours}), [], tmp_path).values()
        assert [row["draw, paper"] for row in table] == [0.52, 0.7, ""]
        assert [row["draw, verdict"] for row in table] == ["", "miss", ""]
        assert list(table[0]) == ["unit", "name", "draw", "draw, paper", "draw, verdict", "n"]

    def test_page_says_what_was_run_and_what_was_not(self, whole):
        never = dataclasses.replace(TOY, name="never")
        found = report.pages([TOY, never], whole.folder, {"toy": "stale: other code"})
        text = found[whole.folder / "toy.md"]
        assert "There are 15 draws." in text
        assert "State: stale: other code." in text
        assert "Not run yet: `python -m experiments run never`." in found[whole.folder / "never.md"]
        assert "Settings: seed 3, n_units 5." in text
        assert f"numpy {np.__version__}" in text
        assert "Unfinished" not in text

    def test_page_shows_an_unfinished_run(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(stop_after(2), TOY.settings, Store(tmp_path, "toy"))
        assert "**Unfinished:** 2 of 5 units" in report.pages([TOY], tmp_path, {})[tmp_path / "toy.md"]

    def test_wide_tables_are_files_and_short_ones_have_the_published_value_in_brackets(self, tmp_path, whole):
        wide = [{f"column {i}": float(i) for i in range(12)}]
        beside = [{"unit": 0, "draw": 0.5, "draw, paper": 0.7, "draw, verdict": "miss"}]
        assert report.short(beside) == [{"unit": 0, "draw": "0.500 (0.700)*"}]
        pages = report.pages([dataclasses.replace(TOY, tables=lambda _: {"Wide": wide})], whole.folder, {})
        assert "[tables/toy.1.csv](tables/toy.1.csv)" in pages[whole.folder / "toy.md"]
        assert pages[whole.folder / "tables" / "toy.1.csv"].splitlines()[1].startswith("0.000,1.000,")

    def test_long_tables_are_files_and_a_brief_may_rest_on_other_results(self, tmp_path, whole):
        long = [{"row": i} for i in range(report.MOST_ROWS + 1)]
        toy = dataclasses.replace(TOY, tables=lambda _: {"Long": long})
        brief = report.Brief(lambda own, other: {"Short": [{"rows": len(own) + len(other)}]}, ("toy",))
        text = report.pages([toy], whole.folder, {}, {"toy": brief})[whole.folder / "toy.md"]
        assert f"All {len(long)} rows: [tables/toy.1.csv](tables/toy.1.csv)" in text
        assert "**Short.**" in text
        assert "|   30 |" in text
        missing = dataclasses.replace(brief, others=("never",))
        text = report.pages([toy], whole.folder, {}, {"toy": missing})[whole.folder / "toy.md"]
        assert "**Short.**" not in text

    def test_page_counts_what_is_within_its_tolerance(self, whole):
        beside = [
            {"draw": 0.5, "draw, paper": paper, "draw, verdict": one} for paper, one in ((0.7, "miss"), (0.5, ""))
        ]
        toy = dataclasses.replace(TOY, tables=lambda _: {"Draws": beside})
        text = report.pages([toy], whole.folder, {})[whole.folder / "toy.md"]
        assert "* where ours is outside its tolerance: 1 of 2 values are within it." in text

    def test_page_marks_sources_that_were_not_committed(self, tmp_path):
        store = Store(tmp_path, "toy")
        run(TOY, TOY.settings, store)
        record = store.record()
        made = dataclasses.replace(record.last, commit="7c5db2b6e8f0", dirty=["experiments/steps.py"])
        store.vouch(dataclasses.replace(record, sessions=((0, made),)))
        assert "Made by 7c5db2b6e8+, " in report.pages([TOY], tmp_path, {})[tmp_path / "toy.md"]


@pytest.mark.slow
class TestFig1:
    @pytest.fixture(scope="class")
    @staticmethod
    def rows(tmp_path_factory):
        return run(TINY, TINY.settings, Store(tmp_path_factory.mktemp("fig1"), "fig1"))

    def test_exact_interval(self):
        # The quartiles of a standard normal distribution are at -+0.67449, its 5 % points at -+1.64485.
        assert_allclose(fig1.exact_interval(np.array([0.5, 0.9])), [2 * 0.6744897501960817, 2 * 1.6448536269514722])
        assert_allclose(fig1.LEVELS, np.linspace(0.05, 0.9, 18))

    @pytest.mark.parametrize("m", [10, 37])
    def test_harrell_davis_is_scipys(self, m):
        sample = np.sort(np.random.default_rng(5).standard_normal((4, m)), axis=1)
        expected = stats.mstats.hdquantiles(sample, prob=list(fig1.LEVELS), axis=1)
        # Both sum m products of order 1; only the order of summation differs.
        assert_allclose(fig1._harrell_davis(sample, fig1.LEVELS, False).quantiles, np.asarray(expected).T, atol=1e-12)

    def test_all_numpy_methods_are_there(self):
        assert len(set(fig1.METHODS)) == 13
        assert set(fig1.QUICK.estimators) < set(fig1.ESTIMATORS)

    def test_a_row_by_hand(self, rows):
        errors = stream(TINY.settings.seed, (30,)).standard_normal((20, 30))
        exact = [2 * stats.norm.ppf((1 + p) / 2) for p in fig1.LEVELS]
        for assumed in ("none", "symmetry"):
            rmse = {"hazen": [], "linear": []}
            for (method, found), sample in ((item, e) for e in errors for item in rmse.items()):
                if assumed == "symmetry":
                    interval = [2 * np.quantile(abs(sample), p, method=method) for p in fig1.LEVELS]
                else:
                    interval = [
                        np.quantile(sample, (1 + p) / 2, method=method)
                        - np.quantile(sample, (1 - p) / 2, method=method)
                        for p in fig1.LEVELS
                    ]
                found.append(np.sqrt(np.mean(np.subtract(interval, exact) ** 2)))
            (row,) = (r for r in rows if (r["m"], r["assumed"], r["estimator"]) == (30, assumed, "numpy hazen"))
            assert_allclose(row["rmse"], np.mean(rmse["hazen"]))
            assert_allclose(row["rmse_se"], stats.sem(rmse["hazen"]))
            assert_allclose(row["ratio"], np.mean(rmse["hazen"]) / np.mean(rmse["linear"]))

    def test_every_estimator_is_measured_both_ways_at_each_size(self, rows):
        cells = [(row["m"], row["assumed"], row["estimator"]) for row in rows]
        assert len(cells) == len(set(cells)) == 2 * 2 * len(fig1.ESTIMATORS)
        assert all(np.isfinite(row["rmse"]) and row["rmse"] > 0 for row in rows)

    def test_numpys_default_is_the_yardstick(self, rows):
        for row in rows:
            if row["estimator"] == fig1.DEFAULT:
                assert (row["ratio"], row["ratio_se"]) == (1, 0)
            if row["assumed"] == "none":
                assert row["ratio"] == row["ratio_to_signed"]

    def test_slow_estimators_say_how_few_samples_they_saw(self, rows):
        assert {row["n_samples"] for row in rows if row["estimator"].startswith("descent")} == {3}
        assert {row["n_samples"] for row in rows if not row["estimator"].startswith("descent")} == {20}

    def test_trained_neurons_see_fewer_samples_of_many_errors_and_start_where_they_are_told(self):
        held = dataclasses.replace(TINY.settings, n_slow_large=2, estimators=("pimeter", fig1.TEXT))
        rows = [row for m in (10, 60) for row in fig1.measure(held, (m,), stream(1, (m,)))]
        assert fig1.samples_seen(rows, fig1.TEXT) == "3, 2 from m = 60 on"
        assert fig1.samples_seen(rows, "pimeter") == "20"
        # So far from all errors a neuron with beta 1000 stays where it started.
        scripts = fig1.ESTIMATORS[fig1.TEXT + fig1.SCRIPTS_START]
        far = np.full((1, 10), 100.0) + np.arange(10)
        assert_allclose(scripts.estimate(far, np.array([0.95]), True).quantiles, printed.start(0.95))
        assert_allclose(scripts.estimate(far, np.array([0.95]), False).quantiles, printed.start(0.9))

    def test_ratio_error_is_that_of_repeated_draws(self):
        rng = np.random.default_rng(11)
        base = 1 + rng.random((2000, 100))
        rmse = base * (0.8 + 0.1 * rng.random((2000, 100)))
        ratios, spreads = np.array([fig1._ratio(*pair) for pair in zip(rmse, base, strict=True)]).T
        # 2,000 repeats know a standard deviation to 1 / sqrt(4000) = 1.6 %; three of these.
        assert_allclose(spreads.mean(), ratios.std(), rtol=0.05)

    @pytest.mark.parametrize("name", [name for name, one in fig1.ESTIMATORS.items() if not one.slow])
    @pytest.mark.parametrize("symmetric", [False, True])
    def test_estimators_find_the_interval_of_a_large_sample(self, name, symmetric):
        errors = np.random.default_rng(2).standard_normal((5, 4000))
        found = fig1.estimated_interval(fig1.ESTIMATORS[name], errors, symmetric=symmetric).quantiles
        # The least certain level, .9, has standard error sqrt(.09 / 4000) / .103 = .046; four of these. Beta 10
        # stretches I(.9) by 1.6 % (.06); where |e| stops at 0 it may lose all of I(.05) = .125, which is known to .01.
        assert_allclose(found, np.tile(fig1.exact_interval(fig1.LEVELS)[:, None], 5), atol=4 * 0.046 + 0.06)

    def test_processes_do_not_change_the_rows(self, tmp_path):
        settings = dataclasses.replace(TINY.quick, sizes=(10, 11, 12))
        alone, shared = Store(tmp_path / "alone", "fig1"), Store(tmp_path / "shared", "fig1")
        run(TINY, settings, alone)
        run(TINY, settings, shared, n_jobs=2)
        assert contents(alone) == contents(shared)

    def test_words_follow_the_rows(self, rows):
        def with_ratio(name, ratio):
            return [{**row, "ratio": ratio, "ratio_se": 0.01} if row["estimator"] == name else row for row in rows]

        assert "20 % less error than numpy's default when nothing" in fig1.headline(with_ratio("pimeter", 0.8))
        assert "30 % more error when both" in fig1.headline(with_ratio("pimeter", 1.3))
        assert "- beta 10: the claim does not hold" in fig1.finding(with_ratio("beta 10", 2.0))
        assert "- beta 10: the claim stays open" in fig1.finding(with_ratio("beta 10", 0.99))
        assert "- beta 10: the claim holds (" in fig1.finding(with_ratio("beta 10", 0.01))
        assert "every numpy method at 2 and Harrell-Davis at 2 of 2 sizes" in fig1.finding(with_ratio("pimeter", 0.01))

    def test_figure_is_drawn(self, rows, tmp_path):
        assert report.draw(TINY, rows, tmp_path / "fig1.png")
        assert (tmp_path / "fig1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
class TestTable2:
    SMALL = ("yacht", "boston", "energy", "concrete", "wine-red")

    @staticmethod
    def verdicts(rows):
        (table,) = report.tables(table2.PSIG, rows).values()
        assert all(line["psig, paper"] != "" for line in table)
        return {line["dataset"]: [line[f"{key}, verdict"] for key in ("psig", "pse", "pse_sd")] for line in table}

    def test_every_published_digit_of_the_stored_run(self):
        rows = Store(cli.RESULTS, "table2-psig").rows()
        assert self.verdicts(rows) == {dataset.name: ["", "", ""] for dataset in table2.DATASETS}
        assert len(rows) == 8 * 20 + 5
        assert {row["form"] for row in rows if row["dataset"] == "boston"} == {"reduced"}

    def test_small_sets_are_found_again(self, data_dir, tmp_path):
        settings = table2.Settings(datasets=self.SMALL)
        rows = run(table2.PSIG, settings, Store(tmp_path, "table2-psig"))
        assert self.verdicts(rows) == {name: ["", "", ""] for name in self.SMALL}

    def test_splits_are_disjoint_and_whole(self):
        split = data.paper_split(308, 0)
        assert [len(part) for part in split] == [221, 56, 31]
        assert sorted(np.concatenate(split).tolist()) == list(range(308))
        assert data.paper_split(308, 1).test.tolist() != split.test.tolist()

    def test_words_follow_the_rows(self):
        rows = Store(cli.RESULTS, "table2-psig").rows()
        assert "in 65 (yacht) to 100 % of the splits of 9 datasets" in table2.headline(rows)
        assert table2.headline(rows) in table2.finding(rows)

    def test_command_line(self, data_dir, tmp_path, monkeypatch, capsys):
        folders = {"results": tmp_path / "results", "quick": tmp_path / "quick"}
        quick = dataclasses.replace(table2.PSIG, quick=table2.Settings(datasets=("yacht",)))
        monkeypatch.setitem(cli.EXPERIMENTS, "table2-psig", quick)
        assert cli.main(["run", "table2", "--columns", "psig", "--quick"], **folders) == 0
        said = capsys.readouterr().out
        assert "| yacht " in said
        assert "miss" not in said
        assert cli.main(["run", "table2", "--columns", "psig,psi"], **folders) == 2
        assert (
            "table2 has the columns paper, paper-song-year, peers, pimeter, psig, psig-song-year, qd, qd-reasons, "
            "qd-song-year, reasons, song-year, tuning, widths." in capsys.readouterr().err
        )
        assert cli.main(["run", "table2", "--columns", "psig", "--splits", "2"], **folders) == 2
        assert (
            "--datasets and --splits are for table2 --columns pimeter, table2 --columns peers"
            in capsys.readouterr().err
        )
        text = report.pages([quick], tmp_path, {})[tmp_path / "table2-psig.md"]
        assert "python -m experiments run table2 --columns psig" in text

    @pytest.mark.parametrize("named", [None, "nowhere"])
    def test_without_data_nothing_is_written(self, named, tmp_path, monkeypatch, capsys):
        monkeypatch.delenv("PIMETER_DATA", raising=False)
        if named:
            monkeypatch.setenv("PIMETER_DATA", str(tmp_path / named))
        folders = {"results": tmp_path / "results", "quick": tmp_path / "quick"}
        assert cli.main(["run", "table2", "--columns", "psig"], **folders) == 2
        assert "PIMETER_DATA must name its folder" in capsys.readouterr().err
        assert not folders["results"].exists()

    def test_an_unknown_dataset_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PIMETER_DATA", str(tmp_path))
        with pytest.raises(RefusedError, match=r"song-year\.csv\.gz is not in the folder"):
            data.regression("song-year")


@pytest.mark.slow
class TestIntervals:
    """Table 2's intervals: the black box, the recipe and its peers, and the page."""

    def test_blend_follows_smooth_and_jumping_targets(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(160, 2))
        for y, best in ((np.sin(3 * X[:, 0]) * X[:, 1], 2), (np.sign(X[:, 0]) + (X[:, 1] > 0.3), None)):
            blend = blackbox.Blend().fit(X[:120], y[:120])
            assert_allclose(blend.weights_.sum(), 1.0)
            assert np.mean((y[120:] - blend.predict(X[120:])) ** 2) < 0.1 * y.var()
            if best is not None:
                assert blend.weights_.argmax() == best

    def test_gradient_of_the_process(self):
        """The search stops where small steps make it no likelier."""
        rng = np.random.default_rng(1)
        X = rng.normal(size=(60, 2))
        y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
        model = blackbox.Smooth().fit(X, y)
        sharpness = model.sharpness_
        assert sharpness[0] > 5 * sharpness[1]  # the second feature says nothing
        again = blackbox.Smooth(logs=model.logs_).fit(X, y)
        assert_allclose(again.predict(X), model.predict(X))
        assert blackbox.Smooth().fit(X, np.ones(60)).predict(X).tolist() == [1.0] * 60

    def test_units_are_splits_and_some_can_be_asked_for(self, tmp_path, monkeypatch):
        wanted = uci.units(uci.Settings())
        assert wanted[:9] == [(name, 0) for name in uci.Settings().datasets]
        assert len(wanted) == 5 * 20 + 4 * 5
        toy = dataclasses.replace(TOY, units=lambda _: [("a", 0), ("b", 0), ("a", 1)])
        store = Store(tmp_path, "toy")
        assert {row["unit"] for row in run(toy, TOY.settings, store, is_wanted=lambda unit: unit[0] == "a")} == {"a"}
        assert run(toy, TOY.settings, store, seconds=-1.0) == store.rows()
        rows = run(toy, TOY.settings, store)
        assert [row["unit"] for row in rows] == ["a"] * 6 + ["b"] * 3

    @pytest.mark.parametrize("columns", ["pimeter", "song-year", *(["peers"] if find_spec("mapie") else [])])
    def test_quick_runs(self, columns, data_dir, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(blackbox, "N_TREES", 5)
        folders = {"results": tmp_path / "results", "quick": tmp_path / "quick"}
        assert cli.main(["run", "table2", "--columns", columns, "--quick"], **folders) == 0
        said = capsys.readouterr().out
        assert "of the test rows are covered" in said
        assert said.count("\n| yacht ") == {"pimeter": 1, "song-year": 0, "peers": 4}[columns]

    def test_deviations_that_are_less_than_chance(self):
        rows = [{"dataset": "boston", "n_test": n} for n in (51, 51)]
        assert uci_page.below_chance(rows, "qd") == ["boston"]  # 0.01 printed, 0.038 by chance
        assert uci_page.below_chance(rows, "pim") == []  # 0.08 printed
        assert uci_page.below_chance([{"dataset": "boston", "n_test": 5100}], "qd") == []

    def test_page_joins_the_columns(self, tmp_path):
        target = tmp_path / "table2.md"
        assert "Not run yet" in uci_page.pages(tmp_path, {})[target]
        for experiment, factor, method in ((uci.EXPERIMENT, 1.0, "pimeter"), (uci.PEERS, 1.25, "MAPIE CV+")):

            def measure(settings, unit, rng, factor=factor, method=method):
                held = {
                    "dataset": unit[0],
                    "split": unit[1],
                    "method": method,
                    "n_train": 90,
                    "n_test": 10,
                    "n_first": 9,
                }
                return [{**held, "picp": 0.95, "mpiw": 0.2, "score": factor}]

            made = dataclasses.replace(experiment, measure=measure)
            run(made, uci.Settings(datasets=("yacht", "boston"), most_splits=2), Store(tmp_path, made.file_name))
        text = uci_page.pages(tmp_path, {})[target]
        assert "at or above `least` on 2 of 2 datasets; 0.950 on average" in text
        assert "smaller than that of QD-Ens on 1 of 2 datasets (not on yacht)" in text
        wider = "yacht is where *pimeter* is wider than QD-Ens, 0.20 against 0.17: it covers 0.950 there, QD-Ens 0.96"
        assert f"{wider}; its interval score is 0.800 of the best peer's." in text
        assert "0.800 in geometric mean over 2 datasets, the largest ratio 0.800" in text
        assert "| yacht   | 0.9 / 0.26         |" in text
        assert (tmp_path / "table2.png").read_bytes().startswith(b"\x89PNG")

    def test_stored_pages_are_what_the_stored_rows_say(self, monkeypatch):
        """Also after a change of the words around the numbers; figures are not drawn anew, and states not compared."""
        monkeypatch.setattr(report, "draw", lambda *_: False)
        monkeypatch.setattr(uci_page, "figure", lambda *_: None)
        found = report.pages(cli.EXPERIMENTS.values(), cli.RESULTS, {}, cli.BRIEF) | uci_page.pages(cli.RESULTS, {})
        found[cli.RESULTS / "misses.md"] = summary.misses(cli.EXPERIMENTS, cli.RESULTS, {})
        found[cli.RESULTS / "README.md"] = summary.page(cli.RESULTS, {})
        state = re.compile(r"^State: .*$", flags=re.MULTILINE)
        last_cell = re.compile(r"\|[^|]*\|$", flags=re.MULTILINE)  # of the summary, which has commits and states

        def plain(path, text):
            text = last_cell.sub("|", text) if path.name == "README.md" else text
            return re.sub(r" +", " ", state.sub("", text)).replace("-", "")

        for path, text in found.items():
            assert plain(path, path.read_text()) == plain(path, text), path.name

    @pytest.mark.slow
    def test_the_summary_shows_the_states_of_its_results(self):
        """`python -m experiments report` writes it anew, last of all."""
        found = status.of_all(cli.EXPERIMENTS.values(), cli.RESULTS)
        states = {one.name.partition("/")[2]: one.short for one in found}
        assert (cli.RESULTS / "README.md").read_text() == summary.page(cli.RESULTS, states)

    def test_the_summary_is_one_screen(self):
        text = (cli.RESULTS / "README.md").read_text()
        assert len(text.splitlines()) <= 80
        assert f"Each of the {len(claims.CLAIMS)} items" in text
        assert all(f"[{claim.item}]({claim.experiments[0]}.md)" in text for claim in claims.CLAIMS)
        assert all(name in cli.EXPERIMENTS for claim in claims.CLAIMS for name in claim.experiments)

    def test_the_typical_trial_is_that_next_to_the_median(self):
        rows = [row for row in Store(cli.RESULTS, "table1").rows() if row["method"] == "QD"]
        for noise, typical in fig2.TYPICAL.items():
            rmse = {row["trial"]: row["rmse"] for row in rows if row["noise"] == noise}
            middle = np.median(list(rmse.values()))
            assert typical == min(rmse, key=lambda trial: abs(rmse[trial] - middle))

    def test_naval_as_the_paper_solved_it(self, data_dir):
        official, papers = data.official("naval"), data.official("naval-turbine")
        assert (official.X.shape[1], papers.X.shape[1]) == (16, 17)
        assert_allclose(papers.X[:, 16], official.y)
        assert len(np.unique(papers.y)) == 26
        assert data.official_files(["naval-turbine"]) == data.official_files(["naval"])

    def test_the_paper_chooses_on_test_rows(self):
        def rows(protocol, tails, picp, mpiw):
            held = {"dataset": "boston", "protocol": f"protocol {protocol}", "tails": tails}
            return [{**held, "split": k, "picp": picp, "mpiw": mpiw} for k in range(2)]

        low = [*rows(1, "symmetric", 0.9, 0.8), *rows(1, "sided", 0.8, 0.7), *rows(2, "symmetric", 0.9, 1.0)]
        (line,) = uci_reasons.paper_choice([*low, *rows(2, "sided", 0.99, 1.2)])
        assert (line["chosen on test rows"], line["picp"]) == ("sided, protocol 2", 0.99)  # the nearest to .95
        (line,) = uci_reasons.paper_choice(low + rows(2, "sided", 0.9, 0.7))
        assert (line["chosen on test rows"], line["mpiw"]) == ("sided, protocol 2", 0.7)  # then the narrowest
        by_criterion = uci_reasons.least_criterion
        (line,) = uci_reasons.paper_choice([*low, *rows(2, "sided", 0.94, 1.2)], by_criterion)
        assert (line["chosen on test rows"], line["met"]) == ("sided, protocol 1", 1)  # the narrowest, if none covers
        (line,) = uci_reasons.paper_choice([*low, *rows(2, "sided", 0.95, 1.2)], by_criterion)
        assert (line["chosen on test rows"], line["met"]) == ("sided, protocol 2", 0)  # covers, less than twice as wide
        (line,) = uci_reasons.paper_choice([*low, *rows(2, "sided", 0.94, 1.2)], uci_reasons.captions_rule)
        assert (line["chosen on test rows"], line["picp"]) == ("sided, protocol 2", 0.94)  # the largest coverage

    def test_a_reason_is_a_change_that_meets_what_is_published(self):
        def rows(change, picp, mpiw):
            form = {"dataset": "boston", "change": change, "picp": picp, "mpiw": mpiw}
            return [
                {**form, "protocol": protocol, "tails": tails}
                for protocol in uci_tuning.PROTOCOLS
                for tails in ("symmetric", "sided")
            ]

        short, long = rows(uci_reasons.SHORT, 0.95, 1.5), rows(uci_reasons.LONG, 0.8, 0.4)
        assert uci_reasons.reason([], "boston") == "not tested"
        assert uci_reasons.reason([*short, *rows("beta 10", 0.84, 0.72)], "boston") == "met with beta 10"
        both = [*rows("beta 10", 0.84, 0.72), *rows("the root", 0.83, 0.7), *rows("not tuned", 0.85, 0.7)]
        assert uci_reasons.reason(both, "boston") == "met with beta 10, the root or not tuned"
        said = uci_reasons.reason([*short, *long], "boston")
        assert said.startswith("none found of 2 changes; nearest: three times the steps, 0.800 / 0.400, and the publ")
        same = [row | {"change": uci_reasons.UNCHANGED} for row in rows("", 0.84, 0.7)]
        assert uci_reasons.reason(same, "boston") == "met with CWC as the rule or the caption's rule"
        assert "| 0.950 / 1.500 " in report.table_text(*uci_reasons.tables(short).values())
        assert uci_reasons.headline(short) == (
            "Published pairs that are met with one thing changed: a tenth of the steps 0 of 1."
        )

    def test_files_that_are_read_are_known_beforehand(self, monkeypatch):
        """The first one: then measuring is stopped."""

        def stop(*parts):
            raise RefusedError("/".join(parts))

        pytest.importorskip("torch")
        monkeypatch.setattr(uci, "find_spec", lambda _: True)
        monkeypatch.setattr(data, "_found", stop)
        for experiment in cli.EXPERIMENTS.values():
            settings = experiment.quick
            if experiment.reads(settings):
                with pytest.raises(RefusedError) as stopped:
                    experiment.measure(settings, experiment.units(settings)[0], np.random.default_rng(0))
                assert str(stopped.value) in experiment.reads(settings), experiment.file_name
        without = {one.file_name for one in cli.EXPERIMENTS.values() if not one.reads(one.settings)}
        assert without == {"fig1", "table1", "table1-paper", "fig2", "theory", "theory-bound"}

    def test_networks_read_what_the_search_found(self):
        for experiment in (uci_networks.PAPER, uci_networks.QD, uci_reasons.EXPERIMENT):
            assert "experiments/results/table2-tuning.csv" in experiment.reads(experiment.settings)
            assert "experiments/results/table2-tuning.csv" not in experiment.reads(experiment.quick)

    def test_peers_without_their_libraries_are_refused(self, monkeypatch):
        monkeypatch.setattr(uci, "find_spec", lambda _: None)
        with pytest.raises(RefusedError, match=r"need mapie and crepes: pip install 'pimeter\[experiments\]'"):
            uci.measure_peers(uci.Settings(), ("yacht", 0), np.random.default_rng())


@pytest.mark.slow
class TestCommandLine:
    @pytest.fixture(autouse=True)
    def tiny(self, monkeypatch):
        monkeypatch.setitem(cli.EXPERIMENTS, "fig1", TINY)

    @pytest.fixture
    def folders(self, tmp_path):
        return {"results": tmp_path / "results", "quick": tmp_path / "quick"}

    def test_quick_never_touches_the_results(self, folders, capsys):
        folders["results"].mkdir()
        kept = folders["results"] / "fig1.csv"
        kept.write_text("precious")
        assert cli.main(["run", "fig1", "--quick"], **folders) == 0
        assert [path.name for path in folders["results"].iterdir()] == ["fig1.csv"]
        assert kept.read_text() == "precious"
        names = sorted(path.name for path in folders["quick"].iterdir())
        assert names == ["fig1-quick.csv", "fig1-quick.json", "fig1-quick.png"]
        said = capsys.readouterr().out
        assert "| pimeter " in said
        assert "than numpy's default when nothing is assumed" in said

    def test_quick_results_are_ignored_by_git(self):
        assert cli.QUICK.relative_to(ROOT).parts[0] == "build"
        assert "build/" in (ROOT / ".gitignore").read_text().split()

    def test_quick_works_without_matplotlib(self, folders, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert cli.main(["run", "fig1", "--quick"], **folders) == 0
        assert "matplotlib is not installed (pip install 'pimeter[plot]')" in capsys.readouterr().out

    def test_run_list_report(self, folders, capsys):
        cli.main(["list"], **folders)
        assert "(not run yet)" in capsys.readouterr().out
        assert cli.main(["run", "fig1", "--jobs", "1"], **folders) == 0
        said = capsys.readouterr().out
        assert "fig1: 0 units read from" in said
        assert ", 2 computed." in said
        assert "The paper concludes" in said
        assert cli.main(["run", "fig1", "--jobs", "1"], **folders) == 0
        assert re.search(r"fig1: 2 units read from .*results, 0 computed\.\n", capsys.readouterr().out)
        cli.main(["list"], **folders)
        assert "(2 of 2 units done)" in capsys.readouterr().out
        cli.main(["report"], **folders)
        text = (folders["results"] / "fig1.md").read_text()
        assert "](fig1.png)" in text
        assert "The paper prints no numbers for this figure" in text
        assert not folders["quick"].exists()

    @pytest.fixture
    def swift(self, tiny, monkeypatch):
        monkeypatch.setitem(cli.EXPERIMENTS, "fig1", dataclasses.replace(TOY, name="fig1"))

    def test_what_was_read_is_said_to_be_stale(self, swift, folders, capsys):
        cli.main(["run", "fig1", "--jobs", "1"], **folders)
        store = Store(folders["results"], "fig1")
        store.json.write_text(re.sub(r'(test_experiments.py": )"\w+"', r'\1"0"', store.json.read_text()))
        capsys.readouterr()
        assert cli.main(["run", "fig1", "--jobs", "1"], **folders) == 0
        assert (
            "0 computed. What was read is stale: changed since: tests/test_experiments.py." in capsys.readouterr().out
        )

    def test_status_lists_all(self, swift, folders, capsys):
        cli.main(["run", "fig1", "--jobs", "1"], **folders)
        capsys.readouterr()
        assert cli.main(["status"], **folders) == 0
        lines = capsys.readouterr().out.splitlines()
        states = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.startswith(("exp", "bench"))}
        assert states["experiments/fig1"].startswith("current")
        assert states["experiments/table1"] == "not run"
        results = {path.stem for path in provenance.RESULTS.glob("*.md")}
        assert results <= {name.partition("/")[2] for name in states}
        assert any(line.startswith(f"{len(states)} results: ") for line in lines)

    def test_refusal_is_a_message_and_not_a_traceback(self, folders, capsys):
        folders["results"].mkdir()
        (folders["results"] / "fig1.csv").write_text("precious")
        assert cli.main(["run", "fig1"], **folders) == 2
        assert "--fresh starts anew" in capsys.readouterr().err

    def test_unknown_datasets_are_named_beside_those_there_are(self, folders, capsys):
        asked = ["run", "table2", "--columns", "pimeter", "--datasets", "yatch"]
        assert cli.main(asked, **folders) == 2
        assert re.search(
            r"table2 --columns pimeter has no dataset 'yatch'; it has yacht, boston", capsys.readouterr().err
        )

    def test_interruption_says_how_to_go_on(self, folders, monkeypatch, capsys):
        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setitem(cli.EXPERIMENTS, "fig1", dataclasses.replace(TINY, measure=interrupted))
        assert cli.main(["run", "fig1", "--jobs", "1"], **folders) == 130
        assert "the same command goes on" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run", "fig9"], "choose from '?fig1"),
            (["run", "fig1", "--jobs", "0"], "integer from 1 up, got '0'"),
            ([], "required"),
        ],
    )
    def test_mistakes_are_explained(self, arguments, message, capsys):
        with pytest.raises(SystemExit, match="2"):
            cli.main(arguments)
        assert re.search(message, capsys.readouterr().err)
