// Arrays as they cross the border: contiguous, of the exact type, never converted or copied.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <string>

namespace psinoise {

namespace py = pybind11;

using Key = std::array<std::uint32_t, 8>;

// 32 bytes, read as eight little-endian words.
Key key_from(const py::bytes& bytes);

[[noreturn]] void throw_array_error(const char* name, const char* type_name, bool writable);

template <typename T>
bool holds(const py::array& array) {
  return py::isinstance<py::array_t<T, py::array::c_style>>(array);
}

// C-contiguous data of dtype T. Callers hold the array, so the pointer outlives the release of the
// GIL; another thread that resizes the array meanwhile breaks NumPy's own rules too.
template <typename T>
const T* input(const py::array& array, const char* name, const char* type_name = "float64") {
  if (!holds<T>(array)) throw_array_error(name, type_name, false);
  return static_cast<const T*>(array.data());
}

template <typename T>
T* output(py::array& array, const char* name, const char* type_name = "float64") {
  if (!holds<T>(array) || !array.writeable()) throw_array_error(name, type_name, true);
  return static_cast<T*>(array.mutable_data());
}

inline std::size_t size_of(const py::array& array) {
  return static_cast<std::size_t>(array.size());
}

void require_same_size(const py::array& a, const py::array& b);

}  // namespace psinoise
