// Arrays cut into tasks for threads; the results do not depend on the cuts.
#pragma once

#include <algorithm>

#include "base/thread_pool.hpp"
#include "bindings/arrays.hpp"
#include "bindings/unlocked.hpp"

namespace psinoise {

// Elements of one task: large enough to hide the queue, small enough to balance two threads.
inline constexpr std::size_t kTask = std::size_t{1} << 15;

// part(begin, size) for consecutive parts of so many elements.
template <typename Part>
void in_tasks(std::size_t count, std::size_t threads, const Part& part) {
  const Unlocked unlocked;
  // A call for sixteen numbers should not pay for a queue.
  if (count <= kTask) {
    part(std::size_t{0}, count);
    return;
  }
  const std::size_t tasks = (count + kTask - 1) / kTask;
  parallel_for(tasks, thread_count(threads), [&](std::size_t task) {
    const std::size_t begin = task * kTask;
    part(begin, std::min(kTask, count - begin));
  });
}

// kernel(first, count, out) for consecutive parts of the array.
template <typename Real, typename Kernel>
void sample_in_tasks(const Kernel& kernel, std::uint64_t first, Real* out, std::size_t count,
                     std::size_t threads) {
  in_tasks(count, threads,
           [&](std::size_t begin, std::size_t size) { kernel(first + begin, size, out + begin); });
}

// function(x, size, out) on doubles; numbers of float32 pass through doubles, a block at a time.
template <typename In, typename Out, typename Function>
void map_part(const Function& function, const In* x, std::size_t size, Out* out) {
  if constexpr (sizeof(In) == sizeof(double) && sizeof(Out) == sizeof(double)) {
    function(x, size, out);
  } else {
    constexpr std::size_t kBlock = 512;
    double from[kBlock];
    double to[kBlock];
    for (std::size_t start = 0; start < size; start += kBlock) {
      const std::size_t part = std::min(kBlock, size - start);
      std::copy(x + start, x + start + part, from);
      function(from, part, to);
      std::transform(to, to + part, out + start, [](double y) { return static_cast<Out>(y); });
    }
  }
}

// The same for arrays of either type; `x` and `out` must not overlap but where they are one array
// of float64.
template <typename Function>
void map_in_tasks(const Function& function, const py::array& x, const char* name, py::array& out,
                  std::size_t threads) {
  require_same_size(x, out);
  const char* const types = "float64 or float32";
  const auto to = [&](const auto* from, auto* result) {
    in_tasks(size_of(x), threads, [&](std::size_t begin, std::size_t size) {
      map_part(function, from + begin, size, result + begin);
    });
  };
  const auto from = [&](const auto* points) {
    if (holds<float>(out)) {
      to(points, output<float>(out, "out", types));
    } else {
      to(points, output<double>(out, "out", types));
    }
  };
  if (holds<float>(x)) {
    from(input<float>(x, name, types));
  } else {
    from(input<double>(x, name, types));
  }
}

}  // namespace psinoise
