#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

struct BandShape {
  std::size_t size;
  std::size_t width;
};

BandShape shape_of(const py::array& band) {
  if (band.ndim() != 2 || band.shape(0) < 1 || band.shape(1) < 1 || band.shape(1) > band.shape(0)) {
    throw py::value_error("band must have shape (size, width + 1), width below size");
  }
  return {static_cast<std::size_t>(band.shape(0)), static_cast<std::size_t>(band.shape(1) - 1)};
}

std::size_t rows_of(const py::array& right, std::size_t size) {
  if (right.ndim() != 2 || static_cast<std::size_t>(right.shape(1)) != size) {
    throw py::value_error("right must have one column for each of the band's");
  }
  return static_cast<std::size_t>(right.shape(0));
}

bool band_cholesky(py::array& band) {
  double* data = output<double>(band, "band");
  const BandShape shape = shape_of(band);
  const Unlocked unlocked;
  std::vector<double> panel((shape.width + kBandSpare) * kBandBlock);
  return kernels().band_cholesky(data, shape.width, shape.size, panel.data());
}

void band_forward(const py::array& band, py::array& right) {
  const double* data = input<double>(band, "band");
  double* rows = output<double>(right, "right");
  const BandShape shape = shape_of(band);
  const std::size_t count = rows_of(right, shape.size);
  const Unlocked unlocked;
  kernels().band_forward(data, shape.width, shape.size, rows, count);
}

void band_backward(const py::array& band, py::array& right) {
  const double* data = input<double>(band, "band");
  double* rows = output<double>(right, "right");
  const BandShape shape = shape_of(band);
  const std::size_t count = rows_of(right, shape.size);
  const Unlocked unlocked;
  kernels().band_backward(data, shape.width, shape.size, rows, count);
}

py::array_t<double> gram(const py::array& rows) {
  const double* data = input<double>(rows, "rows");
  if (rows.ndim() != 2) throw py::value_error("rows must have two dimensions");
  const py::ssize_t count = rows.shape(0);
  const std::size_t size = static_cast<std::size_t>(rows.shape(1));
  py::array_t<double> out({count, count});
  double* result = out.mutable_data();
  {
    const Unlocked unlocked;
    kernels().gram(data, static_cast<std::size_t>(count), size, result);
  }
  return out;
}

}  // namespace

void bind_band(py::module_& module) {
  module.def("band_cholesky", &band_cholesky, py::arg("band"));
  module.def("band_forward", &band_forward, py::arg("band"), py::arg("right"));
  module.def("band_backward", &band_backward, py::arg("band"), py::arg("right"));
  module.def("gram", &gram, py::arg("rows"));
}

}  // namespace psinoise
