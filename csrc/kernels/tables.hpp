// What a compiled law looks like to the kernels: plain views of tables that Python owns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace psinoise {

inline constexpr int kPanelRow = 12;
inline constexpr int kWideLayers = 2048;
inline constexpr int kNarrowLayers = 1024;
// Columns of a band matrix that are eliminated together, and rows beyond its width to work in.
inline constexpr std::size_t kBandBlock = 32;
inline constexpr std::size_t kBandSpare = 64;

// A part of a panel in which a function is not one polynomial: from position `u` of the panel with
// row offset `row` on, the row at offset `after`, in the variable (u - center) * inverse, takes
// over. The first part of a panel starts at minus infinity.
struct Split {
  std::int64_t row;
  double u;
  std::int64_t after;
  double center;
  double inverse;
};

struct Panels {
  const double* rows;           // [count][kPanelRow]
  std::int64_t count;           // panel 0 and 2^bits panels for each exponent
  std::int64_t first_exponent;  // panel 0 is [0, 2^first_exponent)
  std::int64_t bits;            // 3; more for a law that bends sharply
  double limit;                 // right end of the last panel
  std::int64_t split_count;     // 0 but for laws that bend sharply or have kinks
  const Split* splits;          // in ascending order of row and u
  double slope_error;           // of a log density; kernels/quadrature.cpp
};

// Horizontal strips of equal area that cover the upper half density; strip 0 holds the tail.
// An entry is the width of a strip (float64 or float32) whose low bits double as the strip's
// acceptance threshold on the high bits of the position: one load serves both.
template <typename Entry>
struct Ziggurat {
  const Entry* entries;   // [layers]
  const double* heights;  // [layers + 1]: the density at the lower edge of each strip
  double base_edge;       // strip 0 is a rectangle up to here and the tail beyond
  double tail_depth;      // depth of base_edge
};

// A function on panels of equal width from 0 on, so few that they fit in registers; see
// kernels/near_tables.cpp.
inline constexpr int kNearPanels = 16;
inline constexpr int kNearTerms = 11;

struct NearTable {
  double limit;  // 0 where no such table is right
  double width;
  double terms[kNearTerms][kNearPanels];  // of u in [-1, 1], by power
};

// The depth of a point t > 0 is -log P(X > t | X > 0) = -log(2 P(X > t)): 0 at the median, 690 at
// 1e-300, and without bound where probabilities underflow.
struct LawTable {
  Panels log_density;       // log p(t), t >= 0
  Panels log_mills;         // log of P(X > t) / p(t), on the same panels
  Panels tail_quantile;     // log t as a function of the depth of t, from depth 1/2
  Panels central_quantile;  // t / v as a function of v = 1/2 - P(X > t)
  Ziggurat<std::uint64_t> wide;
  Ziggurat<std::uint32_t> narrow;
  const NearTable* near_density;
  const NearTable* near_survival;
  const NearTable* near_quantile;  // as central_quantile
};

inline constexpr int kCellTestBits = 12;
inline constexpr int kNarrowTestBits = 9;
inline constexpr int kNarrowColumnBits = 12;
inline constexpr std::uint64_t kWholeColumn = std::uint64_t{1} << 63;

// A symmetric law that is uniform in each of finitely many cells of |x| (an atom is a cell of width
// 0), by Walker's alias method in integers. Cells from `tail_first` on stand for themselves and for
// copies moved by 1, 2, ... periods, each `exp(-tail_rate)` times as likely as the one before.
// An entry has, in the place of a word's test bits, a threshold, and in that of its column the cell
// that is taken from it on; at the threshold itself `fractions` decides, in units of 2^-52, unless
// the whole column is that cell's (kWholeColumn; the threshold is 0). With a `step` cell k is
// [(k - 1/2) step, (k + 1/2) step], cell 0 that around 0, and the tables of cells are not read.
// Narrow entries, for words of 32 bits, have the first bits of thresholds; there are none where
// columns are more than 2^kNarrowColumnBits, or float32 does not hold the cells.
struct CellTable {
  const std::uint64_t* entries;    // [2^column_bits]
  const std::uint64_t* fractions;  // [2^column_bits]
  const double (*cells)[2];        // [2^column_bits]: start and width
  const std::uint32_t* narrow_entries;
  const float (*narrow_cells)[2];
  double step;  // 0 where the tables say what the cells are
  int column_bits;
  std::uint64_t tail_first;  // the number of cells where there is no tail
  double tail_rate;
  double tail_period;
};

// Numbers in ascending order, not negative, with a NaN behind them. Those whose bits, less those of
// the smallest positive one and shifted, are b: the first of them, and in the upper half the first
// one after them, are at `ranges[b]`; numbers out of range belong to the ends.
struct SortedKeys {
  const double* keys;
  const std::uint64_t* ranges;
  double first;  // the smallest positive key
  double last;
  int shift;
};

// The law of CellTable as it is evaluated: cell k of |x| is from edge k to edge k + 1, the last
// `repeated` of them have copies.
struct CellLaw {
  std::size_t cells;
  SortedKeys edges;             // [cells + 1]
  SortedKeys below;             // [cells + 1]: P(0 < |X| <= edge)
  SortedKeys tails;             // [cells + 1]: P(|X| > edge), the last edge first
  const double* above;          // [cells + 1]: the same, the first edge first, and then 0
  const double* masses;         // [cells], and then 0
  const double* log_densities;  // [cells + 1], that beyond the support last
  double atom;                  // P(X = 0)
  std::size_t repeated;         // 0 where there is no tail
  double rate;
  double period;
  bool right_closed;  // whether an edge belongs to the cell that it ends
};

