// Quantiles of one sample: order statistics, the map through the knots, the root of the smoothed CDF.
#pragma once

#include <bit>

#include "rule.hpp"
#include "sort.hpp"

namespace pimeter {

using reference::MAX_STEPS, reference::NARROWEST, reference::NEWTON_STEPS, reference::PLATEAU, reference::STEEP,
    reference::TOLERANCE, reference::WIDE;

enum Status : std::uint8_t { FINE, MISSING, INFINITE, NARROW };  // what a kernel says of a sample

// The knots of a map before any error is seen: `bandwidth.knots`.
struct Knots {
    Values level, normal, unit;
    bool is_large;
};

DISPATCHED inline double sum(Values a) {
    Vector strands{};
    Index i = 0;
    for (; i + LANES <= Index(a.size()); i += LANES) {
        Vector v;
        load(v, &a[i]);
        strands += v;
    }
    for (; i < Index(a.size()); ++i) strands[0] += a[i];
    return joined(strands);
}

// exp(-z), |z| up to 700: as 2^n exp(r) with a series in r, because a loop without calls is vectorised.
INLINE double exp_minus(double z) {
    constexpr double shift = 0x1.8p52, upper = 0x1.62e42fefa0000p-1, lower = 0x1.cf79abc9e3b39p-40;  // of log(2)
    double rounded = z * -std::numbers::log2e + shift, n = rounded - shift;
    double r = (-z - n * upper) - n * lower;
    double e = 1.0 / 3628800 + r * (1.0 / 39916800 + r * (1.0 / 479001600));
    e = 1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880 + r * e)));
    e = 1.0 + r * (1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * e)))));
    return e * std::bit_cast<double>((std::bit_cast<std::int64_t>(rounded) + 1023) << 52);
}

constexpr double FARTHEST = 700.0;  // bandwidths: farther ones are as far

// exp(-(origin - position)/h) of each position.
DISPATCHED inline void find_powers(Values positions, double origin, double h, double* powers) {
    double sharpness = 1.0 / h;
    for (std::size_t i = 0; i < positions.size(); ++i) {
        double z = (origin - positions[i]) * sharpness;
        z = z < FARTHEST ? z : FARTHEST;
        powers[i] = exp_minus(z > -FARTHEST ? z : -FARTHEST);
    }
}

struct Cdf {
    double value, first, second, third;  // and its derivatives, per bandwidth
};

// Sums of the activations 1/(1 + e) and their derivatives, where e are powers times a factor: sigmoids, stretched a
// little so that they are 0 and 1 where e is at its most and least. One division serves four of them.
DISPATCHED inline Cdf summed_cdf(Values powers, Values counts, double factor, double most) {
    constexpr Index AT_ONCE = 4 * LANES;
    double least = 1.0 / most, floor = 1.0 / (1.0 + most), total = double(powers.size());
    Vector sums[4]{};
    auto add = [&](const double* own, const double* counted) __attribute__((always_inline)) {
        Vector e[4], held[4], one[4], times;
        for (Index k = 0; k < 4; ++k) {
            load(e[k], own + k * LANES), e[k] *= factor;
            held[k] = e[k] < most ? e[k] : most - Vector{};
            held[k] = held[k] > least ? held[k] : least - Vector{};
            one[k] = held[k] + 1.0;
        }
        Vector left = one[0] * one[1], right = one[2] * one[3], inverse = 1.0 / (left * right);
        left *= inverse, right *= inverse;
        for (Index k = 0; k < 4; ++k) {
            Vector s = (k < 2 ? right : left) * one[k ^ 1];
            Vector slope = e[k] == held[k] ? held[k] * s * s : Vector{}, bend = slope * s, square = slope * slope;
            if (counted) load(times, counted + k * LANES), s *= times, slope *= times, bend *= times, square *= times;
            sums[0] += s, sums[1] += slope, sums[2] += bend, sums[3] += square;
        }
    };
    Index n = powers.size(), n_left = n % AT_ONCE;
    for (Index i = 0; i < n - n_left; i += AT_ONCE) add(&powers[i], counts.empty() ? nullptr : &counts[i]);
    if (n_left) {
        double last[AT_ONCE] = {}, last_counts[AT_ONCE] = {};
        std::copy_n(powers.end() - n_left, n_left, last);
        counts.empty() ? std::fill_n(last_counts, n_left, 1.0) : std::copy_n(counts.end() - n_left, n_left, last_counts);
        add(last, last_counts);
    }
    if (!counts.empty()) total = std::accumulate(counts.begin(), counts.end(), 0.0);
    // The second derivative of s is s' (1 - 2 s), the third s' (1 - 6 s').
    double unit = 1.0 - 2.0 * floor, first = joined(sums[1]) / unit;
    return {(joined(sums[0]) - total * floor) / unit, first, first - 2.0 * joined(sums[2]) / unit,
            first - 6.0 * joined(sums[3]) / unit};
}

