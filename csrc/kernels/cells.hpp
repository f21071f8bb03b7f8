// Samples of a symmetric law with a piecewise constant density, atoms and a geometric tail.
//
// Computes: out[i] = scale * Z where element first + i of the stream decides Z.
// Method: Walker's alias method. One word gives, from the low end, column (b bits), sign, test and
//   position, all disjoint: of 64 bits 12 are the test and 51 - b the position, of 32 bits, which
//   serve float32 samples of up to 2^12 columns, 9 and 22 - b. The test picks one of the two cells
//   of the column; when it equals the first bits of the threshold, the others decide, against a
//   further word. The cells of the tail add a geometric number of periods, the integer part of an
//   exponential variate, so the tail has no end. Whatever needs more than the first word is
//   collected and finished sixteen at a time. Cells are read from tables, or are those of a
//   lattice, which needs one look-up instead of two.
// Error: cell probabilities are multiples of 2^-(64 + b), positions odd multiples of 2^-(52 - b),
//   or 2^-(23 - b), of the width; x is the rounded sum of start, position and periods. From words
//   of 32 bits start, position and their sum are float32, and x is right to 2^-22 of itself. Tail
//   counts have the relative rounding of one division.
// Determinism: integers, and IEEE operations in a fixed order: the same bits at every level and
//   from the NumPy twin (psinoise/reference/cells.py). An atom at 0 gives +0.
// References: Walker, ACM Trans. Math. Softw. 3(3), 1977; Vose, IEEE Trans. Softw. Eng. 17(9),
//   1991.
#pragma once

#include "base/look_up.hpp"
#include "base/masks.hpp"
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/settle.hpp"
#include "kernels/variates.hpp"

namespace psinoise::PSINOISE_LEVEL {
// Of each file alone, so that GCC inlines what is called once.
namespace {

// Words of 64 bits, and of 32. A test has the bits of a word that no mantissa takes.
struct WideCells : WideWords {
  static constexpr int kTestBits = kCellTestBits;
  static const Word* entries(const CellTable& table) { return table.entries; }
  static const Real (*cells(const CellTable& table))[2] { return table.cells; }
};

struct NarrowCells : NarrowWords {
  static constexpr int kTestBits = kNarrowTestBits;
  static const Word* entries(const CellTable& table) { return table.narrow_entries; }
  static const Real (*cells(const CellTable& table))[2] { return table.narrow_cells; }
};

// How the words of one table are read; a word is a number or a vector. Shifts are of the type of
// words, so that they are loaded where they are needed.
template <typename Format>
struct CellFields {
  using Word = typename Format::Word;
  static constexpr Word kTests = (Word{1} << Format::kTestBits) - 1u;
  static constexpr Word kSignBit = Word{1} << (8 * sizeof(Word) - 1);

  explicit CellFields(const CellTable& table)
      : column((Word{1} << table.column_bits) - 1u),
        test(kTests << (table.column_bits + 1)),
        sign_shift(static_cast<Word>(8 * sizeof(Word) - 1) - static_cast<Word>(table.column_bits)),
        position(~((Word{2} << table.column_bits) - 1u)),
        half((Word{1} << table.column_bits) | Format::kOne) {}

  // (2 k + 1) times half of what one bit of the position k is worth: strictly inside (0, 1), exact.
  template <typename Reals, typename W>
  Reals position_of(W word) const {
    return bit_cast<Reals>(((word >> Format::kTestBits) & position) | half) -
           typename Format::Real{1};
  }
  template <typename Reals, typename W>
  Reals with_sign(Reals x, W word) const {
    // Adding +0 turns -0 into +0 and changes nothing else.
    return bit_cast<Reals>(bit_cast<W>(x) ^ ((word << sign_shift) & kSignBit)) +
           typename Format::Real{0};
  }

  Word column;
  Word test;
  Word sign_shift;
  Word position;
  Word half;
};

// Entries in memory.
template <typename Format>
struct CellEntries {
  using Word = typename Format::Word;

  explicit CellEntries(const CellTable& table)
      : entries(Format::entries(table)), column((Word{1} << table.column_bits) - 1u) {}

  Vector<Word> entry_of(const Word* words, Vector<Word>) const {
    return look_up<Word>(entries, words, column);
  }

