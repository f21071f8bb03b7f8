// Density and distribution function of a compiled law.
//
// Computes: pdf, logpdf, cdf, ccdf, logcdf, logccdf at x.
// Regions: densities near the center from a table of their own (kernels/near_tables.cpp); else
//   |x| / scale as a double-double; log p and log of the Mills ratio from the panel tables;
//   exponentials of hi + lo pairs, so that relative errors do not grow with |log p|.
// Error: pdf, ccdf 1e-14 relative down to the smallest normal double; logs 4e-16 * max(1, |value|).
//   tests/test_laws.
// Edge values: NaN gives NaN; points beyond the tables are counted, set to NaN and left to the
//   caller, who has the law's own formula.
#include "kernels/density.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/near_values.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

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

}  // namespace psinoise::PSINOISE_LEVEL
