"""Does a `RiskController` keep its guarantees, and how many rows does it answer beside MAPIE's controller?

    python benchmarks/risk_control.py [--draws 2000] [--quick] [--peers PYTHON]

Each draw is a set of rows that a threshold is chosen on; the true risk of that threshold is known from the
distribution, so that a draw either violates the level or does not. Violations are counted per cell (metric,
distribution of scores, number of rows) and tested against 1 - confidence level (one-sided binomial), Holm's correction
over all cells. With `guarantee="marginal"` the mean risk over draws is tested instead (normal approximation).

`--peers` names a Python with MAPIE: both get the same draws, and the fraction of new rows without an answer is
compared, at the same guaranteed precision, with MAPIE's defaults and with each of its other ways of testing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from provenance import save
from scipy import stats
from scipy.special import expit

import pimeter as pm

SEED = 20261118
LENGTHS = (100, 500, 5000)
CONFIDENCE = 0.9
TRUTH = np.linspace(0.0, 1.0, 200_001)[1:-1]  # levels at which the distribution of scores is tabulated
PEER_DRAWS = 200
PEER_LENGTHS = (100, 200, 500, 2000)


@dataclass(frozen=True)
class Scores:
    """A distribution of scores, and the probability of the positive class at each score."""

    name: str
    quantile: Callable[[np.ndarray], np.ndarray]  # of the score
    probability: Callable[[np.ndarray], np.ndarray]
    digits: int | None = None  # that scores are rounded to

    def sample(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        score = self.quantile(rng.uniform(size=n))
        y = rng.uniform(size=n) < self.probability(score)
        return y, score if self.digits is None else score.round(self.digits)

    @property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores at evenly spaced levels, and probabilities of the positive class."""
        score = self.quantile(TRUTH)
        probability = self.probability(score)
        return (score if self.digits is None else score.round(self.digits)), probability