  const Word* entries;
  Word column;
};

// The point of a cell, in units of the scale: number and position side by side in one number, at
// the exponent of the number of columns, which is taken off exactly with the half of a cell.
template <typename Format>
struct LatticeCells : CellEntries<Format> {
  using Word = typename Format::Word;
  using Real = typename Format::Real;

  explicit LatticeCells(const CellTable& table)
      : CellEntries<Format>(table),
        number_shift(static_cast<Word>(Format::kMantissaBits - table.column_bits)),
        position_shift(static_cast<Word>(Format::kTestBits + table.column_bits)),
        base((Format::kOne + (static_cast<Word>(table.column_bits) << Format::kMantissaBits)) | 1u),
        offset(static_cast<Real>(Word{1} << table.column_bits) + Real{0.5}),
        step(static_cast<Real>(table.step)) {}

  template <typename Reals, typename W>
  Reals point(W cell, W word, const CellFields<Format>&) const {
    const W place = (cell << number_shift) | (word >> position_shift) | base;
    return (bit_cast<Reals>(place) - offset) * step;
  }

  Word number_shift;
  Word position_shift;
  Word base;
  Real offset;
  Real step;
};

// Cells so few that two registers hold a table of them.
template <typename Format>
struct FewCells {
  using Word = typename Format::Word;
  using Real = typename Format::Real;
  using Integers = Vector<typename Format::Integer>;
  static constexpr bool kServe = 2 * kVectorSize<Word> >= 16;
  static constexpr int kColumnBits = 4;
  static constexpr std::size_t kCells = std::size_t{1} << kColumnBits;

  explicit FewCells(const CellTable& table) {
    const std::size_t columns = std::size_t{1} << table.column_bits;
    for (std::size_t k = 0; k < columns; ++k) {
      starts[k] = Format::cells(table)[k][0];
      widths[k] = Format::cells(table)[k][1];
    }
    // Again and again, so that the four lowest bits of a word are a place.
    for (std::size_t k = 0; k < kCells; ++k) {
      entries[k] = bit_cast<Real>(Format::entries(table)[k % columns]);
    }
  }

  Vector<Word> entry_of(const Word*, Vector<Word> word) const {
    return bit_cast<Vector<Word>>(look_up_16(entries, bit_cast<Integers>(word & (kCells - 1u))));
  }
  template <typename Reals, typename W>
  Reals point(W cell, W word, const CellFields<Format>& fields) const {
    const Reals position = fields.template position_of<Reals>(word);
    if constexpr (sizeof(W) == sizeof(Word)) {
      return starts[cell] + widths[cell] * position;
    } else {
      const Integers place = bit_cast<Integers>(cell);
      return look_up_16(starts, place) + look_up_16(widths, place) * position;
    }
  }

  alignas(64) Real entries[kCells];
  alignas(64) Real starts[kCells] = {};
  alignas(64) Real widths[kCells] = {};
};

template <typename Format>
struct TableCells : CellEntries<Format> {
  using Word = typename Format::Word;
  using Real = typename Format::Real;

  explicit TableCells(const CellTable& table)
      : CellEntries<Format>(table), cells(Format::cells(table)) {}

  template <typename Reals, typename W>
  Reals point(W cell, W word, const CellFields<Format>& fields) const {
    const Reals position = fields.template position_of<Reals>(word);
    if constexpr (sizeof(W) == sizeof(Word)) {
      return cells[cell][0] + cells[cell][1] * position;
    } else {
      const auto found = look_up_pairs(cells, bit_cast<Vector<typename Format::Integer>>(cell));
      return found.first + found.second * position;
    }
  }

