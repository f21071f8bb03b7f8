// Density, distribution function and quantiles of a law that is uniform in cells.
//
// Computes: pdf, logpdf, cdf, ccdf, logcdf, logccdf at x, and the point with a given upper tail.
// Regions: |x| / scale in a listed cell, or in one of its copies once whole periods are taken off;
//   the cell by its rank among the edges, that of a probability by its rank among the tails or,
//   near the center, among the masses inwards of the edges.
// Error: sums of masses come rounded once, so that values have a few ulp, and those from
//   exponentials of d a few ulp of max(1, d). tests/test_designed_laws.
// Edge values: NaN gives NaN; probabilities outside [0, 1] give NaN; beyond the support the density
//   is 0, and the quantile of 0 its end. The point 0 counts as positive, for laws with an atom.
// The NumPy twin (psinoise/reference/cell_values.py) has the same operations in the same order.
#include "kernels/level_kernels.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kBlock = 64;

// How many keys are below x >= 0, or at most x.
template <bool kEqual>
std::size_t rank(const SortedKeys& keys, double x) {
  const std::uint64_t bits = bits_of(x);
  std::uint64_t bucket = bits <= keys.first_bits ? 0 : (bits - keys.first_bits) >> keys.shift;
  bucket = bucket < keys.buckets ? bucket : keys.buckets - 1;
  std::size_t low = keys.starts[bucket];
  std::size_t high = keys.starts[bucket + 1];
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const bool before = kEqual ? keys.keys[middle] <= x : keys.keys[middle] < x;
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

double clipped(double x, double low, double high) {
  const double least = x < low ? low : x;
  return least > high ? high : least;
}

struct Places {
  std::size_t cell[kBlock];  // the number of cells where t is beyond the support
  double inside[kBlock];     // where t is among the listed cells
  double fall[kBlock];       // the logarithm of how much less likely its copy is
};

// The place of t >= 0.
void locate(const CellLaw& law, double t, std::size_t i, Places& places) {
  const std::size_t cells = law.cells;
  const double end = law.edges.keys[cells];
  const bool beyond = law.right_closed ? t > end : t >= end;
  double inside = t == t ? t : 0.0;
  double copies = 0.0;
  if (__builtin_expect(beyond && law.repeated > 0, 0)) {
    const double over = (t - end) / law.period;
    copies = law.right_closed ? __builtin_ceil(over) : __builtin_floor(over) + 1.0;
    // Rounding must not move a point out of the cells that repeat.
    inside = t == __builtin_inf()
                 ? end
                 : clipped(t - copies * law.period, law.edges.keys[cells - law.repeated], end);
  }
  const std::size_t after =
      law.right_closed ? rank<false>(law.edges, inside) : rank<true>(law.edges, inside);
  const std::size_t most = law.repeated > 0 ? cells - 1 : cells;
  const std::size_t cell = after > 0 ? after - 1 : 0;
  places.cell[i] = cell < most ? cell : most;
  places.inside[i] = inside;
  places.fall[i] = copies > 0.0 ? -copies * law.rate : 0.0;
}

double survival_factor(const CellLaw& law, std::size_t cell, double inside) {
  const std::size_t known = cell < law.cells ? cell : law.cells - 1;
  const double right = law.edges.keys[known + 1];
  const double share = clipped((right - inside) / (right - law.edges.keys[known]), 0.0, 1.0);
  const double factor = law.above[known + 1] + law.masses[known] * share;
  return cell < law.cells ? factor : 0.0;
}

double from_center(const CellLaw& law, double mass) {
  const std::size_t after = rank<false>(law.below, mass);
  const std::size_t cell = after > law.cells ? law.cells - 1 : (after > 0 ? after - 1 : 0);
  const double share = clipped((mass - law.below.keys[cell]) / law.masses[cell], 0.0, 1.0);
  return law.edges.keys[cell] + share * (law.edges.keys[cell + 1] - law.edges.keys[cell]);
}

double from_tail(const CellLaw& law, double log_last, double p) {
  const double end = law.edges.keys[law.cells];
  if (p == 0.0) return law.repeated > 0 ? __builtin_inf() : end;
  double mass = 2.0 * p;
  double copies = 0.0;
  if (law.repeated > 0 && mass < law.above[law.cells]) {
    const double depth = log_last - (logarithm(p) + kLog2);
    copies = __builtin_ceil(depth / law.rate);
    copies = copies > 0.0 ? copies : 0.0;
    if (copies > 0.0) mass = exponential(log_last - depth + copies * law.rate);
  }
  const std::size_t after = rank<true>(law.tails, mass);
  const std::size_t cell = after > law.cells ? 0 : law.cells - after;
  const std::size_t known = cell < law.cells ? cell : law.cells - 1;
  const double right = law.edges.keys[known + 1];
  const double share = clipped((mass - law.above[known + 1]) / law.masses[known], 0.0, 1.0);
  return right - share * (right - law.edges.keys[known]) + copies * law.period;
}

}  // namespace

