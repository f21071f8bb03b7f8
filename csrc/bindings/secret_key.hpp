// The key of one release: 32 bytes that are nowhere but in this object, and overwritten with it.
//
// They come from getentropy, which waits until the system's generator has been seeded and gives all
// of them or fails, on Windows from BCryptGenRandom. There is no other source.
#pragma once

#include "bindings/arrays.hpp"

namespace psinoise {

class SecretKey {
 public:
  // From the operating system; an OSError if it has none.
  SecretKey();
  // A known one, for replays; the bytes belong to the caller.
  explicit SecretKey(const py::bytes& bytes) : words_(key_from(bytes)) {}
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  ~SecretKey();

  const std::uint32_t* data() const { return words_.data(); }

 private:
  Key words_;
};

}  // namespace psinoise
