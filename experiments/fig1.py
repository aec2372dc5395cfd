"""Figure 1: how far is the estimated confidence interval function of normal errors from the exact one?

For p = .05, .10 ... .90 the function is I(p) = r_(1+p)/2 - r_(1-p)/2. An estimator that may assume symmetry
takes twice the p-quantile of |e|, any other the difference of two quantiles of e. The paper drew one sample per size
and gave the assumption to its neuron alone; here every estimator is measured in both ways on the same samples. The
paper's neuron is trained with beta 1000 and rate .005, which the text has "for most" experiments, and with beta 10 and
rate .01, which its scripts have for this figure; each from halfway between the quartiles, as the text names no start,
and from the scripts' start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri
from sklearn.exceptions import ConvergenceWarning

from experiments.printed import N_START
from experiments.protocol import Experiment, Row, Unit, Value
from pimeter import quantile
from pimeter.paper import DescendingNeuron

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array: TypeAlias = NDArray[np.float64]

LEVELS = np.arange(1, 19) / 20
SMALL = 50
SCRIPTS_START = ", scripts' start"
TEXT, SCRIPTS = "descent, beta 1000", f"descent, beta 10{SCRIPTS_START}"
ASSUMPTIONS = {"none": "Nothing assumed", "symmetry": "Symmetry assumed"}
UNEQUAL = "The paper's: neuron with symmetry, numpy without"
DEFAULT = "numpy linear"
METHODS = (
    "linear",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
    "interpolated_inverted_cdf",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


class Estimate(NamedTuple):
    """Quantiles, (level, sample), and the fraction of neurons that stopped before they arrived."""

    quantiles: Array
    stalled: float = 0.0


@dataclass(frozen=True)
class Estimator:
    """Sorted samples (sample, m), levels, and whether the values are absolute errors → an estimate."""

    estimate: Callable[[Array, Array, bool], Estimate]
    slow: bool = False


def _numpy(values: Array, levels: Array, _absolute: bool, *, method: str) -> Estimate:
    return Estimate(np.quantile(values, levels, axis=1, method=method))  # type: ignore[call-overload]


def _harrell_davis(values: Array, levels: Array, _absolute: bool) -> Estimate:
    """The mean of all order statistics, weighted by how likely each is to be next to the quantile."""
    m = values.shape[1]
    p = levels[:, None]
    weights = np.diff(betainc((m + 1) * p, (m + 1) * (1 - p), np.arange(m + 1) / m), axis=1)
    return Estimate(weights @ values.T)


def _pimeter(values: Array, levels: Array, absolute: bool) -> Estimate:
    return Estimate(np.asarray(quantile(values, levels, axis=1, reflect=absolute)))


def _fixed(values: Array, levels: Array, _absolute: bool, *, beta: float) -> Estimate:
    """The paper's neuron, solved exactly: one beta for all lengths, absolute errors as they are."""
    return Estimate(np.asarray(quantile(values, levels, axis=1, beta=beta)))


