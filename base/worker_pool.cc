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
    const MutexLock lock(mutex_);
    stopped_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  const MutexLock lock(mutex_);
  ready_.clear();
  timers_.clear();
}

void WorkerPool::Wake(const std::shared_ptr<Task>& task) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  if (task->state == Task::State::kIdle) {
    MakeReady(task);
    wake_.NotifyOne();
  } else if (task->state == Task::State::kRunning) {
    task->state = Task::State::kWokenWhileRunning;
  }
}

void WorkerPool::Remove(const std::shared_ptr<Task>& task) {
  const MutexLock lock(mutex_);
  DropTimer(task);
  ready_.erase(std::remove(ready_.begin(), ready_.end(), task), ready_.end());
  task->state = Task::State::kRemoved;
}

void WorkerPool::Work() {
  MutexLock lock(mutex_);
  while (const std::shared_ptr<Task> task = NextReady()) {
    task->state = Task::State::kRunning;
    lock.Unlock();
    const int64_t due_ns = task->Run();
    lock.Lock();
    Settle(task, due_ns);
  }
}

// Waits for one. nullptr if the pool stops.
std::shared_ptr<WorkerPool::Task> WorkerPool::NextReady() {
  while (!stopped_) {
    MakeDueTasksReady();
    if (!ready_.empty()) {
      std::shared_ptr<Task> task = std::move(ready_.front());
      ready_.pop_front();
      return task;
    }
    if (timers_.empty()) {
      wake_.Wait(mutex_);
    } else {
      wake_.WaitFor(mutex_, std::chrono::nanoseconds(timers_.begin()->first - SteadyNs()));
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
    if (ready_.size() > 1) wake_.NotifyOne();
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

// Settles the task after a run.
void WorkerPool::Settle(const std::shared_ptr<Task>& task, int64_t due_ns) {
  if (task->state == Task::State::kRemoved || stopped_) return;
  const bool was_woken = task->state == Task::State::kWokenWhileRunning;
  task->state = Task::State::kIdle;
  if (was_woken || due_ns == kAtOnce) {
    MakeReady(task);
    wake_.NotifyOne();
  } else if (due_ns != kNever) {
    task->due_ns = due_ns;
    timers_.insert({due_ns, task});
    // The threads that sleep may sleep until a later time.
    if (timers_.begin()->second == task) wake_.NotifyOne();
  }
}

}  // namespace rollcall
