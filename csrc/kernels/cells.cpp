// Samples of a symmetric law with a piecewise constant density, atoms and a geometric tail.
//
// Computes: out[i] = scale * Z where element first + i of the stream decides Z.
// Method: Walker's alias method. One word gives, from the low end, column (b bits), sign, test (12
//   bits) and position (51 - b bits), all disjoint. The test picks one of the two cells of the
//   column; when it equals the threshold, 52 bits of the next word decide. The cells of the tail
//   add a geometric number of periods, the integer part of an exponential variate, so the tail has
//   no end. Whatever needs more than the first word is collected and finished sixteen at a time.
//   Cells are read from tables, or are those of a lattice, which needs one look-up instead of
//   two.
// Error: cell probabilities are multiples of 2^-(64 + b), positions odd multiples of 2^-(52 - b) of
//   the width; x is the rounded sum of start, position and periods. Tail counts have the relative
//   rounding of one division.
// Determinism: integers, and IEEE operations in a fixed order: the same bits at every level and
//   from the NumPy twin (psinoise/reference/cells.py). An atom at 0 gives +0.
// References: Walker, ACM Trans. Math. Softw. 3(3), 1977; Vose, IEEE Trans. Softw. Eng. 17(9),
//   1991.
#include "base/look_up.hpp"
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/settle.hpp"
#include "kernels/variates.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Word = std::uint64_t;
using Words = Vector<Word>;
using Integers = Vector<std::int64_t>;
using Doubles = Vector<double>;

inline constexpr std::size_t kWidth = kVectorSize<Word>;
inline constexpr Word kTestMask = (Word{1} << kCellTestBits) - 1;
inline constexpr Word kSignBit = Word{1} << 63;
// Larger than any cell, also as a number with a sign.
inline constexpr Word kUndecided = Word{1} << 62;

// How the words of one table are read; a word is a number or a vector. Shifts are of the type of
// words, so that they are loaded where they are needed.
struct Fields {
  explicit Fields(const CellTable& table)
      : column((Word{1} << table.column_bits) - 1),
        test(kTestMask << (table.column_bits + 1)),
        sign_shift(static_cast<Word>(63 - table.column_bits)),
        position(~((Word{2} << table.column_bits) - 1)),
        half((Word{1} << table.column_bits) | 0x3ff0000000000000u) {}

  // (2 k + 1) 2^-(52 - b) for the high 51 - b bits k: strictly inside (0, 1), exact.
  template <typename Reals, typename W>
  Reals position_of(W word) const {
    return bit_cast<Reals>(((word >> 12) & position) | half) - 1.0;
  }
  template <typename Reals, typename W>
  Reals with_sign(Reals x, W word) const {
    // Adding +0 turns -0 into +0 and changes nothing else.
    return bit_cast<Reals>(bit_cast<W>(x) ^ ((word << sign_shift) & kSignBit)) + 0.0;
  }

  Word column;
  Word test;
  Word sign_shift;
  Word position;
  Word half;
};

// Entries in memory.
struct Entries {
  explicit Entries(const CellTable& table)
      : entries(table.entries), column((Word{1} << table.column_bits) - 1) {}

  Words entry_of(const Word* words, Words) const { return look_up<Word>(entries, words, column); }

  const Word* entries;
  Word column;
};

// The point of a cell, in units of the scale: number and position side by side in one double, at
// the exponent of the number of columns, which is taken off exactly with the half of a cell.
struct LatticeCells : Entries {
  explicit LatticeCells(const CellTable& table)
      : Entries(table),
        number_shift(static_cast<Word>(52 - table.column_bits)),
        position_shift(static_cast<Word>(12 + table.column_bits)),
        base(static_cast<Word>(1023 + table.column_bits) << 52 | 1),
        offset(static_cast<double>(Word{1} << table.column_bits) + 0.5),
        step(table.step) {}

  template <typename Reals, typename W>
  Reals point(W cell, W word, const Fields&) const {
    const W place = (cell << number_shift) | (word >> position_shift) | base;
    return (bit_cast<Reals>(place) - offset) * step;
  }

  Word number_shift;
  Word position_shift;
  Word base;
  double offset;
  double step;
};

// Cells so few that two registers hold a table of them.
struct FewCells {
  static constexpr bool kServe = 2 * kWidth == 16;
  static constexpr int kColumnBits = 4;
  static constexpr std::size_t kCells = std::size_t{1} << kColumnBits;

  explicit FewCells(const CellTable& table) {
    const std::size_t columns = std::size_t{1} << table.column_bits;
    for (std::size_t k = 0; k < columns; ++k) {
      starts[k] = table.cells[k][0];
      widths[k] = table.cells[k][1];
    }
    // Again and again, so that the four lowest bits of a word are a place.
    for (std::size_t k = 0; k < kCells; ++k) entries[k] = double_from(table.entries[k % columns]);
  }

