// The table of kernels: one instance per instruction-set level, chosen once at import.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tables.hpp"

namespace psinoise {

// Elements [first, first + count) of the stream of `key`, times `scale`.
template <typename Real>
using SampleKernel = void (*)(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                              std::size_t count, Real scale, Real* out);

template <typename Real>
using CellKernel = void (*)(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                            std::size_t count, double scale, Real* out);

// out[i] = x[i], clipped and rounded to a multiple of the grid, plus noise of element first + i.
template <typename In, typename Bound, typename Out>
using ReleaseKernel = void (*)(const LatticeSum& law, const std::uint32_t key[8],
                               std::uint64_t first, std::size_t count, const In* x, double grid,
                               Bound low, Bound high, Out* out);

// Waves that `wave_sums` adds up at once.
inline constexpr std::size_t kWaveBlock = 8;

struct Kernels {
  const char* level;
  SampleKernel<double> sample_float64;
  SampleKernel<float> sample_float32;
  CellKernel<double> sample_cells_float64;
  CellKernel<float> sample_cells_float32;
  // Columns for weights that add up to `columns` times `capacity`, both powers of two.
  void (*lattice_columns)(const std::uint64_t* weights, std::size_t count, std::size_t columns,
                          std::uint64_t capacity, std::uint64_t* entries);
  // The listed integers, with their signs, that words choose.
  void (*lattice_choices)(const LatticeTable& table, const std::uint64_t* words, std::size_t count,
                          std::int64_t* out);
  void (*lattice_noise)(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                        std::size_t count, std::int64_t* out);
  // Whether all values are finite; reads all of them whatever it finds.
  bool (*all_finite_float64)(const double* x, std::size_t count);
  bool (*all_finite_float32)(const float* x, std::size_t count);
  // Values within bounds as multiples of the grid, rounded half up.
  void (*lattice_cells_float64)(const double* x, std::size_t count, double grid, double low,
                                double high, std::int64_t* out);
  void (*lattice_cells_float32)(const float* x, std::size_t count, double grid, double low,
                                double high, std::int64_t* out);
  ReleaseKernel<double, double, double> release_float64;
  ReleaseKernel<float, double, float> release_float32;
  ReleaseKernel<std::int64_t, std::int64_t, std::int64_t> release_int64;
  ReleaseKernel<std::int64_t, std::int64_t, double> release_int64_to_float64;
  // Words [first, first + count) of the element stream, with 8 or 20 rounds.
  void (*stream_words)(const std::uint32_t key[8], int rounds, std::uint64_t first,
                       std::size_t count, std::uint64_t* out);
  // One block: the sixteen words of RFC 8439, for tests against its vectors.
  void (*chacha_block)(const std::uint32_t key[8], int rounds, std::uint64_t counter,
                       std::uint64_t nonce, std::uint32_t out[16]);
  // Returns how many points lie beyond the table; those are set to NaN for the caller to fill.
  std::size_t (*evaluate)(const LawTable& law, Quantity quantity, double scale, const double* x,
                          std::size_t count, double* out);
  // The tables of a law for its density and its quantiles near the center, from its other tables.
  void (*near_density)(const LawTable& law, NearTable& near);
  void (*near_survival)(const LawTable& law, NearTable& near);
  void (*near_quantile)(const LawTable& law, NearTable& near);
  // Points with P(X > out) = probability, in units of the scale.
  void (*inverse_survival)(const LawTable& law, const double* probability, std::size_t count,
                           double scale, double* out);
  void (*evaluate_cells)(const CellLaw& law, Quantity quantity, double scale, const double* x,
                         std::size_t count, double* out);
  void (*inverse_survival_cells)(const CellLaw& law, const double* probability, std::size_t count,
                                 double scale, double* out);
  void (*panel_values)(const Panels& panels, const double* t, std::size_t count, double* out);
  // Strips for an edge; returns the depth of the edge. The last height is infinite if the edge is
  // small.
  double (*ziggurat_wide)(const Panels& log_density, const Panels& log_mills, double edge,
                          std::uint64_t* entries, double* heights);
  double (*ziggurat_narrow)(const Panels& log_density, const Panels& log_mills, double edge,
                            std::uint32_t* entries, double* heights);
  void (*exponential)(const double* hi, const double* lo, std::size_t count, double* out);
  void (*logarithm)(const double* x, std::size_t count, double* out);
  void (*log_one_plus)(const double* x, std::size_t count, double* out);
  // Sums over k < count of the integrands of symmetric stable laws at d = start + k step; see
  // math/stable.hpp.
  void (*stable_sums)(double alpha, double above_one, double below_two, const double* log_y_hi,
                      const double* log_y_lo, const double* start, std::size_t points, double step,
                      std::size_t count, double* density, double* survival, double* slope);
  // r = -y'/y, the Mills ratio and the tail cost of a ground state, inward; kernels/riccati.cpp.
  void (*riccati)(const RiccatiProblem& problem, const double* matrix_hi, const double* matrix_lo,
                  int refinements, const RiccatiSolution& out);
  void (*ground_state)(const GroundStatePanels& panels, const double* t, std::size_t count,
                       double* integral_hi, double* integral_lo, double* decay, double* mills);
  // out[2m], out[2m+1]: real and imaginary part of sum_j weights[j] (exp(i m step losses[j]) - 1).
  void (*characteristic)(const double* weights, const double* losses, std::size_t count,
                         double step, std::size_t steps, double* out);
  // out[r count + i]: the real part of sum_m t_m exp(i m turn places[i]) over the waves of row r,
  // one or two, of which all real parts and then all imaginary ones are given; `waves` is a
  // multiple of kWaveBlock.
  void (*wave_sums)(const double* terms, std::size_t rows, std::size_t waves, double turn,
                    const double* places, std::size_t count, double* out);
  // log Q and the loss at the nodes of panels, and what to do with each panel; false if some lie
  // beyond the table. See kernels/quadrature.cpp.
  bool (*panel_samples)(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                        const double* left, const double* right, std::size_t count, double floor,
                        double* base, double* loss, PanelVerdict* verdicts);
  // How far slopes of a log density may be off, in units of its scale; kernels/quadrature.cpp.
  double (*slope_error)(const Panels& log_density);
  // log Q, the loss without sampling, and the loss at any points; NaN beyond the table.
  void (*point_losses)(const LawTable& law, const LossPair& pair, const double* x,
                       std::size_t count, double* base, double* ratio, double* loss);
  // Masses of loss bins and their excess over the lower level; see kernels/pieces.cpp.
  void (*piece_masses)(const LawTable& law, const LossPair& pair, const double* edges,
                       const double* levels, std::size_t count, double tilt, double log_norm,
                       double* mass, double* excess);
  // Outputs with given losses on a run, and the largest error; see kernels/levels.cpp.
  double (*level_points)(const LawTable& law, const LossPair& pair, const LossSamples& samples,
                         const double* levels, std::size_t count, double tolerance, double* points);
  // Largest exponent, excess, mean and square of a tilted loss; `tilted` holds count doubles. See
  // kernels/cumulants.cpp.
  void (*tilted_moments)(const double* log_mass, const double* mass, const double* loss,
                         std::size_t count, double c, double drift, double lost, double* tilted,
                         double out[4]);
  // log sum of mass[j] exp(slope places[j]).
  double (*log_mgf)(const double* mass, const std::int64_t* places, std::size_t count,
                    double slope);
  // out[k - from] += sum of a[i] b[k - stride i], from <= k < to; see kernels/products.cpp.
  void (*lattice_sums)(const double* a, std::size_t m, const double* b, std::size_t n,
                       std::size_t stride, std::size_t from, std::size_t to, double* out);
  // out[j] = sum of weights[i] values[places[i] + j], 0 <= j < count.
  void (*placed_sums)(const double* values, const std::int64_t* places, const double* weights,
                      std::size_t terms, std::size_t count, double* out);
  // How far rows of `points` values may be above others on a period; see kernels/peaks.cpp. All
  // intervals of every row, unless rows are held.
  void (*peaks_above)(const double* values, const double* other, const double* added, int bits,
                      const std::int64_t* held, std::size_t rows, std::size_t points, double sign,
                      double* out);
  // The row with the largest sum of two functions on each interval.
  void (*largest_rows)(const double* start, const double* end, std::size_t rows, std::size_t points,
                       std::int64_t* held);
  // How far one is above another near each of at least two points; `work` holds 2 (points + reach)
  // + 2.
  void (*missing_near)(const double* values, const double* other, std::size_t points, double margin,
                       std::size_t reach, double* work, double* out);
  void (*balanced_nodes)(const double* mass, const double* excess, std::size_t bins,
                         const double* growth, const double* rise, double* share, double* nodes);
  // Real transforms of `size` points, a power of two or three times one. Roots and room to work in
  // are aligned to 64 bytes.
  FftShape (*fft_shape)(std::size_t size);
  void (*fft_roots)(const FftShape& shape, double* roots);
  // product *= transform(masses) ** count.
  void (*compose_into)(const FftShape& shape, const double* roots, const double* masses,
                       std::uint64_t count, double* product, double* work);
  // values[j] = the sum of product[k] e^{2 pi i j k / size} over k of both signs.
  void (*inverse_spectrum)(const FftShape& shape, const double* roots, const double* product,
                           double* values, double* work);
  // Band matrices; see kernels/band.cpp. `panel` holds (width + kBandSpare) kBandBlock doubles;
  // false if the matrix is not positive definite. Right-hand sides are `count` rows of `size`.
  bool (*band_cholesky)(double* band, std::size_t width, std::size_t size, double* panel);
  void (*band_forward)(const double* band, std::size_t width, std::size_t size, double* right,
                       std::size_t count);
  void (*band_backward)(const double* band, std::size_t width, std::size_t size, double* right,
                        std::size_t count);
  // out[r, s] = sum over i of rows[r, i] * rows[s, i].
  void (*gram)(const double* rows, std::size_t count, std::size_t size, double* out);
};

}  // namespace psinoise
