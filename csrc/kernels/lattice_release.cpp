// Values rounded to a lattice, with integer noise added.
//
// Computes: out = (X + K) 2^e with X = floor(x 2^-e + 1/2), half up, and K from the lattice law.
// Saturation: X stays within 2^61, K within 2^62, and the sum is brought back to 2^61. Where K has
//   been saturated, |X + K| is above 2^61 with and without: the result is a function of the exact
//   sum alone, and what is released is post-processing of it.
// Side channels: a block of noise is complete before the first value is read; what is done with a
//   value is the same straight line of instructions for all values.
// Error: none up to the sum. x 2^-e is exact but where it under- or overflows, and then its nearest
//   integer, or its saturation, is right all the same. t - floor(t) is exact for t >= 0 and for
//   t <= -1/2, and rounding cannot take it below 1/2 in between: the comparison is right in every
//   rounding mode. The integer is converted once, which rounds above 2^53 (2^24 for float32).
// Range: e from -1000 to 900; from -100 to 60 for float32; from -61 to 32 for integers, 0 to 32 for
//   integer results. NaN is kept out by the caller.
#include "kernels/lattice.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Integer = std::int64_t;

inline constexpr Integer kMostValue = Integer{1} << 61;

inline Integer clamped(Integer x, Integer most) {
  x = x < -most ? -most : x;
  return x > most ? most : x;
}

inline double power_of_two(int exponent) {
  return bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// floor(t + 1/2) for what t stands for.
inline Integer nearest(double t) {
  const double most = 0x1p61;
  t = t < -most ? -most : t;
  t = t > most ? most : t;
  // Towards zero, whatever the rounding mode; exact in float64 since t is whole beyond 2^52.
  const Integer whole = static_cast<Integer>(t);
  const Integer floor = whole - (static_cast<double>(whole) > t ? 1 : 0);
  return floor + (t - static_cast<double>(floor) >= 0.5 ? 1 : 0);
}

// Values of one type in units of the lattice.
struct FloatSnap {
  explicit FloatSnap(int exponent) : inverse(power_of_two(-exponent)) {}
  template <typename Real>
  Integer operator()(Real x) const {
    return nearest(static_cast<double>(x) * inverse);
  }
  double inverse;
};

// For a lattice finer than the integers.
struct FineSnap {
  explicit FineSnap(int exponent) : shift(-exponent), most(kMostValue >> shift) {}
  Integer operator()(Integer x) const { return clamped(x, most) * (Integer{1} << shift); }
  int shift;
  Integer most;
};

struct CoarseSnap {
  explicit CoarseSnap(int exponent) : shift(exponent) {}
  Integer operator()(Integer x) const {
    return clamped((x >> shift) + ((x >> (shift - 1)) & 1), kMostValue);
  }
  int shift;
};

struct ToFloat64 {
  explicit ToFloat64(int exponent) : unit(power_of_two(exponent)) {}
  double operator()(Integer n) const { return static_cast<double>(n) * unit; }
  double unit;
};

struct ToFloat32 {
  explicit ToFloat32(int exponent) : unit(static_cast<float>(power_of_two(exponent))) {}
  float operator()(Integer n) const { return static_cast<float>(n) * unit; }
  float unit;
};

struct ToInt64 {
  explicit ToInt64(int exponent) : shift(exponent), most((Integer{1} << 62) >> exponent) {}
  Integer operator()(Integer n) const { return clamped(n, most) * (Integer{1} << shift); }
  int shift;
  Integer most;
};

template <typename Snap, typename Convert, typename In, typename Out>
void release(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
             std::size_t count, const In* x, int exponent, Out* out) {
  const Snap snap(exponent);
  const Convert convert(exponent);
  for_each_block(table, key, first, count,
                 [&](std::size_t done, std::size_t size, const Integer* noise) {
                   const In* from = x + done;
                   Out* to = out + done;
                   for (std::size_t i = 0; i < size; ++i) {
                     to[i] = convert(clamped(snap(from[i]) + noise[i], kMostValue));
                   }
                 });
}

template <typename Convert, typename Out>
void release_integers(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                      std::size_t count, const Integer* x, int exponent, Out* out) {
  if (exponent > 0) {
    release<CoarseSnap, Convert>(table, key, first, count, x, exponent, out);
  } else {
    release<FineSnap, Convert>(table, key, first, count, x, exponent, out);
  }
}

}  // namespace

void release_float64(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const double* x, int exponent, double* out) {
  release<FloatSnap, ToFloat64>(table, key, first, count, x, exponent, out);
}

void release_float32(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const float* x, int exponent, float* out) {
  release<FloatSnap, ToFloat32>(table, key, first, count, x, exponent, out);
}

void release_int64(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, const std::int64_t* x, int exponent, std::int64_t* out) {
  release_integers<ToInt64>(table, key, first, count, x, exponent, out);
}

void release_int64_to_float64(const LatticeTable& table, const std::uint32_t key[8],
                              std::uint64_t first, std::size_t count, const std::int64_t* x,
                              int exponent, double* out) {
  release_integers<ToFloat64>(table, key, first, count, x, exponent, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
