// Computes: `binned_products` of losses.hpp.
// Method: stretches of nodes whose points are equally far apart, and which are near these, are
//   lattices. Products of two such stretches, of which one is as fine as the other or finer by a
//   whole number, lie on the finer lattice, where they are summed (kernels/products.cpp) before
//   they are put into bins. All other products are put into bins one by one, by a walk along the
//   edges, what falls into one bin being summed before it is multiplied and added. Jobs are shared
//   out in a way that does not depend on the number of threads, each share with bins of its own.
// Error: a mass is a sum of positive terms, and right to (a.count + b.count + 16) u of itself; a
//   moment to as much of its terms' sizes, for losses that are off by 8 u (|loss of a| + |loss of
//   b| + |edges|) at most.
// Edge values: products that underflow are lost, each below 5e-324.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "dispatch/dispatch.hpp"
#include "losses/losses.hpp"

namespace psinoise {
namespace {

constexpr std::size_t kShares = 8;
constexpr std::size_t kSums = 4;
// Nodes that are added as a whole where they fall into one bin.
constexpr std::size_t kBlock = 32;
// Fewer products than these are not worth a second thread.
constexpr std::size_t kLeastShared = std::size_t{1} << 16;
// How many times finer than another a lattice may be: blocks of a finer one fall into one bin.
constexpr double kLargestStride = 16.0;
// So far, in units of the step of a sum, that second moments of the distances are bounded, not
// summed.
constexpr double kClose = 0.05;
// Sums of a lattice, and rows of products, in one job.
constexpr std::size_t kSumsOfJob = 1024;
constexpr std::size_t kRowsOfJob = 128;

// Mass of a block of nodes, and its moments above the first of them.
struct BlockSums {
  double mass;
  double first;
  double second;
};

// The bins of one share.
class Sums {
 public:
  Sums(const double* edges, std::size_t bins)
      : edges_(edges, edges + bins), bins_(bins), sums_(kSums * bins, 0.0) {
    edges_.push_back(HUGE_VAL);
  }

  // From a point on; later points, and where later rows begin, rise.
  void start(double x) {
    const auto above = std::upper_bound(edges_.begin() + 1, edges_.end() - 1, x);
    bin_ = static_cast<std::size_t>(above - edges_.begin()) - 1;
  }
  // What lies near a point, as far from it as is told, with its moments above it.
  void add(double x, double mass, double first, double second, double farthest) {
    while (bin_ + 1 < bins_ && x >= edges_[bin_ + 1]) ++bin_;
    const double t = x - edges_[bin_];
    double* at = &sums_[kSums * bin_];
    at[0] += mass;
    at[1] += first + t * mass;
    at[2] += second + t * (2.0 * first + t * mass);
    at[3] = std::max(at[3], farthest);
  }
  // Products of one node with some whose losses rise, and which have sums for each block.
  void add_row(double loss, double weight, const double* losses, const double* masses,
               std::size_t count, const BlockSums* blocks) {
    // In registers: what is written to the sums could be members for all that a compiler knows.
    const double* const edges = edges_.data();
    double* const sums = sums_.data();
    double x = loss + losses[0];
    while (x >= edges[bin_ + 1]) ++bin_;
    std::size_t bin = bin_;
    const auto add_sums = [&](double mass, double first, double second)
        __attribute__((always_inline)) {
      double* at = sums + kSums * bin;
      at[0] += weight * mass;
      at[1] += weight * first;
      at[2] += weight * second;
    };
    for (std::size_t j = 0; j < count; ++blocks) {
      const std::size_t end = std::min(j + kBlock, count);
      x = loss + losses[j];
      while (x >= edges[bin + 1]) ++bin;
      if (loss + losses[end - 1] < edges[bin + 1]) {
        const double t = x - edges[bin];
        add_sums(blocks->mass, blocks->first + t * blocks->mass,
                 blocks->second + t * (2.0 * blocks->first + t * blocks->mass));
        j = end;
        continue;
      }
      while (j < end) {
        while (x >= edges[bin + 1]) ++bin;
        const double here = edges[bin];
        const double next = edges[bin + 1];
        double mass = 0.0;
        double first = 0.0;
        double second = 0.0;
        while (x < next) {
          const double t = x - here;
          const double moment = masses[j] * t;
          mass += masses[j];
          first += moment;
          second += moment * t;
          if (++j == end) break;
          x = loss + losses[j];
        }
        add_sums(mass, first, second);
      }
    }
  }
  const std::vector<double>& sums() const { return sums_; }

