// Integers of a lattice law; kernels/lattice.hpp has the method.
#include "kernels/lattice.hpp"

#include "base/look_up.hpp"
#include "base/masks.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Word = std::uint64_t;
using Head = std::uint32_t;
using Heads = Vector<Head>;
using SignedHeads = Vector<std::int32_t>;
using Integers = Vector<std::int64_t>;

inline constexpr std::size_t kWidth = kVectorSize<Head>;
static_assert(kLatticeBlock % kWidth == 0);
inline constexpr int kMostDoublings = 62;
// Between the elements of a digit and those of the next one.
inline constexpr std::uint64_t kDigitElements = std::uint64_t{1} << 48;

using Further = FurtherWordsOf<kReleaseRounds>;

// The listed integer of a draw; of a word, what entries or heads hold of it.
template <typename Bits>
inline Bits choice(const Bits* entries, Bits draw_mask, Bits column_mask, Bits word) {
  const Bits entry = entries[word & column_mask];
  // Both sides hold the position, or the threshold, above the bits of the column.
  const bool own = (word & draw_mask) < (entry & ~column_mask);
  return (own ? word : entry) & column_mask;
}

inline Word choice(const LatticeTable& table, Word draw) {
  return choice(table.entries, table.draw_mask, table.column_mask, draw);
}

inline Word choice(const LatticeTable& table, Head first) {
  return choice(table.heads, table.head_mask, static_cast<Head>(table.column_mask), first);
}

// The draw of a first word whose lower bits are the upper ones of another word.
inline Word completed(const LatticeTable& table, Head first, Word further) {
  const Word upper = (first & table.head_mask) >> table.column_bits;
  const Word lower = table.lower_bits > 0 ? further >> (64 - table.lower_bits) : 0;
  const Word position = upper << table.lower_bits | lower;
  return position << table.column_bits | (first & table.column_mask);
}

// An integer of the tail after its copies, or of the rest.
std::int64_t beyond(const LatticeTable& table, Word listed, Further& further) {
  if (table.tail == LatticeTail::rest) {
    return static_cast<std::int64_t>(choice(*table.rest, further.next()));
  }
  if (table.tail == LatticeTail::blocks) {
    // A power of two: what is beyond it in a word of ones is the last integer of a block.
    const Word last_of_block = ~Word{0} / table.ratio;
    const Word start = (listed - 1) * (last_of_block + 1) + 1;
    return static_cast<std::int64_t>(start + further.next() / table.ratio);
  }
  const Word most = static_cast<Word>(kMostNoise);
  Word copies = 0;
  if (table.tail == LatticeTail::dilate) {
    while (copies < kMostDoublings && further.next() < table.ratio) ++copies;
    // A block of copies that begins beyond the limit is saturated as a whole.
    if (listed >= most >> copies) return kMostNoise;
    const Word low = copies > 0 ? further.next() >> (64 - copies) : 0;
    return static_cast<std::int64_t>((listed << copies) + low);
  }
  const Word last = (most - listed) / table.repeated;
  while (copies <= last && further.next() < table.ratio) ++copies;
  return copies > last ? kMostNoise : static_cast<std::int64_t>(listed + copies * table.repeated);
}

// Replaces what first words chose where they do not decide.
void finish(const LatticeDigit& digit, const std::uint32_t key[8], std::uint64_t first,
            LatticeWork& work) {
  const LatticeTable& table = digit.table;
  alignas(64) std::uint32_t group[kGroupWords];
  for (std::size_t start = 0; start < work.pending_count; start += kLanes) {
    const std::size_t left = work.pending_count - start;
    const std::size_t lanes = left < kLanes ? left : kLanes;
    std::uint64_t counters[kLanes] = {};
    for (std::size_t j = 0; j < lanes; ++j) counters[j] = first + work.pending[start + j];
    chacha_blocks<kReleaseRounds>(key, counters, 1, group, lanes);
    for (std::size_t j = 0; j < lanes; ++j) {
      Further further(key, counters[j], group, static_cast<int>(j));
      const std::size_t i = work.pending[start + j];
      const Head word = work.words[i];
      const Word listed = choice(table, completed(table, word, further.next()));
      const bool in_tail = listed >= table.tail_first;
      const std::int64_t right =
          in_tail ? beyond(table, listed, further) : static_cast<std::int64_t>(listed);
      const std::int64_t change = right - static_cast<std::int64_t>(choice(table, word));
      work.noise[i] += (word >> 31 != 0 ? -change : change) * (std::int64_t{1} << digit.shift);
    }
  }
}

