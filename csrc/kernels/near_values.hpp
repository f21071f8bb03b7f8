// Values of tables near the center, for most points of a block, and another way for the others.
//
// Computes: a function of a table of sixteen panels (kernels/near_tables.cpp) at a vector of
// points. Error, edge values: those of the table; callers keep points from 0 to below its limit.
#pragma once

#include <cstddef>

#include "base/look_up.hpp"
#include "base/masks.hpp"
#include "kernels/density.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr std::size_t kBlock = 64;

using Reals = Vector<double>;
using Bits = Vector<std::uint64_t>;

// The value of a table near the center at points from 0 up to its limit. Where registers do not
// hold sixteen numbers, its polynomials are rows like those of panels.
class NearValues {
 public:
  explicit NearValues(const NearTable& from) : table(from) {
    for (int panel = 0; !kInRegisters && panel < kNearPanels; ++panel) {
      rows_[panel][0] = from.terms[0][panel];
      rows_[panel][1] = 0.0;
      for (int k = 1; k < kNearTerms; ++k) rows_[panel][k + 1] = from.terms[k][panel];
    }
  }

  Reals operator()(Reals t) const {
    const Cut panel = cut(t * per_width_);
    const Reals u = (t - (panel.doubles + 0.5) * width_) * inverse_half_;
    const Reals v = u * u;
    if constexpr (kInRegisters) {
      const auto c = [&](int k) { return look_up_16(table.terms[k], panel.integers); };
      const Reals odd = (((c(9) * v + c(7)) * v + c(5)) * v + c(3)) * v + c(1);
      const Reals even = ((((c(10) * v + c(8)) * v + c(6)) * v + c(4)) * v + c(2)) * v + c(0);
      return u * odd + even;
    } else {
      std::int64_t number[kLanes];
      __builtin_memcpy(number, &panel.integers, sizeof(number));
      const double* rows[kLanes];
      for (std::size_t r = 0; r < kLanes; ++r) rows[r] = rows_[number[r]];
      const PanelSums sums = sum_terms(rows, v);
      return u * sums.odd + (sums.even * v + sums.last[0]);
    }
  }

  const NearTable& table;

 private:
  static constexpr bool kInRegisters = 2 * kLanes == kNearPanels;
  static_assert(kPanelRow == kNearTerms + 1);

  double width_ = table.width;                        // a copy, which no result written can change
  double per_width_ = (1.0 - 0x1p-51) / table.width;  // below 16 for every t below the limit
  double inverse_half_ = 2.0 / table.width;
  alignas(64) double rows_[kInRegisters ? 1 : kNearPanels][kPanelRow];
};

// A block of points: those whose argument is less than the limit of the table have the value of the
// point and the argument, a vector at a time. Those of the others that are `regular` are brought
// together for `distant`, whose result is returned; what is left, NaN too, has `edge`. `result` may
// be x.
template <typename Argument, typename Value, typename Regular, typename Edge, typename Distant>
inline std::size_t near_and_far(const double* x, std::size_t size, double* result, double limit,
                                const Argument& argument, const Value& value,
                                const Regular& regular, const Edge& edge, const Distant& distant) {
  static_assert(kBlock == 64);
  double points[kBlock];
  double others[kBlock];
  std::uint64_t far = 0;  // a bit for each point
  Bits ordinary = ~Bits{};
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Reals point = load_vector(x + i, size - i);
    const Reals t = argument(point);
    const Bits within = bit_cast<Bits>(t < limit);
    const Bits other = bit_cast<Bits>(regular(point));
    const unsigned bits = negative(bit_cast<Vector<std::int64_t>>(other & ~within));
    far |= static_cast<std::uint64_t>(bits) << i;
    ordinary &= other;
    store_vector(point, points + i);
    if (bits == (1u << kLanes) - 1u) continue;
    const Reals found = value(point, bit_cast<Reals>(bit_cast<Bits>(t) & within));
    store_vector(found, result + i, size - i);
  }
  if (negative(bit_cast<Vector<std::int64_t>>(ordinary)) != (1u << kLanes) - 1u) {
    for (std::size_t i = 0; i < size; i += kLanes) {
      const Reals point = load_vector(points + i);
      const Reals found = load_vector(result + i, size - i);
      store_vector(regular(point) ? found : edge(point), result + i, size - i);
    }
  }
  if (far == 0) return 0;
  std::size_t place[kBlock];
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    place[count] = i;
    others[count] = points[i];
    count += far >> i & 1;
  }
  const std::size_t beyond = distant(others, count);
  for (std::size_t j = 0; j < count; ++j) result[place[j]] = others[j];
  return beyond;
}

}  // namespace
}  // namespace psinoise::PSINOISE_LEVEL
