// Sums of products of two sequences of masses on lattices: of all of them, one lattice as fine as
// the other or finer, and of few that are not next to each other.
//
// Computes: out[stride i + j] += a[i] b[j], 0 <= i < m, 0 <= j < n, for the k = stride i + j in a
//   range; out[j] = sum over i of weights[i] values[places[i] + j].
// Method: a tile of sums stays in registers while i runs.
// Error: every sum has its terms added in the order of i, by themselves, so that it is right to
//   (m + 1) u of the sum of their sizes; the same bits at every level.
#include <cstdint>

#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Reals = Vector<double>;
inline constexpr std::size_t kLanes = kVectorSize<double>;
inline constexpr std::size_t kRegisters = 4;
inline constexpr std::size_t kTile = kRegisters * kLanes;
static_assert(kTile <= kSumPadding);

// So many vectors of sums over `terms` runs of values.
template <std::size_t Registers>
void tile_of_sums(const double* values, const std::int64_t* places, const double* weights,
                  std::size_t terms, double* out) {
  Reals sums[Registers] = {};
  for (std::size_t i = 0; i < terms; ++i) {
    const double* at = values + places[i];
    for (std::size_t r = 0; r < Registers; ++r) {
      sums[r] += weights[i] * load_vector(at + r * kLanes);
    }
  }
  __builtin_memcpy(out, sums, sizeof(sums));
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
      for (std::size_t r = 0; r < kRegisters; ++r) sums[r] += a[i] * load_vector(at + r * kLanes);
    }
    double found[kTile];
    __builtin_memcpy(found, sums, sizeof(found));
    const std::size_t width = to - k < kTile ? to - k : kTile;
    for (std::size_t r = 0; r < width; ++r) out[k - from + r] += found[r];
  }
}

void placed_sums(const double* values, const std::int64_t* places, const double* weights,
                 std::size_t terms, std::size_t count, double* out) {
  std::size_t j = 0;
  for (; j + kTile <= count; j += kTile) {
    tile_of_sums<kRegisters>(values + j, places, weights, terms, out + j);
  }
  for (; j + kLanes <= count; j += kLanes) {
    tile_of_sums<1>(values + j, places, weights, terms, out + j);
  }
  if (j < count && count >= kLanes) {
    // The last sums with some of those before once more.
    j = count - kLanes;
    tile_of_sums<1>(values + j, places, weights, terms, out + j);
    return;
  }
  for (; j < count; ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < terms; ++i) {
      sum += weights[i] * values[places[i] + static_cast<std::int64_t>(j)];
    }
    out[j] = sum;
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
