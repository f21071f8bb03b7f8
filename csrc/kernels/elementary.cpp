// Array forms of math/elementary.hpp and math/panels.hpp, for the compiler of laws and for tests.
#include "math/elementary.hpp"

#include "kernels/level_kernels.hpp"
#include "math/panels.hpp"

namespace psinoise::PSINOISE_LEVEL {

void exponential_array(const double* hi, const double* lo, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; i += kVectorSize<double>) {
    const std::size_t left = count - i;
    store_vector(exp_sum(load_vector(hi + i, left), load_vector(lo + i, left)), out + i, left);
  }
}

void logarithm_array(const double* x, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = logarithm(x[i]);
}

void log_one_plus_array(const double* x, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = log_one_plus(x[i]);
}

void panel_values(const Panels& panels, const double* t, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool inside = t[i] >= 0.0 && t[i] < panels.limit;
    // The sign bit of -0.0 would be taken for part of the exponent.
    out[i] = inside ? panel_value(panels, __builtin_fabs(t[i])) : __builtin_nan("");
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
