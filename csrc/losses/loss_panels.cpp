// Computes: how finely panels must be cut; and the panels of losses.hpp, round by round: all
//   that are not fine are cut into equal pieces, which share their ends to the last bit.
// Error and criteria: kernels/quadrature.cpp.
// Edge values: after 60 rounds a panel counts as fine. Narrow, and not cut, is a panel that is not
//   fine and has no more than 2^16 outputs (a shift that is large beside the noise takes digits
//   from the distance to its center), or where the density of P is lost in the rounding of log Q
//   and the loss, whose sum its logarithm is.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "dispatch/dispatch.hpp"
#include "losses/losses.hpp"

namespace psinoise {
namespace {

constexpr int kMostRounds = 60;
// Of the outputs of a panel, the width of the narrowest that is cut.
constexpr double kNarrowest = 0x1p-36;
// Nodes that carry less than this of the tilted mass, as a logarithm, do not count.
constexpr double kNegligible = -40.0;
// Range of the complex exponent over half a panel that 16 nodes integrate to 1e-15.
constexpr double kLargestTilt = 14.0;
constexpr double kLargestPhase = 12.0;

class Collector {
 public:
  Collector(std::size_t order, LossPanels& out) : order_(order), out_(out) {}

  void keep(double left, double right, const double* base, const double* loss, bool flat,
            bool narrow) {
    out_.left.push_back(left);
    out_.right.push_back(right);
    out_.base.insert(out_.base.end(), base, base + order_);
    out_.loss.insert(out_.loss.end(), loss, loss + order_);
    out_.flat.push_back(flat ? 1 : 0);
    out_.narrow.push_back(narrow ? 1 : 0);
  }

  void sort() {
    std::vector<std::size_t> order(out_.left.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return out_.left[a] < out_.left[b]; });
    LossPanels sorted;
    Collector into(order_, sorted);
    for (const std::size_t k : order) {
      into.keep(out_.left[k], out_.right[k], &out_.base[order_ * k], &out_.loss[order_ * k],
                out_.flat[k] != 0, out_.narrow[k] != 0);
    }
    std::swap(out_, sorted);
  }

 private:
  std::size_t order_;
  LossPanels& out_;
};

}  // namespace

bool make_panels(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                 const double* edges, std::size_t count, double floor, LossPanels& out) {
  if (count < 2) return true;
  std::vector<double> left(edges, edges + count - 1);
  std::vector<double> right(edges + 1, edges + count);
  Collector panels(rule.order, out);
  for (int round = 1; !left.empty(); ++round) {
    std::vector<double> base(left.size() * rule.order);
    std::vector<double> loss(base.size());
    std::vector<PanelVerdict> verdicts(left.size());
    const bool inside =
        kernels().panel_samples(law, pair, rule, left.data(), right.data(), left.size(), floor,
                                base.data(), loss.data(), verdicts.data());
    if (!inside) return false;
    std::vector<double> next_left;
    std::vector<double> next_right;
    for (std::size_t j = 0; j < left.size(); ++j) {
      const PanelVerdict& verdict = verdicts[j];
      if (!verdict.matters) continue;
      const bool done = !verdict.lost && (verdict.fine || round == kMostRounds);
      const double farthest = std::max(std::fabs(left[j]), std::fabs(right[j]));
      if (done || verdict.lost || right[j] - left[j] <= kNarrowest * farthest) {
        panels.keep(left[j], right[j], &base[j * rule.order], &loss[j * rule.order], verdict.flat,
                    !done);
        continue;
      }
      const int pieces = 1 << verdict.halvings;
      const double width = (right[j] - left[j]) / pieces;
      for (int k = 0; k < pieces; ++k) {
        next_left.push_back(left[j] + k * width);
        next_right.push_back(k + 1 < pieces ? left[j] + (k + 1) * width : right[j]);
      }
    }
    left.swap(next_left);
    right.swap(next_right);
  }
  panels.sort();
  return true;
}

void panel_pieces(const PanelValues& values, double c, double value, double frequency,
                  std::int64_t* out) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < values.panels; ++k) {
    double least = infinity;
    double most = kNegligible - 10.0;
    double lowest = infinity;
    double highest = -infinity;
    for (std::size_t j = k * values.order; j < (k + 1) * values.order; ++j) {
      const double loss = values.loss[j];
      const double tilted = values.log_mass[j] + (c * loss - value);
      least = std::min(least, std::max(tilted, kNegligible - 10.0));
      most = std::max(most, tilted);
      if (tilted > kNegligible) {
        lowest = std::min(lowest, loss);
        highest = std::max(highest, loss);
      }
    }
    double need = 1.0;
    if (most > kNegligible) {
      need =
          std::max((most - least) / kLargestTilt, (highest - lowest) * frequency / kLargestPhase);
    }
    out[k] = static_cast<std::int64_t>(std::ceil(std::clamp(need, 1.0, 0x1p40)));
  }
}

}  // namespace psinoise
