// A small pool of worker threads that shares out numbered tasks.
//
// Fork-safe: the child of a fork starts without workers and makes its own on first use. Nothing is
// started at import, and workers that have had nothing to do for a second end. Tasks must not throw
// and must not touch Python.
#pragma once

#include <cstddef>
#include <functional>

namespace psinoise {

// More threads than this, and than cores, are not started: they would be no faster.
inline constexpr std::size_t kMostThreads = 64;

// Number of threads that `requested` means: 0 is every core the process may use, and no more are
// taken than these or kMostThreads, whichever is larger.
std::size_t thread_count(std::size_t requested);

// Calls task(0), ..., task(tasks - 1), each once, on up to `threads` threads including the
// caller's; returns when all are done.
void parallel_for(std::size_t tasks, std::size_t threads,
                  const std::function<void(std::size_t)>& task);

}  // namespace psinoise