def logit_normal(mean: float, spread: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda u: expit(stats.norm.ppf(u, mean, spread))


SCORES = (
    Scores("calibrated, wide", logit_normal(0.0, 5.0), lambda s: s),
    Scores("calibrated, timid", logit_normal(0.0, 2.5), lambda s: s),
    Scores("calibrated, 17 % positive", logit_normal(-2.5, 3.0), lambda s: s),
    Scores("too bold", logit_normal(0.0, 4.0), lambda s: expit(0.5 * np.log(s / (1.0 - s)))),
    Scores("worst at the top", lambda u: u, lambda s: np.where(s > 0.97, 0.85, np.where(s > 0.5, 0.96, 0.2))),
    Scores("just below .9", lambda u: u, lambda s: np.where(s > 0.3, 0.895, 0.1)),
    Scores("one decimal", logit_normal(0.0, 4.0), lambda s: s, digits=1),
)
RATE_CELLS = (("precision", 0.9), ("recall", 0.9), ("fpr", 0.1), ("npv", 0.9))


class Truth:
    """Rates of errors at any threshold, from the table of a distribution."""

    def __init__(self, scores: Scores) -> None:
        self.score, probability = scores.table
        self.positive = np.append(0.0, np.cumsum(probability))  # among the lowest scores
        self.negative = np.append(0.0, np.cumsum(1.0 - probability))

    def rate(self, metric: str, threshold: float) -> float:
        """Rate of errors; 0 where nothing is declared."""
        side = "left" if metric == "npv" else "right"
        place = int(np.searchsorted(self.score, threshold, side=side))  # scores below, or not above
        if metric == "npv":
            wrong, among = self.positive[place], place
        elif metric == "precision":
            wrong, among = self.negative[-1] - self.negative[place], len(self.score) - place
        elif metric == "recall":
            wrong, among = self.positive[place], self.positive[-1]
        else:
            wrong, among = self.negative[-1] - self.negative[place], self.negative[-1]
        return float(wrong / among) if among else 0.0


@dataclass(frozen=True)
class Cell:
    """Violations of one guarantee among draws, or the mean risk."""

    metric: str
    guarantee: str
    scores: str
    n: int
    risk: float  # allowed
    draws: int
    violations: int
    mean: float
    error: float
    answered: float  # fraction of draws with a guarantee

    @property
    def p_value(self) -> float:
        if self.guarantee == "marginal":
            return float(stats.norm.sf((self.mean - self.risk) / max(self.error, 1e-12)))
        return float(stats.binom.sf(self.violations - 1, self.draws, 1.0 - CONFIDENCE))


def rate_cell(metric: str, level: float, scores: Scores, n: int, guarantee: str, draws: int) -> Cell:
    rng = np.random.default_rng([SEED, n, RATE_CELLS.index((metric, level)), SCORES.index(scores)])
    truth, risk = Truth(scores), (level if metric == "fpr" else 1.0 - level)
    found, known = [], 0
    for _ in range(draws):
        control = pm.RiskController(metric, level, guarantee=guarantee, confidence_level=CONFIDENCE)
        control.fit(*scores.sample(rng, n))
        known += not control.guarantee_reason_
        found.append(truth.rate(metric, control.threshold_))
    return counted(metric, guarantee, scores.name, n, risk, np.array(found), known / draws)


def counted(metric: str, guarantee: str, name: str, n: int, risk: float, found: np.ndarray, answered: float) -> Cell:
    # The table of the distribution knows a risk to about 1e-5.
    return Cell(
        metric,
        guarantee,
        name,
        n,
        risk,
        len(found),
        int(np.count_nonzero(found > risk + 2e-5)),
        float(found.mean()),
        float(found.std() / len(found) ** 0.5),
        answered,
    )


def demand(rng: np.random.Generator, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Demand between 0 and 30, and predictions of it."""
    known = rng.gamma(4.0, 2.0, size=n)
    noise = rng.standard_t(2.5, size=n) if kind == "heavy tails" else rng.normal(size=n)
    return np.clip(known + 2.0 * noise, 0.0, 30.0), known


def shortfall_cell(kind: str, n: int, guarantee: str, draws: int) -> Cell:
    rng = np.random.default_rng([SEED, n, 77, kind == "heavy tails"])
    level = 0.4
    new_y, new_prediction = demand(np.random.default_rng(SEED), 400_000, kind)
    margins = np.linspace(-15.0, 30.0, 901)
    true = [np.maximum(new_y - np.clip(new_prediction + one, 0.0, 30.0), 0.0).mean() for one in margins]
    found, known = [], 0
    for _ in range(draws):
        control = pm.RiskController("shortfall", level, y_max=30.0, guarantee=guarantee, confidence_level=CONFIDENCE)
        control.fit(*demand(rng, n, kind))
        known += not control.guarantee_reason_
        found.append(0.0 if np.isinf(control.threshold_) else np.interp(control.threshold_, margins, true))
    return counted("shortfall", guarantee, f"demand, {kind}", n, level, np.array(found), known / draws)


def size_cell(n: int, guarantee: str, draws: int) -> Cell:
    rng = np.random.default_rng([SEED, n, 88])
    level, k = 2.0, 8

    def probabilities(rng: np.random.Generator, rows: int) -> np.ndarray:
        drawn = rng.gamma(0.4, size=(rows, k))
        return drawn / drawn.sum(axis=1, keepdims=True)

    new = np.sort(probabilities(np.random.default_rng(SEED), 400_000).ravel())
    found, known = [], 0
    for _ in range(draws):
        control = pm.RiskController("set_size", level, guarantee=guarantee, confidence_level=CONFIDENCE)
        control.fit(None, probabilities(rng, n))
        known += not control.guarantee_reason_
        found.append(k * (1.0 - np.searchsorted(new, control.threshold_, side="right") / new.size))
    return counted("set_size", guarantee, "Dirichlet", n, level, np.array(found), known / draws)


def triage_cell(scores: Scores, n: int, draws: int) -> Cell:
    rng = np.random.default_rng([SEED, n, 99, SCORES.index(scores)])
    truth, found, known = Truth(scores), [], 0
    for _ in range(draws):
        control = pm.RiskController(("npv", "precision"), 0.9, confidence_level=CONFIDENCE).fit(*scores.sample(rng, n))
        known += not control.guarantee_reason_
        low, high = control.threshold_
        found.append(max(truth.rate("npv", low), truth.rate("precision", high)))
    return counted("triage", "training-conditional", scores.name, n, 0.1, np.array(found), known / draws)


def cells(draws: int, lengths: tuple[int, ...]) -> list[Cell]:
    found = []
    for n in lengths:
        for metric, level in RATE_CELLS:
            for scores in SCORES:
                found.append(rate_cell(metric, level, scores, n, "training-conditional", draws))
                if metric in {"recall", "fpr"}:
                    found.append(rate_cell(metric, level, scores, n, "marginal", draws))
        found += [triage_cell(scores, n, draws) for scores in SCORES[:2]]
        few = max(draws // 10, 20)  # the table of each takes longer
        for guarantee in ("training-conditional", "marginal"):
            found += [shortfall_cell(kind, n, guarantee, draws) for kind in ("normal", "heavy tails")]
            found.append(size_cell(n, guarantee, few))
        print(f"{n} rows done", file=sys.stderr, flush=True)
    return found


def holm(p_values: list[float]) -> list[float]:
    order = np.argsort(p_values)
    scaled = np.maximum.accumulate([p_values[i] * (len(order) - rank) for rank, i in enumerate(order)])
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(scaled, 1.0)
    return adjusted.tolist()


PEER = """
import json, sys, warnings
import numpy as np
from mapie.risk_control import BinaryClassificationController
warnings.simplefilter("ignore")
tasks = np.load(sys.argv[1], allow_pickle=True)["tasks"]
found = []
for task in tasks:
    row = {}
    for method in ("bonferroni_holm", "bonferroni", "fixed_sequence"):
        control = BinaryClassificationController(
            lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]), "precision", task["level"],
            confidence_level=task["confidence"], fwer_method=method,
        )
        control.calibrate(task["score"][:, None], task["y"].astype(int))
        row[method] = control.best_predict_param
    found.append(row)
