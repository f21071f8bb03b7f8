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
using Integers = Vector<Integer>;
using Doubles = Vector<double>;

inline constexpr std::size_t kWidth = kVectorSize<Integer>;
inline constexpr Integer kMostValue = Integer{1} << 61;

// As many values of another type as a vector has integers.
template <typename T>
struct ValuesOf {
  typedef T type __attribute__((vector_size(kWidth * sizeof(T))));
};

template <typename T>
using Values = typename ValuesOf<T>::type;

// Within [-most, most]; a number or a vector.
template <typename T, typename Limit>
inline T clamped(T x, Limit most) {
  const T high = T{} + most;
  const T low = -high;
  x = x < low ? low : x;
  return x > high ? high : x;
}

inline double power_of_two(int exponent) {
  return bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// floor(t + 1/2) for what t stands for. Conversion to an integer is towards zero in every rounding
// mode, and exact beyond 2^52, where t is whole.
inline Integer nearest(double t) {
  t = clamped(t, 0x1p61);
  const Integer whole = static_cast<Integer>(t);
  const Integer floor = whole - (static_cast<double>(whole) > t ? 1 : 0);
  return floor + (t - static_cast<double>(floor) >= 0.5 ? 1 : 0);
}

inline Integers nearest(Doubles t) {
  t = clamped(t, 0x1p61);
  const Integers whole = __builtin_convertvector(t, Integers);
  // A comparison that holds is -1.
  const Integers floor = whole + (__builtin_convertvector(whole, Doubles) > t);
  return floor - (t - __builtin_convertvector(floor, Doubles) >= 0.5);
}

// Values of one type in units of the lattice.
struct FloatSnap {
  explicit FloatSnap(int exponent) : inverse(power_of_two(-exponent)) {}
  template <typename Real>
  Integer operator()(Real x) const {
    return nearest(static_cast<double>(x) * inverse);
  }
  template <typename Reals>
  Integers wide(Reals x) const {
    return nearest(__builtin_convertvector(x, Doubles) * inverse);
  }
  double inverse;
};

// For a lattice finer than the integers.
struct FineSnap {
  explicit FineSnap(int exponent) : shift(-exponent), most(kMostValue >> shift) {}
  Integer operator()(Integer x) const { return clamped(x, most) * (Integer{1} << shift); }
  Integers wide(Integers x) const { return clamped(x, most) * (Integer{1} << shift); }
  int shift;
  Integer most;
};

struct CoarseSnap {
  explicit CoarseSnap(int exponent) : shift(exponent) {}
  template <typename T>
  T operator()(T x) const {
    return clamped((x >> shift) + ((x >> (shift - 1)) & 1), kMostValue);
  }
  Integers wide(Integers x) const { return (*this)(x); }
  int shift;
};

// Multiples of the grid as values of one type.
template <typename Real>
struct ToFloat {
  explicit ToFloat(int exponent) : unit(static_cast<Real>(power_of_two(exponent))) {}
  Real operator()(Integer n) const { return static_cast<Real>(n) * unit; }
  Values<Real> wide(Integers n) const { return __builtin_convertvector(n, Values<Real>) * unit; }
  Real unit;
};

struct ToInt64 {
  explicit ToInt64(int exponent) : shift(exponent), most((Integer{1} << 62) >> exponent) {}
  Integer operator()(Integer n) const { return clamped(n, most) * (Integer{1} << shift); }
  Integers wide(Integers n) const { return clamped(n, most) * (Integer{1} << shift); }
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
                   std::size_t i = 0;
                   for (; i + kWidth <= size; i += kWidth) {
                     Values<In> value;
                     Integers added;
                     __builtin_memcpy(&value, from + i, sizeof(value));
                     __builtin_memcpy(&added, noise + i, sizeof(added));
                     const auto sum = clamped(snap.wide(value) + added, kMostValue);
                     const Values<Out> result = convert.wide(sum);
                     __builtin_memcpy(to + i, &result, sizeof(result));
                   }
                   for (; i < size; ++i) {
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
  release<FloatSnap, ToFloat<double>>(table, key, first, count, x, exponent, out);
}

void release_float32(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const float* x, int exponent, float* out) {
  release<FloatSnap, ToFloat<float>>(table, key, first, count, x, exponent, out);
}

void release_int64(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, const std::int64_t* x, int exponent, std::int64_t* out) {
  release_integers<ToInt64>(table, key, first, count, x, exponent, out);
}

void release_int64_to_float64(const LatticeTable& table, const std::uint32_t key[8],
                              std::uint64_t first, std::size_t count, const std::int64_t* x,
                              int exponent, double* out) {
  release_integers<ToFloat<double>>(table, key, first, count, x, exponent, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
