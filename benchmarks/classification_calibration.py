"""How often are perfect scores called miscalibrated, and how often scores that are off?

    python benchmarks/classification_calibration.py [--quick]

Scores lie around the base rate and labels are drawn from them, so that they are perfect; then they are bent before they
are judged. Beside the test of `reliability` stands what it replaces: Wilson's intervals of ten bins, at a tenth of the
miss each.
"""

from __future__ import annotations

import argparse
import itertools
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from provenance import save
from scipy import stats
from scipy.special import expit, logit

from pimeter.classification.calibration import _equal_bins
from pimeter.classification.consistency import consistency
from pimeter.classification.proportions import Proportion, clopper_pearson, wilson

SEED = 20261201
LEVEL = 0.95
RATES = (0.001, 0.01, 0.05, 0.2, 0.5)
LENGTHS = (200, 500, 1000, 2000, 5000, 10_000)
FAMILY = 0.05  # chance that any cell is rejected by Holm, were all as they should be

LABELS = 10  # draws for the same scores

Bend = Callable[[np.ndarray], np.ndarray]
Interval = Callable[[Proportion, float], tuple[float, float]]
Scores = Callable[[float, int, np.random.Generator], np.ndarray]
DISTRIBUTIONS: dict[str, Scores] = {
    "Beta": lambda rate, n, rng: np.clip(rng.beta(1.0, (1.0 - rate) / rate, n), 1e-12, 1.0 - 1e-12),
    "wide in log-odds": lambda rate, n, rng: expit(rng.normal(logit(rate), 1.5, n)),
    "nearly constant": lambda rate, n, rng: expit(rng.normal(logit(rate), 0.05, n)),
    "three values": lambda rate, n, rng: expit(logit(rate) + rng.choice([-2.0, 0.0, 1.5], n)),
}
BENDS: dict[str, Bend] = {
    "too bold: 1.5 times the log-odds": lambda odds: 1.5 * odds,
    "too timid: .6 times the log-odds": lambda odds: 0.6 * odds,
    "too high: log-odds + .5": lambda odds: odds + 0.5,
    "too low: log-odds - .7": lambda odds: odds - 0.7,
    "a wave in log-odds": lambda odds: odds + 0.8 * np.sin(3.0 * odds),
}


