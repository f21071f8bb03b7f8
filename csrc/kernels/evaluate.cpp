// Density, distribution function and quantiles of a compiled law.
//
// Computes: pdf, logpdf, cdf, ccdf, logcdf, logccdf at x, and the point with a given upper tail.
// Regions: densities and quantiles near the center from tables of their own
//   (kernels/near_tables.cpp); else
//   |x| / scale as a double-double; log p and log of the Mills ratio from the panel tables;
//   exponentials of hi + lo pairs, so that relative errors do not grow with |log p|.
// Error: pdf, ccdf 1e-14 relative down to the smallest normal double; logs 4e-16 * max(1, |value|);
//   quantiles a few ulp beyond what rounding of -log(probability) implies. tests/test_laws.
// Edge values: NaN gives NaN; points beyond the tables are counted, set to NaN and left to the
//   caller, who has the law's own formula; probabilities outside [0, 1] give NaN, 0 and 1
//   infinities.
#include "kernels/density.hpp"
#include "kernels/level_kernels.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kBlock = 64;

// One block of points; `value` holds what is computed beside the density.
struct Points : Block<kBlock> {
  double value[kBlock];
};

// log P(X > t) = log p(t) + log m(t), m the Mills ratio, whose table has the same panels.
void log_survival(const LawTable& law, std::size_t size, Points& block) {
  log_density(law, size, block);
  double head[kBlock];
  panel_parts(law.log_mills, block.row, block.u, size, head, block.value);
  for (std::size_t i = 0; i < size; ++i) block.value[i] = head[i] + block.value[i];
  for (std::size_t i = 0; i < size; ++i) {
    const DoubleDouble sum = two_sum(block.hi[i], block.value[i]);
    block.hi[i] = sum.hi;
    block.lo[i] = sum.lo + block.lo[i];
  }
}

// scale = mantissa 2^exponent: the power of two goes into the exponential, which would underflow
// before a division by a small scale.
struct Scale {
  double value;
  double inverse_mantissa;
  int exponent;
};

// From the log of the density; returns how many points are beyond its table.
std::size_t densities(const LawTable& law, const Scale& scale, const double* x, std::size_t size,
                      Points& block, double* result) {
  const std::size_t beyond = standardize(law.log_density, x, size, scale.value, block);
  log_density(law, size, block);
  for (std::size_t i = 0; i < size; ++i) {
    result[i] = exp_shifted(block.hi[i], block.lo[i], -scale.exponent) * scale.inverse_mantissa;
  }
  return beyond;
}

typedef Vector<double> Reals;
typedef Vector<std::uint64_t> Bits;

// The value of a table near the center at points from 0 up to its limit.
struct NearValues {
  explicit NearValues(const NearTable& from) : table(from) {}

  Reals operator()(Reals t) const {
    const Cut panel = cut(t * per_width);
    const Reals u = (t - (panel.doubles + 0.5) * table.width) * inverse_half;
    const auto c = [&](int k) { return look_up_16(table.terms[k], panel.integers); };
    const Reals v = u * u;
    const Reals odd = (((c(9) * v + c(7)) * v + c(5)) * v + c(3)) * v + c(1);
    const Reals even = ((((c(10) * v + c(8)) * v + c(6)) * v + c(4)) * v + c(2)) * v + c(0);
    return u * odd + even;
  }

  const NearTable& table;
  double per_width = (1.0 - 0x1p-51) / table.width;  // below 16 for every t below the limit
  double inverse_half = 2.0 / table.width;
};

// x where it is less than the limit, else 0.
inline Reals inside(Reals x, double limit, Bits& within) {
  within = bit_cast<Bits>(x < limit);  // not NaN
  return bit_cast<Reals>(bit_cast<Bits>(x) & within);
}

// A block of points: `near` maps a vector of them, and says where it does; what it does not map is
// brought together for `distant`, whose result is returned. `result` may be x.
template <typename Near, typename Distant>
inline std::size_t near_and_far(const double* x, std::size_t size, double* result, const Near& near,
                                const Distant& distant) {
  double points[kBlock] = {};
  double value[kBlock];
  std::uint64_t far[kBlock];
  Bits any = {};
  __builtin_memcpy(points, x, size * sizeof(double));
  for (std::size_t i = 0; i < size; i += kLanes) {
    Reals point;
    Bits within;
    __builtin_memcpy(&point, points + i, sizeof(point));
    const Reals found = near(point, within);
    const Bits outside = ~within & 1;
    any |= outside;
    __builtin_memcpy(value + i, &found, sizeof(found));
    __builtin_memcpy(far + i, &outside, sizeof(outside));
  }
  __builtin_memcpy(result, value, size * sizeof(double));
  std::uint64_t one = 0;
  for (std::size_t j = 0; j < kLanes; ++j) one |= any[j];
  if (one == 0) return 0;
  std::size_t place[kBlock];
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    place[count] = i;
    value[count] = points[i];
    count += far[i];
  }
  const std::size_t beyond = distant(value, count);
  for (std::size_t j = 0; j < count; ++j) result[place[j]] = value[j];
  return beyond;
}

// In integers: what is not to be predicted would be a branch at the lower levels.
inline double select(bool first, double a, double b) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(first);
  return double_from((bits_of(a) & mask) | (bits_of(b) & ~mask));
}

