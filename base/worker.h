// SPDX-License-Identifier: Apache-2.0
// A thread with a queue, which its owner can leave behind.
//
// The thread runs tasks one after the other, in the order of Post(). It starts with the first task,
// or with Start().
// Several threads share one queue.
//
// A system call on an unreachable file server may never return, and nothing can end a thread from
// outside. The owner of such tasks calls Finish() with a deadline, which leaves the thread behind
// if it has not ended by then. The tasks must own, or share, all that they use, and the program
// must end by LeaveProcess().
//
// Other tasks may use their owner: without Finish() the destructor waits for the thread as long as
// it takes. The worker must then be the last member, so that it goes first.
//
// Thread-safe, except Finish() and the destructor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace rollcall {

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime After(int64_t ns) {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
}

class Worker {
 public:
  using Task = std::function<void()>;
  // Returns the time until its next run.
  using Step = std::function<std::chrono::nanoseconds()>;

  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  // What Finish() does with the tasks that have not begun.
  enum class Waiting { kRun, kDrop };

  explicit Worker(size_t most_waiting = kNoLimit, int threads = 1);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the threads now. Throws std::system_error where the system refuses one: what a program
  // needs always must fail at its start, and not at the first request of a stranger.
  void Start();

  // Returns false, and drops the task, if `most_waiting` tasks wait, the worker finishes, or the
  // system refuses its first thread.
  bool Post(Task task);

  // Runs `step` again and again until Finish(). Its thread runs nothing else. Throws as Start().
  void Repeat(Step step);
  // The step of Repeat() runs now, or once more if it runs now.
  void Wake();

  // Drops the tasks that have not begun.
  void DropWaiting();
  // Returns false if tasks run or wait at `deadline`.
  bool AwaitIdle(SteadyTime deadline) const;

  // Takes no more tasks, and waits for the end of the others. Returns false if they have not ended
  // by `deadline`, and leaves the threads behind: the worker has none from then on.
  bool Finish(SteadyTime deadline, Waiting waiting = Waiting::kRun);

 private:
  struct State;
  bool StartThreads();

  const std::shared_ptr<State> state_;
  const int count_;
  std::vector<std::thread> threads_;  // guarded by the mutex of the state
};

}  // namespace rollcall
