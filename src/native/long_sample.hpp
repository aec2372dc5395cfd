// A long sample is read once: only errors near the levels are kept and sorted.
#pragma once

#include "sample.hpp"
#include "threads.hpp"

namespace pimeter {

constexpr Index PART = 1 << 17;  // errors that a thread reads at once
constexpr Index STRIP = 1024;  // errors that stay in the nearest cache while they are compared with all bounds
constexpr Index BLOCK = 32;  // errors of which all or none are looked at one by one

// Errors within rising pairs of bounds, and how many lie below, in and between them: 2 i + 1 is pair i, 2 i before it.
struct Between {
    std::vector<Index> n;
    std::vector<Room> kept;  // with more room than errors

    // Read x once; how many NaN and infinities there are.
    template <class Float>
    INLINE Index read(std::span<const Float> x, const std::vector<Float>& bounds) {
        std::size_t n_pairs = bounds.size() / 2;
        n.assign(2 * n_pairs + 1, 0);
        kept.resize(n_pairs);
        Index n_odd = 0;
        for (std::size_t start = 0; start < x.size(); start += STRIP) {
            std::span<const Float> strip = x.subspan(start, std::min<std::size_t>(STRIP, x.size() - start));
            for (Float v : strip) n_odd += v - v != 0;
            for (std::size_t i = 0; i < n_pairs; ++i)
                if (kept[i].size() < n[2 * i + 1] + strip.size()) kept[i].resize(2 * n[2 * i + 1] + STRIP);
            n_pairs == 1 ? keep_one(strip, bounds[0], bounds[1]) : keep_some(strip, bounds);
        }
        n[2 * n_pairs] = Index(x.size()) - std::accumulate(n.begin(), n.end() - 1, Index(0));
        return n_odd;
    }

private:
    // Where few are kept, blocks without any are passed over.
    template <class Float>
    INLINE void keep_one(std::span<const Float> x, Float low, Float high) {
        double* room = kept[0].data();
        for (std::size_t start = 0; start < x.size(); start += BLOCK) {
            std::span<const Float> block = x.subspan(start, std::min<std::size_t>(BLOCK, x.size() - start));
            Index before = 0, up_to = 0;
            for (Float v : block) before += v < low, up_to += v <= high;
            n[0] += before;
            if (up_to == before) continue;
            for (Float v : block) {
                room[n[1]] = v;
                n[1] += (v >= low) & (v <= high);
            }
        }
    }

    // All bounds below an error are counted; without a branch: what is in no pair is lost.
    template <class Float>
    INLINE void keep_some(std::span<const Float> x, const std::vector<Float>& bounds) {
        using Place = std::conditional_t<sizeof(Float) == 8, std::int64_t, std::int32_t>;
        Place place[STRIP] = {};
        for (std::size_t i = 0; i < bounds.size(); i += 2) {
            Float low = bounds[i], high = bounds[i + 1];
            for (std::size_t k = 0; k < x.size(); ++k) place[k] += Place(x[k] >= low) + Place(x[k] > high);
        }
        double lost;
        room_.assign(n.size(), &lost);
        for (std::size_t i = 0; i < kept.size(); ++i) room_[2 * i + 1] = kept[i].data();
        double** room = room_.data();
        Index* number = n.data();
        for (std::size_t k = 0; k < x.size(); ++k) {
            Index i = place[k];
            room[i][number[i] & -(i & 1)] = x[k];
            ++number[i];
        }
    }

