// Forgets secrets.
//
// Computes: zeros over memory, by a store that the compiler may not leave out: the empty assembly
//   says that it reads the memory afterwards.
// Not covered: copies in registers and what the operating system has swapped out.
#pragma once

#include <cstddef>

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline void wipe(void* memory, std::size_t size) {
  __builtin_memset(memory, 0, size);
  __asm__ __volatile__("" : : "r"(memory) : "memory");
}

}  // namespace psinoise::PSINOISE_LEVEL
