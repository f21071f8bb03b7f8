// The interpreter's lock, given back while kernels run.
//
// py::gil_scoped_release takes the lock again in a destructor that may not throw. When the
// interpreter ends while a daemon thread is in a kernel, CPython before 3.14 ends that thread there
// by pthread_exit, which glibc does by unwinding: the C++ runtime calls std::terminate and the
// process aborts. Here such a thread stops for good, as it does in CPython 3.14 and later; nothing
// of it is destroyed, since that would need the lock. The process ends without it.
#pragma once

#include <pybind11/pybind11.h>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#include <unistd.h>
#endif

namespace psinoise {

class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
#if defined(__GLIBCXX__)
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) pause();
    }
#else
    PyEval_RestoreThread(state_);
#endif
  }

 private:
  PyThreadState* state_;
};

}  // namespace psinoise
