#include "bindings/secret_key.hpp"

#include <pybind11/stl.h>

#if defined(_WIN32)
#include <windows.h>
// After the types that it needs.
#include <bcrypt.h>
#else
#include <sys/random.h>
#include <unistd.h>
#endif

#include <memory>
#include <optional>

#include "bindings/bindings.hpp"

namespace psinoise {

SecretKey::SecretKey() {
#if defined(_WIN32)
  if (BCryptGenRandom(nullptr, reinterpret_cast<unsigned char*>(words_.data()), sizeof(words_),
                      BCRYPT_USE_SYSTEM_PREFERRED_RNG) != 0) {
    PyErr_SetString(PyExc_OSError, "the operating system has no entropy to give");
    throw py::error_already_set();
  }
#else
  if (getentropy(words_.data(), sizeof(words_)) != 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw py::error_already_set();
  }
#endif
}

SecretKey::~SecretKey() {
  volatile std::uint32_t* words = words_.data();
  for (std::size_t j = 0; j < words_.size(); ++j) words[j] = 0;
}

void bind_secret_key(py::module_& module) {
  py::class_<SecretKey>(module, "SecretKey")
      .def(py::init([](const std::optional<py::bytes>& key) {
             return key ? std::make_unique<SecretKey>(*key) : std::make_unique<SecretKey>();
           }),
           py::arg("key"));
  py::implicitly_convertible<py::bytes, SecretKey>();
}

}  // namespace psinoise
