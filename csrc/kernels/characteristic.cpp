// Sums of complex exponentials: over quadrature nodes, the moment generating function of a privacy
// loss on a vertical line; over frequencies, a function at some places.
//
// Computes: characteristic: out_m = sum_j w_j (exp(i m step l_j) - 1), m = 0, ..., steps - 1;
//   wave_sums: the real part of sum_m t_m exp(i m turn x) at each place x, m = 0, ..., waves - 1.
// Method: e_{m+1} = e_m + e_1 + e_m e_1 with e_m = exp(i m theta) - 1. Working with e_m instead of
//   exp(i m theta) keeps relative accuracy where theta is tiny (10^9 compositions). Waves go on by
//   eight at a time, z_{m+8} = z_m + z_m e_8 with z_m = exp(i m theta).
// Error: characteristic: about m ulp relative to the largest term, from the recurrence. wave_sums:
//   of the term m, (8 + m (1 + |theta|)) units of 2^-53: its angle has the rounding of m theta, and
//   e_8 that and 4 units more for every eighth of m; of the sum, waves / 8 + 4 units of the sizes.
// Order: tiles of 128 nodes; in each of them eight sums of sixteen nodes, and these in order. Eight
//   sums of waves.
// Edge values: wave_sums promises nothing where 8 turn x is beyond kLargestAngle.
#include <cstddef>

#include "kernels/level_kernels.hpp"
#include "math/rotation.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kLanes = 8;
inline constexpr std::size_t kGroups = 16;
inline constexpr std::size_t kTile = kLanes * kGroups;
static_assert(kWaveBlock == kLanes);

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

inline Lanes loaded(const double* from) {
  Lanes found;
  __builtin_memcpy(&found, from, sizeof(found));
  return found;
}

template <std::size_t kRows>
void sums_of_rows(const double* terms, std::size_t waves, double turn, const double* places,
                  std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const double theta = turn * places[i];
    const Rotation by = rotation(kLanes * theta);
    double first_re[kLanes];
    double first_im[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const Rotation first = rotation(static_cast<double>(lane) * theta);
      first_re[lane] = 1.0 + first.re;
      first_im[lane] = first.im;
    }
    Lanes re = loaded(first_re);
    Lanes im = loaded(first_im);
    Lanes sums[kRows] = {};
    for (std::size_t m = 0; m < waves; m += kLanes) {
      for (std::size_t row = 0; row < kRows; ++row) {
        const double* term = terms + 2 * row * waves + m;
        sums[row] += loaded(term) * re - loaded(term + waves) * im;
      }
      const Lanes a = re;
      const Lanes b = im;
      re = a + (a * by.re - b * by.im);
      im = b + (a * by.im + b * by.re);
    }
    for (std::size_t row = 0; row < kRows; ++row) out[row * count + i] = total(sums[row]);
  }
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

void wave_sums(const double* terms, std::size_t rows, std::size_t waves, double turn,
               const double* places, std::size_t count, double* out) {
  (rows == 1 ? sums_of_rows<1> : sums_of_rows<2>)(terms, waves, turn, places, count, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