// The smoothed distribution function of m errors, so many of them below those that are near.
struct Smoothed {
    Values positions, counts, powers;  // powers as seen from the origin; none: they are found for each t
    double origin, below, m, h, most;
    Room& room;

    Cdf at(double t) const {
        if (powers.empty()) {
            room.resize(positions.size());
            find_powers(positions, t, h, room.data());
        }
        Cdf all = powers.empty() ? summed_cdf(room, counts, 1.0, most)
                                 : summed_cdf(powers, counts, std::exp((origin - t) / h), most);
        return {(below + all.value) / m, all.first / m, all.second / m, all.third / m};
    }
};

constexpr std::size_t SMOOTH = 100;  // errors whose smoothed distribution function is nearly straight within h

// Where a smoothed distribution function is p, kept in [low, high]: by a series where it is smooth, else Newton's
// method on the logit scale, and bisection where that fails.
inline double find_root(const Smoothed& smoothed, double p, double start, double low, double high) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double a = -infinity, b = infinity, t = start, h = smoothed.h;
    bool is_smooth = smoothed.positions.size() >= SMOOTH;
    for (Index n_steps = 0; n_steps < MAX_STEPS; ++n_steps) {
        auto [cdf, slope, second, third] = smoothed.at(t);
        double step = cdf < p ? -infinity : infinity;
        if (0.0 < cdf && cdf < 1.0 && slope > 0.0) {
            double u = (cdf - p) / slope, bend = second / (2.0 * slope), twist = third / (6.0 * slope);
            if (is_smooth && std::abs(u) < 0.5)
                step = h * (u * (1.0 + u * (bend + u * (2.0 * bend * bend - twist))));
            else
                step = h * ((std::log(cdf / (1.0 - cdf)) - std::log(p / (1.0 - p))) * cdf * (1.0 - cdf) / slope);
        }
        double next = std::min(std::max(t - step, low), high);
        if (std::abs(cdf - p) <= PLATEAU) return t;
        if (std::abs(step) <= TOLERANCE * h || (t == low && cdf >= p) || (t == high && cdf <= p)) return next;
        (cdf > p ? b : a) = t;
        if (n_steps >= NEWTON_STEPS || !(a < next && next < b)) next = 0.5 * std::max(a, low) + 0.5 * std::min(b, high);
        if (next == t) return next;
        t = next;
    }
    return t;
}

// Sorted errors, of which so many more lie below, and with counts their cumulative sums.
struct Sample {
    Values x, counts, cumulative;
    double below, m;

