// Fast Fourier transform of a length n, a power of two or three times one, with twiddle factors
// right to 3 u, u = 2^-53, or to 4 u.
//
// Computes: z_k = sum_j x_j exp(-2 pi i j k / n). An inverse swaps real and imaginary parts.
// Method: with n = M V, j = m V + v and k = k1 + M k2, transforms over m for eight v side by side,
//   twiddles, and transforms over v for eight k1 side by side, each by Stockham's passes of radix 4
//   (the first one of radix 3 of three times a power of two, the last one of radix 2 if the
//   exponent is odd). Both fit in the second-level cache, so that memory is gone through twice
//   whatever the length. Short transforms are one series of passes.
// Error: relative 2-norm error of a power of two at most (3.65 log2(n) + 5.3) u, without terms of
//   u^2. A pass is a multiple of a unitary map, so that relative errors add: u for each of its
//   levels of additions, and for twiddles their 3 u and sqrt(5) u of a complex product (Brent,
//   Percival, Zimmermann, 2007). A radix-4 pass has 7.3 u and a last one 2 u, one of radix 2 has u,
//   the twiddles between, products of two, 10.5 u. Measured 20 times less. Of the sum of all |x_j|
//   every z_k is right to as much: it is a sum in which each comes once, with factors of size 1 and
//   the same errors. Twiddles of 4 u make that 4.12 log2(n) + 6.3 with 12.5 u for those between; a
//   radix-3 pass has 11.8 u (of a term in two parts, of 1/2 and sqrt(3)/2, four roundings each; and
//   a twiddle), 5.3 u more than as many levels of others: 4.12 log2(n) + 11.6.
// Why our own: certified bounds need a transform whose rounding is known.
// Edge values: length 1 is the identity; infinities and NaN spread.
#pragma once

#include <cstddef>

#include "base/level.hpp"
#include "base/vector.hpp"
#include "kernels/tables.hpp"

namespace psinoise::PSINOISE_LEVEL {

template <typename T>
struct Complex {
  T re;
  T im;
};

template <typename T>
inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}

template <typename T>
inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}

// One of them may be a number for all elements of the other.
template <typename S, typename T>
inline Complex<T> operator*(Complex<S> w, Complex<T> a) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}

