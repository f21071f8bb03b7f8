// The element stream: which bits belong to which element.
//
// Computes: a first word for every element, and an endless supply of further words for the few
//   elements whose first word does not decide.
// Layout: the 64-byte rows of chacha_group, read as little-endian words of 64 (or 32) bits, are the
//   first words of consecutive elements: 128 (or 256) elements to a group, nonce 0. Further words
//   of element i are the eight 64-bit words of the block with counter i and nonce 1, then 2, ...
// Consequence: element i is a function of (key, i) alone: not of the thread, the chunk or the width
//   of the vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/level.hpp"
#include "random/chacha.hpp"

namespace psinoise::PSINOISE_LEVEL {

// Simulation is content with 8 rounds; releases, which must keep a secret, take all 20.
inline constexpr int kSampleRounds = 8;
inline constexpr int kReleaseRounds = 20;

template <typename Word>
inline constexpr std::size_t kGroupElements = kGroupWords * sizeof(std::uint32_t) / sizeof(Word);

// First words of elements [first, first + count) into out, which holds `count` words.
template <typename Word, int Rounds>
inline void first_words(const std::uint32_t key[8], std::uint64_t first, std::size_t count,
                        unsigned char* out) {
  constexpr std::size_t elements = kGroupElements<Word>;
  std::uint64_t group = first / elements;
  std::size_t skip = static_cast<std::size_t>(first % elements);
  alignas(64) std::uint32_t words[kGroupWords];
  while (count > 0) {
    const std::size_t take = count < elements - skip ? count : elements - skip;
    if (take == elements) {
      chacha_group<Rounds>(key, group, 0, reinterpret_cast<std::uint32_t*>(out));
    } else {
      chacha_group<Rounds>(key, group, 0, words);
      __builtin_memcpy(out, reinterpret_cast<const unsigned char*>(words) + skip * sizeof(Word),
                       take * sizeof(Word));
    }
    out += take * sizeof(Word);
    count -= take;
    skip = 0;
    ++group;
  }
}

// Further words of one element.
template <int Rounds>
class FurtherWordsOf {
 public:
  // The first block (nonce 1) is lane `lane` of sixteen blocks computed together, which must
  // outlive this object.
  FurtherWordsOf(const std::uint32_t* key, std::uint64_t element, const std::uint32_t* group,
                 int lane)
      : key_(key), element_(element), block_(group + lane) {}

  std::uint64_t next() {
    if (used_ == kBlockWords) refill();
    const std::uint32_t* pair = block_ + kLanes * used_;
    used_ += 2;
    return pair[0] | static_cast<std::uint64_t>(pair[kLanes]) << 32;
  }

 private:
  void refill() {
    std::uint64_t counters[kLanes] = {};
    counters[0] = element_;
    chacha_blocks<Rounds>(key_, counters, ++nonce_, own_, 1);
    block_ = own_;
    used_ = 0;
  }

  const std::uint32_t* key_;
  std::uint64_t element_;
  const std::uint32_t* block_;
  std::uint64_t nonce_ = 1;
  int used_ = 0;
  alignas(64) std::uint32_t own_[kGroupWords];
};

using FurtherWords = FurtherWordsOf<kSampleRounds>;

}  // namespace psinoise::PSINOISE_LEVEL
