// pimeter._native: the kernels for NumPy's arrays. They trust what they are given; `_kernels/native.py` calls them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>

#include "long_sample.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace pimeter;

template <class Number, int N>
using Array = nb::ndarray<Number, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Doubles = Array<const double, 1>;
using Bytes = Array<const std::uint8_t, 1>;

template <class Number>
static std::span<Number> view(const Array<Number, 1>& a) {
    return {a.data(), a.size()};
}

// `bandwidth.knots`, kept between calls.
struct HeldKnots {
    Room level, normal, unit;
    bool is_large;

    HeldKnots(Doubles a, Doubles b, Doubles c, bool is_large)
        : level(a.data(), a.data() + a.size()),
          normal(b.data(), b.data() + b.size()),
          unit(c.data(), c.data() + c.size()),
          is_large(is_large) {}

    Knots view() const { return {level, normal, unit, is_large}; }
};

template <class Float>
static bool automatic_rows(Array<const Float, 2> x, const HeldKnots& knots, Doubles levels, Index n_threads,
                           Array<double, 2> out, Array<std::uint8_t, 1> status) {
    nb::gil_scoped_release released;
    std::uint8_t* end = status.data() + status.size();
    solve_rows(
        x.data(), x.shape(0), x.shape(1), knots.view(), view(levels), n_threads, out.data(), status.data());
    return std::any_of(status.data(), end, [](std::uint8_t own) { return own != FINE; });
}

static void weighted_rows(Doubles x, Array<const double, 2> counts, const HeldKnots& knots, Doubles levels,
                          Index n_threads, Array<double, 2> out) {
    nb::gil_scoped_release released;
    in_threads<LongSolver>(n_threads, counts.shape(0), [&](Index i, LongSolver& solver) {
        const double* own = counts.data() + i * x.size();
        solver.solve_weighted(view(x), own, knots.view(), view(levels), out.data() + i * levels.size());
    });
}

template <class Float>
static bool fixed_rows(Array<const Float, 2> x, Doubles levels, double h, Index n_threads, Array<double, 2> out,
                       Array<std::uint8_t, 1> status) {
    nb::gil_scoped_release released;
    std::size_t n = x.shape(1);
    std::uint8_t* end = status.data() + status.size();
    in_threads<LongSolver>(n_threads, x.shape(0), [&](Index i, LongSolver& solver) {
        std::span<const Float> row(x.data() + i * n, n);
        status.data()[i] = solver.solve_fixed_row(row, view(levels), h, out.data() + i * levels.size());
    });
    return std::any_of(status.data(), end, [](std::uint8_t own) { return own != FINE; });
}

static void fixed_weighted(
    Doubles x, Doubles counts, Doubles levels, double h, Doubles starts, Array<double, 1> out) {
    nb::gil_scoped_release released;
    Solver().solve_fixed(view(x), view(counts), view(levels), h, view(starts), out.data());
}

// A state of another width, such as one that an older version has written, is a TypeError.
using States = nb::ndarray<double, nb::shape<-1, stream::N_FLOATS>, nb::c_contig, nb::device::cpu>;

static void learn_columns(Array<const double, 2> errors, double p, Index kind, double rate, States states) {
    nb::gil_scoped_release released;
    for (std::size_t j = 0; j < errors.shape(1); ++j) {
        State own;
        double* at = states.data() + j * stream::N_FLOATS;
        std::memcpy(&own, at, sizeof own);
        learn(errors.data() + j, errors.shape(0), errors.shape(1), p, kind, rate, own);
        std::memcpy(at, &own, sizeof own);
    }
}

// Formulas of the rule for one cell, each with its name: what tests hold to bandwidth.py.
static nb::dict rule_of_cell(Array<const double, 2> windows, double unit, double pseudo_count, double m) {
    auto read = [&](int i) { return Windows<double>{windows(i, 0), windows(i, 1), windows(i, 2)}; };
    Windows<double> given = read(0), level = read(1), normal = read(2), error = widths(given);
    nb::dict found;
    found["widths"] = nb::make_tuple(error.left, error.right, error.own);
    found["distance_from_normal"] = distance_from_normal(both(given), both(normal));
    found["roughness"] = roughness(error, level, normal, m);
    found["isolation"] = isolation(error, level, normal, m);
    found["slope"] = slope(error, level, normal, unit, pseudo_count, m);
    return found;
}

NB_MODULE(_native, module) {
    nb::class_<HeldKnots>(module, "Knots").def(nb::init<Doubles, Doubles, Doubles, bool>());
    module.def("automatic_rows", &automatic_rows<double>);
    module.def("automatic_rows", &automatic_rows<float>);
    module.def("weighted_rows", &weighted_rows);
    module.def("fixed_rows", &fixed_rows<double>);
    module.def("fixed_rows", &fixed_rows<float>);
    module.def("fixed_weighted", &fixed_weighted);
    module.def("learn_columns", &learn_columns, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert());
    module.def("constants", [] {
        nb::dict found;
        for_constants([&](const char* file, const char* name, double value) { found[nb::make_tuple(file, name)] = value; });
        return found;
    });
    module.def("order_statistics", [](Doubles x, Array<const Index, 1> ranks, Index n_threads, Array<double, 1> out) {
        nb::gil_scoped_release released;
        if (ranks.size() && x.size()) Selector().order_statistics(view(x), view(ranks), out.data(), n_threads);
    });
    module.def("sort_groups", [](Doubles x, Bytes group, Array<Index, 1> counts, Array<double, 1> out) {
        nb::gil_scoped_release released;
        if (x.size()) sort_groups(view(x), view(group), view(counts), out.data());
    }, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert());

    module.def("safe_factor", &safe_factor);
    module.def("standard_error", &standard_error);
    module.def("shrunk", &shrunk);
    module.def("large_resolution", &large_resolution);
    module.def("resolution", [](double distance, double rough, double m) {
        Resolution found = resolution(distance, rough, m);
        return nb::make_tuple(found.h, found.pseudo_count);
    });
    module.def("near", [](double m, double p, Index n_cells) {
        Cells found = near(m, p, n_cells);
        return nb::make_tuple(found.first, found.last);
    });
    module.def("rule_of_cell", &rule_of_cell);

    module.def("place", [](Doubles values, Bytes group, Array<const double, 2> bounds, Array<std::uint8_t, 1> places) {
        nb::gil_scoped_release released;
        place(view(values), view(group), bounds.data(), bounds.shape(1), places.data());
    }, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert());
}
