// Computes: the bins of losses.hpp. Adjoining panels on which the loss rises, or falls, are a
// run;
//   a run is cut where the loss has the levels, and into pieces on which log p varies little.
// Regions: panels allow log p to vary by 8, and half as much again between their nodes; a sixteenth
//   of that is the 3/4 that kernels/pieces.cpp asks for.
// Error: that of kernels/pieces.cpp and kernels/levels.cpp; sums are compensated.
#include <algorithm>
#include <vector>

#include "dispatch/dispatch.hpp"
#include "losses/losses.hpp"

namespace psinoise {
namespace {

constexpr std::size_t kPiecesPerPanel = 16;

// One copy of the samples of panels, which share their ends.
std::vector<double> joined(const double* values, const PanelSamples& panels, std::size_t begin,
                           std::size_t end) {
  std::vector<double> out;
  out.reserve((end - begin) * (panels.samples - 1) + 1);
  for (std::size_t k = begin; k < end; ++k) {
    const double* row = values + k * panels.samples;
    out.insert(out.end(), row, row + panels.samples - 1);
  }
  out.push_back(values[end * panels.samples - 1]);
  return out;
}

// Adds parts to their bins: those of one bin that follow each other are summed with what rounding
// loses, so that the error of a bin does not grow with the number of its pieces.
void add_runs(const std::vector<std::size_t>& bins, const std::vector<double>& parts, double* out) {
  double sum = 0.0;
  double lost = 0.0;
  for (std::size_t k = 0; k < bins.size(); ++k) {
    const double total = sum + parts[k];
    const double part = total - sum;
    lost += (sum - (total - part)) + (parts[k] - part);
    sum = total;
    if (k + 1 == bins.size() || bins[k + 1] != bins[k]) {
      out[bins[k]] += sum + lost;
      sum = lost = 0.0;
    }
  }
}

class Cutter {
 public:
  Cutter(const LawTable& law, const LossPair& pair, const PanelSamples& panels,
         const double* levels, std::size_t count, double tolerance)
      : law_(law),
        pair_(pair),
        panels_(panels),
        levels_(levels),
        count_(count),
        tolerance_(tolerance) {}

  double error() const { return error_; }
  const std::vector<double>& edges() const { return edges_; }
  const std::vector<std::size_t>& bins() const { return bins_; }

  bool rises(std::size_t k) const {
    const double* row = panels_.loss + k * panels_.samples;
    return row[panels_.samples - 1] >= row[0];
  }

  // The end of the run that begins with a panel.
  std::size_t run_end(std::size_t begin) const {
    std::size_t k = begin + 1;
    while (k < panels_.panels && rises(k) == rises(begin) &&
           panels_.x[k * panels_.samples] == panels_.x[k * panels_.samples - 1]) {
      ++k;
    }
    return k;
  }

  // The pieces of a run, and the bin of each.
  void cut(std::size_t begin, std::size_t end) {
    edges_.clear();
    for (std::size_t k = begin; k < end; ++k) {
      const double left = panels_.x[k * panels_.samples];
      const double width = panels_.x[(k + 1) * panels_.samples - 1] - left;
      for (std::size_t i = 0; i < kPiecesPerPanel; ++i) {
        edges_.push_back(left + width * (static_cast<double>(i) / kPiecesPerPanel));
      }
    }
    edges_.push_back(panels_.x[end * panels_.samples - 1]);
    const double first = panels_.loss[begin * panels_.samples];
    const double last = panels_.loss[end * panels_.samples - 1];
    const bool rising = last >= first;
    const double* low = std::upper_bound(levels_, levels_ + count_, rising ? first : last);
    const double* high = std::lower_bound(low, levels_ + count_, rising ? last : first);
    const std::size_t below = static_cast<std::size_t>(low - levels_);
    const std::vector<double> points = level_points(begin, end, rising, low, high);
    std::vector<double> merged(edges_.size() + points.size());
    bins_.clear();
    // A level that an edge hits begins the next piece.
    for (std::size_t i = 0, j = 0; i + j < merged.size();) {
      const bool edge = j == points.size() || (i < edges_.size() && edges_[i] <= points[j]);
      merged[i + j] = edge ? edges_[i] : points[j];
      (edge ? i : j) += 1;
      const std::size_t above = rising ? below + j : below + points.size() - j;
      bins_.push_back(std::min(above > 0 ? above - 1 : 0, count_ - 2));
    }
    bins_.pop_back();
    edges_.swap(merged);
  }

 private:
  // Where a run has levels, from left to right.
  std::vector<double> level_points(std::size_t begin, std::size_t end, bool rising,
                                   const double* low, const double* high) {
    std::vector<double> points(high > low ? static_cast<std::size_t>(high - low) : 0);
    if (points.empty()) return points;
    std::vector<double> x = joined(panels_.x, panels_, begin, end);
    std::vector<double> loss = joined(panels_.loss, panels_, begin, end);
    std::vector<double> slope = joined(panels_.slope, panels_, begin, end);
    if (!rising) {
      for (std::vector<double>* values : {&x, &loss, &slope}) {
        std::reverse(values->begin(), values->end());
      }
    }
    const LossSamples samples = {x.data(), loss.data(), slope.data(), x.size()};
    error_ = std::max(error_, kernels().level_points(law_, pair_, samples, low, points.size(),
                                                     tolerance_, points.data()));
    // Rounding may swap neighbors.
    std::sort(points.begin(), points.end());
    return points;
  }

  const LawTable& law_;
  const LossPair& pair_;
  const PanelSamples& panels_;
  const double* levels_;
  std::size_t count_;
  double tolerance_;
  double error_ = 0.0;
  std::vector<double> edges_;
  std::vector<std::size_t> bins_;
};

}  // namespace

double fill_bins(const LawTable& law, const LossPair& pair, const PanelSamples& panels,
                 const double* levels, std::size_t count, const Tilt& tilt, double tolerance,
                 double* mass, double* excess) {
  Cutter cutter(law, pair, panels, levels, count, tolerance);
  std::vector<double> level;
  std::vector<double> part;
  std::vector<double> over;
  for (std::size_t begin = 0; begin < panels.panels;) {
    const std::size_t end = cutter.run_end(begin);
    cutter.cut(begin, end);
    const std::vector<std::size_t>& bins = cutter.bins();
    level.resize(bins.size());
    part.resize(bins.size());
    over.resize(bins.size());
    for (std::size_t k = 0; k < bins.size(); ++k) level[k] = levels[bins[k]];
    kernels().piece_masses(law, pair, cutter.edges().data(), level.data(), bins.size(), tilt.tilt,
                           tilt.log_norm, part.data(), over.data());
    add_runs(bins, part, mass);
    add_runs(bins, over, excess);
    begin = end;
  }
  return cutter.error();
}

}  // namespace psinoise
