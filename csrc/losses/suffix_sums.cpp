// Computes: `suffix_sums` and `excess_above` of losses.hpp.
// Error: all terms are positive. The sums are right to (2 count + 8) u of themselves and of the
//   exponents of what fades far away; `excess_above` adds (offsets + 8) u to that of its sums,
//   for distances of losses that are off by 2 u (|loss| + |offset| + |point|).
// Edge values: nothing is above the last loss.
#include <algorithm>
#include <cmath>

#include "losses/losses.hpp"

namespace psinoise {

void suffix_sums(const double* loss, const double* mass, std::size_t count, double* total,
                 double* excess) {
  double sum = 0.0;
  double over = 0.0;
  for (std::size_t k = count; k-- > 0;) {
    // 1 - e^-(x + g) = e^-g (1 - e^-x) + (1 - e^-g): positive terms.
    const double gap = k + 1 < count ? loss[k] - loss[k + 1] : 0.0;
    over = std::exp(gap) * over - std::expm1(gap) * sum;
    sum += mass[k];
    total[k] = sum;
    excess[k] = over;
  }
}

void excess_above(const LossSums& sums, const double* offset, const double* weight,
                  std::size_t offsets, const double* points, std::size_t count, double* out) {
  for (std::size_t k = 0; k < count; ++k) {
    const double* above =
        std::upper_bound(sums.loss, sums.loss + sums.count, points[k] - offset[0]);
    auto place = static_cast<std::size_t>(above - sums.loss);
    double sum = 0.0;
    for (std::size_t j = 0; j < offsets; ++j) {
      const double from = points[k] - offset[j];
      while (place > 0 && sums.loss[place - 1] > from) --place;
      if (place == sums.count) continue;
      // 1 - e^-(x + d) = (1 - e^-x) + e^-x (1 - e^-d), and the masses are more than the excess.
      const double over = sums.excess[place];
      const double fall = std::expm1(std::min(from - sums.loss[place], 0.0));
      sum += weight[j] * (over + (over - sums.total[place]) * fall);
    }
    out[k] = sum;
  }
}

}  // namespace psinoise
