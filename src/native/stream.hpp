// How a neuron learns from a stream, one error at a time: `_kernels/stream.py` in C++, the same names in the same order.
#pragma once

#include <algorithm>
#include <cmath>

#include "constants.hpp"
#include "vector.hpp"

namespace pimeter {

struct State {
    double w, spread, memory, n;
};

inline void adapt(double error, double p, State& state) {
    using namespace stream;
    auto& [w, spread, lean, n] = state;
    double distance = std::abs(error - w);
    if (distance > WILD * spread && WILD * spread > 0.0) distance = WILD * spread;
    double memory = MEMORY, step = STEP;
    if (n < 1.0 / MEMORY) {
        memory = 1.0 / (n + 1.0);
        if (n < N_EARLY) step = std::pow(n, -0.75);
    }
    spread += memory * (distance - spread);
    double move = error > w ? p : p - 1.0;
    lean += RECENT * (move - lean);
    double allowed = DRIFT_THRESHOLD * DRIFT_THRESHOLD * 0.5 * RECENT * p * (1.0 - p);
    if (lean * lean > allowed) step *= 1.0 + DRIFT_THRESHOLD * (std::sqrt(lean * lean / allowed) - 1.0);
    w += step * spread * move;
    n += 1.0;
}

inline void settle(double error, double p, State& state) {
    using namespace stream;
    auto& [w, spread, density, n] = state;
    double distance = std::abs(error - w);
    spread += (distance - spread) / n;
    if (spread != 0.0) {  // not all tied
        double window = WINDOW * std::pow(n, -NARROWING);
        double found = distance < window * spread ? 0.5 / window : 0.0;
        density += (found - density) * 2.0 / (n + 1.0);
        double move = error > w ? p : p - 1.0;
        double least = SPARSE * std::min(p, 1.0 - p);
        w += move * spread / (std::max(density, least) * (n + CAUTION));
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
            state.w = error;
            state.n = 1.0;
        } else if (kind == stream::ADAPT) {
            adapt(error, p, state);
        } else if (kind == stream::SETTLE) {
            settle(error, p, state);
        } else {
            state.w += error > state.w ? up : down;
            state.n += 1.0;
        }
    }
}

}  // namespace pimeter
