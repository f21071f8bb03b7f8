// Comparisons of vectors as bits of an integer, and what is chosen by them.
#pragma once

#include "base/vector.hpp"

namespace psinoise::PSINOISE_LEVEL {

// One bit for each negative number.
inline unsigned negative(Vector<std::int64_t> x) {
#if defined(__AVX512F__)
  return _mm512_cmplt_epi64_mask(bit_cast<__m512i>(x), _mm512_setzero_si512());
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd(bit_cast<__m256d>(x)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_pd(bit_cast<__m128d>(x)));
#else
  return (x[0] < 0 ? 1u : 0u) | (x[1] < 0 ? 2u : 0u);
#endif
}

// One bit for each element with a >= b, unsigned.
template <typename Words>
inline unsigned at_least(Words a, Words b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(a[0]) == 8) {
    return _mm512_cmpge_epu64_mask(bit_cast<__m512i>(a), bit_cast<__m512i>(b));
  } else {
    return _mm512_cmpge_epu32_mask(bit_cast<__m512i>(a), bit_cast<__m512i>(b));
  }
#elif defined(__AVX2__)
  const auto mask = a >= b;
  if constexpr (sizeof(a[0]) == 8) {
    return static_cast<unsigned>(_mm256_movemask_pd(bit_cast<__m256d>(mask)));
  } else {
    return static_cast<unsigned>(_mm256_movemask_ps(bit_cast<__m256>(mask)));
  }
#else
#if defined(__SSE2__)
  if constexpr (sizeof(a[0]) == 4) {
    return static_cast<unsigned>(_mm_movemask_ps(bit_cast<__m128>(a >= b)));
  }
#endif
  const auto mask = a >= b;
  unsigned bits = 0;
  for (std::size_t j = 0; j < sizeof(a) / sizeof(a[0]); ++j) {
    bits |= (mask[j] != 0 ? 1u : 0u) << j;
  }
  return bits;
#endif
}

// All bits of the elements with a < b, numbers that are not negative and below 2^52.
template <typename Integers>
inline Integers less(Integers a, Integers b) {
#if defined(__SSE2__) && !defined(__AVX2__)
  // Without an instruction for 64 bits: as mantissas of numbers in [1, 2).
  if constexpr (sizeof(a[0]) == 8) {
    const auto of = [](Integers x) { return bit_cast<__m128d>(x | 0x3ff0000000000000); };
    return bit_cast<Integers>(_mm_cmplt_pd(of(a), of(b)));
  }
#endif
  return a < b;
}

// Elements of a where all bits are set in the mask, of b where none is.
template <typename Mask, typename Words>
inline Words choose(Mask mask, Words a, Words b) {
#if defined(__SSE2__) && !defined(__AVX2__)
  return b ^ ((a ^ b) & bit_cast<Words>(mask));
#else
  return mask ? a : b;
#endif
}

// One bit for each element with a == b or c >= d, such numbers too.
template <typename Integers>
inline unsigned equal_or_at_least(Integers a, Integers b, Integers c, Integers d) {
#if defined(__AVX512F__)
  const auto of = [](Integers x) { return bit_cast<__m512i>(x); };
  if constexpr (sizeof(a[0]) == 8) {
    return static_cast<unsigned>(_mm512_cmpeq_epi64_mask(of(a), of(b))) |
           static_cast<unsigned>(_mm512_cmpge_epi64_mask(of(c), of(d)));
  } else {
    return static_cast<unsigned>(_mm512_cmpeq_epi32_mask(of(a), of(b))) |
           static_cast<unsigned>(_mm512_cmpge_epi32_mask(of(c), of(d)));
  }
#elif defined(__AVX2__)
  // There is no instruction for >=.
  const Integers either = (a == b) | (c > d - 1);
  if constexpr (sizeof(a[0]) == 8) {
    return static_cast<unsigned>(_mm256_movemask_pd(bit_cast<__m256d>(either)));
  } else {
    return static_cast<unsigned>(_mm256_movemask_ps(bit_cast<__m256>(either)));
  }
#elif defined(__SSE2__)
  if constexpr (sizeof(a[0]) == 8) {
    const auto of = [](Integers x) { return bit_cast<__m128d>(x | 0x3ff0000000000000); };
    const __m128d equal = _mm_cmpeq_pd(of(a), of(b));
    return static_cast<unsigned>(_mm_movemask_pd(_mm_or_pd(equal, _mm_cmpge_pd(of(c), of(d)))));
  } else {
    return static_cast<unsigned>(_mm_movemask_ps(bit_cast<__m128>((a == b) | (c > d - 1))));
  }
#else
  unsigned bits = 0;
  for (std::size_t j = 0; j < sizeof(a) / sizeof(a[0]); ++j) {
    bits |= (a[j] == b[j] || c[j] >= d[j] ? 1u : 0u) << j;
  }
  return bits;
#endif
}

// Writes the chosen elements one after the other. Up to kVectorSize<Word> elements of `to` may be
// overwritten, whatever the number chosen.
template <typename Word>
inline void compress(unsigned chosen, Vector<Word> from, Word* to) {
#if defined(__AVX512F__)
  // Through a register: the form that stores selectively is microcoded on some CPUs.
  if constexpr (sizeof(Word) == 8) {
    const __m512i packed =
        _mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen), bit_cast<__m512i>(from));
    __builtin_memcpy(to, &packed, sizeof(packed));
  } else {
    const __m512i packed =
        _mm512_maskz_compress_epi32(static_cast<__mmask16>(chosen), bit_cast<__m512i>(from));
    __builtin_memcpy(to, &packed, sizeof(packed));
  }
#else
  for (; chosen != 0; chosen &= chosen - 1u) *to++ = from[__builtin_ctz(chosen)];
#endif
}

}  // namespace psinoise::PSINOISE_LEVEL
