// Tables of a law as an immutable object: copies that no array of the caller's can change.
#pragma once

#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "dispatch/dispatch.hpp"
#include "kernels/tables.hpp"

namespace psinoise {

// Rows of panels, and after them two rows for each part of a panel: its polynomial, and a
// description that ends in NaN: index of the panel, position u from which the part serves, index of
// its own row, center in u, and one over its half width. Then the first exponent, and the binary
// logarithm of the number of panels in an octave.
using PanelArguments = std::tuple<py::array, std::int64_t, std::int64_t>;

class PanelStore {
 public:
  PanelStore(const py::array& rows, std::int64_t first_exponent, std::int64_t bits) {
    if (bits < 3 || bits > 8) throw py::value_error("an octave must have 8 to 256 panels");
    const std::int64_t octave = std::int64_t{1} << bits;
    const double* data = input<double>(rows, "rows");
    if (rows.ndim() != 2 || rows.shape(1) != kPanelRow) throw_shape();
    std::int64_t panels = rows.shape(0);
    while (panels > 2 && std::isnan(data[panels * kPanelRow - 1])) panels -= 2;
    if (panels < 2 || (panels - 1) % octave != 0) throw_shape();
    const std::int64_t exponents = (panels - 1) / octave;
    if (first_exponent < -1000 || first_exponent + exponents > 1000) {
      throw py::value_error("panels must lie between 2^-1000 and 2^1000");
    }
    rows_.assign(data, data + rows.size());
    for (std::int64_t row = panels + 1; row < rows.shape(0); row += 2) {
      const double* description = data + row * kPanelRow;
      const bool valid = description[0] >= 0.0 && description[0] < static_cast<double>(panels) &&
                         description[0] == std::floor(description[0]) &&
                         description[2] == static_cast<double>(row - 1) && description[1] < 1.0 &&
                         std::isfinite(description[3]) && description[4] > 0.0 &&
                         std::isfinite(description[4]);
      if (!valid) throw py::value_error("a part must belong to a panel");
      const std::int64_t panel = kPanelRow * static_cast<std::int64_t>(description[0]);
      const bool ascending = splits_.empty() || splits_.back().row < panel ||
                             (splits_.back().row == panel && splits_.back().u < description[1]);
      if (!ascending) throw py::value_error("parts must be in ascending order");
      splits_.push_back(
          {panel, description[1], kPanelRow * (row - 1), description[3], description[4]});
    }
    view_ = {rows_.data(),
             panels,
             first_exponent,
             bits,
             std::ldexp(1.0, static_cast<int>(first_exponent + exponents)),
             static_cast<std::int64_t>(splits_.size()),
             splits_.data(),
             0.0};
  }
  explicit PanelStore(const PanelArguments& arguments)
      : PanelStore(std::get<0>(arguments), std::get<1>(arguments), std::get<2>(arguments)) {}
  PanelStore(const PanelStore&) = delete;
  PanelStore& operator=(const PanelStore&) = delete;

  const Panels& view() const { return view_; }

 private:
  [[noreturn]] static void throw_shape() {
    throw py::value_error("rows must have shape (1 + 2**bits exponents, 12)");
  }

  std::vector<double> rows_;
  std::vector<Split> splits_;
  Panels view_{};
};

template <typename Entry>
class ZigguratStore {
 public:
  ZigguratStore(const py::array& entries, const py::array& heights, double base_edge,
                double tail_depth, py::ssize_t layers) {
    const Entry* e = input<Entry>(entries, "entries", sizeof(Entry) == 8 ? "uint64" : "uint32");
    const double* h = input<double>(heights, "heights");
    if (entries.size() != layers || heights.size() != layers + 1) {
      throw py::value_error("a ziggurat has one entry per layer and one height more");
    }
    entries_.assign(e, e + entries.size());
    heights_.assign(h, h + heights.size());
    view_ = {entries_.data(), heights_.data(), base_edge, tail_depth};
  }

  const Ziggurat<Entry>& view() const { return view_; }

 private:
  std::vector<Entry> entries_;
  std::vector<double> heights_;
  Ziggurat<Entry> view_{};
};

using ZigguratArguments = std::tuple<py::array, py::array, double, double>;

class LawStore {
 public:
  LawStore(const PanelArguments& log_density, const PanelArguments& log_mills,
           const PanelArguments& tail_quantile, const PanelArguments& central_quantile,
           const ZigguratArguments& wide, const ZigguratArguments& narrow)
      : log_density_(log_density),
        log_mills_(log_mills),
        tail_quantile_(tail_quantile),
        central_quantile_(central_quantile),
        wide_(std::get<0>(wide), std::get<1>(wide), std::get<2>(wide), std::get<3>(wide),
              kWideLayers),
        narrow_(std::get<0>(narrow), std::get<1>(narrow), std::get<2>(narrow), std::get<3>(narrow),
                kNarrowLayers),
        view_{log_density_.view(),      log_mills_.view(), tail_quantile_.view(),
              central_quantile_.view(), wide_.view(),      narrow_.view(),
              &near_density_,           &near_survival_,   &near_quantile_} {
    const bool same = log_mills_.view().count == log_density_.view().count &&
                      log_mills_.view().first_exponent == log_density_.view().first_exponent &&
                      log_mills_.view().bits == log_density_.view().bits &&
                      same_splits(log_mills_.view(), log_density_.view());
    if (!same) throw py::value_error("log_mills and log_density must have the same panels");
    // The kernels index these two without a check.
    if (!(tail_quantile_.view().limit > 746.0) || !(central_quantile_.view().limit >= 0.25)) {
      throw py::value_error("the quantile tables must cover every probability");
    }
    view_.log_density.slope_error = kernels().slope_error(view_.log_density);
    kernels().near_density(view_, near_density_);
    kernels().near_survival(view_, near_survival_);
    kernels().near_quantile(view_, near_quantile_);
  }
  LawStore(const LawStore&) = delete;
  LawStore& operator=(const LawStore&) = delete;

  const LawTable& view() const { return view_; }
  double close_error_of(double scale, double shift, double rate) const {
    return close_error(view_.log_density, scale, shift, rate);
  }

 private:
  // The kernels find the row in one table and read it in both.
  static bool same_splits(const Panels& a, const Panels& b) {
    if (a.split_count != b.split_count) return false;
    for (std::int64_t i = 0; i < a.split_count; ++i) {
      const Split& x = a.splits[i];
      const Split& y = b.splits[i];
      const bool same = x.row == y.row && x.u == y.u && x.after == y.after &&
                        x.center == y.center && x.inverse == y.inverse;
      if (!same) return false;
    }
    return true;
  }

  PanelStore log_density_;
  PanelStore log_mills_;
  PanelStore tail_quantile_;
  PanelStore central_quantile_;
  ZigguratStore<std::uint64_t> wide_;
  ZigguratStore<std::uint32_t> narrow_;
  NearTable near_density_{};
  NearTable near_survival_{};
  NearTable near_quantile_{};
  LawTable view_;
};

}  // namespace psinoise
