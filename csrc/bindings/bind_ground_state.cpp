#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

void require(const py::array& array, std::size_t size, const char* name) {
  if (size_of(array) != size) throw py::value_error(std::string(name) + " has the wrong size");
}

py::tuple riccati(const py::array& half, const py::array& potential_hi,
                  const py::array& potential_lo, const py::array& cost, const py::array& guess,
                  const py::array& start, const py::array& matrix_hi, const py::array& matrix_lo,
                  int refinements) {
  const std::size_t count = size_of(half);
  const std::size_t values = count * kNodes;
  require(potential_hi, values, "potential_hi");
  require(potential_lo, values, "potential_lo");
  require(cost, values, "cost");
  require(guess, values, "guess");
  require(start, 3, "start");
  require(matrix_hi, kNodes * kNodes, "matrix_hi");
  require(matrix_lo, kNodes * kNodes, "matrix_lo");
  const RiccatiProblem problem = {count,
                                  input<double>(half, "half"),
                                  input<double>(potential_hi, "potential_hi"),
                                  input<double>(potential_lo, "potential_lo"),
                                  input<double>(cost, "cost"),
                                  input<double>(guess, "guess"),
                                  input<double>(start, "start")};
  const double* b_hi = input<double>(matrix_hi, "matrix_hi");
  const double* b_lo = input<double>(matrix_lo, "matrix_lo");
  std::vector<py::array_t<double>> out;
  for (int i = 0; i < 6; ++i) {
    out.emplace_back(std::vector<py::ssize_t>{static_cast<py::ssize_t>(count), kNodes});
  }
  const RiccatiSolution solution = {out[0].mutable_data(), out[1].mutable_data(),
                                    out[2].mutable_data(), out[3].mutable_data(),
                                    out[4].mutable_data(), out[5].mutable_data()};
  {
    const Unlocked unlocked;
    kernels().riccati(problem, b_hi, b_lo, refinements, solution);
  }
  return py::make_tuple(out[0], out[1], out[2], out[3], out[4], out[5]);
}

py::tuple ground_state(const py::array& edges, const py::array& center,
                       const py::array& inverse_unit, const py::array& integral_hi,
                       const py::array& integral_lo, const py::array& mills, const py::array& t) {
  const std::size_t count = size_of(center);
  if (count == 0) throw py::value_error("there must be at least one panel");
  require(edges, count + 1, "edges");
  require(inverse_unit, count, "inverse_unit");
  require(integral_hi, count * (kNodes + 1), "integral_hi");
  require(integral_lo, count * kPairTerms, "integral_lo");
  require(mills, count * kNodes, "mills");
  const GroundStatePanels panels = {count,
                                    input<double>(edges, "edges"),
                                    input<double>(center, "center"),
                                    input<double>(inverse_unit, "inverse_unit"),
                                    input<double>(integral_hi, "integral_hi"),
                                    input<double>(integral_lo, "integral_lo"),
                                    input<double>(mills, "mills")};
  const double* points = input<double>(t, "t");
  std::vector<py::array_t<double>> out;
  for (int i = 0; i < 4; ++i) out.emplace_back(t.size());
  double* data[4] = {out[0].mutable_data(), out[1].mutable_data(), out[2].mutable_data(),
                     out[3].mutable_data()};
  {
    const Unlocked unlocked;
    kernels().ground_state(panels, points, size_of(t), data[0], data[1], data[2], data[3]);
  }
  return py::make_tuple(out[0], out[1], out[2], out[3]);
}

}  // namespace

void bind_ground_state(py::module_& module) {
  module.def("riccati", &riccati, py::arg("half"), py::arg("potential_hi"), py::arg("potential_lo"),
             py::arg("cost"), py::arg("guess"), py::arg("start"), py::arg("matrix_hi"),
             py::arg("matrix_lo"), py::arg("refinements"));
  module.def("ground_state", &ground_state, py::arg("edges"), py::arg("center"),
             py::arg("inverse_unit"), py::arg("integral_hi"), py::arg("integral_lo"),
             py::arg("mills"), py::arg("t"));
}

}  // namespace psinoise
