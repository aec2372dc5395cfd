// How a neuron learns from a stream, one error at a time: `_kernels/stream.py` in C++, the same names in the same order.
#pragma once

#include <algorithm>
#include <cmath>

#include "constants.hpp"
#include "vector.hpp"

namespace pimeter {

// One row of states; `memory` is the excess of misses or the density.
struct State {
    double w, spread, memory, n, lack, level, past, change, mean_change, mean_shift, by_change, by_shift, debt, largest;
};
static_assert(sizeof(State) == stream::N_FLOATS * sizeof(double));

inline double margin(const State& state) {
    return state.debt < stream::DEBT ? state.w : std::max(state.w, 2.0 * state.largest);
}

inline double follow(double error, double p, State& state) {
    using namespace stream;
    double &w = state.w, &spread = state.spread, &excess = state.memory, &n = state.n, &lack = state.lack;
    bool is_miss = error > margin(state);
    double sign = is_miss ? p : p - 1.0;
    double distance = std::abs(error - w);
    if (distance > WILD * spread && WILD * spread > 0.0) distance = WILD * spread;
    spread += std::max(MEMORY, 1.0 / (n + 1.0)) * (distance - spread);
    double rare = std::min(p, 1.0 - p), odds = rare / (1.0 - rare);
    bool is_rare = is_miss == (p >= 0.5);
    excess = std::clamp(excess + (is_rare ? 1.0 : -TOO_MANY * odds), 0.0, MOST);
    lack = std::clamp(lack + (is_rare ? -TOO_FEW : odds), 0.0, MOST);
    double faster = std::max({excess / EXCESS, lack / LACK, 1.0});
    state.debt = std::max(state.debt + sign, CREDIT);
    double step = std::max(STEP, std::min(1.0 / (EARLY * rare * (n + N_BEFORE)), 1.0)) * spread;
    w += step * (faster * faster * sign + PAYMENT * state.debt);
    n += 1.0;
    state.largest = std::max(std::abs(error), state.largest);
    return step * sign;
}

inline double coefficient(double now, double value, double mean, double move) {
    using namespace stream;
    if (value == 0.0) return now;
    double size = mean + std::abs(value);
    return std::clamp(now + GAIN * (move / size) * (value / size), WEAKEST, STRONGEST);
}

inline void adapt(double error, double p, State& state) {
    using namespace stream;
    auto& [w, spread, excess, n_seen, lack, level, past, change, mean_change, mean_shift, by_change, by_shift, debt,
           largest] = state;
    double n = n_seen, shift = level - past;
    double before = std::max(by_change, 0.0) * change + std::max(by_shift, 0.0) * shift;
    double move = follow(error, p, state);
    if (n > WAIT) {
        by_change = coefficient(by_change, change, mean_change, move);
        by_shift = coefficient(by_shift, shift, mean_shift, move);
    }
    double newest = 1.0 / (n + 1.0), most = SURPRISE * mean_change;
    mean_shift += std::max(MEMORY, newest) * (std::abs(shift) - mean_shift);
    change = error - level;
    if (most > 0.0) change = std::clamp(change, -most, most);
    mean_change += std::max(MEMORY, newest) * (std::abs(change) - mean_change);
    past += std::max(PAST, newest) * (level + change - past);
    level += std::max(RECENT, newest) * change;
    w += std::max(by_change, 0.0) * change + std::max(by_shift, 0.0) * (level - past) - before;
}

inline void settle(double error, double p, State& state) {
    using namespace stream;
    double &w = state.w, &spread = state.spread, &density = state.memory, &n = state.n;
    double distance = std::abs(error - w);
    spread += (distance - spread) / n;
    if (spread > 0.0) {  // not all tied
        double window = WINDOW * std::pow(n, -NARROWING);
        double found = distance < window * spread ? 0.5 / window : 0.0;
        density += (found - density) * 2.0 / (n + 1.0);
        double move = error > w ? p : p - 1.0;
        w += move * spread / (std::max(density, SPARSE * std::min(p, 1.0 - p)) * (n + CAUTION));
    }
    n += 1.0;
}

// Learn errors that lie so far apart in memory, in their order; NaN is no error.
inline void learn(const double* errors, Index n, Index stride, double p, Index kind, double rate, State& state) {
    double up = rate * p, down = rate * (p - 1.0);
    for (Index i = 0; i < n; ++i) {
        double error = errors[i * stride];
        if (std::isnan(error)) continue;
        if (state.n == 0.0) {
            state.w = state.level = state.past = error;
            state.largest = std::abs(error);
            state.n = 1.0;
        } else if (kind == stream::ADAPT) {
            adapt(error, p, state);
        } else if (kind == stream::FOLLOW) {
            follow(error, p, state);
        } else if (kind == stream::SETTLE) {
            settle(error, p, state);
        } else {
            state.w += error > state.w ? up : down;
            state.n += 1.0;
        }
    }
}

}  // namespace pimeter
