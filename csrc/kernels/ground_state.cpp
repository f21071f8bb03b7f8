// Values of a solved ground state between its collocation nodes.
//
// Computes, at t inside the panels: the integral of r = -y'/y from 0 to t as hi + lo, r, and the
//   Mills ratio of y^2, from monomial coefficients in v = (t - center) / unit.
// Error: the low coefficients of the integral are pairs, so that the integral is right to about
//   1e-18 of itself plus 1e-17; r and the Mills ratio to a few ulp of their largest values on the
//   panel (tests/test_ground_state.py).
// Edge values: NaN outside [edges[0], edges[count]].
#include "kernels/level_kernels.hpp"
#include "math/double_double.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

// The last panel that starts at or before t.
std::size_t panel_of(const double* edges, std::size_t count, double t) {
  std::size_t low = 0;
  std::size_t high = count;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    if (edges[middle] <= t) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// One block of points, field by field, so that the loops over it vectorise.
inline constexpr std::size_t kBlock = 32;

struct Block {
  std::size_t panel[kBlock];
  double v[kBlock];
  double inverse[kBlock];
  double slope[kBlock];
  double value[kBlock];
  double hi[kBlock];
  double lo[kBlock];
};

// Points outside are put to the left end, for the caller to overwrite.
void place(const GroundStatePanels& panels, const double* t, std::size_t size, Block& block) {
  for (std::size_t i = 0; i < size; ++i) {
    const bool inside = t[i] >= panels.edges[0] && t[i] <= panels.edges[panels.count];
    const double x = inside ? t[i] : panels.edges[0];
    const std::size_t p = panel_of(panels.edges, panels.count, x);
    block.panel[i] = p;
    block.inverse[i] = panels.inverse_unit[p];
    block.v[i] = (x - panels.center[p]) * panels.inverse_unit[p];
  }
}

void integrate(const GroundStatePanels& panels, std::size_t size, Block& block) {
  for (std::size_t i = 0; i < size; ++i) block.hi[i] = block.slope[i] = block.lo[i] = 0.0;
  for (int k = kNodes; k >= 1; --k) {
    const double* c = panels.integral_hi + k;
    for (std::size_t i = 0; i < size; ++i) {
      const double coefficient = c[block.panel[i] * (kNodes + 1)];
      block.slope[i] = block.slope[i] * block.v[i] + static_cast<double>(k) * coefficient;
      if (k >= kPairTerms) block.hi[i] = block.hi[i] * block.v[i] + coefficient;
    }
  }
  for (int k = kPairTerms - 1; k >= 0; --k) {
    const double* c = panels.integral_hi + k;
    const double* c_lo = panels.integral_lo + k;
    for (std::size_t i = 0; i < size; ++i) {
      const DoubleDouble product =
          multiply(DoubleDouble{block.hi[i], block.lo[i]}, {block.v[i], 0.0});
      const DoubleDouble sum =
          add(product, {c[block.panel[i] * (kNodes + 1)], c_lo[block.panel[i] * kPairTerms]});
      block.hi[i] = sum.hi;
      block.lo[i] = sum.lo;
    }
  }
}

void ratio(const GroundStatePanels& panels, std::size_t size, Block& block) {
  for (std::size_t i = 0; i < size; ++i) block.value[i] = 0.0;
  for (int k = kNodes - 1; k >= 0; --k) {
    const double* c = panels.mills + k;
    for (std::size_t i = 0; i < size; ++i) {
      block.value[i] = block.value[i] * block.v[i] + c[block.panel[i] * kNodes];
    }
  }
}

}  // namespace

void ground_state(const GroundStatePanels& panels, const double* t, std::size_t count,
                  double* integral_hi, double* integral_lo, double* decay, double* mills) {
  Block block;
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t size = count - start < kBlock ? count - start : kBlock;
    place(panels, t + start, size, block);
    integrate(panels, size, block);
    ratio(panels, size, block);
    for (std::size_t i = 0; i < size; ++i) {
      const double x = t[start + i];
      const bool inside = x >= panels.edges[0] && x <= panels.edges[panels.count];
      const double nan = __builtin_nan("");
      integral_hi[start + i] = inside ? block.hi[i] : nan;
      integral_lo[start + i] = inside ? block.lo[i] : nan;
      decay[start + i] = inside ? block.slope[i] * block.inverse[i] : nan;
      mills[start + i] = inside ? block.value[i] : nan;
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
