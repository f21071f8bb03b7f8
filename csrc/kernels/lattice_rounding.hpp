// Values in cells of a lattice: rounded half up, exactly, in a time that does not depend on them.
//
// Computes: m = floor(x / g + 1/2) of the real numbers x and g, for any normal g; x is clipped
//   first, to bounds and to 2^61 cells.
// Float64 values: |x| < g/2 is 0. Else x and g are divided by a power of two so that 1 <= g < 2, by
//   their exponents; |x| is at most 2^61 g. In two steps, p = 31 and 0, a multiple n 2^p of g is
//   taken off, n x's nearest one or next to it, of at most 31 bits. What is left of the last step
//   decides by two comparisons with g/2.
//   Error: none. n is q = x / (2^p g) + (1/2 - 2^-20), of the sign of x, cut to an integer. Three
//   roundings move q by less than 2^-20 in any mode, as |q| <= 2^30 + 2^12. So n and x / (2^p g)
//   are at most 1/2 + 2^-19 apart, and |x| >= 2^p g/2 if n is not 0. Then r = x - n 2^p g is a
//   double, and computed as one: it is x if n = 0. For 2^p g/2 <= |x| < 2^p g and n = 1 it is one
//   by Sterbenz's lemma. For |x| >= 2^p g the last place u of 2^p g divides x and r, and |r| < 2^53
//   u. Without an instruction for x - n g: g = g1 + g2 + g3, g1 its upper 22 bits and g2 those of
//   the rest, so that n times each is a double. Let p = 0, and x and n be positive. x - n g1 is a
//   double by Sterbenz's lemma again; or for x >= 2^k, k >= 0, a multiple of 2^(k - 52) below
//   1 + 2^-17 + (2^(k + 1) + 1) 2^-21. Less n g2 it is a multiple of 2^-52 below 1 + 2^-10, or for
//   g/2 <= x < 1 one of 2^-53 from x - g to g - x, which is at most x.
// Integers: x / g is taken in floating point, which gives a first quotient q. The remainder r = x -
//   q g, in units of the last place of g, is an integer below 2^63 in size: it is computed modulo
//   2^64, without an error. A second quotient of r is at most 1 off; what is left decides.
//   Error: none. Let g = G u, G an integer, 2^52 <= G < 2^54. The relative errors of q are one of a
//   conversion and one of a division (below 2^-52 in any rounding mode), so that |q - x / g| < 2^10
//   for x <= 2^61 g; where q is cut to an integer it is below 2^52 and the two errors add up to
//   less than 1 + 2^-1. Hence |r| < 2^63 for G < 2^53. On a lattice with G >= 2^53 |q| < 2^10, no
//   error of conversion reaches 1, and |r| < 2 G <= 2^63. The second quotient is computed from the
//   upper 32 bits of r, to 2^-19, and rounded to within 1: |r'| < (1 + 2^-19) G, and the nearest
//   integer is at most 1 away.
// Side channels: integer instructions, and floating-point ones on normal numbers or 0. Subnormal
//   numbers become 0 by integer instructions, infinities and NaN a bound by the first comparisons.
// Half up: for x < 0 a tie goes towards 0.
// References: Sterbenz, Floating-Point Computation (1974), theorem 4.3.1.
#pragma once

#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

using Integer = std::int64_t;
using Integers = Vector<Integer>;
using Bits = Vector<std::uint64_t>;
using Doubles = Vector<double>;

inline constexpr std::size_t kWidth = kVectorSize<Integer>;
inline constexpr Integer kMostValue = Integer{1} << 61;
inline constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
inline constexpr Integer kMagnitude = 0x7fffffffffffffff;

// Within [low, high]; a number or a vector.
template <typename T, typename Limit>
inline T clamped(T x, Limit low, Limit high) {
  const T least = T{} + low;
  const T most = T{} + high;
  // In this order there is an instruction for each, where x are doubles.
  x = x > least ? x : least;
  return x < most ? x : most;
}

// The nearest integer to q + r / grid, half up, where r is a remainder of the first quotient q.
class Remainder {
 public:
  explicit Remainder(std::uint64_t grid)
      : grid_(static_cast<Integer>(grid)), inverse_(0x1p32 / static_cast<double>(grid)) {}

  Integers nearest(Integers q, Bits r) const {
    // The upper half of r as a double: 2^52 + 2^31 + r / 2^32 from its bits, less the constant.
    const Bits upper = ((r + (std::uint64_t{1} << 63)) >> 32) | 0x4330000000000000;
    const Doubles size = bit_cast<Doubles>(upper) - (0x1p52 + 0x1p31);
    const Doubles rounded = size * inverse_ + 0x1.8p52;
    const Integers more = bit_cast<Integers>(rounded) - bit_cast<Integer>(0x1.8p52);
    const Integers left = bit_cast<Integers>(r) - more * grid_;
    // A comparison that holds is -1.
    const Integers up = left >= (grid_ + 1) / 2;
    const Integers down = left < -(grid_ / 2);
    return q + more - up + down;
  }

 private:
  Integer grid_;
  double inverse_;
};

