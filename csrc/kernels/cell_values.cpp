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
// Method: a vector of points at a time and without branches, but for the rounds of bisection, which
//   end when all points of a vector have their rank; most have it after one.
// The NumPy twin (psinoise/reference/cell_values.py) has the same operations in the same order.
#include "base/look_up.hpp"
#include "base/masks.hpp"
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"
#include "math/elementary.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kBlock = 64;
inline constexpr std::size_t kWidth = kVectorSize<double>;

typedef Vector<double> Reals;
typedef Vector<std::int64_t> Integers;
typedef Vector<std::uint64_t> Bits;

// x where a comparison holds, else +0.
Reals where(Integers holds, Reals x) {
  return bit_cast<Reals>(bit_cast<Integers>(x) & holds);
}

// NaN gives the lower end.
Reals clipped(Reals x, double low, double high) {
  const Reals least = x > low ? x : Reals{} + low;
  return least < high ? least : Reals{} + high;
}

// The least whole numbers that are not below x >= 0, and the largest that are not above it.
Reals ceiling(Reals x) {
  const Reals near = (x + 0x1p52) - 0x1p52;
  return x < 0x1p52 ? near + where(near < x, Reals{} + 1.0) : x;
}
Reals floor(Reals x) {
  const Reals near = (x + 0x1p52) - 0x1p52;
  return x < 0x1p52 ? near - where(near > x, Reals{} + 1.0) : x;
}

// How many keys are below x >= 0, or at most x.
template <bool kEqual>
Integers rank(const SortedKeys& keys, Reals x) {
  const Reals listed = clipped(x, keys.first, keys.last);
  const Bits bucket = (bit_cast<Bits>(listed) - bits_of(keys.first)) >> keys.shift;
  const Bits range = look_up(keys.ranges, bit_cast<Integers>(bucket));
  Integers low = bit_cast<Integers>(range & 0xffffffff);
  Integers high = bit_cast<Integers>(range >> 32);
  // The key behind a bucket, NaN behind the last, is not before x: what has its rank keeps it.
  while (negative(low - high) != 0) {
    const Integers middle = (low + high) >> 1;
    const Reals key = look_up(keys.keys, middle);
    const Integers before = kEqual ? key <= x : key < x;
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

struct Places {
  std::int64_t cell[kBlock];  // the number of cells where t is beyond the support
  double inside[kBlock];      // where t is among the listed cells
  double fall[kBlock];        // the logarithm of how much less likely its copy is
};

// The places of t >= 0.
template <bool kRightClosed>
void locate(const CellLaw& law, Reals t, std::size_t i, Places& places) {
  const double end = law.edges.keys[law.cells];
  Reals inside = where(t == t, t);
  Reals copies = {};
  if (law.repeated > 0) {
    const Integers beyond = kRightClosed ? t > end : t >= end;
    const Reals over = (t - end) / law.period;
    copies = where(beyond, kRightClosed ? ceiling(over) : floor(over) + 1.0);
    // Rounding must not move a point out of the cells that repeat.
    const Reals moved =
        clipped(t - copies * law.period, law.edges.keys[law.cells - law.repeated], end);
    const Reals copied = t < __builtin_inf() ? moved : Reals{} + end;
    inside = beyond ? copied : inside;
  }
  const double first = law.edges.keys[0];
  const Integers after = rank<!kRightClosed>(law.edges, inside);
  const Integers later = kRightClosed ? inside > first : inside >= first;
  Integers cell = (after - 1) & later;
  if (!kRightClosed && law.repeated > 0) cell += inside >= end;
  store_vector(cell, places.cell + i);
  store_vector(inside, places.inside + i);
  store_vector(0.0 - copies * law.rate, places.fall + i);
}

// P(|X| > t) where no period was taken off.
Reals survival_factor(const CellLaw& law, Integers cell, Reals inside) {
  const Reals right = look_up(law.edges.keys + 1, cell);
  const Reals left = look_up(law.edges.keys, cell);
  const Reals share = clipped((right - inside) / (right - left), 0.0, 1.0);
  return look_up(law.above + 1, cell) + look_up(law.masses, cell) * share;
}

// Probabilities of a block of tails: their masses where a number of periods is taken off.
struct Tails {
  double mass[kBlock];
  double copies[kBlock];
};

void shorten(const CellLaw& law, double log_last, const double* tail, std::size_t size,
             Tails& tails) {
  double depth[kBlock];
  for (std::size_t i = 0; i < size; ++i) {
    depth[i] = log_last - (log_of_normal_or_less(tail[i]) + kLog2);
  }
  for (std::size_t i = 0; i < size; i += kWidth) {
    const Reals periods = load_vector(depth + i) / law.rate;
    store_vector(ceiling(where(periods > 0.0, periods)), tails.copies + i);
  }
  for (std::size_t i = 0; i < size; ++i) {
    tails.mass[i] = exponential(log_last - depth[i] + tails.copies[i] * law.rate);
  }
  for (std::size_t i = 0; i < size; i += kWidth) {
    const Reals mass = 2.0 * load_vector(tail + i);
    const Reals copies = where(mass < law.above[law.cells], load_vector(tails.copies + i));
    store_vector(copies, tails.copies + i);
    store_vector(copies > 0.0 ? load_vector(tails.mass + i) : mass, tails.mass + i);
  }
}

// The t with P(0 < |X| <= t) = within, where that is central, else that with P(|X| > t) = mass and
// `copies` periods.
Reals point_of(const CellLaw& law, Integers central, Reals within, Reals mass, Reals copies) {
  const std::int64_t cells = static_cast<std::int64_t>(law.cells);
  const Reals near = where(central, within);
  const Integers before = (rank<false>(law.below, near) - 1) & (near > law.below.keys[0]);
  const Integers behind = (cells - rank<true>(law.tails, mass)) + (mass < law.tails.keys[0]) -
                          (mass >= law.tails.keys[cells]);
  const Integers cell = central ? before : behind;
  const Reals left = look_up(law.edges.keys, cell);
  const Reals right = look_up(law.edges.keys + 1, cell);
  const Reals in_cell =
      central ? within - look_up(law.below.keys, cell) : mass - look_up(law.above + 1, cell);
  const Reals share = clipped(in_cell / look_up(law.masses, cell), 0.0, 1.0);
  const Reals part = share * (right - left);
  return central ? left + part : right - part + copies * law.period;
}

}  // namespace

void evaluate_cells(const CellLaw& law, Quantity quantity, double scale, const double* x,
                    std::size_t count, double* out) {
  const double log_scale = logarithm(scale);
  const bool lower = quantity == Quantity::cdf || quantity == Quantity::logcdf;
  Places places;
  double points[kBlock];
  double value[kBlock];
  double tail[kBlock];
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    for (std::size_t i = 0; i < size; i += kWidth) {
      const Reals point = load_vector(x + start + i, size - i);
      const Reals t = magnitude(point) / scale;
      store_vector(point, points + i);
      law.right_closed ? locate<true>(law, t, i, places) : locate<false>(law, t, i, places);
    }
    const auto cell = [&](std::size_t i) {
      Integers found;
      __builtin_memcpy(&found, places.cell + i, sizeof(found));
      return found;
    };
    const auto finish = [&](const auto& found) {
      for (std::size_t i = 0; i < size; i += kWidth) {
        const Reals point = load_vector(points + i);
        store_vector(point == point ? found(i) : point, out + start + i, size - i);
      }
    };
    const auto is_upper = [&](std::size_t i) {
      return lower ? load_vector(points + i) < 0.0 : load_vector(points + i) >= 0.0;
    };
    if (quantity == Quantity::pdf || quantity == Quantity::logpdf) {
      for (std::size_t i = 0; i < size; i += kWidth) {
        const Reals log_density = look_up(law.log_densities, cell(i));
        store_vector((log_density + load_vector(places.fall + i)) - log_scale, value + i);
      }
      if (quantity == Quantity::pdf) {
        for (std::size_t i = 0; i < size; ++i) value[i] = exponential(value[i]);
      }
      finish([&](std::size_t i) { return load_vector(value + i); });
    } else {
      for (std::size_t i = 0; i < size; i += kWidth) {
        store_vector(0.5 * survival_factor(law, cell(i), load_vector(places.inside + i)),
                     value + i);
        store_vector(load_vector(value + i), tail + i);
      }
      if (law.repeated > 0) {
        for (std::size_t i = 0; i < size; ++i) tail[i] = value[i] * exponential(places.fall[i]);
      }
      if (quantity == Quantity::cdf || quantity == Quantity::ccdf) {
        finish([&](std::size_t i) {
          return is_upper(i) ? load_vector(tail + i) : 1.0 - load_vector(tail + i);
        });
      } else {
        for (std::size_t i = 0; i < size; ++i) {
          const bool upper = lower ? points[i] < 0.0 : points[i] >= 0.0;
          value[i] = upper ? logarithm(value[i]) + places.fall[i] : log_one_plus(-tail[i]);
        }
        finish([&](std::size_t i) { return load_vector(value + i); });
      }
    }
  }
}

