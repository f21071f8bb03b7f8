// Integers of a lattice law, block by block; shared by the kernels that draw them and that add
// them.
//
// Computes: K_i from element first + i of the ChaCha20 stream of a key.
// Method: Walker's alias method. A draw is a column and a position; the position against the
//   column's threshold picks the listed integer. The first word of an element has 32 bits: the top
//   one is the sign, the low ones the column, and those between the upper bits of the position.
//   They decide unless they are those of the threshold, which 2^-21 of all draws from 2^10 columns
//   are: then a further word has the lower bits, as many as the table needs. So the integer is that
//   of a draw of all bits, exactly: whatever the lower bits are, they change nothing else.
//   Elements whose first word does not decide, or that are in the tail, take a further word first.
//   The integers of the tail stand for copies, whose number counts successes of more words against
//   `ratio`:
//     translate: k + copies * repeated;
//     dilate:    k 2^copies and as many low bits of one more word: the copies of k are 2^copies
//                integers that are equally likely;
//     blocks:    2^b integers that are equally likely, from 1 + (k - 1) 2^b on, by the top bits of
//                one more word, where ratio is 2^(64 - b).
//   In a law with a rest the last integer stands for a draw from a second table, of one more word:
//   what weights of 2^-63 leave over, so that a probability is right to 2^-63 of that.
// Sums: digit j is drawn from elements j 2^48 + first + i, and added 2^shift times.
// Error: none; integers only. |K| is at most 2^62, where it stays.
// References: Walker, ACM Trans. Math. Softw. 3(3), 1977.
#pragma once

#include "base/vector.hpp"
#include "kernels/tables.hpp"
#include "random/stream.hpp"
#include "random/wipe.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline constexpr std::size_t kLatticeBlock = 512;
inline constexpr std::int64_t kMostNoise = std::int64_t{1} << 62;

// What one task keeps: secrets all of it, which must not outlive `call_and_forget`.
struct LatticeWork {
  alignas(64) std::uint32_t words[kLatticeBlock];
  alignas(64) std::int64_t noise[kLatticeBlock];
  std::uint32_t pending[kLatticeBlock + kVectorSize<std::uint32_t>];
  std::size_t pending_count;
};
static_assert(2 * sizeof(LatticeWork) <= kWipedStack);

// noise[i] of elements first + i, i < count <= kLatticeBlock. Reads nothing but law and key.
void draw(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first, std::size_t count,
          LatticeWork& work);

// Blocks of at most kLatticeBlock elements that end at its multiples, so that all but the first and
// the last are whole groups of the stream. Of the key, the words and the noise nothing is left but
// what `use` keeps.
template <typename Use>
inline void for_each_block(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                           std::size_t count, const Use& use) {
  call_and_forget([&] {
    LatticeWork work;
    for (std::size_t done = 0; done < count;) {
      const std::size_t room =
          kLatticeBlock - static_cast<std::size_t>((first + done) % kLatticeBlock);
      const std::size_t size = count - done < room ? count - done : room;
      draw(law, key, first + done, size, work);
      use(done, size, work.noise);
      done += size;
    }
  });
}

}  // namespace psinoise::PSINOISE_LEVEL