 private:
  std::vector<double> edges_;  // and one beyond all
  std::size_t bins_;
  std::vector<double> sums_;
  std::size_t bin_ = 0;  // of the last point, or of where the last row began
};

// What products need of a stretch.
struct Prepared {
  std::vector<BlockSums> blocks;
  // Of a lattice, masses times powers of the distances of the nodes from its points, with zeros on
  // both sides; the first alone if there are no distances.
  std::vector<double> powers[3];

  Prepared(const LossNodes& nodes, const Stretch& stretch) {
    const std::size_t end = stretch.begin + stretch.count;
    for (std::size_t k = stretch.begin; k < end; k += kBlock) {
      BlockSums sums = {0.0, 0.0, 0.0};
      for (std::size_t j = k; j < std::min(k + kBlock, end); ++j) {
        const double above = nodes.loss[j] - nodes.loss[k];
        const double moment = nodes.mass[j] * above;
        sums.mass += nodes.mass[j];
        sums.first += moment;
        sums.second += moment * above;
      }
      blocks.push_back(sums);
    }
    for (std::size_t s = 0; s < (stretch.farthest > 0.0 ? 3 : 1) && stretch.step > 0.0; ++s) {
      powers[s].resize(stretch.count + 2 * kSumPadding);
      for (std::size_t k = stretch.begin; k < end; ++k) {
        const double d = nodes.loss[k] - nodes.point[k];
        powers[s][k - stretch.begin + kSumPadding] = nodes.mass[k] * (s == 0   ? 1.0
                                                                      : s == 1 ? d
                                                                               : d * d);
      }
    }
  }
};

// Two stretches: a range of their sums on the finer lattice, or else of rows of the first.
struct Job {
  const Stretch* rows;
  const Stretch* columns;
  const Prepared* coarse;
  const Prepared* fine;
  bool turned;         // rows are nodes of the second measure
  std::size_t stride;  // 0 for rows
  std::size_t begin;
  std::size_t end;
  double weight;
};

class Composition {
 public:
  Composition(const LossNodes& a, const LossNodes& b, bool square) : a_(a), b_(b) {
    prepare(a, stretches_[0], prepared_[0]);
    if (!square) prepare(b, stretches_[1], prepared_[1]);
    const std::size_t other = square ? 0 : 1;
    for (std::size_t p = 0; p < stretches_[0].size(); ++p) {
      for (std::size_t q = square ? p : 0; q < stretches_[other].size(); ++q) {
        plan(p, other, q, square && p != q ? 2.0 : 1.0);
      }
    }
  }

  std::size_t jobs() const { return jobs_.size(); }

  void run(std::size_t which, Sums& sums) const {
    const Job& job = jobs_[which];
    const LossNodes& rows = job.turned ? b_ : a_;
    const LossNodes& columns = job.turned ? a_ : b_;
    if (job.stride > 0) return add_lattice(job, rows, columns, sums);
    const Stretch& other = *job.columns;
    const std::size_t first = job.rows->begin + job.begin;
    sums.start(rows.loss[first] + columns.loss[other.begin]);
    for (std::size_t k = first; k < job.rows->begin + job.end; ++k) {
      sums.add_row(rows.loss[k], job.weight * rows.mass[k], columns.loss + other.begin,
                   columns.mass + other.begin, other.count, job.fine->blocks.data());
    }
  }

 private:
  static void prepare(const LossNodes& nodes, std::vector<Stretch>& found,
                      std::vector<Prepared>& prepared) {
    found = stretches(nodes);
    for (const Stretch& stretch : found) prepared.emplace_back(nodes, stretch);
  }

