// Masses of the bins of a privacy loss, and how they move to the nodes of a lattice.
//
// Computes: for pieces of the line, each inside one loss bin with lower level l,
//   A = integral of P e^{t l - k} and u = integral of (P - e^l Q) e^{t l - k},
//   with P = (1 - q) p + q T_a p and Q = (1 - q) p + q T_b p, noise p under Poisson sampling at
//   rate q; and the balanced contraction of bins onto nodes (a lower bound;
//   psinoise/accounting/bounds.py has the proof).
// Regions: a shift of 0 leaves p as it is, and costs no evaluation.
// Method: Gauss-Legendre of order 6 on each piece, on which log p varies by at most 3/4 (the
//   caller's part): relative truncation error below 1e-17. u is a sum of positive terms, from
//   expm1.
// Error: relative 2e-14 for A; u has that and the absolute error of the loss, about 1e-15, times A.
// Edge values: levels and pieces are consistent up to the rounding of the loss; a negative excess
//   (rounding at the lower level) counts as 0.
// Constants: Gauss-Legendre nodes and weights, Abramowitz and Stegun table 25.4; Taylor of expm1.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr int kOrder = 6;
inline constexpr double kNodes[kOrder] = {-0.93246951420315202781, -0.66120938646626451366,
                                          -0.23861918608319690863, 0.23861918608319690863,
                                          0.66120938646626451366,  0.93246951420315202781};
inline constexpr double kWeights[kOrder] = {0.17132449237917034504, 0.36076157304813860757,
                                            0.46791393457269104739, 0.46791393457269104739,
                                            0.36076157304813860757, 0.17132449237917034504};

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

inline constexpr std::size_t kTile = 16;
inline constexpr std::size_t kTileNodes = kOrder * kTile;

struct Nodes {
  double x[kTileNodes];
  double base_hi[kTileNodes];  // log p(x), up to the log of the scale
  double base_lo[kTileNodes];
  double weight[kTileNodes];
};

