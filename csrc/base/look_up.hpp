// Numbers of tables, a vector at a time.
#pragma once

#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

// table[index[0]], table[index[1]], ... of sixteen numbers, which stay in registers where these
// hold them. Indices are below sixteen.
inline Vector<float> look_up_16(const float* table, Vector<std::int32_t> index) {
#if defined(__AVX512F__)
  return bit_cast<Vector<float>>(
      _mm512_maskz_permutexvar_ps(0xffff, bit_cast<__m512i>(index), _mm512_loadu_ps(table)));
#elif defined(__AVX2__)
  const __m256i place = bit_cast<__m256i>(index);
  const __m256 lower = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), place);
  const __m256 upper = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), place);
  const __m256 which = bit_cast<__m256>(index << 28);
  return bit_cast<Vector<float>>(_mm256_blendv_ps(lower, upper, which));
#else
  Vector<float> result;
  for (std::size_t j = 0; j < kVectorSize<float>; ++j) result[j] = table[index[j]];
  return result;
#endif
}

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
template <typename Real>
struct LookedUpPairs {
  Vector<Real> first;
  Vector<Real> second;
};

inline LookedUpPairs<float> look_up_pairs(const float (*table)[2], Vector<std::int32_t> index) {
  std::uint32_t place[kVectorSize<float>];
  __builtin_memcpy(place, &index, sizeof(place));
#if defined(__SSE2__)
  const auto two = [&](int j) __attribute__((always_inline)) {
    const auto at = [&](int k) { return reinterpret_cast<const __m64*>(table[place[k]]); };
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), at(j)), at(j + 1));
  };
#endif
#if defined(__AVX512F__)
  const auto eight = [&](int j) __attribute__((always_inline)) {
    __m512 all = _mm512_castps128_ps512(two(j));
    all = _mm512_insertf32x4(all, two(j + 2), 1);
    all = _mm512_insertf32x4(all, two(j + 4), 2);
    return _mm512_insertf32x4(all, two(j + 6), 3);
  };
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 x = eight(0);
  const __m512 y = eight(8);
  return {bit_cast<Vector<float>>(_mm512_permutex2var_ps(x, even, y)),
          bit_cast<Vector<float>>(
              _mm512_permutex2var_ps(x, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y))};
#elif defined(__AVX2__)
  const auto four = [&](int j) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(two(j)), two(j + 4), 1);
  };
  const __m256 x = four(0);
  const __m256 y = four(2);
  return {bit_cast<Vector<float>>(_mm256_shuffle_ps(x, y, 0x88)),
          bit_cast<Vector<float>>(_mm256_shuffle_ps(x, y, 0xdd))};
#elif defined(__SSE2__)
  const __m128 x = two(0);
  const __m128 y = two(2);
  return {bit_cast<Vector<float>>(_mm_shuffle_ps(x, y, 0x88)),
          bit_cast<Vector<float>>(_mm_shuffle_ps(x, y, 0xdd))};
#else
  LookedUpPairs<float> result;
  for (std::size_t j = 0; j < kVectorSize<float>; ++j) {
    result.first[j] = table[place[j]][0];
    result.second[j] = table[place[j]][1];
  }
  return result;
#endif
}

inline LookedUpPairs<double> look_up_pairs(const double (*table)[2], Vector<std::int64_t> index) {
  std::int64_t place[kVectorSize<double>];
#if defined(__AVX2__) && !defined(__AVX512F__)
  // Addresses are multiples of 8 at most: twice the index in one instruction instead of four.
  index += index;
  const auto at = [&](int j) { return _mm_loadu_pd(table[0] + place[j]); };
#elif defined(__SSE2__)
  const auto at = [&](int j) { return _mm_loadu_pd(table[place[j]]); };
#endif
  __builtin_memcpy(place, &index, sizeof(place));
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
  LookedUpPairs<double> result;
  for (std::size_t j = 0; j < kVectorSize<double>; ++j) {
    result.first[j] = table[place[j]][0];
    result.second[j] = table[place[j]][1];
  }
  return result;
#endif
}

// The bits of a word that a mask of at most 32 low bits has: in one instruction, of a word in
// memory too.
template <typename Word>
inline std::size_t low_bits(Word word, Word mask) {
#if defined(__BMI__)
  const int bits = __builtin_popcountll(mask);
  return _bextr_u32(static_cast<std::uint32_t>(word), 0, static_cast<std::uint32_t>(bits));
#else
  return static_cast<std::size_t>(word & mask);
#endif
}

// table[index[0] & mask], table[index[1] & mask], ... of a mask of low bits: scalar loads, faster
// than a gather where tables are in the first-level cache.
template <typename Word>
inline Vector<Word> look_up(const Word* table, const Word* index, Word mask) {
#if defined(__AVX512F__)
  // In pieces of 128 bits, element after element: left alone, the compiler inserts with masks, or
  // moves pairs through other registers.
  if constexpr (sizeof(Word) == 4) {
    const auto four = [&](int j) __attribute__((always_inline)) {
      const auto at = [&](int k) { return static_cast<int>(table[low_bits(index[j + k], mask)]); };
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
      const auto at = [&](int k) {
        return static_cast<long long>(table[low_bits(index[j + k], mask)]);
      };
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
  for (std::size_t j = 0; j < kVectorSize<Word>; ++j) result[j] = table[low_bits(index[j], mask)];
  return result;
#endif
}

}  // namespace psinoise::PSINOISE_LEVEL
