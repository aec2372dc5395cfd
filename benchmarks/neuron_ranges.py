"""How far to trust what a `QuantileNeuron` says of its own accuracy?

    python benchmarks/neuron_ranges.py [--quick]

Independent errors of five distributions, samples of 20 to 2,000, levels .5 to .99. How often the range of ranks
(`quantile_range_`) and `quantile_ +- 1.96 standard_error_` hold the true quantile, and the mean standard error beside
the standard deviation of the quantiles over samples. The guarantee of the ranges, no less than `quantile_range_level_`,
is tested in all cells together (Holm, 5 %). The table goes to `results/neuron_ranges.md`.
"""

from __future__ import annotations

import argparse
import platform

import numpy as np
from provenance import save
from scipy import stats
from statsmodels.stats.multitest import multipletests

import pimeter as pm

DISTRIBUTIONS = {
    "normal": stats.norm(),
    "t2": stats.t(2),
    "lognormal": stats.lognorm(1),
    "uniform": stats.uniform(),
    "exponential": stats.expon(),
}
LENGTHS = (20, 50, 100, 500, 2000)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
SEED = 1000  # smaller ones were looked at


def table(title: str, first: list[str], cells: dict[tuple[int, float], dict[str, str]]) -> str:
    """One row for each size and level, one column for each distribution."""
    lines = [f"| {' | '.join([*first, *DISTRIBUTIONS])} |", f"{'|---' * (len(first) + len(DISTRIBUTIONS))}|"]
    for key, row in cells.items():
        lines.append(f"| {key[0]:,} | {key[1]:g} | {' | '.join(row.values())} |")
    return f"{title}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    quick = parser.parse_args().quick
    draws, lengths = (50, LENGTHS[:2]) if quick else (2000, LENGTHS)
    print(f"numpy {np.__version__}")
    ranges: dict[tuple[int, float], dict[str, str]] = {}
    errors: dict[tuple[int, float], dict[str, str]] = {}
    p_values, held_by_errors, ratios = [], [], []
    for m in lengths:
        for p in LEVELS:
            ranges[m, p], errors[m, p] = {}, {}
            for i, (name, distribution) in enumerate(DISTRIBUTIONS.items()):
                sample = distribution.rvs(
                    size=(m, draws), random_state=np.random.default_rng([SEED, i, m, int(1000 * p)])
                )
                neuron, true = pm.QuantileNeuron(p).fit(sample), distribution.ppf(p)
                low, high = neuron.quantile_range_.T
                held = (low <= true) & (true <= high)
                level = neuron.quantile_range_level_
                p_values.append(stats.binomtest(int(held.sum()), draws, level, "less").pvalue)
                ranges[m, p].setdefault("stated", f"{level:.4f}")
                ranges[m, p][name] = f"{held.mean():.4f}"
                se = neuron.standard_error_
                if np.isnan(se).any():
                    errors[m, p][name] = "none"
                    continue
                inside = float(np.mean(np.abs(neuron.quantile_ - true) <= 1.96 * se))
                ratio = float(se.mean() / neuron.quantile_.std())
                held_by_errors.append(inside)
                ratios.append(ratio)
                errors[m, p][name] = f"{inside:.3f}, {ratio:.2f}"
            print(m, p, ranges[m, p], errors[m, p], flush=True)
    n_rejected = int(multipletests(p_values, alpha=0.05, method="holm")[0].sum())
    of_errors = ""
    if held_by_errors:
        of_errors = (
            f"`quantile_ +- 1.96 standard_error_` held the true quantile in {min(held_by_errors):.3f} to "
            f"{max(held_by_errors):.3f} of samples; the mean standard error is {min(ratios):.2f} to {max(ratios):.2f} "
            "times the standard deviation of the quantiles. "
        )
    text = (
        "# What a neuron says of its own accuracy\n\n"
        f"`python benchmarks/neuron_ranges.py`: {draws:,} samples in each cell. {of_errors}Ranges that hold less than "
        f"they state: {n_rejected} of {len(p_values)} cells (Holm, 5 %). "
        f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
    )
    text += table(
        "How often `quantile_range_` held the true quantile, beside `quantile_range_level_`:",
        ["errors", "level", "stated"],
        ranges,
    )
    text += "\n" + table(
        "How often `quantile_ +- 1.96 standard_error_` held it, and the mean standard error over the standard "
        "deviation of the quantiles; none: fewer than 5 errors are expected beyond the quantile.",
        ["errors", "level"],
        errors,
    )
    print(text)
    if not quick:
        save(__file__, text, packages=["statsmodels"])


if __name__ == "__main__":
    main()
