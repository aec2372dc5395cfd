"""How a neuron learns from a stream, one error at a time; `src/native/stream.hpp` says the same in C++.

The state is a row of floats: the weight (the margin for the next error), the mean distance of errors from it, what the
step remembers, the number of errors so far, and what `adapt` knows besides. An error over the weight moves it up by p
steps, any other down by 1 - p steps.

`adapt` has a step of 2 % of the mean distance of recent errors from the weight, so it has no unit; it is larger at the
start. Two counters (CUSUM) look for too many and too few misses, and the step grows with what they find; the sum of all
misses beyond those allowed, the debt, moves the weight, too, so that what a larger step costs is paid back. On top of
that weight, which moves slowly, the margin has two inputs: how far the newest error lies from the recent level of
errors, and that level from the one of the past. What each of them counts is learned in the same way, from misses and
hits alone, so that a margin is larger after large errors where these do not come singly; a coefficient has to rise
above 0 before it counts, so errors without memory pay little for it. Distances count a few times the mean one at most,
so that a single wild error does not throw the margin far. At a debt of 100 the margin is twice the largest error so
far, whatever the weight is: a miss then means that the largest error has doubled, which cannot happen often. `follow`
leaves the inputs out, for margins that are asked for long before their error is known.

`settle` has a step that decays: one over the number of errors and the density of errors at the weight, which it
remembers. This is Newton's method on the proportion of errors below the weight; in the end, which comes late at
high levels (`benchmarks/online_accuracy.py`), nothing is lost beside the quantile of all errors at once.

The numbers were chosen by trial on streams with other parameters than those of `benchmarks/online_streams.py` (`adapt`)
and on five distributions (`settle`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

N_FLOATS = 14  # of a state
STEP = 0.02  # of the mean distance
EARLY = 1.25  # the step of the n-th error is at least 1/(EARLY min(p, 1 - p) (n + N_BEFORE)), and 1 at most ...
N_BEFORE = 5.0  # ... with so many errors before the first
MEMORY = 0.01  # weight of the newest distance in the mean one, after 1/MEMORY errors
WILD = 20.0  # mean distances that the newest one counts at most
TOO_MANY = 2.0  # times the usual rate of misses from which on their excess grows ...
EXCESS = 3.0  # ... and the excess of misses from which on the step does, quadratically
TOO_FEW = 1.6  # one over the part of the usual rate of misses below which their lack grows ...
LACK = 4.0  # ... and the lack of misses from which on the step does, quadratically
MOST = 10.0  # misses that excess and lack are at most
PAYMENT = 0.001  # of the debt with every step
CREDIT = -20.0  # least debt
DEBT = 100.0  # from which on the margin is twice the largest error
GAIN = 1.4  # step of coefficients, in steps of the weight
WAIT = 30.0  # errors before coefficients are learned
WEAKEST = -0.2  # least coefficient; below 0 an input does not count
STRONGEST = 3.0  # largest coefficient
RECENT = 0.1  # weight of the newest error in the recent level
PAST = 0.002  # weight of the newest error in the level of the past
SURPRISE = 6.0  # mean changes that the newest one counts at most
WINDOW = 1.0  # mean distances on either side of the weight in which the density is measured at first ...
NARROWING = 0.2  # ... and the power of the number of errors with which that window shrinks
SPARSE = 0.3  # least density times mean distance, as a part of min(p, 1 - p)
CAUTION = 20.0  # errors by which the first steps of `settle` are made smaller
ADAPT, SETTLE, FIXED, FOLLOW = 0, 1, 2, 3


def margin(state: Sequence[float]) -> float:
    """Below which the next error is to lie: the weight, unless misses were far too many."""
    w, debt, largest = state[0], state[12], state[13]
    return w if debt < DEBT else max(w, 2.0 * largest)


def follow(error: float, p: float, state: list[float]) -> float:
    """Learn one error with a step that does not decay; gives the move without what excess, lack and debt add to it."""
    w, spread, excess, n, lack = state[:5]
    is_miss = error > margin(state)
    sign = p if is_miss else p - 1.0
    distance = abs(error - w)
    if distance > WILD * spread > 0.0:
        distance = WILD * spread
    spread += max(MEMORY, 1.0 / (n + 1.0)) * (distance - spread)
    rare = min(p, 1.0 - p)
    odds = rare / (1.0 - rare)
    is_rare = is_miss == (p >= 0.5)
    excess = min(max(excess + (1.0 if is_rare else -TOO_MANY * odds), 0.0), MOST)
    lack = min(max(lack + (-TOO_FEW if is_rare else odds), 0.0), MOST)
    faster = max(excess / EXCESS, lack / LACK, 1.0)
    debt = max(state[12] + sign, CREDIT)
    step = max(STEP, min(1.0 / (EARLY * rare * (n + N_BEFORE)), 1.0)) * spread
    state[:5] = w + step * (faster * faster * sign + PAYMENT * debt), spread, excess, n + 1.0, lack
    state[12:] = debt, max(abs(error), state[13])
    return step * sign


def coefficient(now: float, value: float, mean: float, move: float) -> float:
    """What an input counts from now on; `mean` is that of its absolute values."""
    if value == 0.0:
        return now
    size = mean + abs(value)
    return min(max(now + GAIN * (move / size) * (value / size), WEAKEST), STRONGEST)


def adapt(error: float, p: float, state: list[float]) -> None:
    """Learn one error as `follow` does, and how margins depend on the errors before."""
    n = state[3]
    level, past, change, mean_change, mean_shift, by_change, by_shift = state[5:12]
    shift = level - past
    before = max(by_change, 0.0) * change + max(by_shift, 0.0) * shift
    move = follow(error, p, state)
    if n > WAIT:
        by_change = coefficient(by_change, change, mean_change, move)
        by_shift = coefficient(by_shift, shift, mean_shift, move)
    newest = 1.0 / (n + 1.0)
    mean_shift += max(MEMORY, newest) * (abs(shift) - mean_shift)
    change, most = error - level, SURPRISE * mean_change
    if most > 0.0:
        change = min(max(change, -most), most)
    mean_change += max(MEMORY, newest) * (abs(change) - mean_change)
    past += max(PAST, newest) * (level + change - past)
    level += max(RECENT, newest) * change
    state[0] += max(by_change, 0.0) * change + max(by_shift, 0.0) * (level - past) - before
    state[5:12] = level, past, change, mean_change, mean_shift, by_change, by_shift


def settle(error: float, p: float, state: list[float]) -> None:
    """Learn one error with a step that decays; `density` is that at the weight times the mean distance."""
    w, spread, density, n = state[:4]
    distance = abs(error - w)
    spread += (distance - spread) / n
    if spread > 0.0:  # not all tied
        window = WINDOW * n**-NARROWING
        found = 0.5 / window if distance < window * spread else 0.0
        density += (found - density) * 2.0 / (n + 1.0)
        move = p if error > w else p - 1.0
        w += move * spread / (max(density, SPARSE * min(p, 1.0 - p)) * (n + CAUTION))
    state[:4] = w, spread, density, n + 1.0


def learn(errors: Any, p: float, kind: int, rate: float, state: list[float]) -> None:
    """Learn all errors in their order into the state."""
    rules: Any = {ADAPT: adapt, FOLLOW: follow, SETTLE: settle}
    for error in errors:
        if state[3] == 0.0:
            state[0] = state[5] = state[6] = error
            state[3], state[13] = 1.0, abs(error)
        elif kind == FIXED:
            state[0] += rate * p if error > state[0] else rate * (p - 1.0)
            state[3] += 1.0
        else:
            rules[kind](error, p, state)


def learn_columns(errors: Any, p: float, kind: int, rate: float, states: Any) -> None:
    """Learn the errors (n, k) of k neurons into their states (k, N_FLOATS); NaN is not an error."""
    for own, state in zip(errors.T.tolist(), states, strict=True):
        after = state.tolist()
        learn([error for error in own if not math.isnan(error)], p, kind, rate, after)
        state[:] = after
