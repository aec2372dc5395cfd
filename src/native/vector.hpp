// Eight doubles at once, in the vectors of GCC and Clang: the same operations, and so the same bits, on every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#if !defined(__GNUC__) && !defined(__clang__)
#error "pimeter's kernels need GCC or Clang (on Windows clang-cl); without them pimeter installs with NumPy's kernel"
#endif

// A function compiled for wider registers, too, and chosen when the extension is loaded. No products and sums are joined
// (-ffp-contract=off), so that all versions round in the same way. Clang's clones miss symbols, other libraries than
// glibc cannot choose.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define DISPATCHED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define DISPATCHED
#endif
#define INLINE [[gnu::always_inline]] inline

namespace pimeter {

using Index = std::int64_t;
using Values = std::span<const double>;
using Room = std::vector<double>;

constexpr Index LANES = 8;
typedef double Vector __attribute__((vector_size(8 * LANES)));
typedef std::int64_t Bits __attribute__((vector_size(8 * LANES)));

INLINE void load(Vector& v, const double* from) { std::memcpy(&v, from, sizeof v); }
INLINE void load(double& v, const double* from) { v = *from; }
INLINE void store(double* to, const Vector& v) { std::memcpy(to, &v, sizeof v); }
INLINE void store(double* to, double v) { *to = v; }
INLINE double absolute(double a) { return a < 0.0 ? -a : a; }
INLINE Vector absolute(Vector a) { return Vector(Bits(a) & INT64_MAX); }

INLINE bool any(const Bits& bits) {
    std::int64_t found = 0;
    for (Index k = 0; k < LANES; ++k) found |= bits[k];
    return found != 0;
}

// The sum of eight strands, always in the same order.
INLINE double joined(const Vector& s) { return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])); }

#if defined(__clang__)
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, Bits{__VA_ARGS__})
#endif

// Neighbours 0 and 1, 2 and 3, ... in each other's place.
INLINE Vector swapped(Vector v) { return SHUFFLED(v, v, 1, 0, 3, 2, 5, 4, 7, 6); }

// 0, 2, ... from one and 1, 3, ... from the other.
INLINE Vector in_turns(Vector even, Vector odd) { return SHUFFLED(even, odd, 0, 9, 2, 11, 4, 13, 6, 15); }

}  // namespace pimeter