  const Real (*cells)[2];
};

// An element whose first word does not decide.
template <typename Format, typename Cells>
double settle_cell_alone(const CellTable& table, const Cells& cells,
                         const CellFields<Format>& fields, typename Format::Word word,
                         FurtherWords& further) {
  using Word = typename Format::Word;
  using Real = typename Format::Real;
  constexpr int rest = kCellTestBits - Format::kTestBits;
  const Word column = word & fields.column;
  const std::uint64_t entry = table.entries[column];
  const Word alias = static_cast<Word>(entry) & fields.column;
  const std::uint64_t threshold =
      (entry >> (table.column_bits + 1)) & ((std::uint64_t{1} << kCellTestBits) - 1);
  const std::uint64_t test = (word & fields.test) >> (table.column_bits + 1);
  Word cell = test < threshold >> rest ? column : alias;
  if (test == threshold >> rest && (entry & kWholeColumn) == 0) {
    // The other bits of the threshold: those of the entry, and then 52.
    const std::uint64_t last = threshold & ((std::uint64_t{1} << rest) - 1);
    const std::uint64_t fraction = last << 52 | table.fractions[column];
    cell = (further.next() >> Format::kTestBits) < fraction ? column : alias;
  }
  double x = static_cast<double>(cells.template point<Real>(cell, word, fields));
  if (cell >= table.tail_first) {
    const double variate = exponential_variate(further.next(), further);
    const double periods = variate / table.tail_rate;
    // Beyond 2^52 every double is whole.
    const double whole =
        periods < 0x1p52 ? static_cast<double>(static_cast<std::int64_t>(periods)) : periods;
    x = x + whole * table.tail_period;
  }
  return x;
}

template <typename Format, template <typename> typename Cells>
struct CellSampler {
  using Word = typename Format::Word;
  using Real = typename Format::Real;
  using Integers = Vector<typename Format::Integer>;

  // Turns one word into a sample; true if it does not decide.
  bool settle_one(Word word, std::size_t offset) const {
    const Word entry = Format::entries(table)[word & fields.column];
    const Word test = word & fields.test;
    const Word threshold = entry & fields.test;
    const Word cell = (test < threshold ? word : entry) & fields.column;
    const Real x = cells.template point<Real>(cell, word, fields) * scale;
    out[offset] = fields.with_sign(x, word);
    return test == threshold || cell >= tail_first;
  }

  // The same for a vector of words, with a bit for each.
  __attribute__((always_inline)) unsigned settle(const Word* from, std::size_t offset) const {
    Vector<Word> word;
    __builtin_memcpy(&word, from, sizeof(word));
    const Vector<Word> entry = cells.entry_of(from, word);
    const Integers test = bit_cast<Integers>(word & fields.test);
    const Integers threshold = bit_cast<Integers>(entry & fields.test);
    const Vector<Word> cell = choose(less(test, threshold), word, entry) & fields.column;
    const Vector<Real> x = cells.template point<Vector<Real>>(cell, word, fields) * scale;
    const Vector<Real> sample = fields.with_sign(x, word);
    __builtin_memcpy(out + offset, &sample, sizeof(sample));
    return equal_or_at_least(test, threshold, bit_cast<Integers>(cell),
                             Integers{} + static_cast<typename Format::Integer>(tail_first));
  }

  void finish(const Pending<Word>& pending) const {
    alignas(64) std::uint32_t group[kGroupWords];
    for (std::size_t start = 0; start < pending.count; start += kLanes) {
      const std::size_t left = pending.count - start;
      const std::size_t lanes = left < kLanes ? left : kLanes;
      std::uint64_t counters[kLanes] = {};
      for (std::size_t j = 0; j < lanes; ++j) counters[j] = first + pending.offset[start + j];
      chacha_blocks<kSampleRounds>(key, counters, 1, group, lanes);
      for (std::size_t j = 0; j < lanes; ++j) {
        FurtherWords further(key, counters[j], group, static_cast<int>(j));
        const Word word = pending.word[start + j];
        const double x = settle_cell_alone<Format>(table, cells, fields, word, further);
        out[pending.offset[start + j]] = fields.with_sign(static_cast<Real>(x) * scale, word);
      }
    }
  }

  const CellTable& table;
  const std::uint32_t* key;
  std::uint64_t first;
  Real scale;
  Real* out;
  Word tail_first = static_cast<Word>(table.tail_first);
  Cells<Format> cells = Cells<Format>(table);
  CellFields<Format> fields = CellFields<Format>(table);
};

template <typename Format>
void sample_cells(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                  std::size_t count, typename Format::Real scale, typename Format::Real* out) {
  using Word = typename Format::Word;
  if (table.step > 0.0) {
    settle_words<Word>(key, first, count,
                       CellSampler<Format, LatticeCells>{table, key, first, scale, out});
  } else if (FewCells<Format>::kServe && table.column_bits <= FewCells<Format>::kColumnBits) {
    settle_words<Word>(key, first, count,
                       CellSampler<Format, FewCells>{table, key, first, scale, out});
  } else {
    settle_words<Word>(key, first, count,
                       CellSampler<Format, TableCells>{table, key, first, scale, out});
  }
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
