// Piecewise polynomials on dyadic panels: the compiled form of every smooth function of a law.
//
// Computes: f(t) for t in [0, limit) as hi + lo. Panel 0 is [0, 2^e0); after it, every binary
//   exponent e >= e0 has eight panels of equal width (or another power of two, the same for all),
//   found from the bits of t: no search, no branch, no logarithm.
// Rows: twelve doubles, c0 as hi and lo, then c1, ..., c10 in powers of u in [-1, 1]. Keeping c0 in
//   two parts makes the error a few ulp of the variation inside a panel, not of f itself, so that
//   exp(f) is right to 1e-14 even where f = -700. A panel in which the function is not smooth, or
//   bends too sharply, is cut into parts with rows of their own (Split in kernels/tables.hpp),
//   which are found by bisection.
// Error: that of the fit (psinoise/compile/panels.py measures it at build time) plus 2 ulp.
// Edge values: callers keep t below the limit and free of NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/level.hpp"
#include "base/vector.hpp"
#include "kernels/tables.hpp"
#include "math/double_double.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {

struct PanelPosition {
  std::int64_t row;  // offset of the panel's row
  double u;
};

// The panel of t and the position in it. `correction` (|correction| <= ulp(t)) is the low part of
// t: u has spare low bits, so adding it there keeps four more bits of t than t itself has.
// Selections instead of branches, so that loops vectorise.
inline PanelPosition locate(const Panels& panels, double t, double correction) {
  const std::uint64_t bits = bits_of(t);
  const std::int64_t first_exponent = panels.first_exponent;
  const std::int64_t first = (first_exponent + 1023) << panels.bits;
  const std::int64_t index = static_cast<std::int64_t>(bits >> (52 - panels.bits)) - first;
  const bool central = index < 0;
  const double fraction =
      double_from(((bits << panels.bits) & 0xfffffffffffffu) | 0x3ff0000000000000u);
  // One over half the width of the panel: 2^(1 - e0) for panel 0, 2^(1 + panels.bits - e) at
  // exponent e.
  const std::uint64_t field = central
                                  ? static_cast<std::uint64_t>(1024 - first_exponent)
                                  : static_cast<std::uint64_t>(2047 + panels.bits) - (bits >> 52);
  const double inverse = double_from(field << 52);
  const double u = central ? t * inverse - 1.0 : 2.0 * fraction - 3.0;
  return {kPanelRow * (central ? 0 : index + 1), u + correction * inverse};
}

// The part of a panel that a position is in; null where the panel is whole, and for NaN.
inline const Split* part_of(const Panels& panels, PanelPosition at) {
  const Split* split = panels.splits;
  for (std::int64_t count = panels.split_count; count > 1;) {
    const std::int64_t half = count / 2;
    const Split& middle = split[half];
    const bool before = middle.row < at.row || (middle.row == at.row && middle.u <= at.u);
    split = before ? split + half : split;
    count -= half;
  }
  const bool found = panels.split_count > 0 && split->row == at.row && at.u >= split->u;
  return found ? split : nullptr;
}

// Row and position in the part that a position is in; no work for laws without parts.
inline PanelPosition cross(const Panels& panels, PanelPosition at) {
  const Split* split = part_of(panels, at);
  if (split == nullptr) return at;
  return {split->after, (at.u - split->center) * split->inverse};
}

// c1 u + ... + c10 u^10 as two interleaved chains in u^2: half the latency of one Horner chain.
inline double polynomial_part(const double* row, double u) {
  const double* c = row + 1;
  const double v = u * u;
  const double odd = (((c[9] * v + c[7]) * v + c[5]) * v + c[3]) * v + c[1];
  const double even = (((c[10] * v + c[8]) * v + c[6]) * v + c[4]) * v + c[2];
  return u * odd + v * even;
}

// The constants and the rest of the polynomials at many positions; with vectors of eight, arrays
// are read and written up to a multiple of eight.
inline void panel_parts(const Panels& panels, const std::int64_t* row, const double* u,
                        std::size_t size, double* head, double* rest) {
#if defined(__AVX512F__)
  // Loads of single coefficients would set the pace: rows are loaded whole and change places with
  // columns. The operations are those of polynomial_part.
  constexpr int kLanes = 8;
  constexpr int kBefore = kPanelRow - kLanes;  // coefficients before the last eight
  for (std::size_t i = 0; i < size; i += kLanes) {
    Vector<double> first[kLanes];
    Vector<double> last[kLanes];
    for (std::size_t r = 0; r < kLanes; ++r) {
      __builtin_memcpy(first + r, panels.rows + row[i + r], sizeof(first[r]));
      __builtin_memcpy(last + r, panels.rows + row[i + r] + kBefore, sizeof(last[r]));
    }
    transpose(first);
    transpose(last);
    const auto c = [&](int k) { return k < kLanes ? first[k] : last[k - kBefore]; };
    Vector<double> x;
    __builtin_memcpy(&x, u + i, sizeof(x));
    const Vector<double> v = x * x;
    const Vector<double> odd = (((c(10) * v + c(8)) * v + c(6)) * v + c(4)) * v + c(2);
    const Vector<double> even = (((c(11) * v + c(9)) * v + c(7)) * v + c(5)) * v + c(3);
    const Vector<double> sum = (x * odd + v * even) + c(1);
    __builtin_memcpy(head + i, first, sizeof(x));
    __builtin_memcpy(rest + i, &sum, sizeof(x));
  }
#else
  for (std::size_t i = 0; i < size; ++i) {
    const double* at = panels.rows + row[i];
    head[i] = at[0];
    rest[i] = polynomial_part(at, u[i]) + at[1];
  }
#endif
}

inline DoubleDouble panel_pair(const Panels& panels, PanelPosition at) {
  const double* row = panels.rows + at.row;
  return two_sum(row[0], polynomial_part(row, at.u) + row[1]);
}

inline double panel_value(const Panels& panels, PanelPosition at) {
  const double* row = panels.rows + at.row;
  return row[0] + (polynomial_part(row, at.u) + row[1]);
}

inline double panel_value(const Panels& panels, double t) {
  return panel_value(panels, cross(panels, locate(panels, t, 0.0)));
}

// The point of a depth from 1/2 on, from the value of its table. Where a Gaussian core meets a
// heavy tail, quantiles bend within a hundredth of the depth, and their table, of more than eight
// panels to an octave then, is right to 1e-4 there: three steps of Newton's method on the other
// tables square that thrice.
inline double polished(const LawTable& law, double t, double depth) {
  if (law.tail_quantile.bits == 3) return t;
  for (int i = 0; i < 3 && t < law.log_density.limit; ++i) {
    const PanelPosition at = cross(law.log_density, locate(law.log_density, t, 0.0));
    const DoubleDouble density = panel_pair(law.log_density, at);
    const double mills = panel_value(law.log_mills, at);
    const double excess = ((density.hi + depth) + (mills + kLog2)) + density.lo;
    t = t + excess * exponential(mills);
  }
  return t;
}

inline double tail_quantile(const LawTable& law, double depth) {
  return polished(law, exponential(panel_value(law.tail_quantile, depth)), depth);
}

}  // namespace psinoise::PSINOISE_LEVEL
