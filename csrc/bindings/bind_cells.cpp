#include <algorithm>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
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
        fractions_(copy<std::uint64_t>(fractions, "fractions", "uint64")),
        starts_(copy<double>(starts, "starts", "float64")),
        widths_(copy<double>(widths, "widths", "float64")) {
    const std::size_t columns = entries_.size();
    const std::size_t cells = step > 0.0 ? columns : starts_.size();
    if (columns == 0 || columns > kMostColumns || (columns & (columns - 1)) != 0 ||
        fractions_.size() != columns) {
      throw py::value_error("entries and fractions must have one length, a power of two to 32768");
    }
    if (cells == 0 || cells > columns || widths_.size() != starts_.size()) {
      throw py::value_error("starts and widths must have one length, at most that of entries");
    }
    const auto inside = [&](std::uint64_t entry) { return (entry & 0xffffu) < cells; };
    if (!std::all_of(entries_.begin(), entries_.end(), inside)) {
      throw py::value_error("entries must name cells");
    }
    if (tail_first < cells && !(tail_rate > 0.0)) {
      throw py::value_error("tail_rate must be positive where there is a tail");
    }
    // A column without a cell of its own is read too, and not used.
    starts_.resize(columns, 0.0);
    widths_.resize(columns, 0.0);
    int column_bits = 0;
    while ((std::size_t{1} << column_bits) < columns) ++column_bits;
    view_ = {entries_.data(), fractions_.data(), starts_.data(), widths_.data(), step,
             column_bits,     tail_first,        tail_rate,      tail_period};
  }
  CellStore(const CellStore&) = delete;
  CellStore& operator=(const CellStore&) = delete;

  const CellTable& view() const { return view_; }

 private:
  static constexpr std::size_t kMostColumns = std::size_t{1} << 15;

  template <typename T>
  static std::vector<T> copy(const py::array& array, const char* name, const char* type_name) {
    const T* data = input<T>(array, name, type_name);
    return std::vector<T>(data, data + array.size());
  }

  std::vector<std::uint64_t> entries_;
  std::vector<std::uint64_t> fractions_;
  std::vector<double> starts_;
  std::vector<double> widths_;
  CellTable view_{};
};

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
  module.def("sample_cells", &sample_cells, py::arg("table"), py::arg("key"), py::arg("first"),
             py::arg("scale"), py::arg("out"), py::arg("threads"));
}

}  // namespace psinoise
