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

// The same for vectors of numbers that are not NaN, by operations with the same results.
struct PanelPositions {
  Vector<std::int64_t> row;
  Vector<double> u;
};

inline PanelPositions locate(const Panels& panels, Vector<double> t, Vector<double> correction) {
  typedef Vector<std::uint64_t> Words;
  typedef Vector<std::int64_t> Integers;
  const Words bits = bit_cast<Words>(t);
  const int shift = static_cast<int>(panels.bits);
  const std::int64_t first = (panels.first_exponent + 1023) << shift;
  const Integers index = bit_cast<Integers>(bits >> (52 - shift)) - first;
  // As index < 0, by a comparison that every level has.
  const double end = double_from(static_cast<std::uint64_t>(1023 + panels.first_exponent) << 52);
  const Words central = bit_cast<Words>(t < end);
  const Words fraction = ((bits << shift) & 0xfffffffffffff) | 0x3ff0000000000000;
  const Words field = (static_cast<std::uint64_t>(2047 + shift) - (bits >> 52)) & ~central;
  const Words first_field = static_cast<std::uint64_t>(1024 - panels.first_exponent) & central;
  const Vector<double> inverse = bit_cast<Vector<double>>((field | first_field) << 52);
  const Words low = bit_cast<Words>(t * inverse - 1.0) & central;
  const Words high = bit_cast<Words>(2.0 * bit_cast<Vector<double>>(fraction) - 3.0) & ~central;
  const Integers panel = bit_cast<Integers>(bit_cast<Words>(index + 1) & ~central);
  static_assert(kPanelRow == 8 + 4);
  return {(panel << 3) + (panel << 2), bit_cast<Vector<double>>(low | high) + correction * inverse};
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

// The polynomials of some rows as they are summed up, from the highest power on.
struct PanelSums {
  Vector<double> odd;
  Vector<double> even;
  Vector<double> last[2];  // coefficients 0 and 1 of the rows
};

// Adds the coefficients before kEnd. Loads of single ones would set the pace: parts of rows are
// loaded whole and change places with columns.
template <std::size_t kEnd>
inline void add_terms(const double* const* rows, Vector<double> v, PanelSums& sums) {
  constexpr std::size_t kLanes = kVectorSize<double>;
  constexpr std::size_t kBegin = kEnd > kLanes ? kEnd - kLanes : 0;
  Vector<double> columns[kLanes];
  for (std::size_t r = 0; r < kLanes; ++r) {
    // By way of a variable: straight to an array, GCC copies halves, which no load can wait for.
    Vector<double> part;
    __builtin_memcpy(&part, rows[r] + kBegin, sizeof(part));
    columns[r] = part;
  }
  transpose(columns);
  for (std::size_t k = kEnd - kBegin; k > 0; k -= 2) {
    const Vector<double> even = columns[k - 2];
    const Vector<double> odd = columns[k - 1];
    if (kBegin + k == 2) {
      sums.last[0] = even;
      sums.last[1] = odd;
    } else {
      sums.odd = kBegin + k == kPanelRow ? even : sums.odd * v + even;
      sums.even = kBegin + k == kPanelRow ? odd : sums.even * v + odd;
    }
  }
  if constexpr (kBegin > 0) add_terms<kBegin>(rows, v, sums);
}

inline PanelSums sum_terms(const double* const* rows, Vector<double> v) {
  PanelSums sums;
  if constexpr (kVectorSize<double> == 2) {
    // Odd and even coefficients of a row are a vector as they are.
    Vector<double> chains[2];
    for (std::size_t r = 0; r < 2; ++r) {
      const Vector<double> square = {v[r], v[r]};
      chains[r] = load_vector(rows[r] + kPanelRow - 2);
      for (std::size_t k = kPanelRow - 4; k > 0; k -= 2) {
        chains[r] = chains[r] * square + load_vector(rows[r] + k);
      }
      sums.last[r] = load_vector(rows[r]);
    }
    zip(chains[0], chains[1]);
    zip(sums.last[0], sums.last[1]);
    sums.odd = chains[0];
    sums.even = chains[1];
  } else {
    add_terms<kPanelRow>(rows, v, sums);
  }
  return sums;
}

// The constants and the rest of the polynomials at many positions, by the operations of
// polynomial_part; arrays are read and written up to a multiple of the size of vectors.
inline void panel_parts(const Panels& panels, const std::int64_t* row, const double* u,
                        std::size_t size, double* head, double* rest) {
  constexpr std::size_t kLanes = kVectorSize<double>;
  for (std::size_t i = 0; i < size; i += kLanes) {
    const double* rows[kLanes];
    for (std::size_t r = 0; r < kLanes; ++r) rows[r] = panels.rows + row[i + r];
    Vector<double> x;
    __builtin_memcpy(&x, u + i, sizeof(x));
    const Vector<double> v = x * x;
    const PanelSums sums = sum_terms(rows, v);
    const Vector<double> sum = (x * sums.odd + v * sums.even) + sums.last[1];
    __builtin_memcpy(head + i, sums.last, sizeof(x));
    __builtin_memcpy(rest + i, &sum, sizeof(x));
  }
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
