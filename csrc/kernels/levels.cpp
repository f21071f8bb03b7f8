// Where the privacy loss passes given levels.
//
// Computes: for each of rising levels an output at which the loss is that level, on a run of
//   samples (x, loss, slope of the loss) on which the loss rises.
// Method: inverse cubic Hermite interpolation between the samples around the level, then Newton's
//   method with the slope of that cubic, or a bisection where it leaves the bracket or is slow, as
//   next to a turning point of the loss.
// Error: of the loss, at most `tolerance` where rounding allows it; the largest is returned. An
//   infinite error says that the loss could not be evaluated.
// Edge values: levels outside of the samples give the nearest end, with their distance as the
//   error.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "kernels/loss.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr int kMostPolishing = 64;

inline double clamp(double x, double low, double high) {
  return x < low ? low : (x > high ? high : x);
}

struct Guess {
  double x;
  double low;
  double high;
  double slope;  // of the loss
  bool rising;   // from low to high
};

// Slopes that do not belong to a monotone cubic are replaced by the chord.
inline Guess hermite(const LossSamples& samples, std::size_t k, double level) {
  const double x = samples.x[k];
  const double width = samples.x[k + 1] - x;
  const double rise = samples.loss[k + 1] - samples.loss[k];
  const double tangent = rise / width;
  double left = tangent / samples.slope[k];
  double right = tangent / samples.slope[k + 1];
  const bool sane = left > 0.0 && left < 3.0 && right > 0.0 && right < 3.0;
  left = sane ? left : 1.0;
  right = sane ? right : 1.0;
  const double share = (level - samples.loss[k]) / rise;
  const double u = share >= 0.0 ? (share <= 1.0 ? share : 1.0) : 0.0;
  const double v = 1.0 - u;
  const double place = u * u * (3.0 - 2.0 * u) + u * v * (v * left - u * right);
  const double low = width > 0.0 ? x : x + width;
  const double high = width > 0.0 ? x + width : x;
  return {clamp(x + place * width, low, high), low, high, tangent / (left + (right - left) * place),
          width > 0.0};
}

}  // namespace

double level_points(const LawTable& law, const LossPair& pair, const LossSamples& samples,
                    const double* levels, std::size_t count, double tolerance, double* points) {
  double largest = 0.0;
  std::size_t k = 0;
  for (std::size_t start = 0; start < count; start += kTileNodes) {
    const std::size_t size = count - start < kTileNodes ? count - start : kTileNodes;
    Guess guess[kTileNodes];
    double error[kTileNodes];
    LossNodes nodes;
    for (std::size_t j = 0; j < size; ++j) {
      const double level = levels[start + j];
      while (k + 2 < samples.count && samples.loss[k + 1] <= level) ++k;
      guess[j] = hermite(samples, k, level);
      nodes.x[j] = guess[j].x;
      points[start + j] = guess[j].x;
      error[j] = __builtin_inf();
    }
    bool going = true;
    for (int polishing = 0; polishing < kMostPolishing && going; ++polishing) {
      double log_p[kTileNodes];
      double log_q[kTileNodes];
      base_densities(law, pair.scale, nodes, size);
      mixture_losses(law, pair, pair.shift_p, nodes, size, log_p);
      mixture_losses(law, pair, pair.shift_q, nodes, size, log_q);
      going = false;
      for (std::size_t j = 0; j < size; ++j) {
        const double miss = (log_p[j] - log_q[j]) - levels[start + j];
        const double size_of_miss = __builtin_fabs(miss);
        const double x = nodes.x[j];
        const bool slow = !(size_of_miss <= 0.5 * error[j]);
        if (size_of_miss < error[j]) {
          error[j] = size_of_miss;
          points[start + j] = x;
        }
        if (!(error[j] > tolerance)) continue;
        ((miss < 0.0) == guess[j].rising ? guess[j].low : guess[j].high) = x;
        const double newton = x - miss / guess[j].slope;
        const bool inside = newton > guess[j].low && newton < guess[j].high;
        nodes.x[j] = inside && !slow ? newton : 0.5 * (guess[j].low + guess[j].high);
        going = going || nodes.x[j] != x;
      }
    }
    for (std::size_t j = 0; j < size; ++j) largest = error[j] > largest ? error[j] : largest;
  }
  return largest;
}

}  // namespace psinoise::PSINOISE_LEVEL
