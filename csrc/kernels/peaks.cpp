// Functions on a period, at equidistant points: which of them is largest on each interval, how far
// one is above another one near each point, and how far they may be, at points and between them.
//
// Computes: for every interval i to i + 1 the first row for which the sum of two functions at both
//   ends is largest. For every point the largest, over points up to `reach` away, of
//   max(0, values + margin max(|s'_{i-1}|, |s'_i|, |s'_{i+1}|) - other), s'_i = 2 other_i -
//   other_{i-1} - other_{i+1}. For every row the largest, over intervals, of
//   max(d_i, d_{i+1}) + max(0, s_i, s_{i+1}) / 8 + a,  d = sign (values - other),  a what is added
//   there, s_i = 2 d_i - d_{i-1} - d_{i+1}, with indices modulo the number of points.
// Regions: all intervals; or, where a row is held from each point to the next, those of the row.
// Error: 4 roundings of d and 1 of the sum; of what a row is chosen by, 3 of the sum of all sizes.
// Edge values: a row without an interval has -inf; NaN where something is not finite, but for what
//   is near a point, which passes over it.
#include "base/masks.hpp"
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
inline T highest(const T& before, const T& at, const T& next, const T& after, const T& added) {
  const T first = at + at - before - next;
  const T second = next + next - at - after;
  const T all = (first + second) + added;
  return (larger(at, next) + 0.125 * larger(larger(first, second), all - all)) + added;
}

struct Row {
  const double* values;
  const double* other;
  const double* added;  // to 2^bits intervals each
  std::size_t points;
  int bits;
  double sign;

  double over(std::size_t i) const { return sign * (values[i] - other[i]); }
  Reals over_from(std::size_t i) const {
    return sign * (load_vector(values + i) - load_vector(other + i));
  }

  double interval(std::size_t i) const {
    const std::size_t before = i == 0 ? points - 1 : i - 1;
    const std::size_t next = i + 1 < points ? i + 1 : 0;
    const std::size_t after = next + 1 < points ? next + 1 : 0;
    return highest(over(before), over(i), over(next), over(after), added[i >> bits]);
  }

  Reals intervals(std::size_t i) const {
    return highest(over_from(i - 1), over_from(i), over_from(i + 1), over_from(i + 2),
                   added_from(i));
  }
  Reals added_from(std::size_t i) const {
    if (bits == 0) return load_vector(added + i);
    const double first = added[i >> bits];
    if (i >> bits == (i + kLanes - 1) >> bits) return Reals{} + first;
    double each[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k) each[k] = added[(i + k) >> bits];
    return load_vector(each);
  }

  // The most of intervals begin to end - 1, of which there are some. Comparisons pass over NaN: a
  // difference with itself does not.
  double highest_of(std::size_t begin, std::size_t end) const {
    double best = interval(begin);
    double spoiled = best - best;
    std::size_t i = begin + 1;
    // Vectors that do not straddle what is added to several intervals.
    for (; i < end && i % kLanes != 0; ++i) {
      const double found = interval(i);
      best = larger(found, best);
      spoiled += found - found;
    }
    const auto full = [&] { return i + kLanes <= end && i + kLanes + 2 <= points; };
    if (full()) {
      Reals most = intervals(i);
      Reals lost = most - most;
      for (i += kLanes; full(); i += kLanes) {
        const Reals found = intervals(i);
        most = larger(found, most);
        lost += found - found;
      }
      for (std::size_t k = 0; k < kLanes; ++k) {
        best = larger(most[k], best);
        spoiled += lost[k];
      }
    }
    for (; i < end; ++i) {
      const double found = interval(i);
      best = larger(found, best);
      spoiled += found - found;
    }
    return best + spoiled;
  }
};

}  // namespace

void largest_rows(const double* start, const double* end, std::size_t rows, std::size_t points,
                  std::int64_t* held) {
  typedef Vector<std::int64_t> Places;
  const auto sum = [&](std::size_t r, std::size_t i) {
    return start[r * points + i] + end[r * points + i];
  };
  const auto sums = [&](std::size_t r, std::size_t i) {
    return load_vector(start + r * points + i) + load_vector(end + r * points + i);
  };
  std::size_t i = 0;
  for (; i + kLanes < points; i += kLanes) {
    Reals best = sums(0, i) + sums(0, i + 1);
    Places row = {};
    for (std::size_t r = 1; r < rows; ++r) {
      const Reals both = sums(r, i) + sums(r, i + 1);
      const Places above = both > best;
      row = choose(above, Places{} + static_cast<std::int64_t>(r), row);
      best = larger(both, best);
    }
    store_vector(row, held + i);
  }
  for (; i < points; ++i) {
    const std::size_t next = i + 1 < points ? i + 1 : 0;
    double best = sum(0, i) + sum(0, next);
    held[i] = 0;
    for (std::size_t r = 1; r < rows; ++r) {
      const double both = sum(r, i) + sum(r, next);
      if (both > best) held[i] = static_cast<std::int64_t>(r);
      best = larger(both, best);
    }
  }
}

void missing_near(const double* values, const double* other, std::size_t points, double margin,
                  std::size_t reach, double* work, double* out) {
  // A point more on each side of `bent`, and `reach` more on each side of `missing`.
  double* bent = work + 1;
  double* missing = work + points + 2;
  const auto bend = [&](std::size_t before, std::size_t i, std::size_t next) {
    bent[i] = margin * __builtin_fabs((other[i] + other[i]) - (other[before] + other[next]));
  };
  bend(points - 1, 0, 1);
  for (std::size_t i = 1; i + 1 < points; ++i) bend(i - 1, i, i + 1);
  bend(points - 2, points - 1, 0);
  work[0] = bent[points - 1];
  bent[points] = bent[0];
  for (std::size_t i = 0; i < points; ++i) {
    const double most = larger(larger(work[i], work[i + 2]), work[i + 1]);
    missing[reach + i] = larger((values[i] + most) - other[i], 0.0);
  }
  for (std::size_t i = 0; i < reach; ++i) {
    missing[i] = missing[points + i];
    missing[reach + points + i] = missing[reach + i];
  }
  // Of 1, 2, 4, ... points from each on, and of as many as there are in two of these.
  const std::size_t all = 2 * reach + 1;
  std::size_t known = 1;
  for (; 2 * known <= all; known *= 2) {
    for (std::size_t i = 0; i + 2 * known <= points + 2 * reach; ++i) {
      missing[i] = larger(missing[i], missing[i + known]);
    }
  }
  for (std::size_t i = 0; i < points; ++i) out[i] = larger(missing[i], missing[i + all - known]);
}

void peaks_above(const double* values, const double* other, const double* added, int bits,
                 const std::int64_t* held, std::size_t rows, std::size_t points, double sign,
                 double* out) {
  const auto row = [&](std::size_t r) {
    return Row{values + r * points, other, added + r * (points >> bits), points, bits, sign};
  };
  for (std::size_t r = 0; r < rows; ++r) {
    out[r] = held == nullptr ? row(r).highest_of(0, points) : kNone;
  }
  double spoiled = 0.0;
  // Rows are held for many intervals on end.
  for (std::size_t i = 0; held != nullptr && i < points;) {
    const std::int64_t which = held[i];
    const std::size_t begin = i;
    while (i < points && held[i] == which) ++i;
    const double found = row(static_cast<std::size_t>(which)).highest_of(begin, i);
    out[which] = larger(found, out[which]);
    spoiled += found - found;
  }
  for (std::size_t r = 0; r < rows; ++r) out[r] += spoiled;
}

}  // namespace psinoise::PSINOISE_LEVEL
