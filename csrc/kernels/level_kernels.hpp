// Declarations of the kernels of the level being compiled: functions of the types that the members
// of `Kernels` point to, where they are documented.
#pragma once

#include "base/level.hpp"
#include "kernels/kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {

template <typename Pointer>
struct PointsTo;
template <typename Function>
struct PointsTo<Function*> {
  using Type = Function;
};
template <typename Pointer>
using Kernel = typename PointsTo<Pointer>::Type;

Kernel<decltype(Kernels::sample_float64)> sample_float64;
Kernel<decltype(Kernels::sample_float32)> sample_float32;
Kernel<decltype(Kernels::sample_cells_float64)> sample_cells_float64;
Kernel<decltype(Kernels::sample_cells_float32)> sample_cells_float32;
Kernel<decltype(Kernels::lattice_columns)> lattice_columns;
Kernel<decltype(Kernels::lattice_choices)> lattice_choices;
Kernel<decltype(Kernels::lattice_noise)> lattice_noise;
Kernel<decltype(Kernels::all_finite_float64)> all_finite_float64;
Kernel<decltype(Kernels::all_finite_float32)> all_finite_float32;
Kernel<decltype(Kernels::lattice_cells_float64)> lattice_cells_float64;
Kernel<decltype(Kernels::lattice_cells_float32)> lattice_cells_float32;
Kernel<decltype(Kernels::release_float64)> release_float64;
Kernel<decltype(Kernels::release_float32)> release_float32;
Kernel<decltype(Kernels::release_int64)> release_int64;
Kernel<decltype(Kernels::release_int64_to_float64)> release_int64_to_float64;
Kernel<decltype(Kernels::stream_words)> stream_words;
Kernel<decltype(Kernels::chacha_block)> chacha_block;
Kernel<decltype(Kernels::evaluate)> evaluate;
Kernel<decltype(Kernels::near_density)> near_density;
Kernel<decltype(Kernels::near_survival)> near_survival;
Kernel<decltype(Kernels::near_quantile)> near_quantile;
Kernel<decltype(Kernels::inverse_survival)> inverse_survival;
Kernel<decltype(Kernels::evaluate_cells)> evaluate_cells;
Kernel<decltype(Kernels::inverse_survival_cells)> inverse_survival_cells;
Kernel<decltype(Kernels::panel_values)> panel_values;
Kernel<decltype(Kernels::ziggurat_wide)> ziggurat_wide;
Kernel<decltype(Kernels::ziggurat_narrow)> ziggurat_narrow;
Kernel<decltype(Kernels::exponential)> exponential_array;
Kernel<decltype(Kernels::logarithm)> logarithm_array;
Kernel<decltype(Kernels::log_one_plus)> log_one_plus_array;
Kernel<decltype(Kernels::stable_sums)> stable_sums;
Kernel<decltype(Kernels::riccati)> riccati;
Kernel<decltype(Kernels::ground_state)> ground_state;
Kernel<decltype(Kernels::characteristic)> characteristic;
Kernel<decltype(Kernels::wave_sums)> wave_sums;
Kernel<decltype(Kernels::panel_samples)> panel_samples;
Kernel<decltype(Kernels::slope_error)> slope_error;
Kernel<decltype(Kernels::point_losses)> point_losses;
Kernel<decltype(Kernels::piece_masses)> piece_masses;
Kernel<decltype(Kernels::level_points)> level_points;
Kernel<decltype(Kernels::tilted_moments)> tilted_moments;
Kernel<decltype(Kernels::log_mgf)> log_mgf;
Kernel<decltype(Kernels::lattice_sums)> lattice_sums;
Kernel<decltype(Kernels::placed_sums)> placed_sums;
Kernel<decltype(Kernels::peaks_above)> peaks_above;
Kernel<decltype(Kernels::largest_rows)> largest_rows;
Kernel<decltype(Kernels::missing_near)> missing_near;
Kernel<decltype(Kernels::balanced_nodes)> balanced_nodes;
Kernel<decltype(Kernels::fft_shape)> fft_shape;
Kernel<decltype(Kernels::fft_roots)> fft_roots;
Kernel<decltype(Kernels::compose_into)> compose_into;
Kernel<decltype(Kernels::inverse_spectrum)> inverse_spectrum;
Kernel<decltype(Kernels::band_cholesky)> band_cholesky;
Kernel<decltype(Kernels::band_forward)> band_forward;
Kernel<decltype(Kernels::band_backward)> band_backward;
Kernel<decltype(Kernels::gram)> gram;

}  // namespace psinoise::PSINOISE_LEVEL
