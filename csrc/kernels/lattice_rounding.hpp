// Values in cells of a lattice: rounded half up, exactly, in a time that does not depend on them.
//
// Computes: m = floor(x / g + 1/2) of the real numbers x and g, for any normal g; x is clipped
//   first, to bounds and to 2^61 cells.
// Method: x / g is taken in floating point, from the mantissas alone, which gives a first quotient
//   q. The remainder r = x - q g, in units of the last place of both, is an integer below 2^63 in
//   size: it is computed modulo 2^64, without an error. A second quotient of r is at most 1 off;
//   what is left decides by comparisons of integers.
// Error: none. Let x = M 2^s u and g = G u, M and G integers, 2^52 <= G < 2^54. The relative errors
//   of q are one of a division (below 2^-52 in any rounding mode) and, for integers, one of a
//   conversion, so that |q - x / g| < 2^10 for x <= 2^61 g; where q is cut to an integer it is
//   below 2^52 and the two errors add up to less than 1 + 2^-1. Hence |M 2^s - q G| < 2^63 for G <
//   2^53 with two errors, and for G < 2^54 with one. Integers on a lattice with G >= 2^53 have
//   |q| < 2^10, no error of conversion that reaches 1, and |r| < 2 G <= 2^63. The second quotient
//   is computed from the upper 32 bits of r, to 2^-19, and rounded to within 1: |r'| < (1 + 2^-19)
//   G, and the nearest integer is at most 1 away.
// Side channels: integer instructions, and floating-point ones on normal numbers from 1/2 to 2^63
//   or 0; no instruction sees a subnormal number, an infinity or NaN.
// Half up: for x < 0 a tie goes towards 0. Rounding works on |x| and takes the tie by the sign.
#pragma once

#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

using Integer = std::int64_t;
using Integers = Vector<Integer>;
using Bits = Vector<std::uint64_t>;
using Doubles = Vector<double>;

inline constexpr Integer kMostValue = Integer{1} << 61;
inline constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
inline constexpr Integer kMagnitude = 0x7fffffffffffffff;

// Within [low, high]; a number or a vector.
template <typename T, typename Limit>
inline T clamped(T x, Limit low, Limit high) {
  const T least = T{} + low;
  const T most = T{} + high;
  x = x < least ? least : x;
  return x > most ? most : x;
}

// The nearest integer to q + r / grid, where r is a remainder of the first quotient q. `tie` is -1
// where half a cell goes down, and 0 where it goes up.
class Remainder {
 public:
  explicit Remainder(std::uint64_t grid)
      : grid_(static_cast<Integer>(grid)), inverse_(0x1p32 / static_cast<double>(grid)) {}

  Integers nearest(Integers q, Bits r, Integers tie) const {
    // The upper half of r as a double: 2^52 + 2^31 + r / 2^32 from its bits, less the constant.
    const Bits upper = ((r + (std::uint64_t{1} << 63)) >> 32) | 0x4330000000000000;
    const Doubles size = bit_cast<Doubles>(upper) - (0x1p52 + 0x1p31);
    const Doubles rounded = size * inverse_ + 0x1.8p52;
    const Integers more = bit_cast<Integers>(rounded) - bit_cast<Integer>(0x1.8p52);
    const Integers left = bit_cast<Integers>(r) - more * grid_;
    // A comparison that holds is -1.
    const Integers up = left + tie >= (grid_ + 1) / 2;
    const Integers down = left + tie < -(grid_ / 2);
    return q + more - up + down;
  }

 private:
  Integer grid_;
  double inverse_;
};

// Of float64 values. NaN is taken to the lower bound.
class FloatRounding {
 public:
  FloatRounding(double grid, double low, double high)
      : low_(ordered(low > -0x1p61 * grid ? low : -0x1p61 * grid)),
        high_(ordered(high < 0x1p61 * grid ? high : 0x1p61 * grid)),
        half_(bit_cast<Integer>(0.5 * grid)),
        exponent_(bit_cast<Integer>(grid) >> 52),
        mantissa_(mantissa(grid)),
        remainder_(2 * integer(grid)) {}

  Integers operator()(Doubles x) const {
    const Integers bits = bit_cast<Integers>(x);
    const Integers order = bits ^ ((bits >> 63) & kMagnitude);
    const Integers none = (bits & kMagnitude) > bit_cast<Integer>(__builtin_inf());
    const Integers within = clamped(none ? Integers{} + low_ : order, low_, high_);
    const Integers sign = within >> 63;
    const Integers given = (within ^ (sign & kMagnitude)) & kMagnitude;
    // Less than half a cell is 0; what else it may be does not matter.
    const Integers there = given >= half_;
    const Integers size = given < half_ ? Integers{} + half_ : given;

    const Bits fraction = bit_cast<Bits>(size) & kFraction;
    const Doubles ratio = bit_cast<Doubles>(fraction | bit_cast<std::uint64_t>(1.0)) / mantissa_;
    const Integers apart = (size >> 52) - exponent_;
    const Integers shift = apart + (bit_cast<Integers>(ratio) >> 52) - (1023 + 52);
    const Bits digits = (bit_cast<Bits>(ratio) & kFraction) | (kFraction + 1);
    const Bits left = bit_cast<Bits>(shift > 0 ? shift : Integers{});
    const Bits right = bit_cast<Bits>(shift < 0 ? -shift : Integers{});
    const Bits q = (digits << left) >> right;
    const Bits r = ((fraction | (kFraction + 1)) << bit_cast<Bits>(apart + 1)) - q * grid();
    const Integers cells = remainder_.nearest(bit_cast<Integers>(q), r, sign);
    return ((cells ^ sign) - sign) & there;
  }

 private:
  // Doubles as integers in the same order.
  static Integer ordered(double x) {
    const Integer bits = bit_cast<Integer>(x);
    return bits ^ ((bits >> 63) & kMagnitude);
  }
  static double mantissa(double x) {
    return bit_cast<double>((bit_cast<std::uint64_t>(x) & kFraction) |
                            bit_cast<std::uint64_t>(1.0));
  }
  static std::uint64_t integer(double x) {
    return (bit_cast<std::uint64_t>(x) & kFraction) | (kFraction + 1);
  }
  std::uint64_t grid() const { return 2 * integer(mantissa_); }

  Integer low_;
  Integer high_;
  Integer half_;
  Integer exponent_;
  double mantissa_;
  Remainder remainder_;
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
    return remainder_.nearest(q, r, Integers{});
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
