// Sums of products of two sequences of masses on lattices, one as fine as the other or finer.
//
// Computes: out[stride i + j] += a[i] b[j], 0 <= i < m, 0 <= j < n, for the k = stride i + j in a
//   range.
// Method: a tile of sums stays in registers while i runs.
// Error: every sum has its terms added in the order of i, by themselves, so that it is right to
//   (m + 1) u of the sum of their sizes; the same bits at every level.
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Reals = Vector<double>;
inline constexpr std::size_t kLanes = kVectorSize<double>;
inline constexpr std::size_t kRegisters = 4;
inline constexpr std::size_t kTile = kRegisters * kLanes;
static_assert(kTile <= kSumPadding);

inline Reals load(const double* from) {
  Reals values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}

}  // namespace

void lattice_sums(const double* a, std::size_t m, const double* b, std::size_t n,
                  std::size_t stride, std::size_t from, std::size_t to, double* out) {
  for (std::size_t k = from; k < to; k += kTile) {
    // Those i for which some of b[k - stride i], ..., b[k - stride i + kTile - 1] exist.
    std::size_t i = k + 1 > n ? (k + 1 - n + stride - 1) / stride : 0;
    const std::size_t last = (k + kTile - 1) / stride;
    const std::size_t end = last + 1 < m ? last + 1 : m;
    Reals sums[kRegisters] = {};
    for (; i < end; ++i) {
      const double* at =
          b + static_cast<std::ptrdiff_t>(k) - static_cast<std::ptrdiff_t>(stride * i);
      for (std::size_t r = 0; r < kRegisters; ++r) sums[r] += a[i] * load(at + r * kLanes);
    }
    double found[kTile];
    __builtin_memcpy(found, sums, sizeof(found));
    const std::size_t width = to - k < kTile ? to - k : kTile;
    for (std::size_t r = 0; r < width; ++r) out[k - from + r] += found[r];
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
