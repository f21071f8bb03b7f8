// Double-double arithmetic: an unevaluated sum hi + lo with |lo| <= ulp(hi) / 2.
//
// Computes: exact sums and products of doubles, and products of pairs.
// Error: two_sum and two_product are exact barring underflow of the low part; the pair operations
//   are correct to a few units of 2^-104.
// No FMA is used although some levels have one: the order of operations is the same at every level
//   and in the NumPy twin, so the results are the same bits everywhere.
// Edge values: an infinite or huge (> 2^970) operand makes the low part NaN; callers guard.
// References: T. J. Dekker (1971); D. E. Knuth, TAOCP 2, section 4.2.2.
#pragma once

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

// Of a number, or of each of a vector.
template <typename Real>
struct PairOf {
  Real hi;
  Real lo;
};

using DoubleDouble = PairOf<double>;

template <typename Real>
inline PairOf<Real> two_sum(Real a, Real b) {
  const Real sum = a + b;
  const Real part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// Requires |a| >= |b| or a == 0.
inline DoubleDouble quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

inline DoubleDouble split(double a) {
  const double scaled = 134217729.0 * a;  // 2^27 + 1: halves of at most 26 bits
  const double hi = scaled - (scaled - a);
  return {hi, a - hi};
}

inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  const DoubleDouble x = split(a);
  const DoubleDouble y = split(b);
  return {product, ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

inline DoubleDouble multiply(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble p = two_product(a.hi, b.hi);
  return quick_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

inline DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble s = two_sum(a.hi, b.hi);
  return quick_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

// a / b for doubles, given 1 / b: hi is within an ulp or two of the quotient, and lo, from the
// exact remainder, makes up for it. Two multiplications instead of two divisions.
inline DoubleDouble quotient(double a, double b, double inverse) {
  const double hi = a * inverse;
  const DoubleDouble p = two_product(hi, b);
  return {hi, ((a - p.hi) - p.lo) * inverse};
}

}  // namespace psinoise::PSINOISE_LEVEL
