// The rule of bandwidth.py in C++, the same names in the same order; tests/test_kernels.py holds the two together.
// What Python says of numbers and arrays serves doubles and vectors of them here.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "constants.hpp"
#include "vector.hpp"

namespace pimeter {

using namespace bandwidth;  // the constants

template <class Numbers>
struct Windows {
    Numbers left, right, own;  // widths left and right of a cell, each with the cell, and of the cell alone
};

// A power of 2 that brings errors of extreme size near 1, so that no square or quotient leaves the floats.
inline double safe_factor(double largest) {
    if (largest == 0.0 || (1e-100 < largest && largest < 1e100)) return 1.0;
    int exponent;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, -std::max(exponent, -1000));
}

template <class Numbers>
INLINE Numbers squared(Numbers a) {
    return a * a;
}

// Standard error, in level, of the proportion of m errors below their quantile at level p.
inline double standard_error(double p, double m) { return std::pow(p * (1.0 - p) / (m + 1.0), 0.5); }

// Where smoothing with h leaves level p: 1/2 + (p - 1/2) pi h / sinh(pi h).
inline double shrunk(double p, double h) {
    double square = squared(SHIFT * h);
    return 0.5 + (p - 0.5) / (1.0 + square / 6.0 * (1.0 + square / 20.0 * (1.0 + square / 42.0)));
}

template <class Numbers>
INLINE Numbers positive(Numbers a) {
    return (a + absolute(a)) / 2.0;
}

template <class Numbers>
INLINE Numbers contrast(Numbers a, Numbers b) {
    return 2.0 * (a - b) / (a + b);
}

// Widths in errors of a cell's windows, never quite 0.
template <class Numbers>
INLINE Windows<Numbers> widths(Windows<Numbers> error) {
    Numbers least = TIED * both(error) + LEAST_WIDTH;
    return {error.left + least, error.right + least, error.own + least};
}

// Width from the left window's start to the right one's end.
template <class Numbers>
INLINE Numbers both(Windows<Numbers> windows) {
    return windows.left + windows.right - windows.own;
}

// Relative variance of the density in a window that spans this much level.
template <class Numbers>
INLINE Numbers noise(Numbers level, double m) {
    return 1.0 / (m * level);
}

// Squared relative distance of a window's density to the normal one.
template <class Numbers>
INLINE Numbers distance_from_normal(Numbers error, Numbers normal) {
    return squared(contrast(normal, error + LEAST_WIDTH));
}

// Squared relative difference of the densities on both sides of a cell, beyond so many times its noise.
template <class Numbers>
INLINE Numbers roughness(
    Windows<Numbers> error, Windows<Numbers> level, Windows<Numbers> normal, double m, double noises = 1.0) {
    Numbers difference = contrast(normal.left * error.right, normal.right * error.left);
    return squared(difference) - noises * (noise(level.left, m) + noise(level.right, m));
}

struct Resolution {
    double h, pseudo_count;
};

// Bandwidth h on the map, and the pseudo-count of the normal reference, from the sample's means.
inline Resolution resolution(double distance, double rough, double m) {
    double c = SHARP * std::pow(m / 100.0, GROWTH) / std::pow(1.0 + positive(rough) / ROUGH, 0.5);
    return {(SHARPEST + positive(c - SHARPEST)) / std::pow(m + 1.0, 0.5), 1.0 / (distance + TIED)};
}

// Bandwidth h on the map for more than LARGE errors.
inline double large_resolution(double m) { return SHARP / std::pow(m + 1.0, 0.5); }

struct Cells {
    Index first, last;
};

// Cells [first, last) of a large sample's map whose errors may affect level p, with a third to spare.
inline Cells near(double m, double p, Index n_cells) {
    double edge = std::acos(1.0 - 1.0 / m);
    double step = (std::numbers::pi - 2.0 * edge) / n_cells;
    Index extent = Index(1.3 * (SATURATION * large_resolution(m) + 2.0 * BRACKET / std::sqrt(m)) / step) + 1;
    Index cell = Index((std::acos(1.0 - 2.0 * p) - edge) / step);
    return {std::clamp<Index>(cell - extent, 0, n_cells - 1), std::clamp<Index>(cell + 1 + extent, 1, n_cells)};
}

// How much an excess over noise counts, from 0 to 1.
template <class Numbers>
INLINE Numbers beyond(Numbers excess) {
    Numbers above = positive(excess);
    return above / (above + HALF);
}

// Squared relative difference of a cell's own density to that of all its surroundings, beyond noise.
template <class Numbers>
INLINE Numbers isolation(Windows<Numbers> error, Windows<Numbers> level, Windows<Numbers> normal, double m) {
    Numbers difference = contrast(normal.own * both(error), both(normal) * error.own);
    return squared(difference) - ISOLATED * (noise(level.own, m) - noise(both(level), m));
}

// Units of the map per unit of error in a cell, from its windows.
template <class Numbers>
INLINE Numbers slope(Windows<Numbers> error, Windows<Numbers> level, Windows<Numbers> normal, Numbers unit,
                     double pseudo_count, double m) {
    Numbers left = level.left / error.left, right = level.right / error.right, own = level.own / error.own;
    Numbers count_left = m * level.left, count_right = m * level.right;
    Numbers shrunk_left = (count_left * left + pseudo_count * level.left / normal.left) / (count_left + pseudo_count);
    Numbers shrunk_right =
        (count_right * right + pseudo_count * level.right / normal.right) / (count_right + pseudo_count);
    Numbers denser = (left + right + absolute(left - right)) / 2.0;
    Numbers split = beyond(roughness(error, level, normal, m, SIGNIFICANT));
    Numbers density = (1.0 - split) * (shrunk_left + shrunk_right) / 2.0 + split * denser;
    Numbers alone = beyond(isolation(error, level, normal, m));
    return ((1.0 - alone) * density + alone * own) / unit;
}

}  // namespace pimeter
