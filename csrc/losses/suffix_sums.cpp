// Computes: `suffix_sums` of losses.hpp, of positive terms: right to (2 count + 8) u of themselves
//   and of the exponents of what fades far away.
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

}  // namespace psinoise