def samples(
    rng: np.random.Generator, distribution: Scores, rate: float, n: int, draws: int, bend: Bend
) -> Iterator[Sample]:
    """Scores, each with several draws of labels, in as many bins as a report has."""
    for _ in range(-(-draws // LABELS)):
        q = distribution(rate, n, rng)
        score = bend(q)
        codes, _ = _equal_bins(score, min(10, max(1, n // 20)))
        rows = np.bincount(codes)
        for _ in range(min(LABELS, draws)):
            is_positive = rng.uniform(size=n) < q
            counts = np.bincount(codes[is_positive], minlength=len(rows))
            found = consistency(score, is_positive, codes, LEVEL)
            yield Sample(found.p_value <= 1.0 - LEVEL, counts, rows, np.bincount(codes, score) / rows)


class Sample(NamedTuple):
    """Whether scores were called miscalibrated, and what is in their bins."""

    is_off: bool
    counts: np.ndarray
    rows: np.ndarray
    score: np.ndarray

    def held(self, interval: Interval, level: float) -> list[bool]:
        """Whether the interval of each bin holds the mean score."""
        bounds = [
            interval(Proportion(count / n, float(n)), level) for count, n in zip(self.counts, self.rows, strict=True)
        ]
        return [low <= score <= high for score, (low, high) in zip(self.score, bounds, strict=True)]

    @property
    def is_off_by_wilson(self) -> bool:
        return not all(self.held(wilson, 1.0 - (1.0 - LEVEL) / len(self.rows)))


def holm(p_values: list[float]) -> int:
    """How many are rejected."""
    ordered = np.sort(p_values)
    passed = ordered > FAMILY / np.arange(len(ordered), 0, -1)
    return int(np.argmax(passed)) if passed.any() else len(ordered)


def section_false_alarms(draws: int, lengths: tuple[int, ...]) -> Iterator[str]:
    yield "\n## Perfect scores\n"
    yield (
        f"{draws:,} samples per cell, {LABELS} draws of labels for each draw of scores. Alarms of the test / of "
        "Wilson's intervals; then the fraction of bins whose bar "
        f"({LEVEL:.0%}, each by itself) holds the mean score, Clopper-Pearson's / Wilson's.\n"
    )
    head = [f"alarms, n = {n:,}" for n in lengths] + [f"bars, n = {n:,}" for n in lengths]
    yield f"| base rate | scores | {' | '.join(head)} |\n|---|---|" + "---|" * len(head)
    p_alarm, p_bar, largest, least = [], [], 0.0, 1.0
    for i, (rate, (name, distribution)) in enumerate(itertools.product(RATES, DISTRIBUTIONS.items())):
        alarms, bars = [], []
        for n in lengths:
            rng = np.random.default_rng([SEED, i, n])
            found = list(samples(rng, distribution, rate, n, draws, lambda q: q))
            seen, old = [one.is_off for one in found], [one.is_off_by_wilson for one in found]
            held, held_old = ([np.mean(one.held(bar, LEVEL)) for one in found] for bar in (clopper_pearson, wilson))
            alarms.append(f"{np.mean(seen):.3f} / {np.mean(old):.3f}")
            bars.append(f"{np.mean(held):.3f} / {np.mean(held_old):.3f}")
            p_alarm.append(float(stats.binom.sf(sum(seen) - 1, draws, 1.0 - LEVEL)))
            error = max(float(np.std(held)), 1e-9) / draws**0.5
            p_bar.append(float(stats.norm.cdf((np.mean(held) - LEVEL) / error)))
            largest, least = max(largest, float(np.mean(seen))), min(least, float(np.mean(held)))
        yield f"| {rate:.1%} | {name} | {' | '.join(alarms + bars)} |"
    yield (
        f"\nAlarms above {1 - LEVEL:.0%}: {holm(p_alarm)} of {len(p_alarm)} cells (Holm); the largest fraction is "
        f"{largest:.3f}. Bars that hold less than {LEVEL:.0%}: {holm(p_bar)} cells; the least fraction is {least:.3f}."
    )


def section_power(draws: int, lengths: tuple[int, ...]) -> Iterator[str]:
    yield "\n## Scores that are off\n"
    yield (
        f"{draws:,} samples per cell, scores wide in log-odds. Alarms of the test / of Wilson's intervals (which are "
        "also raised by perfect scores, see above).\n"
    )
    yield (
        "| scores | base rate | " + " | ".join(f"n = {n:,}" for n in lengths) + " |\n|---|---|" + "---|" * len(lengths)
    )
    for i, ((name, bend), rate) in enumerate(itertools.product(BENDS.items(), RATES)):
        cells = []
        for n in lengths:
            rng = np.random.default_rng([SEED, 100 + i, n])
            found = list(
                samples(rng, DISTRIBUTIONS["wide in log-odds"], rate, n, draws, lambda q, f=bend: expit(f(logit(q))))
            )
            seen, old = [one.is_off for one in found], [one.is_off_by_wilson for one in found]
            cells.append(f"{np.mean(seen):.2f} / {np.mean(old):.2f}")
        yield f"| {name} | {rate:.1%} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, nothing saved")
    quick = parser.parse_args().quick
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scipy"))
    head = f"`python benchmarks/classification_calibration.py`, seed {SEED}, {LEVEL:.0%}."
    lines = [f"# Are perfect scores left alone?\n\n{head} Python {platform.python_version()}, {versions}."]
    print(lines[0], flush=True)
    sections = (
        section_false_alarms(3 if quick else 2000, LENGTHS[:2] if quick else LENGTHS),
        section_power(3 if quick else 500, LENGTHS[:1] if quick else (200, 1000, 5000)),
    )
    for line in itertools.chain(*sections):
        print(line, flush=True)
        lines.append(line)
    if quick:
        print("Nothing saved.")
        return
    save(__file__, "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
