// Samples of laws in cells as float32: from half words, or rounded from float64 where these do not
// serve.
//
// Method, errors, references: kernels/cells.hpp. A file of its own: beyond some size of a file GCC
// no longer inlines what is called between the rounds of ChaCha.
#include "kernels/cells.hpp"

namespace psinoise::PSINOISE_LEVEL {

void sample_cells_float32(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, float* out) {
  if (table.narrow_entries != nullptr) {
    sample_cells<NarrowCells>(table, key, first, count, static_cast<float>(scale), out);
    return;
  }
  constexpr std::size_t kBlock = 512;
  double block[kBlock];
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t size = count - done < kBlock ? count - done : kBlock;
    sample_cells_float64(table, key, first + done, size, scale, block);
    for (std::size_t k = 0; k < size; ++k) out[done + k] = static_cast<float>(block[k]);
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
