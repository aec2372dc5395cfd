"""What weights for covariate shift cover, and how many rows are left: with the ratio known, and estimated.

    python benchmarks/shift_coverage.py [--quick]

Calibration rows are standard normal, as many new rows shifted by some standard deviations along the first of 1 or 5
columns. Errors are normal with a standard deviation of exp(x) or exp(-x) along that column, so that the shift makes
them larger or smaller; coverage is computed from that distribution. The true effective size is m exp(-shift^2). Rows
too heavy for the calibration rows (`guaranteed_level` is NaN) are counted; the guarantee of a known ratio counts them
as covered, and leaves (p - h)/(1 - h) to the others. Whether coverage is below these is tested in each cell, one-sided,
and judged over all cells by Holm. The estimator was tuned on other draws, and on other distributions too.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from provenance import save
from scipy import stats

import pimeter as pm

SEED = 20261116
LEVEL = 0.9
SHIFTS = (0.0, 0.5, 1.0, 2.0)
SPREADS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"exp(x)": np.exp, "exp(-x)": lambda x: np.exp(-x)}


@dataclass(frozen=True)
class Draw:
    """One calibration; a coverage is a mean over new rows."""

    size: float
    kish: float
    heavy: float  # fraction of new rows, ratio known
    known: list[float]  # coverage for each spread
    estimated: list[float]
    guaranteed_gap: list[float]  # coverage less what is guaranteed, summed over rows that are not too heavy, per row


def zero(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X))


def drawn(d: int, m: int, shift: float, draw: int) -> Draw:
    rng = np.random.default_rng([SEED, d, m, int(10 * shift), draw])
    X, new = rng.normal(size=(m, d)), rng.normal(size=(m, d))
    new[:, 0] += shift
    ratio, new_ratio = np.exp(shift * X[:, 0]), np.exp(shift * new[:, 0])
    found = pm.shift_weights(X, new, random_state=draw)
    coverage: dict[str, list[float]] = {"known": [], "estimated": []}
    gaps, heavy = [], 0.0
    for spread in SPREADS.values():
        y = rng.normal(scale=spread(X[:, 0]))
        for name, (old, ours) in {"known": (ratio, new_ratio), "estimated": (found, found)}.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pm.CoverageWarning)
                model = pm.IntervalRegressor(zero, confidence_level=LEVEL).calibrate(X, y, importance_weight=old)
                table = model.predict_interval(new, importance_weight=ours, as_frame=True)
            covered = 2 * stats.norm.cdf(table["upper"] / spread(new[:, 0])) - 1
            coverage[name].append(float(covered.mean()))
            level = table["guaranteed_level"].to_numpy()
            if name == "known":
                gaps.append(float(np.nansum(covered - level) / m))
                heavy = float(np.isnan(level).mean())
            else:
                assert np.isnan(level).all()
    return Draw(found.effective_size, ratio.sum() ** 2 / (ratio @ ratio), heavy, **coverage, guaranteed_gap=gaps)


def shown(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"


def below(values: list[float]) -> float:
    """Probability of a mean as low as this or lower if the expected one is 0; 1 where nothing varies."""
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return float(stats.norm.cdf(np.mean(values) / error)) if error > 0.0 else 1.0


def holm(values: list[float]) -> float:
    """The least p-value, adjusted for as many tests."""
    return min(1.0, len(values) * min(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, few draws, nothing saved")
    quick = parser.parse_args().quick
    n_draws = {100: 3} if quick else {500: 100, 2000: 30}
    lengths = ", ".join(f"{n} draws of m = {m}" for m, n in n_draws.items())
    columns = ["columns", "m", "shift (sd)", "true size", "reported size (10 % to 90 %)", "Kish size, ratio known"]
    columns += ["too heavy", *(f"{name}, {spread}" for spread in SPREADS for name in ("known", "estimated"))]
    out = [
        "# Covariate shift: what weights cover\n",
        f"`python benchmarks/shift_coverage.py`, {lengths}, level {LEVEL}.",
        "Errors grow along the shift (exp(x)) or shrink (exp(-x)).\n",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    covers, others, ratios = [], [], []
    for d in (1, 5):
        for m, n in n_draws.items():
            for shift in SHIFTS:
                draws = [drawn(d, m, shift, draw) for draw in range(n)]
                low, middle, high = np.quantile([draw.size for draw in draws], [0.1, 0.5, 0.9])
                kish, heavy = np.mean([(draw.kish, draw.heavy) for draw in draws], axis=0)
                cells = [
                    shown([getattr(draw, name)[i] for draw in draws])
                    for i in range(len(SPREADS))
                    for name in ("known", "estimated")
                ]
                true = m * np.exp(-(shift**2))
                out.append(
                    f"| {d} | {m} | {shift:g} | {true:.0f} | {middle:.0f} ({low:.0f} to {high:.0f}) | {kish:.0f} | "
                    f"{100 * heavy:.1f} % | {' | '.join(cells)} |"
                )
                print(out[-1], flush=True)
                ratios.append(middle / true)
                for i in range(len(SPREADS)):
                    gaps = [draw.guaranteed_gap[i] for draw in draws]
                    (others if heavy else covers).append(below(gaps))
    out.append(
        f"\nReported over true size: {min(ratios):.2f} to {max(ratios):.2f} (medians of cells). With the ratio known, "
        f"coverage below {LEVEL} in {len(covers)} cells without heavy rows: least p after Holm {holm(covers):.2f}"
        + (
            f"; of rows beside heavy ones below (p - h)/(1 - h) in {len(others)} cells: {holm(others):.2f}"
            if others
            else ""
        )
        + ". With the ratio estimated nothing is guaranteed, and `guaranteed_level` was NaN in every row."
    )
    text = "\n".join(out) + "\n"
    print(text)
    print(f"numpy {np.__version__}")
    if not quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
