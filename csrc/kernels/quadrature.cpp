// The densities and the loss of one use on panels of a quadrature, and whether they are fine
// enough.
//
// Computes: at the nodes of panels [left, right], log Q and Lambda = log P/Q (LossPair has P and
//   Q), and for each panel whether it matters, is resolved, and has a constant loss.
// Method: the criteria are those of psinoise/accounting/loss/quadrature.py, at whose head they are
//   explained: the range of log P and log Q, and the last two Legendre coefficients of log Q and
//   Lambda.
// Error: log Q 4e-16 * max(1, |value|), Lambda the same of log Q and a few ulp, or that of
//   kernels/close_ratios.hpp.
// Edge values: NaN beyond the table; such a panel is beyond every criterion, and false is returned.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "kernels/loss.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr double kUlp = 0x1p-52;
inline constexpr double kLargestRange = 8.0;
inline constexpr double kLargestCoefficient = 3e-8;
inline constexpr int kMostHalvings = 4;
inline constexpr double kRoundedNodes = 8.0;
// Error of log P from which its density is lost.
inline constexpr double kLostDigits = 0.05;
// Of no probability that a float64 holds is the log of the density so far below that of the mode.
inline constexpr double kDeepest = 1000.0;
inline constexpr double kSpare = 16.0;

struct Extent {
  double low;
  double high;

  double range() const { return high - low; }
  double size() const {
    const double a = __builtin_fabs(low);
    const double b = __builtin_fabs(high);
    return a > b ? a : b;
  }
};

inline Extent extent(const double* values, std::size_t count) {
  Extent found = {values[0], values[0]};
  for (std::size_t i = 1; i < count; ++i) {
    found.low = values[i] < found.low ? values[i] : found.low;
    found.high = values[i] > found.high ? values[i] : found.high;
  }
  return found;
}

// Of what is above a floor.
inline double range_above(Extent found, double floor) {
  const double low = found.low > floor ? found.low : floor;
  const double high = found.high > floor ? found.high : floor;
  return high - low;
}

inline bool smooth(const PanelRule& rule, const double* values, Extent found, double share,
                   double rounding) {
  const double limit = share * found.range() + rounding;
  for (std::size_t k = 0; k < 2; ++k) {
    double sum = 0.0;
    for (std::size_t i = 0; i < rule.order; ++i) sum += values[i] * rule.last[2 * i + k];
    if (!(__builtin_fabs(sum) <= limit)) return false;
  }
  return true;
}

// `outputs` is how many of them the panel has, about; `close` the `close_error` of the loss.
PanelVerdict judge(const PanelRule& rule, double floor, double outputs, double close,
                   const double* base, const double* ratio, const double* loss) {
  const Extent q = extent(base, rule.order);
  const Extent change = extent(loss, rule.order);
  double log_p[kTileNodes];
  bool matters = false;
  bool lost = false;
  for (std::size_t i = 0; i < rule.order; ++i) {
    log_p[i] = base[i] + loss[i];
    const double error = 64.0 * kUlp * (__builtin_fabs(base[i]) + __builtin_fabs(loss[i]));
    const bool above = log_p[i] + error > floor;
    matters = matters || above || base[i] > floor;
    lost = lost || (above && error > kLostDigits);
  }
  const Extent p = extent(log_p, rule.order);
  const double in_q = range_above(q, floor - kLargestRange);
  const double in_p = range_above(p, floor - kLargestRange);
  const double span = in_q > in_p ? in_q : in_p;
  const double rounding = 64.0 * kUlp * (1.0 + q.size() + change.size());
  const double size = q.size() > 1.0 ? q.size() : 1.0;
  const double of_loss = close > 0.0 ? 8.0 * close : rounding;
  // Nodes are rounded to outputs.
  const double share = kLargestCoefficient + kRoundedNodes / outputs;
  PanelVerdict verdict = {};
  verdict.matters = matters;
  verdict.lost = lost;
  verdict.fine = span <= kLargestRange && smooth(rule, base, q, share, rounding) &&
                 smooth(rule, loss, change, share, of_loss);
  // Several halvings at once, and no more than the mean over the pieces asks for.
  verdict.halvings = 1;
  while (verdict.halvings < kMostHalvings &&
         span >= kLargestRange * static_cast<double>(2 << verdict.halvings)) {
    ++verdict.halvings;
  }
  const double constant = close > 0.0 ? close : 8.0 * kUlp * size;
  verdict.flat =
      extent(ratio, rule.order).range() <= constant || change.range() <= 4.0 * kUlp * change.size();
  return verdict;
}