void inverse_survival_cells(const CellLaw& law, const double* probability, std::size_t count,
                            double scale, double* out) {
  const double half = 0.5 * (1.0 - law.atom);
  const double listed = law.below.keys[law.cells];
  const double log_last = logarithm(law.above[law.cells]);
  const double farthest = law.repeated > 0 ? __builtin_inf() : law.edges.keys[law.cells];
  double tail[kBlock];
  Tails tails = {};
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    for (std::size_t i = 0; i < size; i += kWidth) {
      const Reals q = load_vector(probability + start + i, size - i);
      const Reals other = 1.0 - q;
      const Reals smaller = q <= 0.5 ? q : other;
      store_vector(smaller >= 0.0 ? smaller : Reals{} + 0.5, tail + i);
    }
    if (law.repeated > 0) {
      shorten(law, log_last, tail, size, tails);
    } else {
      for (std::size_t i = 0; i < size; ++i) tails.mass[i] = 2.0 * tail[i];
    }
    for (std::size_t i = 0; i < size; i += kWidth) {
      const Reals q = load_vector(probability + start + i, size - i);
      const Reals smaller = load_vector(tail + i);
      const Reals within = 2.0 * (0.5 - smaller) - law.atom;
      const Integers central = (within < half) & (within <= listed) & (within > 0.0);
      const Reals found = point_of(law, central, within, load_vector(tails.mass + i),
                                   load_vector(tails.copies + i));
      const Reals t = smaller > 0.0 ? found : Reals{} + farthest;
      const Reals x = where(within > 0.0, t) * scale;
      const Reals signed_x = q > 0.5 ? -x : x;
      store_vector(((q >= 0.0) & (q <= 1.0)) ? signed_x : Reals{} + __builtin_nan(""),
                   out + start + i, size - i);
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
