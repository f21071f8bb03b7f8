// Which nodes of a privacy loss lie on lattices.
#pragma once

#include <cstddef>
#include <vector>

namespace psinoise {

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

}  // namespace psinoise
