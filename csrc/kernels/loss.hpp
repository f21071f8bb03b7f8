// The privacy loss of one use, at a tile of outputs.
//
// Computes: log p(x), and log(1 - q + q p(x - shift)/p(x)) for noise p under Poisson sampling at
//   rate q.
// Regions: a shift of 0 leaves p as it is, and costs no evaluation.
// Error: log p as its table; the mixture 4 ulp relative, and the absolute error of the logs, or of
//   kernels/close_ratios.hpp. The log of P is right to 2e-14 beside the error of its table, however
//   large the ratio.
// Edge values: NaN beyond the table of log p.
#pragma once

#include <cstddef>

#include "base/level.hpp"
#include "kernels/close_ratios.hpp"
#include "kernels/density.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

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

// The most outputs of a tile: 16 pieces of 6 nodes.
inline constexpr std::size_t kTileNodes = 96;

// p is below e^-40 of q p(x - shift) where the log of their ratio is this much larger.
inline constexpr double kAlone = 40.0;

struct LossNodes {
  double x[kTileNodes];
  Block<kTileNodes> base;  // log p(x), up to the log of the scale
};

inline void base_densities(const LawTable& law, double scale, LossNodes& nodes, std::size_t count) {
  standardize(law.log_density, nodes.x, count, scale, nodes.base);
  log_density(law, count, nodes.base);
}

// log p(x - shift)/p(x) at the first nodes of a tile, and log p(x - shift).
inline void log_ratios(const LawTable& law, const LossPair& pair, double shift,
                       const LossNodes& nodes, std::size_t count, double* ratio,
                       Block<kTileNodes>& shifted) {
  if (shift == 0.0) {
    for (std::size_t j = 0; j < count; ++j) {
      ratio[j] = 0.0;
      shifted.hi[j] = nodes.base.hi[j];
      shifted.lo[j] = nodes.base.lo[j];
    }
    return;
  }
  if (close_error(law.log_density, pair.scale, shift, pair.rate) > 0.0) {
    close_ratios(law.log_density, pair.scale, shift, nodes.x, count, ratio);
    for (std::size_t j = 0; j < count; ++j) {
      const DoubleDouble sum = two_sum(nodes.base.hi[j], ratio[j]);
      shifted.hi[j] = sum.hi;
      shifted.lo[j] = sum.lo + nodes.base.lo[j];
    }
    return;
  }
  double moved[kTileNodes] = {};  // or GCC takes it that there may be no first node
  for (std::size_t j = 0; j < count; ++j) moved[j] = nodes.x[j] - shift;
  standardize(law.log_density, moved, count, pair.scale, shifted);
  log_density(law, count, shifted);
  for (std::size_t j = 0; j < count; ++j) {
    ratio[j] = (shifted.hi[j] - nodes.base.hi[j]) + (shifted.lo[j] - nodes.base.lo[j]);
  }
}

// log(1 - q + q e^r) with relative accuracy for any r and 0 < q < 1, in place; NaN stays NaN. Loop
// after loop, and selections of what is in memory, so that all of them vectorise.
inline void mix(const LossPair& pair, double shift, std::size_t count, double* ratio) {
  if (shift == 0.0 || pair.rate == 1.0) return;
  double power[kTileNodes];
  double near[kTileNodes];
  double far[kTileNodes];
  double argument[kTileNodes];
  double lost[kTileNodes];
  for (std::size_t j = 0; j < count; ++j) {
    power[j] = exponential(ratio[j] > 600.0 ? 600.0 : ratio[j]);
    const double size = __builtin_fabs(ratio[j]);
    near[j] = pair.rate * one_minus_exp(size < 0.5 ? size : 0.5);
  }
  for (std::size_t j = 0; j < count; ++j) {
    near[j] *= ratio[j] < 0.0 ? -1.0 : power[j];
    far[j] = pair.rate * (power[j] - 1.0);
    argument[j] = (1.0 - pair.rate) + pair.rate * power[j];
  }
  for (std::size_t j = 0; j < count; ++j) {
    const double change = __builtin_fabs(ratio[j]) < 0.5 ? near[j] : far[j];
    const double sum = 1.0 + change;
    const double rounding = (sum - 1.0) - change;
    // Near -q, 1 + change has lost the digits of 1 - q, which the plain sum keeps.
    const bool exact = change > -0.5;
    argument[j] = exact ? sum : argument[j];
    lost[j] = exact ? rounding : 0.0;
  }
  const double log_rate = logarithm(pair.rate);
  for (std::size_t j = 0; j < count; ++j) {
    argument[j] = log_scaled(argument[j], 0.0) - lost[j] / argument[j];
    far[j] = ratio[j] + log_rate;
  }
  // A NaN is in the sum.
  for (std::size_t j = 0; j < count; ++j) ratio[j] = ratio[j] <= 600.0 ? argument[j] : far[j];
}

// log(1 - q + q p(x - shift)/p(x)) at the first nodes of a tile.
inline void mixture_losses(const LawTable& law, const LossPair& pair, double shift,
                           const LossNodes& nodes, std::size_t count, double* loss) {
  Block<kTileNodes> shifted;
  log_ratios(law, pair, shift, nodes, count, loss, shifted);
  mix(pair, shift, count, loss);
}

// The same, and the log of P = (1 - q) p + q p(x - shift) in two parts, up to the log of the scale:
// where the ratio is so large that p adds nothing, not as a sum with a loss as large as that.
inline void mixture_logs(const LawTable& law, const LossPair& pair, double shift,
                         const LossNodes& nodes, std::size_t count, double* loss, double* hi,
                         double* lo) {
  Block<kTileNodes> shifted;
  log_ratios(law, pair, shift, nodes, count, loss, shifted);
  const double log_rate = pair.rate == 1.0 ? 0.0 : logarithm(pair.rate);
  double near[kTileNodes];  // whether p adds something
  const double alone = pair.rate == 1.0 ? -__builtin_inf() : kAlone - log_rate;
  for (std::size_t j = 0; j < count; ++j) {
    const DoubleDouble sum = two_sum(shifted.hi[j], log_rate);
    hi[j] = sum.hi;
    lo[j] = sum.lo + shifted.lo[j];
    near[j] = loss[j] <= alone ? 1.0 : 0.0;
  }
  mix(pair, shift, count, loss);
  for (std::size_t j = 0; j < count; ++j) {
    const DoubleDouble sum = two_sum(nodes.base.hi[j], loss[j]);
    hi[j] = near[j] > 0.0 ? sum.hi : hi[j];
    lo[j] = near[j] > 0.0 ? sum.lo + nodes.base.lo[j] : lo[j];
  }
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