  void plan(std::size_t p, std::size_t other, std::size_t q, double weight) {
    const Stretch* x = &stretches_[0][p];
    const Stretch* y = &stretches_[other][q];
    // Rows come from the coarser one: a row of the finer one falls into few bins.
    const auto spacing = [](const LossNodes& nodes, const Stretch& s) {
      return (nodes.point[s.begin + s.count - 1] - nodes.point[s.begin]) /
             static_cast<double>(s.count);
    };
    const bool turned = spacing(a_, *x) < spacing(b_, *y);
    Job job = {x, y, &prepared_[0][p], &prepared_[other][q], turned, 0, 0, 0, weight};
    if (turned) {
      std::swap(job.rows, job.columns);
      std::swap(job.coarse, job.fine);
    }
    std::size_t total = job.rows->count;
    std::size_t part = kRowsOfJob;
    if (x->step > 0.0 && y->step > 0.0) {
      const double ratio = job.rows->step / job.columns->step;
      const double sums =
          ratio * static_cast<double>(total) + static_cast<double>(job.columns->count);
      // Each sum is put into a bin.
      const bool fewer = 2.0 * sums < static_cast<double>(x->count) * static_cast<double>(y->count);
      if (ratio == std::floor(ratio) && ratio <= kLargestStride && fewer) {
        job.stride = static_cast<std::size_t>(ratio);
        total = job.stride * (job.rows->count - 1) + job.columns->count;
        part = kSumsOfJob;
      }
    }
    for (job.begin = 0; job.begin < total; job.begin = job.end) {
      job.end = std::min(job.begin + part, total);
      jobs_.push_back(job);
    }
  }

  static void add_lattice(const Job& job, const LossNodes& rows, const LossNodes& columns,
                          Sums& out) {
    const std::size_t count = job.end - job.begin;
    std::vector<double> sums[4];
    for (std::vector<double>& each : sums) each.assign(count, 0.0);
    const auto add = [&](std::size_t power, std::size_t other, std::size_t where) {
      const std::vector<double>& c = job.coarse->powers[power];
      const std::vector<double>& f = job.fine->powers[other];
      if (c.empty() || f.empty()) return;
      kernels().lattice_sums(c.data() + kSumPadding, job.rows->count, f.data() + kSumPadding,
                             job.columns->count, job.stride, job.begin, job.end,
                             sums[where].data());
    };
    const double step = job.columns->step;
    const double farthest = job.rows->farthest + job.columns->farthest;
    add(0, 0, 0);
    add(0, 1, 1);
    add(1, 0, 1);
    const bool close = farthest <= kClose * step;
    if (!close) {
      add(0, 2, 2);
      add(2, 0, 2);
      add(1, 1, 3);
    }
    const double start = rows.point[job.rows->begin] + columns.point[job.columns->begin];
    out.start(start + static_cast<double>(job.begin) * step);
    for (std::size_t k = 0; k < count; ++k) {
      const double x = start + static_cast<double>(job.begin + k) * step;
      const double second =
          close ? farthest * farthest * sums[0][k] : sums[2][k] + 2.0 * sums[3][k];
      out.add(x, job.weight * sums[0][k], job.weight * sums[1][k], job.weight * second, farthest);
    }
  }

  const LossNodes& a_;
  const LossNodes& b_;
  std::vector<Stretch> stretches_[2];
  std::vector<Prepared> prepared_[2];
  std::vector<Job> jobs_;
};

}  // namespace

void binned_products(const LossNodes& a, const LossNodes& b, const double* edges, std::size_t bins,
                     std::size_t threads, const BinSums& out) {
  const bool square =
      a.loss == b.loss && a.point == b.point && a.mass == b.mass && a.count == b.count;
  const Composition composition(a, b, square);
  std::vector<Sums> shares(kShares, Sums(edges, bins));
  const bool shared = a.count * b.count >= kLeastShared;
  parallel_for(kShares, shared ? threads : 1, [&](std::size_t share) {
    for (std::size_t k = share; k < composition.jobs(); k += kShares) {
      composition.run(k, shares[share]);
    }
  });
  for (std::size_t j = 0; j < bins; ++j) {
    double sums[kSums] = {};
    for (const Sums& share : shares) {
      const double* at = &share.sums()[kSums * j];
      for (std::size_t s = 0; s < 3; ++s) sums[s] += at[s];
      sums[3] = std::max(sums[3], at[3]);
    }
    out.mass[j] = sums[0];
    out.first[j] = sums[1];
    out.second[j] = sums[2];
    out.below[j] = sums[3];
  }
}

}  // namespace psinoise
