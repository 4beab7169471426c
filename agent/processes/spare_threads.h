// SPDX-License-Identifier: Apache-2.0
// Threads for reads that can block in the kernel forever. Nearly all files of /proc/PID, even stat,
// block while the process's memory is locked or the process is inside exec(). (Observed: exec()
// closed files of a file system that did not answer.) Files on such a file system block too.
//
// The caller waits up to its timeout. A thread whose read blocks is abandoned and becomes free when
// the read returns. Until then, no other read with the same key starts, so that one stuck process
// blocks one thread, and the processes of one user block a quarter of them at most. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace rollcall {

class SpareThreads {
 public:
  static constexpr int64_t kNobody = -1;
  // Stuck reads at which Run() refuses new ones: in all, and of one payer.
  static constexpr size_t kMostThreads = 64, kMostOfPayer = 16;

  // `least_timeout_ns`: a shorter timeout of a read becomes this one. For tests whose machine may
  // be too busy to start a thread in time.
  explicit SpareThreads(int64_t least_timeout_ns = 0);
  ~SpareThreads();  // does not wait for blocked threads
  SpareThreads(const SpareThreads&) = delete;
  SpareThreads& operator=(const SpareThreads&) = delete;

  // Runs `read` on a separate thread and waits for it. False if `read` has not returned in time, an
  // earlier read with this key is still running, or no thread is free. `read` must own all objects
  // that it uses, because it may outlive this object. `payer`: the user (uid) whose process can
  // make it block; kNobody: not known, or no user's.
  bool Run(const std::string& key, std::function<void()> read, int64_t timeout_ns,
           int64_t payer = kNobody);

  // Returns the same with a result; nullopt if Run() returned false.
  template <typename Value>
  std::optional<Value> Get(const std::string& key, std::function<Value()> read, int64_t timeout_ns,
                           int64_t payer = kNobody) {
    const auto value = std::make_shared<std::optional<Value>>();
    if (!Run(key, [value, read = std::move(read)] { *value = read(); }, timeout_ns, payer)) {
      return std::nullopt;
    }
    return std::move(*value);
  }

  // Whether a read with this key is running.
  bool IsRunning(const std::string& key) const;

  // Ends all waits in Run(), and refuses new reads.
  void Cancel();

  // Whether the caller runs on a spare thread: there it may block, and needs no Run().
  static bool IsCurrentThread();

 private:
  struct Job;
  struct State;
  struct Worker;

  static void Work(const std::shared_ptr<State>& state, const std::shared_ptr<Worker>& worker);

  const std::shared_ptr<State> state_;
  const int64_t least_timeout_ns_;
};

}  // namespace rollcall
