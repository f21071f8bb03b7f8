// Where the bins of a loss end.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tables.hpp"

namespace psinoise {

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

}  // namespace psinoise
