"""500 cases of `quantile` of all kinds, and what it gave when their answers were stored: digits to hold.

Seeds make the inputs; `data/quantiles.json` has the answers. Were the rule itself to change, they would be stored anew:

    python -m tests.stored_quantiles
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pimeter as pm

ANSWERS = Path(__file__).parent / "data" / "quantiles.json"
N_CASES = 500
LENGTHS = (1, 2, 3, 4, 7, 19, 20, 50, 100, 333, 1000, 1999, 2000, 2001, 2500, 6000, 20_000, 100_000)
CHANCES = np.array([1.0] * 14 + [1.0, 1.0, 0.5, 0.25])  # long samples take long


def _sample(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[str, np.ndarray]:
    drawn = {
        "normal": lambda: rng.standard_normal(shape),
        "shifted": lambda: 50.0 + 3.0 * rng.standard_normal(shape),
        "lognormal": lambda: rng.lognormal(0.0, 1.5, shape),
        "cauchy": lambda: rng.standard_cauchy(shape),
        "uniform": lambda: rng.random(shape),
        "rounded": lambda: np.round(rng.standard_normal(shape), 1),
        "few values": lambda: rng.integers(0, 6, shape).astype(float),
        "all tied": lambda: np.full(shape, rng.standard_normal()),
        "spiked": lambda: np.where(rng.random(shape) < 0.6, 1.0 + 1e-7 * rng.standard_normal(shape), rng.random(shape)),
        "two humps": lambda: rng.choice([-100.0, 100.0], shape) + rng.standard_normal(shape),
        "sorted": lambda: np.sort(rng.standard_normal(shape), axis=-1),
        "integers": lambda: rng.integers(-1000, 1000, shape),
    }
    name = str(rng.choice(list(drawn)))
    return name, drawn[name]()


def _made_extreme(a: np.ndarray, how: str, is_absolute: bool, place: int) -> np.ndarray:
    if how == "none":
        return a
    a = a.astype(float) * {"huge": 1e300, "tiny": 1e-300}.get(how, 1.0)
    if how == "wide":
        a.flat[0] = 1e12
    elif how == "infinite":
        a.flat[0], a.flat[-1] = np.inf, a.flat[0] if is_absolute else -np.inf
    elif how == "missing":
        a.flat[place] = np.nan
    return a


class Case(NamedTuple):
    """One call of `quantile`."""

    name: str
    a: np.ndarray
    q: Any
    options: dict[str, Any]


def case(number: int) -> Case:
    """The case of this number, made from its seed."""
    rng = np.random.default_rng([22, number])
    m = int(rng.choice(LENGTHS, p=CHANCES / CHANCES.sum()))
    options: dict[str, Any] = {}
    shape: tuple[int, ...] = (m,)
    if m <= 2500 and rng.random() < 0.3:
        options["axis"] = int(rng.integers(2))
        shape = (3, m) if options["axis"] == 1 else (m, 3)
    name, a = _sample(rng, shape)
    levels = rng.choice(["one", "one", "several", "tails", "outermost"])
    q: Any = {
        "one": lambda: float(rng.choice([0.5, 0.9, 0.95, rng.random()])),
        "several": lambda: rng.random(int(rng.integers(2, 10))),
        "tails": lambda: np.array([0.001, 0.01, 0.99, 0.999]),
        "outermost": lambda: np.array([[0.0, 0.3], [1.0, 0.3]]),
    }[levels]()
    if rng.random() < 0.15:
        options["reflect"] = True
        a = np.abs(a)
    kind = rng.choice(["plain", "plain", "counts", "fractions", "zeros"])
    if kind != "plain":
        options["weights"] = {
            "counts": lambda: rng.integers(1, 4, shape).astype(float),
            "fractions": lambda: rng.gamma(1.0, 1.0, shape) + 1e-3,
            "zeros": lambda: np.where(rng.random(shape) < 0.3, 0.0, rng.choice([0.25, 1.0, 2.5], shape)),
        }[kind]()
        if not options["weights"].any(axis=options.get("axis")).all():
            options["weights"][...] = 1.0
    extreme = rng.choice(["none"] * 12 + ["huge", "tiny", "wide", "infinite", "missing"])
    a = _made_extreme(a, str(extreme), "reflect" in options, m // 2)
    if rng.random() < 0.2 and a.dtype == float and extreme not in {"huge", "tiny"}:
        a = a.astype(rng.choice([np.float32, np.float32, np.float16])) if np.abs(a).max() < 6e4 else a
    if m <= 2500 and rng.random() < 0.15 and extreme in {"none", "wide"}:
        options["beta"] = float(rng.choice([0.5, 10.0, 1000.0]))
    return Case(
        f"{number}: {name}, {shape}, {levels} of {a.dtype}, {kind}, {extreme}, {sorted(options)}", a, q, options
    )


def answer(one: Case) -> list[Any]:
    """What `quantile` gives, as plain numbers."""
    found: list[Any] = np.ravel(np.asarray(pm.quantile(one.a, one.q, **one.options), np.float64)).tolist()
    return found


def main() -> None:
    """Store the answers."""
    ANSWERS.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(answer(case(number))) for number in range(N_CASES))
    ANSWERS.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
