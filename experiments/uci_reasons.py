"""Where Table 2's published intervals are met, and what was tried where they are not.

The paper chooses tails and protocol on test rows, per dataset; so does `paper_choice`, by the rule of the text, the
coverage `closest` to the level, or by one of two others: the least CWC, with which the paper selects models, and what
the table's caption says of the best of two methods. A published pair is met if coverage and width are both within its
standard deviation over splits. Where it is missed, *reasons* repeats the faithful intervals with one thing changed at a
time: a change that meets it is the tested reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np
from sklearn.model_selection import train_test_split

from experiments import uci_networks, uci_tuning
from experiments.data import TURBINE, Official, official
from experiments.printed import printed_neuron
from experiments.protocol import Row, Store, Unit, paper_rows
from experiments.uci_networks import CALIBRATION, LEARNING_RATE, PAPER, TEST, variants
from experiments.uci_splits import LEVEL
from experiments.uci_tuning import PROTOCOLS, RESULTS, Settings
from pimeter.paper import DescendingNeuron

FAITHFUL = f"paper: stops on {CALIBRATION}, descent"
DESCENT = uci_networks.NEURONS["descent"]
UNCHANGED, START, FLAT = "nothing, trained anew", "the scripts' start", "beta 10"
NEURONS = {  # around the same networks
    UNCHANGED: DESCENT,
    START: printed_neuron(LEVEL),
    FLAT: DescendingNeuron(LEVEL, beta=10.0, learning_rate=LEARNING_RATE),
    "the root": uci_networks.NEURONS["root"],
}
AS_TUNED = "as tuned"
PLAIN, SHORT, LESS, LONG = "not tuned", "a tenth of the steps", "a third of the steps", "three times the steps"
STOPPED, SPLITS = "stopped on test rows", "the scripts' splits"
Rule: TypeAlias = Callable[[float, float], tuple[float, float]]  # the least is the best
TRAININGS = (AS_TUNED, PLAIN, SHORT, LESS, STOPPED, SPLITS, LONG)


def units(settings: Settings) -> list[Unit]:
    """Dataset and what is changed, of datasets that the stored rows miss by the text's rule or by CWC.

    Without tuning there are no such rows.
    """
    names = list(settings.datasets)
    if settings.is_tuned:
        held = [row for row in Store(RESULTS, PAPER.file_name).rows() if row["method"] == FAITHFUL]
        chosen = [once(paper_choice(held, rule)) for rule in (closest, least_criterion)]
        missed = {str(row["dataset"]) for lines in chosen for row in lines if not row["met"]}
        names = [name for name in names if name in missed]
    return [(name, training) for training in TRAININGS for name in names]


def files(settings: Settings) -> list[str]:
    """Data, settings, and what is missed."""
    found = ["experiments/results/table2-paper.csv"] if settings.is_tuned else []
    return [*uci_tuning.files(settings), *found]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Means over splits for each protocol and kind of tails."""
    name, training = str(unit[0]), str(unit[1])
    factor = {SHORT: 0.1, LESS: 1.0 / 3.0, LONG: 3.0}.get(training, 1.0)
    changed = replace(
        settings,
        is_tuned=settings.is_tuned and training != PLAIN,
        max_steps=max(1, round(factor * settings.max_steps)),
        max_epochs=max(1, round(factor * settings.max_epochs)),
    )
    neurons = NEURONS if training == AS_TUNED else {training: DESCENT}
    whole = official(name)
    if training == SPLITS:
        whole = _split_as_the_scripts(whole, settings.n_splits(name))
    rows = variants(changed, name, whole, TEST if training == STOPPED else CALIBRATION, neurons, rng)
    found: list[Row] = []
    for change, protocol, tails in product(neurons, PROTOCOLS, ("symmetric", "sided")):
        held = [
            row
            for row in rows
            if row["method"].endswith(f", {change}") and (row["protocol"], row["tails"]) == (protocol, tails)
        ]
        means = {key: float(np.mean([row[key] for row in held])) for key in ("picp", "mpiw", "own_picp")}
        form = {"dataset": name, "change": change, "protocol": protocol, "tails": tails}
        found.append({**form, "splits": len(held), **means})
    return found


def _split_as_the_scripts(whole: Official, n_splits: int) -> Official:
    """Seeds from 1 on; `uci_networks.cut` takes the same seed for the neuron's rows, as they do."""
    rows = np.arange(len(whole.y))
    pairs = [train_test_split(rows, test_size=0.1, random_state=split + 1) for split in range(n_splits)]
    train, test = (np.stack(part) for part in zip(*pairs, strict=True))
    return whole._replace(train=train, test=test)


def least_criterion(picp: float, mpiw: float) -> tuple[float, float]:
    """How good means are by the paper's CWC: the least width, twice as large below the level."""
    return mpiw * (2.0 if picp < LEVEL else 1.0), 0.0


def closest(picp: float, mpiw: float) -> tuple[float, float]:
    """How good means are by the text of section 3: coverage as near to the level as possible, then the width."""
    return abs(picp - LEVEL), mpiw


def captions_rule(picp: float, mpiw: float) -> tuple[float, float]:
    """How good means are by what the table's caption says of QD and PIM: the largest coverage below the level."""
    return (0.0, mpiw) if picp >= LEVEL else (1.0, -picp)


