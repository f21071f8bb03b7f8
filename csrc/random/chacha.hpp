// ChaCha block function, sixteen blocks side by side.
//
// Computes: the keystream blocks of RFC 8439 with a 64-bit counter (state words 12, 13) and a
//   64-bit nonce (words 14, 15), as in Bernstein's original; R = 8 or 20 rounds.
// Layout: word k of the block in lane j goes to out[16 k + j]. A 64-byte row holds one state word
//   of sixteen blocks: what a 512-bit register holds. Narrower machines fill the same rows in two
//   or four passes, so the layout does not depend on the machine.
// Error: none; integers only. Tested against the vectors of RFC 8439 and of draft-strombergson.
// References: RFC 8439 section 2.3; D. J. Bernstein, "ChaCha, a variant of Salsa20" (2008).
#pragma once

#include <cstddef>
#include <cstdint>
#if defined(__SSE2__) && !defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline constexpr int kLanes = 16;
inline constexpr int kBlockWords = 16;
inline constexpr int kGroupWords = kLanes * kBlockWords;

using Words32 = std::uint32_t __attribute__((vector_size(PSINOISE_VECTOR_BYTES)));
using Bytes = std::uint8_t __attribute__((vector_size(PSINOISE_VECTOR_BYTES)));

template <int N>
inline Words32 rotate_left(Words32 x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // Without a rotate instruction, whole-byte rotations are one shuffle instead of three operations.
  if constexpr (N == 16 || N == 8) {
    Bytes order;  // within each half of the register, as the instruction counts
    for (int i = 0; i < PSINOISE_VECTOR_BYTES; ++i) {
      order[i] = static_cast<std::uint8_t>((i & 12) | ((i + 4 - N / 8) & 3));
    }
    return (Words32)_mm256_shuffle_epi8((__m256i)x, (__m256i)order);
  }
#elif defined(__SSE2__) && !defined(__AVX512F__)
  // Halves of words change places in two shuffles.
  if constexpr (N == 16) {
    return (Words32)_mm_shufflehi_epi16(_mm_shufflelo_epi16((__m128i)x, 0xb1), 0xb1);
  }
#endif
  return (x << N) | (x >> (32 - N));
}

inline void quarter_round(Words32& a, Words32& b, Words32& c, Words32& d) {
  a += b;
  d = rotate_left<16>(d ^ a);
  c += d;
  b = rotate_left<12>(b ^ c);
  a += b;
  d = rotate_left<8>(d ^ a);
  c += d;
  b = rotate_left<7>(b ^ c);
}

// Nothing to do between rounds.
struct Nothing {
  void operator()() const {}
};

// `between` is called after every other quarter round, for work that other units of the processor
// do at the same time; less often where a row takes several passes, which together call it as often
// as a group has rows when there are eight rounds.
template <int Rounds, typename Between>
inline void chacha_pass(const std::uint32_t key[8], Words32 counter_low, Words32 counter_high,
                        std::uint64_t nonce, std::uint32_t* out, Between&& between) {
  constexpr std::size_t passes = kLanes * sizeof(std::uint32_t) / PSINOISE_VECTOR_BYTES;
  const Words32 zero = {};
  const Words32 input[16] = {zero + 0x61707865u,
                             zero + 0x3320646eu,
                             zero + 0x79622d32u,
                             zero + 0x6b206574u,
                             zero + key[0],
                             zero + key[1],
                             zero + key[2],
                             zero + key[3],
                             zero + key[4],
                             zero + key[5],
                             zero + key[6],
                             zero + key[7],
                             counter_low,
                             counter_high,
                             zero + static_cast<std::uint32_t>(nonce),
                             zero + static_cast<std::uint32_t>(nonce >> 32)};
  Words32 x[16];
  for (int k = 0; k < 16; ++k) x[k] = input[k];
  for (int round = 0; round < Rounds; round += 2) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    if constexpr (passes == 1) between();
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    if constexpr (passes <= 2) between();
    quarter_round(x[0], x[5], x[10], x[15]);
    quarter_round(x[1], x[6], x[11], x[12]);
    if constexpr (passes == 1) between();
    quarter_round(x[2], x[7], x[8], x[13]);
    quarter_round(x[3], x[4], x[9], x[14]);
    between();
  }
  for (int k = 0; k < 16; ++k) {
    const Words32 word = x[k] + input[k];
    __builtin_memcpy(out + kLanes * k, &word, sizeof(word));
  }
}

// Blocks whose counters are given one by one, in the first of sixteen lanes; the others are not
// defined.
template <int Rounds>
inline void chacha_blocks(const std::uint32_t key[8], const std::uint64_t counters[kLanes],
                          std::uint64_t nonce, std::uint32_t out[kGroupWords],
                          std::size_t lanes = kLanes) {
  constexpr std::size_t width = PSINOISE_VECTOR_BYTES / 4;
  for (std::size_t lane = 0; lane < lanes; lane += width) {
    std::uint32_t halves[2][width];
    for (std::size_t j = 0; j < width; ++j) {
      halves[0][j] = static_cast<std::uint32_t>(counters[lane + j]);
      halves[1][j] = static_cast<std::uint32_t>(counters[lane + j] >> 32);
    }
    Words32 low;
    Words32 high;
    __builtin_memcpy(&low, halves[0], sizeof(low));
    __builtin_memcpy(&high, halves[1], sizeof(high));
    chacha_pass<Rounds>(key, low, high, nonce, out + lane, Nothing{});
  }
}

// The group of sixteen blocks 16 g, ..., 16 g + 15: no carry can happen inside a group.
template <int Rounds, typename Between = Nothing>
inline void chacha_group(const std::uint32_t key[8], std::uint64_t group, std::uint64_t nonce,
                         std::uint32_t out[kGroupWords], Between&& between = {}) {
  constexpr int width = PSINOISE_VECTOR_BYTES / 4;
  const std::uint64_t first = group * kLanes;
  const Words32 zero = {};
  Words32 low;
  for (int j = 0; j < width; ++j) low[j] = static_cast<std::uint32_t>(j);
  low += static_cast<std::uint32_t>(first);
  const Words32 high = zero + static_cast<std::uint32_t>(first >> 32);
  for (int lane = 0; lane < kLanes; lane += width) {
    chacha_pass<Rounds>(key, low, high, nonce, out + lane, between);
    low += static_cast<std::uint32_t>(width);
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