    // Hazen's quantile: the i-th value stands at i - 1/2, or, with counts, over the middle of its counts.
    double hazen(double level) const {
        double position = level * m - below;
        Index n = x.size();
        if (cumulative.empty()) {
            double rank = std::min(std::max(position - 0.5, 0.0), n - 1.0);
            Index i = std::min<Index>(Index(rank), n - 2);
            return std::min(x[i] + (rank - i) * (x[i + 1] - x[i]), x[i + 1]);  // the sum may round beyond the next
        }
        auto end = [&](Index i) { return i < 0 ? 0.0 : cumulative[i]; };
        auto half = [&](Index i) { return 0.5 * std::min(1.0, end(i) - end(i - 1)); };
        auto at = std::lower_bound(cumulative.begin(), cumulative.end(), position);
        Index i = std::min<Index>(at - cumulative.begin(), n - 1);
        double first = end(i - 1) + half(i), last = end(i) - half(i);
        if (position < first && i > 0) {
            double before = end(i - 1) - half(i - 1);
            return x[i - 1] + (position - before) / (first - before) * (x[i] - x[i - 1]);
        }
        if (position > last && i < n - 1) {
            double after = end(i) + half(i + 1);
            return x[i] + (position - last) / (after - last) * (x[i + 1] - x[i]);
        }
        return x[i];
    }

    double n_before(Index i) const { return below + (cumulative.empty() ? double(i) : i ? cumulative[i - 1] : 0.0); }
};

// Distances from the middle in units of the quartiles', and their squares, as often as they count.
DISPATCHED inline void deviations(
    Values x, Values counts, double middle, double quartiles, double* first, double* second) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        double d = (x[i] - middle) / quartiles;
        first[i] = d, second[i] = d * d;
    }
    for (std::size_t i = 0; i < counts.size(); ++i) first[i] *= counts[i], second[i] *= counts[i];
}

// The smaller of the standard deviation and the normal-consistent interquartile range; 0 for too few errors.
inline double spread(const Sample& sample, Room& first, Room& second) {
    auto [x, counts, cumulative, below, m] = sample;
    if (m < 3.0) return 0.0;
    double quartiles = (sample.hazen(0.75) - sample.hazen(0.25)) / 1.349;
    if (quartiles <= LEAST_WIDTH * (x.back() - x.front())) return 0.0;
    double middle = x[x.size() / 2];
    first.resize(x.size()), second.resize(x.size());
    deviations(x, counts, middle, quartiles, first.data(), second.data());
    double mean = sum(first), square = sum(second);
    double deviation = std::sqrt((square - mean * mean / m) / (m - 1.0));
    return deviation < 1.0 ? deviation * quartiles : quartiles;
}

// The power of 2 below a width: dividing by it changes no bits.
inline double unit_of(double width) {
    int exponent;
    std::frexp(width, &exponent);
    return std::ldexp(0.5, exponent);
}

// Widths of the windows of cell j, or of eight cells from j on; `a` has KNOTS more on either side.
template <class Numbers>
INLINE Windows<Numbers> windows(const double* a, Index j) {
    Numbers before, start, end, after;
    load(before, a + j), load(start, a + j + KNOTS), load(end, a + j + KNOTS + 1), load(after, a + j + 2 * KNOTS + 1);
    return {end - before, after - start, end - start};
}

template <class Numbers, class Unit>
INLINE Windows<Numbers> in_units(Windows<Numbers> a, Unit unit) {
    return {a.left / unit, a.right / unit, a.own / unit};
}

// Call work(j, Numbers) for all of n cells, eight at a time where there are so many; some may come twice.
template <class Work>
INLINE void for_cells(Index n, Work work) {
    if (n < LANES)
        for (Index j = 0; j < n; ++j) work(j, double{});
    else
        for (Index j = 0; j < n; j += LANES) work(std::min(j, n - LANES), Vector{});
}

// How far from normal and how rough the sample is, by cell.
DISPATCHED inline void measure_cells(
    const double* knots, double spread, const Knots& at, double m, double* distance, double* rough) {
    for_cells(at.unit.size(), [&]<class Numbers>(Index j, Numbers) __attribute__((always_inline)) {
        auto error = in_units(windows<Numbers>(knots, j), spread);
        auto level = windows<Numbers>(at.level.data(), j), normal = windows<Numbers>(at.normal.data(), j);
        Numbers unit, first, last, first_normal, last_normal;
        load(unit, &at.unit[j]);
        load(first, knots + j), load(last, knots + j + 2 * KNOTS + 1);
        load(first_normal, &at.normal[j]), load(last_normal, &at.normal[j + 2 * KNOTS + 1]);
        store(distance + j, unit * distance_from_normal((last - first) / spread, last_normal - first_normal));
        store(rough + j, unit * roughness(widths(error), level, normal, m));
    });
}

