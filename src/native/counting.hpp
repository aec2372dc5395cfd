// Many values counted and summed up by group: `_kernels/counting.py` in C++, the same names in the same order.
#pragma once

#include <cmath>

#include "vector.hpp"

namespace pimeter {

using Codes = std::span<const std::uint8_t>;

inline void place(Values values, Codes group, const double* bounds, Index n_bounds, std::uint8_t* places) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double *own = bounds + group[i] * n_bounds, *at = own;
        for (Index n = n_bounds, half; n > 1; n -= half) {  // by halves, without a branch
            half = n / 2;
            at += half * (at[half - 1] < values[i]);
        }
        places[i] = at - own + (*at < values[i]);
    }
}

inline void count_pairs(Codes first, Codes second, Index* counts, Index n_second) {
    for (std::size_t i = 0; i < first.size(); ++i) ++counts[first[i] * n_second + second[i]];
}

inline void sum_places(
    Values values, double near, double unit, Codes group, Codes places, double* sums, Index n_places) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        double x = (values[i] - near) / unit, *own = sums + 3 * (group[i] * n_places + places[i]);
        own[0] += 1.0, own[1] += x, own[2] += x * x;
    }
}

inline void sum_powers(Values errors, double unit, const double* near, double* sums) {
    for (double error : errors) {
        double x = error / unit;
        double size = std::abs(x) - near[0], square = x * x - near[1], own = x - near[2];
        sums[0] += size, sums[1] += square, sums[2] += own;
        sums[3] += size * size, sums[4] += square * square, sums[5] += own * own;
    }
}

inline void sum_squares(Values errors, Values targets, double least, double unit, double middle, const double* near,
                        double* sums) {
    for (std::size_t i = 0; i < errors.size(); ++i) {
        double x = errors[i] / unit, y = (targets[i] - least) / unit - middle;
        double error = x * x - near[0], base = y * y - near[1];
        sums[0] += error, sums[1] += base;
        sums[2] += error * error, sums[3] += base * base, sums[4] += error * base, sums[5] += y;
    }
}

}  // namespace pimeter
