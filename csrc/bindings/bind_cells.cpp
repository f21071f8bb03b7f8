#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/quantity.hpp"
#include "bindings/tasks.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

// A table of cells as an immutable object: copies that no array of the caller's can change.
class CellStore {
 public:
  CellStore(const py::array& entries, const py::array& fractions, const py::array& starts,
            const py::array& widths, double step, std::uint64_t tail_first, double tail_rate,
            double tail_period)
      : entries_(copy<std::uint64_t>(entries, "entries", "uint64")),
        fractions_(copy<std::uint64_t>(fractions, "fractions", "uint64")) {
    const double* start = input<double>(starts, "starts", "float64");
    const double* width = input<double>(widths, "widths", "float64");
    const std::size_t listed = size_of(starts);
    const std::size_t columns = entries_.size();
    const std::size_t cells = step > 0.0 ? columns : listed;
    if (columns == 0 || columns > kMostColumns || (columns & (columns - 1)) != 0 ||
        fractions_.size() != columns) {
      throw py::value_error("entries and fractions must have one length, a power of two to 2**20");
    }
    if (cells == 0 || cells > columns || listed > columns || size_of(widths) != listed) {
      throw py::value_error("starts and widths must have one length, at most that of entries");
    }
    const auto inside = [&](std::uint64_t entry) { return (entry & kAlias) < cells; };
    if (!std::all_of(entries_.begin(), entries_.end(), inside)) {
      throw py::value_error("entries must name cells");
    }
    if (tail_first < cells && !(tail_rate > 0.0)) {
      throw py::value_error("tail_rate must be positive where there is a tail");
    }
    // A column without a cell of its own is read too, and not used.
    cells_ = std::make_unique<double[][2]>(columns);
    for (std::size_t k = 0; k < listed; ++k) {
      cells_[k][0] = start[k];
      cells_[k][1] = width[k];
    }
    int column_bits = 0;
    while ((std::size_t{1} << column_bits) < columns) ++column_bits;
    // From thresholds above those of an alias, 2^12 of which leave the column to the cell of its
    // number.
    for (std::size_t k = 0; k < columns; ++k) {
      const std::uint64_t threshold = entries_[k] >> kAliasBits;
      const bool whole = threshold >> kCellTestBits != 0;
      entries_[k] =
          whole ? kWholeColumn | k : threshold << (column_bits + 1) | (entries_[k] & kAlias);
    }
    if (column_bits <= kNarrowColumnBits && in_float32(start, start + listed) &&
        in_float32(width, width + listed) && in_float32(&step, &step + 1)) {
      make_narrow(column_bits);
    }
    view_ = {entries_.data(),     fractions_.data(),
             cells_.get(),        narrow_entries_.empty() ? nullptr : narrow_entries_.data(),
             narrow_cells_.get(), step,
             column_bits,         tail_first,
             tail_rate,           tail_period};
  }
  CellStore(const CellStore&) = delete;
  CellStore& operator=(const CellStore&) = delete;

  const CellTable& view() const { return view_; }

 private:
  static constexpr int kAliasBits = 20;
  static constexpr std::size_t kMostColumns = std::size_t{1} << kAliasBits;
  static constexpr std::uint64_t kAlias = kMostColumns - 1;

  template <typename T>
  static std::vector<T> copy(const py::array& array, const char* name, const char* type_name) {
    const T* data = input<T>(array, name, type_name);
    return std::vector<T>(data, data + array.size());
  }

  // Whether numbers keep all bits of a float32, products of them with positions too.
  static bool in_float32(const double* begin, const double* end) {
    return std::all_of(begin, end,
                       [](double x) { return x == 0.0 || (x > 0x1p-60 && x < 0x1p60); });
  }

