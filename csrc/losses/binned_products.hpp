// One composition of two privacy losses by all products of their masses, summed into bins.
#pragma once

#include <cstddef>

#include "losses/loss_stretches.hpp"

namespace psinoise {

// For every pair of nodes whose losses add up to edges[k] + t, or whose points to a number in that
// bin, the product of the masses is added to mass[k], that times t to first[k] and at least that
// times t^2 to second[k]; t is nowhere below -below[k]. There are bins + 1 edges; sums below the
// first or from the last on count in the bins at the ends. The same bits for any number of threads.
struct BinSums {
  double* mass;
  double* first;
  double* second;
  double* below;
};
void binned_products(const LossNodes& a, const LossNodes& b, const double* edges, std::size_t bins,
                     std::size_t threads, const BinSums& out);

}  // namespace psinoise
