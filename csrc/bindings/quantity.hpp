// Quantities of a law by their names.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "kernels/tables.hpp"

namespace psinoise {

inline Quantity quantity_from(std::string_view name) {
  if (name == "pdf") return Quantity::pdf;
  if (name == "logpdf") return Quantity::logpdf;
  if (name == "cdf") return Quantity::cdf;
  if (name == "ccdf") return Quantity::ccdf;
  if (name == "logcdf") return Quantity::logcdf;
  if (name == "logccdf") return Quantity::logccdf;
  throw pybind11::value_error("unknown quantity");
}

}  // namespace psinoise
