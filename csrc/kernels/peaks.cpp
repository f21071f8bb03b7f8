// How far functions on a period may be above another one, at equidistant points and between them.
//
// Computes: for every row the largest, over intervals i to i + 1, of
//   max(d_i + a_i, d_{i+1} + a_{i+1}) + max(0, s_i, s_{i+1}) / 8,  d = sign (values - other),
//   a = added, s_i = 2 d_i - d_{i-1} - d_{i+1}, with indices modulo the number of points.
// Regions: all intervals; or, where a row is held from each point to the next, those of the row.
// Error: 4 roundings of d and 1 of the sum.
// Edge values: a row without an interval has -inf; NaN where something is not finite.
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Reals = Vector<double>;
inline constexpr std::size_t kLanes = kVectorSize<double>;
inline constexpr double kNone = -__builtin_inf();

template <typename T>
inline T larger(const T& a, const T& b) {
  return a > b ? a : b;
}

// Of the interval between the second and the third of four points; NaN if anything is not finite.
template <typename T>
inline T highest(const T& before, const T& at, const T& next, const T& after, const T& here,
                 const T& there) {
  const T first = at + at - before - next;
  const T second = next + next - at - after;
  const T all = (first + second) + (here + there);
  return larger(at + here, next + there) + 0.125 * larger(larger(first, second), all - all);
}

struct Row {
  const double* values;
  const double* other;
  const double* added;
  std::size_t points;
  double sign;

  double over(std::size_t i) const { return sign * (values[i] - other[i]); }
  Reals over_from(std::size_t i) const {
    return sign * (load_vector(values + i) - load_vector(other + i));
  }

  double interval(std::size_t i) const {
    const std::size_t before = i == 0 ? points - 1 : i - 1;
    const std::size_t next = i + 1 < points ? i + 1 : 0;
    const std::size_t after = next + 1 < points ? next + 1 : 0;
    return highest(over(before), over(i), over(next), over(after), added[i], added[next]);
  }

  Reals intervals(std::size_t i) const {
    return highest(over_from(i - 1), over_from(i), over_from(i + 1), over_from(i + 2),
                   load_vector(added + i), load_vector(added + i + 1));
  }

  // Comparisons pass over NaN: a difference with itself does not.
  double all() const {
    double best = interval(0);
    double spoiled = best - best;
    std::size_t i = 1;
    if (points > kLanes + 2) {
      Reals most = intervals(i);
      Reals lost = most - most;
      for (i += kLanes; i + kLanes + 2 <= points; i += kLanes) {
        const Reals found = intervals(i);
        most = larger(found, most);
        lost += found - found;
      }
      for (std::size_t k = 0; k < kLanes; ++k) {
        best = larger(most[k], best);
        spoiled += lost[k];
      }
    }
    for (; i < points; ++i) {
      const double found = interval(i);
      best = larger(found, best);
      spoiled += found - found;
    }
    return best + spoiled;
  }
};

}  // namespace

void peaks_above(const double* values, const double* other, const double* added,
                 const std::int64_t* held, std::size_t rows, std::size_t points, double sign,
                 double* out) {
  const auto row = [&](std::size_t r) {
    return Row{values + r * points, other, added + r * points, points, sign};
  };
  for (std::size_t r = 0; r < rows; ++r) out[r] = held == nullptr ? row(r).all() : kNone;
  double spoiled = 0.0;
  for (std::size_t i = 0; held != nullptr && i < points; ++i) {
    const double found = row(static_cast<std::size_t>(held[i])).interval(i);
    out[held[i]] = larger(found, out[held[i]]);
    spoiled += found - found;
  }
  for (std::size_t r = 0; r < rows; ++r) out[r] += spoiled;
}

}  // namespace psinoise::PSINOISE_LEVEL
