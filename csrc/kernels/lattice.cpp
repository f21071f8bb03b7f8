// Integers of a lattice law; kernels/lattice.hpp has the method.
#include "kernels/lattice.hpp"

#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Word = std::uint64_t;
using Words = Vector<Word>;
using Integers = Vector<std::int64_t>;

inline constexpr std::size_t kWidth = kVectorSize<Word>;
inline constexpr int kMostDoublings = 62;
// Between the elements of a digit and those of the next one.
inline constexpr std::uint64_t kDigitElements = std::uint64_t{1} << 48;

using Further = FurtherWordsOf<kReleaseRounds>;

// The listed integers that words choose, without their signs.
inline Integers choices(const LatticeTable& table, const Word* words) {
  Words word;
  __builtin_memcpy(&word, words, sizeof(word));
  const Words entry = look_up<Word>(table.entries, words, table.column_mask);
  // Below 2^63, so that a signed comparison, which every level has, is right.
  const Integers position = bit_cast<Integers>(word & table.draw_mask);
  const Integers threshold = bit_cast<Integers>(entry & ~table.column_mask);
  return bit_cast<Integers>((position < threshold ? word : entry) & table.column_mask);
}

inline Integers with_sign(Integers listed, const Word* words) {
  Integers sign;
  __builtin_memcpy(&sign, words, sizeof(sign));
  sign >>= 63;
  return (listed ^ sign) - sign;
}

// The listed integer of one word.
inline std::int64_t choice(const LatticeTable& table, Word word) {
  const Word entry = table.entries[word & table.column_mask];
  // Both sides hold the position, or the threshold, above the bits of the column.
  const bool own = (word & table.draw_mask) < (entry & ~table.column_mask);
  return static_cast<std::int64_t>((own ? word : entry) & table.column_mask);
}

// An integer of the tail after its copies.
std::int64_t beyond(const LatticeTable& table, Word listed, Further& further) {
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

void finish(const LatticeTable& table, const std::uint32_t key[8], std::uint64_t first,
            LatticeWork& work) {
  alignas(64) std::uint32_t group[kGroupWords];
  for (std::size_t start = 0; start < work.pending_count; start += kLanes) {
    const std::size_t left = work.pending_count - start;
    const std::size_t lanes = left < kLanes ? left : kLanes;
    std::uint64_t counters[kLanes] = {};
    for (std::size_t j = 0; j < lanes; ++j) counters[j] = first + work.pending[start + j];
    chacha_blocks<kReleaseRounds>(key, counters, 1, group);
    for (std::size_t j = 0; j < lanes; ++j) {
      Further further(key, counters[j], group, static_cast<int>(j));
      const std::size_t i = static_cast<std::size_t>(work.pending[start + j]);
      const Word word = work.words[i];
      const std::int64_t sign = static_cast<std::int64_t>(word) >> 63;
      const Word listed = static_cast<Word>(choice(table, word));
      work.noise[i] = (beyond(table, listed, further) ^ sign) - sign;
    }
  }
}

// (Tables are copies here: members of one in memory would be read again after each write.)

// Listed integers of `count` words, with their signs; notes which of them are in the tail.
void choose(LatticeTable table, std::size_t count, LatticeWork& work) {
  const Word* words = work.words;
  work.pending_count = 0;
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Integers listed = choices(table, words + i);
    const Integers number = with_sign(listed, words + i);
    __builtin_memcpy(work.noise + i, &number, sizeof(number));
    const unsigned tail = at_least(bit_cast<Words>(listed), Words{} + table.tail_first);
    if (__builtin_expect(tail != 0, 0)) {
      Words place;
      for (std::size_t j = 0; j < kWidth; ++j) place[j] = i + j;
      compress<Word>(tail, place, work.pending + work.pending_count);
      work.pending_count += static_cast<std::size_t>(__builtin_popcount(tail));
    }
  }
  for (; i < count; ++i) {
    const std::int64_t listed = choice(table, words[i]);
    const std::int64_t sign = static_cast<std::int64_t>(words[i]) >> 63;
    work.noise[i] = (listed ^ sign) - sign;
    work.pending[work.pending_count] = i;
    work.pending_count += static_cast<Word>(listed) >= table.tail_first ? 1u : 0u;
  }
}

// Adds a further digit, which has no tail. Words beyond the count are read, and mean nothing.
void add(LatticeDigit digit, std::size_t count, LatticeWork& work) {
  for (std::size_t i = 0; i < count; i += kWidth) {
    Integers noise;
    __builtin_memcpy(&noise, work.noise + i, sizeof(noise));
    noise += with_sign(choices(digit.table, work.words + i), work.words + i) << digit.shift;
    __builtin_memcpy(work.noise + i, &noise, sizeof(noise));
  }
}

}  // namespace

void draw(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first, std::size_t count,
          LatticeWork& work) {
  for (std::size_t place = 0; place < law.count; ++place) {
    const LatticeDigit& digit = law.digits[place];
    first_words<Word, kReleaseRounds>(key, place * kDigitElements + first, count,
                                      reinterpret_cast<unsigned char*>(work.words));
    if (place > 0) {
      add(digit, count, work);
    } else {
      choose(digit.table, count, work);
      finish(digit.table, key, first, work);
    }
  }
}

void lattice_choices(const LatticeTable& table, const std::uint64_t* words, std::size_t count,
                     std::int64_t* out) {
  LatticeWork work;
  for (std::size_t done = 0; done < count; done += kLatticeBlock) {
    const std::size_t size = count - done < kLatticeBlock ? count - done : kLatticeBlock;
    __builtin_memcpy(work.words, words + done, size * sizeof(Word));
    choose(table, size, work);
    __builtin_memcpy(out + done, work.noise, size * sizeof(*out));
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