// Units of the map per unit of error in each cell, from windows that are measured in a unit of their own.
DISPATCHED inline void find_slopes(
    const double* knots, const double* units, double pseudo_count, const Knots& at, double m, double* slopes) {
    for_cells(at.unit.size(), [&]<class Numbers>(Index j, Numbers) __attribute__((always_inline)) {
        Numbers unit, own;
        load(unit, &at.unit[j]), load(own, units + j);
        auto error = widths(in_units(windows<Numbers>(knots, j), own));
        auto level = windows<Numbers>(at.level.data(), j), normal = windows<Numbers>(at.normal.data(), j);
        store(slopes + j, slope(error, level, normal, unit, pseudo_count, m) / own);
    });
}

// The map of a sample: piecewise linear from errors to positions.
struct Map {
    Values knots, slopes;
    Room at;  // positions of the knots

    static Index cell(Values edges, double x) {
        Index i = std::upper_bound(edges.begin(), edges.end(), x) - edges.begin() - 1;
        return std::clamp<Index>(i, 0, Index(edges.size()) - 2);
    }

    // Positions count from this cell on.
    void lay(Index origin) {
        at.resize(knots.size());
        at[origin] = 0.0;
        for (std::size_t j = origin; j < slopes.size(); ++j) at[j + 1] = at[j] + (knots[j + 1] - knots[j]) * slopes[j];
        for (Index j = origin - 1; j >= 0; --j) at[j] = at[j + 1] - (knots[j + 1] - knots[j]) * slopes[j];
    }

    // Distances in a cell count from the nearer one of its knots: the other may be far away.
    static Index nearer(Values edges, Index j, double x) { return j + (x - edges[j] > edges[j + 1] - x); }

    double position(Index j, double x) const {
        Index i = nearer(knots, j, x);
        return at[i] + (x - knots[i]) * slopes[j];
    }
    double position(double x) const { return position(cell(knots, x), x); }

    double error(double t) const {
        Index j = cell(at, t), i = nearer(at, j, t);
        return knots[i] + (t - at[i]) / slopes[j];
    }
};

// What the quantiles of one sample after another need room for.
class Solver {
public:
    // Quantiles of one sorted finite sample; counts may be empty.
    void solve(Values x, Values counts, const Knots& knots, Values levels, double* out) {
        cumulative_.resize(counts.size());
        std::partial_sum(counts.begin(), counts.end(), cumulative_.begin());
        if (x.size() == 1)
            std::fill_n(out, levels.size(), x[0]);
        else
            solve({x, counts, cumulative_, 0.0, counts.empty() ? double(x.size()) : cumulative_.back()}, knots, levels, out);
    }

    // Quantiles of a sample through the knots; false if it is but a part, which does not span enough of the map.
    bool solve(const Sample& sample, const Knots& knots, Values levels, double* out) {
        knots_.resize(knots.level.size());
        for (std::size_t j = 0; j < knots_.size(); ++j) knots_[j] = sample.hazen(knots.level[j]);
        double width = knots_.back() - knots_.front();
        double unit = knots.is_large && width > NARROWEST ? unit_of(width) : 0.0;
        if (!knots.is_large) unit = spread(sample, first_, second_);
        if (unit > 0.0) return solve_by_map(sample, knots, unit, levels, out);
        for (std::size_t k = 0; k < levels.size(); ++k) out[k] = sample.hazen(levels[k]);
        return true;
    }

