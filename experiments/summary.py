"""The first page: every item of the paper on one screen, and what could not be reproduced with what was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import CLAIMS, Claim, Verdict
from experiments.confirm import CONFIRMED, kept
from experiments.printed import printed_neuron
from experiments.protocol import Experiment, Row, Store
from experiments.report import table_text
from experiments.uci_splits import LEVEL

INTRODUCTION = """\
# The paper, item by item

The paper is E. Solano-Carrillo's [*Can a single neuron learn predictive
uncertainty?*](https://arxiv.org/abs/2106.03702): a neuron, **PIM**, learns a quantile of a model's errors. SQR and QD
are networks that it is compared with; pimeter is this package. Each of the {n} items as the paper says ("faithful": its
neuron, its selection, its setting, but for fewer repeats where it is said), beside the published value, and as it
should be done ("better"). {counts}.
Every number is computed from the rows stored beside this page by `python -m experiments report`; a verdict follows
from the numbers: "in part" where some of what an item claims or prints comes out, "no" where nothing does, be it the
fault of the paper or of how we repeat it. A reason is one that a command tests: a change that gives what is published,
and need not be what the paper did where several were tried. What "run" names goes after `python -m experiments run`.
"""
WORDS = """\
## Words

- **Text, scripts:** where the paper's text and its published scripts differ, both are run; but Figure 2 has the text's
  curve, and Table 2 the public splits (the scripts' are tried where values are missed).
- **As printed:** the paper's neuron, beta = {beta:g}, learning rate {rate:g}, Adam on all errors, the weight of the
  closest approach. Two things are not printed. The first weight: Tables 1, 3, 4 and Figures 2, 3 take that of the
  scripts, z / sqrt(5000), Table 2 begins halfway between the quartiles of the errors, Figure 1 in both ways. And when
  to give up: here after {n_steps:,} steps, or {patience} that come no closer.
- **Root:** the weight at which the same neuron's output is p, solved for. **Stalled:** a descent that gave up before it
  came there, in a gap between two errors, where the gradient is 0, or for want of steps: with more of them fewer stall.
  Section 2.3 and Theorem 2, which are about quantiles, take a root: that of beta 1000, and pimeter's.
  **CWC:** the paper's coverage-width criterion: the width, about twice as large where coverage is below the level.
  **NA:** a weight that has not moved at all.
- **Met, within:** as near to the published value as three (Table 1) or one (Tables 2, 3, 4) of the paper's own
  deviations, but for rounding; where it prints none, .03 for accuracies and rates (all: `experiments/published`).
- **State:** "current" rows are what the code gives now; "confirmed 2/9" ones are of earlier code, but 2 of their 9
  units came out as stored, or the same by both codes on a machine that trains networks to other digits ("off": by how
  much, at most); "stale" ones are of earlier code; of "unknown" ones nobody recorded it.
"""
HOW = """\
## How to run

- **Data:** `python -m experiments download FOLDER`, then `PIMETER_DATA=FOLDER`; Song Year (200 MB) with
  `--datasets song-year`. Theory (without `--columns steps`), Figures 1 and 2 and Table 1 need none.
- **Run:** `python -m experiments run NAME` goes on where it stopped and says how many units were read and how many
  computed; `--columns A` for some columns of a table, `--fresh` for all anew, `--quick` for a small version that is
  kept apart, `--minutes N` to begin nothing new after that time. `make paper` runs all and writes these pages.
- **Minutes of one core** ("about": from some units; by `run` and `confirm`): {minutes}.
- **Is a result still what the code gives?** `python -m experiments status`, or `make results-status`.
  `python -m experiments confirm NAME --units A,B` computes some units anew and compares them with what is stored.
"""


def page(folder: Path, states: Mapping[str, str]) -> str:
    """The summary: at most one screen of claims, then links."""
    rows = _stored(folder)
    lines: list[Row] = []
    verdicts: list[str] = []
    for claim in CLAIMS:
        found = judged(claim, rows)
        verdicts.append(found.verdict)
        lines.append(
            {
                "item": f"[{claim.item}]({claim.experiments[0]}.md)",
                "claim": claim.claim,
                "verdict": found.verdict,
                "faithful": found.brief or found.faithful,
                "paper": _begun(found.paper),
                "better": _begun(found.better),
                "tested reason": _begun(found.reason),
                "run": ", ".join(f"`{one}`" for one in claim.commands),
                "commit": commits(claim, folder, states),
            }
        )
    counts = ", ".join(f"{verdicts.count(one)} {words}" for one, words in KINDS.items() if verdicts.count(one))
    parts = [INTRODUCTION.format(n=len(CLAIMS), counts=counts), table_text(lines), ""]
    parts.append(
        "[What could not be reproduced, and what was tried](misses.md) has all of what is shortened here. Table 2 as "
        "a whole: [table2](table2.md)."
    )
    others = ", ".join(f"[{path.stem}]({path.name})" for path in _others(folder))
    neuron = printed_neuron(LEVEL)
    words = WORDS.format(n_steps=neuron.max_iter, patience=neuron.patience, beta=neuron.beta, rate=neuron.learning_rate)
    how = HOW.format(minutes=minutes(folder))
    return "\n".join([*parts, f"Every experiment has a page: {others}.\n", words, how])


MOST_SIGNS = 150  # of a cell, beyond which it is cut after a clause
FAR_OFF = 0.01  # fraction of a stored number from which on a page says so
KINDS = {"holds": "hold", "in part": "hold in part", "no": "do not hold", "open": "open"}


def _begun(text: str) -> str:
    """A long text up to the semicolon, outside of parentheses, from which on it has said enough; then dots."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == ";" and not depth and len(text) > MOST_SIGNS and i > MOST_SIGNS // 4:
            return f"{text[:i]}; ..."
    return text


def judged(claim: Claim, rows: Callable[[str], Sequence[Row]]) -> Verdict:
    """The verdict, or that rows are missing."""
    missing = [name for name in claim.experiments if not rows(name) and not name.endswith("song-year")]
    return Verdict("open", "not run yet", "", "", "") if missing else claim.judge(rows)


def _stored(folder: Path) -> Callable[[str], Sequence[Row]]:
    held: dict[str, Sequence[Row]] = {}

    def rows(name: str) -> Sequence[Row]:
        if name not in held:
            held[name] = Store(folder, name).rows()
        return held[name]

    return rows


def commits(claim: Claim, folder: Path, states: Mapping[str, str]) -> str:
    """What made the results of a claim, and whether that is what the code gives."""
    found: dict[str, list[str]] = {}
    for name in (*claim.experiments, *claim.tests):
        record = Store(folder, name).record()
        commit = record.last.commit[:7] if record and record.last.commit else ""
        state = states.get(name, "").partition(":")[0]
        if state == CONFIRMED and record:
            one = kept(folder)[name]
            state += f" {len(one.units)}/{len(record.done)}"
            state += "" if one.off is None or one.off < FAR_OFF else f", off {one.off:.0%}"
        found.setdefault(f"{commit} ({state})".strip(), []).append(name)
    most = max(found.values(), key=len)
    return "; ".join(made if names is most else f"{', '.join(names)}: {made}" for made, names in found.items())


def minutes(folder: Path) -> str:
    """How long a processor takes for each experiment: recorded for all units, or about, from those confirmed."""
    confirmed, said = kept(folder), []
    for path in _others(folder):
        record = Store(folder, path.stem).record()
        n = len(record.done) if record else 0
        some = confirmed.get(path.stem)
        if record and n and len(record.seconds) == n:
            said.append(f"{path.stem} {_minutes(sum(record.seconds.values()))}")
        elif n and some and some.seconds is not None:
            said.append(f"{path.stem} {_minutes(some.seconds / len(some.units) * n, is_estimate=True)}")
        elif n:
            said.append(f"{path.stem} not recorded")
    return ", ".join(said)


def _minutes(seconds: float, *, is_estimate: bool = False) -> str:
    return "under 1" if seconds < 60 else f"{'about ' * is_estimate}{seconds / 60:.0f}"


def _others(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.md") if path.stem not in {"README", "misses", "table2"})


def misses(experiments: Mapping[str, Experiment[Any]], folder: Path, states: Mapping[str, str]) -> str:
    """What is not within the published tolerance, by the finding of the experiment that tested reasons."""
    rows = _stored(folder)
    parts = [
        "# What could not be reproduced, and what was tried\n",
        "One of [all results](README.md). Items that do not hold as a whole, with what their experiment found.\n",
    ]
    for claim in CLAIMS:
        found = judged(claim, rows)
        if found.verdict == "holds":
            continue
        parts.append(f"## {claim.item}: {claim.claim}\n")
        cells = {
            "Verdict": found.verdict,
            "Faithful": found.faithful,
            "Paper": found.paper,
            "Better": found.better,
            "Tested reason": "; ".join(part for part in (found.reason, found.detail) if part),
            "Run": ", ".join(f"`python -m experiments run {one}`" for one in claim.commands),
        }
        parts.append("\n".join(f"- {what}: {text}" for what, text in cells.items() if text) + "\n")
        parts.append(f"State: {commits(claim, folder, states)}\n")
        told = _told(claim, experiments, rows)
        parts += [f"{told}\n"] if told else []
    return "\n".join(parts)


def _told(claim: Claim, experiments: Mapping[str, Experiment[Any]], rows: Callable[[str], Sequence[Row]]) -> str:
    """What the experiment found; of the theory all statements stand on its own page."""
    name = claim.experiments[0]
    if not rows(name) or name == "theory":
        return ""
    return claim.told(rows) if claim.told else experiments[name].finding(rows(name))
