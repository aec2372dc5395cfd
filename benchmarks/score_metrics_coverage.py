"""Do intervals of ROC AUC, average precision, Brier score and log loss, and bands of curves, hold as often as they say?

    python benchmarks/score_metrics_coverage.py [--draws 1000] [--quick]

Positives and negatives have normal scores on the scale of log-odds, with prevalences of .1 to .5, equal or unequal
variances, calibrated or not, or rounded. The truth is that of a million rows. Draws with fewer than 10 rows of a
class, which are refused, are drawn anew. Bands are judged as a whole: a miss anywhere is a miss.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product

import numpy as np
from provenance import save
from scipy.special import expit, logit

import pimeter as pm
from pimeter.classification import precision_recall_band, roc_band

SEED = 20261119
LENGTHS = (100, 200, 1000)
METRICS = ("roc_auc", "average_precision", "brier", "log_loss")
TRUE_ROWS = 1_000_000
N_POINTS = 101


@dataclass(frozen=True)
class Scores:
    """Scores of two classes."""

    name: str
    distance: float  # of the means of the classes
    spread: float  # of positives; negatives have 1
    slope: float = 1.0  # of log-odds, in proportion to calibrated ones
    shift: float = 0.0
    digits: int | None = None

    def rows(self, rng: np.random.Generator, n: int, prevalence: float) -> tuple[np.ndarray, np.ndarray]:
        y = rng.uniform(size=n) < prevalence
        x = np.where(y, self.distance + self.spread * rng.standard_normal(n), rng.standard_normal(n))
        odds = self.slope * (self.distance * x - self.distance**2 / 2 + logit(prevalence)) + self.shift
        score = np.clip(expit(odds), 1e-9, 1 - 1e-9)
        return y, score if self.digits is None else np.clip(score.round(self.digits), 0.01, 0.99)


SCORES = (
    Scores("weak, too timid", 0.6, 1.0, slope=0.5),
    Scores("fair, unequal variances", 1.3, 2.0),
    Scores("fair, too high, two decimals", 1.3, 1.0, shift=1.0, digits=2),
    Scores("good, too bold", 2.2, 1.0, slope=2.0),
    Scores("very good, calibrated", 3.0, 1.0),
)
PREVALENCES = (0.1, 0.25, 0.5)


def enough_rows(scores: Scores, rng: np.random.Generator, n: int, prevalence: float) -> tuple[np.ndarray, np.ndarray]:
    while True:
        y, score = scores.rows(rng, n, prevalence)
        if 10 <= y.sum() <= n - 10:
            return y, score


@dataclass(frozen=True)
class Truth:
    """Metrics and curves of very many rows."""

    metrics: dict[str, float]
    fpr: np.ndarray
    tpr: np.ndarray
    recall: np.ndarray
    precision: np.ndarray

    @classmethod
    def of(cls, scores: Scores, prevalence: float) -> Truth:
        y, score = scores.rows(np.random.default_rng(SEED), TRUE_ROWS, prevalence)
        found = pm.classification_uncertainty(y, score, metrics=list(METRICS))
        # On the grids of the bands; the precision at a recall of 0 is that of no rows.
        roc = roc_band(y, score, n_points=N_POINTS)
        curve = precision_recall_band(y, score, n_points=N_POINTS)
        return cls(found.value, roc.x, roc.value, curve.x[1:], curve.value[1:])


def cell(scores: Scores, prevalence: float, n: int, truth: Truth, draws: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, SCORES.index(scores), round(100 * prevalence), n])
    hits: dict[str, list[bool]] = {name: [] for name in (*METRICS, "ROC band", "PR band")}
    for _ in range(draws):
        y, score = enough_rows(scores, rng, n, prevalence)
        found = pm.classification_uncertainty(y, score, metrics=list(METRICS))
        for name in METRICS:
            hits[name].append(found.lower[name] <= truth.metrics[name] <= found.upper[name])
        band = roc_band(y, score, n_points=N_POINTS)
        hits["ROC band"].append(bool(((band.lower <= truth.tpr) & (truth.tpr <= band.upper)).all()))
        curve = precision_recall_band(y, score, n_points=N_POINTS)
        inside = (curve.lower[1:] <= truth.precision) & (truth.precision <= curve.upper[1:])
        hits["PR band"].append(bool(inside.all()))
    return {name: float(np.mean(some)) for name, some in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="few draws of few cells; nothing is saved")
    options = parser.parse_args()
    draws = 10 if options.quick else options.draws
    tried = [*product(SCORES[:2] if options.quick else SCORES, PREVALENCES, LENGTHS[:1] if options.quick else LENGTHS)]
    lines, every = [], []
    for scores, prevalence, n in tried:
        if n == LENGTHS[0]:
            truth = Truth.of(scores, prevalence)
        found = cell(scores, prevalence, n, truth, draws)
        every.append(found)
        cells = " | ".join(f"{value:.3f}" for value in found.values())
        lines.append(f"| {scores.name} | {prevalence:g} | {n:,} | {cells} |")
        print(lines[-1], file=sys.stderr, flush=True)
    names = list(every[0])
    head = ["scores", "positives", "rows", *names]
    summary = [
        f"| {name} | {np.mean([one[name] for one in every]):.3f} | {min(one[name] for one in every):.3f} "
        f"| {max(one[name] for one in every):.3f} "
        f"| {sum(0.93 <= one[name] <= (1.0 if 'band' in name else 0.98) for one in every)} of {len(every)} |"
        for name in names
    ]
    about = (
        f"{draws:,} draws per cell (standard error {(0.95 * 0.05 / draws) ** 0.5:.4f}), nominal 95 %. Wanted: .93 to "
        ".98, bands .93 or more; bands are guaranteed to hold as often as they say, or more often. Run with numpy "
        f"{np.__version__}."
    )
    text = "\n".join(
        [
            "# Intervals of metrics of scores",
            "",
            about,
            "",
            "| | mean | least | most | cells as wanted |",
            "|---" * 5 + "|",
            *summary,
            "",
            f"| {' | '.join(head)} |",
            "|---" * len(head) + "|",
            *lines,
            "",
        ]
    )
    print(text)
    if not options.quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