    // Sort a row in any order, unless it holds NaN or infinities.
    template <class Float>
    Status sort_row(std::span<const Float> row) {
        held_.assign(row.begin(), row.end());
        Range all = range(held_);
        if (!all.is_finite) {
            auto is_missing = [](double x) { return x != x; };
            return std::any_of(held_.begin(), held_.end(), is_missing) ? MISSING : INFINITE;
        }
        sorted_.resize(held_.size());
        sorter_.sort(held_, sorted_.data(), all);
        return FINE;
    }

    // Quantiles of a row in any order.
    template <class Float>
    Status solve_row(std::span<const Float> row, const Knots& knots, Values levels, double* out) {
        if (Status status = sort_row(row); status != FINE) return status;
        double low = sorted_.front(), high = sorted_.back();
        double factor = safe_factor(std::max(std::abs(low), std::abs(high)));
        if (factor != 1.0)
            for (double& x : sorted_) x *= factor;  // the least of them may become 0
        solve(sorted_, {}, knots, levels, out);
        if (factor != 1.0)
            for (std::size_t k = 0; k < levels.size(); ++k) out[k] = std::clamp(out[k] / factor, low, high);
        return FINE;
    }

    // Quantiles of one sorted sample with counts of which some are 0.
    void solve_weighted(Values x, const double* counts, const Knots& knots, Values levels, double* out) {
        held_.resize(x.size()), sorted_.resize(x.size());
        Index n = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            held_[n] = x[i], sorted_[n] = counts[i];
            n += counts[i] > 0.0;
        }
        solve({held_.data(), std::size_t(n)}, {sorted_.data(), std::size_t(n)}, knots, levels, out);
    }

    // Roots of the paper's own function, mean sigmoid((w - x)/h), of sorted finite errors, kept in their range.
    void solve_fixed(Values x, Values counts, Values levels, double h, Values starts, double* out) {
        double m = counts.empty() ? double(x.size()) : std::accumulate(counts.begin(), counts.end(), 0.0);
        for (std::size_t k = 0; k < levels.size(); ++k)
            out[k] = find_root(
                {x, counts, {}, 0.0, 0.0, m, h, std::exp(STEEP), room_}, levels[k], starts[k], x.front(), x.back());
    }

    // Roots of mean sigmoid((w - x)/h) of a row in any order, from its plain quantiles on.
    template <class Float>
    Status solve_fixed_row(std::span<const Float> row, Values levels, double h, double* out) {
        if (Status status = sort_row(row); status != FINE) return status;
        first_.resize(levels.size());
        double last = double(row.size()) - 1.0;
        for (std::size_t k = 0; k < levels.size(); ++k) {
            double rank = std::clamp(levels[k] * double(row.size()) - 0.5, 0.0, last);
            std::size_t i = std::size_t(rank);
            double gap = sorted_[std::min(i + 1, row.size() - 1)] - sorted_[i];
            first_[k] = sorted_[i] + (std::isinf(gap) ? 0.0 : (rank - double(i)) * gap);
        }
        solve_fixed(sorted_, {}, levels, h, first_, out);
        return FINE;
    }

    // Bytes that are held.
    std::size_t room() const {
        std::size_t n = map_.at.capacity();
        for (const Room* own : {&held_, &sorted_, &cumulative_, &knots_, &slopes_, &positions_, &powers_, &room_, &first_, &second_})
            n += own->capacity();
        return sorter_.room() + sizeof(double) * n;
    }

