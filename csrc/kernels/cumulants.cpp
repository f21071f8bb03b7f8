// Moments of a tilted privacy loss over quadrature nodes, and log sum m_j exp(s k_j).
//
// Computes: with g(x) = exp(x) - 1 - x and the tilted masses P exp(c L),
//   excess = sum of P g(c L) + c drift - lost, which is E exp(c L) - 1,
//   mean = (sum of P L (exp(c L) - 1) + drift) / (1 + excess), and
//   square = sum of P exp(c L) (L - mean)^2;  psinoise/accounting/loss/measure.py says why.
// Regions: |c L| <= 1/20 by the series of g, above by subtraction.
// Error: relative (24 + count / 128) u of each sum of positive terms; terms within 40 ulp.
// Edge values: where the largest exponent `top` is above 709 the sums overflow to infinity, and the
//   caller uses other formulas.
#include <cstddef>
#include <cstdint>

#include "kernels/level_kernels.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kTile = 128;
inline constexpr std::size_t kLanes = 8;
inline constexpr double kSeries = 0.05;

// exp(x) - 1 - x for |x| <= 1/20: the first omitted term is x^11 / 11!.
inline double second_order(double x) {
  double sum = 1.0;
  for (int k = 10; k >= 3; --k) sum = 1.0 + sum * x * (1.0 / k);
  return 0.5 * x * x * sum;
}

inline double lane_sum(const double lanes[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace

void tilted_moments(const double* log_mass, const double* mass, const double* loss,
                    std::size_t count, double c, double drift, double lost, double* tilted,
                    double out[4]) {
  double top = -__builtin_inf();
  double second = 0.0;
  double first = 0.0;
  for (std::size_t start = 0; start < count; start += kTile) {
    const std::size_t size = count - start < kTile ? count - start : kTile;
    double second_terms[kTile] = {};
    double first_terms[kTile] = {};
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t j = start + i;
      const double x = c * loss[j];
      const double exponent = log_mass[j] + x;
      const double power = exponential(exponent);
      const bool small = x <= kSeries && x >= -kSeries;
      const double near = second_order(small ? x : 0.0);
      second_terms[i] = small ? mass[j] * near : power - mass[j] * (1.0 + x);
      first_terms[i] = loss[j] * (small ? mass[j] * (x + near) : power - mass[j]);
      tilted[j] = power;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const double exponent = log_mass[start + i] + c * loss[start + i];
      top = exponent > top ? exponent : top;
    }
    double second_lanes[kLanes] = {};
    double first_lanes[kLanes] = {};
    for (std::size_t i = 0; i < kTile; i += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) {
        second_lanes[k] += second_terms[i + k];
        first_lanes[k] += first_terms[i + k];
      }
    }
    second += lane_sum(second_lanes);
    first += lane_sum(first_lanes);
  }
  const double excess = second + c * drift - lost;
  const double mean = (first + drift) / (1.0 + excess);
  double square = 0.0;
  for (std::size_t start = 0; start < count; start += kTile) {
    const std::size_t size = count - start < kTile ? count - start : kTile;
    double terms[kTile] = {};
    for (std::size_t i = 0; i < size; ++i) {
      const double deviation = loss[start + i] - mean;
      terms[i] = tilted[start + i] * deviation * deviation;
    }
    double lanes[kLanes] = {};
    for (std::size_t i = 0; i < kTile; i += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += terms[i + k];
    }
    square += lane_sum(lanes);
  }
  out[0] = top;
  out[1] = excess;
  out[2] = mean;
  out[3] = square;
}

double log_mgf(const double* mass, const std::int64_t* places, std::size_t count, double slope) {
  double top = -__builtin_inf();
  for (std::size_t j = 0; j < count; ++j) {
    const double exponent =
        mass[j] > 0.0 ? slope * static_cast<double>(places[j]) : -__builtin_inf();
    top = exponent > top ? exponent : top;
  }
  if (!(top > -__builtin_inf())) return top;
  double sum = 0.0;
  for (std::size_t start = 0; start < count; start += kTile) {
    const std::size_t size = count - start < kTile ? count - start : kTile;
    double terms[kTile] = {};
    for (std::size_t i = 0; i < size; ++i) {
      const double exponent = slope * static_cast<double>(places[start + i]) - top;
      terms[i] = mass[start + i] * exponential(exponent < 0.0 ? exponent : 0.0);
    }
    double lanes[kLanes] = {};
    for (std::size_t i = 0; i < kTile; i += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += terms[i + k];
    }
    sum += lane_sum(lanes);
  }
  return top + logarithm(sum);
}

}  // namespace psinoise::PSINOISE_LEVEL
