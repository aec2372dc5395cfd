"""Does each method's interval hold the true accuracy, precision and F1, how wide is it, and how long does it take?

    python benchmarks/classification_coverage.py [--classes] [--quick]

Scores follow a Beta distribution and labels are drawn from them, so that the truth is known. Peers
(`confidenceinterval` and `scipy.stats.bootstrap`) get the same rows in the same run. Without `confidenceinterval`
nothing is saved. With `--classes` averages over several classes are tried instead, some of which have few rows or none.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from provenance import save
from scipy import optimize, stats
from scipy.special import expit, logit

import pimeter as pm
from pimeter.classification.confusion import Cells
from pimeter.classification.derivatives import derivatives
from pimeter.classification.rates import METRICS, Rates
from pimeter.classification.several_classes import over_classes
from pimeter.paper import score_spread
from pimeter.paper.outcomes import propagated

SEED = 20261122
LEVEL = 0.95
HAS_PEER = find_spec("confidenceinterval") is not None
NAMES = ("accuracy", "ppv", "f1")
ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95)
FULL_MEMORY = """
import tracemalloc, numpy as np, pimeter as pm
rng = np.random.default_rng(0)
q = rng.uniform(size={n}); y = rng.uniform(size={n}) < q
pm.classification_uncertainty(y[:1000], q[:1000], method="bootstrap")
tracemalloc.start()
pm.classification_uncertainty(y, q, method="bootstrap", n_resamples=2000)
print(tracemalloc.get_traced_memory()[1] / 2**20)
"""


@dataclass(frozen=True)
class Distribution:
    """Calibrated scores from a Beta distribution, with the true confusion matrix at a threshold of 1/2."""

    name: str
    a: float
    b: float

    @property
    def cells(self) -> np.ndarray:
        mean = self.a / (self.a + self.b)
        tp = mean * stats.beta.sf(0.5, self.a + 1, self.b)
        positive = stats.beta.sf(0.5, self.a, self.b)
        return np.array([1 - positive - (mean - tp), tp, mean - tp, positive - tp])

    @property
    def truth(self) -> dict[str, float]:
        return {name: float(METRICS[name](Rates.of(self.cells))) for name in NAMES}

    def rows(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        q = np.clip(rng.beta(self.a, self.b, n), 1e-12, 1 - 1e-12)
        return rng.uniform(size=n) < q, q

    def counted_rows(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels, and scores of 1/4 and 3/4 for methods that only count."""
        counts = rng.multinomial(n, self.cells)
        return np.repeat([0, 1, 1, 0], counts), np.repeat([0.25, 0.75, 0.25, 0.75], counts)


def balanced(accuracy: float) -> Distribution:
    a = optimize.brentq(lambda a: Distribution("", a, a).cells[:2].sum() - accuracy, 0.01, 60)
    return Distribution(f"balanced, accuracy {accuracy:g}", a, a)


RARE = Distribution("2 % positives", 0.08, 0.08 * 49)


@dataclass
class Tally:
    """How often intervals held the truth, and how wide they were."""

    hits: dict[str, list[bool]]
    widths: dict[str, list[float]]

    @classmethod
    def of(cls, results: Iterator[object], truth: dict[str, float]) -> Tally:
        tally = cls({name: [] for name in truth}, {name: [] for name in truth})
        for found in results:
            for name, true in truth.items():
                lower, upper = found.lower[name], found.upper[name]
                tally.hits[name].append(lower <= true <= upper)
                tally.widths[name].append(upper - lower)
        return tally

    def coverage(self, name: str) -> float:
        return float(np.mean(self.hits[name]))

    def width(self, name: str) -> float:
        known = [width for width in self.widths[name] if np.isfinite(width)]
        return float(np.mean(known)) if known else float("nan")

    def row(self) -> str:
        return " | ".join(f"{self.coverage(name):.3f} / {self.width(name):.4f}" for name in self.hits)


def uncertain(y: np.ndarray | None, score: np.ndarray, method: str, rng: np.random.Generator, **more: object) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)
        if method == "pim":
            return score_spread(y, score, metrics=list(NAMES), confidence_level=LEVEL)
        return pm.classification_uncertainty(
            y, score, method=method, metrics=list(NAMES), confidence_level=LEVEL, random_state=rng, **more
        )


def usable(y: np.ndarray) -> bool:
    return 0 < np.count_nonzero(y) < len(y)


def repeated(
    distribution: Distribution, n: int, method: str, repeats: int, rng: np.random.Generator
) -> Iterator[object]:
    draw = distribution.rows if method in {"pim", "calibrated"} else distribution.counted_rows
    done = 0
    while done < repeats:
        y, score = draw(n, rng)
        if usable(y):
            done += 1
            yield uncertain(y, score, method, rng)


