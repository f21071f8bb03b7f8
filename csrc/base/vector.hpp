// Vectors as wide as the registers of the level, for code that is written once for scalars and
// vectors alike (GCC and Clang vector extensions).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/level.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace psinoise::PSINOISE_LEVEL {

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(PSINOISE_VECTOR_BYTES)));
};

template <typename T>
using Vector = typename VectorOf<T>::type;

template <typename T>
inline constexpr std::size_t kVectorSize = PSINOISE_VECTOR_BYTES / sizeof(T);

template <typename To, typename From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

// The numbers from `from` on, of which `left` are there: 0 for those that are not. Copies of whole
// blocks, whose length is known late, would be loops of the processor's own, which start slowly.
template <typename T>
inline Vector<T> load_vector(const T* from, std::size_t left = kVectorSize<T>) {
  Vector<T> x = {};
  if (__builtin_expect(left >= kVectorSize<T>, 1)) {
    __builtin_memcpy(&x, from, sizeof(x));
  } else {
    for (std::size_t j = 0; j < left; ++j) x[j] = from[j];
  }
  return x;
}

// The inverse: writes the first `left` numbers, at most those of a vector.
template <typename T>
inline void store_vector(Vector<T> x, T* to, std::size_t left = kVectorSize<T>) {
  if (__builtin_expect(left >= kVectorSize<T>, 1)) {
    __builtin_memcpy(to, &x, sizeof(x));
  } else {
    for (std::size_t j = 0; j < left; ++j) to[j] = x[j];
  }
}

// As many values of another type as a vector has numbers of 64 bits.
template <typename T>
struct ValuesOf {
  typedef T type __attribute__((vector_size(kVectorSize<double> * sizeof(T))));
};

template <typename T>
using Values = typename ValuesOf<T>::type;

// Integers as doubles, rounded once.
inline Vector<double> to_doubles(Vector<std::int64_t> n) {
#if defined(__SSE2__) && !defined(__AVX512F__)
  // Without an instruction for it: 2^52 + the lower half, and 2^84 + 2^63 + the upper half, from
  // their bits. Only the last sum is rounded.
  typedef Vector<std::uint64_t> Bits;
  const Bits bits = bit_cast<Bits>(n);
  const Bits lower = (bits & 0xffffffff) | 0x4330000000000000;
  const Bits upper = (bits >> 32) ^ 0x4530000080000000;
  return (bit_cast<Vector<double>>(upper) - (0x1p84 + 0x1p63 + 0x1p52)) +
         bit_cast<Vector<double>>(lower);
#else
  return __builtin_convertvector(n, Vector<double>);
#endif
}

// The same with 0 for subnormal numbers, which floating-point instructions take longer for.
inline Vector<double> without_subnormals(Vector<double> x) {
#if defined(__SSE2__) && !defined(__AVX2__)
  // Exponents are in the upper halves, which there is an instruction to compare.
  typedef Vector<std::int32_t> Halves;
  const Halves none = (bit_cast<Halves>(x) & 0x7ff00000) == 0;
  const __m128i of_both = _mm_shuffle_epi32(bit_cast<__m128i>(none), _MM_SHUFFLE(3, 3, 1, 1));
  return bit_cast<Vector<double>>(bit_cast<Halves>(x) & ~bit_cast<Halves>(of_both));
#else
  typedef Vector<std::int64_t> Integers;
  const Integers normal = (bit_cast<Integers>(x) & 0x7ff0000000000000) != 0;
  return bit_cast<Vector<double>>(bit_cast<Integers>(x) & normal);
#endif
}

// Numbers below 2^31 in size, cut to integers, and these as doubles again.
struct Cut {
  Vector<std::int64_t> integers;
  Vector<double> doubles;
};

inline Cut cut(Vector<double> x) {
#if defined(__AVX512F__)
  const Vector<std::int64_t> integers = __builtin_convertvector(x, Vector<std::int64_t>);
  return {integers, __builtin_convertvector(integers, Vector<double>)};
#else
  const auto narrow = __builtin_convertvector(x, Values<std::int32_t>);
  return {__builtin_convertvector(narrow, Vector<std::int64_t>),
          __builtin_convertvector(narrow, Vector<double>)};
#endif
}

