// The function table of this level.
#include "kernels/level_kernels.hpp"

#define PSINOISE_STRINGIFY(name) #name
#define PSINOISE_LEVEL_NAME(name) PSINOISE_STRINGIFY(name)

namespace psinoise::PSINOISE_LEVEL {

extern const Kernels kernels;
const Kernels kernels = {
    PSINOISE_LEVEL_NAME(PSINOISE_LEVEL),
    sample_float64,
    sample_float32,
    sample_cells_float64,
    sample_cells_float32,
    lattice_columns,
    lattice_choices,
    lattice_noise,
    all_finite_float64,
    all_finite_float32,
    lattice_cells_float64,
    lattice_cells_float32,
    release_float64,
    release_float32,
    release_int64,
    release_int64_to_float64,
    stream_words,
    chacha_block,
    evaluate,
    near_density,
    near_survival,
    near_quantile,
    inverse_survival,
    evaluate_cells,
    inverse_survival_cells,
    panel_values,
    ziggurat_wide,
    ziggurat_narrow,
    exponential_array,
    logarithm_array,
    log_one_plus_array,
    stable_sums,
    riccati,
    ground_state,
    characteristic,
    panel_samples,
    slope_error,
    point_losses,
    piece_masses,
    level_points,
    tilted_moments,
    log_mgf,
    lattice_sums,
    placed_sums,
    peaks_above,
    largest_rows,
    missing_near,
    balanced_nodes,
    fft_shape,
    fft_roots,
    compose_into,
    inverse_spectrum,
    band_cholesky,
    band_forward,
    band_backward,
    gram,
};

}  // namespace psinoise::PSINOISE_LEVEL
