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

// Vectors are full: what is beyond the size of a block is in panel 0.
template <std::size_t kSize>
inline void fill_up(std::size_t size, std::int64_t (&row)[kSize], double (&u)[kSize]) {
  for (; size % kLanes != 0; ++size) {
    row[size] = 0;
    u[size] = 0.0;
  }
}

// Rows and positions of |x| / scale; returns how many points are beyond the panels.
template <std::size_t kSize>
inline std::size_t standardize(const Panels& panels, const double* x, std::size_t size,
                               double scale, Block<kSize>& block) {
  std::size_t beyond = 0;
  // The exact product inside the division must not overflow.
  const double shrink = scale > 0x1p900 ? 0x1p-100 : 1.0;
  const double divisor = scale * shrink;
  const double inverse = 1.0 / divisor;
  const auto place = [&](std::size_t i, DoubleDouble t) {
    const bool inside = t.hi < panels.limit;
    beyond += t.hi >= panels.limit ? 1u : 0u;
    // A NaN position makes every result NaN, and the row is that of panel 0.
    const PanelPosition at = locate(panels, inside ? t.hi : 0.0, inside ? t.lo : __builtin_nan(""));
    block.row[i] = at.row;
    block.u[i] = at.u;
  };
  if ((bits_of(divisor) & 0xfffffffffffffu) == 0) {
    // A power of two divides exactly: the remainder, 0, need not be computed.
    for (std::size_t i = 0; i < size; ++i) {
      place(i, {__builtin_fabs(x[i]) * shrink * inverse, 0.0});
    }
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      place(i, quotient(__builtin_fabs(x[i]) * shrink, divisor, inverse));
    }
  }
  if (panels.split_count > 0) {
    for (std::size_t i = 0; i < size; ++i) {
      const PanelPosition at = cross(panels, PanelPosition{block.row[i], block.u[i]});
      block.row[i] = at.row;
      block.u[i] = at.u;
    }
  }
  fill_up(size, block.row, block.u);
  return beyond;
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
