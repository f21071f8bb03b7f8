// Composition of privacy losses on a lattice: spectra, their powers, and back.
//
// Computes: the real transform of a measure on N points raised to an integer power and multiplied
//   into a product of spectra; the inverse transform of the product.
// Method: a real transform of N points is a complex one of N/2; powers by repeated squaring.
// Error: relative 2-norm error of one forward transform at most 6 u log2(N) (math/fft.hpp); the
//   accounting adds (n + 1) times that for n-fold composition
//   (psinoise/accounting/compose/spectra.py).
// Layout: a spectrum is N/2 + 1 complex numbers, interleaved, as scipy.fft.rfft returns it.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "math/fft.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

struct Complex {
  double re;
  double im;
};

inline Complex times(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// `roots` holds size/2 cosines and then as many sines; `work` four arrays of size/2.
Twiddles twiddles_of(const double* roots, std::size_t size) {
  return {roots, roots + size / 2, size};
}

// (1 -+ i w) / 2 combinations that turn the transform of even + i odd samples into that of the
// real sequence, at frequency k.
inline Complex real_bin(const SplitComplex& z, std::size_t half, std::size_t k, Complex w) {
  const std::size_t a = k & (half - 1);  // modulo half, a power of two
  const std::size_t b = (half - k) & (half - 1);
  const Complex even = {0.5 * (z.re[a] + z.re[b]), 0.5 * (z.im[a] - z.im[b])};
  const Complex odd = {0.5 * (z.im[a] + z.im[b]), 0.5 * (z.re[b] - z.re[a])};
  const Complex turned = times(w, odd);
  return {even.re + turned.re, even.im + turned.im};
}

// Powers of a few numbers at once, so that the loop over bits is shared and its body vectorises.
inline constexpr std::size_t kTile = 16;

struct Tile {
  double re[kTile];
  double im[kTile];
};

inline void multiply(Tile& a, const Tile& b) {
  for (std::size_t j = 0; j < kTile; ++j) {
    const double re = a.re[j] * b.re[j] - a.im[j] * b.im[j];
    a.im[j] = a.re[j] * b.im[j] + a.im[j] * b.re[j];
    a.re[j] = re;
  }
}

inline void multiply_power(Tile& result, Tile base, std::uint64_t exponent) {
  for (;;) {
    if ((exponent & 1u) != 0) multiply(result, base);
    exponent >>= 1;
    if (exponent == 0) return;
    const Tile copy = base;
    multiply(base, copy);
  }
}

}  // namespace

void fft_roots(std::size_t size, double* roots) {
  for (std::size_t k = 0; k < size / 2; ++k) {
    unit_root(k, size, roots + k, roots + size / 2 + k);
  }
}

void compose_into(const double* roots, const double* masses, std::size_t size, std::uint64_t count,
                  double* product, double* work) {
  const std::size_t half = size / 2;
  const Twiddles twiddles = twiddles_of(roots, size);
  const SplitComplex x = {work, work + half};
  const SplitComplex scratch = {work + 2 * half, work + 3 * half};
  for (std::size_t k = 0; k < half; ++k) {
    x.re[k] = masses[2 * k];
    x.im[k] = masses[2 * k + 1];
  }
  const SplitComplex z = forward_transform(twiddles, half, x, scratch);
  for (std::size_t start = 0; start <= half; start += kTile) {
    const std::size_t width = half + 1 - start < kTile ? half + 1 - start : kTile;
    Tile result = {};
    Tile base = {};
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t k = start + j;
      // At k = half the root is -1.
      const Complex w = k < half ? Complex{twiddles.re[k], -twiddles.im[k]} : Complex{-1.0, 0.0};
      const Complex spectrum = real_bin(z, half, k, w);
      base.re[j] = spectrum.re;
      base.im[j] = spectrum.im;
      result.re[j] = product[2 * k];
      result.im[j] = product[2 * k + 1];
    }
    multiply_power(result, base, count);
    for (std::size_t j = 0; j < width; ++j) {
      product[2 * (start + j)] = result.re[j];
      product[2 * (start + j) + 1] = result.im[j];
    }
  }
}

void inverse_spectrum(const double* roots, const double* product, std::size_t size, double* masses,
                      double* work) {
  const std::size_t half = size / 2;
  const Twiddles twiddles = twiddles_of(roots, size);
  const SplitComplex x = {work, work + half};
  const SplitComplex scratch = {work + 2 * half, work + 3 * half};
  for (std::size_t k = 0; k < half; ++k) {
    const Complex a = {product[2 * k], product[2 * k + 1]};
    const Complex b = {product[2 * (half - k)], -product[2 * (half - k) + 1]};
    const Complex odd =
        times({0.5 * (a.re - b.re), 0.5 * (a.im - b.im)}, {twiddles.re[k], twiddles.im[k]});
    // even + i odd; real and imaginary parts change places, which makes the transform an inverse.
    x.re[k] = 0.5 * (a.im + b.im) + odd.re;
    x.im[k] = 0.5 * (a.re + b.re) - odd.im;
  }
  const SplitComplex z = forward_transform(twiddles, half, x, scratch);
  const double scale = 1.0 / static_cast<double>(half);
  for (std::size_t k = 0; k < half; ++k) {
    masses[2 * k] = z.im[k] * scale;
    masses[2 * k + 1] = z.re[k] * scale;
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