def paper_choice(rows: Sequence[Row], rule: Rule = closest) -> list[Row]:
    """Tails and protocol chosen per dataset by what the *test* rows say.

    Rows are those of one method: its splits, or means over them.
    """
    found: list[Row] = []
    for name in dict.fromkeys(str(row["dataset"]) for row in rows):
        forms: dict[str, dict[str, float]] = {}
        for protocol, tails in product(PROTOCOLS, ("symmetric", "sided")):
            own = [r for r in rows if (r["dataset"], r["protocol"], r["tails"]) == (name, protocol, tails)]
            values = {key: [float(r[key]) for r in own] for key in ("picp", "mpiw")}
            forms[f"{tails}, {protocol}"] = {
                **{key: float(np.mean(values[key])) for key in values},
                **{f"{key}_sd": float(np.std(values[key])) for key in values},
                "splits": len(own),
            }
        best = min(forms, key=lambda form: rule(forms[form]["picp"], forms[form]["mpiw"]))
        chosen, theirs = forms[best], published(name)
        named: Row = {"dataset": name, "chosen on test rows": best, **chosen}
        beside = {f"{key}, published": theirs[key] for key in ("picp", "mpiw")}
        found.append({**named, **beside, "met": int(is_met(name, chosen["picp"], chosen["mpiw"]))})
    return found


RULES = {"CWC as the rule": least_criterion, "the caption's rule": captions_rule}


def published(name: str, key: str = "pim") -> dict[str, float]:
    """The paper's numbers; it has one Naval."""
    row = paper_rows("table2", "dataset")[name.removesuffix(TURBINE)]
    return {what: float(row[f"{key}_{what}"] or np.nan) for what in ("picp", "mpiw", "picp_sd", "mpiw_sd")}


def is_covered(name: str, picp: float) -> bool:
    """Whether coverage is within a standard deviation over splits of what is published, in two digits."""
    theirs = published(name)
    return abs(picp - theirs["picp"]) <= theirs["picp_sd"] + 0.005


def is_met(name: str, picp: float, mpiw: float) -> bool:
    """Whether coverage and width are within a standard deviation over splits of what is published, in two digits."""
    theirs = published(name)
    return is_covered(name, picp) and abs(mpiw - theirs["mpiw"]) <= theirs["mpiw_sd"] + 0.005


def once(lines: Sequence[Row]) -> list[Row]:
    """One line for each published pair: the paper's Naval, done in two ways, is met if either is."""
    found: dict[str, Row] = {}
    for line in lines:
        name = str(line["dataset"]).removesuffix(TURBINE)
        if name not in found or (line["met"] and not found[name]["met"]):
            found[name] = {**line, "dataset": name}
    return list(found.values())


def choices(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """What is chosen with one thing changed: the rule by which, or what the intervals are made with."""

    def chosen(change: str, rule: Rule) -> list[Row]:
        return paper_choice([row for row in rows if row["change"] == change], rule)

    others = dict.fromkeys(str(row["change"]) for row in rows if row["change"] != UNCHANGED)
    by_rule = {name: chosen(UNCHANGED, rule) for name, rule in RULES.items()} if unchanged(rows) else {}
    return by_rule | {change: chosen(change, closest) for change in others}


def unchanged(rows: Sequence[Row]) -> list[Row]:
    """The paper's choice with nothing changed but the random stream."""
    return paper_choice([row for row in rows if row["change"] == UNCHANGED])


def tables(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    """Coverage / width of each dataset by each change, a star where the published pair is met."""
    held = choices(rows)
    lines: list[Row] = []
    for name in dict.fromkeys(str(row["dataset"]) for row in rows):
        theirs = published(name)
        line = {"dataset": name, "published": f"{theirs['picp']} / {theirs['mpiw']}"}
        for change, chosen in {UNCHANGED: unchanged(rows), **held}.items():
            own = next((row for row in chosen if row["dataset"] == name), None)
            line[change] = f"{own['picp']:.3f} / {own['mpiw']:.3f}{' *' * int(own['met'])}" if own else ""
        lines.append(line)
    return {"Coverage / width, chosen by the text's rule; * within the published standard deviations": lines}


def reason(rows: Sequence[Row], name: str) -> str:
    """Which changes meet what is published for a dataset, or how near the nearest comes."""
    held = {change: row for change, chosen in choices(rows).items() for row in chosen if row["dataset"] == name}
    if not held:
        return "not tested"
    met = [change for change, row in held.items() if row["met"]]
    if met:
        return f"met with {' or '.join([', '.join(met[:-1]), met[-1]] if met[1:] else met)}"
    theirs = published(name)

    def distance(change: str) -> float:
        row = held[change]
        return max(abs(float(row[key]) - theirs[key]) / (theirs[f"{key}_sd"] + 0.005) for key in ("picp", "mpiw"))

    nearest = min(held, key=distance)
    row = held[nearest]
    said = f"none found of {len(held)} changes; nearest: {nearest}, {row['picp']:.3f} / {row['mpiw']:.3f}"
    widths = {change: float(held[change]["mpiw"]) for change in (SHORT, LONG) if change in held}
    if len(widths) == 2 and min(widths.values()) <= theirs["mpiw"] <= max(widths.values()):
        said += ", and the published width lies between those of a tenth and three times the steps"
    return said


def headline(rows: Sequence[Row]) -> str:
    """How many published pairs each change meets, in one sentence."""
    said = [
        f"{change} {sum(int(row['met']) for row in chosen)} of {len(chosen)}"
        for change, chosen in choices(rows).items()
    ]
    return f"Published pairs that are met with one thing changed: {', '.join(said)}."


def finding(rows: Sequence[Row]) -> str:
    """The same, and for each dataset what meets its pair."""
    names = dict.fromkeys(str(row["dataset"]) for row in rows)
    return f"{headline(rows)} By dataset: {'; '.join(f'{name}: {reason(rows, name)}' for name in names)}."


EXPERIMENT = replace(
    uci_networks.PAPER,
    columns="reasons",
    title="the paper's intervals with one thing changed at a time (Table 2, reasons)",
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    reads=files,
)
