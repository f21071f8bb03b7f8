// One use of a mechanism before others, for neighbors who choose its shift by what they have seen.
#pragma once

#include <cstddef>
#include <cstdint>

namespace psinoise {

// A function that is linear in x = exp(-y) between breaks y, which rise: value[k] + slope[k] (x -
// x[k]) from break k on, and value[0] before the first.
struct LineSegments {
  const double* y;
  const double* x;
  const double* value;
  const double* slope;
  std::size_t count;
};

// The losses of each shift are those from starts[s] to starts[s + 1], with masses under P and
// ratios exp(-loss); certain[s] is the mass of infinite ones, where the function is 1.
struct ShiftedLosses {
  const std::int64_t* starts;
  const double* certain;
  std::size_t shifts;
  const double* loss;
  const double* ratio;
  const double* mass;
};

// For each node y, x = exp(-y): the largest of the means over the shifts of the function at y +
// loss, and the mean of its derivative in x there for the shift that has it.
void chosen_values(const LineSegments& after, const ShiftedLosses& losses, const double* y,
                   const double* x, std::size_t count, double* value, double* slope);

}  // namespace psinoise
