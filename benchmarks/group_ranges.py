"""Do ranges hold where rows belong together? `classification_uncertainty` and `QuantileNeuron` with `groups`.

    python benchmarks/group_ranges.py [--quick] [--jobs N]

Five layouts of groups, whose rows have half or nine tenths of their variance in common. A classifier knows one part of
what makes a row positive, and half of the rows or a tenth of them are; truths are those of two million rows. Neurons
learn quantiles of normal errors. Coverage counts among samples that have a range, of neurons one whose
`quantile_range_level_` is .9 or more. Metrics have a nominal level of .9 and are asked for .85, quantiles .95 and .9;
cells that fall short are named by Holm's rule. The table goes to `results/group_ranges.md`; a run that was interrupted
goes on.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from provenance import Unfinished, save
from scipy import stats
from scipy.special import expit
from sklearn import metrics
from statsmodels.stats.multitest import multipletests

import pimeter as pm

SEED = 20261119
LEVEL, FLOOR = 0.9, 0.85  # of a classifier's metrics
LEVEL_OF_NEURONS, FLOOR_OF_NEURONS = 0.95, 0.9
N_TRUTH = 2_000_000
METRICS: dict[str, Callable[..., float]] = {
    "accuracy": metrics.accuracy_score,
    "tpr": metrics.recall_score,
    "fpr": lambda y, predicted: 1.0 - metrics.recall_score(~y, ~predicted),
    "ppv": metrics.precision_score,
    "f1": metrics.f1_score,
    "mcc": metrics.matthews_corrcoef,
    "balanced_accuracy": metrics.balanced_accuracy_score,
}
COMMON = (0.5, 0.9)  # fraction of the variance that rows of a group have in common
MIDDLES = {"half": 0.0, "a tenth": -1.8}  # how many rows are positive
QUANTILES = (0.5, 0.8, 0.9, 0.95)
Codes = NDArray[np.intp]
Array = NDArray[np.float64]
Held = dict[str, list[float]]  # of each number and draw: 1 if its range holds the truth, 0 if not, NaN if there is none


def equal(n_groups: int, n_rows: int) -> Callable[[np.random.Generator], Codes]:
    return lambda _rng: np.repeat(np.arange(n_groups), n_rows)


def unequal(rng: np.random.Generator) -> Codes:
    """40 groups of 11 rows on average, the number of which varies like a gamma distribution's."""
    return np.repeat(np.arange(40), 1 + rng.poisson(rng.gamma(1.0, 10.0, 40)))


def few_large(_rng: np.random.Generator) -> Codes:
    """Half of 600 rows in five groups, the others in 95."""
    return np.concatenate([np.repeat(np.arange(5), 60), 5 + np.arange(300) % 95])


LAYOUTS: dict[str, Callable[[np.random.Generator], Codes]] = {
    "15 of 20 rows": equal(15, 20),
    "30 of 10 rows": equal(30, 10),
    "60 of 10 rows": equal(60, 10),
    "40 unequal": unequal,
    "5 large, 95 small": few_large,
}


def shared(rng: np.random.Generator, codes: Codes, common: float) -> Array:
    """Standard normal values, of which rows of a group have a part in common."""
    of_group = rng.standard_normal(int(codes.max()) + 1)[codes]
    return np.asarray(np.sqrt(common) * of_group + np.sqrt(1.0 - common) * rng.standard_normal(len(codes)))


def classified(rng: np.random.Generator, codes: Codes, common: float, middle: float) -> tuple[NDArray[np.bool_], Array]:
    """Labels, and scores that know one of the two parts that make them."""
    known, unknown = shared(rng, codes, common), shared(rng, codes, common)
    return known + unknown + middle > 0.0, expit(known + middle)


def of_classifier(layout: str, common: float, middle: float, draws: int) -> Held:
    """Ranges of a classifier's metrics."""
    y, score = classified(np.random.default_rng(SEED), np.arange(N_TRUTH), common, middle)
    truths = {name: float(of(y, score > 0.5)) for name, of in METRICS.items()}
    found: Held = {name: [] for name in METRICS}
    for i in range(draws):
        rng = np.random.default_rng([SEED, i, *layout.encode()])
        codes = LAYOUTS[layout](rng)
        y, score = classified(rng, codes, common, middle)
        if y.all() or not y.any():
            continue
        one = pm.classification_uncertainty(
            y, score, groups=codes, metrics=list(METRICS), confidence_level=LEVEL, n_resamples=400, random_state=0
        )
        for name in METRICS:
            lower, upper = float(one.lower[name]), float(one.upper[name])
            found[name].append(float("nan") if np.isnan(lower) else float(lower <= truths[name] <= upper))
    return found