template <typename T>
inline T load(const double* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
inline void store(double* to, T value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

template <typename T>
struct SplitComplex {
  double* re;
  double* im;

  Complex<T> operator()(std::size_t i) const { return {load<T>(re + i), load<T>(im + i)}; }
  void operator()(std::size_t i, Complex<T> z) const {
    store(re + i, z.re);
    store(im + i, z.im);
  }
};

// exp(-2 pi i k / n), from arguments in [0, pi/4], where libm is right to an ulp.
inline Complex<double> unit_root(std::size_t k, std::size_t n) {
  const double quarter_turn = 1.5707963267948966;
  const std::size_t scaled = 8 * (k % n);  // in units of 1/(8 n) turns
  const std::size_t octant = scaled / n;
  const std::size_t rest = octant % 2 == 0 ? scaled - octant * n : (octant + 1) * n - scaled;
  // rest / (8 n) turns: at most pi/4; the division is exact if n is a power of two.
  const double angle = quarter_turn * (static_cast<double>(rest) / (2.0 * static_cast<double>(n)));
  const double c = __builtin_cos(angle);
  const double s = __builtin_sin(angle);
  const bool swap = octant % 4 == 1 || octant % 4 == 2;
  const double x = swap ? s : c;
  const double y = swap ? c : s;
  return {octant >= 2 && octant <= 5 ? -x : x, octant >= 4 ? y : -y};
}

// One radix-4 pass: from [4][quarter][stride] to [quarter][4][stride]; roots[step k] is
// exp(-2 pi i k / (4 quarter)).
template <typename T, typename From, typename To>
inline void radix4_pass(const Complex<double>* roots, std::size_t step, std::size_t quarter,
                        std::size_t stride, const From& from, const To& to) {
  const std::size_t block = quarter * stride;
  for (std::size_t p = 0; p < quarter; ++p) {
    const Complex<double> w1 = roots[step * p];
    const Complex<double> w2 = roots[2 * step * p];
    const Complex<double> w3 = roots[3 * step * p];
    for (std::size_t q = 0; q < stride; q += sizeof(T) / sizeof(double)) {
      const std::size_t i = p * stride + q;
      const Complex<T> a = from(i);
      const Complex<T> b = from(i + block);
      const Complex<T> c = from(i + 2 * block);
      const Complex<T> d = from(i + 3 * block);
      const Complex<T> even = a + c;
      const Complex<T> odd = b + d;
      const Complex<T> left = a - c;
      const Complex<T> right = b - d;
      const std::size_t j = 4 * p * stride + q;
      to(j, even + odd);
      to(j + stride, w1 * Complex<T>{left.re + right.im, left.im - right.re});
      to(j + 2 * stride, w2 * (even - odd));
      to(j + 3 * stride, w3 * Complex<T>{left.re - right.im, left.im + right.re});
    }
  }
}

// One radix-3 pass: from [3][third][stride] to [third][3][stride]; roots[step k] is
// exp(-2 pi i k / (3 third)).
template <typename T, typename From, typename To>
inline void radix3_pass(const Complex<double>* roots, std::size_t step, std::size_t third,
                        std::size_t stride, const From& from, const To& to) {
  constexpr double kHalfRoot = 0.8660254037844386;  // sqrt(3) / 2
  const std::size_t block = third * stride;
  for (std::size_t p = 0; p < third; ++p) {
    const Complex<double> w1 = roots[step * p];
    const Complex<double> w2 = roots[2 * step * p];
    for (std::size_t q = 0; q < stride; q += sizeof(T) / sizeof(double)) {
      const std::size_t i = p * stride + q;
      const Complex<T> a = from(i);
      const Complex<T> b = from(i + block);
      const Complex<T> c = from(i + 2 * block);
      const Complex<T> both = b + c;
      const Complex<T> left = {a.re - 0.5 * both.re, a.im - 0.5 * both.im};
      const Complex<T> right = {kHalfRoot * (b.re - c.re), kHalfRoot * (b.im - c.im)};
      const std::size_t j = 3 * p * stride + q;
      to(j, a + both);
      to(j + stride, w1 * Complex<T>{left.re + right.im, left.im - right.re});
      to(j + 2 * stride, w2 * Complex<T>{left.re - right.im, left.im + right.re});
    }
  }
}

// The last pass where log2 of the length is odd: no twiddles are left.
template <typename T, typename From, typename To>
inline void radix2_pass(std::size_t stride, const From& from, const To& to) {
  for (std::size_t q = 0; q < stride; q += sizeof(T) / sizeof(double)) {
    const Complex<T> a = from(q);
    const Complex<T> b = from(q + stride);
    to(q, a + b);
    to(q + stride, a - b);
  }
}

// Transforms of `length` rows, at least 2 and not 3, of `width` numbers each; roots[step k] is
// exp(-2 pi i k / length).
template <typename T, typename From, typename To>
inline void stockham(const Complex<double>* roots, std::size_t step, std::size_t length,
                     std::size_t width, const From& from, SplitComplex<T> here,
                     SplitComplex<T> there, const To& to) {
  if (length == 2) return radix2_pass<T>(width, from, to);
  if (length == 4) return radix4_pass<T>(roots, step, 1, width, from, to);
  std::size_t radix = length % 3 == 0 ? 3 : 4;
  if (radix == 3) {
    radix3_pass<T>(roots, step, length / 3, width, from, here);
  } else {
    radix4_pass<T>(roots, step, length / 4, width, from, here);
  }
  for (;; radix = 4) {
    length /= radix;
    step *= radix;
    width *= radix;
    if (length == 2) return radix2_pass<T>(width, here, to);
    if (length == 4) return radix4_pass<T>(roots, step, 1, width, here, to);
    radix4_pass<T>(roots, step, length / 4, width, here, there);
    const SplitComplex<T> other = there;
    there = here;
    here = other;
  }
}

// The parts of a table of roots and of the room to work in; see FftShape in kernels/tables.hpp.
struct FftTables {
  const Complex<double>* rows;   // [M]: exp(-2 pi i k / M)
  const Complex<double>* tiles;  // [V / 8][M]: exp(-2 pi i 8 v k1 / n)
  const double* near_re;         // [M][8]: exp(-2 pi i v k1 / n)
  const double* near_im;
};

// The transform of from(0), ..., from(n - 1), a vector at a time: number M r + q of it is given to
// to(pitch r + q, .).
template <typename From, typename To>
inline void long_transform(const FftShape& shape, const FftTables& tables, const From& from,
                           double* work, std::size_t pitch, const To& to) {
  typedef Vector<double> T;
  constexpr std::size_t kLanes = kVectorSize<double>;
  const std::size_t m = shape.rows;
  const std::size_t v = shape.columns;
  // A cache line between arrays: powers of two apart, they would all be in the same sets.
  const std::size_t apart = 8 * m + 8;
  const SplitComplex<T> here = {work, work + apart};
  const SplitComplex<T> there = {work + 2 * apart, work + 3 * apart};
  const SplitComplex<T> found = {work + 4 * apart, work + 5 * apart};
  const SplitComplex<T> between = {work + 6 * apart, work + 6 * apart + shape.length + 8};
  for (std::size_t first = 0; first < v; first += 8) {
    const auto column = [&](std::size_t i) { return from(i / 8 * v + first + i % 8); };
    stockham<T>(tables.rows, 1, m, 8, column, here, there, found);
    const Complex<double>* far = tables.tiles + first / 8 * m;
    for (std::size_t k = 0; k < m; k += 8) {
      // Eight columns of eight frequencies become eight rows of them.
      for (std::size_t lane = 0; lane < 8; lane += kLanes) {
        T re[8];
        T im[8];
        for (std::size_t r = 0; r < 8; ++r) {
          const std::size_t i = 8 * (k + r) + lane;
          const Complex<T> near = {load<T>(tables.near_re + i), load<T>(tables.near_im + i)};
          const Complex<T> turned = (far[k + r] * near) * found(i);
          re[r] = turned.re;
          im[r] = turned.im;
        }
        const std::size_t at = k * v + 8 * (first + lane);
        for (std::size_t part = 0; part < 8; part += kLanes) {
          transpose(re + part);
          transpose(im + part);
          for (std::size_t r = 0; r < kLanes; ++r) {
            between(at + 8 * r + part, {re[part + r], im[part + r]});
          }
        }
      }
    }
  }
  for (std::size_t k = 0; k < m; k += 8) {
    const SplitComplex<T> row = {between.re + k * v, between.im + k * v};
    const auto frequency = [&](std::size_t i, Complex<T> z) { to(i / 8 * pitch + k + i % 8, z); };
    stockham<T>(tables.rows, m / v, v, 8, row, here, there, frequency);
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
