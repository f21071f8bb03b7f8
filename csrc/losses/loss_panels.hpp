// Panels that resolve the densities and the loss of one use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/tables.hpp"

namespace psinoise {

// Panels from left to right; `base` (log Q) and `loss` have the nodes of one after another.
struct LossPanels {
  std::vector<double> left;
  std::vector<double> right;
  std::vector<double> base;
  std::vector<double> loss;
  std::vector<char> flat;
};

// Panels between rising edges, cut until each is fine; those whose densities are all below the
// floor are left out. False if some of them lie beyond the table of the law.
bool make_panels(const LawTable& law, const LossPair& pair, const PanelRule& rule,
                 const double* edges, std::size_t count, double floor, LossPanels& out);

// Values at the nodes of panels, one after another.
struct PanelValues {
  const double* log_mass;
  const double* loss;
  std::size_t panels;
  std::size_t order;
};

// Into how many pieces each panel must be cut to resolve exp((c + i t) L), |t| <= frequency, where
// the mass tilted by exp(c L - value) is not negligible.
void panel_pieces(const PanelValues& values, double c, double value, double frequency,
                  std::int64_t* out);

}  // namespace psinoise
