// Sorting and selecting without branches that depend on the values.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vector.hpp"

namespace pimeter {

constexpr Index FULL = 48;  // values in a bucket
constexpr Index CHUNK = 1024;  // buckets that are settled together

struct Range {
    double low, high;
    bool is_finite;
};

DISPATCHED inline Range range(Values x) {
    Vector low = x[0] - Vector{}, high = low;
    Vector odd{};
    Index i = 0;
    for (; i + LANES <= Index(x.size()); i += LANES) {
        Vector v;
        load(v, &x[i]);
        low = v < low ? v : low;
        high = v > high ? v : high;
        odd += v - v;  // NaN for NaN and infinities
    }
    Range all{x[0], x[0], joined(odd) == 0.0};
    for (Index k = 0; k < LANES; ++k) all = {std::min(all.low, low[k]), std::max(all.high, high[k]), all.is_finite};
    for (; i < Index(x.size()); ++i)
        all = {std::min(all.low, x[i]), std::max(all.high, x[i]), all.is_finite && x[i] - x[i] == 0.0};
    return all;
}

// Sort what is nearly in order: neighbours change places, all pairs at once, until none do.
DISPATCHED inline void settle(double* x, Index n) {
    for (bool is_moved = true; is_moved;) {
        is_moved = false;
        for (Index odd = 0; odd < 2; ++odd) {
            Bits moved{};
            Index i = odd;
            for (; i + LANES <= n; i += LANES) {
                Vector v;
                load(v, x + i);
                Vector other = swapped(v);
                Vector after = in_turns(other < v ? other : v, other > v ? other : v);
                moved |= Bits(v) ^ Bits(after);
                store(x + i, after);
            }
            is_moved |= any(moved);
            for (; i + 1 < n; i += 2)
                if (x[i] > x[i + 1]) {
                    std::swap(x[i], x[i + 1]);
                    is_moved = true;
                }
        }
    }
}

// Buckets of equal width for finite values within [low, high].
DISPATCHED inline void find_buckets(Values x, double low, double scale, std::uint32_t* bucket) {
    for (Index i = 0; i < Index(x.size()); ++i) bucket[i] = std::uint32_t(std::int32_t((x[i] - low) * scale));
}

class Sorter {
public:
    // Sort finite values by buckets of two on average, and settle what is in them. Settling takes as many turns as the
    // fullest bucket holds: one that holds very many, where values cluster, is sorted alone.
    void sort(Values x, double* out) { sort(x, out, range(x), true); }

    void sort(Values x, double* out, Range all, bool is_whole = true) {
        Index n = x.size(), n_buckets = std::min<Index>(n / 2 + 1, Index(1) << 30);
        double scale = all.high > all.low ? double(n_buckets - 1) / (all.high - all.low) : 0.0;
        if (!(0.0 < scale && scale < std::numeric_limits<double>::infinity())) {  // tied, or no measure for them
            std::copy(x.begin(), x.end(), out);
            if (all.low != all.high || !all.is_finite) std::sort(out, out + n);
            return;
        }
        bucket_.resize(n);
        offsets_.assign(n_buckets + 1, 0);
        find_buckets(x, all.low, scale, bucket_.data());
        for (Index i = 0; i < n; ++i) ++offsets_[bucket_[i] + 1];
        std::uint32_t fullest = 0, total = 0;
        for (std::uint32_t& offset : offsets_) {
            fullest = std::max(fullest, offset);
            offset = total += offset;
        }
        for (Index i = 0; i < n; ++i) out[offsets_[bucket_[i]]++] = x[i];
        if (fullest > FULL && !is_whole) {
            std::sort(out, out + n);
            return;
        }
        if (fullest > FULL) sort_full_buckets(out, n_buckets);
        for (Index start = 0, last = CHUNK - 1; start < n; last += CHUNK) {
            Index end = offsets_[std::min(last, n_buckets - 1)];
            settle(out + start, end - start);
            start = end;
            if (last >= n_buckets - 1) break;
        }
    }

    std::size_t room() const { return sizeof(std::uint32_t) * (bucket_.capacity() + offsets_.capacity()); }

private:
    void sort_full_buckets(double* out, Index n_buckets) {
        Sorter inner;
        Room part;
        for (Index i = 0, start = 0; i < n_buckets; start = offsets_[i++])
            if (offsets_[i] - start > FULL) {
                part.assign(out + start, out + offsets_[i]);
                inner.sort(part, out + start, range(part), false);
            }
    }

    std::vector<std::uint32_t> bucket_, offsets_;
};

// Sort the finite values of each group, one group after the other, and count them; no codes: all are of one group.
inline void sort_groups(Values x, std::span<const std::uint8_t> group, std::span<Index> counts, double* out) {
    Sorter sorter;
    if (group.empty()) {
        counts[0] = x.size();
        return sorter.sort(x, out);
    }
    for (std::uint8_t own : group) ++counts[own];
    std::vector<Index> at(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), at.begin(), Index(0));
    Room held(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) held[at[group[i]]++] = x[i];
    for (std::size_t g = 0; g < counts.size(); ++g)
        if (Index start = at[g] - counts[g]; counts[g]) sorter.sort({&held[start], std::size_t(counts[g])}, out + start);
}

// How many of its group's bounds, which rise, lie below each value.
inline void place(
    Values x, std::span<const std::uint8_t> group, const double* bounds, Index n_bounds, std::uint8_t* places) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double *own = bounds + group[i] * n_bounds, *at = own;
        for (Index n = n_bounds, half; n > 1; n -= half) {  // by halves, without a branch
            half = n / 2;
            at += half * (at[half - 1] < x[i]);
        }
        places[i] = at - own + (n_bounds > 0 && *at < x[i]);
    }
}

}  // namespace pimeter
