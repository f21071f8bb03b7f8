// Sums of complex exponentials over quadrature nodes: the moment generating function of a privacy
// loss on a vertical line.
//
// Computes: out_m = sum_j w_j (exp(i m step l_j) - 1), m = 0, ..., steps - 1.
// Method: e_{m+1} = e_m + e_1 + e_m e_1 with e_m = exp(i m theta) - 1. Working with e_m instead of
//   exp(i m theta) keeps relative accuracy where theta is tiny (10^9 compositions).
// Error: about m ulp relative to the largest term, from the recurrence.
// Order: tiles of 128 nodes; in each of them eight sums of sixteen nodes, and these in order.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "math/rotation.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kLanes = 8;
inline constexpr std::size_t kGroups = 16;
inline constexpr std::size_t kTile = kLanes * kGroups;

// The same eight lanes at every level, whatever its registers hold.
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));

struct Tile {
  Lanes weight[kGroups];
  Lanes turn_re[kGroups];
  Lanes turn_im[kGroups];
};

// For any angle, by the C library.
inline Rotation far_rotation(double theta) {
  const double half_sine = __builtin_sin(0.5 * theta);
  return {-2.0 * half_sine * half_sine, __builtin_sin(theta)};
}

// Nodes that are missing have weight 0.
inline void fill(const double* weights, const double* losses, std::size_t size, double step,
                 Tile& tile) {
  double weight[kTile];
  double theta[kTile];
  double re[kTile];
  double im[kTile];
  double largest = 0.0;
  for (std::size_t j = 0; j < kTile; ++j) {
    theta[j] = j < size ? step * losses[j] : 0.0;
    weight[j] = j < size ? weights[j] : 0.0;
  }
  for (std::size_t j = 0; j < kTile; ++j) {
    const double angle = __builtin_fabs(theta[j]);
    largest = angle > largest ? angle : largest;
  }
  for (std::size_t j = 0; j < kTile; ++j) {
    const Rotation turn = rotation(theta[j]);
    re[j] = turn.re;
    im[j] = turn.im;
  }
  for (std::size_t j = 0; j < kTile && largest > kLargestAngle; ++j) {
    const Rotation turn = far_rotation(theta[j]);
    re[j] = turn.re;
    im[j] = turn.im;
  }
  __builtin_memcpy(tile.weight, weight, sizeof(weight));
  __builtin_memcpy(tile.turn_re, re, sizeof(re));
  __builtin_memcpy(tile.turn_im, im, sizeof(im));
}

inline double total(const Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace

void characteristic(const double* weights, const double* losses, std::size_t count, double step,
                    std::size_t steps, double* out) {
  for (std::size_t m = 0; m < 2 * steps; ++m) out[m] = 0.0;
  for (std::size_t start = 0; start < count; start += kTile) {
    const std::size_t size = count - start < kTile ? count - start : kTile;
    const std::size_t groups = (size + kLanes - 1) / kLanes;
    Tile tile;
    fill(weights + start, losses + start, size, step, tile);
    Lanes re[kGroups] = {};
    Lanes im[kGroups] = {};
    for (std::size_t m = 1; m < steps; ++m) {
      Lanes sum_re = {};
      Lanes sum_im = {};
      for (std::size_t j = 0; j < groups; ++j) {
        const Lanes a = re[j];
        const Lanes b = im[j];
        const Lanes c = tile.turn_re[j];
        const Lanes d = tile.turn_im[j];
        re[j] = (a + c) + (a * c - b * d);
        im[j] = (b + d) + (a * d + b * c);
        sum_re += tile.weight[j] * re[j];
        sum_im += tile.weight[j] * im[j];
      }
      out[2 * m] += total(sum_re);
      out[2 * m + 1] += total(sum_im);
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
