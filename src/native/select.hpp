// Order statistics: a long sample is read once, only what lies near the ranks asked for is kept and sorted.
#pragma once

#include <bit>
#include <memory>

#include "sort.hpp"
#include "threads.hpp"

namespace pimeter {

constexpr Index PART = 1 << 18;  // values that a thread reads at once
constexpr Index STRIP = 1024;  // values that stay in the nearest cache while they are compared with all bounds
constexpr Index SORTED_WHOLE = 4096;  // values, up to which all are sorted
constexpr Index MEMORY_COUNTS = 1 << 22;  // values, from which on memory is given back as soon as may be

// Values within rising pairs of bounds, and how many lie below, in and between them: 2 i + 1 is pair i, 2 i before it.
struct Between {
    std::vector<Index> n;
    std::vector<Room> kept;  // with more room than values

    // Read x once; how many NaN and infinities there are.
    template <class Float>
    INLINE Index read(std::span<const Float> x, Values bounds) {
        std::size_t n_pairs = bounds.size() / 2;
        n.assign(2 * n_pairs + 1, 0);
        kept.resize(n_pairs);
        Index n_odd = 0;
        double copied[STRIP];
        for (std::size_t start = 0; start < x.size(); start += STRIP) {
            std::size_t length = std::min<std::size_t>(STRIP, x.size() - start);
            const double* strip = copied;
            if constexpr (sizeof(Float) == sizeof(double)) strip = &x[start];
            if (strip == copied || length < STRIP) strip = copied, std::copy_n(x.begin() + start, length, copied);
            for (std::size_t k = 0; k < length; ++k) n_odd += strip[k] - strip[k] != 0.0;
            for (std::size_t i = 0; i < n_pairs; ++i)
                if (kept[i].size() < n[2 * i + 1] + length) kept[i].resize(3 * n[2 * i + 1] / 2 + STRIP);
            n_pairs == 1 ? keep_one(strip, length, bounds[0], bounds[1]) : keep_some(strip, length, bounds);
        }
        n[2 * n_pairs] = Index(x.size()) - std::accumulate(n.begin(), n.end() - 1, Index(0));
        return n_odd;
    }

private:
    // Where few are kept, eight of which none is are passed over at once.
    INLINE void keep_one(const double* x, std::size_t length, double low, double high) {
        std::uint8_t is_in[STRIP] = {};
        Index before = 0;
        for (std::size_t k = 0; k < length; ++k) is_in[k] = (x[k] >= low) & (x[k] <= high);
        for (std::size_t k = 0; k < length; ++k) before += x[k] < low;
        double* room = kept[0].data() + n[1];
        for (std::size_t k = 0; k < length; k += 8) {
            std::uint64_t eight;
            std::memcpy(&eight, is_in + k, sizeof eight);
            for (; eight; eight &= eight - 1) {
                int place = std::countr_zero(eight) / 8;
                *room++ = x[k + (std::endian::native == std::endian::little ? place : 7 - place)];
            }
        }
        n[0] += before, n[1] = room - kept[0].data();
    }

    // All bounds below a value are counted; without a branch: what is in no pair is written, too, and lost.
    INLINE void keep_some(const double* x, std::size_t length, Values bounds) {
        std::int64_t place[STRIP];
        for (std::size_t k = 0; k < length; k += LANES) {
            Vector v;
            Bits n_below{};
            load(v, x + k);
            for (std::size_t i = 0; i < bounds.size(); i += 2) n_below -= (v >= bounds[i]) + (v > bounds[i + 1]);
            std::memcpy(place + k, &n_below, sizeof n_below);
        }
        double lost[STRIP];
        room_.assign(n.size(), lost);
        for (std::size_t i = 0; i < kept.size(); ++i) room_[2 * i + 1] = kept[i].data() + n[2 * i + 1];
        double** room = room_.data();
        for (std::size_t k = 0; k < length; ++k) *room[place[k]]++ = x[k];
        for (std::size_t i = 0; i < kept.size(); ++i)
            n[2 * i] += room[2 * i] - lost, n[2 * i + 1] = room[2 * i + 1] - kept[i].data();
    }

    std::vector<double*> room_;
};

DISPATCHED inline Index read_between(std::span<const double> x, Values bounds, Between& found) {
    return found.read(x, bounds);
}

DISPATCHED inline Index read_between(std::span<const float> x, Values bounds, Between& found) {
    return found.read(x, bounds);
}

// Ranks from 0 up, all from the first to the last of them.
struct Ranks {
    Index first, last;
};

class Selector {
public:
    Sorter sorter;
    Index n_odd;  // NaN and infinities that select has seen