void evaluate_cells(const CellLaw& law, Quantity quantity, double scale, const double* x,
                    std::size_t count, double* out) {
  const double log_scale = logarithm(scale);
  const bool lower = quantity == Quantity::cdf || quantity == Quantity::logcdf;
  Places places;
  double value[kBlock];
  double tail[kBlock];
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    const double* points = x + start;
    double* result = out + start;
    for (std::size_t i = 0; i < size; ++i) {
      locate(law, __builtin_fabs(points[i]) / scale, i, places);
    }
    if (quantity == Quantity::pdf || quantity == Quantity::logpdf) {
      for (std::size_t i = 0; i < size; ++i) {
        value[i] = (law.log_densities[places.cell[i]] + places.fall[i]) - log_scale;
      }
      if (quantity == Quantity::pdf) {
        for (std::size_t i = 0; i < size; ++i) value[i] = exponential(value[i]);
      }
      for (std::size_t i = 0; i < size; ++i) {
        result[i] = points[i] == points[i] ? value[i] : points[i];
      }
      continue;
    }
    for (std::size_t i = 0; i < size; ++i) {
      value[i] = 0.5 * survival_factor(law, places.cell[i], places.inside[i]);
    }
    for (std::size_t i = 0; i < size; ++i) tail[i] = value[i] * exponential(places.fall[i]);
    if (quantity == Quantity::cdf || quantity == Quantity::ccdf) {
      for (std::size_t i = 0; i < size; ++i) {
        const bool upper = lower ? points[i] < 0.0 : points[i] >= 0.0;
        const double found = upper ? tail[i] : 1.0 - tail[i];
        result[i] = points[i] == points[i] ? found : points[i];
      }
      continue;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const bool upper = lower ? points[i] < 0.0 : points[i] >= 0.0;
      const double found = upper ? logarithm(value[i]) + places.fall[i] : log_one_plus(-tail[i]);
      result[i] = points[i] == points[i] ? found : points[i];
    }
  }
}

void inverse_survival_cells(const CellLaw& law, const double* probability, std::size_t count,
                            double scale, double* out) {
  const double half = 0.5 * (1.0 - law.atom);
  const double listed = law.below.keys[law.cells];
  const double log_last = logarithm(law.above[law.cells]);
  for (std::size_t i = 0; i < count; ++i) {
    const double q = probability[i];
    if (!(q >= 0.0 && q <= 1.0)) {
      out[i] = __builtin_nan("");
      continue;
    }
    const double tail = q <= 0.5 ? q : 1.0 - q;
    const double within = 2.0 * (0.5 - tail) - law.atom;
    double t = 0.0;
    if (within > 0.0) {
      t = within < half && within <= listed ? from_center(law, within)
                                            : from_tail(law, log_last, tail);
    }
    out[i] = q > 0.5 ? -(t * scale) : t * scale;
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
