// The groups of bindings that make up the module.
#pragma once

#include <pybind11/pybind11.h>

namespace psinoise {

void bind_band(pybind11::module_& module);
void bind_build(pybind11::module_& module);
void bind_math(pybind11::module_& module);
void bind_law(pybind11::module_& module);
void bind_cells(pybind11::module_& module);
void bind_ground_state(pybind11::module_& module);
void bind_lattice(pybind11::module_& module);
void bind_losses(pybind11::module_& module);
void bind_release(pybind11::module_& module);
void bind_secret_key(pybind11::module_& module);

}  // namespace psinoise
