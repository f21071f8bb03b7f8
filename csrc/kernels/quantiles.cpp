// Quantiles of a compiled law.
//
// Computes: the point with a given upper tail.
// Regions: near the center from a table in registers (kernels/near_tables.cpp); tails above 1/4 by
// a
//   table of t / (1/2 - p), smaller ones by a table of log t in -log(2 p).
// Error: a few ulp beyond what rounding of -log(probability) implies. tests/test_laws.
// Edge values: probabilities outside [0, 1] and NaN give NaN, 0 and 1 infinities.
#include "kernels/level_kernels.hpp"
#include "kernels/near_values.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

// Some probabilities of a block, and where in it they are.
struct Chosen {
  std::size_t count;
  std::size_t place[kBlock];
  double argument[kBlock];  // of the table
  std::int64_t row[kBlock];
  double u[kBlock];
  double value[kBlock];  // the quantile in units of the scale
};

inline constexpr double kCenter = 0.25;  // tails above have a table of 1/2 - p
inline constexpr double kLeastDepth = 0.5;

// The values of a table at the arguments.
void table_values(const Panels& panels, Chosen& chosen) {
  // Vectors are full: what is beyond the last argument is any number below the limit.
  for (std::size_t i = chosen.count; i % kLanes != 0; ++i) chosen.argument[i] = 0.0;
  for (std::size_t i = 0; i < chosen.count; i += kLanes) {
    Reals argument;
    __builtin_memcpy(&argument, chosen.argument + i, sizeof(argument));
    const PanelPositions at = locate(panels, argument, Reals{});
    __builtin_memcpy(chosen.row + i, &at.row, sizeof(at.row));
    __builtin_memcpy(chosen.u + i, &at.u, sizeof(at.u));
  }
  // A look at the splits of every point costs a fifth.
  for (std::size_t i = 0; panels.split_count > 0 && i < chosen.count; ++i) {
    const PanelPosition at = cross(panels, PanelPosition{chosen.row[i], chosen.u[i]});
    chosen.row[i] = at.row;
    chosen.u[i] = at.u;
  }
  double head[kBlock];
  panel_parts(panels, chosen.row, chosen.u, chosen.count, head, chosen.value);
  for (std::size_t i = 0; i < chosen.count; i += kLanes) {
    store_vector(load_vector(head + i) + load_vector(chosen.value + i), chosen.value + i);
  }
}

void central_quantiles(const LawTable& law, Chosen& chosen) {
  table_values(law.central_quantile, chosen);
  for (std::size_t i = 0; i < chosen.count; i += kLanes) {
    const Reals argument = load_vector(chosen.argument + i);
    store_vector(load_vector(chosen.value + i) * argument, chosen.value + i);
  }
}

// The arguments are tails, and depths afterwards.
void tail_quantiles(const LawTable& law, Chosen& chosen) {
  for (std::size_t i = 0; i < chosen.count; i += kLanes) {
    const Reals tail = load_vector(chosen.argument + i, chosen.count - i);
    const Reals depth = -log_of_normal_or_less(2.0 * tail);
    const Reals least = Reals{} + kLeastDepth;
    store_vector(depth > least ? depth : least, chosen.argument + i);
  }
  table_values(law.tail_quantile, chosen);
  for (std::size_t i = 0; i < chosen.count; i += kLanes) {
    store_vector(exponential(load_vector(chosen.value + i)), chosen.value + i);
  }
  if (law.tail_quantile.bits == 3) return;
  for (std::size_t i = 0; i < chosen.count; ++i) {
    chosen.value[i] = polished(law, chosen.value[i], chosen.argument[i]);
  }
}

// The points with the upper tails of a block, which `out` may be.
void quantiles(const LawTable& law, const double* p, std::size_t size, double scale, double* out) {
  double value[kBlock];
  std::uint64_t central[kBlock];
  Chosen center;
  Chosen tails;
  // Which table serves is not to be predicted, and so told by sums and not by branches.
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals upper = load_vector(p + i, size - i);
    const Reals other = 1.0 - upper;  // exact above 1/2
    const Reals smaller = upper < other ? upper : other;
    const Reals valid = smaller >= 0.0 ? smaller : Reals{} + 0.5;
    store_vector(valid, value + i);
    store_vector(bit_cast<Bits>(valid > kCenter) & 1, central + i);
  }
  center.count = 0;
  tails.count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    center.place[center.count] = i;
    center.argument[center.count] = 0.5 - value[i];  // exact: Sterbenz
    center.count += central[i];
    tails.place[tails.count] = i;
    tails.argument[tails.count] = value[i];
    tails.count += 1 - central[i];
  }
  central_quantiles(law, center);
  tail_quantiles(law, tails);
  for (std::size_t i = 0; i < center.count; ++i) value[center.place[i]] = center.value[i];
  for (std::size_t i = 0; i < tails.count; ++i) value[tails.place[i]] = tails.value[i];
  const Reals infinite = Reals{} + __builtin_inf();
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals q = load_vector(p + i, size - i);
    const Reals t = ((q == 0.0) | (q == 1.0)) ? infinite : load_vector(value + i) * scale;
    const Reals x = q <= 0.5 ? t : -t;
    store_vector(((q >= 0.0) & (q <= 1.0)) ? x : Reals{} + __builtin_nan(""), out + i, size - i);
  }
}

}  // namespace

void inverse_survival(const LawTable& law, const double* probability, std::size_t count,
                      double scale, double* out) {
  const NearValues values(*law.near_quantile);
  const auto smaller = [](Reals p) {
    const Reals other = 1.0 - p;  // exact above 1/2
    return p < other ? p : other;
  };
  const auto from_center = [&](Reals p) { return 0.5 - smaller(p); };
  const auto near = [&](Reals p, Reals v) {
    const Reals t = (values(v) * v) * scale;
    return p <= 0.5 ? t : -t;
  };
  const auto inside = [&](Reals p) { return smaller(p) > 0.0; };
  const auto edge = [](Reals p) {
    const Reals infinite = p == 0.0 ? Reals{} + __builtin_inf() : Reals{} - __builtin_inf();
    return ((p == 0.0) | (p == 1.0)) ? infinite : Reals{} + __builtin_nan("");
  };
  const auto far = [&](double* p, std::size_t size) {
    quantiles(law, p, size, scale, p);
    return std::size_t{0};
  };
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    if (values.table.limit > 0.0) {
      near_and_far(probability + start, size, out + start, values.table.limit, from_center, near,
                   inside, edge, far);
    } else {
      quantiles(law, probability + start, size, scale, out + start);
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
