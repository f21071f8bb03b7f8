#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/law_store.hpp"
#include "bindings/quantity.hpp"
#include "bindings/tasks.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

template <typename Real>
void sample_into(SampleKernel<Real> kernel, const LawTable& law, const Key& key,
                 std::uint64_t first, double scale, Real* out, std::size_t count,
                 std::size_t threads) {
  const Real real_scale = static_cast<Real>(scale);
  sample_in_tasks([&](std::uint64_t begin, std::size_t size,
                      Real* part) { kernel(law, key.data(), begin, size, real_scale, part); },
                  first, out, count, threads);
}

void sample(const LawStore& law, const py::bytes& key, std::uint64_t first, double scale,
            py::array& out, std::size_t threads) {
  const Key words = key_from(key);
  const std::size_t count = size_of(out);
  if (holds<float>(out)) {
    sample_into<float>(kernels().sample_float32, law.view(), words, first, scale,
                       output<float>(out, "out", "float32"), count, threads);
  } else {
    sample_into<double>(kernels().sample_float64, law.view(), words, first, scale,
                        output<double>(out, "out", "float64 or float32"), count, threads);
  }
}

std::size_t evaluate(const LawStore& law, std::string_view quantity, double scale,
                     const py::array& x, py::array& out, std::size_t threads) {
  const Quantity which = quantity_from(quantity);
  std::atomic<std::size_t> beyond{0};
  const auto part = [&](const double* points, std::size_t count, double* result) {
    beyond += kernels().evaluate(law.view(), which, scale, points, count, result);
  };
  map_in_tasks(part, x, "x", out, threads);
  return beyond;
}

void inverse_survival(const LawStore& law, double scale, const py::array& probability,
                      py::array& out, std::size_t threads) {
  const auto part = [&](const double* p, std::size_t count, double* result) {
    kernels().inverse_survival(law.view(), p, count, scale, result);
  };
  map_in_tasks(part, probability, "probability", out, threads);
}

py::array_t<double> panel_values(const py::array& rows, std::int64_t first_exponent,
                                 std::int64_t bits, const py::array& t) {
  const PanelStore panels(rows, first_exponent, bits);
  const double* points = input<double>(t, "t");
  py::array_t<double> out(t.size());
  kernels().panel_values(panels.view(), points, size_of(t), out.mutable_data());
  return out;
}

template <typename Entry>
py::tuple strips(double (*kernel)(const Panels&, const Panels&, double, Entry*, double*),
                 const PanelStore& log_density, const PanelStore& log_mills, double edge,
                 int layers) {
  py::array_t<Entry> entries(layers);
  py::array_t<double> heights(layers + 1);
  const double tail = kernel(log_density.view(), log_mills.view(), edge, entries.mutable_data(),
                             heights.mutable_data());
  return py::make_tuple(entries, heights, edge, tail);
}

py::tuple ziggurat(const PanelArguments& log_density, const PanelArguments& log_mills, double edge,
                   int layers) {
  const PanelStore density(log_density);
  const PanelStore mills(log_mills);
  const double limit = std::min(density.view().limit, mills.view().limit);
  if (!(edge > 0.0 && edge < limit)) throw py::value_error("edge must lie inside the tables");
  if (layers == kWideLayers) {
    return strips<std::uint64_t>(kernels().ziggurat_wide, density, mills, edge, layers);
  }
  if (layers == kNarrowLayers) {
    return strips<std::uint32_t>(kernels().ziggurat_narrow, density, mills, edge, layers);
  }
  throw py::value_error("layers must be 2048 or 1024");
}

}  // namespace

void bind_law(py::module_& module) {
  py::class_<LawStore>(module, "LawTable")
      .def(py::init<const PanelArguments&, const PanelArguments&, const PanelArguments&,
                    const PanelArguments&, const ZigguratArguments&, const ZigguratArguments&>(),
           py::arg("log_density"), py::arg("log_mills"), py::arg("tail_quantile"),
           py::arg("central_quantile"), py::arg("wide"), py::arg("narrow"))
      .def("close_error", &LawStore::close_error_of, py::arg("scale"), py::arg("shift"),
           py::arg("rate"));
  module.def("sample", &sample, py::arg("law"), py::arg("key"), py::arg("first"), py::arg("scale"),
             py::arg("out"), py::arg("threads"));
  module.def("evaluate", &evaluate, py::arg("law"), py::arg("quantity"), py::arg("scale"),
             py::arg("x"), py::arg("out"), py::arg("threads"));
  module.def("inverse_survival", &inverse_survival, py::arg("law"), py::arg("scale"),
             py::arg("probability"), py::arg("out"), py::arg("threads"));
  module.def("ziggurat", &ziggurat, py::arg("log_density"), py::arg("log_mills"), py::arg("edge"),
             py::arg("layers"));
  module.def("panel_values", &panel_values, py::arg("rows"), py::arg("first_exponent"),
             py::arg("bits"), py::arg("t"));
}

}  // namespace psinoise
