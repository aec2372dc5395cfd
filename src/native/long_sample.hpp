// Quantiles of a long sample from the errors near each level alone.
#pragma once

#include "sample.hpp"
#include "select.hpp"

namespace pimeter {

class LongSolver : public Solver {
public:
    // Quantiles of a long sample in any order at rising levels: NARROW where the errors near them would be about
    // everything, or do not span enough of the map. The sample is then to be sorted as a whole.
    template <class Float>
    Status solve_long(std::span<const Float> x, const Knots& knots, Values levels, Index n_threads, double* out) {
        double m = double(x.size());
        Index n = x.size(), n_cells = knots.unit.size();
        std::vector<Knots> own;
        std::vector<Ranks> wanted;
        for (double p : levels) {
            auto [first, last] = near(m, p, n_cells);
            Values level = knots.level.subspan(first, last - first + 2 * KNOTS + 1);
            own.push_back({level, level, knots.unit.subspan(first, last - first), true});
            Index low = first > 0 ? Index(level.front() * m) - 1 : 0, high = Index(level.back() * m) + 1;
            wanted.push_back({std::max<Index>(low, 0), std::min<Index>(last < n_cells ? high : n, n - 1)});
        }
        bool is_found = selector_.select(x, wanted, n_threads);
        if (selector_.n_odd) return std::any_of(x.begin(), x.end(), [](Float v) { return v != v; }) ? MISSING : INFINITE;
        for (std::size_t k = 0; is_found && k < levels.size(); ++k) {
            Values x = selector_.sorted(k);
            is_found = safe_factor(std::max(std::abs(x.front()), std::abs(x.back()))) == 1.0 &&
                       solve({x, {}, {}, double(selector_.below(k)), m}, own[k], levels.subspan(k, 1), out + k);
        }
        return is_found ? FINE : NARROW;
    }

    std::size_t room() const { return Solver::room() + selector_.room(); }

private:
    Selector selector_;
};

// Quantiles of each row; rows that hold NaN or infinities are only marked.
template <class Float>
void solve_rows(const Float* x, Index n_rows, Index n, const Knots& knots, Values levels, Index n_threads, double* out,
                std::uint8_t* status) {
    Index within = n_rows == 1 ? n_threads : 1;  // a single row is divided among threads
    in_threads<LongSolver>(n_threads, n_rows, [&](Index i, LongSolver& solver) {
        std::span<const Float> row(x + i * n, n);
        double* found = out + i * levels.size();
        status[i] = knots.is_large ? solver.solve_long(row, knots, levels, within, found) : NARROW;
        if (status[i] == NARROW) status[i] = solver.solve_row(row, knots, levels, found);
    });
}

}  // namespace pimeter
