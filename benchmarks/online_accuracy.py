"""How near does an `OnlineNeuron` with a decaying step come to the quantile of errors that do not drift?

    python benchmarks/online_accuracy.py [--quick]

The root of the mean squared distance from the true quantile, of the neuron that sees each error once and keeps a few
floats, over that of numpy's quantile of all errors at once. The table goes to `results/online_accuracy.md`.
"""

from __future__ import annotations

import argparse
import platform

import numpy as np
from provenance import save
from scipy import stats

from pimeter import OnlineNeuron

DISTRIBUTIONS = {
    "half-normal": stats.halfnorm(),
    "exponential": stats.expon(),
    "lognormal": stats.lognorm(1),
    "t2": stats.t(2),
    "Cauchy": stats.cauchy(),
    "uniform": stats.uniform(),
}
LEVELS = (0.5, 0.9, 0.95, 0.99)
SEED = 1000  # smaller ones were looked at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few streams, nothing saved")
    quick = parser.parse_args().quick
    draws, lengths = (20, (1000,)) if quick else (400, (1000, 10_000, 100_000))
    print(f"numpy {np.__version__}")
    lines = [f"| level | errors | {' | '.join(DISTRIBUTIONS)} |", f"{'|---' * (2 + len(DISTRIBUTIONS))}|"]
    for level in LEVELS:
        for n in lengths:
            row = []
            for i, distribution in enumerate(DISTRIBUTIONS.values()):
                rng = np.random.default_rng([SEED, i, n])
                off = np.empty((2, draws))
                for j in range(draws):  # one by one, for the sake of memory
                    errors = distribution.rvs(size=n, random_state=rng)
                    neuron = OnlineNeuron(level, learning_rate="decaying").learn_many(errors)
                    off[0, j] = neuron.quantile_ - distribution.ppf(level)
                    off[1, j] = np.quantile(errors, level) - distribution.ppf(level)
                row.append(f"{np.sqrt(np.divide(*np.mean(off**2, axis=1))):.2f}")
            lines.append(f"| {level:g} | {n:,} | {' | '.join(row)} |")
            print(lines[-1], flush=True)
    if not quick:
        text = (
            "# A decaying step beside the quantile of all errors\n\n`python benchmarks/online_accuracy.py`: root of "
            f"the mean squared error over that of numpy's quantile of all errors at once, {draws} streams. "
            f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
        )
        save(__file__, text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
