// Cholesky factors of band matrices, and what Newton's method does with them.
//
// Computes: L with L L' = A in place; L^-1 and L'^-1 times rows of right-hand sides; the Gram
//   matrix of rows.
// Storage: band[j (width + 1) + d] = A[j + d, j], so that A[i, j] is element i + j width of memory:
//   a dense matrix whose columns may be read past the band, but hold other columns' entries there.
// Method: right-looking by blocks of columns; tiles of two vectors by four columns stay in
//   registers while a block is subtracted from them.
// Error: backward stable (Higham, Accuracy and Stability of Numerical Algorithms, section 10.1).
//   For the matrices of the cactus program, diagonally dominant with nonpositive off-diagonals,
//   every subtraction in the pivots but the first is of terms of one sign.
// Threads: none, on purpose: the blocks are too small to share, and a library that tries to spends
//   its time waiting.
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Doubles = Vector<double>;

inline constexpr std::size_t kWidth = kVectorSize<double>;
inline constexpr std::size_t kRows = 2 * kWidth;
inline constexpr std::size_t kColumns = 4;

inline std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

inline Doubles load(const double* from) {
  Doubles value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

inline void store(Doubles value, double* to) {
  __builtin_memcpy(to, &value, sizeof(value));
}

// A[k * step] for k below depth are columns of kRows numbers, B[r * row + k * column] numbers.
struct Strided {
  const double* data;
  std::size_t row;
  std::size_t column;
};

// to[r * stride + i] -= sum over k of a[k * step + i] * b(r, k), for kRows i and kColumns r.
inline void subtract_tile(const double* a, std::size_t step, Strided b, std::size_t depth,
                          double* to, std::size_t stride) {
  Doubles sum[kColumns][2] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    const Doubles low = load(a + k * step);
    const Doubles high = load(a + k * step + kWidth);
    for (std::size_t r = 0; r < kColumns; ++r) {
      const Doubles factor = Doubles{} + b.data[r * b.row + k * b.column];
      sum[r][0] += low * factor;
      sum[r][1] += high * factor;
    }
  }
  for (std::size_t r = 0; r < kColumns; ++r) {
    double* place = to + r * stride;
    store(load(place) - sum[r][0], place);
    store(load(place + kWidth) - sum[r][1], place + kWidth);
  }
}

// One number of the same.
inline double product(const double* a, std::size_t step, const double* b, std::size_t column,
                      std::size_t depth) {
  double sum = 0.0;
  for (std::size_t k = 0; k < depth; ++k) sum += a[k * step] * b[k * column];
  return sum;
}

// Factors the lower triangle of a block of columns; false if a pivot is not positive.
bool factor_triangle(double* a, std::size_t size, std::size_t step) {
  for (std::size_t c = 0; c < size; ++c) {
    double* column = a + c * step;
    for (std::size_t k = 0; k < c; ++k) {
      const double factor = a[c + k * step];
      for (std::size_t i = c; i < size; ++i) column[i] -= a[i + k * step] * factor;
    }
    if (!(column[c] > 0.0)) return false;
    const double pivot = __builtin_sqrt(column[c]);
    column[c] = pivot;
    for (std::size_t i = c + 1; i < size; ++i) column[i] /= pivot;
  }
  return true;
}

// The rows below a factored triangle: copied to `panel` (columns `stride` apart, zero where the
// band has ended), solved there, and written back.
void solve_panel(double* a, std::size_t columns, std::size_t step, std::size_t rows,
                 std::size_t width, double* panel, std::size_t stride) {
  for (std::size_t c = 0; c < columns; ++c) {
    double* column = panel + c * stride;
    const std::size_t inside = smaller(rows, width - (columns - 1 - c));
    const double* from = a + columns + c * step;
    for (std::size_t i = 0; i < inside; ++i) column[i] = from[i];
    for (std::size_t i = inside; i < stride; ++i) column[i] = 0.0;
    for (std::size_t k = 0; k < c; ++k) {
      const double factor = a[c + k * step];
      const double* other = panel + k * stride;
      for (std::size_t i = 0; i < rows; ++i) column[i] -= other[i] * factor;
    }
    const double pivot = a[c + c * step];
    for (std::size_t i = 0; i < rows; ++i) column[i] /= pivot;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t inside = smaller(rows, width - (columns - 1 - c));
    double* to = a + columns + c * step;
    for (std::size_t i = 0; i < inside; ++i) to[i] = panel[c * stride + i];
  }
}

