// A sampling kernel over an array, cut into tasks that do not change its bytes.
#pragma once

#include <algorithm>

#include "base/thread_pool.hpp"
#include "bindings/arrays.hpp"
#include "bindings/unlocked.hpp"

namespace psinoise {

// Elements of one task: large enough to hide the queue, small enough to balance two threads.
inline constexpr std::size_t kTask = std::size_t{1} << 15;

// kernel(first, count, out) for consecutive parts of the array.
template <typename Real, typename Kernel>
void sample_in_tasks(const Kernel& kernel, std::uint64_t first, Real* out, std::size_t count,
                     std::size_t threads) {
  const Unlocked unlocked;
  // A call for sixteen numbers should not pay for a queue.
  if (count <= kTask) {
    kernel(first, count, out);
    return;
  }
  const std::size_t tasks = (count + kTask - 1) / kTask;
  parallel_for(tasks, thread_count(threads), [&](std::size_t task) {
    const std::size_t begin = task * kTask;
    kernel(first + begin, std::min(kTask, count - begin), out + begin);
  });
}

}  // namespace psinoise
