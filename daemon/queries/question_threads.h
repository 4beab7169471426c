// SPDX-License-Identifier: Apache-2.0
// Threads for the calls of known callers, each of which may wait for agents or other daemons. A
// thread is made when a call needs one, and stays: strangers cause none. A caller with many calls
// does not delay those of others (fair_turns.h).
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/fair_turns.h"

namespace rollcall {

class QuestionThreads {
 public:
  using Task = std::function<void()>;

  explicit QuestionThreads(size_t most) : most_(most), turns_(most) {}
  // Runs the tasks that wait, and waits for all.
  ~QuestionThreads();
  QuestionThreads(const QuestionThreads&) = delete;
  QuestionThreads& operator=(const QuestionThreads&) = delete;

  // `owner`: the caller. Returns false, and drops the task, if there is no thread and the system
  // gives none.
  bool Post(const std::string& owner, Task task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool HasThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t most_;
  Mutex mutex_;
  Condition wake_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;     // threads
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks
  FairTurns<Task> turns_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
