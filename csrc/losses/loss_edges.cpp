// Computes: edges of bins: every node where the tilted mass lies, few where there is next to none.
// Method: the bias of both bounds (psinoise/accounting/compose/frequencies/lattice.py) is a sum
// over bins of
//   mass times width squared, while t widths are few, and in any case no more than that times e to
//   them, t the tilt, so a bin that holds little mass may be wide. Blocks of 2^4 nodes
//   share one width, which divides them; a block is as fine as the finest part that reaches into it
//   or next to it. Aligned blocks that allow it are one bin, of up to 2^8 nodes.
// Error: any edges give bounds; what is chosen here decides how close they come.
#include <algorithm>
#include <cmath>

#include "losses/losses.hpp"

namespace psinoise {
namespace {

constexpr int kBlock = 4;
constexpr int kWidest = 8;
// What all wide bins together may add to the bias, as a share, if each adds all that it may; they
// add a tenth of that.
constexpr double kShare = 1.0;
// Where bins become wider the lower bound loses mass times width, which is little beside the bias
// of one width if (t + 1) times that is more than this, and else where masses are so much smaller.
constexpr double kSteep = 0.005;
// Tilts change by no more than e to this over a bin.
constexpr double kLargestExponent = 40.0;

// The node at or below a loss, give or take its rounding.
std::int64_t node_below(const Lattice& lattice, double loss) {
  return static_cast<std::int64_t>(std::floor((loss - lattice.offset) / lattice.step));
}

// The width of the bins from some block on, all of them aligned: `power` has the largest of each
// block, counted from one that begins a bin of 2^kWidest.
int widest_at(const std::vector<int>& power, std::size_t block) {
  for (int wide = power[block]; wide > kBlock; --wide) {
    const std::size_t blocks = std::size_t{1} << (wide - kBlock);
    const auto from = power.begin() + static_cast<std::ptrdiff_t>(block);
    const auto finer = [wide](int other) { return other < wide; };
    if (block % blocks == 0 &&
        std::none_of(from, from + static_cast<std::ptrdiff_t>(blocks), finer))
      return wide;
  }
  return std::min(power[block], kBlock);
}

}  // namespace

std::vector<std::int64_t> graded_edges(const LossParts& parts, const Lattice& lattice,
                                       double rounding, double tilt, double log_norm) {
  double low = parts.lowest[0];
  double high = parts.highest[0];
  for (std::size_t k = 1; k < parts.count; ++k) {
    low = std::min(low, parts.lowest[k]);
    high = std::max(high, parts.highest[k]);
  }
  // A loss that is a node but for rounding begins a bin there.
  const std::int64_t first = node_below(lattice, low + rounding);
  const std::int64_t last = std::max(node_below(lattice, high + rounding) + 1, first + 2);
  // Whole bins of the largest width.
  constexpr std::int64_t blocks = std::int64_t{1} << (kWidest - kBlock);
  const std::int64_t begin = (first >> kWidest) * blocks;
  const std::int64_t end = ((last >> kWidest) + 1) * blocks;
  const double share = kShare * std::min((tilt + 1.0) * lattice.step / kSteep, 1.0);
  const double rise = (tilt + 1.0) * lattice.step / std::log(2.0);
  const double room = std::max(kLargestExponent / ((tilt + 1.0) * lattice.step), 1.0);
  const int widest = std::min(kWidest, static_cast<int>(std::floor(std::log2(room))));
  std::vector<int> power(static_cast<std::size_t>(end - begin), widest);
  for (std::size_t k = 0; k < parts.count; ++k) {
    // The widest power of two with mass * width^2 e^{t (width - 1)} at most the part's own part of
    // the share.
    const double exponent = parts.log_mass[k] + tilt * parts.highest[k] - log_norm;
    const double ratio = std::log2(share / static_cast<double>(parts.count)) -
                         std::max(exponent / std::log(2.0), -997.0);
    int wide = widest;
    while (wide > 0 && 2.0 * wide + rise * (std::exp2(wide) - 1.0) > ratio) --wide;
    const std::int64_t from = (node_below(lattice, parts.lowest[k]) >> kBlock) - 1;
    const std::int64_t to = (node_below(lattice, parts.highest[k]) >> kBlock) + 1;
    for (std::int64_t b = std::max(from, begin); b <= std::min(to, end - 1); ++b) {
      int& here = power[static_cast<std::size_t>(b - begin)];
      here = std::min(here, wide);
    }
  }
  std::vector<std::int64_t> edges = {first};
  for (std::size_t b = 0; b < power.size();) {
    const int wide = widest_at(power, b);
    const std::size_t blocks = std::size_t{1} << std::max(wide - kBlock, 0);
    std::int64_t at = (begin + static_cast<std::int64_t>(b)) * (std::int64_t{1} << kBlock);
    for (b += blocks; at < (begin + static_cast<std::int64_t>(b)) * (std::int64_t{1} << kBlock);
         at += std::int64_t{1} << wide) {
      if (at > first && at < last) edges.push_back(at);
    }
  }
  edges.push_back(last);
  return edges;
}

}  // namespace psinoise
