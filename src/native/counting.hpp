// Many values counted in buckets, and summed up: `_kernels/counting.py` in C++, the same names in the same order.
#pragma once

#include <algorithm>
#include <cstring>

#include "constants.hpp"
#include "vector.hpp"

namespace pimeter {

using Codes = std::span<const std::uint8_t>;

// Buckets by the leading bits of floats: as many for each power of two, from `middle` up and down.
struct Scale {
    Index least, shift, middle, last;

    Index bucket(double value) const {
        Index bits;
        std::memcpy(&bits, &value, sizeof bits);
        Index distance = std::min(std::max<Index>((bits & counting::SIZE) - least, 0) >> shift, last - middle);
        return bits < 0 ? middle - distance : middle + distance;
    }
};

inline void count_buckets(Values values, Codes group, Scale scale, Index* counts) {
    for (std::size_t i = 0; i < values.size(); ++i) ++counts[group[i] * (scale.last + 1) + scale.bucket(values[i])];
}

inline void keep_buckets(Values values, Scale scale, const bool* is_wanted, std::span<Index> rows) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < values.size() && n < rows.size(); ++i) {
        rows[n] = i;
        n += is_wanted[scale.bucket(values[i])];
    }
}

inline void place(Values values, Codes group, Scale scale, const double* bounds, Index n_bounds,
                  const std::uint8_t* known, std::uint8_t* places) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        places[i] = known[group[i] * (scale.last + 1) + scale.bucket(values[i])];
        const double* own = bounds + group[i] * n_bounds;
        if (places[i] == counting::LOOK) places[i] = std::lower_bound(own, own + n_bounds, values[i]) - own;
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