def of_neuron(layout: str, common: float, draws: int) -> Held:
    """Ranges of quantiles of normal errors."""
    found: Held = {f"{p:g}": [] for p in QUANTILES}
    for i in range(draws):
        rng = np.random.default_rng([SEED, i, *layout.encode()])
        codes = LAYOUTS[layout](rng)
        errors = shared(rng, codes, common)
        for p in QUANTILES:
            neuron = pm.QuantileNeuron(p).fit(errors, groups=codes)
            lower, upper = neuron.quantile_range_
            is_held = float(lower <= stats.norm.ppf(p) <= upper)
            is_given = neuron.quantile_range_level_ >= FLOOR_OF_NEURONS
            found[f"{p:g}"].append(is_held if is_given else float("nan"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, nothing saved")
    parser.add_argument("--draws", type=int, default=1000, help="in each cell; other than 1,000 saves nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    draws = 10 if asked.quick else asked.draws
    warnings.simplefilter("ignore", pm.CoverageWarning)
    layouts = list(LAYOUTS)[:2] if asked.quick else list(LAYOUTS)
    tasks: dict[str, Callable[[], Held]] = {}
    for layout, common, (positive, middle) in product(layouts, COMMON, MIDDLES.items()):
        name = f"{layout} | {common:g} | {positive}"
        tasks[name] = partial(of_classifier, layout, common, middle, draws)
    for layout, common in product(layouts, COMMON):
        tasks[f"{layout} | {common:g}"] = partial(of_neuron, layout, common, draws)
    unfinished = Unfinished(__file__, draws, kept=draws == 1000)
    found = {}
    for name, held in unfinished.each(tasks, asked.jobs):
        found[name] = held
        print(name, flush=True)
    text = report({name: found[name] for name in tasks}, draws)
    print(text)
    if draws == 1000:
        save(__file__, text, packages=["statsmodels"])
        unfinished.close()


def report(found: dict[str, Held], draws: int) -> str:
    """What was held least, and a table for metrics and one for quantiles."""
    kinds = {
        "metrics": (FLOOR, [name for name in found if name.count("|") == 2]),
        "quantiles": (FLOOR_OF_NEURONS, [name for name in found if name.count("|") == 1]),
    }
    cells = [
        (kind, name, which, floor, np.array(own)[~np.isnan(own)], len(own))
        for kind, (floor, names) in kinds.items()
        for name in names
        for which, own in found[name].items()
    ]
    p_values = [
        stats.binomtest(int(given.sum()), len(given), floor, "less").pvalue if len(given) else 1.0
        for *_, floor, given, _ in cells
    ]
    is_below = multipletests(p_values, alpha=0.05, method="holm")[0]
    below = [
        f"{which}, {name}: {given.mean():.3f}"
        for (_, name, which, _, given, _), low in zip(cells, is_below, strict=True)
        if low
    ]
    lines = []
    for kind in kinds:
        known = [given.mean() for own, *_, given, _ in cells if own == kind and len(given) >= draws / 10]
        lines.append(f"| {kind} | {min(known):.3f} | {np.mean(known):.3f} |")
    text = f"""# Do ranges hold where rows belong together?

`python benchmarks/group_ranges.py`: {draws:,} draws in each cell. pimeter {pm.__version__}, numpy {np.__version__},
Python {platform.python_version()}. Cells below their floor, .85 of metrics and .9 of quantiles (Holm, 5 %):
{"; ".join(below) or "none"}.

| what, of cells where a tenth of the samples or more have a range | least | mean |
|---|---|---|
{chr(10).join(lines)}

How often ranges held the truth; in parentheses, in which proportion of samples one was given, if not in all.
"""
    for kind, (_, names) in kinds.items():
        columns = list(found[names[0]])
        head = ["groups", "in common", *(["positive"] if kind == "metrics" else []), *columns]
        text += f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|\n"
        for name in names:
            shown = (_shown(given, n) for _, own, _, _, given, n in cells if own == name)
            text += f"| {name} | {' | '.join(shown)} |\n"
    return text


def _shown(given: Array, n: int) -> str:
    if not len(given):
        return "none"
    return f"{given.mean():.3f}" + (f" ({len(given) / n:.2f})" if len(given) < n else "")


if __name__ == "__main__":
    main()