  void make_narrow(int column_bits) {
    const std::uint64_t aliases = entries_.size() - 1;
    const int spare = kCellTestBits - kNarrowTestBits;
    narrow_cells_ = std::make_unique<float[][2]>(entries_.size());
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const std::uint64_t threshold = (entries_[k] & ~kWholeColumn) >> (column_bits + 1);
      narrow_entries_.push_back(static_cast<std::uint32_t>(threshold >> spare << (column_bits + 1) |
                                                           (entries_[k] & aliases)));
      for (int j = 0; j < 2; ++j) narrow_cells_[k][j] = static_cast<float>(cells_[k][j]);
    }
  }

  std::vector<std::uint64_t> entries_;
  std::vector<std::uint64_t> fractions_;
  std::unique_ptr<double[][2]> cells_;
  std::vector<std::uint32_t> narrow_entries_;
  std::unique_ptr<float[][2]> narrow_cells_;
  CellTable view_{};
};

// Copies of numbers in ascending order, with buckets to look them up by.
class KeyStore {
 public:
  explicit KeyStore(std::vector<double> keys) : keys_(std::move(keys)) {
    if (!std::is_sorted(keys_.begin(), keys_.end()) || !(keys_.front() >= 0.0) ||
        !std::isfinite(keys_.back())) {
      throw py::value_error("keys must be finite, not negative and in order");
    }
    const auto positive =
        std::find_if(keys_.begin(), keys_.end(), [](double x) { return x > 0.0; });
    const double first = positive == keys_.end() ? 0.0 : *positive;
    const double last = keys_.back();
    const std::uint64_t span = bits(last) - bits(first);
    // Most buckets have one key at most, and all together fit in the first-level cache if they can.
    int shift = 0;
    while ((span >> shift) >= std::max(4 * keys_.size(), kFewBuckets)) ++shift;
    std::vector<std::uint64_t> counts((span >> shift) + 1, 0);
    for (const double key : keys_) ++counts[(bits(std::max(key, first)) - bits(first)) >> shift];
    std::uint64_t begin = 0;
    for (const std::uint64_t count : counts) {
      ranges_.push_back(begin | (begin + count) << 32);
      begin += count;
    }
    keys_.push_back(std::numeric_limits<double>::quiet_NaN());
    view_ = {keys_.data(), ranges_.data(), first, last, shift};
  }
  KeyStore(const KeyStore&) = delete;
  KeyStore& operator=(const KeyStore&) = delete;

  const SortedKeys& view() const { return view_; }

 private:
  static constexpr std::size_t kFewBuckets = 512;

  static std::uint64_t bits(double x) {
    std::uint64_t found = 0;
    std::memcpy(&found, &x, sizeof(found));
    return found & ~(std::uint64_t{1} << 63);
  }

  std::vector<double> keys_;
  std::vector<std::uint64_t> ranges_;
  SortedKeys view_{};
};

// A law in cells as it is evaluated, an immutable object.
class CellLawStore {
 public:
  CellLawStore(const py::array& edges, const py::array& masses, const py::array& above,
               const py::array& below, const py::array& log_densities, double atom,
               std::size_t repeated, double rate, double period, bool right_closed)
      : edges_(numbers(edges, "edges")),
        below_(numbers(below, "below")),
        tails_(reversed(numbers(above, "above"))),
        above_(numbers(above, "above")),
        masses_(numbers(masses, "masses")),
        log_densities_(numbers(log_densities, "log_densities")) {
    const std::size_t cells = masses_.size();
    const std::size_t all = cells + 1;
    if (cells == 0 || size_of(edges) != all || size_of(below) != all || above_.size() != all ||
        log_densities_.size() != all) {
      throw py::value_error("there must be one mass for each cell, and one edge more");
    }
    if (repeated > cells || (repeated > 0 && !(rate > 0.0 && period > 0.0))) {
      throw py::value_error("rate and period must be positive where cells repeat");
    }
    // Beyond the support no mass is left.
    above_.push_back(0.0);
    masses_.push_back(0.0);
    view_ = {cells,          edges_.view(),         below_.view(), tails_.view(), above_.data(),
             masses_.data(), log_densities_.data(), atom,          repeated,      rate,
             period,         right_closed};
  }
  CellLawStore(const CellLawStore&) = delete;
  CellLawStore& operator=(const CellLawStore&) = delete;

