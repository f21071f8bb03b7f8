// Forgets secrets: what a task left on its stack and in registers.
//
// Computes: calls a task, clears the registers that calls may use, and overwrites the stack below
//   the caller. Locals, spilled registers, signal frames and the registers that the dynamic linker
//   saves are all there, whatever the compiler made of the task.
// Range: the task's frames must stay within kWipedStack bytes; those of the release kernels take
//   about 16 KiB, and their largest object asserts that it is at most half of it.
// Layout: `apart` lies below the frame that is wiped from, by more than the own frame of
//   `wipe_stack` above its array; so the array covers all of the task's frames.
// Not covered: memory that the task was handed, registers under a compiler without
//   zero_call_used_regs (GCC 11 and Clang 15 have it), what the operating system has swapped out.
#pragma once

#include <cstddef>

#include "base/level.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline constexpr std::size_t kWipedStack = std::size_t{1} << 15;

#if defined(__has_attribute)
#if __has_attribute(zero_call_used_regs)
#define PSINOISE_CLEARS_REGISTERS __attribute__((zero_call_used_regs("all")))
#endif
#endif
#ifndef PSINOISE_CLEARS_REGISTERS
#define PSINOISE_CLEARS_REGISTERS
#endif

// The empty assembly says that it reads and writes the memory: no store to it may be left out, and
// no call before it becomes a jump that reuses the frame.
inline void touch(void* memory) {
  __asm__ __volatile__("" : : "r"(memory) : "memory");
}

__attribute__((noinline)) inline void wipe_stack() {
  alignas(64) unsigned char stack[kWipedStack];
  __builtin_memset(stack, 0, sizeof(stack));
  touch(stack);
}

// The registers that AVX-512 adds, which GCC's attribute leaves as they are (seen with GCC 12). The
// assembly also keeps the compiler from jumping to the task, which would return past the clearing.
inline void clear_upper_vectors() {
#if defined(__AVX512VL__)
#define PSINOISE_CLEAR(n) "vpxord %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n\t"
  __asm__ __volatile__(PSINOISE_CLEAR(16) PSINOISE_CLEAR(17) PSINOISE_CLEAR(18) PSINOISE_CLEAR(19)
                           PSINOISE_CLEAR(20) PSINOISE_CLEAR(21) PSINOISE_CLEAR(22)
                               PSINOISE_CLEAR(23) PSINOISE_CLEAR(24) PSINOISE_CLEAR(25)
                                   PSINOISE_CLEAR(26) PSINOISE_CLEAR(27) PSINOISE_CLEAR(28)
                                       PSINOISE_CLEAR(29) PSINOISE_CLEAR(30) PSINOISE_CLEAR(31)
                       :
                       :
                       : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                         "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
#undef PSINOISE_CLEAR
#else
  __asm__ __volatile__("");
#endif
}

template <typename Task>
PSINOISE_CLEARS_REGISTERS __attribute__((noinline)) void call_clearing(const Task& task) {
  task();
  clear_upper_vectors();
}

template <typename Task>
__attribute__((noinline)) void apart(const Task& task) {
  unsigned char distance[512];
  touch(distance);
  call_clearing(task);
  touch(distance);
}

// Calls `task` and forgets what it left.
template <typename Task>
__attribute__((noinline)) void call_and_forget(const Task& task) {
  apart(task);
  wipe_stack();
}

}  // namespace psinoise::PSINOISE_LEVEL
