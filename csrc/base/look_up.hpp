// Numbers of tables, a vector at a time.
#pragma once

#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

// table[index[0]], table[index[1]], ... of sixteen numbers, which stay in registers where these
// hold them.
inline Vector<double> look_up_16(const double* table, Vector<std::int64_t> index) {
#if defined(__AVX512F__)
  return bit_cast<Vector<double>>(_mm512_permutex2var_pd(
      _mm512_loadu_pd(table), bit_cast<__m512i>(index), _mm512_loadu_pd(table + 8)));
#else
  Vector<double> result;
  for (std::size_t j = 0; j < kVectorSize<double>; ++j) result[j] = table[index[j]];
  return result;
#endif
}

// table[index[0]], table[index[1]], ... of numbers of 64 bits: scalar loads, as below.
// (Not one function with that below: samples in cells take an eighth longer, GCC 12.)
template <typename Number>
inline Vector<Number> look_up(const Number* table, Vector<std::int64_t> index) {
  static_assert(sizeof(Number) == 8);
  std::int64_t place[kVectorSize<Number>];
  __builtin_memcpy(place, &index, sizeof(place));
#if defined(__AVX512F__)
  const auto two = [&](int j) {
    const auto at = [&](int k) { return bit_cast<long long>(table[place[j + k]]); };
    return _mm_insert_epi64(_mm_cvtsi64_si128(at(0)), at(1), 1);
  };
  __m512i all = _mm512_castsi128_si512(two(0));
  all = _mm512_inserti64x2(all, two(2), 1);
  all = _mm512_inserti64x2(all, two(4), 2);
  all = _mm512_inserti64x2(all, two(6), 3);
  return bit_cast<Vector<Number>>(all);
#else
  Vector<Number> result;
  for (std::size_t j = 0; j < kVectorSize<Number>; ++j) result[j] = table[place[j]];
  return result;
#endif
}

// The same of a table of pairs, which are loaded as such: the first numbers, and the second ones.
struct LookedUpPairs {
  Vector<double> first;
  Vector<double> second;
};

inline LookedUpPairs look_up_pairs(const double (*table)[2], Vector<std::int64_t> index) {
  std::int64_t place[kVectorSize<double>];
  __builtin_memcpy(place, &index, sizeof(place));
#if defined(__SSE2__)
  const auto at = [&](int j) { return _mm_loadu_pd(table[place[j]]); };
#endif
#if defined(__AVX512F__)
  const auto pairs = [&](int j) {
    __m512d all = _mm512_castpd128_pd512(at(j));
    all = _mm512_insertf64x2(all, at(j + 2), 1);
    all = _mm512_insertf64x2(all, at(j + 4), 2);
    return _mm512_insertf64x2(all, at(j + 6), 3);
  };
  const __m512d even = pairs(0);
  const __m512d odd = pairs(1);
  return {_mm512_maskz_unpacklo_pd(0xff, even, odd), _mm512_maskz_unpackhi_pd(0xff, even, odd)};
#elif defined(__AVX2__)
  const __m256d even = _mm256_insertf128_pd(_mm256_castpd128_pd256(at(0)), at(2), 1);
  const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(at(1)), at(3), 1);
  return {_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)};
#elif defined(__SSE2__)
  return {_mm_unpacklo_pd(at(0), at(1)), _mm_unpackhi_pd(at(0), at(1))};
#else
  LookedUpPairs result;
  for (std::size_t j = 0; j < kVectorSize<double>; ++j) {
    result.first[j] = table[place[j]][0];
    result.second[j] = table[place[j]][1];
  }
  return result;
#endif
}

// table[index[0]], table[index[1]], ...: scalar loads, faster than a gather where tables are in the
// first-level cache.
template <typename Word>
inline Vector<Word> look_up(const Word* table, const Word* index, Word mask) {
#if defined(__AVX512F__)
  // In pieces of 128 bits, element after element: left alone, the compiler inserts with masks, or
  // moves pairs through other registers.
  if constexpr (sizeof(Word) == 4) {
    const auto four = [&](int j) {
      const auto at = [&](int k) { return static_cast<int>(table[index[j + k] & mask]); };
      __m128i x = _mm_cvtsi32_si128(at(0));
      x = _mm_insert_epi32(x, at(1), 1);
      x = _mm_insert_epi32(x, at(2), 2);
      return _mm_insert_epi32(x, at(3), 3);
    };
    __m512i all = _mm512_castsi128_si512(four(0));
    all = _mm512_inserti32x4(all, four(4), 1);
    all = _mm512_inserti32x4(all, four(8), 2);
    all = _mm512_inserti32x4(all, four(12), 3);
    return bit_cast<Vector<Word>>(all);
  } else {
    const auto two = [&](int j) {
      const auto at = [&](int k) { return static_cast<long long>(table[index[j + k] & mask]); };
      return _mm_insert_epi64(_mm_cvtsi64_si128(at(0)), at(1), 1);
    };
    __m512i all = _mm512_castsi128_si512(two(0));
    all = _mm512_inserti64x2(all, two(2), 1);
    all = _mm512_inserti64x2(all, two(4), 2);
    all = _mm512_inserti64x2(all, two(6), 3);
    return bit_cast<Vector<Word>>(all);
  }
#else
  Vector<Word> result;
  for (std::size_t j = 0; j < kVectorSize<Word>; ++j) result[j] = table[index[j] & mask];
  return result;
#endif
}

}  // namespace psinoise::PSINOISE_LEVEL