def section_labels(repeats: int, lengths: tuple[int, ...]) -> Iterator[str]:
    yield "\n## Intervals from labels\n"
    yield (
        f"{repeats:,} repeats for wilson and bootstrap on balanced classes and n >= 200, {max(repeats // 5, 2):,} "
        "elsewhere; coverage / mean width."
    )
    yield "An interval that is NaN (pim, too few of an outcome) counts as a miss.\n"
    yield "| distribution | n | method | " + " | ".join(NAMES) + " |\n|---|---|---|" + "---|" * len(NAMES)
    kept: dict[str, list[float]] = {"wilson": [], "bootstrap": []}
    distributions = (*map(balanced, ACCURACIES), RARE)
    for i, (distribution, n) in enumerate(itertools.product(distributions, lengths)):
        for j, method in enumerate(("wilson", "bootstrap", "clopper-pearson", "normal", "pim")):
            rng = np.random.default_rng([SEED, i, j])
            is_judged = j < 2 and n >= 200 and distribution is not RARE
            n_repeats = repeats if is_judged else max(repeats // 5, 2)
            tally = Tally.of(repeated(distribution, n, method, n_repeats, rng), distribution.truth)
            yield f"| {distribution.name} | {n:,} | {method} | {tally.row()} |"
            if is_judged:
                kept[method] += [tally.coverage("accuracy")]
    if not kept["wilson"]:
        return
    yield "\n| accuracy, n >= 200, balanced | least | mean | largest | asked for |\n|---|---|---|---|---|"
    for method, found in kept.items():
        yield (
            f"| {method} | {min(found):.4f} | {np.mean(found):.4f} | {max(found):.4f} | .93 to .98 each, .94 to .965 "
            "on average |"
        )


def section_calibrated(repeats: int, lengths: tuple[int, ...]) -> Iterator[str]:
    yield "\n## Without labels: calibrated scores\n"
    distribution = Distribution("Beta(.5, .5)", 0.5, 0.5)
    yield (
        f"{distribution.name}, {repeats:,} repeats; distorted scores are expit(2 logit(q) + .3), which Platt's map "
        "undoes, "
        "q^2, which it does not quite, and q + .15 sin(2 pi q), which it does not at all. Coverage / mean width; "
        "last column: width for accuracy against Wilson's on the "
        "labels that the calibrator had.\n"
    )
    yield (
        "| scores | labels handed over | n | "
        + " | ".join(NAMES)
        + " | width / Wilson |\n|---|---|---|"
        + "---|" * (len(NAMES) + 1)
    )
    distortions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "calibrated": lambda q: q,
        "distorted, in Platt's family": lambda q: expit(2 * logit(q) + 0.3),
        "distorted, not in it": lambda q: q**2,
        "distorted, far from it": lambda q: np.clip(q + 0.15 * np.sin(2 * np.pi * q), 0.0, 1.0),
    }
    for i, ((name, bend), n_cal, n) in enumerate(itertools.product(distortions.items(), (0, 200, 1000), lengths)):
        rng = np.random.default_rng([SEED, 50, i])
        # The decision is that of the scores as they are, so the truth moves with the distortion.
        cut = float(optimize.brentq(lambda q, bend=bend: float(bend(np.array(q))) - 0.5, 1e-6, 1 - 1e-6))
        mean = distribution.a / (distribution.a + distribution.b)
        tp, positive = (
            mean * stats.beta.sf(cut, distribution.a + 1, distribution.b),
            stats.beta.sf(cut, distribution.a, distribution.b),
        )
        cells = np.array([1 - positive - (mean - tp), tp, mean - tp, positive - tp])
        truth = {metric: float(METRICS[metric](Rates.of(cells))) for metric in NAMES}
        wilson = []

        def results(
            n_cal: int = n_cal,
            n: int = n,
            bend: Callable[[np.ndarray], np.ndarray] = bend,
            rng: np.random.Generator = rng,
            wilson: list[float] = wilson,
        ) -> Iterator[object]:
            for _ in range(repeats):
                _, q = distribution.rows(n, rng)
                more = {}
                if n_cal:
                    y_cal, q_cal = distribution.rows(n_cal, rng)
                    more["calibration"] = (y_cal, bend(q_cal))
                    on_labels = pm.classification_uncertainty(y_cal, bend(q_cal), metrics="accuracy")
                    wilson.append(on_labels.upper["accuracy"] - on_labels.lower["accuracy"])
                yield uncertain(None, bend(q), "calibrated", rng, **more)

        tally = Tally.of(results(), truth)
        ratio = f"{tally.width('accuracy') / np.mean(wilson):.2f}" if wilson else ""
        yield f"| {name} | {n_cal or 'none'} | {n:,} | {tally.row()} | {ratio} |"


