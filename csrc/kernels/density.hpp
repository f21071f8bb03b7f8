// The log of a density at a tile of points, by way of the panels of its table.
//
// Computes: log p(x), up to the log of the scale, as hi + lo at up to `kSize` points.
// Method: field by field, so that every loop vectorises, in arrays that stay in the first-level
//   cache: where a point lies, then the polynomials, whose rows are transposed in registers.
// Error: 4e-16 * max(1, |value|), that of the table.
// Edge values: NaN where x is NaN or beyond the table.
#pragma once

#include <cstddef>

#include "base/level.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kLanes = kVectorSize<double>;

template <std::size_t kSize>
struct Block {
  static_assert(kSize % kLanes == 0);
  std::int64_t row[kSize];
  double u[kSize];
  double hi[kSize];
  double lo[kSize];
};

// Rows and positions of |x| / scale; returns how many points are beyond the panels.
template <std::size_t kSize>
inline std::size_t standardize(const Panels& panels, const double* x, std::size_t size,
                               double scale, Block<kSize>& block) {
  typedef Vector<double> Reals;
  typedef Vector<std::uint64_t> Words;
  // The exact product inside the division must not overflow.
  const double shrink = scale > 0x1p900 ? 0x1p-100 : 1.0;
  const double divisor = scale * shrink;
  const double inverse = 1.0 / divisor;
  // A power of two divides exactly: the remainder, 0, need not be computed.
  const bool exact = (bits_of(divisor) & 0xfffffffffffffu) == 0;
  const DoubleDouble parts = split(divisor);
  Words beyond = {};
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals a = magnitude(load_vector(x + i, size - i)) * shrink;
    const Reals t = a * inverse;
    Reals rest = {};
    if (!exact) {
      // As `quotient`, of many by one.
      const Reals product = t * divisor;
      const Reals scaled = 134217729.0 * t;
      const Reals hi = scaled - (scaled - t);
      const Reals lo = t - hi;
      const Reals error =
          ((hi * parts.hi - product) + hi * parts.lo + lo * parts.hi) + lo * parts.lo;
      rest = ((a - product) - error) * inverse;
    }
    // A NaN position makes every result NaN, and the row is that of panel 0.
    const Words inside = bit_cast<Words>(t < panels.limit);
    const Words nowhere = ~inside & bits_of(__builtin_nan(""));
    beyond += bit_cast<Words>(t >= panels.limit) & 1;
    const PanelPositions at = locate(panels, bit_cast<Reals>(bit_cast<Words>(t) & inside),
                                     bit_cast<Reals>((bit_cast<Words>(rest) & inside) | nowhere));
    __builtin_memcpy(block.row + i, &at.row, sizeof(at.row));
    __builtin_memcpy(block.u + i, &at.u, sizeof(at.u));
  }
  if (panels.split_count > 0) {
    for (std::size_t i = 0; i < size; ++i) {
      const PanelPosition at = cross(panels, PanelPosition{block.row[i], block.u[i]});
      block.row[i] = at.row;
      block.u[i] = at.u;
    }
  }
  std::size_t count = 0;
  for (std::size_t j = 0; j < kLanes; ++j) count += beyond[j];
  return count;
}

template <std::size_t kSize>
inline void log_density(const LawTable& law, std::size_t size, Block<kSize>& block) {
  panel_parts(law.log_density, block.row, block.u, size, block.hi, block.lo);
  for (std::size_t i = 0; i < size; ++i) {
    const DoubleDouble sum = two_sum(block.hi[i], block.lo[i]);
    block.hi[i] = sum.hi;
    block.lo[i] = sum.lo;
  }
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
