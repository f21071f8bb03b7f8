#include "base/thread_pool.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace psinoise {
namespace {

// A worker that has had nothing to do for so long ends.
constexpr std::chrono::seconds kIdle{1};

struct Job {
  const std::function<void(std::size_t)>* task = nullptr;
  std::size_t tasks = 0;
  std::atomic<std::size_t> next{0};

  void run() {
    for (std::size_t i = next.fetch_add(1); i < tasks; i = next.fetch_add(1)) (*task)(i);
  }
};

class Pool {
 public:
  // One job at a time: concurrent callers wait for each other, never deadlock (tasks do not nest).
  void run(Job& job, std::size_t helpers) {
    const std::lock_guard<std::mutex> one_at_a_time(entrance_);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      try {
        for (; workers_ < helpers; ++workers_) std::thread([this] { work(); }).detach();
      } catch (const std::system_error&) {
        // The system refuses more threads: go on with what there is.
      }
      job_ = &job;
      wanted_ = helpers;
    }
    wake_.notify_all();
    job.run();
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = 0;  // who has not come by now finds nothing to do
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (wake_.wait_for(lock, kIdle, [this] { return wanted_ > 0; })) {
      --wanted_;
      ++running_;
      Job* job = job_;
      lock.unlock();
      job->run();
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
    --workers_;
  }

  std::mutex entrance_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::size_t workers_ = 0;
  std::size_t wanted_ = 0;
  std::size_t running_ = 0;
  Job* job_ = nullptr;
};

std::atomic<Pool*> current{nullptr};

// The pool is never destroyed: its threads may wait on it when the process ends, and a forked
// child, which has none of them, leaves the parent's object alone and makes another.
Pool& pool() {
#if !defined(_WIN32)
  static std::once_flag registered;
  std::call_once(registered,
                 [] { pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); }); });
#endif
  Pool* existing = current.load();
  if (existing != nullptr) return *existing;
  auto fresh = std::make_unique<Pool>();
  if (current.compare_exchange_strong(existing, fresh.get())) return *fresh.release();
  return *existing;
}

}  // namespace

std::size_t thread_count(std::size_t requested) {
  std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    cores = static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
  }
#endif
  return requested == 0 ? cores : std::min(requested, std::max(cores, kMostThreads));
}

void parallel_for(std::size_t tasks, std::size_t threads,
                  const std::function<void(std::size_t)>& task) {
  Job job;
  job.task = &task;
  job.tasks = tasks;
  const std::size_t helpers = std::min(threads, tasks);
  if (helpers <= 1) {
    job.run();
  } else {
    pool().run(job, helpers - 1);
  }
}

}  // namespace psinoise
