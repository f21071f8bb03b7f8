// Tables of a density, of its tail and of a quantile where most samples of a law are, for sixteen
// panels in registers.
//
// Computes: for t in [0, limit) the density p(t) or the tail P(X > t), and for v in [0, limit) the
//   quantile t of P(X > t) = 1/2 - v as t / v, as polynomials of degree 10 on panels of equal
//   width, through the values at Chebyshev points.
// Regions: the limit is the largest of those tried for which every polynomial is right between its
//   points and at both ends: four to an octave, up to where the density has fallen by a factor
//   e^10, and four from 1/4 to 7/16. Laws whose panels have parts have tables of the quantile
//   alone.
// Error: relative 4e-15 of density and tail at points between, that of the logarithm included, and
//   4 ulp at the mode, an ulp of the tail there; 1e-15 of the quantile, that of the tables that it
//   is read from included.
// Edge values: a limit of 0 says that there is no table.
// Constants: Chebyshev points cos((2 k + 1) pi / 22).
#include "kernels/level_kernels.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr double kNodes[] = {
    0x1.fac9e043842efp-1,  0x1.d1bb48eee2c13p-1,  0x1.82f19bb3a28a1p-1,
    0x1.14cedf8bb580bp-1,  0x1.207e7fd768dbfp-2,  0.0,
    -0x1.207e7fd768dbfp-2, -0x1.14cedf8bb580bp-1, -0x1.82f19bb3a28a1p-1,
    -0x1.d1bb48eee2c13p-1, -0x1.fac9e043842efp-1};
inline constexpr double kChecks[] = {-1.0, -0.9912109375, -0.5, 0.1416015625, 0.9912109375, 1.0};
inline constexpr double kFall = 10.0;
inline constexpr double kTolerance = 4e-15;
// At 0, where some densities are not smooth.
inline constexpr double kAtMode = 4.0 * 0x1p-52;
inline constexpr double kOfHalf = 0x1p-52;
inline constexpr double kQuantileTolerance = 1e-15;

// The coefficients of the polynomial through eleven values, by discrete orthogonality of Chebyshev
// polynomials, in powers of u.
void interpolate(const double* values, double* terms) {
  double older[kNearTerms] = {1.0};
  double old[kNearTerms] = {0.0, 1.0};
  double chebyshev[2][kNearTerms];
  for (int k = 0; k < kNearTerms; ++k) {
    terms[k] = 0.0;
    chebyshev[0][k] = 1.0;
    chebyshev[1][k] = kNodes[k];
  }
  for (int j = 0; j < kNearTerms; ++j) {
    double sum = 0.0;
    // Differences from the value in the middle: their rounding is as small as they are.
    for (int k = 0; k < kNearTerms; ++k) {
      sum += (values[k] - values[kNearTerms / 2]) * chebyshev[0][k];
    }
    const double weight = sum * ((j == 0 ? 1.0 : 2.0) / kNearTerms);
    for (int k = 0; k < kNearTerms; ++k) {
      terms[k] += weight * older[k];
      const double next = 2.0 * kNodes[k] * chebyshev[1][k] - chebyshev[0][k];
      chebyshev[0][k] = chebyshev[1][k];
      chebyshev[1][k] = next;
    }
    for (int k = kNearTerms - 1; k >= 0; --k) {
      const double next = (k > 0 ? 2.0 * old[k - 1] : 0.0) - older[k];
      older[k] = old[k];
      // From the top down, so that old[k - 1] is still there for the next.
      old[k] = next;
    }
  }
  terms[0] += values[kNearTerms / 2];
}

template <typename Function>
bool fits(const Function& function, double tolerance, double at_zero, double limit,
          NearTable& near) {
  near.limit = limit;
  near.width = limit / kNearPanels;
  const double half = 0.5 * near.width;
  for (int panel = 0; panel < kNearPanels; ++panel) {
    const double center = (panel + 0.5) * near.width;
    double values[kNearTerms];
    double terms[kNearTerms];
    for (int k = 0; k < kNearTerms; ++k) values[k] = function(center + half * kNodes[k]);
    interpolate(values, terms);
    for (const double u : kChecks) {
      double sum = terms[kNearTerms - 1];
      for (int k = kNearTerms - 2; k >= 0; --k) sum = sum * u + terms[k];
      const double exact = function(center + half * u);
      const double most = panel == 0 && u == -1.0 ? at_zero : tolerance;
      if (!(__builtin_fabs(sum - exact) <= most * exact)) return false;
    }
    for (int k = 0; k < kNearTerms; ++k) near.terms[k][panel] = terms[k];
  }
  return true;
}

// The widest table of a function of t that is right.
template <typename Function>
void widest(const Panels& log_density, const Function& function, double at_zero, NearTable& near) {
  const double peak = log_density.split_count == 0 ? panel_value(log_density, 0.0) : 0.0;
  for (double octave = 64.0; log_density.split_count == 0 && octave >= 0x1p-6; octave *= 0.5) {
    for (int quarter = 7; quarter >= 4; --quarter) {
      const double limit = 0.25 * quarter * octave;
      if (limit >= log_density.limit) continue;
      if (!(peak - panel_value(log_density, limit) <= kFall)) continue;
      if (fits(function, kTolerance, at_zero, limit, near)) return;
    }
  }
  near = {};
}

}  // namespace

void near_density(const LawTable& law, NearTable& near) {
  const auto density = [&](double t) {
    const DoubleDouble value = panel_pair(law.log_density, locate(law.log_density, t, 0.0));
    return exp_sum(value.hi, value.lo);
  };
  widest(law.log_density, density, kAtMode, near);
}

void near_survival(const LawTable& law, NearTable& near) {
  const auto survival = [&](double t) {
    const PanelPosition at = locate(law.log_density, t, 0.0);
    const DoubleDouble density = panel_pair(law.log_density, at);
    const DoubleDouble value = two_sum(density.hi, panel_value(law.log_mills, at));
    return exp_sum(value.hi, value.lo + density.lo);
  };
  widest(law.log_density, survival, kOfHalf, near);
}

void near_quantile(const LawTable& law, NearTable& near) {
  const auto quantile = [&](double v) {
    if (v < 0.25) return panel_value(law.central_quantile, v);
    return tail_quantile(law, -log_of_normal_or_less(2.0 * (0.5 - v))) / v;
  };
  for (int sixteenth = 7; sixteenth >= 4; --sixteenth) {
    const double limit = 0.0625 * sixteenth;
    if (fits(quantile, kQuantileTolerance, kQuantileTolerance, limit, near)) return;
  }
  near = {};
}

}  // namespace psinoise::PSINOISE_LEVEL