print(json.dumps(found))
"""


def beside_peer(python: str, draws: int, lengths: tuple[int, ...]) -> str:
    """Fraction of rows without an answer at a guaranteed precision, ours and MAPIE's."""
    names = "scores|level|rows|pimeter|MAPIE, default|MAPIE, fixed sequence|against the default|against the better"
    lines = [f"| {names.replace('|', ' | ')} |", "|---" * 8 + "|"]
    every: dict[int, list[tuple[float, float, float]]] = {}
    for n in lengths:
        for level in (0.9, 0.95):
            for scores in SCORES[:4]:
                rng = np.random.default_rng([SEED, 5, n, SCORES.index(scores), round(100 * level)])
                sets = [scores.sample(rng, n) for _ in range(draws)]
                tasks = [{"y": y, "score": s, "level": level, "confidence": CONFIDENCE} for y, s in sets]
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "tasks.npz"
                    np.savez(path, tasks=np.array(tasks, dtype=object))
                    done = subprocess.run([python, "-c", PEER, path], capture_output=True, text=True, check=True)
                theirs = json.loads(done.stdout.splitlines()[-1])
                score, _ = scores.table
                ours = [
                    pm.RiskController("precision", level, confidence_level=CONFIDENCE).fit(*one).threshold_
                    for one in sets
                ]
                own = float(np.mean([(score <= one).mean() for one in ours]))
                peers = {
                    name: float(np.mean([1.0 if one[name] is None else (score < one[name]).mean() for one in theirs]))
                    for name in theirs[0]
                }
                default, best = peers["bonferroni_holm"], min(peers.values())
                every.setdefault(n, []).append((own, default, best))
                lines.append(
                    f"| {scores.name} | {level:g} | {n:,} | {own:.3f} | {default:.3f} | {peers['fixed_sequence']:.3f} "
                    f"| {own / default:.3f} | {own / best:.3f} |"
                )
    for n, some in every.items():
        own, default, best = np.mean(some, axis=0)
        lines.append(f"| all | | {n:,} | {own:.3f} | {default:.3f} | | {own / default:.3f} | {own / best:.3f} |")
    return "\n".join(lines)


def report(found: list[Cell], peers: str, draws: int) -> str:
    adjusted = holm([cell.p_value for cell in found])
    most = max(cell.violations / cell.draws for cell in found if cell.guarantee != "marginal")
    about = (
        f"{draws:,} draws per cell (set size: a tenth of that), confidence {CONFIDENCE:.0%}. `violations`: fraction of "
        "draws whose true risk at the chosen threshold is above the allowed one, to be 10 % at most; `mean`: mean true "
        'risk, which is what `guarantee="marginal"` bounds. p-values with Holm\'s correction over all cells.'
    )
    lines = ["# Risk control", "", about, "", "| | |", "|---|---|", f"| cells | {len(found)} |"]
    lines += [
        f"| smallest p-value after Holm's correction | {min(adjusted):.3f} |",
        f"| most violations | {most:.4f} |",
    ]
    lines += ["", "| metric | guarantee | scores | rows | allowed | violations | mean | guaranteed in | p |"]
    lines += ["|---" * 9 + "|"]
    for cell, p in zip(found, adjusted, strict=True):
        violations = "" if cell.guarantee == "marginal" else f"{cell.violations / cell.draws:.4f}"
        lines.append(
            f"| {cell.metric} | {cell.guarantee} | {cell.scores} | {cell.n:,} | {cell.risk:g} | {violations} "
            f"| {cell.mean:.4f} | {cell.answered:.0%} | {p:.3f} |"
        )
    if peers:
        lines += ["", "## Rows without an answer at the same guaranteed precision", "", peers]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="few draws of few rows; nothing is saved")
    parser.add_argument("--peers", help="a Python that has MAPIE 1.6 or later")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    draws, lengths = (20, (100,)) if options.quick else (options.draws, LENGTHS)
    found = cells(draws, lengths)
    peers = ""
    if options.peers:
        peers = beside_peer(
            options.peers, 5 if options.quick else PEER_DRAWS, (100,) if options.quick else PEER_LENGTHS
        )
    text = report(found, peers, draws)
    print(text)
    if not options.quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