// Takes multiples of a unit off, n of them from each number.
class Multiples {
 public:
  explicit Multiples(double unit)
      : inverse_(Doubles{} + 1.0 / unit),
        unit_(Doubles{} + unit),
        parts_{Doubles{} + upper_bits(unit), Doubles{} + upper_bits(unit - upper_bits(unit)),
               unit_ - parts_[0] - parts_[1]} {}

  Integers take_from(Doubles& x) const {
    const Integers nearly_half = Integers{} + bit_cast<Integer>(0.5 - 0x1p-20);
    const Integers sign = bit_cast<Integers>(x) & ~kMagnitude;
    const Cut n = cut(x * inverse_ + bit_cast<Doubles>(sign | nearly_half));
#if defined(__AVX512F__)
    x = _mm512_fnmadd_pd(n.doubles, unit_, x);
#elif defined(__FMA__)
    x = _mm256_fnmadd_pd(n.doubles, unit_, x);
#else
    x = ((x - n.doubles * parts_[0]) - n.doubles * parts_[1]) - n.doubles * parts_[2];
#endif
    return n.integers;
  }

 private:
  static double upper_bits(double x) {
    return bit_cast<double>(bit_cast<Integer>(x) & ~((Integer{1} << 31) - 1));
  }

  // Vectors, so that nothing of them is made again in a loop.
  Doubles inverse_;
  Doubles unit_;
  Doubles parts_[3];  // where products are not fused: the unit in parts whose products are exact
};

// Of float64 values. NaN is taken to the lower bound.
class FloatRounding {
 public:
  FloatRounding(double grid, double low, double high)
      : low_(Doubles{} + (low > -0x1p61 * grid ? low : -0x1p61 * grid)),
        high_(Doubles{} + (high < 0x1p61 * grid ? high : 0x1p61 * grid)),
        half_(Doubles{} + 0.5 * grid),
        exponent_((bit_cast<Integer>(grid) & ~kSignificand) - bit_cast<Integer>(1.0)),
        grid_(bit_cast<double>(bit_cast<Integer>(grid) - exponent_)),
        coarse_(0x1p31 * grid_),
        fine_(grid_) {}

  Integers operator()(Doubles x) const {
    x = without_subnormals(x);
    // NaN, which is not above it, becomes the lower bound.
    const Integers given = bit_cast<Integers>(clamped(x, low_, high_));
    const Integers there = bit_cast<Doubles>(given & kMagnitude) >= half_;

    // Unsigned: of values below half a cell, which become 0, the difference may wrap.
    const Bits scaled = bit_cast<Bits>(given) - static_cast<std::uint64_t>(exponent_);
    Doubles left = bit_cast<Doubles>(scaled & bit_cast<Bits>(there));
    Integers cells = coarse_.take_from(left) << 31;
    cells += fine_.take_from(left);
    // A comparison that holds is -1.
    const double half = 0.5 * grid_;
    return cells - bit_cast<Integers>(left >= half) + bit_cast<Integers>(left < -half);
  }

 private:
  static constexpr Integer kSignificand = static_cast<Integer>(kFraction);

  Doubles low_;
  Doubles high_;
  Doubles half_;
  Integer exponent_;
  double grid_;
  Multiples coarse_;
  Multiples fine_;
};

// Of integers within 2^62, on a lattice from 2^-61 to 2^62.
class IntegerRounding {
 public:
  IntegerRounding(double grid, Integer low, Integer high)
      : grid_(grid), integer_(integer(grid)), unit_(unit(grid)), remainder_(integer_) {
    const Integer most = grid >= 2.0 ? 2 * kMostValue : static_cast<Integer>(0x1p61 * grid);
    low_ = low < -most ? -most : low;
    high_ = high > most ? most : high;
  }

  Integers operator()(Integers x) const {
    x = clamped(x, low_, high_);
    const Doubles ratio = __builtin_convertvector(x, Doubles) / grid_;
    const Integers q = __builtin_convertvector(ratio, Integers);
    const Bits r = bit_cast<Bits>(x) * unit_ - bit_cast<Bits>(q) * integer_;
    return remainder_.nearest(q, r);
  }

 private:
  // g = integer / unit, and unit modulo 2^64.
  static int scale(double grid) {
    const int exponent = static_cast<int>(bit_cast<std::uint64_t>(grid) >> 52) - 1023;
    return exponent < 52 ? 52 - exponent : 0;
  }
  static std::uint64_t integer(double grid) {
    const int exponent = static_cast<int>(bit_cast<std::uint64_t>(grid) >> 52) - 1023;
    const std::uint64_t digits = (bit_cast<std::uint64_t>(grid) & kFraction) | (kFraction + 1);
    return exponent > 52 ? digits << (exponent - 52) : digits;
  }
  static std::uint64_t unit(double grid) {
    return scale(grid) < 64 ? std::uint64_t{1} << scale(grid) : 0;
  }

  double grid_;
  std::uint64_t integer_;
  std::uint64_t unit_;
  Integer low_;
  Integer high_;
  Remainder remainder_;
};

}  // namespace psinoise::PSINOISE_LEVEL