// `mirrored` is true for the distribution function: P(X <= x) = P(X > -x). `result` may be x.
void survival(const LawTable& law, const double* x, std::size_t size, bool mirrored, Points& block,
              double* result) {
  log_survival(law, size, block);
  for (std::size_t i = 0; i < size; ++i) block.value[i] = exp_sum(block.hi[i], block.lo[i]);
  for (std::size_t i = 0; i < size; ++i) {
    const bool upper = mirrored ? x[i] <= 0.0 : x[i] >= 0.0;
    result[i] = select(upper, block.value[i], 1.0 - block.value[i]);
  }
}

void log_of_survival(const LawTable& law, const double* x, std::size_t size, bool mirrored,
                     Points& block, double* result) {
  log_survival(law, size, block);
  for (std::size_t i = 0; i < size; ++i) block.value[i] = exp_sum(block.hi[i], block.lo[i]);
  for (std::size_t i = 0; i < size; ++i) {
    const bool upper = mirrored ? x[i] <= 0.0 : x[i] >= 0.0;
    result[i] = upper ? block.hi[i] + block.lo[i] : log_one_plus(-block.value[i]);
  }
}

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
  for (std::size_t i = 0; i < chosen.count; ++i) chosen.value[i] = head[i] + chosen.value[i];
}

void central_quantiles(const LawTable& law, Chosen& chosen) {
  table_values(law.central_quantile, chosen);
  for (std::size_t i = 0; i < chosen.count; ++i) chosen.value[i] *= chosen.argument[i];
}

// The arguments are tails, and depths afterwards.
void tail_quantiles(const LawTable& law, Chosen& chosen) {
  for (std::size_t i = 0; i < chosen.count; ++i) {
    const double depth = -log_of_normal_or_less(2.0 * chosen.argument[i]);
    chosen.argument[i] = depth > kLeastDepth ? depth : kLeastDepth;
  }
  table_values(law.tail_quantile, chosen);
  for (std::size_t i = 0; i < chosen.count; ++i) chosen.value[i] = exponential(chosen.value[i]);
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
  for (std::size_t i = 0; i < size; ++i) {
    const double other = 1.0 - p[i];  // exact above 1/2
    const double smaller = p[i] < other ? p[i] : other;
    value[i] = smaller >= 0.0 ? smaller : 0.5;
    central[i] = value[i] > kCenter ? 1 : 0;
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
  for (std::size_t i = 0; i < size; ++i) {
    const double q = p[i];
    const double t = select((q == 0.0) | (q == 1.0), __builtin_inf(), value[i] * scale);
    const double x = select(q <= 0.5, t, -t);
    out[i] = select((q >= 0.0) & (q <= 1.0), x, __builtin_nan(""));
  }
}

}  // namespace

std::size_t evaluate(const LawTable& law, Quantity quantity, double scale, const double* x,
                     std::size_t count, double* out) {
  std::size_t beyond = 0;
  const double log_scale = logarithm(scale);
  int exponent = 0;
  const double mantissa = __builtin_frexp(scale, &exponent);
  const Scale parts = {scale, 1.0 / mantissa, exponent};
  const bool near = law.near_density->limit > 0.0 && exponent >= -1000 && exponent <= 1000;
  const NearValues values(*law.near_density);
  const double inverse = 1.0 / scale;
  const double power = double_from(static_cast<std::uint64_t>(1023 - (near ? exponent : 0)) << 52);
  Points block;
  const auto near_densities = [&](Reals point, Bits& within) {
    const Reals t = inside(magnitude(point) * inverse, values.table.limit, within);
    return values(t) * parts.inverse_mantissa * power;
  };
  const auto far_densities = [&](double* point, std::size_t size) {
    return densities(law, parts, point, size, block, point);
  };
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    const double* points = x + start;
    double* result = out + start;
    // Results are written when the block's points have been read for the last time, so out may be
    // x.
    if (quantity == Quantity::pdf) {
      beyond += near ? near_and_far(points, size, result, near_densities, far_densities)
                     : densities(law, parts, points, size, block, result);
      continue;
    }
    beyond += standardize(law.log_density, points, size, scale, block);
    switch (quantity) {
      case Quantity::pdf:
        break;
      case Quantity::logpdf:
        log_density(law, size, block);
        for (std::size_t i = 0; i < size; ++i) {
          result[i] = (block.hi[i] - log_scale) + block.lo[i];
        }
        break;
      case Quantity::cdf:
      case Quantity::ccdf:
        survival(law, points, size, quantity == Quantity::cdf, block, result);
        break;
      case Quantity::logcdf:
      case Quantity::logccdf:
        log_of_survival(law, points, size, quantity == Quantity::logcdf, block, result);
        break;
    }
  }
  return beyond;
}

void inverse_survival(const LawTable& law, const double* probability, std::size_t count,
                      double scale, double* out) {
  const NearValues values(*law.near_quantile);
  const auto near = [&](Reals p, Bits& within) {
    const Reals other = 1.0 - p;  // exact above 1/2
    const Reals smaller = p < other ? p : other;
    const Reals v = inside(0.5 - smaller, values.table.limit, within);
    const Reals t = (values(v) * v) * scale;
    return p <= 0.5 ? t : -t;
  };
  const auto far = [&](double* p, std::size_t size) {
    quantiles(law, p, size, scale, p);
    return std::size_t{0};
  };
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    if (values.table.limit > 0.0) {
      near_and_far(probability + start, size, out + start, near, far);
    } else {
      quantiles(law, probability + start, size, scale, out + start);
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
