// Computes: the means of chosen_values.hpp.
// Method: for each loss a walk along the nodes and the breaks, both of which rise.
// Error: sums of positive terms, in the order of the losses: a value is right to (losses + 8) u of
//   itself for arguments y + loss that are off by 4 u (1 + |y| + |loss|); where the function has a
//   kink, slopes are those of a point as near.
// Edge values: products that underflow are lost.
#include "losses/chosen_values.hpp"

#include <algorithm>
#include <vector>

namespace psinoise {

void chosen_values(const LineSegments& after, const ShiftedLosses& losses, const double* y,
                   const double* x, std::size_t count, double* value, double* slope) {
  std::vector<double> mean(count);
  std::vector<double> turn(count);
  for (std::size_t s = 0; s < losses.shifts; ++s) {
    std::fill(mean.begin(), mean.end(), losses.certain[s]);
    std::fill(turn.begin(), turn.end(), 0.0);
    for (std::int64_t i = losses.starts[s]; i < losses.starts[s + 1]; ++i) {
      const double loss = losses.loss[i];
      const double ratio = losses.ratio[i];
      const double mass = losses.mass[i];
      const double base = mass * ratio;
      std::size_t j = 0;
      for (; j < count && y[j] + loss < after.y[0]; ++j) mean[j] += mass * after.value[0];
      std::size_t k = 0;
      for (; j < count; ++j) {
        while (k + 1 < after.count && after.y[k + 1] <= y[j] + loss) ++k;
        const double over = after.slope[k] * (x[j] * ratio - after.x[k]);
        mean[j] += mass * (after.value[k] + over);
        turn[j] += base * after.slope[k];
      }
    }
    for (std::size_t j = 0; j < count; ++j) {
      if (s == 0 || mean[j] > value[j]) {
        value[j] = mean[j];
        slope[j] = turn[j];
      }
    }
  }
}

}  // namespace psinoise