// log(1 - q + q p(x - shift)/p(x)) at the first nodes of a tile.
inline void mixture_losses(const LawTable& law, const LossPair& pair, double shift,
                           const Nodes& nodes, std::size_t count, double* loss) {
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

void piece_masses(const LawTable& law, const LossPair& pair, const double* edges,
                  const double* levels, std::size_t count, double tilt, double log_norm,
                  double* mass, double* excess) {
  const double log_scale = logarithm(pair.scale);
  for (std::size_t start = 0; start < count; start += kTile) {
    const std::size_t size = count - start < kTile ? count - start : kTile;
    Nodes nodes;
    double log_p[kTileNodes];  // log of P/p and of Q/p
    double log_q[kTileNodes];
    for (std::size_t i = 0; i < size; ++i) {
      const double left = edges[start + i];
      const double half = 0.5 * (edges[start + i + 1] - left);
      for (int k = 0; k < kOrder; ++k) {
        const double x = (left + half) + half * kNodes[k];
        const DoubleDouble base = log_density(law, x, pair.scale);
        const std::size_t at = kOrder * i + static_cast<std::size_t>(k);
        nodes.x[at] = x;
        nodes.base_hi[at] = base.hi;
        nodes.base_lo[at] = base.lo;
        nodes.weight[at] = half * kWeights[k];
      }
    }
    mixture_losses(law, pair, pair.shift_p, nodes, kOrder * size, log_p);
    mixture_losses(law, pair, pair.shift_q, nodes, kOrder * size, log_q);
    for (std::size_t i = 0; i < size; ++i) {
      const double level = levels[start + i];
      double total = 0.0;
      double above = 0.0;
      for (int k = 0; k < kOrder; ++k) {
        const std::size_t j = kOrder * i + static_cast<std::size_t>(k);
        const double log_density_p = (nodes.base_hi[j] - log_scale) + log_p[j];
        const double density =
            nodes.weight[j] * exp_sum(log_density_p + (tilt * level - log_norm), nodes.base_lo[j]);
        const double rise = (log_p[j] - log_q[j]) - level;
        const double safe = rise > 0.0 ? (rise < 0.5 ? rise : 0.5) : 0.0;
        total += density;
        above += density * one_minus_exp(safe);
      }
      mass[start + i] = total;
      excess[start + i] = above;
    }
  }
}

namespace {

// A valley between two modes is worth a boundary if the masses of both are this much larger.
inline constexpr double kValley = 16.0;

struct Bins {
  const double* mass;
  const double* excess;
  const double* growth;  // e^w - 1, w the width
  const double* rise;    // e^{t w}, t the tilt

  double density(std::size_t j) const { return mass[j] / growth[j]; }

  // e^{l_{j+1}} B_j - A_j, in the scale of bin j.
  double deficit(std::size_t j) const {
    const double d = mass[j] * growth[j] - (1.0 + growth[j]) * excess[j];
    return d > 0.0 ? d : 0.0;
  }
};

// The first bin of the next segment: the least one between two modes, or the end.
std::size_t segment_end(const Bins& bins, std::size_t begin, std::size_t end) {
  double peak = bins.density(begin);
  double valley = peak;
  std::size_t at = begin;
  for (std::size_t j = begin + 1; j < end; ++j) {
    const double here = bins.density(j);
    if (here < valley) {
      valley = here;
      at = j;
    } else if (valley * kValley < peak && here > valley * kValley) {
      return at;
    } else if (here > peak && valley * kValley >= peak) {
      peak = here;
      valley = here;
      at = j;
    }
  }
  return end;
}

// share[j]: the part of bin j that goes down to node j. From the left up to the largest bin, and
// from the right down to it: each towards larger masses, where errors shrink. The ends lose
// nothing: all of the first bin goes up and all of the last one down, where the next bins balance
// them.
void balance(const Bins& bins, std::size_t begin, std::size_t end, double* share) {
  std::size_t meeting = begin;
  for (std::size_t j = begin + 1; j < end; ++j) {
    if (bins.mass[j] > bins.mass[meeting]) meeting = j;
  }
  const auto from_left = [&](std::size_t j) {
    const double wanted = (1.0 - share[j - 1]) * bins.deficit(j - 1) * bins.rise[j - 1];
    share[j] = wanted < bins.excess[j] ? wanted / bins.excess[j] : 1.0;
  };
  share[begin] = meeting > begin ? 0.0 : 0.5;
  for (std::size_t j = begin + 1; j < meeting; ++j) from_left(j);
  share[end - 1] = 1.0;
  for (std::size_t j = end - 1; j > meeting; --j) {
    const double wanted = share[j] * bins.excess[j];
    const double room = bins.deficit(j - 1) * bins.rise[j - 1];
    share[j - 1] = wanted < room ? 1.0 - wanted / room : 0.0;
  }
  if (meeting == end - 1 && meeting > begin) from_left(meeting);
}

// From the right all the way, which loses what goes down in the first bin: nothing where all of it
// is at its node. That succeeds for a few atoms, each far from the next, and fails past the mode of
// a density, where there is less to balance with in each bin than in the one above.
bool balance_atoms(const Bins& bins, std::size_t count, double* share) {
  share[count - 1] = 1.0;
  for (std::size_t j = count - 1; j > 0; --j) {
    const double wanted = share[j] * bins.excess[j];
    const double room = bins.deficit(j - 1) * bins.rise[j - 1];
    if (!(wanted <= room)) return false;
    share[j - 1] = wanted > 0.0 ? 1.0 - wanted / room : 1.0;
  }
  return share[0] * bins.excess[0] <= 1e-12 * bins.mass[0];
}

}  // namespace

// Bin j lies between nodes j and j + 1, a distance w apart; both arrays are tilted by the level of
// node j. A loss with several modes is balanced between its valleys, each part on its own.
void balanced_nodes(const double* mass, const double* excess, std::size_t count,
                    const double* growth, const double* rise, double* share, double* nodes) {
  const Bins bins = {mass, excess, growth, rise};
  if (!balance_atoms(bins, count, share)) {
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t end = segment_end(bins, begin, count);
      balance(bins, begin, end, share);
      begin = end;
    }
  }
  for (std::size_t j = 0; j <= count; ++j) nodes[j] = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    nodes[j] += share[j] * mass[j];
    // What goes up must be paid for by the excess that comes down to node j + 1; the rest of it
    // stays at node j, below its true loss.
    const double up = 1.0 - share[j];
    const double need = up * bins.deficit(j) * rise[j];
    const double paid = j + 1 < count ? share[j + 1] * excess[j + 1] : 0.0;
    const double part = need <= paid * (1.0 + 1e-14) ? up : up * (paid / need);
    nodes[j + 1] += part * mass[j] * rise[j];
    nodes[j] += (up - part) * mass[j];
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
