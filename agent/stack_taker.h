// Taking the stacks of a process: registers and a copy of the top of every thread's stack.
//
// The ptrace way stops one thread at a time, for the time of the copy (tens of microseconds), and
// never with a signal: SEIZE and INTERRUPT, so nothing is delivered to the job, and a stopped job
// stays stopped. A thread that is in the kernel (state D), dead, or traced by someone else is
// listed and left alone. A signal that arrives meanwhile is passed on. What happens in the job is
// what any debugger's attach does: a blocked system call is restarted by the kernel, except the
// few that never are (epoll_wait and sigtimedwait return EINTR).
//
// Take() never throws and is bounded by its limits, with one exception: reading /proc/PID/maps
// waits in the kernel where a thread of the process holds its memory lock there. So call it from a
// thread that the agent can spare. Any thread may call, one at a time for one taker.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/module_files.h"
#include "agent/python/interpreter.h"
#include "agent/stack_sample.h"

namespace rollcall {

struct TakeLimits {
  size_t stack_bytes = 1 << 20;              // copied per thread, from the stack pointer upwards
  size_t max_threads = 16384;                // the others are counted, not taken
  size_t max_frames = 32768;                 // unwound per thread
  size_t kept_frames = 256;                  // of these; more are cut out of the middle
  int64_t thread_timeout_ns = 100'000'000;   // for one thread to stop
  int64_t total_timeout_ns = 2'000'000'000;  // threads not reached by then are listed, not taken
  int64_t more_timeout_ns = 2'000'000;       // added to it for each thread

  int64_t TotalTimeoutNs(size_t threads) const {
    return total_timeout_ns + more_timeout_ns * static_cast<int64_t>(threads);
  }
};

class StackTaker {
 public:
  virtual ~StackTaker() = default;

  // Never fails as a whole: what could not be had is said in `error`, of the sample or a thread.
  virtual RawSample Take(pid_t pid, const TakeLimits& limits) = 0;
};

class PtraceStackTaker : public StackTaker {
 public:
  explicit PtraceStackTaker(std::string proc_root = "/proc")
      : proc_root_(std::move(proc_root)), files_(proc_root_) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  ModuleFiles files_;
  PythonFinder python_finder_;
};

// By the signal that the process's own library answers. Needs no privilege but the same user.
// Threads that block the signal, and those in a system call that a signal would end although its
// handler restarts calls (poll, epoll, select, sleep and their like), are left alone: then only
// their Python frames are there, read from memory.
class SignalStackTaker : public StackTaker {
 public:
  explicit SignalStackTaker(std::string proc_root = "/proc")
      : proc_root_(std::move(proc_root)), files_(proc_root_) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  ModuleFiles files_;
  PythonFinder python_finder_;
};

// From outside where the kernel permits it, else from inside.
class AnyWayStackTaker : public StackTaker {
 public:
  explicit AnyWayStackTaker(const std::string& proc_root = "/proc")
      : outside_(proc_root), inside_(proc_root) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  PtraceStackTaker outside_;
  SignalStackTaker inside_;
};

}  // namespace rollcall
