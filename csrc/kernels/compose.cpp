// Composition of privacy losses on a lattice: spectra, their powers, and back.
//
// Computes: the real transform of a measure on N points raised to an integer power and multiplied
//   into a product of spectra; the inverse transform of the product.
// Method: a real transform of N points is a complex one of N/2; powers by repeated squaring. What
//   the next columns need is called for while these are transformed: they are far apart in memory.
// Error: relative 2-norm error of one forward transform at most 6 u log2(N): that of the complex
//   one, (3.65 log2(N) + 1.7) u (math/fft.hpp), and 7.3 u for what makes it real, which is less
//   from N = 16 on; below, transforms are one or two passes of 2 u. The accounting adds (n + 1)
//   times that for n-fold composition (psinoise/accounting/compose/frequencies/spectra.py).
//   In either direction each result is right to (5.9 log2(N) + 21) u of the sum S of the sizes of
//   what is added up, of frequencies of both signs: the complex transform has sqrt(2) times its
//   error, as sqrt(2) S is at most what it adds up, or what its results are weighted by
//   (|1 + i w| + |1 - i w| <= 2 sqrt(2) where |w| = 1); making it real, or complex, has 10.3 u, as
//   sums have u each and a product 6.3 u.
// Layout: a spectrum is N/2 + 1 complex numbers, interleaved, as scipy.fft.rfft returns it.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "math/fft.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

typedef Complex<double> Root;

// Rows of a transform are a cache line longer: powers of two apart, what is written to them
// together would be in the same sets of the caches.
inline constexpr std::size_t kRowEnd = 8;

// The table of roots: those of the real transform, real and imaginary parts apart, and then those
// of the complex one (FftTables).
struct Roots {
  const double* re;  // [length]: exp(-2 pi i k / size)
  const double* im;
  FftTables complex;
};

Roots roots_of(const FftShape& shape, const double* roots) {
  const double* near = roots + 2 * shape.length;
  const double* rows = near + 16 * shape.rows;
  const double* tiles = rows + 2 * shape.rows;
  return {roots,
          roots + shape.length,
          {reinterpret_cast<const Root*>(rows), reinterpret_cast<const Root*>(tiles), near,
           near + 8 * shape.rows}};
}

// Complex numbers, interleaved, in a vector each for real and imaginary parts, and in reverse.
template <typename T>
Complex<T> load_pairs(const double* from) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return {from[0], from[1]};
  } else {
    Complex<T> z = {load<T>(from), load<T>(from + kVectorSize<double>)};
    unzip(z.re, z.im);
    return z;
  }
}

template <typename T>
void store_pairs(double* to, Complex<T> z) {
  if constexpr (sizeof(T) > sizeof(double)) zip(z.re, z.im);
  store(to, z.re);
  store(to + sizeof(T) / sizeof(double), z.im);
}

template <typename T>
Complex<T> reversed(Complex<T> z) {
  if constexpr (sizeof(T) == sizeof(double))
    return z;
  else
    return {reverse(z.re), reverse(z.im)};
}

template <typename T>
Complex<T> conjugate(Complex<T> z) {
  return {z.re, -z.im};
}

template <typename T>
void multiply_power(Complex<T> results[2], Complex<T> a, Complex<T> b, std::uint64_t exponent) {
  for (;;) {
    if ((exponent & 1u) != 0) {
      results[0] = results[0] * a;
      results[1] = results[1] * b;
    }
    exponent >>= 1;
    if (exponent == 0) return;
    a = a * a;
    b = b * b;
  }
}

// From the transform z of even + i odd samples to the spectrum of the sequence, at frequencies k
// and n - k together. Rows of z have their ends in common with the next one, the last one with the
// first: a copy of a number each.
template <typename T>
void multiply_spectrum(const FftShape& shape, const Roots& roots, SplitComplex<T> z,
                       std::uint64_t count, double* product) {
  constexpr std::size_t kLanes = sizeof(T) / sizeof(double);
  const std::size_t n = shape.length;
  const std::size_t pitch = shape.rows + kRowEnd;
  const std::size_t last = shape.columns - 1;
  for (std::size_t row = 0; row <= last; ++row) {
    z.re[row * pitch + shape.rows] = z.re[row < last ? (row + 1) * pitch : 0];
    z.im[row * pitch + shape.rows] = z.im[row < last ? (row + 1) * pitch : 0];
  }
  std::size_t row = 0;
  for (std::size_t k = 0; k == 0 || k < n / 2; k += kLanes) {
    if (k == (row + 1) * shape.rows) ++row;
    const std::size_t mirror = n - k - (kLanes - 1);
    const Complex<T> a = z(k + row * kRowEnd);
    const Complex<T> b = conjugate(reversed(z(mirror + (last - row) * kRowEnd)));
    const Complex<T> even = {0.5 * (a.re + b.re), 0.5 * (a.im + b.im)};
    const Complex<T> odd = {0.5 * (a.im - b.im), 0.5 * (b.re - a.re)};
    const Complex<T> turned = Complex<T>{load<T>(roots.re + k), load<T>(roots.im + k)} * odd;
    Complex<T> both[2] = {load_pairs<T>(product + 2 * k),
                          reversed(load_pairs<T>(product + 2 * mirror))};
    multiply_power(both, even + turned, conjugate(even - turned), count);
    store_pairs(product + 2 * k, both[0]);
    store_pairs(product + 2 * mirror, reversed(both[1]));
  }
  if (n == 1) return;
  const std::size_t half = n / 2 + (shape.columns / 2) * kRowEnd;
  Root middle[2] = {{product[n], product[n + 1]}, {1.0, 0.0}};
  const Root value = {z.re[half], -z.im[half]};
  multiply_power(middle, value, value, count);
  product[n] = middle[0].re;
  product[n + 1] = middle[0].im;
}

