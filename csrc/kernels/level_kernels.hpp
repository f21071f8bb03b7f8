// Declarations of the kernels of the level being compiled; documented in kernels/kernels.hpp.
#pragma once

#include "base/level.hpp"
#include "kernels/kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {

void sample_float64(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                    std::size_t count, double scale, double* out);
void sample_float32(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                    std::size_t count, float scale, float* out);
void sample_cells_float64(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, double* out);
void sample_cells_float32(const CellTable& table, const std::uint32_t key[8], std::uint64_t first,
                          std::size_t count, double scale, float* out);
void lattice_columns(const std::uint64_t* weights, std::size_t count, std::size_t columns,
                     std::uint64_t capacity, std::uint64_t* entries);
void lattice_choices(const LatticeTable& table, const std::uint64_t* words, std::size_t count,
                     std::int64_t* out);
void lattice_noise(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, std::int64_t* out);
bool all_finite_float64(const double* x, std::size_t count);
bool all_finite_float32(const float* x, std::size_t count);
void lattice_cells_float64(const double* x, std::size_t count, double grid, double low, double high,
                           std::int64_t* out);
void lattice_cells_float32(const float* x, std::size_t count, double grid, double low, double high,
                           std::int64_t* out);
void release_float64(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const double* x, double grid, double low, double high,
                     double* out);
void release_float32(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                     std::size_t count, const float* x, double grid, double low, double high,
                     float* out);
void release_int64(const LatticeSum& law, const std::uint32_t key[8], std::uint64_t first,
                   std::size_t count, const std::int64_t* x, double grid, std::int64_t low,
                   std::int64_t high, std::int64_t* out);
void release_int64_to_float64(const LatticeSum& law, const std::uint32_t key[8],
                              std::uint64_t first, std::size_t count, const std::int64_t* x,
                              double grid, std::int64_t low, std::int64_t high, double* out);
void stream_words(const std::uint32_t key[8], int rounds, std::uint64_t first, std::size_t count,
                  std::uint64_t* out);
void chacha_block(const std::uint32_t key[8], int rounds, std::uint64_t counter,
                  std::uint64_t nonce, std::uint32_t out[16]);
std::size_t evaluate(const LawTable& law, Quantity quantity, double scale, const double* x,
                     std::size_t count, double* out);
void near_density(const LawTable& law, NearTable& near);
void near_survival(const LawTable& law, NearTable& near);
void near_quantile(const LawTable& law, NearTable& near);
void inverse_survival(const LawTable& law, const double* probability, std::size_t count,
                      double scale, double* out);
void evaluate_cells(const CellLaw& law, Quantity quantity, double scale, const double* x,
                    std::size_t count, double* out);
void inverse_survival_cells(const CellLaw& law, const double* probability, std::size_t count,
                            double scale, double* out);
void panel_values(const Panels& panels, const double* t, std::size_t count, double* out);
double ziggurat_wide(const Panels& log_density, const Panels& log_mills, double edge,
                     std::uint64_t* entries, double* heights);
double ziggurat_narrow(const Panels& log_density, const Panels& log_mills, double edge,
                       std::uint32_t* entries, double* heights);
void exponential_array(const double* hi, const double* lo, std::size_t count, double* out);
void logarithm_array(const double* x, std::size_t count, double* out);
void log_one_plus_array(const double* x, std::size_t count, double* out);
void stable_sums(double alpha, double above_one, double below_two, const double* log_y_hi,
                 const double* log_y_lo, const double* start, std::size_t points, double step,
                 std::size_t count, double* density, double* survival, double* slope);
void riccati(const RiccatiProblem& problem, const double* matrix_hi, const double* matrix_lo,
             int refinements, const RiccatiSolution& out);
void ground_state(const GroundStatePanels& panels, const double* t, std::size_t count,
                  double* integral_hi, double* integral_lo, double* decay, double* mills);
void characteristic(const double* weights, const double* losses, std::size_t count, double step,
                    std::size_t steps, double* out);
bool panel_samples(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                   const double* left, const double* right, std::size_t count, double floor,
                   double* base, double* loss, PanelVerdict* verdicts);
void piece_masses(const LawTable& law, const LossPair& pair, const double* edges,
                  const double* levels, std::size_t count, double tilt, double log_norm,
                  double* mass, double* excess);
double level_points(const LawTable& law, const LossPair& pair, const LossSamples& samples,
                    const double* levels, std::size_t count, double tolerance, double* points);
void tilted_moments(const double* log_mass, const double* mass, const double* loss,
                    std::size_t count, double c, double drift, double lost, double* tilted,
                    double out[4]);
double log_mgf(const double* mass, const double* losses, std::size_t count, double slope);
void lattice_sums(const double* a, std::size_t m, const double* b, std::size_t n,
                  std::size_t stride, std::size_t from, std::size_t to, double* out);
void placed_sums(const double* values, const std::int64_t* places, const double* weights,
                 std::size_t terms, std::size_t count, double* out);
void balanced_nodes(const double* mass, const double* excess, std::size_t bins,
                    const double* growth, const double* rise, double* share, double* nodes);
FftShape fft_shape(std::size_t size);
void fft_roots(const FftShape& shape, double* roots);
void compose_into(const FftShape& shape, const double* roots, const double* masses,
                  std::uint64_t count, double* product, double* work);
void inverse_spectrum(const FftShape& shape, const double* roots, const double* product,
                      double* masses, double* work);
bool band_cholesky(double* band, std::size_t width, std::size_t size, double* panel);
void band_forward(const double* band, std::size_t width, std::size_t size, double* right,
                  std::size_t count);
void band_backward(const double* band, std::size_t width, std::size_t size, double* right,
                   std::size_t count);
void gram(const double* rows, std::size_t count, std::size_t size, double* out);

}  // namespace psinoise::PSINOISE_LEVEL
