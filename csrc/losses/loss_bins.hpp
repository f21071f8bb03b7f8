// The bins of a privacy loss between given levels.
#pragma once

#include "kernels/tables.hpp"

namespace psinoise {

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

}  // namespace psinoise
