#include <complex>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

py::array_t<double> like(const py::array& x) {
  return py::array_t<double>(x.size());
}

py::array_t<double> exponential(const py::array& hi, const py::array& lo) {
  require_same_size(hi, lo);
  const double* a = input<double>(hi, "hi");
  const double* b = input<double>(lo, "lo");
  py::array_t<double> out = like(hi);
  kernels().exponential(a, b, size_of(hi), out.mutable_data());
  return out;
}

py::array_t<double> logarithm(const py::array& x) {
  const double* data = input<double>(x, "x");
  py::array_t<double> out = like(x);
  kernels().logarithm(data, size_of(x), out.mutable_data());
  return out;
}

py::array_t<double> log_one_plus(const py::array& x) {
  const double* data = input<double>(x, "x");
  py::array_t<double> out = like(x);
  kernels().log_one_plus(data, size_of(x), out.mutable_data());
  return out;
}

py::tuple stable_sums(double alpha, double above_one, double below_two, const py::array& log_y_hi,
                      const py::array& log_y_lo, const py::array& start, double step,
                      std::size_t count) {
  require_same_size(log_y_hi, log_y_lo);
  require_same_size(log_y_hi, start);
  const double* hi = input<double>(log_y_hi, "log_y_hi");
  const double* lo = input<double>(log_y_lo, "log_y_lo");
  const double* first = input<double>(start, "start");
  py::array_t<double> density = like(log_y_hi);
  py::array_t<double> survival = like(log_y_hi);
  py::array_t<double> slope = like(log_y_hi);
  double* out[3] = {density.mutable_data(), survival.mutable_data(), slope.mutable_data()};
  {
    const Unlocked unlocked;
    kernels().stable_sums(alpha, above_one, below_two, hi, lo, first, size_of(log_y_hi), step,
                          count, out[0], out[1], out[2]);
  }
  return py::make_tuple(density, survival, slope);
}

py::array_t<std::complex<double>> characteristic(const py::array& weights, const py::array& losses,
                                                 double step, std::size_t count) {
  require_same_size(weights, losses);
  const double* w = input<double>(weights, "weights");
  const double* l = input<double>(losses, "losses");
  py::array_t<std::complex<double>> out(static_cast<py::ssize_t>(count));
  double* result = reinterpret_cast<double*>(out.mutable_data());
  {
    const Unlocked unlocked;
    kernels().characteristic(w, l, size_of(weights), step, count, result);
  }
  return out;
}

py::array_t<double> wave_sums(const py::array& terms, double turn, const py::array& places) {
  if (terms.ndim() != 2 || terms.shape(0) < 1 || terms.shape(0) > 2) {
    throw py::value_error("terms must have one row or two");
  }
  const auto* term = input<std::complex<double>>(terms, "terms", "complex128");
  const double* place = input<double>(places, "places");
  const auto rows = static_cast<std::size_t>(terms.shape(0));
  const auto given = static_cast<std::size_t>(terms.shape(1));
  const std::size_t waves = (given + kWaveBlock - 1) / kWaveBlock * kWaveBlock;
  std::vector<double> apart(2 * rows * waves);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t m = 0; m < given; ++m) {
      apart[2 * row * waves + m] = term[row * given + m].real();
      apart[(2 * row + 1) * waves + m] = term[row * given + m].imag();
    }
  }
  py::array_t<double> out({terms.shape(0), places.size()});
  double* sums = out.mutable_data();
  {
    const Unlocked unlocked;
    kernels().wave_sums(apart.data(), rows, waves, turn, place, size_of(places), sums);
  }
  return out;
}

py::array_t<std::uint64_t> stream_words(const py::bytes& key, int rounds, std::uint64_t first,
                                        std::size_t count) {
  if (rounds != 8 && rounds != 20) throw py::value_error("rounds must be 8 or 20");
  const Key words = key_from(key);
  py::array_t<std::uint64_t> out(static_cast<py::ssize_t>(count));
  kernels().stream_words(words.data(), rounds, first, count, out.mutable_data());
  return out;
}

py::array_t<std::uint32_t> chacha_block(const py::bytes& key, int rounds, std::uint64_t counter,
                                        std::uint64_t nonce) {
  if (rounds != 8 && rounds != 20) throw py::value_error("rounds must be 8 or 20");
  const Key words = key_from(key);
  py::array_t<std::uint32_t> out(16);
  kernels().chacha_block(words.data(), rounds, counter, nonce, out.mutable_data());
  return out;
}

}  // namespace

void bind_math(py::module_& module) {
  module.def("exponential", &exponential, py::arg("hi"), py::arg("lo"));
  module.def("logarithm", &logarithm, py::arg("x"));
  module.def("log_one_plus", &log_one_plus, py::arg("x"));
  module.def("stable_sums", &stable_sums, py::arg("alpha"), py::arg("above_one"),
             py::arg("below_two"), py::arg("log_y_hi"), py::arg("log_y_lo"), py::arg("start"),
             py::arg("step"), py::arg("count"));
  module.def("characteristic", &characteristic, py::arg("weights"), py::arg("losses"),
             py::arg("step"), py::arg("count"));
  module.def("wave_sums", &wave_sums, py::arg("terms"), py::arg("turn"), py::arg("places"));
  module.def("stream_words", &stream_words, py::arg("key"), py::arg("rounds"), py::arg("first"),
             py::arg("count"));
  module.def("chacha_block", &chacha_block, py::arg("key"), py::arg("rounds"), py::arg("counter"),
             py::arg("nonce"));
}

}  // namespace psinoise
