// Masses of the bins of a privacy loss, and how they move to the nodes of a lattice.
//
// Computes: for pieces of the line, each inside one loss bin with lower level l,
//   A = integral of P e^{t l - k} and u = integral of (P - e^l Q) e^{t l - k},
//   with P = (1 - q) p + q T_a p and Q = (1 - q) p + q T_b p, noise p under Poisson sampling at
//   rate q; and the balanced contraction of bins onto nodes (a lower bound;
//   psinoise/accounting/compose/frequencies/lattice.py has the proof).
// Method: Gauss-Legendre of order 6 on each piece, on which log p varies by at most 3/4 (the
//   caller's part): relative truncation error below 1e-17. Where log P and the loss vary by at most
//   r = 1/34, order 3: r^6 (3!)^4 / (7 (6!)^3) = 4e-16. u is a sum of positive terms, from expm1.
// Error: relative 2e-14 for A; u has that and the absolute error of the loss, about 1e-15, times A.
// Edge values: levels and pieces are consistent up to the rounding of the loss; a negative excess
//   (rounding at the lower level) counts as 0.
// Constants: Gauss-Legendre nodes and weights, Abramowitz and Stegun table 25.4; Taylor of expm1.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "kernels/loss.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr int kOrder = 6;
inline constexpr double kNodes[kOrder] = {-0.93246951420315202781, -0.66120938646626451366,
                                          -0.23861918608319690863, 0.23861918608319690863,
                                          0.66120938646626451366,  0.93246951420315202781};
inline constexpr double kWeights[kOrder] = {0.17132449237917034504, 0.36076157304813860757,
                                            0.46791393457269104739, 0.46791393457269104739,
                                            0.36076157304813860757, 0.17132449237917034504};

inline constexpr double kShortNodes[] = {-0.77459666924148337704, 0.0, 0.77459666924148337704};
inline constexpr double kShortWeights[] = {0.55555555555555555556, 0.88888888888888888889,
                                           0.55555555555555555556};
// Over the outer nodes; 1/34 over the piece.
inline constexpr double kShortRange = 1.0 / 44.0;
// Losses this far above the level of their bin: a series below, and 1 - e^-x above; e^-700 is 0.
inline constexpr double kNear = 0.5;
inline constexpr double kFar = 700.0;

// 16 pieces of up to 6 nodes.
inline constexpr std::size_t kTile = kTileNodes / kOrder;

// A rule of Gauss and Legendre on each piece.
struct Rule {
  std::size_t order;
  const double* nodes;
  const double* weights;
};

inline constexpr Rule kFull = {6, kNodes, kWeights};
inline constexpr Rule kShort = {3, kShortNodes, kShortWeights};

