// Density and distribution function of a compiled law.
//
// Computes: pdf, logpdf, cdf, ccdf, logcdf, logccdf at x.
// Regions: densities and tails near the center from tables of their own (kernels/near_tables.cpp);
//   else |x| / scale as a double-double; log p and log of the Mills ratio from the panel tables;
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

using Points = Block<kBlock>;

// log P(X > t) = log p(t) + log m(t), m the Mills ratio, whose table has the same panels.
void log_survival(const LawTable& law, std::size_t size, Points& block) {
  log_density(law, size, block);
  double head[kBlock];
  double rest[kBlock];
  panel_parts(law.log_mills, block.row, block.u, size, head, rest);
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals mills = load_vector(head + i) + load_vector(rest + i);
    const PairOf<Reals> sum = two_sum(load_vector(block.hi + i), mills);
    store_vector(sum.hi, block.hi + i);
    store_vector(sum.lo + load_vector(block.lo + i), block.lo + i);
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
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals value =
        exp_shifted(load_vector(block.hi + i), load_vector(block.lo + i), -scale.exponent);
    store_vector(value * scale.inverse_mantissa, result + i, size - i);
  }
  return beyond;
}

// P(X > x) where `direction` is 1, P(X <= x) = P(X > -x) where it is -1. `result` may be x.
void survival(const LawTable& law, const double* x, std::size_t size, double direction,
              Points& block, double* result) {
  log_survival(law, size, block);
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals point = load_vector(x + i, size - i);
    const Reals value = exp_sum(load_vector(block.hi + i), load_vector(block.lo + i));
    store_vector(point * direction >= 0.0 ? value : 1.0 - value, result + i, size - i);
  }
}

void log_of_survival(const LawTable& law, const double* x, std::size_t size, double direction,
                     Points& block, double* result) {
  log_survival(law, size, block);
  double value[kBlock];
  for (std::size_t i = 0; i < size; i += kLanes) {
    store_vector(exp_sum(load_vector(block.hi + i), load_vector(block.lo + i)), value + i);
  }
  for (std::size_t i = 0; i < size; ++i) {
    const bool upper = x[i] * direction >= 0.0;
    result[i] = upper ? block.hi[i] + block.lo[i] : log_one_plus(-value[i]);
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
  const bool density = quantity == Quantity::pdf;
  const bool tail = quantity == Quantity::cdf || quantity == Quantity::ccdf;
  const NearValues values(tail ? *law.near_survival : *law.near_density);
  const bool near =
      (density || tail) && values.table.limit > 0.0 && exponent >= -1000 && exponent <= 1000;
  const double inverse = 1.0 / scale;
  const double power = double_from(static_cast<std::uint64_t>(1023 - (near ? exponent : 0)) << 52);
  // From where on the function is 0; a tail is there from a depth of 746 on.
  const double end = tail ? tail_quantile(law, 746.0) * scale : __builtin_inf();
  const auto standard = [&](Reals point) { return magnitude(point) * inverse; };
  const auto before_end = [&](Reals point) { return magnitude(point) < end; };
  const auto near_density = [&](Reals, Reals t) {
    return values(t) * parts.inverse_mantissa * power;
  };
  const auto no_density = [](Reals point) { return point == point ? Reals{} : point; };
  const bool mirrored = quantity == Quantity::cdf || quantity == Quantity::logcdf;
  const double direction = mirrored ? -1.0 : 1.0;
  const auto near_survival = [&](Reals point, Reals t) {
    const Reals value = values(t);
    return point * direction >= 0.0 ? value : 1.0 - value;
  };
  const auto all_or_nothing = [&](Reals point) {
    const Reals value = point * direction >= 0.0 ? Reals{} : Reals{} + 1.0;
    return point == point ? value : point;
  };
  Points block;
  // Results are written when the block's points have been read for the last time, so that `result`
  // may be `points`.
  const auto far = [&](const double* points, std::size_t size, double* result) {
    if (density) return densities(law, parts, points, size, block, result);
    const std::size_t outside = standardize(law.log_density, points, size, scale, block);
    if (quantity == Quantity::logpdf) {
      log_density(law, size, block);
      for (std::size_t i = 0; i < size; ++i) {
        result[i] = (block.hi[i] - log_scale) + block.lo[i];
      }
    } else if (tail) {
      survival(law, points, size, direction, block, result);
    } else {
      log_of_survival(law, points, size, direction, block, result);
    }
    return outside;
  };
  const auto far_in_place = [&](double* points, std::size_t size) {
    return far(points, size, points);
  };
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    const double* points = x + start;
    double* result = out + start;
    if (!near) {
      beyond += far(points, size, result);
    } else if (density) {
      beyond += near_and_far(points, size, result, values.table.limit, standard, near_density,
                             before_end, no_density, far_in_place);
    } else {
      beyond += near_and_far(points, size, result, values.table.limit, standard, near_survival,
                             before_end, all_or_nothing, far_in_place);
    }
  }
  return beyond;
}

}  // namespace psinoise::PSINOISE_LEVEL
