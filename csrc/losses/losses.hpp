// The privacy loss of one use and of compositions: panels, bins and products, from the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/tables.hpp"

namespace psinoise {

// Panels from left to right; `base` (log Q) and `loss` have the nodes of one after another.
struct LossPanels {
  std::vector<double> left;
  std::vector<double> right;
  std::vector<double> base;
  std::vector<double> loss;
  std::vector<char> flat;
  std::vector<char> narrow;
};

// Panels between rising edges, cut until each is fine, or narrow: outputs do not resolve it. Those
// whose densities are all below the floor are left out. False if some of them lie beyond the table
// of the law.
bool make_panels(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                 const double* edges, std::size_t count, double floor, LossPanels& out);

// Values at the nodes of panels, one after another.
struct PanelValues {
  const double* log_mass;
  const double* loss;
  std::size_t panels;
  std::size_t order;
};

// Into how many pieces each panel must be cut to resolve exp((c + i t) L), |t| <= frequency, where
// the mass tilted by exp(c L - value) is not negligible.
void panel_pieces(const PanelValues& values, double c, double value, double frequency,
                  std::int64_t* out);

// Panels and atoms of a loss: its range on each, and the log of its probability under P.
struct LossParts {
  const double* lowest;
  const double* highest;
  const double* log_mass;
  std::size_t count;
};

// Where bins may end: at offset + k step.
struct Lattice {
  double step;
  double offset;
};

// Whole numbers that end bins of widths 1, 2, 4, ..., 256, by the tilted mass around them.
std::vector<std::int64_t> graded_edges(const LossParts& parts, const Lattice& lattice,
                                       double rounding, double tilt, double log_norm);

// Panels from left to right, each with samples at both ends and between, on which the loss is
// monotone; rows of `samples` values.
struct PanelSamples {
  const double* x;
  const double* loss;
  const double* slope;
  std::size_t panels;
  std::size_t samples;
};

// How bins are weighed: `exp(tilt * level - log_norm)`.
struct Tilt {
  double tilt;
  double log_norm;
};

// Masses and excesses of the bins between rising levels, added to what is there; the largest error
// of a loss at the end of a bin is returned. Losses outside of the levels count to the nearest bin.
double fill_bins(const LawTable& law, const LossPair& pair, const PanelSamples& panels,
                 const double* levels, std::size_t count, const Tilt& tilt, double tolerance,
                 double* mass, double* excess);

// Masses at losses that rise, each of them near a point; these rise too.
struct LossNodes {
  const double* loss;
  const double* point;
  const double* mass;
  std::size_t count;
};

// Consecutive nodes; with a step they are a lattice.
struct Stretch {
  std::size_t begin;
  std::size_t count;
  double step;
  double farthest;  // from a point
};

// All nodes, in order.
std::vector<Stretch> stretches(const LossNodes& nodes);

// For every pair of nodes whose losses add up to edges[k] + t, or whose points to a number in that
// bin, the product of the masses is added to mass[k], that times t to first[k] and at least that
// times t^2 to second[k]; t is nowhere below -below[k]. There are bins + 1 edges; sums below the
// first or from the last on count in the bins at the ends. The same bits for any number of threads.
struct BinSums {
  double* mass;
  double* first;
  double* second;
  double* below;
};
void binned_products(const LossNodes& a, const LossNodes& b, const double* edges, std::size_t bins,
                     std::size_t threads, const BinSums& out);

// Over the nodes from each on: the sum of the masses, and that of mass * (1 - exp(loss of the first
// - loss)).
void suffix_sums(const double* loss, const double* mass, std::size_t count, double* total,
                 double* excess);

// What `suffix_sums` finds, with the losses, which rise.
struct LossSums {
  const double* loss;
  const double* total;
  const double* excess;
  std::size_t count;
};

// For each point the sum, over offsets that rise, of weight * sum of mass * (1 - exp(point - offset
// - loss)) over the losses above point - offset.
void excess_above(const LossSums& sums, const double* offset, const double* weight,
                  std::size_t offsets, const double* points, std::size_t count, double* out);

}  // namespace psinoise
