// Density, distribution function and quantiles of a compiled law.
//
// Computes: pdf, logpdf, cdf, ccdf, logcdf, logccdf at x, and the point with a given upper tail.
// Regions: densities near the center from a table of their own (kernels/near_density.cpp); else
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

// The same where the table of the density itself serves; `far` is 1 where it does not, and the
// result says whether that is so anywhere. Full vectors are read and written.
bool near_densities(const NearDensity& near, const Scale& scale, const double* x, std::size_t size,
                    double* result, std::uint64_t* far) {
  typedef Vector<double> Reals;
  typedef Vector<std::uint64_t> Bits;
  // Below 16 for every t below the limit.
  const double per_width = (1.0 - 0x1p-51) / near.width;
  const double inverse_half = 2.0 / near.width;
  const double inverse = 1.0 / scale.value;
  const double power = double_from(static_cast<std::uint64_t>(1023 - scale.exponent) << 52);
  Bits any = {};
  for (std::size_t i = 0; i < size; i += kLanes) {
    Bits bits;
    __builtin_memcpy(&bits, x + i, sizeof(bits));
    const Reals distance = bit_cast<Reals>(bits & 0x7fffffffffffffff) * inverse;
    const Bits inside = bit_cast<Bits>(distance < near.limit);  // not NaN
    const Reals t = bit_cast<Reals>(bit_cast<Bits>(distance) & inside);
    const Cut panel = cut(t * per_width);
    const Reals u = (t - (panel.doubles + 0.5) * near.width) * inverse_half;
    const auto c = [&](int k) { return look_up_16(near.terms[k], panel.integers); };
    const Reals v = u * u;
    const Reals odd = (((c(9) * v + c(7)) * v + c(5)) * v + c(3)) * v + c(1);
    const Reals even = ((((c(10) * v + c(8)) * v + c(6)) * v + c(4)) * v + c(2)) * v + c(0);
    const Reals value = (u * odd + even) * scale.inverse_mantissa * power;
    const Bits outside = ~inside & 1;
    any |= outside;
    __builtin_memcpy(result + i, &value, sizeof(value));
    __builtin_memcpy(far + i, &outside, sizeof(outside));
  }
  std::uint64_t found = 0;
  for (std::size_t j = 0; j < kLanes; ++j) found |= any[j];
  return found != 0;
}

// Both: what is near at once, and the rest from logs.
std::size_t near_and_far_densities(const LawTable& law, const Scale& scale, const double* x,
                                   std::size_t size, Points& block, double* result) {
  double points[kBlock] = {};
  double value[kBlock];
  std::uint64_t far[kBlock];
  __builtin_memcpy(points, x, size * sizeof(double));
  const bool any = near_densities(*law.near, scale, points, size, value, far);
  __builtin_memcpy(result, value, size * sizeof(double));
  if (!any) return 0;
  std::size_t place[kBlock];
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    place[count] = i;
    value[count] = points[i];
    count += far[i];
  }
  const std::size_t beyond = densities(law, scale, value, count, block, value);
  for (std::size_t j = 0; j < count; ++j) result[place[j]] = value[j];
  return beyond;
}

// `mirrored` is true for the distribution function: P(X <= x) = P(X > -x). `result` may be x.
void survival(const LawTable& law, const double* x, std::size_t size, bool mirrored, Points& block,
              double* result) {
  log_survival(law, size, block);
  for (std::size_t i = 0; i < size; ++i) block.value[i] = exp_sum(block.hi[i], block.lo[i]);
  for (std::size_t i = 0; i < size; ++i) {
    const bool upper = mirrored ? x[i] <= 0.0 : x[i] >= 0.0;
    result[i] = upper ? block.value[i] : 1.0 - block.value[i];
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
  for (std::size_t i = 0; i < chosen.count; ++i) {
    const PanelPosition at = locate(panels, chosen.argument[i], 0.0);
    chosen.row[i] = at.row;
    chosen.u[i] = at.u;
  }
  // A look at the splits of every point costs a fifth.
  for (std::size_t i = 0; panels.split_count > 0 && i < chosen.count; ++i) {
    const PanelPosition at = cross(panels, PanelPosition{chosen.row[i], chosen.u[i]});
    chosen.row[i] = at.row;
    chosen.u[i] = at.u;
  }
  fill_up(chosen.count, chosen.row, chosen.u);
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

}  // namespace

std::size_t evaluate(const LawTable& law, Quantity quantity, double scale, const double* x,
                     std::size_t count, double* out) {
  std::size_t beyond = 0;
  const double log_scale = logarithm(scale);
  int exponent = 0;
  const double mantissa = __builtin_frexp(scale, &exponent);
  const Scale parts = {scale, 1.0 / mantissa, exponent};
  const bool near = law.near->limit > 0.0 && exponent >= -1000 && exponent <= 1000;
  Points block;
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    const double* points = x + start;
    double* result = out + start;
    // Results are written when the block's points have been read for the last time, so out may be
    // x.
    if (quantity == Quantity::pdf) {
      beyond +=
          (near ? near_and_far_densities : densities)(law, parts, points, size, block, result);
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
  double value[kBlock];
  std::uint64_t central[kBlock];
  Chosen center;
  Chosen tails;
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    const double* p = probability + start;
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
      const double t = q == 0.0 || q == 1.0 ? __builtin_inf() : value[i] * scale;
      const double x = q <= 0.5 ? t : -t;
      out[start + i] = q >= 0.0 && q <= 1.0 ? x : __builtin_nan("");
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
