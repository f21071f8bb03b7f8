// The log ratio of densities of neighbors that hardly differ.
//
// Computes: log p(x - shift) - log p(x), where the shift is far below the width of every panel.
// Method: a difference of logs is off by a rounding of the logs, which may be more than all of it.
//   On one panel f(v) - f(u) = (v - u) (c1 + c2 (u + v) + ...): the divided difference comes from
//   two Horner chains, and v - u from the shift itself. A shift across edges of panels is the sum
//   of its parts: where the edge is rounded to does not matter, as the slope is the same on both
//   sides.
// Error: that of the slope of the polynomials, `Panels::slope_error` (kernels/quadrature.cpp),
// times the shift; measured
//   below a tenth of that (tests/accounting/test_close_neighbors.py).
// Edge values: NaN where x is NaN or one of the points is beyond the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/level.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

// One over half the width of a panel: 2^(1 - e0) for panel 0, 2^(1 + bits - e) at exponent e.
inline double inverse_half(const Panels& panels, std::int64_t index) {
  const std::int64_t exponent =
      index == 0 ? 1 - panels.first_exponent
                 : 1 + panels.bits - (panels.first_exponent + ((index - 1) >> panels.bits));
  return double_from(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// (f(v) - f(u)) / (v - u) of the polynomial of a row.
inline double divided_difference(const double* row, double u, double v) {
  const double* c = row + 1;
  double partial = c[10];
  double sum = c[10];
  for (int k = 9; k > 0; --k) {
    partial = c[k] + u * partial;
    sum = sum * v + partial;
  }
  return sum;
}

// The polynomial at a position of a panel, and up to which position it serves.
struct Part {
  std::int64_t row;
  double center;
  double inverse;
  double end;
};

inline Part part_at(const Panels& panels, PanelPosition at) {
  const Split* split = part_of(panels, at);
  if (split == nullptr) return {at.row, 0.0, 1.0, 1.0};
  const Split* next = split + 1;
  const bool inner = next != panels.splits + panels.split_count && next->row == at.row;
  return {split->after, split->center, split->inverse, inner ? next->u : 1.0};
}

// f(t + rise) - f(t) for rise >= 0.
inline double panel_rise(const Panels& panels, double t, double rise) {
  const double nowhere = __builtin_nan("");
  if (!(t < panels.limit)) return nowhere;
  PanelPosition at = locate(panels, t, 0.0);
  double total = 0.0;
  for (;;) {
    const std::int64_t index = at.row / kPanelRow;
    if (index >= panels.count) return nowhere;
    const double inverse = inverse_half(panels, index);
    const Part part = part_at(panels, at);
    const double wanted = rise * inverse;
    const double room = part.end - at.u;
    const bool last = !(wanted > room);
    const double u = (at.u - part.center) * part.inverse;
    const double step = (last ? wanted : room) * part.inverse;
    total += step * divided_difference(panels.rows + part.row, u, u + step);
    if (last) return total;
    rise -= room / inverse;
    at = part.end < 1.0 ? PanelPosition{at.row, part.end} : PanelPosition{at.row + kPanelRow, -1.0};
  }
}

// log p(x - shift)/p(x) at some points.
inline void close_ratios(const Panels& log_density, double scale, double shift, const double* x,
                         std::size_t count, double* ratio) {
  const double size = __builtin_fabs(shift);
  for (std::size_t j = 0; j < count; ++j) {
    const double moved = x[j] - shift;
    const double distance = __builtin_fabs(x[j]);
    // How much farther from 0 the moved point is.
    const bool across = (x[j] > 0.0 && moved < 0.0) || (x[j] < 0.0 && moved > 0.0);
    const double outwards = (x[j] > 0.0) == (shift > 0.0) && x[j] != 0.0 ? -size : size;
    const double farther = across ? size - 2.0 * distance : outwards;
    const bool rises = farther >= 0.0;
    const double nearest = rises ? distance : distance + farther;
    const double t = (nearest > 0.0 ? nearest : 0.0) / scale;
    const double change = panel_rise(log_density, t, __builtin_fabs(farther) / scale);
    ratio[j] = x[j] == x[j] ? (rises ? change : -change) : x[j];
  }
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