// Masses of the pieces of a tile by one rule. False if a logarithm (of P, or of P/Q) varies by more
// than the short rule allows over the nodes of a piece: that has no masses then.
inline bool tile_masses(const LawTable& law, const LossPair& pair, const Rule& rule,
                        const double* edges, const double* levels, std::size_t size, double tilt,
                        double log_norm, double* mass, double* excess) {
  LossNodes nodes;
  double weight[kTileNodes];
  double level[kTileNodes];
  double log_p[kTileNodes];  // log of P/p and of Q/p
  double log_q[kTileNodes];
  double hi[kTileNodes];  // log P, up to that of the scale
  double lo[kTileNodes];
  for (std::size_t i = 0; i < size; ++i) {
    const double left = edges[i];
    const double half = 0.5 * (edges[i + 1] - left);
    for (std::size_t k = 0; k < rule.order; ++k) {
      nodes.x[rule.order * i + k] = (left + half) + half * rule.nodes[k];
      // In units of the scale, as densities are: in those of outputs they might underflow.
      weight[rule.order * i + k] = (half / pair.scale) * rule.weights[k];
      level[rule.order * i + k] = levels[i];
    }
  }
  const std::size_t count = rule.order * size;
  base_densities(law, pair.scale, nodes, count);
  mixture_logs(law, pair, pair.shift_p, nodes, count, log_p, hi, lo);
  mixture_losses(law, pair, pair.shift_q, nodes, count, log_q);
  bool fine = true;
  for (std::size_t i = 0; fine && i < size; ++i) {
    const std::size_t a = rule.order * i;
    const std::size_t b = a + rule.order - 1;
    const double density = hi[b] - hi[a];
    const double loss = (log_p[b] - log_q[b]) - (log_p[a] - log_q[a]);
    fine = __builtin_fabs(density) <= kShortRange && __builtin_fabs(loss) <= kShortRange;
  }
  if (!fine && rule.order == kShort.order) return false;
  double density[kTileNodes];
  double over[kTileNodes];
  double rise[kTileNodes];
  double largest = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    // Levels, and so tilts, may be far larger than what is left of them.
    const DoubleDouble tilted = two_product(tilt, level[j]);
    const DoubleDouble normed = two_sum(tilted.hi, -log_norm);
    const DoubleDouble exponent = two_sum(hi[j], normed.hi);
    density[j] = weight[j] * exp_sum(exponent.hi, exponent.lo + (lo[j] + (normed.lo + tilted.lo)));
    const double above = (log_p[j] - log_q[j]) - level[j];
    rise[j] = above > 0.0 ? above : 0.0;
    largest = rise[j] > largest ? rise[j] : largest;
    over[j] = density[j] * one_minus_exp(rise[j] < kNear ? rise[j] : kNear);
  }
  for (std::size_t j = 0; largest > kNear && j < count; ++j) {
    const double far = density[j] * (1.0 - exponential(-(rise[j] < kFar ? rise[j] : kFar)));
    over[j] = rise[j] > kNear ? far : over[j];
  }
  for (std::size_t i = 0; i < size; ++i) {
    double total = 0.0;
    double above = 0.0;
    for (std::size_t k = 0; k < rule.order; ++k) {
      total += density[rule.order * i + k];
      above += over[rule.order * i + k];
    }
    mass[i] = total;
    excess[i] = above;
  }
  return fine;
}

}  // namespace

void piece_masses(const LawTable& law, const LossPair& pair, const double* edges,
                  const double* levels, std::size_t count, double tilt, double log_norm,
                  double* mass, double* excess) {
  bool fine = true;  // the tile before: most are like it
  for (std::size_t at = 0; at < count; at += kTile) {
    const std::size_t size = count - at < kTile ? count - at : kTile;
    fine = fine && tile_masses(law, pair, kShort, edges + at, levels + at, size, tilt, log_norm,
                               mass + at, excess + at);
    if (!fine) {
      fine = tile_masses(law, pair, kFull, edges + at, levels + at, size, tilt, log_norm, mass + at,
                         excess + at);
    }
  }
}

namespace {

// Of a difference of sums of the same densities: 5 roundings in a piece, 3 of a sum over pieces
// that loses nothing (csrc/losses/loss_bins.cpp), 80 of the parts of a wide bin, some of e^w: this
// has 1,800. Densities may be off by far more, as their logs are large: both terms share that, and
// what is left of it is slack of the lower bound
// (psinoise/accounting/compose/frequencies/lattice.py). Then e^w
// - 1 of bins from which nothing goes up.
inline constexpr double kRounding = 2e-13;
inline constexpr double kWidest = 1e200;

struct Bins {
  const double* mass;
  const double* excess;
  const double* growth;  // e^w - 1, w the width
  const double* rise;    // e^{t w}, t the tilt

  // e^{l_{j+1}} B_j - A_j, in the scale of bin j; rounded up, since what it says is paid for mass
  // that goes up. Of bins so wide that little or nothing of Q is left in A - u, that is what
  // counts.
  double deficit(std::size_t j) const {
    const double held = (1.0 + growth[j]) * excess[j];
    const double d = mass[j] * growth[j] - held + kRounding * held;
    return growth[j] < kWidest ? (d > 0.0 ? d : 0.0) : __builtin_inf();
  }

  // The excess of bin j over the level below that of its own, in the scale of that.
  double falling(std::size_t j) const {
    const double w = growth[j - 1];
    const double gone = w < kWidest ? w / (1.0 + w) : 1.0;
    return (excess[j] / (1.0 + w) + mass[j] * gone) / rise[j - 1];
  }
};

// share[j] of bin j does not go up. It goes down to node j, but for a part of bin `far` (0 if there
// is none), which goes down to the node before.
struct Contraction {
  double* share;
  std::size_t far = 0;
  double part = 0.0;

