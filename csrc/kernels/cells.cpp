// Samples of laws in cells as float64.
//
// Method, errors, references: kernels/cells.hpp.
#include "kernels/cells.hpp"

namespace psinoise::PSINOISE_LEVEL {

void sample_cells_float64(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, double* out) {
  sample_cells<WideCells>(table, key, first, count, scale, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
