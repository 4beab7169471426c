// SPDX-License-Identifier: Apache-2.0
// Threads for reads that can block in the kernel for good: nearly all files of /proc/PID, stat too,
// wait while the process's memory is locked or it stands in exec (seen: its close-on-exec files were
// on a file system that did not answer); and so do files of such a file system.
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
#include <optional>
#include <set>
#include <string>
#include <utility>

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

  // The same with a result; nullopt where Run() is false.
  template <typename Value>
  std::optional<Value> Get(const std::string& key, std::function<Value()> read,
                           int64_t timeout_ns) {
    const auto value = std::make_shared<std::optional<Value>>();
    if (!Run(key, [value, read = std::move(read)] { *value = read(); }, timeout_ns)) {
      return std::nullopt;
    }
    return std::move(*value);
  }

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