def _descent(
    values: Array, levels: Array, absolute: bool, *, beta: float, learning_rate: float, as_scripts: bool = False
) -> Estimate:
    """The paper's neuron as the paper trains it, from halfway between the quartiles or from the scripts' start."""
    starts = ndtri((1 + levels) / 2 if absolute else levels) / np.sqrt(N_START) if as_scripts else [None] * len(levels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted below
        neurons = [
            DescendingNeuron(p, beta=beta, learning_rate=learning_rate, start=start).fit(values.T)
            for p, start in zip(levels.tolist(), starts, strict=True)
        ]
    quantiles = np.array([neuron.quantile_ for neuron in neurons])
    return Estimate(quantiles, 1 - float(np.mean([neuron.converged_ for neuron in neurons])))


ESTIMATORS = {
    "pimeter": Estimator(_pimeter),
    "Harrell-Davis": Estimator(_harrell_davis),
    **{f"numpy {method}": Estimator(partial(_numpy, method=method)) for method in METHODS},
    "beta 10": Estimator(partial(_fixed, beta=10)),
    "beta 1000": Estimator(partial(_fixed, beta=1000)),
    **{
        name + ending: Estimator(partial(_descent, beta=beta, learning_rate=rate, as_scripts=bool(ending)), slow=True)
        for name, beta, rate in (("descent, beta 10", 10, 0.01), ("descent, beta 1000", 1000, 0.005))
        for ending in ("", ", scripts' start")
    },
}


@dataclass(frozen=True)
class Settings:
    """Samples, repeats and estimators; the slow ones see the first `n_slow`, of more than `SMALL` errors fewer."""

    seed: int = 1
    sizes: tuple[int, ...] = (10, 15, 20, 30, 50, 100, 200, 500, 1000)
    n_samples: int = 4000
    n_slow: int = 500
    n_slow_large: int = 50
    estimators: tuple[str, ...] = tuple(ESTIMATORS)


QUICK = Settings(
    sizes=(10, 20, 50, 100, 200),
    n_samples=200,
    estimators=("pimeter", "Harrell-Davis", "numpy linear", "numpy hazen", "numpy weibull", "beta 10", "beta 1000"),
)


def exact_interval(levels: Array) -> Array:
    """I(p) of a standard normal distribution."""
    return np.asarray(2 * ndtri((1 + levels) / 2))


def estimated_interval(estimator: Estimator, errors: Array, *, symmetric: bool) -> Estimate:
    """I(p), (level, sample), from samples (sample, m)."""
    if symmetric:
        half = estimator.estimate(np.sort(np.abs(errors), axis=1), LEVELS, True)
        return Estimate(2 * half.quantiles, half.stalled)
    bounds = estimator.estimate(np.sort(errors, axis=1), np.concatenate([(1 - LEVELS) / 2, (1 + LEVELS) / 2]), False)
    lower, upper = np.split(bounds.quantiles, 2)
    return Estimate(upper - lower, bounds.stalled)


def units(settings: Settings) -> list[Unit]:
    """One unit of work per sample size."""
    return [(m,) for m in settings.sizes]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """One row per estimator and assumption, all on the same samples of m standard normal errors."""
    m = int(unit[0])
    errors = rng.standard_normal((settings.n_samples, m))
    rows: list[Row] = []
    signed_base = np.empty(0)
    for assumed in ASSUMPTIONS:
        symmetric = assumed == "symmetry"
        base = _rmse(estimated_interval(ESTIMATORS[DEFAULT], errors, symmetric=symmetric))
        signed_base = signed_base if symmetric else base
        for name in settings.estimators:
            estimator = ESTIMATORS[name]
            n_slow = settings.n_slow if m <= SMALL else settings.n_slow_large
            n = min(n_slow, len(errors)) if estimator.slow else len(errors)
            estimate = estimated_interval(estimator, errors[:n], symmetric=symmetric)
            rmse = _rmse(estimate)
            ratio, ratio_se = _ratio(rmse, base[:n])
            signed, signed_se = _ratio(rmse, signed_base[:n])
            rows.append(
                {
                    "m": m,
                    "assumed": assumed,
                    "estimator": name,
                    "n_samples": n,
                    "rmse": float(rmse.mean()),
                    "rmse_se": float(rmse.std(ddof=1) / np.sqrt(n)),
                    "ratio": ratio,
                    "ratio_se": ratio_se,
                    "ratio_to_signed": signed,
                    "ratio_to_signed_se": signed_se,
                    "stalled": estimate.stalled,
                }
            )
    return rows


def _rmse(estimate: Estimate) -> Array:
    """Per sample, over p, as in the paper."""
    gap = estimate.quantiles - exact_interval(LEVELS)[:, None]
    return np.asarray(np.sqrt(np.mean(gap**2, axis=0)))


def _ratio(rmse: Array, base: Array) -> tuple[float, float]:
    """Ratio of means over the same samples, and its standard error (delta method)."""
    ratio = rmse.mean() / base.mean()
    spread = np.std(rmse - ratio * base, ddof=1) / np.sqrt(len(base))
    return float(ratio), float(spread / base.mean())


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Per assumption, the ratio of each estimator to numpy's default for each m."""
    return {_title(rows, assumed): _table(rows, assumed) for assumed in ASSUMPTIONS}


def brief(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The paper's neuron, ours and the rest at a glance: small samples and the largest."""
    forms = {
        TEXT: 'faithful: beta as the text has it "for most"',
        TEXT + SCRIPTS_START: 'faithful: beta as the text has it "for most"',
        SCRIPTS: "faithful: as the scripts do",
        "descent, beta 10": "as the scripts, but for the start",
        "beta 1000": "its root",
        "beta 10": "its root",
        DEFAULT: "numpy's default",
        "Harrell-Davis": "a smooth competitor",
        "pimeter": "better",
    }
    most = max(_lengths(rows))
    lines: list[Row] = []
    for name in (name for name in forms if name in _names(rows)):
        cells: dict[str, Value] = {"form": forms[name], "estimator": name, "samples": samples_seen(rows, name)}
        for assumed, words in ASSUMPTIONS.items():
            ratios = curve(rows, assumed, name, "ratio")
            cells[f"{words.lower()}, up to m = {SMALL}"] = geometric_mean(x for m, x in ratios.items() if m <= SMALL)
            cells[f"{words.lower()}, m = {most}"] = ratios[most]
        unequal = curve(rows, "symmetry", name, "ratio_to_signed")
        cells[f"{UNEQUAL.lower()}, up to m = {SMALL}"] = geometric_mean(x for m, x in unequal.items() if m <= SMALL)
        stalled = max(max(curve(rows, assumed, name, "stalled").values()) for assumed in ASSUMPTIONS)
        lines.append({**cells, "most stalled": stalled})
    return {"RMSE of I(p) as a ratio to numpy's default; below 1 is better": lines}


def samples_seen(rows: Sequence[Row], name: str) -> str:
    """How many samples of each size an estimator saw: first of the smallest."""
    seen = curve(rows, "none", name, "n_samples")
    first = {f"{n:,.0f}": m for m, n in reversed(seen.items())}
    return ", ".join(f"{n} from m = {first[n]} on" if m > min(seen) else n for n, m in reversed(first.items()))


def _title(rows: Sequence[Row], assumed: str) -> str:
    held = _where(rows, assumed)
    spreads = []
    for n in dict.fromkeys(row["n_samples"] for row in held):
        spread = max(float(row["ratio_se"]) for row in held if row["n_samples"] == n)
        spreads.append(f"{spread:.3f} with {n} samples")
    meaning = "RMSE of I(p) as a ratio to numpy's default on the same samples; below 1 is better"
    return f"{ASSUMPTIONS[assumed]}: {meaning} (standard errors up to {', '.join(spreads)})."


def _table(rows: Sequence[Row], assumed: str) -> list[Row]:
    table: list[Row] = []
    for name in _names(rows):
        ratios = curve(rows, assumed, name, "ratio")
        line: dict[str, Value] = {"estimator": name}
        line |= {f"m = {m}": ratio for m, ratio in ratios.items()}
        table.append(line | {"all m": geometric_mean(ratios.values())})
    base = curve(rows, assumed, DEFAULT, "rmse")
    return [*table, {"estimator": "(RMSE of numpy linear)", **{f"m = {m}": x for m, x in base.items()}, "all m": ""}]


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    lengths = _lengths(rows)
    free, assumed = (geometric_mean(curve(rows, which, "pimeter", "ratio").values()) for which in ASSUMPTIONS)
    return (
        f"On normal samples of {lengths[0]} to {lengths[-1]} errors, pimeter's interval function has {_change(free)} "
        f"than numpy's default when nothing is assumed, and {_change(assumed)} when both may assume symmetry "
        f"({int(rows[0]['n_samples'])} samples per size)."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claim: a paragraph, and a line for each form of its neuron."""
    claim = "its neuron has no selection bias and can be more accurate for small sample size"
    said = [f"The paper concludes from one sample per size that {claim}.", headline(rows)]
    said += [_on_symmetry(rows), _on_numpy(rows), _on_rivals(rows)]
    neurons = [name for name in _names(rows) if name.startswith(("beta", "descent"))]
    trained = [name for name in neurons if name.startswith("descent")]
    if trained:
        said.append(f"Neurons that are trained saw fewer samples of each size: {samples_seen(rows, trained[0])}.")
    lines = [f"- {name}: {_on_neuron(rows, name)}" for name in neurons]
    return "\n".join(
        [" ".join(said), "", "The paper's neuron, solved exactly (beta) or trained (descent):", "", *lines]
    )


def _on_symmetry(rows: Sequence[Row]) -> str:
    lengths = [m for m in _lengths(rows) if m <= SMALL]

    def ratio(name: str) -> float:
        return geometric_mean(curve(rows, "symmetry", name, "ratio_to_signed")[m] for m in lengths)

    neurons = [f"{ratio(name):.2f} ({name})" for name in _names(rows) if name.startswith("descent")]
    trained = f"; the paper's neurons in that comparison: {', '.join(neurons)}" if neurons else ""
    return (
        "The scripts gave the symmetry of the distribution to the neuron and not to numpy. "
        f"Up to m = {lengths[-1]} that knowledge alone changes the error of numpy's default to {ratio(DEFAULT):.2f} of "
        f"what it was; pimeter with it against numpy without it, the paper's comparison, is {ratio('pimeter'):.2f}"
        f"{trained}."
    )


def _on_numpy(rows: Sequence[Row]) -> str:
    m_small, m_large = _lengths(rows)[0], _lengths(rows)[-1]
    spans = []
    for m in (m_small, m_large):
        ratios = [curve(rows, "none", name, "ratio")[m] for name in _numpy_names(rows)]
        spans.append(f"{min(ratios):.2f} to {max(ratios):.2f} at m = {m}")
    return f"The choice among numpy's methods moves the ratio from {', and from '.join(spans)}."


def _on_rivals(rows: Sequence[Row]) -> str:
    said = []
    for assumed, words in ASSUMPTIONS.items():
        ours = curve(rows, assumed, "pimeter", "ratio")
        ranked = [curve(rows, assumed, name, "ratio") for name in _numpy_names(rows)]
        smooth = curve(rows, assumed, "Harrell-Davis", "ratio")
        best = sum(all(ours[m] < other[m] for other in ranked) for m in ours)
        smoother = sum(ours[m] < smooth[m] for m in ours)
        said.append(
            f"with {words.lower()}, every numpy method at {best} and Harrell-Davis at {smoother} of {len(ours)} sizes"
        )
    return f"Pimeter beats, {'; '.join(said)}."


def _on_neuron(rows: Sequence[Row], name: str) -> str:
    """Whether the claim holds for one form of the paper's neuron, at small m and on equal terms with numpy."""
    held = [row for row in rows if row["estimator"] == name]
    small = [row for row in held if int(row["m"]) <= SMALL]
    better = sum(float(row["ratio"]) + 2 * float(row["ratio_se"]) < 1 for row in small)
    worse = sum(float(row["ratio"]) - 2 * float(row["ratio_se"]) > 1 for row in small)
    verdict = "holds in part" if better else "does not hold" if worse else "stays open"
    verdict = "holds" if better == len(small) else verdict
    ratios = [
        f"{geometric_mean(float(row['ratio']) for row in _where(small, assumed)):.2f} and "
        f"{float(_where(held, assumed)[-1]['ratio']):.2f} with {words.lower()}"
        for assumed, words in ASSUMPTIONS.items()
    ]
    stalled = max(float(row["stalled"]) for row in held)
    stalls = f" Up to {100 * stalled:.1f} % of the neurons stalled." if stalled else ""
    return (
        f"the claim {verdict} (by two standard errors better in {better}, worse in {worse} of {len(small)} cells). Its "
        f"ratio up to m = {SMALL} and at m = {held[-1]['m']}: {', '.join(ratios)}.{stalls}"
    )


def _change(ratio: float) -> str:
    percent = round(100 * abs(1 - ratio))
    return f"{percent} % {'less' if ratio < 1 else 'more'} error"


def _where(rows: Sequence[Row], assumed: str) -> list[Row]:
    return [row for row in rows if row["assumed"] == assumed]


def curve(rows: Sequence[Row], assumed: str, name: str, column: str) -> dict[int, float]:
    return {int(row["m"]): float(row[column]) for row in _where(rows, assumed) if row["estimator"] == name}


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["estimator"]) for row in rows))


