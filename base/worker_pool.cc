// SPDX-License-Identifier: Apache-2.0
#include "base/worker_pool.h"

#include <algorithm>
#include <chrono>

#include "base/steady_clock.h"

namespace rollcall {

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ready_.clear();
  timers_.clear();
}

void WorkerPool::Wake(const std::shared_ptr<Task>& task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  if (task->state == Task::State::kIdle) {
    MakeReady(task);
    wake_.notify_one();
  } else if (task->state == Task::State::kRunning) {
    task->state = Task::State::kWokenWhileRunning;
  }
}

void WorkerPool::Remove(const std::shared_ptr<Task>& task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropTimer(task);
  ready_.erase(std::remove(ready_.begin(), ready_.end(), task), ready_.end());
  task->state = Task::State::kRemoved;
}

void WorkerPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (const std::shared_ptr<Task> task = NextReady(&lock)) {
    task->state = Task::State::kRunning;
    lock.unlock();
    const int64_t due_ns = task->Run();
    lock.lock();
    Settle(task, due_ns);
  }
}

// Waits for one. nullptr: the pool stops.
std::shared_ptr<WorkerPool::Task> WorkerPool::NextReady(std::unique_lock<std::mutex>* lock) {
  while (!stopped_) {
    MakeDueTasksReady();
    if (!ready_.empty()) {
      std::shared_ptr<Task> task = std::move(ready_.front());
      ready_.pop_front();
      return task;
    }
    if (timers_.empty()) {
      wake_.wait(*lock);
    } else {
      wake_.wait_for(*lock, std::chrono::nanoseconds(timers_.begin()->first - SteadyNs()));
    }
  }
  return nullptr;
}

void WorkerPool::MakeDueTasksReady() {
  const int64_t now_ns = SteadyNs();
  while (!timers_.empty() && timers_.begin()->first <= now_ns) {
    const std::shared_ptr<Task> task = timers_.begin()->second;
    MakeReady(task);
    // Another thread may sleep until a later time.
    if (ready_.size() > 1) wake_.notify_one();
  }
}

void WorkerPool::MakeReady(const std::shared_ptr<Task>& task) {
  DropTimer(task);
  task->state = Task::State::kReady;
  ready_.push_back(task);
}

void WorkerPool::DropTimer(const std::shared_ptr<Task>& task) {
  if (task->due_ns == kNever) return;
  timers_.erase({task->due_ns, task});
  task->due_ns = kNever;
}

// After a run.
void WorkerPool::Settle(const std::shared_ptr<Task>& task, int64_t due_ns) {
  if (task->state == Task::State::kRemoved || stopped_) return;
  const bool was_woken = task->state == Task::State::kWokenWhileRunning;
  task->state = Task::State::kIdle;
  if (was_woken || due_ns == kAtOnce) {
    MakeReady(task);
    wake_.notify_one();
  } else if (due_ns != kNever) {
    task->due_ns = due_ns;
    timers_.insert({due_ns, task});
    // The threads that sleep may sleep until a later time.
    if (timers_.begin()->second == task) wake_.notify_one();
  }
}

}  // namespace rollcall