// What first words choose, with its sign: as the noise, or added to it. Notes which do not decide.
// Words beyond the count are read, and mean nothing. (The digit is a copy: members of one in memory
// would be read again after each write.)
template <bool Added>
void choose(LatticeDigit digit, std::size_t count, LatticeWork& work) {
  const LatticeTable& table = digit.table;
  const Head column_mask = static_cast<Head>(table.column_mask);
  const Head position_mask = table.head_mask & ~column_mask;
  const Heads tail_first = Heads{} + static_cast<Head>(table.tail_first);
  Heads places;
  for (std::size_t j = 0; j < kWidth; ++j) places[j] = static_cast<Head>(j);
  std::size_t pending_count = 0;
  for (std::size_t i = 0; i < count; i += kWidth) {
    Heads word;
    __builtin_memcpy(&word, work.words + i, sizeof(word));
    const Heads head = look_up<Head>(table.heads, work.words + i, column_mask);
    const Heads position = word & position_mask;
    const Heads threshold = head & position_mask;
    // Below 2^31, so that a signed comparison, which every level has, is right.
    const SignedHeads own = bit_cast<SignedHeads>(position) < bit_cast<SignedHeads>(threshold);
    const Heads listed = (own ? word : head) & column_mask;
    const SignedHeads sign = bit_cast<SignedHeads>(word) >> 31;
    const SignedHeads number = (bit_cast<SignedHeads>(listed) ^ sign) - sign;
    Values<std::int32_t> halves[2];
    __builtin_memcpy(halves, &number, sizeof(halves));
    for (std::size_t half = 0; half < 2; ++half) {
      std::int64_t* to = work.noise + i + half * kWidth / 2;
      Integers noise = __builtin_convertvector(halves[half], Integers);
      if constexpr (Added) {
        Integers before;
        __builtin_memcpy(&before, to, sizeof(before));
        noise = before + (noise << digit.shift);
      }
      __builtin_memcpy(to, &noise, sizeof(noise));
    }
    const Heads open = bit_cast<Heads>(position == threshold) | listed;
    const unsigned pending = at_least(open, tail_first);
    if (__builtin_expect(pending != 0, 0)) {
      compress<Head>(pending, places + static_cast<Head>(i), work.pending + pending_count);
      pending_count += static_cast<std::size_t>(__builtin_popcount(pending));
    }
  }
  while (pending_count > 0 && work.pending[pending_count - 1] >= count) --pending_count;
  work.pending_count = pending_count;
}

}  // namespace

void draw(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first, std::size_t count,
          LatticeWork& work) {
  for (std::size_t place = 0; place < law.count; ++place) {
    const LatticeDigit& digit = law.digits[place];
    const std::uint64_t element = place * kDigitElements + first;
    first_words<Head, kReleaseRounds>(key, element, count,
                                      reinterpret_cast<unsigned char*>(work.words));
    if (place > 0) {
      choose<true>(digit, count, work);
    } else {
      choose<false>(digit, count, work);
    }
    finish(digit, key, element, work);
  }
}

void lattice_choices(const LatticeTable& table, const std::uint64_t* words, std::size_t count,
                     std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t listed = static_cast<std::int64_t>(choice(table, words[i]));
    out[i] = words[i] >> 63 != 0 ? -listed : listed;
  }
}

void lattice_noise(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, std::int64_t* out) {
  for_each_block(law, key, first, count,
                 [out](std::size_t done, std::size_t size, const std::int64_t* noise) {
                   __builtin_memcpy(out + done, noise, size * sizeof(*out));
                 });
}

}  // namespace psinoise::PSINOISE_LEVEL