// What `panel_samples` computes at the nodes of a tile, and the loss without sampling; whether all
// are numbers.
bool tile_losses(const LawTable& law, const LossPair& pair, double log_scale, LossNodes& nodes,
                 std::size_t count, double* base, double* ratio, double* loss) {
  double log_p[kTileNodes];  // log of P/p and of Q/p
  double log_q[kTileNodes];
  base_densities(law, pair.scale, nodes, count);
  Block<kTileNodes> shifted;
  log_ratios(law, pair, pair.shift_p, nodes, count, log_p, shifted);
  log_ratios(law, pair, pair.shift_q, nodes, count, log_q, shifted);
  for (std::size_t j = 0; j < count; ++j) ratio[j] = log_p[j] - log_q[j];
  mix(pair, pair.shift_p, count, log_p);
  mix(pair, pair.shift_q, count, log_q);
  for (std::size_t j = 0; j < count; ++j) {
    base[j] = ((nodes.base.hi[j] - log_scale) + nodes.base.lo[j]) + log_q[j];
    loss[j] = log_p[j] - log_q[j];
  }
  bool inside = true;
  for (std::size_t j = 0; j < count; ++j) inside = inside && base[j] + loss[j] == base[j] + loss[j];
  return inside;
}

}  // namespace

// Slopes are the same on both sides of where panels meet: by how much they are not says how far
// they are off, at the ends of panels where polynomials are steepest. To this comes the rounding of
// the largest slope.
double slope_error(const Panels& log_density) {
  double step = 0.0;
  double largest = 0.0;
  double before = 0.0;
  for (std::int64_t index = 0; index < log_density.count; ++index) {
    const double inverse = inverse_half(log_density, index);
    PanelPosition at = {index * kPanelRow, -1.0};
    while (at.u < 1.0) {
      const Part part = part_at(log_density, at);
      const double* row = log_density.rows + part.row;
      if (row[0] < log_density.rows[0] - kDeepest) {
        return kSpare * (step + 0x1p-50 * largest);
      }
      const auto slope = [&](double place) {
        const double u = (place - part.center) * part.inverse;
        return inverse * part.inverse * divided_difference(row, u, u);
      };
      const double first = slope(at.u);
      const double last = slope(part.end);
      const double difference = __builtin_fabs(first - before);
      const bool meets = index > 0 || at.u > -1.0;
      step = meets && difference > step ? difference : step;
      const double a = __builtin_fabs(first);
      const double b = __builtin_fabs(last);
      const double size = a > b ? a : b;
      largest = size > largest ? size : largest;
      before = last;
      at.u = part.end;
    }
  }
  return kSpare * (step + 0x1p-50 * largest);
}

void point_losses(const LawTable& law, const LossPair& pair, const double* x, std::size_t count,
                  double* base, double* ratio, double* loss) {
  const double log_scale = logarithm(pair.scale);
  for (std::size_t start = 0; start < count; start += kTileNodes) {
    const std::size_t size = count - start < kTileNodes ? count - start : kTileNodes;
    LossNodes nodes;
    for (std::size_t j = 0; j < size; ++j) nodes.x[j] = x[start + j];
    tile_losses(law, pair, log_scale, nodes, size, base + start, ratio + start, loss + start);
  }
}

bool panel_samples(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                   const double* left, const double* right, std::size_t count, double floor,
                   double* base, double* loss, PanelVerdict* verdicts) {
  const double log_scale = logarithm(pair.scale);
  const double shift = pair.shift_p != 0.0 ? pair.shift_p : pair.shift_q;
  const double close = close_error(law.log_density, pair.scale, shift, pair.rate);
  const std::size_t tile = kTileNodes / rule.order;
  bool inside = true;
  for (std::size_t start = 0; start < count; start += tile) {
    const std::size_t panels = count - start < tile ? count - start : tile;
    const std::size_t size = panels * rule.order;
    LossNodes nodes;
    for (std::size_t j = 0; j < panels; ++j) {
      const double half = 0.5 * (right[start + j] - left[start + j]);
      for (std::size_t i = 0; i < rule.order; ++i) {
        nodes.x[rule.order * j + i] = (left[start + j] + half) + half * rule.points[i];
      }
    }
    double ratio[kTileNodes];
    double* q = base + start * rule.order;
    double* lambda = loss + start * rule.order;
    inside = tile_losses(law, pair, log_scale, nodes, size, q, ratio, lambda) && inside;
    for (std::size_t j = 0; j < panels; ++j) {
      const std::size_t at = j * rule.order;
      const double low = left[start + j];
      const double high = right[start + j];
      const double a = __builtin_fabs(low);
      const double b = __builtin_fabs(high);
      const double outputs = (high - low) / (kUlp * (a > b ? a : b));
      verdicts[start + j] = judge(rule, floor, outputs, close, q + at, ratio + at, lambda + at);
    }
  }
  return inside;
}

}  // namespace psinoise::PSINOISE_LEVEL
