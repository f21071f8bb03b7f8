// The symmetric stable laws of index alpha in (0, 2), alpha != 1, by Zolotarev's integral.
//
// Computes: one node of three positive or smooth integrands in s = log y + d, y = |x| / scale. With
//   theta = atan(e^s), eta = pi/2 - theta, e = alpha - 1, b = 2 - alpha,
//     q = sin(alpha theta) / sin(theta) = cos(e theta) + cot(theta) sin(e theta),
//     L = (alpha / e) (-d - log q) + log cos(e theta) - log cos(theta),  B = exp(L - e^L),
//     p(y)        = alpha / (pi |e| y) * integral of B sin(theta) cos(theta) ds,
//     P(Y > y)    = (1 / pi) * integral of B eta |dL/ds| ds,
//     1 + y p'/p  = the same integral as p with (1 - e^L) dL/ds|_d + cos(2 theta) as a factor,
//   divided by that of p. The trapezoidal rule converges geometrically: the integrands are analytic
//   near the real line and vanish at its ends (psinoise/noise/_stable_integral.py has the steps).
// Regions: none. Measuring s from log y removes the cancellation as alpha -> 1; log1p and, for
//   theta > pi/4 and alpha > 3/2, cos(e theta) = sin(pi b/2 + e eta) remove that as alpha -> 2.
// Error: sums to 2e-15 relative for 2^-60 < y < 30, alpha in [0.1, 2) (tests/test_stable_*.py).
// Edge values: |s| stays below 600.
// Origin of constants: Taylor coefficients of sin and arctan.
// References: V. M. Zolotarev, One-dimensional stable distributions (1986), theorem 2.2.3;
//   J. P. Nolan, Stochastic Models 13 (1997); by parts and in the logarithm of tan(theta): here.
#pragma once

#include "base/level.hpp"
#include "math/double_double.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {

struct StableIndex {
  double alpha;
  double above_one;  // alpha - 1
  double below_two;  // 2 - alpha
};

struct StableTerms {
  double density;
  double survival;
  double slope;
};

inline constexpr double kQuarterTurn = 0x1.921fb54442d18p+0;
// exp(exp(6.6)) overflows nothing and exp(-exp(6.6)) is 0 beside any sum.
inline constexpr double kLargestExponent = 6.6;

// sin x for |x| <= pi / 4; relative error 2e-16.
inline double sine(double x) {
  const double square = x * x;
  double sum = 1.0 / 355687428096000.0;
  sum = sum * square + -1.0 / 1307674368000.0;
  sum = sum * square + 1.0 / 6227020800.0;
  sum = sum * square + -1.0 / 39916800.0;
  sum = sum * square + 1.0 / 362880.0;
  sum = sum * square + -1.0 / 5040.0;
  sum = sum * square + 1.0 / 120.0;
  sum = sum * square + -1.0 / 6.0;
  return x + x * (square * sum);
}

// arctan x for 0 <= x <= 1 by halving the angle twice; relative error 5e-16.
inline double arctangent(double x) {
  const double half = x / (1.0 + __builtin_sqrt(1.0 + x * x));
  const double t = half / (1.0 + __builtin_sqrt(1.0 + half * half));
  const double square = t * t;
  double sum = -1.0 / 23.0;
  sum = sum * square + 1.0 / 21.0;
  sum = sum * square + -1.0 / 19.0;
  sum = sum * square + 1.0 / 17.0;
  sum = sum * square + -1.0 / 15.0;
  sum = sum * square + 1.0 / 13.0;
  sum = sum * square + -1.0 / 11.0;
  sum = sum * square + 1.0 / 9.0;
  sum = sum * square + -1.0 / 7.0;
  sum = sum * square + 1.0 / 5.0;
  sum = sum * square + -1.0 / 3.0;
  return 4.0 * (t + t * (square * sum));
}

// log q where q - 1 = cotangent * sine_part - 2 half^2 may be tiny.
inline double log_factor(double cotangent, double sine_part, double half, double q) {
  const double excess = cotangent * sine_part - 2.0 * half * half;
  const bool near = __builtin_fabs(excess) < 0.5;
  const double w = near ? 1.0 + excess : q;
  const double rest = ((w - 1.0) - excess) / w;
  return log_scaled(w, 0.0) - (near ? rest : 0.0);
}

// The integrands at s = log y + d. Selections instead of branches, so that loops vectorise.
inline StableTerms stable_terms(StableIndex index, DoubleDouble log_y, double d) {
  const auto [alpha, above_one, below_two] = index;
  const DoubleDouble sum = two_sum(log_y.hi, d);
  const double s = sum.hi;
  const double s_lo = sum.lo + log_y.lo;
  const bool upper = s > 0.0;
  const double ratio = exp_sum(upper ? -s : s, upper ? -s_lo : s_lo);
  const double root = __builtin_sqrt(1.0 + ratio * ratio);
  const double angle = arctangent(ratio);
  const double theta = upper ? kQuarterTurn - angle : angle;
  const double eta = upper ? angle : kQuarterTurn - angle;
  const double sin_theta = (upper ? 1.0 : ratio) / root;
  const double cos_theta = (upper ? ratio : 1.0) / root;
  const double inverse = 1.0 / ratio;
  const double cotangent = upper ? ratio : inverse;

  const double half = sine(0.5 * above_one * theta);
  const double sine_part = 2.0 * half * __builtin_sqrt(1.0 - half * half);
  const double through_theta = 1.0 - 2.0 * half * half;
  const double opposite = sine(0.5 * (kQuarterTurn * below_two + above_one * eta));
  const double through_eta = 2.0 * opposite * __builtin_sqrt(1.0 - opposite * opposite);
  const double cosine_part = upper && above_one > 0.5 ? through_eta : through_theta;
  const double q = cosine_part + cotangent * sine_part;
  const double ratio_log = log_factor(cotangent, sine_part, half, q);
  double exponent = (alpha / above_one) * (-d - ratio_log) +
                    (log_scaled(cosine_part * root, 0.0) + (upper ? s : 0.0));
  exponent = exponent < kLargestExponent ? exponent : kLargestExponent;
  const double g = exp_sum(exponent, 0.0);
  const DoubleDouble difference = two_sum(exponent, -g);
  const double weight = exp_sum(difference.hi, difference.lo);

  const double turned = cos_theta * cosine_part - sin_theta * sine_part;
  const double along = alpha * (cos_theta / q) * (sine_part / (above_one * sin_theta) - turned) +
                       sin_theta * (sin_theta - above_one * (sine_part / cosine_part) * cos_theta);
  const double measure = sin_theta * cos_theta;
  const double turning = (cos_theta - sin_theta) * (cos_theta + sin_theta);
  return {weight * measure, weight * (eta * __builtin_fabs(along - alpha / above_one)),
          weight * (measure * ((1.0 - g) * along + turning))};
}

}  // namespace psinoise::PSINOISE_LEVEL
