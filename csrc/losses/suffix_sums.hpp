// What the profile of two measures is read from.
#pragma once

#include <cstddef>

namespace psinoise {

// Over the nodes from each on: the sum of the masses, and that of mass * (1 - exp(loss of the first
// - loss)).
void suffix_sums(const double* loss, const double* mass, std::size_t count, double* total,
                 double* excess);

}  // namespace psinoise
