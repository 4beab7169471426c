// Threads for reads that can block in the kernel for good: /proc files that take a process's memory
// lock, and files of a file system that does not answer.
//
// Whoever asks waits no longer than he says. A thread that does not come back is left to itself; it
// ends when its read does. While it is away nothing more is read for the same key, so that one stuck
// process costs one thread. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace rollcall {

class SpareThreads {
 public:
  SpareThreads();
  ~SpareThreads();  // does not wait for threads that are away
  SpareThreads(const SpareThreads&) = delete;
  SpareThreads& operator=(const SpareThreads&) = delete;

  // Runs `read` on a thread of its own, and waits for it. False: it has not come back in time, or an
  // earlier one with this key has not. `read` must own what it uses, since it may outlive this
  // object.
  bool Run(const std::string& key, std::function<void()> read, int64_t timeout_ns);

  // Whether a read with this key is under way.
  bool IsAway(const std::string& key) const;

  // Those who wait in Run() wait no more, and nothing is read from now on.
  void Cancel();

 private:
  struct Job;
  struct State;
  struct Worker;

  static void Work(const std::shared_ptr<State>& state, const std::shared_ptr<Worker>& worker);
  std::shared_ptr<Worker> TakeWorker();

  const std::shared_ptr<State> state_;
};

}  // namespace rollcall
