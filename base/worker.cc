// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/threads.h"

namespace rollcall {

// Shared with the thread, which may outlive the worker.
struct Worker::State {
  explicit State(size_t most) : most_waiting(most) {}

  void Run() ABSL_LOCKS_EXCLUDED(mutex);
  bool Sleep(std::chrono::nanoseconds time) ABSL_LOCKS_EXCLUDED(mutex);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return tasks.empty() && busy == 0; }

  const size_t most_waiting;
  Mutex mutex;
  Condition changed;  // of any of the following
  std::deque<Task> tasks ABSL_GUARDED_BY(mutex);
  int threads ABSL_GUARDED_BY(mutex) = 0;  // that have not ended
  int busy ABSL_GUARDED_BY(mutex) = 0;     // of them
  bool is_woken ABSL_GUARDED_BY(mutex) = false;
  bool is_finishing ABSL_GUARDED_BY(mutex) = false;
};

void Worker::State::Run() {
  MutexLock lock(mutex);
  while (true) {
    while (tasks.empty() && !is_finishing) changed.Wait(mutex);
    if (tasks.empty()) break;
    Task task = std::move(tasks.front());
    tasks.pop_front();
    ++busy;
    lock.Unlock();
    task();
    task = nullptr;  // what it owns goes without the lock
    lock.Lock();
    --busy;
    changed.NotifyAll();
  }
  --threads;
  changed.NotifyAll();
}

// Returns false if the worker finishes.
bool Worker::State::Sleep(std::chrono::nanoseconds time) {
  const SteadyTime until = std::chrono::steady_clock::now() + time;
  const MutexLock lock(mutex);
  while (!is_woken && !is_finishing && changed.WaitUntil(mutex, until)) {
  }
  is_woken = false;
  return !is_finishing;
}

Worker::Worker(size_t most_waiting, int threads)
    : state_(std::make_shared<State>(most_waiting)), count_(threads) {}

Worker::~Worker() { Finish(SteadyTime::max()); }

void Worker::Start() {
  const MutexLock lock(state_->mutex);
  if (!state_->is_finishing && !StartThreads()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
}

// Returns false if the system refuses one. The caller holds the mutex of the state.
bool Worker::StartThreads() {
  state_->mutex.AssertHeld();
  while (state_->threads < count_) {
    std::optional<std::thread> thread =
        TryThread([state = state_, mark = std::make_unique<LooseThreadMark>()] { state->Run(); });
    if (!thread.has_value()) return false;
    threads_.push_back(*std::move(thread));
    ++state_->threads;
  }
  return true;
}

bool Worker::Post(Task task) {
  const MutexLock lock(state_->mutex);
  if (state_->is_finishing || state_->tasks.size() >= state_->most_waiting) return false;
  if (!StartThreads() && threads_.empty()) return false;
  state_->tasks.push_back(std::move(task));
  state_->changed.NotifyAll();
  return true;
}

void Worker::Repeat(Step step) {
  Start();
  // Not the shared state: the task is in it.
  Post([state = state_.get(), step = std::move(step)] {
    while (state->Sleep(step())) {
    }
  });
}

void Worker::Wake() {
  const MutexLock lock(state_->mutex);
  state_->is_woken = true;
  state_->changed.NotifyAll();
}

void Worker::DropWaiting() {
  std::deque<Task> dropped;  // goes without the lock
  const MutexLock lock(state_->mutex);
  dropped.swap(state_->tasks);
  state_->changed.NotifyAll();
}

bool Worker::AwaitIdle(SteadyTime deadline) const {
  const MutexLock lock(state_->mutex);
  if (threads_.empty()) return true;
  while (!state_->IsIdle() && state_->changed.WaitUntil(state_->mutex, deadline)) {
  }
  return state_->IsIdle();
}

bool Worker::Finish(SteadyTime deadline, Waiting waiting) {
  std::deque<Task> dropped;  // goes without the lock
  std::vector<std::thread> threads;
  bool have_ended = false;
  {
    const MutexLock lock(state_->mutex);
    state_->is_finishing = true;
    if (waiting == Waiting::kDrop) dropped.swap(state_->tasks);
    state_->changed.NotifyAll();
    threads.swap(threads_);
    if (threads.empty()) return true;
    while (state_->threads > 0 && state_->changed.WaitUntil(state_->mutex, deadline)) {
    }
    have_ended = state_->threads == 0;
  }
  for (std::thread& thread : threads) have_ended ? thread.join() : thread.detach();
  return have_ended;
}

}  // namespace rollcall
