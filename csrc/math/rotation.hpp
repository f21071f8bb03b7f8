// A turn of the complex plane by an angle, less one.
//
// Computes: exp(i theta) - 1 = -2 sin^2(theta/2) + 2 i sin(theta/2) cos(theta/2).
// Regions: theta/2 = k pi + r with |r| <= pi/2, k pi in three parts whose products with k are exact
//   for |k| < 2^20; Taylor sums to degree 21 and 22 (first omitted terms 2e-18 r and 1e-19).
// Error: 4 units of 2^-53 of the modulus, relative for tiny angles as well.
// Edge values: beyond kLargestAngle nothing is promised.
// Constants: pi as fdlibm splits it; 1/n!.
#pragma once

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

struct Rotation {
  double re;
  double im;
};

inline constexpr double kLargestAngle = 0x1p21;

// Without a branch, so that loops vectorise.
inline Rotation rotation(double theta) {
  const double half = 0.5 * theta;
  const double round = 0x1.8p52;  // adding it rounds to an integer
  const double k = (half * 0x1.45f306dc9c883p-2 + round) - round;
  const double r =
      ((half - k * 0x1.921fb544p+1) - k * 0x1.0b4611a6p-33) - k * 0x1.3198a2e037073p-68;
  const double z = r * r;
  double sine = 1.0 / 51090942171709440000.0;
  sine = sine * z - 1.0 / 121645100408832000.0;
  sine = sine * z + 1.0 / 355687428096000.0;
  sine = sine * z - 1.0 / 1307674368000.0;
  sine = sine * z + 1.0 / 6227020800.0;
  sine = sine * z - 1.0 / 39916800.0;
  sine = sine * z + 1.0 / 362880.0;
  sine = sine * z - 1.0 / 5040.0;
  sine = sine * z + 1.0 / 120.0;
  sine = sine * z - 1.0 / 6.0;
  sine = r + (r * z) * sine;
  double cosine = -1.0 / 1124000727777607680000.0;
  cosine = cosine * z + 1.0 / 2432902008176640000.0;
  cosine = cosine * z - 1.0 / 6402373705728000.0;
  cosine = cosine * z + 1.0 / 20922789888000.0;
  cosine = cosine * z - 1.0 / 87178291200.0;
  cosine = cosine * z + 1.0 / 479001600.0;
  cosine = cosine * z - 1.0 / 3628800.0;
  cosine = cosine * z + 1.0 / 40320.0;
  cosine = cosine * z - 1.0 / 720.0;
  cosine = cosine * z + 1.0 / 24.0;
  cosine = 1.0 + z * (cosine * z - 0.5);
  return {-2.0 * sine * sine, 2.0 * sine * cosine};
}

}  // namespace psinoise::PSINOISE_LEVEL
