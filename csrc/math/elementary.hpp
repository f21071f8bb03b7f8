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

// exp(hi + lo) 2^shift where |lo| is at most about ulp(hi) and |shift| <= 1100. Branch-free, so
// that loops vectorise.
inline double exp_shifted(double hi, double lo, std::int64_t shift) {
  // NaN fails the comparison and goes through; the limits lie beyond overflow and underflow. One
  // selection: of two GCC makes branches, and no vectors at the lower levels.
  const double x = __builtin_fabs(hi) > 1600.0 ? __builtin_copysign(1600.0, hi) : hi;
  const double round = 0x1.8p52;  // adding it rounds to an integer, to nearest even
  const double shifted = x * kInverseLog2 + round;
  const double k = shifted - round;
  const double r = ((x - k * kLog2Hi) - k * kLog2Lo) + lo;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
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
  const double value = 1.0 + (r + (r * r) * sum);
  // The low bits of the rounded sum hold k + 2^51. 2^(k + shift) is applied in two halves, since it
  // may lie outside the normal numbers; biased by 2046 the halves are the exponent fields
  // themselves.
  const std::int64_t integer =
      static_cast<std::int64_t>(bits_of(shifted) & 0xfffffffffffffu) - (std::int64_t{1} << 51);
  std::int64_t biased = integer + shift + 2046;
  biased = biased < 2 ? 2 : biased;
  biased = biased > 4090 ? 4090 : biased;
  const std::uint64_t field = static_cast<std::uint64_t>(biased);
  const std::uint64_t half = field >> 1;
  return (value * double_from(half << 52)) * double_from((field - half) << 52);
}

// exp(hi + lo) where |lo| is at most about ulp(hi).
inline double exp_sum(double hi, double lo) {
  return exp_shifted(hi, lo, 0);
}

inline double exponential(double x) {
  return exp_sum(x, 0.0);
}

// log(x 2^k) for a normal number x > 0. Branch-free, so that loops vectorise.
inline double log_scaled(double x, std::int64_t k) {
  const std::uint64_t bits = bits_of(x);
  // 0x...6a09e...: the mantissa is brought to [sqrt(1/2), sqrt(2)) by one integer subtraction.
  const std::uint64_t offset = bits - 0x3fe6a09e00000000u;
  k += static_cast<std::int64_t>(offset) >> 52;
  const double m = double_from(bits - (offset & 0xfff0000000000000u));
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double sum = 2.0 / 21.0;
  sum = sum * z + 2.0 / 19.0;
  sum = sum * z + 2.0 / 17.0;
  sum = sum * z + 2.0 / 15.0;
  sum = sum * z + 2.0 / 13.0;
  sum = sum * z + 2.0 / 11.0;
  sum = sum * z + 2.0 / 9.0;
  sum = sum * z + 2.0 / 7.0;
  sum = sum * z + 2.0 / 5.0;
  sum = sum * z + 2.0 / 3.0;
  // log m = f - f^2/2 + s (f^2/2 + z sum): fdlibm's arrangement, the leading term is exact.
  const double half_square = 0.5 * f * f;
  const double scale = static_cast<double>(k);
  return scale * kLog2Hi - ((half_square - (s * (half_square + z * sum) + scale * kLog2Lo)) - f);
}

inline double logarithm(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  if (x == __builtin_inf()) return x;
  return x < 0x1p-1022 ? log_scaled(x * 0x1p54, -54) : log_scaled(x, 0);
}

// log(x) for 0 < x < infinity, and a finite number below -700 for 0. Branch-free.
inline double log_of_normal_or_less(double x) {
  const bool small = x < 0x1p-1022;
  return log_scaled(small ? x * 0x1p54 : x, small ? -54 : 0);
}

inline double log_one_plus(double x) {
  const double u = 1.0 + x;
  if (!(u < __builtin_inf()) || !(u > 0.0)) return logarithm(u);
  return logarithm(u) - ((u - 1.0) - x) / u;
}

}  // namespace psinoise::PSINOISE_LEVEL
