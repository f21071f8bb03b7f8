// Computes: the sums of binned_products.hpp.
// Method: a row of products with one node of the first measure rises, so that its bins are found by
//   a walk along the edges; what falls into one bin is summed before it is multiplied and added.
//   Rows are shared out in blocks that do not depend on the number of threads, each with bins of
//   its own.
// Error: all terms are positive but for rounding. A mass is right to (a.count + b.count + 8) u of
//   itself; a moment to as much of itself and 4 u (|loss of a| + |loss of b| + |edge|) of the mass.
// Edge values: products that underflow are lost, each below 5e-324.
#include "losses/binned_products.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.hpp"

namespace psinoise {
namespace {

constexpr std::size_t kBlocks = 8;
// Fewer products than these are not worth a second thread.
constexpr std::size_t kLeastShared = std::size_t{1} << 16;

class Walk {
 public:
  Walk(const double* edges, std::size_t bins, double* mass, double* moment)
      : edges_(edges), bins_(bins), mass_(mass), moment_(moment) {}

  // Products of a node with nodes whose losses rise; nodes of later rows must not lie lower.
  void add_row(double loss, double weight, const double* losses, const double* masses,
               std::size_t count) {
    if (count == 0) return;
    start_ = bin_from(start_, loss + losses[0]);
    std::size_t bin = start_;
    double shift = loss - edges_[bin];
    double next = end_of(bin);
    double sum = 0.0;
    double moment = 0.0;
    for (std::size_t j = 0; j < count; ++j) {
      const double x = loss + losses[j];
      if (x >= next) {
        mass_[bin] += weight * sum;
        moment_[bin] += weight * moment;
        sum = moment = 0.0;
        bin = bin_from(bin, x);
        shift = loss - edges_[bin];
        next = end_of(bin);
      }
      sum += masses[j];
      moment += masses[j] * (losses[j] + shift);
    }
    mass_[bin] += weight * sum;
    moment_[bin] += weight * moment;
  }

 private:
  double end_of(std::size_t bin) const { return bin + 1 < bins_ ? edges_[bin + 1] : HUGE_VAL; }
  std::size_t bin_from(std::size_t bin, double x) const {
    while (bin + 1 < bins_ && x >= edges_[bin + 1]) ++bin;
    return bin;
  }

  const double* edges_;
  std::size_t bins_;
  double* mass_;
  double* moment_;
  std::size_t start_ = 0;
};

}  // namespace

void binned_products(const LossNodes& a, const LossNodes& b, const double* edges, std::size_t bins,
                     std::size_t threads, double* mass, double* moment) {
  const bool square = a.loss == b.loss && a.mass == b.mass && a.count == b.count;
  std::vector<double> sums(2 * kBlocks * bins, 0.0);
  const auto block = [&](std::size_t k) {
    Walk walk(edges, bins, &sums[2 * k * bins], &sums[(2 * k + 1) * bins]);
    // Every kBlocks-th row: rows of a square differ in length.
    for (std::size_t i = k; i < a.count; i += kBlocks) {
      if (square) {
        walk.add_row(a.loss[i], a.mass[i], b.loss + i, b.mass + i, 1);
        walk.add_row(a.loss[i], 2.0 * a.mass[i], b.loss + i + 1, b.mass + i + 1, a.count - i - 1);
      } else {
        walk.add_row(a.loss[i], a.mass[i], b.loss, b.mass, b.count);
      }
    }
  };
  const bool shared = a.count * b.count >= kLeastShared;
  parallel_for(kBlocks, shared ? threads : 1, block);
  std::fill(mass, mass + bins, 0.0);
  std::fill(moment, moment + bins, 0.0);
  for (std::size_t k = 0; k < kBlocks; ++k) {
    for (std::size_t j = 0; j < bins; ++j) {
      mass[j] += sums[2 * k * bins + j];
      moment[j] += sums[(2 * k + 1) * bins + j];
    }
  }
}

void suffix_sums(const LossNodes& nodes, double* total, double* excess) {
  double sum = 0.0;
  double over = 0.0;
  for (std::size_t k = nodes.count; k-- > 0;) {
    // 1 - e^-(x + g) = e^-g (1 - e^-x) + (1 - e^-g): positive terms.
    const double gap = k + 1 < nodes.count ? nodes.loss[k] - nodes.loss[k + 1] : 0.0;
    over = std::exp(gap) * over - std::expm1(gap) * sum;
    sum += nodes.mass[k];
    total[k] = sum;
    excess[k] = over;
  }
}

}  // namespace psinoise
