// Exponential and logarithm with a fixed order of operations.
//
// Computes: exp(hi + lo), log(x), log1p(x).
// Regions: exp by x = k log 2 + r, |r| <= 0.35, and the Taylor sum of degree 13 (first omitted term
//   5e-18); log by x = 2^k m, 0.70 <= m < 1.42, and the odd series in (m - 1) / (m + 1) of
//   degree 19.
// Error: below 1.2 ulp (exp with |lo| <= ulp(hi)), 1.5 ulp (log), 2 ulp (log1p);
// tests/test_elementary. Edge values: exp(-inf) = 0, exp(x > 709.78) = inf, subnormal results are
// rounded twice;
//   log(0) = -inf, log(inf) = inf, log of a negative number and of NaN is NaN.
// Constants: log 2 split so that k * kLog2Hi is exact (fdlibm); Taylor coefficients 1/n!, 2/(2n+1).
// Why not libm: glibc changes bits between CPUs with and without FMA, and our samples must not.
#pragma once

#include <cstdint>

#include "base/level.hpp"
#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline constexpr double kLog2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLog2Hi = 0x1.62e42fee00000p-1;
inline constexpr double kLog2Lo = 0x1.a39ef35793c76p-33;
inline constexpr double kInverseLog2 = 0x1.71547652b82fep+0;

inline std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline double double_from(std::uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// exp(hi + lo) 2^shift where |lo| is at most about ulp(hi) and |shift| <= 1100, of a number or of
// each of a vector. Branch-free, so that loops vectorise.
template <typename Real>
inline Real exp_shifted(Real hi, Real lo, std::int64_t shift) {
  typedef typename BitsOf<Real>::type Bits;
  // NaN fails the comparison and goes through. Below exp(-745.2) the result is 0, as a product with
  // 0, for rounding of a product to 0 takes long; above it overflows. One selection: of two GCC
  // makes branches, and no vectors at the lower levels.
  const double lift = kLog2 * static_cast<double>(shift);
  const Real level = hi - (0.0 - lift);
  const Real x = magnitude(level) > 746.0 ? with_sign(1418.2, level) - lift : hi;
  const double round = 0x1.8p52;  // adding it rounds to an integer, to nearest even
  const Real shifted = x * kInverseLog2 + round;
  const Real k = shifted - round;
  const Real r = ((x - k * kLog2Hi) - k * kLog2Lo) + lo;
  Real sum = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  const Real value = 1.0 + (r + (r * r) * sum);
  // The low bits of the rounded sum are those of k. 2^(k + shift) is applied in two halves, since
  // it may lie outside the normal numbers; biased by 2046, which |k + shift| reaches where x was
  // replaced, the halves are the exponent fields themselves.
  const Bits field = (bit_cast<Bits>(shifted) + static_cast<std::uint64_t>(shift + 2046)) & 0xfff;
  const Bits half = field >> 1;
  return (value * bit_cast<Real>(half << 52)) * bit_cast<Real>((field - half) << 52);
}

// exp(hi + lo) where |lo| is at most about ulp(hi).
template <typename Real>
inline Real exp_sum(Real hi, Real lo) {
  return exp_shifted(hi, lo, 0);
}

template <typename Real>
inline Real exponential(Real x) {
  return exp_sum(x, Real{});
}

// log(x 2^k) for normal numbers x > 0 and whole ones k below 2^20. Branch-free, so that loops
// vectorise.
template <typename Real>
inline Real log_scaled(Real x, Real k) {
  typedef typename BitsOf<Real>::type Bits;
  const Bits bits = bit_cast<Bits>(x);
  // 0x...6a09e...: the mantissa is brought to [sqrt(1/2), sqrt(2)) by one integer subtraction.
  const Bits offset = bits - 0x3fe6a09e00000000u;
  const Real m = bit_cast<Real>(bits - (offset & 0xfff0000000000000u));
  // The exponent and 1024, of 11 bits, as the last ones of 2^52 and more: there is no conversion of
  // integers of 64 bits at the lower levels.
  const Bits exponent = ((offset + 0x4000000000000000u) >> 52) | 0x4330000000000000u;
  const Real scale = (bit_cast<Real>(exponent) - (0x1p52 + 1024.0)) + k;
  const Real f = m - 1.0;
  const Real s = f / (2.0 + f);
  const Real z = s * s;
  Real sum = z * (2.0 / 21.0) + 2.0 / 19.0;
  sum = sum * z + 2.0 / 17.0;
  sum = sum * z + 2.0 / 15.0;
  sum = sum * z + 2.0 / 13.0;
  sum = sum * z + 2.0 / 11.0;
  sum = sum * z + 2.0 / 9.0;
  sum = sum * z + 2.0 / 7.0;
  sum = sum * z + 2.0 / 5.0;
  sum = sum * z + 2.0 / 3.0;
  // log m = f - f^2/2 + s (f^2/2 + z sum): fdlibm's arrangement, the leading term is exact.
  const Real half_square = 0.5 * f * f;
  return scale * kLog2Hi - ((half_square - (s * (half_square + z * sum) + scale * kLog2Lo)) - f);
}

// log(x) for 0 < x < infinity, and a finite number below -700 for 0. Branch-free.
template <typename Real>
inline Real log_of_normal_or_less(Real x) {
  const auto small = x < 0x1p-1022;
  const Real none = {};
  return log_scaled(small ? x * 0x1p54 : x, small ? none - 54.0 : none);
}

inline double logarithm(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  if (x == __builtin_inf()) return x;
  return log_of_normal_or_less(x);
}

inline double log_one_plus(double x) {
  const double u = 1.0 + x;
  if (!(u < __builtin_inf()) || !(u > 0.0)) return logarithm(u);
  return logarithm(u) - ((u - 1.0) - x) / u;
}

}  // namespace psinoise::PSINOISE_LEVEL
