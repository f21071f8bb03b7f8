// Computes: runs of nodes whose points are equally far apart, and which are near these; the nodes
//   between two runs are a stretch without a step.
#include <algorithm>
#include <cmath>

#include "losses/losses.hpp"

namespace psinoise {
namespace {

// Nodes of a lattice, at least, how far from its points they may be, in units of its step.
constexpr std::size_t kLeastRun = 16;
constexpr double kFar = 0.25;

bool near(const LossNodes& nodes, std::size_t k, double step) {
  return std::abs(nodes.loss[k] - nodes.point[k]) <= kFar * step;
}

}  // namespace

std::vector<Stretch> stretches(const LossNodes& nodes) {
  std::vector<Stretch> found;
  std::size_t loose = 0;  // first node that is in no stretch yet
  const auto close = [&](std::size_t end) {
    if (end > loose) found.push_back({loose, end - loose, 0.0, 0.0});
  };
  for (std::size_t k = 0; k + 1 < nodes.count;) {
    const double step = nodes.point[k + 1] - nodes.point[k];
    std::size_t end = k;
    double farthest = 0.0;
    while (end < nodes.count && near(nodes, end, step) &&
           (end == k || nodes.point[end] - nodes.point[end - 1] == step)) {
      farthest = std::max(farthest, std::abs(nodes.loss[end] - nodes.point[end]));
      ++end;
    }
    if (end - k >= kLeastRun) {
      close(k);
      found.push_back({k, end - k, step, farthest});
      loose = end;
    }
    // The last node of a stretch that is too short may begin another.
    k = end - k >= kLeastRun ? end : std::max(k + 1, end > 0 ? end - 1 : 0);
  }
  close(nodes.count);
  return found;
}

}  // namespace psinoise
