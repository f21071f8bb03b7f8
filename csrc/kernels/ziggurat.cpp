// Strips of equal area that cover a decreasing half density.
//
// Computes: widths with embedded thresholds and heights for a given edge r of strip 0, from the log
//   density and log Mills tables of a law; the depth of r.
// Method: strip 0 is the rectangle [0, r] x [0, y1] and the tail beyond r; every further strip
//   starts at the height where the last one ended and is as wide as the curve there. The caller
//   (psinoise/compile/ziggurat.py) looks for the r whose last strip ends just above the mode.
// Exactness: rounding is outward. A width X_i rounded up still covers the curve; strip 0 is rounded
//   down and y1 = S(r) / (X_0 - r) >= p(r) raised to match, which makes P(tail | strip 0) = S(r)/v
//   exact. Thresholds are rounded down. What rounding wastes is rejected by the sampler, at a cost
//   of 1e-6 (float64) or 5e-4 (float32) of the draws, and what lies above the mode at 3e-5 or 1e-4.
// Error: relative error of the strip areas about 1e-15; of the curve, that of the tables.
// References: Marsaglia and Tsang, J. Stat. Softw. 5(8), 2000.
#include "kernels/level_kernels.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

struct Curve {
  Panels log_density;
  Panels log_mills;

  double log_value(double t) const { return panel_value(log_density, t); }
  double value(double t) const { return exponential(log_value(t)); }
  double log_survival(double t) const { return log_value(t) + panel_value(log_mills, t); }

  // Newton on log p from a point of a bracket [0, right]. The step of 2^-30 of the point that ends
  // it leaves far less than what a threshold resolves.
  double inverse(double log_height, double right, double start) const {
    double low = 0.0;
    double high = right;
    double t = start;
    for (int i = 0; i < 100; ++i) {
      const PanelPosition whole = locate(log_density, t, 0.0);
      const PanelPosition at = cross(log_density, whole);
      const double excess = panel_value(log_density, at) - log_height;
      if (excess >= 0.0) low = t;
      if (excess <= 0.0) high = t;
      double next = t - excess / slope(t, whole, at);
      if (!(next > low && next < high)) next = low + 0.5 * (high - low);
      if (__builtin_fabs(next - t) <= 0x1p-30 * t || next == low || next == high) return next;
      t = next;
    }
    return t;
  }

  double slope(double t, PanelPosition whole, PanelPosition at) const {
    const Split* part = part_of(log_density, whole);
    const double* c = log_density.rows + at.row + 1;
    double sum = 10.0 * c[10];
    for (int k = 9; k >= 1; --k) sum = sum * at.u + static_cast<double>(k) * c[k];
    return sum * half_width_inverse(t) * (part == nullptr ? 1.0 : part->inverse);
  }

  double half_width_inverse(double t) const {
    const std::int64_t exponent = static_cast<std::int64_t>(bits_of(t) >> 52) - 1023;
    if (exponent < log_density.first_exponent) {
      return double_from(static_cast<std::uint64_t>(1024 - log_density.first_exponent) << 52);
    }
    return double_from(static_cast<std::uint64_t>(1024 + log_density.bits - exponent) << 52);
  }
};

// The width of a strip as the entry of the table, whose low bits hold the threshold, a fraction of
// 2^32 or 2^12.
struct Wide {
  using Entry = std::uint64_t;
  static constexpr int low_bits = 32;
  static Entry round_down(double width) { return bits_of(width); }
  static double width(Entry entry) { return double_from(entry); }
};

struct Narrow {
  using Entry = std::uint32_t;
  static constexpr int low_bits = 12;
  // From the float64 itself, so that no rounding of a conversion is involved.
  static Entry round_down(double width) {
    return static_cast<Entry>((bits_of(width) >> 29) -
                              (static_cast<std::uint64_t>(1023 - 127) << 23));
  }
  static double width(Entry entry) {
    float value;
    __builtin_memcpy(&value, &entry, sizeof(value));
    return static_cast<double>(value);
  }
};

template <typename Form>
inline constexpr double kFractions = static_cast<double>(std::uint64_t{1} << Form::low_bits);

template <typename Form>
inline typename Form::Entry with_threshold(typename Form::Entry entry, std::uint64_t threshold) {
  using Entry = typename Form::Entry;
  return (entry >> Form::low_bits << Form::low_bits) | static_cast<Entry>(threshold);
}

template <typename Form>
std::uint64_t threshold(double inner, double width) {
  const double fraction = inner / width * kFractions<Form>;
  // Down, and one more for the rounding of `inner`; at most all bits set.
  const double safe = fraction < kFractions<Form> ? fraction : kFractions<Form>;
  return safe < 2.0 ? 0u : static_cast<std::uint64_t>(safe) - 1u;
}

// Fills the table for an edge and returns its depth. If the strips reach the mode early the edge is
// too small: all heights after the first that does are infinite.
template <typename Form>
double fill(const Curve& curve, double edge, int layers, typename Form::Entry* entries,
            double* heights) {
  const double mode = curve.value(0.0);
  const double log_survival = curve.log_survival(edge);
  const double survival = exponential(log_survival);
  // The areas of all strips hang on this width, so it keeps all its bits: they are a valid
  // threshold, if not the best one, wherever they are not above it.
  entries[0] = Form::round_down(edge + survival / curve.value(edge));
  const std::uint64_t fitting = threshold<Form>(edge, Form::width(entries[0]));
  if (entries[0] - with_threshold<Form>(entries[0], 0) > fitting) {
    entries[0] = with_threshold<Form>(entries[0], fitting);
  }
  const double base_width = Form::width(entries[0]);
  heights[0] = 0.0;
  heights[1] = survival / (base_width - edge);
  const double area = base_width * heights[1];
  double reach = edge;
  for (int i = 1; i < layers; ++i) {
    const typename Form::Entry above =
        with_threshold<Form>(Form::round_down(reach), 0) +
        static_cast<typename Form::Entry>(std::uint64_t{1} << Form::low_bits);
    // The threshold is part of the width, so it is lowered until it fits the width that it makes.
    std::uint64_t wanted = (std::uint64_t{1} << Form::low_bits) - 1u;
    double inner = reach;
    for (;;) {
      entries[i] = with_threshold<Form>(above, wanted);
      const double width = Form::width(entries[i]);
      heights[i + 1] = heights[i] + area / width;
      inner = heights[i + 1] < mode ? curve.inverse(logarithm(heights[i + 1]), reach, inner) : 0.0;
      const std::uint64_t most = threshold<Form>(inner, width);
      if (wanted <= most) break;
      wanted = most;
    }
    if (heights[i + 1] >= mode) {
      for (int k = i + 2; k <= layers; ++k) heights[k] = __builtin_inf();
      break;
    }
    reach = inner;
  }
  return -log_survival - kLog2;
}

}  // namespace

double ziggurat_wide(const Panels& log_density, const Panels& log_mills, double edge,
                     std::uint64_t* entries, double* heights) {
  return fill<Wide>({log_density, log_mills}, edge, kWideLayers, entries, heights);
}

double ziggurat_narrow(const Panels& log_density, const Panels& log_mills, double edge,
                       std::uint32_t* entries, double* heights) {
  return fill<Narrow>({log_density, log_mills}, edge, kNarrowLayers, entries, heights);
}

}  // namespace psinoise::PSINOISE_LEVEL
