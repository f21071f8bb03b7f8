// One composition of two privacy losses by all products of their masses, summed into bins.
#pragma once

#include <cstddef>

namespace psinoise {

// Masses at losses that rise.
struct LossNodes {
  const double* loss;
  const double* mass;
  std::size_t count;
};

// For every pair of nodes whose losses add up to x in [edges[k], edges[k + 1]) the product of the
// masses is added to mass[k], and that times x - edges[k] to moment[k]. There are bins + 1 edges;
// sums below the first or from the last on count in the bins at the ends. Both nodes may be the
// same, which takes half the time. The same bits for any number of threads.
void binned_products(const LossNodes& a, const LossNodes& b, const double* edges, std::size_t bins,
                     std::size_t threads, double* mass, double* moment);

// Over the nodes from each on: the sum of the masses, and that of mass * (1 - exp(loss of the first
// - loss)).
void suffix_sums(const LossNodes& nodes, double* total, double* excess);

}  // namespace psinoise