def _numpy_names(rows: Sequence[Row]) -> list[str]:
    return [name for name in _names(rows) if name.startswith("numpy")]


def _lengths(rows: Sequence[Row]) -> list[int]:
    return list(dict.fromkeys(int(row["m"]) for row in rows))


def geometric_mean(ratios: Iterable[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


TOP = 1.4  # ratios beyond have a panel of their own
# Panels: what estimators assume, which ratio is drawn, and what numpy assumes.
PANELS = {
    UNEQUAL: ("symmetry", "ratio_to_signed", "none"),
    **{words: (assumed, "ratio", assumed) for assumed, words in ASSUMPTIONS.items()},
}
LINES: dict[str, dict[str, Any]] = {
    "beta 10": {"color": "#e69f00", "linestyle": "--"},
    "beta 1000": {"color": "#a6761d", "linestyle": "--"},
    "descent, beta 10": {"color": "#cc79a7", "linestyle": ":", "marker": "."},
    SCRIPTS: {"color": "#d55e00", "linestyle": ":", "marker": "x", "markersize": 5},
    TEXT: {"color": "#882255", "linestyle": ":", "marker": "."},
    TEXT + SCRIPTS_START: {"color": "#56b4e9", "linestyle": ":", "marker": "x", "markersize": 5},
    "Harrell-Davis": {"color": "#009e73"},
    "pimeter": {"color": "#0072b2", "linewidth": 2.8, "marker": "o", "markersize": 4},
}


def figure(rows: Sequence[Row], path: Path) -> None:
    """Three panels by sample size: the paper's comparison, and each assumption; above, on a log scale, what is far."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(14, 6.8), layout="constrained")
    panels = canvas.subplots(2, len(PANELS), sharey="row", sharex=True, height_ratios=(1, 2))
    names = [name for name in LINES if name in _names(rows)]
    far = [name for name in names if max(max(curve(rows, a, name, "ratio").values()) for a in ASSUMPTIONS) > TOP]
    for (above, panel), (title, (assumed, column, numpy_assumed)) in zip(panels.T, PANELS.items(), strict=True):
        above.set_title(title)
        _lines(above, rows, assumed, far, column)
        _band(panel, rows, numpy_assumed)
        _lines(panel, rows, assumed, [name for name in names if name not in far], column)
        if assumed != numpy_assumed:
            given = curve(rows, assumed, DEFAULT, column)
            panel.plot(list(given), list(given.values()), **GIVEN)
        above.axhline(1, color="0.2", linewidth=1.2)
        above.set(yscale="log")
        above.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        panel.set(xlabel="sample size m")
        for one in (above, panel):
            _frame(one, _lengths(rows))
            one.tick_params(labelleft=True)
    panels[0, 0].set_ylabel("ratio, log scale")
    panels[1, 0].set_ylabel("RMSE of I(p), ratio to numpy's default")
    shown = {
        label: h
        for panel in reversed(panels[:, 0])
        for h, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=5, frameon=False)
    canvas.suptitle("Confidence interval function of normal errors, all on the same samples; bars: 2 standard errors")
    canvas.savefig(path, dpi=300)


GIVEN: dict[str, Any] = {
    "color": "0.2",
    "linewidth": 1.2,
    "linestyle": "-.",
    "label": "numpy's default, also with symmetry",
}


def _band(panel: Axes, rows: Sequence[Row], assumed: str) -> None:
    """Where numpy's methods lie."""
    ranked = np.array([list(curve(rows, assumed, name, "ratio").values()) for name in _numpy_names(rows)])
    label = f"{len(ranked)} numpy methods, best to worst"
    panel.fill_between(_lengths(rows), ranked.min(axis=0), ranked.max(axis=0), color="0.88", label=label)
    panel.axhline(1, color="0.2", linewidth=1.2, label="numpy's default")


def _lines(panel: Axes, rows: Sequence[Row], assumed: str, names: Sequence[str], column: str) -> None:
    """A curve for each estimator, with bars; those of trained neurons stand a little apart, not on each other."""
    for name in names:
        ratios = list(curve(rows, assumed, name, column).values())
        bars = 2 * np.array(list(curve(rows, assumed, name, f"{column}_se").values()))
        at = np.array(_lengths(rows)) * (1.03 if name.endswith("start") else 1.0)
        label = f"root, {name}" if name.startswith("beta") else name
        panel.errorbar(at, ratios, bars, label=label, elinewidth=0.8, **LINES[name])


def _frame(panel: Axes, lengths: Sequence[int]) -> None:
    panel.set(xscale="log", xlim=(0.95 * lengths[0], 1.1 * lengths[-1]))
    panel.set_xticks([m for m in lengths if str(m).strip("0") in {"1", "2", "5"}])
    panel.xaxis.set_major_formatter("{x:.0f}")
    panel.minorticks_off()
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    name="fig1",
    title="error of the confidence interval function by sample size (Figure 1)",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    figure=figure,
    unpublished="The paper prints no numbers for this figure, so there is nothing to set beside ours.",
)