  double down(std::size_t j) const { return j == far ? share[j] - part : share[j]; }
};

// From the left up to the largest bin, and from the right down to it: each towards larger masses,
// where errors shrink. The ends lose nothing: all of the first bin goes up and all of the last one
// down, where the next bins balance them. At the node where both meet less may be paid than what
// comes up needs. If more is, the bin above it is balanced from the left too: then less is at the
// next node. The bin above the one that begins at that node pays for it, as far as it can.
Contraction balance(const Bins& bins, std::size_t count, double* share) {
  std::size_t meeting = 0;
  for (std::size_t j = 1; j < count; ++j) {
    if (bins.mass[j] > bins.mass[meeting]) meeting = j;
  }
  if (meeting == 0) meeting = 1;
  const auto needed = [&](std::size_t j) {
    return (1.0 - share[j - 1]) * bins.deficit(j - 1) * bins.rise[j - 1];
  };
  const auto from_left = [&](std::size_t j) {
    const double wanted = needed(j);
    share[j] = wanted < bins.excess[j] ? wanted / bins.excess[j] : 1.0;
  };
  share[0] = 0.0;
  for (std::size_t j = 1; j < meeting; ++j) from_left(j);
  share[count - 1] = 1.0;
  for (std::size_t j = count - 1; j > meeting; --j) {
    const double wanted = share[j] * bins.excess[j];
    const double room = bins.deficit(j - 1) * bins.rise[j - 1];
    share[j - 1] = wanted < room ? 1.0 - wanted / room : 0.0;
  }
  if (meeting == count - 1 || needed(meeting) < share[meeting] * bins.excess[meeting]) {
    from_left(meeting);
    ++meeting;
  }
  Contraction found = {share};
  if (meeting + 1 >= count) return found;
  const double missing = needed(meeting) - share[meeting] * bins.excess[meeting];
  const std::size_t far = meeting + 1;
  // It is not there for the node between, to which less goes up.
  const double less = bins.excess[far] / (bins.deficit(meeting) * bins.rise[meeting]);
  const double room = (1.0 - share[meeting]) / less;
  const double most = room < share[far] ? room : share[far];
  const double part = missing / (bins.falling(far) + less * bins.excess[meeting]);
  // Nothing pays for an endless need.
  if (!(part > 0.0 && most > 0.0 && missing < __builtin_inf())) return found;
  found.far = far;
  found.part = part < most ? part : most;
  const double raised = share[meeting] + found.part * less;
  share[meeting] = raised < 1.0 ? raised : 1.0;
  return found;
}

}  // namespace

// Bin j lies between nodes j and j + 1, a distance w apart; both arrays are tilted by the level of
// node j.
void balanced_nodes(const double* mass, const double* excess, std::size_t count,
                    const double* growth, const double* rise, double* share, double* nodes) {
  const Bins bins = {mass, excess, growth, rise};
  const Contraction made = balance(bins, count, share);
  for (std::size_t j = 0; j <= count; ++j) nodes[j] = 0.0;
  if (made.far > 0) nodes[made.far - 1] = made.part * mass[made.far] / rise[made.far - 1];
  for (std::size_t j = 0; j < count; ++j) {
    nodes[j] += made.down(j) * mass[j];
    // What goes up must be paid for by the excess that comes down to node j + 1; the rest of it
    // stays at node j, below its true loss.
    const double up = 1.0 - share[j];
    const double need = up * bins.deficit(j) * rise[j];
    double paid = j + 1 < count ? made.down(j + 1) * excess[j + 1] : 0.0;
    if (j + 2 == made.far) paid += made.part * bins.falling(made.far);
    // Without a comparison that holds for NaN, as of no mass and an endless need.
    const double part = need <= paid * (1.0 + 1e-14) ? up : need > 0.0 ? up * (paid / need) : 0.0;
    if (part > 0.0) nodes[j + 1] += part * mass[j] * rise[j];
    nodes[j] += (up - part) * mass[j];
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
