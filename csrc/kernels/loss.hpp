// The privacy loss of one use, at a tile of outputs.
//
// Computes: log p(x), and log(1 - q + q p(x - shift)/p(x)) for noise p under Poisson sampling at
//   rate q.
// Regions: a shift of 0 leaves p as it is, and costs no evaluation.
// Error: log p as its table; the mixture 4 ulp relative, and the absolute error of the logs.
// Edge values: NaN beyond the table of log p.
#pragma once

#include <cstddef>

#include "base/level.hpp"
#include "math/elementary.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline DoubleDouble log_density(const LawTable& law, double x, double scale) {
  const DoubleDouble t = divide(__builtin_fabs(x), scale);
  const bool inside = t.hi < law.log_density.limit;
  const PanelPosition at =
      locate(law.log_density, inside ? t.hi : 0.0, inside ? t.lo : __builtin_nan(""));
  return panel_pair(law.log_density, cross(law.log_density, at));
}

// 1 - exp(-y) for 0 <= y <= 1/2, to an ulp: the first omitted term is y^16 / 16! < 1e-18 y.
inline double one_minus_exp(double y) {
  double sum = 1.0 / 1307674368000.0;
  double factorial[] = {87178291200.0, 6227020800.0, 479001600.0, 39916800.0, 3628800.0,
                        362880.0,      40320.0,      5040.0,      720.0,      120.0,
                        24.0,          6.0,          2.0};
  double sign = -1.0;
  for (const double f : factorial) {
    sum = sum * y + sign / f;
    sign = -sign;
  }
  return y + (y * y) * sum;
}

// log(1 - q + q e^r) with relative accuracy for any r and 0 < q < 1.
inline double mixture_loss(double ratio, double rate) {
  if (ratio > 600.0) return ratio + logarithm(rate);
  const double power = exponential(ratio);
  double change = rate * (power - 1.0);
  if (ratio < 0.0 && ratio > -0.5) change = -rate * one_minus_exp(-ratio);
  if (ratio >= 0.0 && ratio < 0.5) change = rate * one_minus_exp(ratio) * power;
  // Near -q, 1 + change has lost the digits of 1 - q, which the plain sum keeps.
  return change > -0.5 ? log_one_plus(change) : logarithm((1.0 - rate) + rate * power);
}

// The most outputs of a tile: 16 pieces of 6 nodes.
inline constexpr std::size_t kTileNodes = 96;

struct LossNodes {
  double x[kTileNodes];
  double base_hi[kTileNodes];  // log p(x), up to the log of the scale
  double base_lo[kTileNodes];
};

inline void base_densities(const LawTable& law, double scale, LossNodes& nodes, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j) {
    const DoubleDouble base = log_density(law, nodes.x[j], scale);
    nodes.base_hi[j] = base.hi;
    nodes.base_lo[j] = base.lo;
  }
}

// log(1 - q + q p(x - shift)/p(x)) at the first nodes of a tile.
inline void mixture_losses(const LawTable& law, const LossPair& pair, double shift,
                           const LossNodes& nodes, std::size_t count, double* loss) {
  for (std::size_t j = 0; j < count; ++j) loss[j] = 0.0;
  if (shift == 0.0) return;
  for (std::size_t j = 0; j < count; ++j) {
    const DoubleDouble shifted = log_density(law, nodes.x[j] - shift, pair.scale);
    loss[j] = (shifted.hi - nodes.base_hi[j]) + (shifted.lo - nodes.base_lo[j]);
  }
  if (pair.rate < 1.0) {
    for (std::size_t j = 0; j < count; ++j) loss[j] = mixture_loss(loss[j], pair.rate);
  }
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
