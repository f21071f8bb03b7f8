// Values rounded to a lattice, and with integer noise added.
//
// Computes: X alone, and out = (X + K) g with X = floor(x / g + 1/2), half up, of x within its
// bounds, and K
//   from the lattice law.
// Saturation: X stays within 2^61, K within 2^62, and the sum is brought back to 2^61. Where K has
//   been saturated, |X + K| is at least 2^61 with and without: the result is a function of the
//   exact sum alone, and what is released is post-processing of it.
// Side channels: a block of noise is complete before the first value is read; what is done with a
//   value is the same straight line of instructions for all values (kernels/lattice_rounding.hpp).
// Error: none up to the sum. The integer is converted and multiplied by g in float64, and rounded
//   to float32 after that: post-processing.
// Range: g from 2^-1000 to 2^900; from 2^-100 to 2^60 for float32; from 2^-61 to 2^62 for integers,
//   and a whole number for integer results. NaN is taken to the lower bound.
#include "kernels/lattice.hpp"
#include "kernels/lattice_rounding.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline Doubles widened(Doubles x) {
  return x;
}

// Subnormal numbers are 0 on lattices from 2^-100 on; to convert them would take longer.
inline Doubles widened(Values<float> x) {
  const Values<std::int32_t> bits = bit_cast<Values<std::int32_t>>(x);
  const Values<std::int32_t> normal = (bits & 0x7f800000) != 0;
  return __builtin_convertvector(bit_cast<Values<float>>(bits & normal), Doubles);
}

inline Integers widened(Integers x) {
  return x;
}

// Multiples of the grid as values of one type.
template <typename Real>
struct ToFloat {
  explicit ToFloat(double step) : grid(step) {}
  // Limits are doubles: it is the same before and after the sum is rounded to one.
  Values<Real> operator()(Integers n) const {
    const Doubles within = clamped(to_doubles(n), -0x1p61, 0x1p61);
    return __builtin_convertvector(within * grid, Values<Real>);
  }
  double grid;
};

struct ToInt64 {
  explicit ToInt64(double step)
      : grid(static_cast<Integer>(step)), most((Integer{1} << 62) / grid) {}
  Integers operator()(Integers n) const {
    return clamped(clamped(n, -kMostValue, kMostValue), -most, most) * grid;
  }
  Integer grid;
  Integer most;
};

// Calls `use` with the place of each vector and how many of its elements there are.
template <typename Use>
inline void in_vectors(std::size_t size, const Use& use) {
  std::size_t i = 0;
  for (; i + kWidth <= size; i += kWidth) use(i, kWidth);
  if (i < size) use(i, size - i);
}

// Two passes, each of a short chain of instructions, are faster than one.
template <typename Rounding, typename Convert, typename In, typename Out, typename Bound>
void release(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
             std::size_t count, const In* x, double grid, Bound low, Bound high, Out* out) {
  for_each_block(law, key, first, count, [&](std::size_t done, std::size_t size, Integer* sums) {
    // Made here, their numbers stay in registers whatever is written through pointers.
    const Rounding rounding(grid, low, high);
    const Convert convert(grid);
    in_vectors(size, [&](std::size_t i, std::size_t filled) {
      Values<In> value{};
      Integers noise;
      __builtin_memcpy(&value, x + done + i, filled * sizeof(In));
      __builtin_memcpy(&noise, sums + i, sizeof(noise));
      const Integers sum = rounding(widened(value)) + noise;
      __builtin_memcpy(sums + i, &sum, sizeof(sum));
    });
    in_vectors(size, [&](std::size_t i, std::size_t filled) {
      Integers sum;
      __builtin_memcpy(&sum, sums + i, sizeof(sum));
      const Values<Out> result = convert(sum);
      __builtin_memcpy(out + done + i, &result, filled * sizeof(Out));
    });
  });
}

template <typename In>
void cells(const In* x, std::size_t count, double grid, double low, double high, Integer* out) {
  const FloatRounding rounding(grid, low, high);
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    Values<In> value;
    __builtin_memcpy(&value, x + i, sizeof(value));
    const Integers found = rounding(widened(value));
    __builtin_memcpy(out + i, &found, sizeof(found));
  }
  if (i < count) {
    Values<In> value{};
    __builtin_memcpy(&value, x + i, (count - i) * sizeof(In));
    const Integers found = rounding(widened(value));
    __builtin_memcpy(out + i, &found, (count - i) * sizeof(Integer));
  }
}

// The exponent of what is not finite is all ones, and carries into the sign.
template <typename Word, typename Real>
bool all_finite(const Real* x, std::size_t count, Word least_exponent) {
  constexpr Word sign = Word{1} << (8 * sizeof(Word) - 1);
  Word carried = 0;
  for (std::size_t i = 0; i < count; ++i) {
    carried |= (bit_cast<Word>(x[i]) & ~sign) + least_exponent;
  }
  return (carried & sign) == 0;
}

}  // namespace

bool all_finite_float64(const double* x, std::size_t count) {
  return all_finite<std::uint64_t>(x, count, std::uint64_t{1} << 52);
}

bool all_finite_float32(const float* x, std::size_t count) {
  return all_finite<std::uint32_t>(x, count, std::uint32_t{1} << 23);
}

void lattice_cells_float64(const double* x, std::size_t count, double grid, double low, double high,
                           std::int64_t* out) {
  cells(x, count, grid, low, high, out);
}

void lattice_cells_float32(const float* x, std::size_t count, double grid, double low, double high,
                           std::int64_t* out) {
  cells(x, count, grid, low, high, out);
}

void release_float64(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const double* x, double grid, double low, double high,
                     double* out) {
  release<FloatRounding, ToFloat<double>>(law, key, first, count, x, grid, low, high, out);
}

void release_float32(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const float* x, double grid, double low, double high,
                     float* out) {
  release<FloatRounding, ToFloat<float>>(law, key, first, count, x, grid, low, high, out);
}

void release_int64(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, const std::int64_t* x, double grid, std::int64_t low,
                   std::int64_t high, std::int64_t* out) {
  release<IntegerRounding, ToInt64>(law, key, first, count, x, grid, low, high, out);
}

void release_int64_to_float64(const LatticeSum& law, const std::uint32_t key[8],
                              std::uint64_t first, std::size_t count, const std::int64_t* x,
                              double grid, std::int64_t low, std::int64_t high, double* out) {
  release<IntegerRounding, ToFloat<double>>(law, key, first, count, x, grid, low, high, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