    // Sort what is around rising ranges of ranks: false if there are NaN, and if bounds from a subsample would keep about
    // everything, or have missed some.
    template <class Float>
    bool select(std::span<const Float> x, std::span<const Ranks> wanted, Index n_threads = 1) {
        Index m = x.size(), n_pivots = Index(std::pow(double(m), 0.75)), n_near = 0;
        // Pivots that a rank lies between, 3.5 standard errors away; those of ranges that overlap become one pair.
        auto pivot = [&](Index rank, double side) {
            double u = (rank + 0.5) / m;
            return Index(std::floor(u * n_pivots + side * (3.5 * std::sqrt(u * (1.0 - u) * n_pivots) + 2.0)));
        };
        std::vector<Index> pivot_ranks;
        pair_.clear(), n_odd = 0;
        for (auto [first, last] : wanted) {
            Index low = first > 0 ? std::max<Index>(pivot(first, -1.0), -1) : -1;
            Index high = last < m - 1 ? std::min(pivot(last, 1.0), n_pivots) : n_pivots;
            if (pivot_ranks.empty() || low > pivot_ranks.back())
                pivot_ranks.insert(pivot_ranks.end(), {low, high});
            else
                pivot_ranks.back() = std::max(pivot_ranks.back(), high);
            pair_.push_back(pivot_ranks.size() / 2 - 1);
        }
        for (std::size_t i = 0; i < pivot_ranks.size(); i += 2) n_near += pivot_ranks[i + 1] - pivot_ranks[i];
        if (n_near > 0.75 * n_pivots) return false;
        some_.resize(n_pivots);
        for (Index i = 0; i < n_pivots; ++i) some_[i] = x[i * (m / n_pivots)], n_odd += some_[i] != some_[i];
        if (n_odd) return false;
        bool is_first = pivot_ranks.front() < 0, is_last = pivot_ranks.back() == n_pivots;
        pivot_ranks.front() += is_first, pivot_ranks.back() -= is_last;
        if (!inner_) inner_ = std::make_unique<Selector>();
        Room bounds(pivot_ranks.size());
        inner_->order_statistics(some_, pivot_ranks, bounds.data());
        if (m > MEMORY_COUNTS) some_ = Room(), inner_.reset();
        if (is_first) bounds.front() = -INFINITY;
        if (is_last) bounds.back() = INFINITY;
        read(x, bounds, n_threads);
        for (std::size_t k = 0; k < wanted.size(); ++k)
            if (wanted[k].first < below(k) || wanted[k].last >= below(k) + size_[pair_[k]]) return false;
        return true;
    }

    // How many values lie below those around the k-th of the ranges, and these, in order: one range after the other.
    Index below(std::size_t k) const { return below_[pair_[k]]; }
    Values sorted(std::size_t k) {
        if (pair_[k] == sorted_pair_) return sorted_;
        kept_.clear();
        for (Between& part : parts_) {
            Room& own = part.kept[pair_[k]];
            kept_.insert(kept_.end(), own.begin(), own.begin() + part.n[2 * pair_[k] + 1]);
            if (is_memory_scarce_) own = Room();
        }
        return sort_kept(pair_[k]);
    }

    // Values of rising ranks; none is NaN.
    void order_statistics(Values x, std::span<const Index> ranks, double* out, Index n_threads = 1) {
        std::vector<Ranks> wanted;
        for (Index rank : ranks) wanted.push_back({rank, rank});
        if (Index(x.size()) <= SORTED_WHOLE || !select(x, wanted, n_threads)) {
            pair_.assign(ranks.size(), 0), below_ = {0};
            kept_.assign(x.begin(), x.end());
            sort_kept(0);
        }
        for (std::size_t k = 0; k < ranks.size(); ++k) out[k] = sorted(k)[ranks[k] - below(k)];
    }

    // Bytes that are held.
    std::size_t room() const {
        std::size_t n = kept_.capacity() + some_.capacity() + sorted_.capacity();
        for (const Between& part : parts_)
            for (const Room& own : part.kept) n += own.capacity();
        return sorter.room() + sizeof(double) * n + (inner_ ? inner_->room() : 0);
    }

private:
    template <class Float>
    void read(std::span<const Float> x, Values bounds, Index n_threads) {
        Index n_parts = (x.size() + PART - 1) / PART;
        parts_.resize(n_parts);
        std::atomic<Index> odd{0};
        in_threads<int>(n_threads, n_parts, [&](Index i, int&) {
            odd += read_between(x.subspan(i * PART, std::min<std::size_t>(PART, x.size() - i * PART)), bounds, parts_[i]);
        });
        n_odd = odd;
        sorted_pair_ = -1, is_memory_scarce_ = Index(x.size()) > MEMORY_COUNTS;
        below_.assign(bounds.size() / 2, 0), size_.assign(bounds.size() / 2, 0);
        for (std::size_t r = 0; r < below_.size(); ++r)
            for (const Between& part : parts_) {
                below_[r] += std::accumulate(part.n.begin(), part.n.begin() + 2 * r + 1, Index(0));
                size_[r] += part.n[2 * r + 1];
            }
    }

    Values sort_kept(Index pair) {
        sorted_pair_ = pair;
        sorted_.resize(kept_.size());
        if (!kept_.empty()) sorter.sort(kept_, sorted_.data());
        return sorted_;
    }

    std::vector<Index> pair_, below_, size_;
    Index sorted_pair_;
    bool is_memory_scarce_;
    std::vector<Between> parts_;
    Room kept_, some_, sorted_;
    std::unique_ptr<Selector> inner_;  // for pivots
};

}  // namespace pimeter