// What follows the listed integers of a lattice law; kernels/lattice.cpp has the meaning.
enum class LatticeTail : std::int32_t { none, translate, dilate, blocks, rest };

// A law of integers, symmetric about 0, by Walker's alias method in integers. The low bits of a
// word (draw_mask, which includes column_mask) choose |K| among the listed integers 0, 1, ...; the
// top bit is the sign. An entry is a threshold, in the place of the bits above the column, and in
// the column's place the integer that is taken from it on. The integers from tail_first on stand
// for themselves and for their copies.
struct LatticeTable {
  const std::uint64_t* entries;  // [column_mask + 1]
  const std::uint32_t* heads;    // the same with the upper bits of thresholds
  int column_bits;
  int lower_bits;           // of positions and thresholds that heads and first words do not have
  std::uint32_t head_mask;  // of first words: the other bits of a draw
  std::uint64_t column_mask;
  std::uint64_t draw_mask;
  std::uint64_t tail_first;  // column_mask + 1 where there is no tail
  LatticeTail tail;
  std::uint64_t repeated;    // the period of a translated tail
  std::uint64_t ratio;       // a further copy, or one in a block, has probability ratio / 2^64
  const LatticeTable* rest;  // of which the last integer is a draw, where that is its meaning
};

// A law of integers as a sum of independent digits, each times 2^shift: the first one by 0. Where
// there are several none has copies, and the sum stays within 2^60.
struct LatticeDigit {
  LatticeTable table;
  int shift;
};

struct LatticeSum {
  const LatticeDigit* digits;
  std::size_t count;
};

// Nodes of a collocation panel, and the coefficients of a solution there that are pairs.
inline constexpr int kNodes = 20;
inline constexpr int kPairTerms = 5;

// A Riccati equation on `count` panels that follow each other; see kernels/riccati.cpp.
struct RiccatiProblem {
  std::size_t count;
  const double* half;          // [count]: half widths
  const double* potential_hi;  // [count][kNodes]: Q at the nodes
  const double* potential_lo;
  const double* cost;   // [count][kNodes]
  const double* guess;  // [count][kNodes]: r, NaN where nothing is known
  const double* start;  // [3]: r, m and s at the right end of the last panel
};

struct RiccatiSolution {
  double* decay_hi;  // [count][kNodes], as all of them
  double* decay_lo;
  double* mills_hi;
  double* mills_lo;
  double* tail_cost_hi;
  double* tail_cost_lo;
};

// A ground state as polynomials; see kernels/ground_state.cpp.
struct GroundStatePanels {
  std::size_t count;
  const double* edges;         // [count + 1]
  const double* center;        // [count]
  const double* inverse_unit;  // [count]: powers of two
  const double* integral_hi;   // [count][kNodes + 1]
  const double* integral_lo;   // [count][kPairTerms]
  const double* mills;         // [count][kNodes]
};

// One use of a mechanism: noise scale, Poisson sampling rate q, and how far the sampled record
// moves the query under both hypotheses, P = (1 - q) p + q T_a p and Q = (1 - q) p + q T_b p.
struct LossPair {
  double scale;
  double shift_p;
  double shift_q;
  double rate;
};

// How far a log ratio of close neighbors may be off: those for which a difference of logs would be
// off by more (kernels/close_ratios.hpp); 0 for others. Of the least losses squares would
// underflow.
inline double close_error(const Panels& log_density, double scale, double shift, double rate) {
  const double distance = (shift < 0.0 ? -shift : shift) / scale;
  const double error = distance * log_density.slope_error;
  const bool some = distance >= 0x1p-200 && rate * distance >= 0x1p-400;
  const bool close = some && distance <= 0x1p-14 && error <= 0x1p-47;
  return close ? error : 0.0;
}

// The loss along a run on which it rises, and its slope.
struct LossSamples {
  const double* x;
  const double* loss;
  const double* slope;
  std::size_t count;
};

// A rule of Gauss and Legendre on [-1, 1], of at most 96 points, and the weights that give the last
// two Legendre coefficients of the polynomial through values at its points.
struct PanelRule {
  std::size_t order;
  const double* points;  // [order]
  const double* last;    // [order][2]
};

struct PanelVerdict {
  bool matters;
  bool lost;  // the density of P is lost in the rounding of log Q and the loss
  bool fine;
  bool flat;     // the loss is constant to rounding
  int halvings;  // to come nearer to fine, at once
};

// A real transform of 2 length points, length = rows * columns (one column if it is short), and how
// many doubles its table of roots and the room to work in have; see math/fft.hpp.
struct FftShape {
  std::size_t length;
  std::size_t rows;
  std::size_t columns;
  std::size_t roots;
  std::size_t work;
};

enum class Quantity : std::int32_t { pdf, logpdf, cdf, ccdf, logcdf, logccdf };

// Zeros on both sides of the second sequence of a sum of products.
inline constexpr std::size_t kSumPadding = 32;

}  // namespace psinoise