private:
    bool solve_by_map(const Sample& sample, const Knots& knots, double unit, Values levels, double* out) {
        Resolution seen{large_resolution(sample.m), 0.0};
        std::size_t n_cells = knots.unit.size();
        if (!knots.is_large) {
            first_.resize(n_cells), second_.resize(n_cells);
            measure_cells(knots_.data(), unit, knots, sample.m, first_.data(), second_.data());
            double total = sum(knots.unit);
            seen = resolution(sum(first_) / total, sum(second_) / total, sample.m);
        }
        // Cells of a large sample have a unit each, the width of their windows: the spread of the knots at hand, which
        // depends on the levels asked for, would matter where it is 1e90 times as large.
        first_.assign(n_cells, unit);
        for (std::size_t j = 0; knots.is_large && j < n_cells; ++j)
            if (double width = knots_[j + 2 * KNOTS + 1] - knots_[j]; width > NARROWEST) first_[j] = unit_of(width);
        slopes_.resize(n_cells);
        find_slopes(knots_.data(), first_.data(), seen.pseudo_count, knots, sample.m, slopes_.data());
        map_.knots = Values(knots_).subspan(KNOTS, n_cells + 1);
        map_.slopes = slopes_;
        return solve_levels(sample, seen.h, knots.is_large, levels, out);
    }

    // Of a large sample positions count from the cell of each level's plain quantile, so that a level gives the same
    // bits whatever else is asked for, and whether the sample is there as a whole or only near some levels. So they do
    // where a map is very wide, because an error is far away: seen from there, all others would stand in one place.
    bool solve_levels(const Sample& sample, double h, bool is_large, Values levels, double* out) {
        auto [x, counts, cumulative, below, m] = sample;
        Index n_found = 0;
        double support = SATURATION * h, most = std::exp(SATURATION);
        bool is_last = sample.n_before(x.size()) >= m;
        map_.lay(0);
        bool is_by_level = is_large || !(map_.at.back() <= WIDE);
        for (std::size_t k = 0; k < levels.size(); ++k) {
            double p = levels[k], error = BRACKET * standard_error(p, m);
            double low = sample.hazen(p - error), high = sample.hazen(p + error), here = sample.hazen(p);
            if (is_large && high - low <= NARROWEST) {
                out[k] = here;
                continue;
            }
            if (is_by_level) map_.lay(Map::cell(map_.knots, here));
            double t_here = map_.position(here), t_low = map_.position(low), t_high = map_.position(high);
            if ((below > 0.0 && t_low - support < map_.at.front()) || (!is_last && t_high + support > map_.at.back()))
                return false;
            Index last = std::upper_bound(x.begin(), x.end(), map_.error(t_high + support)) - x.begin();
            Index first = std::lower_bound(x.begin(), x.end(), map_.error(t_low - support)) - x.begin();
            // Otherwise the positions are the same at all levels, which rise: those found before are kept.
            Index j = Map::cell(map_.at, t_low - support), base = is_by_level ? first : 0, from = std::max(first, n_found);
            std::size_t n_held = (is_by_level ? last : Index(x.size())) - base;
            if (powers_.size() < n_held) positions_.resize(n_held), powers_.resize(n_held);
            for (Index i = from; i < last; ++i) {
                while (j < Index(slopes_.size()) - 1 && x[i] > map_.knots[j + 1]) ++j;
                positions_[i - base] = map_.position(j, x[i]);
            }
            Values near(positions_.data() + (first - base), last - first), powers;
            // Powers serve all of t, and at all levels of such a sample, unless they would leave the floats.
            double origin = is_by_level ? 0.0 : 0.5 * map_.at.back();
            if ((is_by_level ? std::max(-t_low, t_high) + support : origin) < 0.5 * FARTHEST * h) {
                if (from < last)
                    find_powers(Values(&positions_[from - base], last - from), origin, h, &powers_[from - base]);
                powers = Values(powers_.data() + (first - base), last - first);
            }
            n_found = is_by_level ? 0 : std::max(n_found, last);
            Values own = counts.empty() ? counts : counts.subspan(first, last - first);
            double t = find_root(
                {near, own, powers, origin, sample.n_before(first), m, h, most, room_}, shrunk(p, h), t_here, t_low, t_high);
            out[k] = std::min(std::max(map_.error(t), low), high);
        }
        return true;
    }

    Sorter sorter_;
    Map map_;
    Room held_, sorted_, cumulative_, knots_, slopes_, positions_, powers_, room_, first_, second_;
};

}  // namespace pimeter
