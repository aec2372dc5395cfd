"""How a neuron learns from a stream, one error at a time; `src/native/stream.hpp` says the same in C++.

The state is four floats: the weight, the mean distance of errors from it, what the step remembers, and the number of
errors so far. An error over the weight moves it up by p steps, any other down by 1 - p steps.

`adapt` has a constant step. It is 6 % of the mean distance of recent errors from the weight, so it has no unit. It
remembers the mean of recent moves: if that is farther from 0 than chance allows, the distribution has changed, and
the step grows. A distance counts 20 times the mean one at most, so that a single wild error does not throw the weight
far.

`settle` has a step that decays: one over the number of errors and the density of errors at the weight, which it
remembers. This is Newton's method on the proportion of errors below the weight; in the end, which comes late at
high levels (`benchmarks/online_accuracy.py`), nothing is lost beside the quantile of all errors at once.

The numbers were chosen by trial on streams of |t4| errors (`adapt`) and on five distributions (`settle`).
"""

from __future__ import annotations

import math
from typing import Any

STEP = 0.06  # of the mean distance
N_EARLY = 43.0  # errors until which the step is larger: so many to the power of -3/4 are STEP
MEMORY = 0.01  # weight of the newest distance in the mean one, after 1/MEMORY errors
RECENT = 0.02  # weight of the newest move in their mean
DRIFT_THRESHOLD = 2.5  # standard deviations of the mean of moves, from which on the step grows
WILD = 20.0  # mean distances that the newest one counts at most
WINDOW = 1.0  # mean distances on either side of the weight in which the density is measured at first ...
NARROWING = 0.2  # ... and the power of the number of errors with which that window shrinks
SPARSE = 0.3  # least density times mean distance, as a part of min(p, 1 - p)
CAUTION = 20.0  # errors by which the first steps of `settle` are made smaller
ADAPT, SETTLE, FIXED = 0, 1, 2


def adapt(error: float, p: float, w: float, spread: float, lean: float, n: float) -> tuple[float, float, float, float]:
    """Learn one error with a constant step."""
    distance = abs(error - w)
    if distance > WILD * spread > 0.0:
        distance = WILD * spread
    memory, step = MEMORY, STEP
    if n < 1.0 / MEMORY:
        memory = 1.0 / (n + 1.0)
        if n < N_EARLY:
            step = n**-0.75
    spread += memory * (distance - spread)
    move = p if error > w else p - 1.0
    lean += RECENT * (move - lean)
    allowed = DRIFT_THRESHOLD * DRIFT_THRESHOLD * 0.5 * RECENT * p * (1.0 - p)
    if lean * lean > allowed:
        step *= 1.0 + DRIFT_THRESHOLD * (math.sqrt(lean * lean / allowed) - 1.0)
    return w + step * spread * move, spread, lean, n + 1.0


def settle(
    error: float, p: float, w: float, spread: float, density: float, n: float
) -> tuple[float, float, float, float]:
    """Learn one error with a step that decays; `density` is that at the weight times the mean distance."""
    distance = abs(error - w)
    spread += (distance - spread) / n
    if spread == 0.0:  # all tied
        return w, spread, density, n + 1.0
    window = WINDOW * n**-NARROWING
    found = 0.5 / window if distance < window * spread else 0.0
    density += (found - density) * 2.0 / (n + 1.0)
    move = p if error > w else p - 1.0
    least = SPARSE * min(p, 1.0 - p)
    return w + move * spread / (max(density, least) * (n + CAUTION)), spread, density, n + 1.0


def learn(errors: Any, p: float, kind: int, rate: float, state: tuple[float, float, float, float]) -> Any:
    """Learn all errors in their order, from one state to the next."""
    w, spread, memory, n = state
    start = 0
    if n == 0.0 and len(errors):
        w, n, start = errors[0], 1.0, 1
    if kind == ADAPT:
        for i in range(start, len(errors)):
            w, spread, memory, n = adapt(errors[i], p, w, spread, memory, n)
    elif kind == SETTLE:
        for i in range(start, len(errors)):
            w, spread, memory, n = settle(errors[i], p, w, spread, memory, n)
    else:
        up, down = rate * p, rate * (p - 1.0)
        for i in range(start, len(errors)):
            w += up if errors[i] > w else down
        n += len(errors) - start
    return w, spread, memory, n


def learn_columns(errors: Any, p: float, kind: int, states: Any) -> None:
    """Learn the errors (n, k) of k neurons into their states (k, 4); NaN is no error."""
    for j, own in enumerate(errors.T.tolist()):
        states[j] = learn([error for error in own if not math.isnan(error)], p, kind, 0.0, tuple(states[j].tolist()))