def section_powered(repeats: int) -> Iterator[str]:
    yield "\n## Some labels: prediction-powered\n"
    yield f"2,000 rows, {repeats:,} repeats; coverage / mean width, and accuracy's against Wilson's on labels.\n"
    yield "| scores | labelled | " + " | ".join(NAMES) + " | width / Wilson |\n|---|---|" + "---|" * (len(NAMES) + 1)
    distribution = Distribution("", 0.5, 0.5)
    for i, (is_poor, n) in enumerate(itertools.product((False, True), (50, 100, 400))):
        rng = np.random.default_rng([SEED, 70, i])
        ratios: list[float] = []

        def results(
            n: int = n, is_poor: bool = is_poor, rng: np.random.Generator = rng, ratios: list[float] = ratios
        ) -> Iterator[object]:
            for _ in range(repeats):
                y, q = distribution.rows(2000, rng)
                # Poor scores decide in the same way, but say nothing of how sure they are.
                score = (
                    np.where(q > 0.5, 0.5 + rng.uniform(0.01, 0.5, len(q)), rng.uniform(0.0, 0.5, len(q)))
                    if is_poor
                    else q
                )
                target = y.astype(float)
                target[n:] = np.nan
                found = uncertain(target, score, "prediction-powered", rng)
                few = pm.classification_uncertainty(y[:n], score[:n], metrics="accuracy")
                ratios.append(
                    (found.upper["accuracy"] - found.lower["accuracy"])
                    / (few.upper["accuracy"] - few.lower["accuracy"])
                )
                yield found

        tally = Tally.of(results(), distribution.truth)
        name = "poor" if is_poor else "calibrated"
        yield f"| {name} | {n} | {tally.row()} | {np.mean(ratios):.2f} |"


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def section_peers(quick: bool) -> Iterator[str]:
    yield "\n## Peers\n"
    repeats = 20 if quick else 1000
    distribution = balanced(0.9)
    truth = distribution.truth
    n = 200
    rng = np.random.default_rng([SEED, 80])
    rows = [distribution.counted_rows(n, rng) for _ in range(repeats)]
    methods: dict[str, Callable[[np.ndarray, np.ndarray], dict[str, tuple[float, float]]]] = {
        "pimeter, bootstrap": lambda y, s: both(
            pm.classification_uncertainty(y, s, method="bootstrap", metrics=list(NAMES))
        ),
        "pimeter, wilson": lambda y, s: both(pm.classification_uncertainty(y, s, metrics=list(NAMES))),
        "scipy.stats.bootstrap, BCa": scipy_bootstrap,
    }
    if HAS_PEER:
        methods["confidenceinterval, analytic"] = confidenceinterval_analytic
    yield f"{distribution.name}, n = {n}, {repeats:,} repeats (a tenth for scipy); coverage / mean width; time.\n"
    yield "| method | " + " | ".join(NAMES) + " | time |\n|---|" + "---|" * (len(NAMES) + 1)
    base = None
    for name, method in methods.items():
        some = rows[: max(repeats // 10, 2)] if name.startswith("scipy") else rows
        method(*some[0])
        start = time.perf_counter()
        bounds = [method(*row) for row in some]
        spent = (time.perf_counter() - start) / len(some)
        base = base or spent
        cells = []
        for metric in NAMES:
            held = [each[metric][0] <= truth[metric] <= each[metric][1] for each in bounds if metric in each]
            widths = [each[metric][1] - each[metric][0] for each in bounds if metric in each]
            cells.append(f"{np.mean(held):.3f} / {np.mean(widths):.4f}" if held else "")
        yield f"| {name} | {' | '.join(cells)} | {spent / base:.1f} |"
    n_all, n_peer = (20_000, 1000) if quick else (1_000_000, 10_000)
    rng = np.random.default_rng([SEED, 90])
    y, q = distribution.rows(n_all, rng)
    right = (y == (q > 0.5))[:n_peer].astype(float)

    def peer() -> object:
        return stats.bootstrap((right,), np.mean, n_resamples=2000, vectorized=True, batch=100, rng=rng)

    ratios = []
    for _ in range(3):
        ours = median_seconds(lambda: pm.classification_uncertainty(y, q, method="bootstrap", random_state=0), 3)
        ratios.append(ours / median_seconds(peer, 1))
    memory = float(
        subprocess.run(
            [sys.executable, "-c", FULL_MEMORY.format(n=n_all)], capture_output=True, text=True, check=True
        ).stdout
    )
    yield (
        f"\nAll {len(METRICS)} metrics, n = {n_all:,}, 2,000 resamples, against `scipy.stats.bootstrap` "
        f"of accuracy alone at n = {n_peer:,} (BCa, in batches of 100): {np.median(ratios):.3f} of its time, "
        f"{memory:.0f} MB at the peak beyond labels and scores (traced by tracemalloc in a process of its own)."
    )


def both(found: object) -> dict[str, tuple[float, float]]:
    return {name: (found.lower[name], found.upper[name]) for name in found.value}


def scipy_bootstrap(y: np.ndarray, score: np.ndarray) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(0)
    predicted = (score > 0.5).astype(int)

    def statistic(metric: str) -> Callable[..., np.ndarray]:
        def value(y: np.ndarray, z: np.ndarray, axis: int) -> np.ndarray:
            cells = [((y == a) & (z == b)).sum(axis=axis).astype(float) for a, b in ((0, 0), (1, 1), (1, 0), (0, 1))]
            return METRICS[metric](Rates.of(np.array(cells)))

        return value

    found = {}
    for metric in NAMES:
        done = stats.bootstrap(
            (y, predicted),
            statistic(metric),
            paired=True,
            vectorized=True,
            n_resamples=2000,
            confidence_level=LEVEL,
            rng=rng,
        ).confidence_interval
        found[metric] = (float(done.low), float(done.high))
    return found


def confidenceinterval_analytic(y: np.ndarray, score: np.ndarray) -> dict[str, tuple[float, float]]:
    import confidenceinterval as ci

    predicted = (score > 0.5).astype(int)
    return {
        "accuracy": ci.accuracy_score(y, predicted, confidence_level=LEVEL)[1],
        "ppv": ci.ppv_score(y, predicted, confidence_level=LEVEL)[1],
        "f1": ci.f1_score(y, predicted, confidence_level=LEVEL, average="binary")[1],
    }


def section_propagation(n_points: int) -> Iterator[str]:
    yield "\n## The paper's propagation against the corners of the box\n"
    yield (
        f"{n_points:,} random classifiers with rates of true outcomes from .6 to .95, positives from 20 "
        "to 80 %, and four deltas up "
        "to .02: what the propagation says over the largest change among the 16 corners, all four rates "
        "free; beside it the "
        "root of the sum of squares, what independent small changes would give.\n"
    )
    yield "| metric | least | median | largest | root-sum-square, median |\n|---|---|---|---|---|"
    for name in ("f1", "mcc", "ppv", "npv"):
        rng = np.random.default_rng([SEED, 100])
        ratios, squares = [], []
        for _ in range(n_points):
            tn, tp = rng.uniform(0.6, 0.95, 2)
            p_p = rng.uniform(0.2, 0.8)
            at, delta = np.array([tn, tp, 1 - tp, 1 - tn]), rng.uniform(0.002, 0.02, 4)

            def metric(*r: object, p_p: float = p_p, name: str = name) -> object:
                return METRICS[name](Rates(*r, 1 - p_p, p_p))

            corners = [metric(*(at + delta * np.array(signs))) for signs in itertools.product((-1, 1), repeat=4)]
            largest = np.abs(np.array(corners) - metric(*at)).max()
            ratios.append(propagated(metric, at, delta) / largest)
            squares.append(np.sqrt(np.sum((derivatives(metric, at)[0] * delta) ** 2)) / largest)
        yield f"| {name} | {min(ratios):.4f} | {np.median(ratios):.4f} | {max(ratios):.4f} | {np.median(squares):.3f} |"


AVERAGES = {"macro recall, balanced accuracy": "tpr", "macro precision": "ppv", "macro F1": "f1", "macro MCC": "mcc"}
RECALLS: dict[str, Callable[[int], np.ndarray]] = {
    "recall .6": lambda k: np.full(k, 0.6),
    "recall .8": lambda k: np.full(k, 0.8),
    "recall .95": lambda k: np.full(k, 0.95),
    "recall .95 to .4, rare classes worst": lambda k: np.linspace(0.95, 0.4, k),
    "recall .97 and .08 in turn": lambda k: np.where(np.arange(k) % 2, 0.08, 0.97),
}
FAMILY = 0.05  # chance that any cell is rejected by Holm, were all as they should be


def confusion(fractions: np.ndarray, recall: np.ndarray) -> np.ndarray:
    """Cells (k, k) of true and predicted classes; mistakes are spread like the classes themselves."""
    k = len(fractions)
    wrong = np.tile(fractions, (k, 1)) * (1.0 - np.eye(k))
    return fractions[:, None] * (np.diag(recall) + (1.0 - recall)[:, None] * wrong / wrong.sum(axis=1, keepdims=True))


def outcomes(distribution: np.ndarray) -> np.ndarray:
    """TN, TP, FN, FP of each class against all others, (4, k)."""
    tp, fn, fp = (
        np.diag(distribution),
        distribution.sum(axis=1) - np.diag(distribution),
        distribution.sum(axis=0) - np.diag(distribution),
    )
    return np.array([1.0 - tp - fn - fp, tp, fn, fp])


def section_classes(repeats: int, lengths: tuple[int, ...]) -> Iterator[str]:
    yield "\n## Averages over classes\n"
    yield (
        f"{repeats:,} repeats; coverage / mean width. The truth is the average over all classes, also where some have "
        "no row in the sample. Fractions of Zipf's classes are as 1, 1/2, 1/3, ...\n"
    )
    yield f"| classes | recall | n | {' | '.join(AVERAGES)} |\n|---|---|---|" + "---|" * len(AVERAGES)
    p_values, least = [], 1.0
    for i, (k, is_zipf, (name, recall)) in enumerate(itertools.product((3, 10), (False, True), RECALLS.items())):
        fractions = 1.0 / np.arange(1, k + 1) if is_zipf else np.ones(k)
        distribution = confusion(fractions / fractions.sum(), recall(k))
        metrics = {name: METRICS[metric] for name, metric in AVERAGES.items()}
        truth = {name: float(np.mean(metric(Rates.of(outcomes(distribution))))) for name, metric in metrics.items()}
        for n in lengths:
            rng = np.random.default_rng([SEED, 200 + i, n])
            tally = Tally({name: [] for name in truth}, {name: [] for name in truth})
            for counts in rng.multinomial(n, distribution.ravel(), repeats).astype(float):
                for metric, found in over_classes(Cells(counts, counts, counts), k, metrics, LEVEL).items():
                    tally.hits[metric].append(found.lower <= truth[metric] <= found.upper)
                    tally.widths[metric].append(found.upper - found.lower)
            kind = "Zipf" if is_zipf else "balanced"
            yield f"| {k}, {kind} | {name} | {n:,} | {tally.row()} |"
            p_values += [float(stats.binom.cdf(sum(hits), repeats, LEVEL)) for hits in tally.hits.values()]
            least = min(least, *map(tally.coverage, truth))
    ordered = np.sort(p_values)
    passed = ordered > FAMILY / np.arange(len(ordered), 0, -1)
    rejected = int(np.argmax(passed)) if passed.any() else len(ordered)
    yield f"\nCoverage below {LEVEL:.0%}: {rejected} of {len(p_values)} cells (Holm); the least is {least:.3f}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repeats, nothing saved")
    parser.add_argument("--classes", action="store_true", help="averages over several classes instead of two classes")
    given = parser.parse_args()
    quick = given.quick
    names = ["pimeter", "numpy", "scipy", "scikit-learn", *(["confidenceinterval"] if HAS_PEER else [])]
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    command = f"python benchmarks/classification_coverage.py{' --classes' if given.classes else ''}"
    head = f"`{command}`, seed {SEED}, {LEVEL:.0%}."
    lines = [f"# Does each interval hold the truth?\n\n{head} Python {platform.python_version()}, {versions}."]
    print(lines[0], flush=True)
    sections = (
        section_propagation(20 if quick else 2000),
        section_peers(quick),
        section_powered(5 if quick else 1000),
        section_calibrated(3 if quick else 500, (200,) if quick else (1000, 10_000)),
        section_labels(5 if quick else 5000, (40,) if quick else (40, 200, 1000, 10_000)),
    )
    if given.classes:
        sections = (section_classes(3 if quick else 2000, (50,) if quick else (50, 100, 300, 1000)),)
    elif quick:
        sections += (section_classes(3, (50,)),)
    for line in itertools.chain(*sections):
        print(line, flush=True)
        lines.append(line)
    if given.classes and not quick:
        save(__file__, "\n".join([*lines, ""]), name="classification_coverage_classes")
        return
    if quick or not HAS_PEER:
        print("Nothing saved.")
        return
    save(__file__, "\n".join([*lines, ""]), packages=["confidenceinterval"])


if __name__ == "__main__":
    main()
