// First words of consecutive elements, settled while those of the next elements are computed.
//
// Method: the rounds of ChaCha keep the vector units busy and look-ups in tables the load units, so
//   the rows of a group of elements are settled between the rounds of the next group. A row is what
//   the longest registers hold, so that shorter ones share what is done for each of them. What a
//   word does not decide is collected, so that batches are full: rows with such words are listed
//   without a branch, and the list is read a group later, when a mispredicted branch holds up
//   nothing else.
#pragma once

#include "base/masks.hpp"
#include "base/vector.hpp"
#include "random/stream.hpp"

namespace psinoise::PSINOISE_LEVEL {

template <typename Word>
inline constexpr std::size_t kRow = kLanes * sizeof(std::uint32_t) / sizeof(Word);

// Rows need not begin where groups do: the last one of the ring ends in a copy of its first.
template <typename Word>
inline constexpr std::size_t kRing = 4 * kGroupElements<Word>;

// Elements that are undecided, by their place in the output, with their first words.
template <typename Word>
struct Pending {
  static constexpr std::size_t kMany = 512;

  std::size_t count = 0;
  Word offset[kMany + kRing<Word>];
  Word word[kMany + kRing<Word>];
};

// Rows that have undecided elements, of those that are settled while a group is computed, or after
// the last one; each row is written, and counts if it has.
struct Marks {
  static constexpr std::size_t kMost = 2 * kBlockWords;

  std::size_t count = 0;
  std::size_t place[kMost];
  std::size_t bits[kMost];
};

// Settles elements first, ..., first + count - 1, which go to sampler.out: sampler.settle(words,
// offset) a vector of words, with a bit for each that is undecided, sampler.settle_one(word,
// offset) one, and sampler.finish(pending) what is undecided.
template <typename Word, typename Sampler>
inline void settle_words(const std::uint32_t key[8], std::uint64_t first, std::size_t count,
                         const Sampler& sampler) {
  constexpr std::size_t width = kVectorSize<Word>;
  constexpr std::size_t row = kRow<Word>;
  constexpr std::size_t group = kGroupElements<Word>;
  constexpr std::size_t ring = kRing<Word>;
  // The calls between quarter rounds are as many as the rows of a group, so that `next` is never
  // more than a group behind what is ready, and what is collected never more than two.
  static_assert(2 * kSampleRounds * kLanes == kGroupWords);
  // A copy, which samples cannot overwrite: members of the caller's would be read again after each
  // write, and what is computed of them, computed again.
  const Sampler own = sampler;
  alignas(64) Word words[ring + row];
  Marks marks[2];  // of the last group and of the one before, in turn
  Pending<Word> pending;

  // Wide stores that straddle two cache lines cost more than the arithmetic: align them.
  const std::size_t misaligned =
      reinterpret_cast<std::uintptr_t>(sampler.out) / sizeof(*sampler.out) % width;
  // Positions count from the first element of the first group.
  const std::size_t skip = static_cast<std::size_t>(first % group);
  const std::size_t end = skip + count;
  const std::size_t aligned = misaligned == 0 ? skip : skip + (width - misaligned);
  std::size_t next = skip;
  std::size_t ready = 0;
  Marks* found = marks;
  const auto settle_at = [&](const Word* from, std::size_t offset) __attribute__((always_inline)) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < row; j += width) {
      bits |= own.settle(from + j, offset + j) << j;
    }
    return bits;
  };
  const auto settle_row = [&]() __attribute__((always_inline)) {
    if (next + row <= ready) {
      const unsigned bits = settle_at(words + next % ring, next - skip);
      found->place[found->count] = next;
      found->bits[found->count] = bits;
      found->count += bits != 0 ? 1u : 0u;
      next += row;
    }
  };
  const auto settle_single = [&](std::size_t to) {
    for (; next < to; ++next) {
      const Word word = words[next % ring];
      pending.offset[pending.count] = static_cast<Word>(next - skip);
      pending.word[pending.count] = word;
      pending.count += sampler.settle_one(word, next - skip) ? 1u : 0u;
    }
  };
  const auto collect = [&](Marks & from) __attribute__((always_inline)) {
    for (std::size_t k = 0; k < from.count; ++k) {
      const std::size_t place = from.place[k];
      const unsigned bits = static_cast<unsigned>(from.bits[k]);
      if constexpr (row == width) {
        Vector<Word> word;
        __builtin_memcpy(&word, words + place % ring, sizeof(word));
        Vector<Word> offset;
        for (std::size_t j = 0; j < width; ++j) offset[j] = static_cast<Word>(j);
        offset += static_cast<Word>(place - skip);
        compress<Word>(bits, offset, pending.offset + pending.count);
        compress<Word>(bits, word, pending.word + pending.count);
        pending.count += static_cast<std::size_t>(__builtin_popcount(bits));
      } else {
        for (unsigned left = bits; left != 0; left &= left - 1u) {
          const std::size_t j = static_cast<std::size_t>(__builtin_ctz(left));
          pending.offset[pending.count] = static_cast<Word>(place + j - skip);
          pending.word[pending.count++] = words[place % ring + j];
        }
      }
    }
    from.count = 0;
    if (__builtin_expect(pending.count > pending.kMany, 0)) {
      sampler.finish(pending);
      pending.count = 0;
    }
  };

  std::uint64_t number = first / group;
  for (std::size_t written = 0; written < end; written += group) {
    found = marks + written / group % 2;
    collect(*found);
    chacha_group<kSampleRounds>(
        key, number++, 0, reinterpret_cast<std::uint32_t*>(words + written % ring), settle_row);
    if (written % ring == 0) __builtin_memcpy(words + ring, words, row * sizeof(Word));
    ready = written + group < end ? written + group : end;
    if (next < aligned) settle_single(aligned < ready ? aligned : ready);
  }
  while (next + row <= ready) settle_row();
  collect(marks[0]);
  collect(marks[1]);
  settle_single(end);
  sampler.finish(pending);
}

}  // namespace psinoise::PSINOISE_LEVEL
