"""Do prediction sets cover as guaranteed, and how large are they beside MAPIE's with the same score and split?

    python benchmarks/classification_sets.py [--quick]

Classes are drawn from a known softmax; the classifier knows it but for a wrong temperature. Randomized sets of MAPIE's
APS get our draws: with other draws, set lengths differ by chance alone. Its RAPS draws rows for its constants as well,
so it keeps its own. Without MAPIE its columns stay empty; its RAPS refuses 100 classes in 200 rows.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product

import numpy as np
from provenance import save
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

import pimeter as pm
from pimeter.row_hashes import row_draws

SEED = 20261121
LEVEL = 0.9
M, N_NEW = 200, 100
HAS_MAPIE = find_spec("mapie") is not None
KINDS = (("lac", False), ("aps", False), ("aps", True), ("raps", True))


class Overconfident(ClassifierMixin, BaseEstimator):
    """Features are the true log-odds; it takes them for more than they are."""

    def __init__(self, n_classes: int = 3) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, _X: np.ndarray, _y: np.ndarray) -> Overconfident:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return softmax(1.5 * X, axis=1)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X.argmax(axis=1)


def rows(n: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(scale=2.0, size=(n, k))
    y = (X + rng.gumbel(size=(n, k))).argmax(axis=1)  # a draw from the softmax
    return X, y


def ours(
    model: Overconfident, score: str, randomized: bool, X: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int
) -> np.ndarray:
    sets = pm.SetClassifier(
        model, confidence_level=LEVEL, conformity_score=score, randomized=randomized, random_state=seed
    )
    return sets.calibrate(X, y).predict_set(new)


class SameDraws(np.random.RandomState):
    """Uniform numbers that were drawn before."""

    def __init__(self, *batches: np.ndarray) -> None:
        super().__init__()
        self.batches = list(batches)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: object = None) -> np.ndarray:
        drawn = self.batches.pop(0)
        assert (low, high) == (0.0, 1.0)
        return drawn.reshape(size)


def mapies(
    model: Overconfident, score: str, randomized: bool, X: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int
) -> np.ndarray:
    from mapie.classification import SplitConformalClassifier

    state: int | SameDraws = seed
    if score == "aps" and randomized:
        used = int(np.random.RandomState(seed).randint(2**31 - 1))  # as SetClassifier makes its seed
        state = SameDraws(row_draws(X, used), row_draws(new, used))
    peer = SplitConformalClassifier(
        model, confidence_level=LEVEL, prefit=True, conformity_score=score, random_state=state
    ).conformalize(X, y)
    more = (
        {}
        if score == "lac"
        else {"conformity_score_params": {"include_last_label": "randomized" if randomized else True}}
    )
    return peer.predict_set(new, **more)[1][:, :, 0]


def takes(score: str, k: int) -> bool:
    """MAPIE's RAPS parts rows by class, and refuses classes with one row, which 100 classes in 200 rows always have."""
    return score != "raps" or k <= M // 20


def table(n_splits: int, classes: tuple[int, ...]) -> Iterator[str]:
    yield (
        "| classes | score | coverage | standard error | at least | at most | mean size | empty | MAPIE's coverage | "
        "MAPIE's mean size | size / MAPIE's | standard error |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for i, (k, (score, randomized)) in enumerate(product(classes, KINDS)):
        rng = np.random.default_rng([SEED, i])
        model = Overconfident(k)
        found: dict[str, list[list[float]]] = {"ours": [], "MAPIE": []}
        for split in range(n_splits):
            X, y = rows(M, k, rng)
            new, true = rows(N_NEW, k, rng)
            for name, method in (("ours", ours), ("MAPIE", mapies)):
                if name == "MAPIE" and not (HAS_MAPIE and takes(score, k)):
                    continue
                sets = method(model, score, randomized, X, y, new, split)
                found[name].append(
                    [sets[np.arange(N_NEW), true].mean(), sets.sum(axis=1).mean(), (~sets.any(axis=1)).mean()]
                )
        own = np.array(found["ours"])
        coverage, size, empty = own.mean(axis=0)
        error = own[:, 0].std(ddof=1) / n_splits**0.5
        m = M - int(0.2 * M) if score == "raps" else M
        is_bounded = score == "lac" or randomized
        upper = f"{LEVEL + 1 / (m + 1) + 3 * error:.4f}" if is_bounded else ""
        peer = [""] * 4
        if found["MAPIE"]:
            others = np.array(found["MAPIE"])
            other = others.mean(axis=0)
            ratio = size / other[1]
            paired = (own[:, 1] - ratio * others[:, 1]).std(ddof=1) / n_splits**0.5 / other[1]
            peer = [f"{other[0]:.4f}", f"{other[1]:.3f}", f"{ratio:.4f}", f"{paired:.4f}"]
        name = f"{score}, randomized" if randomized else score
        yield (
            f"| {k} | {name} | {coverage:.4f} | {error:.4f} | {LEVEL - 3 * error:.4f} | {upper} | "
            f"{size:.3f} | {empty:.4f} | "
            f"{' | '.join(peer)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few splits, nothing saved")
    quick = parser.parse_args().quick
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn", *(["mapie"] if HAS_MAPIE else []))
    )
    n_splits = 5 if quick else 1000
    rows_used = f"{n_splits:,} splits of {M} calibration and {N_NEW} new rows"
    head = f"`python benchmarks/classification_sets.py`, seed {SEED}; {rows_used}"
    lines = [
        "# Sets of classes beside MAPIE's\n",
        f"{head}, p = {LEVEL}. Python {platform.python_version()}, {versions}.\n",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MAPIE's remarks
        print(*lines, sep="\n", flush=True)
        for line in table(n_splits, (3, 10) if quick else (3, 10, 100)):
            print(line, flush=True)
            lines.append(line)
    if quick or not HAS_MAPIE:
        print("Nothing saved.")
        return
    save(__file__, "\n".join([*lines, ""]), packages=["mapie"])


if __name__ == "__main__":
    main()
