"""How far off are the levels of a `QuantileSketch`, whatever the spread of the values and the way they come?

    python benchmarks/sketch_spread.py [--quick]

Values over hundreds of orders of magnitude, ties, weights and streams whose scale moves come in one update, in many, in
rising order or through bytes and merges. The distance of the level asked for from the levels that the answer has among
all values, `[fraction below, fraction up to]`, in units of pi/size: the largest over 501 levels, settings of `size` and
seeds. The table goes to `results/sketch_spread.md`.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator

import numpy as np
from provenance import save

import pimeter as pm

LEVELS = np.concatenate([[1e-4], np.linspace(0.001, 0.999, 499), [0.9999]])
LENGTHS = (16, 64, 512)
SEED = 1000  # the first of the seeds reported on; smaller ones were looked at

Values = np.ndarray
Draw = Callable[[np.random.Generator, int], Values]


def signs(rng: np.random.Generator, n: int) -> Values:
    return rng.choice([-1.0, 1.0], n)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "two humps": lambda rng, n: 10.0 * signs(rng, n) + rng.standard_normal(n),
    "lognormal, sigma = 5": lambda rng, n: rng.lognormal(0.0, 5.0, n),
    "lognormal, sigma = 50": lambda rng, n: rng.lognormal(0.0, 50.0, n),
    "1e-100 to 1e100": lambda rng, n: 10.0 ** rng.uniform(-100, 100, n),
    "the same, signed": lambda rng, n: signs(rng, n) * 10.0 ** rng.uniform(-100, 100, n),
    "normal, scales 1e-100 to 1e100": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-100, 101, n),
    "half 0, half 1e-100 to 1e100": lambda rng, n: rng.integers(0, 2, n) * 10.0 ** rng.uniform(-100, 100, n),
    "normal, scale grows by e^400": lambda rng, n: rng.standard_normal(n) * np.exp(np.linspace(-200, 200, n)),
    "normal, scale falls by e^400": lambda rng, n: rng.standard_normal(n) * np.exp(np.linspace(200, -200, n)),
    "normal, a scale for each 50th": lambda rng, n: (
        rng.standard_normal(n) * np.repeat(10.0 ** rng.integers(-100, 101, 50), -(-n // 50))[:n]
    ),
    "ties: six values": lambda rng, n: rng.integers(0, 6, n) + 0.0,
    "ties: rounded normal": lambda rng, n: np.round(3.0 * rng.standard_normal(n)),
    "ties: 200 powers of 10": lambda rng, n: 10.0 ** rng.integers(-100, 100, n),
}
WEIGHTS: dict[str, Draw] = {
    "weights, lognormal, sigma = 1": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "weights, lognormal, sigma = 3": lambda rng, n: rng.lognormal(0.0, 3.0, n),
    "weights, one has half": lambda rng, n: np.where(np.arange(n) == rng.integers(n), n, 1.0),
}


def at_once(size: int, parts: list[tuple[Values, Values]], rng: np.random.Generator) -> pm.QuantileSketch:  # noqa: ARG001
    values, weights = (np.concatenate(some) for some in zip(*parts, strict=True))
    return pm.QuantileSketch(size).update(values, weights)


def stream(size: int, parts: list[tuple[Values, Values]], rng: np.random.Generator) -> pm.QuantileSketch:  # noqa: ARG001
    sketch = pm.QuantileSketch(size)
    for values, weights in parts:
        sketch = pm.QuantileSketch.from_bytes(sketch.update(values, weights).to_bytes())
    return sketch


def merged(size: int, parts: list[tuple[Values, Values]], rng: np.random.Generator) -> pm.QuantileSketch:
    sent = [pm.QuantileSketch(size).update(values, weights).to_bytes() for values, weights in parts]
    whole = pm.QuantileSketch(size)
    for i in rng.permutation(len(sent)):
        whole = whole.merge(pm.QuantileSketch.from_bytes(sent[i]))
    return whole


def in_pairs(size: int, parts: list[tuple[Values, Values]], rng: np.random.Generator) -> pm.QuantileSketch:  # noqa: ARG001
    sketches = [pm.QuantileSketch(size).update(values, weights) for values, weights in parts]
    while len(sketches) > 1:
        rest = sketches[len(sketches) // 2 * 2 :]
        sketches = [a.merge(b) for a, b in zip(sketches[::2], sketches[1::2], strict=False)] + rest
    return sketches[0]


# What happens to the parts of a stream, of how many parts, and whether they come in rising order.
WAYS: dict[str, tuple[Callable[..., pm.QuantileSketch], int, bool]] = {
    "one update": (at_once, 1, False),
    "7 merged": (merged, 7, False),
    "7 merged, rising": (merged, 7, True),
    "100 updates": (stream, 100, False),
    "100 updates, rising": (stream, 100, True),
    "100 merged": (merged, 100, False),
    "64 merged in pairs": (in_pairs, 64, False),
}


def level_error(sketch: pm.QuantileSketch, values: Values, weights: Values) -> float:
    """Largest distance of a level from those of its answer, in units of pi/size."""
    order = np.argsort(values)
    cumulative = np.concatenate([[0.0], np.cumsum(weights[order])])
    answers = sketch.quantile(LEVELS)
    below, up_to = (
        cumulative[np.searchsorted(values[order], answers, side)] / cumulative[-1] for side in ("left", "right")
    )
    return float(np.maximum(below - LEVELS, LEVELS - up_to).max() / (np.pi / sketch.size))


def samples(rng: np.random.Generator, n: int) -> Iterator[tuple[str, Values, Values]]:
    for name, draw in DISTRIBUTIONS.items():
        yield name, draw(rng, n), np.ones(n)
    for name, draw in WEIGHTS.items():
        yield f"Cauchy, {name}", rng.standard_cauchy(n), draw(rng, n)
        yield f"1e-100 to 1e100, {name}", DISTRIBUTIONS["the same, signed"](rng, n), draw(rng, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    quick = parser.parse_args().quick
    n, n_seeds, lengths = (2000, 1, LENGTHS[:1]) if quick else (30_000, 5, LENGTHS)
    print(f"numpy {np.__version__}")
    worst: dict[str, dict[str, float]] = {}
    for seed in range(SEED, SEED + n_seeds):
        rng = np.random.default_rng(seed)
        for distribution, values, weights in samples(rng, n):
            for way, (sketched, n_parts, is_rising) in WAYS.items():
                order = np.argsort(values) if is_rising else np.arange(n)
                x, w = values[order], weights[order]
                parts = list(zip(np.array_split(x, n_parts), np.array_split(w, n_parts), strict=True))
                for size in lengths:
                    found = level_error(sketched(size, parts, rng), x, w)
                    row = worst.setdefault(distribution, dict.fromkeys(WAYS, 0.0))
                    row[way] = max(row[way], found)
    lines = [
        f"| {distribution} | {' | '.join(f'{error:.2f}' for error in row.values())} |"
        for distribution, row in worst.items()
    ]
    head = f"| values | {' | '.join(WAYS)} |\n{'|---' * (1 + len(WAYS))}|\n"
    print(head + "\n".join(lines))
    if not quick:
        text = (
            "# Sketches of values of any spread\n\n`python benchmarks/sketch_spread.py`: how far the level asked for "
            "is from the levels that the answer has among all values, in units of pi/size; the largest of "
            f"{LEVELS.size} levels, size {', '.join(map(str, lengths))} and {n_seeds} seeds, {n:,} values. Measured, "
            "not proven: whoever knows how sketches are made can choose values that do worse. "
            f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
        )
        save(__file__, text + head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
