#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/law_store.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

// Doubles at the start of a cache line, which the vectors of kernels do not cross then.
class AlignedDoubles {
 public:
  explicit AlignedDoubles(std::size_t size)
      : data_(static_cast<double*>(::operator new(size * sizeof(double), kLine))) {}
  ~AlignedDoubles() { ::operator delete(data_, kLine); }
  AlignedDoubles(const AlignedDoubles&) = delete;
  AlignedDoubles& operator=(const AlignedDoubles&) = delete;

  double* data() const { return data_; }

 private:
  static constexpr std::align_val_t kLine{64};
  double* data_;
};

using Pair = std::complex<double>;

// Without the cases of infinite parts, which the standard library's operator has.
Pair times(Pair a, Pair b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Transforms of one length: roots of unity, and room to work in, for one thread at a time.
class Transform {
 public:
  explicit Transform(std::size_t size)
      : size_(checked(size)),
        shape_(kernels().fft_shape(size)),
        roots_(shape_.roots),
        work_(shape_.work) {
    kernels().fft_roots(shape_, roots_.data());
  }

  std::size_t size() const { return size_; }

  void compose_into(const py::array& masses, std::uint64_t count, py::array& product) {
    const double* values = input<double>(masses, "masses");
    double* spectrum = spectrum_of(product);
    require(size_of(masses), size_, "masses");
    const Unlocked unlocked;
    const std::lock_guard<std::mutex> lock(mutex_);
    kernels().compose_into(shape_, roots_.data(), values, count, spectrum, work_.data());
  }

  py::array inverse(const py::array& spectra, const std::optional<py::array>& factors,
                    std::optional<py::array> out) {
    const auto* first = input<Pair>(spectra, "spectra", "complex128");
    const std::size_t all = size_ / 2 + 1;
    const std::size_t terms =
        spectra.ndim() > 0 ? static_cast<std::size_t>(spectra.shape(spectra.ndim() - 1)) : 0;
    if (terms == 0 || terms > all) throw py::value_error("spectra have the wrong size");
    const Pair* factor = factors ? input<Pair>(*factors, "factors", "complex128") : nullptr;
    if (factors) require(factors->ndim() == 1 ? size_of(*factors) : 0, terms, "factors");
    const std::size_t rows = size_of(spectra) / terms;
    std::vector<py::ssize_t> extents(spectra.shape(), spectra.shape() + spectra.ndim());
    extents.back() = static_cast<py::ssize_t>(size_);
    if (!out) out = py::array_t<double>(extents);
    double* values = output<double>(*out, "out");
    const bool fits =
        out->ndim() == spectra.ndim() && std::equal(extents.begin(), extents.end(), out->shape());
    if (!fits) throw py::value_error("out has the wrong shape");
    {
      const Unlocked unlocked;
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<Pair> padded(all);
      for (std::size_t r = 0; r < rows; ++r) {
        const Pair* row = first + r * terms;
        for (std::size_t k = 0; k < terms; ++k)
          padded[k] = factor ? times(row[k], factor[k]) : row[k];
        kernels().inverse_spectrum(shape_, roots_.data(),
                                   reinterpret_cast<const double*>(padded.data()),
                                   values + r * size_, work_.data());
      }
    }
    return *out;
  }

 private:
  static std::size_t checked(std::size_t size) {
    const std::size_t even = size % 3 == 0 && size >= 12 ? size / 3 : size;
    if (even < 2 || (even & (even - 1)) != 0) {
      throw py::value_error("size must be a power of two, or three times one");
    }
    return size;
  }

  static void require(std::size_t size, std::size_t wanted, const char* name) {
    if (size != wanted) throw py::value_error(std::string(name) + " has the wrong size");
  }

  double* spectrum_of(py::array& product) const {
    require(size_of(product), size_ / 2 + 1, "product");
    return reinterpret_cast<double*>(
        output<std::complex<double>>(product, "product", "complex128"));
  }

  std::size_t size_;
  FftShape shape_;
  AlignedDoubles roots_;
  AlignedDoubles work_;
  std::mutex mutex_;
};

py::tuple tilted_moments(const py::array& log_mass, const py::array& mass, const py::array& loss,
                         double c, double drift, double lost) {
  require_same_size(log_mass, mass);
  require_same_size(log_mass, loss);
  const double* k = input<double>(log_mass, "log_mass");
  const double* m = input<double>(mass, "mass");
  const double* l = input<double>(loss, "loss");
  const std::size_t count = size_of(log_mass);
  double out[4];
  {
    const Unlocked unlocked;
    std::vector<double> tilted(count);
    kernels().tilted_moments(k, m, l, count, c, drift, lost, tilted.data(), out);
  }
  return py::make_tuple(out[0], out[1], out[2], out[3]);
}

py::array_t<double> balanced_nodes(const py::array& mass, const py::array& excess,
                                   const py::array& widths, double tilt) {
  require_same_size(mass, excess);
  require_same_size(mass, widths);
  const double* a = input<double>(mass, "mass");
  const double* u = input<double>(excess, "excess");
  const std::size_t bins = size_of(mass);
  if (bins < 2) throw py::value_error("there must be at least two bins");
  const double* w = input<double>(widths, "widths");
  std::vector<double> work(3 * bins);
  for (std::size_t j = 0; j < bins; ++j) {
    work[j] = std::expm1(w[j]);
    work[bins + j] = std::exp(tilt * w[j]);
  }
  py::array_t<double> nodes(static_cast<py::ssize_t>(bins + 1));
  double* out = nodes.mutable_data();
  {
    const Unlocked unlocked;
    kernels().balanced_nodes(a, u, bins, work.data(), work.data() + bins, work.data() + 2 * bins,
                             out);
  }
  return nodes;
}

}  // namespace

void bind_lattice(py::module_& module) {
  py::class_<Transform>(module, "Transform")
      .def(py::init<std::size_t>(), py::arg("size"))
      .def_property_readonly("size", &Transform::size)
      .def("compose_into", &Transform::compose_into, py::arg("masses"), py::arg("count"),
           py::arg("product"))
      .def("inverse", &Transform::inverse, py::arg("spectra"), py::arg("factors") = py::none(),
           py::arg("out") = py::none());
  module.def("tilted_moments", &tilted_moments, py::arg("log_mass"), py::arg("mass"),
             py::arg("loss"), py::arg("c"), py::arg("drift"), py::arg("lost"));
  module.def("balanced_nodes", &balanced_nodes, py::arg("mass"), py::arg("excess"),
             py::arg("widths"), py::arg("tilt"));
}

}  // namespace psinoise