  const CellLaw& view() const { return view_; }

 private:
  static std::vector<double> numbers(const py::array& array, const char* name) {
    const double* data = input<double>(array, name);
    if (array.size() == 0) throw py::value_error("there must be one mass for each cell");
    return std::vector<double>(data, data + array.size());
  }
  static std::vector<double> reversed(std::vector<double> values) {
    std::reverse(values.begin(), values.end());
    return values;
  }

  KeyStore edges_;
  KeyStore below_;
  KeyStore tails_;
  std::vector<double> above_;
  std::vector<double> masses_;
  std::vector<double> log_densities_;
  CellLaw view_{};
};

void evaluate_cells(const CellLawStore& law, std::string_view quantity, double scale,
                    const py::array& x, py::array& out, std::size_t threads) {
  const Quantity which = quantity_from(quantity);
  const auto part = [&](const double* points, std::size_t count, double* result) {
    kernels().evaluate_cells(law.view(), which, scale, points, count, result);
  };
  map_in_tasks(part, x, "x", out, threads);
}

void inverse_survival_cells(const CellLawStore& law, double scale, const py::array& probability,
                            py::array& out, std::size_t threads) {
  const auto part = [&](const double* p, std::size_t count, double* result) {
    kernels().inverse_survival_cells(law.view(), p, count, scale, result);
  };
  map_in_tasks(part, probability, "probability", out, threads);
}

template <typename Real>
void sample_into(CellKernel<Real> kernel, const CellTable& table, const Key& key,
                 std::uint64_t first, double scale, Real* out, std::size_t count,
                 std::size_t threads) {
  sample_in_tasks([&](std::uint64_t begin, std::size_t size,
                      Real* part) { kernel(table, key.data(), begin, size, scale, part); },
                  first, out, count, threads);
}

void sample_cells(const CellStore& table, const py::bytes& key, std::uint64_t first, double scale,
                  py::array& out, std::size_t threads) {
  const Key words = key_from(key);
  const std::size_t count = size_of(out);
  if (holds<float>(out)) {
    sample_into<float>(kernels().sample_cells_float32, table.view(), words, first, scale,
                       output<float>(out, "out", "float32"), count, threads);
  } else {
    sample_into<double>(kernels().sample_cells_float64, table.view(), words, first, scale,
                        output<double>(out, "out", "float64 or float32"), count, threads);
  }
}

}  // namespace

void bind_cells(py::module_& module) {
  py::class_<CellStore>(module, "CellTable")
      .def(py::init<const py::array&, const py::array&, const py::array&, const py::array&, double,
                    std::uint64_t, double, double>(),
           py::arg("entries"), py::arg("fractions"), py::arg("starts"), py::arg("widths"),
           py::arg("step"), py::arg("tail_first"), py::arg("tail_rate"), py::arg("tail_period"));
  py::class_<CellLawStore>(module, "CellLaw")
      .def(py::init<const py::array&, const py::array&, const py::array&, const py::array&,
                    const py::array&, double, std::size_t, double, double, bool>(),
           py::arg("edges"), py::arg("masses"), py::arg("above"), py::arg("below"),
           py::arg("log_densities"), py::arg("atom"), py::arg("repeated"), py::arg("rate"),
           py::arg("period"), py::arg("right_closed"));
  module.def("evaluate_cells", &evaluate_cells, py::arg("law"), py::arg("quantity"),
             py::arg("scale"), py::arg("x"), py::arg("out"), py::arg("threads"));
  module.def("inverse_survival_cells", &inverse_survival_cells, py::arg("law"), py::arg("scale"),
             py::arg("probability"), py::arg("out"), py::arg("threads"));
  module.def("sample_cells", &sample_cells, py::arg("table"), py::arg("key"), py::arg("first"),
             py::arg("scale"), py::arg("out"), py::arg("threads"));
}

}  // namespace psinoise