  Words entry_of(const Word*, Words word) const {
    return bit_cast<Words>(look_up_16(entries, bit_cast<Integers>(word & (kCells - 1))));
  }
  template <typename Reals, typename W>
  Reals point(W cell, W word, const Fields& fields) const {
    const Reals position = fields.template position_of<Reals>(word);
    if constexpr (sizeof(W) == sizeof(Word)) {
      return starts[cell] + widths[cell] * position;
    } else {
      const Integers place = bit_cast<Integers>(cell);
      return look_up_16(starts, place) + look_up_16(widths, place) * position;
    }
  }

  alignas(64) double entries[kCells];
  alignas(64) double starts[kCells] = {};
  alignas(64) double widths[kCells] = {};
};

struct TableCells : Entries {
  explicit TableCells(const CellTable& table) : Entries(table), cells(table.cells) {}

  template <typename Reals, typename W>
  Reals point(W cell, W word, const Fields& fields) const {
    const Reals position = fields.template position_of<Reals>(word);
    if constexpr (sizeof(W) == sizeof(Word)) {
      return cells[cell][0] + cells[cell][1] * position;
    } else {
      const LookedUpPairs found = look_up_pairs(cells, bit_cast<Integers>(cell));
      return found.first + found.second * position;
    }
  }

  const double (*cells)[2];
};

// An element whose first word does not decide.
template <typename Cells>
double settle_alone(const CellTable& table, const Cells& cells, const Fields& fields, Word word,
                    FurtherWords& further) {
  const Word column = word & fields.column;
  const Word entry = table.entries[column];
  const Word test = word & fields.test;
  const Word threshold = entry & fields.test;
  Word cell = test < threshold ? column : entry & fields.column;
  if (test == threshold && (entry & kWholeColumn) == 0) {
    cell = (further.next() >> 12) < table.fractions[column] ? column : entry & fields.column;
  }
  double x = cells.template point<double>(cell, word, fields);
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

template <typename Cells, typename Real>
struct Sampler {
  typedef Real Reals __attribute__((vector_size(kWidth * sizeof(Real))));
  static constexpr bool kSingly = PSINOISE_VECTOR_BYTES == 16;

  // Turns one word into a sample; true if it does not decide.
  bool settle_one(Word word, std::size_t offset) const {
    const Word entry = table.entries[word & fields.column];
    const Word test = word & fields.test;
    const Word threshold = entry & fields.test;
    const Word cell = (test < threshold ? word : entry) & fields.column;
    const double x = cells.template point<double>(cell, word, fields) * scale;
    out[offset] = static_cast<Real>(fields.with_sign(x, word));
    return test == threshold || cell >= tail_first;
  }

  // The same for a vector of words, with a bit for each.
  unsigned settle(const Word* from, std::size_t offset) const {
    Words word;
    __builtin_memcpy(&word, from, sizeof(word));
    const Words entry = cells.entry_of(from, word);
    const Integers test = bit_cast<Integers>(word & fields.test);
    const Integers threshold = bit_cast<Integers>(entry & fields.test);
    const Words cell = (test < threshold ? word : entry) & fields.column;
    const Doubles x = cells.template point<Doubles>(cell, word, fields) * scale;
    const Reals sample = __builtin_convertvector(fields.with_sign(x, word), Reals);
    __builtin_memcpy(out + offset, &sample, sizeof(sample));
    const Words rank = test == threshold ? Words{} + kUndecided : cell;
    return at_least(rank, Words{} + tail_first);
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
        const double x = settle_alone(table, cells, fields, word, further) * scale;
        out[pending.offset[start + j]] = static_cast<Real>(fields.with_sign(x, word));
      }
    }
  }

  const CellTable& table;
  const std::uint32_t* key;
  std::uint64_t first;
  double scale;
  Real* out;
  Word tail_first = table.tail_first;
  Cells cells = Cells(table);
  Fields fields = Fields(table);
};

template <typename Real>
void sample_cells(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                  std::size_t count, double scale, Real* out) {
  if (table.step > 0.0) {
    settle_words<Word>(key, first, count,
                       Sampler<LatticeCells, Real>{table, key, first, scale, out});
  } else if (FewCells::kServe && table.column_bits <= FewCells::kColumnBits) {
    settle_words<Word>(key, first, count, Sampler<FewCells, Real>{table, key, first, scale, out});
  } else {
    settle_words<Word>(key, first, count, Sampler<TableCells, Real>{table, key, first, scale, out});
  }
}

}  // namespace

void sample_cells_float64(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, double* out) {
  sample_cells(table, key, first, count, scale, out);
}

void sample_cells_float32(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, float* out) {
  sample_cells(table, key, first, count, scale, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