// Element k of even + i odd, whose transform is the sequence of a spectrum; real and imaginary
// parts change places, which makes the transform an inverse.
template <typename T>
Complex<T> from_spectrum(const FftShape& shape, const Roots& roots, const double* product,
                         std::size_t k) {
  const std::size_t mirror = shape.length - k - (sizeof(T) / sizeof(double) - 1);
  const Complex<T> a = load_pairs<T>(product + 2 * k);
  const Complex<T> b = conjugate(reversed(load_pairs<T>(product + 2 * mirror)));
  const Complex<T> root = {load<T>(roots.re + k), -load<T>(roots.im + k)};
  const Complex<T> odd = root * (a - b);
  return {(a.im + b.im) + odd.re, (a.re + b.re) - odd.im};
}

}  // namespace

FftShape fft_shape(std::size_t size) {
  const std::size_t length = size / 2;
  // The second transforms are of a power of two, whose roots are among those of the first ones.
  const std::size_t even = length % 3 == 0 ? length / 3 : length;
  std::size_t columns = 8;
  while (columns * columns * 4 <= even) columns *= 2;
  const bool is_long = columns * columns <= even;
  columns = is_long ? columns : 1;
  const std::size_t rows = length / columns;
  return {length, rows, columns, 2 * length + 18 * rows + (is_long ? length / 4 : 0),
          4 * length + 48 * rows + 16 * columns + 64};
}

void fft_roots(const FftShape& shape, double* roots) {
  const std::size_t n = shape.length;
  double* re = roots;
  double* im = roots + n;
  for (std::size_t k = 0; k < n; ++k) {
    // The first octant says what is in the others.
    if (k <= n / 4) {
      const Root root = unit_root(k, 2 * n);
      re[k] = root.re;
      im[k] = root.im;
    } else if (k <= n / 2) {
      re[k] = -im[n / 2 - k];
      im[k] = -re[n / 2 - k];
    } else {
      re[k] = -re[n - k];
      im[k] = im[n - k];
    }
  }
  const auto root = [&](std::size_t k) -> Root {
    const std::size_t turn = k % (2 * n);
    return turn < n ? Root{re[turn], im[turn]} : Root{-re[turn - n], -im[turn - n]};
  };
  double* near = roots + 2 * n;
  double* rows = near + 16 * shape.rows;
  double* tiles = rows + 2 * shape.rows;
  const auto keep = [](double* to, std::size_t i, Root value) {
    to[2 * i] = value.re;
    to[2 * i + 1] = value.im;
  };
  for (std::size_t k = 0; k < shape.rows; ++k) {
    keep(rows, k, root(2 * shape.columns * k));
    for (std::size_t v = 0; v < 8; ++v) {
      near[8 * k + v] = root(2 * v * k).re;
      near[8 * (shape.rows + k) + v] = root(2 * v * k).im;
    }
    for (std::size_t v = 0; v + 8 <= shape.columns; v += 8) {
      keep(tiles, v / 8 * shape.rows + k, root(2 * v * k));
    }
  }
}

namespace {

// Calls `run` with a type of elements and a function that transforms them.
template <typename Run>
void with_transform(const FftShape& shape, const Roots& roots, double* work, const Run& run) {
  if (shape.columns > 1) {
    run(Vector<double>{}, [&](const auto& from, std::size_t pitch, const auto& to) {
      long_transform(shape, roots.complex, from, work, pitch, to);
    });
  } else {
    run(double{}, [&](const auto& from, std::size_t, const auto& to) {
      const std::size_t n = shape.length;
      if (n == 1) return to(0, from(0));
      const SplitComplex<double> here = {work, work + n};
      const SplitComplex<double> there = {work + 2 * n, work + 3 * n};
      stockham<double>(roots.complex.rows, 1, n, 1, from, here, there, to);
    });
  }
}

}  // namespace

void compose_into(const FftShape& shape, const double* table, const double* masses,
                  std::uint64_t count, double* product, double* work) {
  const Roots roots = roots_of(shape, table);
  const std::size_t n = shape.length;
  const std::size_t apart = n + kRowEnd * shape.columns;
  double* found = work + shape.work - 2 * apart;
  with_transform(shape, roots, work, [&](auto element, const auto& transform) {
    typedef decltype(element) T;
    const SplitComplex<T> z = {found, found + apart};
    const auto from = [&](std::size_t j) {
      __builtin_prefetch(masses + 2 * j + 16);
      return load_pairs<T>(masses + 2 * j);
    };
    const auto to = [&](std::size_t k, Complex<T> value) {
      __builtin_prefetch(z.re + k + 8, 1);
      __builtin_prefetch(z.im + k + 8, 1);
      z(k, value);
    };
    transform(from, shape.rows + kRowEnd, to);
    multiply_spectrum(shape, roots, z, count, product);
  });
}

void inverse_spectrum(const FftShape& shape, const double* table, const double* product,
                      double* values, double* work) {
  const Roots roots = roots_of(shape, table);
  with_transform(shape, roots, work, [&](auto element, const auto& transform) {
    typedef decltype(element) T;
    const auto from = [&](std::size_t k) {
      __builtin_prefetch(product + 2 * k + 16);
      __builtin_prefetch(product + 2 * (shape.length - k) - 24);
      __builtin_prefetch(roots.re + k + 8);
      __builtin_prefetch(roots.im + k + 8);
      return from_spectrum<T>(shape, roots, product, k);
    };
    transform(from, shape.rows, [&](std::size_t k, Complex<T> z) {
      __builtin_prefetch(values + 2 * k + 16, 1);
      store_pairs(values + 2 * k, Complex<T>{z.im, z.re});
    });
  });
}

}  // namespace psinoise::PSINOISE_LEVEL