// The lower triangle of the window behind the block, less the product of the panel with itself.
void update_window(double* window, std::size_t rows, std::size_t step, const double* panel,
                   std::size_t stride, std::size_t depth) {
  for (std::size_t j = 0; j < rows; j += kColumns) {
    std::size_t i = j;
    const std::size_t columns = smaller(kColumns, rows - j);
    // The corner of the triangle, then whole tiles, then what is left of the rows.
    const std::size_t corner = smaller(rows, j + kColumns - 1);
    const auto scalar = [&](std::size_t from, std::size_t to) {
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = from < j + c ? j + c : from; r < to; ++r) {
          window[r + (j + c) * step] -= product(panel + r, stride, panel + j + c, stride, depth);
        }
      }
    };
    scalar(j, corner);
    i = corner;
    if (columns == kColumns) {
      for (; i + kRows <= rows; i += kRows) {
        subtract_tile(panel + i, stride, {panel + j, 1, stride}, depth, window + i + j * step,
                      step);
      }
    }
    scalar(i, rows);
  }
}

}  // namespace

bool band_cholesky(double* band, std::size_t width, std::size_t size, double* panel) {
  const std::size_t stride = width + kRows;
  for (std::size_t j = 0; j < size;) {
    const std::size_t columns = smaller(smaller(kBandBlock, width == 0 ? 1 : width), size - j);
    double* block = band + j * (width + 1);
    if (!factor_triangle(block, columns, width)) return false;
    const std::size_t rows = smaller(width, size - j - columns);
    if (rows > 0) {
      solve_panel(block, columns, width, rows, width, panel, stride);
      update_window(band + (j + columns) * (width + 1), rows, width, panel, stride, columns);
    }
    j += columns;
  }
  return true;
}

void band_forward(const double* band, std::size_t width, std::size_t size, double* right,
                  std::size_t count) {
  for (std::size_t j = 0; j < size;) {
    const std::size_t columns = smaller(smaller(kBandBlock, width == 0 ? 1 : width), size - j);
    const double* block = band + j * (width + 1);
    for (std::size_t r = 0; r < count; ++r) {
      double* x = right + r * size + j;
      for (std::size_t c = 0; c < columns; ++c) {
        x[c] /= block[c + c * width];
        for (std::size_t i = c + 1; i < columns; ++i) x[i] -= block[i + c * width] * x[c];
      }
    }
    // Rows that every column of the block reaches, in tiles; then those that some do.
    const std::size_t end = smaller(size - j, columns + width);
    const std::size_t common = smaller(end, width + 1);
    std::size_t r = 0;
    for (; r + kColumns <= count; r += kColumns) {
      double* x = right + r * size + j;
      std::size_t i = columns;
      for (; i + kRows <= common; i += kRows) {
        subtract_tile(block + i, width, {x, size, 1}, columns, x + i, size);
      }
      for (; i < common; ++i) {
        for (std::size_t s = 0; s < kColumns; ++s) {
          x[s * size + i] -= product(block + i, width, x + s * size, 1, columns);
        }
      }
    }
    for (; r < count; ++r) {
      double* x = right + r * size + j;
      for (std::size_t c = 0; c < columns; ++c) {
        const double factor = x[c];
        for (std::size_t i = columns; i < common; ++i) x[i] -= block[i + c * width] * factor;
      }
    }
    for (r = 0; r < count; ++r) {
      double* x = right + r * size + j;
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t last = smaller(end, c + width + 1);
        for (std::size_t i = common < columns ? columns : common; i < last; ++i) {
          x[i] -= block[i + c * width] * x[c];
        }
      }
    }
    j += columns;
  }
}

namespace {

// Four partial sums of vectors, so that additions need not wait for each other.
inline double dot(const double* a, const double* b, std::size_t count) {
  Doubles sum[4] = {};
  std::size_t i = 0;
  for (; i + 4 * kWidth <= count; i += 4 * kWidth) {
    for (std::size_t k = 0; k < 4; ++k)
      sum[k] += load(a + i + k * kWidth) * load(b + i + k * kWidth);
  }
  const Doubles all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0.0;
  for (std::size_t k = 0; k < kWidth; ++k) total += all[k];
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

void band_backward(const double* band, std::size_t width, std::size_t size, double* right,
                   std::size_t count) {
  for (std::size_t r = 0; r < count; ++r) {
    double* x = right + r * size;
    for (std::size_t j = size; j-- > 0;) {
      const double* column = band + j * (width + 1);
      const std::size_t below = smaller(width, size - 1 - j);
      x[j] = (x[j] - dot(column + 1, x + j + 1, below)) / column[0];
    }
  }
}

void gram(const double* rows, std::size_t count, std::size_t size, double* out) {
  // Parts of rows that stay in the first-level cache while all pairs are visited.
  constexpr std::size_t part = 512;
  for (std::size_t k = 0; k < count * count; ++k) out[k] = 0.0;
  for (std::size_t start = 0; start < size; start += part) {
    const std::size_t length = smaller(part, size - start);
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t s = 0; s <= r; ++s) {
        out[r * count + s] += dot(rows + r * size + start, rows + s * size + start, length);
      }
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t s = 0; s < r; ++s) out[s * count + r] = out[r * count + s];
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