// The elements of two vectors in turn: the first halves of both in a, the second ones in b.
inline void zip(Vector<double>& a, Vector<double>& b) {
#if defined(__AVX512F__)
  const __m512i lower = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i upper = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  const __m512d x = bit_cast<__m512d>(a);
  const __m512d y = bit_cast<__m512d>(b);
  a = bit_cast<Vector<double>>(_mm512_permutex2var_pd(x, lower, y));
  b = bit_cast<Vector<double>>(_mm512_permutex2var_pd(x, upper, y));
#elif defined(__AVX2__)
  const __m256d x = bit_cast<__m256d>(a);
  const __m256d y = bit_cast<__m256d>(b);
  const __m256d even = _mm256_unpacklo_pd(x, y);
  const __m256d odd = _mm256_unpackhi_pd(x, y);
  a = bit_cast<Vector<double>>(_mm256_permute2f128_pd(even, odd, 0x20));
  b = bit_cast<Vector<double>>(_mm256_permute2f128_pd(even, odd, 0x31));
#else
  static_assert(kVectorSize<double> == 2);
  const Vector<double> x = a;
  const Vector<double> y = b;
#if defined(__SSE2__)
  a = bit_cast<Vector<double>>(_mm_unpacklo_pd(bit_cast<__m128d>(x), bit_cast<__m128d>(y)));
  b = bit_cast<Vector<double>>(_mm_unpackhi_pd(bit_cast<__m128d>(x), bit_cast<__m128d>(y)));
#else
  a = Vector<double>{x[0], y[0]};
  b = Vector<double>{x[1], y[1]};
#endif
#endif
}

// The inverse of zip.
inline void unzip(Vector<double>& a, Vector<double>& b) {
#if defined(__AVX512F__)
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  const __m512d x = bit_cast<__m512d>(a);
  const __m512d y = bit_cast<__m512d>(b);
  a = bit_cast<Vector<double>>(_mm512_permutex2var_pd(x, even, y));
  b = bit_cast<Vector<double>>(_mm512_permutex2var_pd(x, odd, y));
#else
  // Of two or four elements, each zip halves their distance.
  zip(a, b);
  if constexpr (kVectorSize<double> == 4) zip(a, b);
#endif
}

inline Vector<double> reverse(Vector<double> x) {
#if defined(__AVX512F__)
  const __m512i backwards = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  const __m512d y = bit_cast<__m512d>(x);
  return bit_cast<Vector<double>>(_mm512_permutex2var_pd(y, backwards, y));
#elif defined(__AVX2__)
  return bit_cast<Vector<double>>(_mm256_permute4x64_pd(bit_cast<__m256d>(x), 0x1b));
#else
  return Vector<double>{x[1], x[0]};
#endif
}

// Rows and columns of a square change places.
inline void transpose(Vector<double>* rows) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // In half the instructions of what follows.
  const auto at = [&](int k) { return bit_cast<__m256d>(rows[k]); };
  const __m256d even[2] = {_mm256_unpacklo_pd(at(0), at(1)), _mm256_unpacklo_pd(at(2), at(3))};
  const __m256d odd[2] = {_mm256_unpackhi_pd(at(0), at(1)), _mm256_unpackhi_pd(at(2), at(3))};
  rows[0] = bit_cast<Vector<double>>(_mm256_permute2f128_pd(even[0], even[1], 0x20));
  rows[1] = bit_cast<Vector<double>>(_mm256_permute2f128_pd(odd[0], odd[1], 0x20));
  rows[2] = bit_cast<Vector<double>>(_mm256_permute2f128_pd(even[0], even[1], 0x31));
  rows[3] = bit_cast<Vector<double>>(_mm256_permute2f128_pd(odd[0], odd[1], 0x31));
#else
  constexpr std::size_t kSize = kVectorSize<double>;
  for (std::size_t done = 1; done < kSize; done *= 2) {
    Vector<double> next[kSize];
    for (std::size_t r = 0; r < kSize / 2; ++r) {
      next[2 * r] = rows[r];
      next[2 * r + 1] = rows[r + kSize / 2];
      zip(next[2 * r], next[2 * r + 1]);
    }
    for (std::size_t r = 0; r < kSize; ++r) rows[r] = next[r];
  }
#endif
}

inline double magnitude(double x) {
  return __builtin_fabs(x);
}

inline Vector<double> magnitude(Vector<double> x) {
  typedef Vector<std::uint64_t> Bits;
  return bit_cast<Vector<double>>(bit_cast<Bits>(x) & 0x7fffffffffffffff);
}

// A positive number with the sign of x.
inline double with_sign(double size, double x) {
  return __builtin_copysign(size, x);
}

inline Vector<double> with_sign(double size, Vector<double> x) {
  typedef Vector<std::uint64_t> Bits;
  const Bits sign = bit_cast<Bits>(x) & 0x8000000000000000;
  return bit_cast<Vector<double>>(sign | bit_cast<std::uint64_t>(size));
}

// The bits of a number, or of each of a vector.
template <typename Real>
struct BitsOf {
  typedef Vector<std::uint64_t> type;
};

template <>
struct BitsOf<double> {
  typedef std::uint64_t type;
};

// Words of 64 bits and of 32, numbers of their size, and the bits of 1.
struct WideWords {
  using Word = std::uint64_t;
  using Integer = std::int64_t;
  using Real = double;
  static constexpr int kMantissaBits = 52;
  static constexpr Word kOne = 0x3ff0000000000000u;
};

struct NarrowWords {
  using Word = std::uint32_t;
  using Integer = std::int32_t;
  using Real = float;
  static constexpr int kMantissaBits = 23;
  static constexpr Word kOne = 0x3f800000u;
};

}  // namespace psinoise::PSINOISE_LEVEL
