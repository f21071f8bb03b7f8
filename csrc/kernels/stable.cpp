// Sums of the integrands of symmetric stable laws, for many points with one rule.
//
// Computes: sum over k < count of the three integrands of math/stable.hpp at d = start + k step.
// Method: nodes outside, points inside, so that the loop over points vectorises and the order of
//   each sum does not depend on the level; the sums are compensated.
// Error, edge values: math/stable.hpp.
#include "math/stable.hpp"

#include <cstddef>

#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kBlock = 32;

struct Sums {
  double total[kBlock] = {};
  double carry[kBlock] = {};

  void add(std::size_t i, double term) {
    const DoubleDouble sum = two_sum(total[i], term);
    total[i] = sum.hi;
    carry[i] += sum.lo;
  }
};

}  // namespace

void stable_sums(double alpha, double above_one, double below_two, const double* log_y_hi,
                 const double* log_y_lo, const double* start, std::size_t points, double step,
                 std::size_t count, double* density, double* survival, double* slope) {
  const StableIndex index = {alpha, above_one, below_two};
  for (std::size_t first = 0; first < points; first += kBlock) {
    const std::size_t size = points - first < kBlock ? points - first : kBlock;
    double hi[kBlock] = {};
    double lo[kBlock] = {};
    double origin[kBlock] = {};
    for (std::size_t i = 0; i < size; ++i) {
      hi[i] = log_y_hi[first + i];
      lo[i] = log_y_lo[first + i];
      origin[i] = start[first + i];
    }
    Sums sums[3];
    for (std::size_t k = 0; k < count; ++k) {
      const double distance = static_cast<double>(k) * step;
      for (std::size_t i = 0; i < kBlock; ++i) {
        const StableTerms terms = stable_terms(index, {hi[i], lo[i]}, origin[i] + distance);
        sums[0].add(i, terms.density);
        sums[1].add(i, terms.survival);
        sums[2].add(i, terms.slope);
      }
    }
    for (std::size_t i = 0; i < size; ++i) {
      density[first + i] = sums[0].total[i] + sums[0].carry[i];
      survival[first + i] = sums[1].total[i] + sums[1].carry[i];
      slope[first + i] = sums[2].total[i] + sums[2].carry[i];
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
