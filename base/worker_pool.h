// SPDX-License-Identifier: Apache-2.0
// A few threads that run many tasks. One task is run by one thread at a time, so a task needs no
// lock against itself. Tasks that wait are run in the order in which they were woken.
//
// A task runs for a few milliseconds and returns when it wants to run again. It runs earlier if
// it is woken. One slow task occupies one thread: the others serve the rest.
//
// Thread-safe. The pool calls tasks with no lock held.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace rollcall {

class WorkerPool {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kAtOnce = 0;

  class Task {
   public:
    virtual ~Task() = default;
    // Returns the time (SteadyNs()) of the next run; kAtOnce: after the tasks that wait already;
    // kNever: not before the next Wake().
    virtual int64_t Run() = 0;

   private:
    friend class WorkerPool;
    enum class State { kIdle, kReady, kRunning, kWokenWhileRunning, kRemoved };
    // Guarded by the pool's mutex.
    State state = State::kIdle;
    int64_t due_ns = kNever;  // in timers_; kNever: not there
  };

  // `threads`: with 0 nothing runs, for tests.
  explicit WorkerPool(int threads);
  ~WorkerPool();  // stops
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs the task soon. A task that runs just now runs once more. Nothing after Stop().
  void Wake(const std::shared_ptr<Task>& task);
  // The task does not run again. Returns at once; the task may still be in its last run.
  void Remove(const std::shared_ptr<Task>& task);
  // Returns when no task runs. No task runs afterwards.
  void Stop();

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  using Timer = std::pair<int64_t, std::shared_ptr<Task>>;

  void Work();
  std::shared_ptr<Task> NextReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeDueTasksReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(const std::shared_ptr<Task>& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropTimer(const std::shared_ptr<Task>& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const std::shared_ptr<Task>& task, int64_t due_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Condition wake_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<Task>> ready_ ABSL_GUARDED_BY(mutex_);
  std::set<Timer> timers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace rollcall
