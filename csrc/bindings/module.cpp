#include "bindings/bindings.hpp"
#include "dispatch/dispatch.hpp"

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "Compiled kernels of psinoise; the contract is _core.pyi.";
  try {
    psinoise::kernels();
  } catch (const std::invalid_argument& error) {
    throw pybind11::import_error(error.what());
  }
  psinoise::bind_build(module);
  psinoise::bind_band(module);
  psinoise::bind_math(module);
  psinoise::bind_law(module);
  psinoise::bind_cells(module);
  psinoise::bind_ground_state(module);
  psinoise::bind_lattice(module);
  psinoise::bind_losses(module);
  psinoise::bind_secret_key(module);
  psinoise::bind_release(module);
}