    std::vector<double*> room_;
};

DISPATCHED inline Index read_between(std::span<const double> x, const std::vector<double>& bounds, Between& found) {
    return found.read(x, bounds);
}

DISPATCHED inline Index read_between(std::span<const float> x, const std::vector<float>& bounds, Between& found) {
    return found.read(x, bounds);
}

// Cells and pivots near some of the levels.
struct Near {
    Cells cells;
    Index low, high;  // pivots that bound the errors near; -1 and as many as there are for none
    std::size_t first_level, last_level;
};

// Where to look in a sample of m errors of which so many were drawn as pivots; what overlaps becomes one.
inline std::vector<Near> ranges_near(const Knots& knots, double m, Index n_pivots, Values levels) {
    std::vector<Near> ranges;
    Index n_cells = knots.unit.size();
    auto margin = [&](double u) { return 3.0 * std::sqrt(u * (1.0 - u) * n_pivots) + 2.0; };
    for (std::size_t k = 0; k < levels.size(); ++k) {
        Cells cells = near(m, levels[k], n_cells);
        double u = knots.level[cells.first], v = knots.level[cells.last + 2 * KNOTS];
        Index low = cells.first > 0 ? std::max<Index>(Index(u * n_pivots - margin(u)), -1) : -1;
        Index high = cells.last < n_cells ? std::min<Index>(Index(v * n_pivots + margin(v)) + 1, n_pivots) : n_pivots;
        if (!ranges.empty() && low <= ranges.back().high) {
            Near& all = ranges.back();
            all.cells.last = std::max(all.cells.last, cells.last);
            all.high = std::max(all.high, high);
            all.last_level = k + 1;
        } else {
            ranges.push_back({cells, low, high, k, k + 1});
        }
    }
    return ranges;
}

class LongSolver : public Solver {
public:
    // Quantiles of a long sample in any order at rising levels, from the errors near each level alone: NARROW where that
    // would be about everything, or does not reach far enough. The sample is then to be sorted as a whole.
    template <class Float>
    Status solve_long(std::span<const Float> x, const Knots& knots, Values levels, Index n_threads, double* out) {
        double m = double(x.size());
        Index n_pivots = Index(std::pow(m, 0.75)), stride = x.size() / n_pivots;
        kept_.resize(n_pivots), pivots_.resize(n_pivots);
        for (Index i = 0; i < n_pivots; ++i) {
            kept_[i] = x[i * stride];
            if (kept_[i] != kept_[i]) return MISSING;
        }
        sorter().sort(kept_, pivots_.data());
        std::vector<Near> ranges = ranges_near(knots, m, n_pivots, levels);
        constexpr Float infinity = std::numeric_limits<Float>::infinity();
        std::vector<Float> bounds;
        Index n_near = 0;
        for (const Near& range : ranges) {
            bounds.push_back(range.low >= 0 ? Float(pivots_[range.low]) : -infinity);
            bounds.push_back(range.high < n_pivots ? Float(pivots_[range.high]) : infinity);
            n_near += std::min(range.high, n_pivots) - std::max<Index>(range.low, 0);
        }
        if (n_near > 0.75 * n_pivots) return NARROW;
        Index n_parts = (x.size() + PART - 1) / PART;
        parts_.resize(n_parts);
        std::atomic<Index> n_odd{0};
        in_threads<int>(n_threads, n_parts, [&](Index i, int&) {
            n_odd += read_between(x.subspan(i * PART, std::min<std::size_t>(PART, x.size() - i * PART)), bounds, parts_[i]);
        });
        if (n_odd) return std::any_of(x.begin(), x.end(), [](Float v) { return v != v; }) ? MISSING : INFINITE;
        for (std::size_t r = 0; r < ranges.size(); ++r)
            if (!solve_range(r, ranges[r], m, knots, levels, out)) return NARROW;
        return FINE;
    }

    std::size_t room() const {
        std::size_t n = pivots_.capacity() + kept_.capacity() + near_.capacity();
        for (const Between& part : parts_)
            for (const Room& own : part.kept) n += own.capacity();
        return Solver::room() + sizeof(double) * n;
    }

private:
    bool solve_range(std::size_t r, const Near& range, double m, const Knots& knots, Values levels, double* out) {
        auto [cells, low, high, first, last] = range;
        Index n_below = 0;
        kept_.clear();
        for (const Between& part : parts_) {
            n_below += std::accumulate(part.n.begin(), part.n.begin() + 2 * r + 1, Index(0));
            kept_.insert(kept_.end(), part.kept[r].begin(), part.kept[r].begin() + part.n[2 * r + 1]);
        }
        double below = double(n_below), up_to = below + double(kept_.size());
        Values level = knots.level.subspan(cells.first, cells.last - cells.first + 2 * KNOTS + 1);
        if (kept_.size() < 2 || (below > 0.0 && level.front() * m < below + 1.0)) return false;
        if (up_to < m && level.back() * m > up_to - 1.0) return false;
        near_.resize(kept_.size());
        sorter().sort(kept_, near_.data());
        if (safe_factor(std::max(std::abs(near_.front()), std::abs(near_.back()))) != 1.0) return false;
        Knots own{level, level, knots.unit.subspan(cells.first, cells.last - cells.first), true};
        return solve_near(near_, below, m, own, levels.subspan(first, last - first), out + first);
    }

    Room pivots_, kept_, near_;
    std::vector<Between> parts_;
};

// Quantiles of each row; rows that hold NaN or infinities are only marked.
template <class Float>
void solve_rows(const Float* x, Index n_rows, Index n, const Knots& knots, Values levels, Index n_threads, double* out,
                std::uint8_t* status) {
    Index within = n_rows == 1 ? n_threads : 1;  // threads share a single row
    in_threads<LongSolver>(n_threads, n_rows, [&](Index i, LongSolver& solver) {
        std::span<const Float> row(x + i * n, n);
        double* found = out + i * levels.size();
        status[i] = knots.is_large ? solver.solve_long(row, knots, levels, within, found) : NARROW;
        if (status[i] == NARROW) status[i] = solver.solve_row(row, knots, levels, found);
    });
}

}  // namespace pimeter
