// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/spare_threads.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/loose_threads.h"

namespace rollcall {
namespace {

// With this number of stuck reads, Run() refuses new ones.
constexpr size_t kMostThreads = 64;

thread_local bool is_spare_thread = false;

}  // namespace

struct SpareThreads::Job {
  std::string key;
  std::function<void()> read;
  bool done = false;
};

struct SpareThreads::Worker {
  std::condition_variable wake;
  std::shared_ptr<Job> job;  // nullptr: idle
};

struct SpareThreads::State {
  std::mutex mutex;
  std::condition_variable done;
  std::set<std::string> running;  // keys
  std::vector<std::shared_ptr<Worker>> idle;
  size_t threads = 0;
  bool ending = false;
};

SpareThreads::SpareThreads() : state_(std::make_shared<State>()) {}

SpareThreads::~SpareThreads() { Cancel(); }

void SpareThreads::Cancel() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->ending = true;
  for (const std::shared_ptr<Worker>& worker : state_->idle) worker->wake.notify_all();
  state_->done.notify_all();
}

bool SpareThreads::IsCurrentThread() { return is_spare_thread; }

bool SpareThreads::IsRunning(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->running.count(key) != 0;
}

void SpareThreads::Work(const std::shared_ptr<State>& state,
                        const std::shared_ptr<Worker>& worker) {
  is_spare_thread = true;
  std::unique_lock<std::mutex> lock(state->mutex);
  while (true) {
    worker->wake.wait(lock, [&] { return worker->job != nullptr || state->ending; });
    if (worker->job == nullptr) return;
    const std::shared_ptr<Job> job = std::move(worker->job);
    lock.unlock();
    job->read();
    job->read = nullptr;  // destroys the objects that it owns, without the lock
    lock.lock();
    job->done = true;
    state->running.erase(job->key);
    state->idle.push_back(worker);
    state->done.notify_all();
  }
}

// Call with the mutex locked. nullptr: the limit is reached.
std::shared_ptr<SpareThreads::Worker> SpareThreads::TakeWorker() {
  if (!state_->idle.empty()) {
    std::shared_ptr<Worker> worker = std::move(state_->idle.back());
    state_->idle.pop_back();
    return worker;
  }
  if (state_->threads == kMostThreads) return nullptr;
  auto worker = std::make_shared<Worker>();
  // Block all signals: other threads of the program handle them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_, worker, mark = std::make_unique<LooseThreadMark>()] {
    Work(state, worker);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ++state_->threads;
  return worker;
}

bool SpareThreads::Run(const std::string& key, std::function<void()> read, int64_t timeout_ns) {
  const auto job = std::make_shared<Job>(Job{key, std::move(read)});
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (state_->ending || state_->running.count(key) != 0) return false;
  const std::shared_ptr<Worker> worker = TakeWorker();
  if (worker == nullptr) return false;
  state_->running.insert(key);
  worker->job = job;
  worker->wake.notify_all();
  state_->done.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                        [&] { return job->done || state_->ending; });
  return job->done;
}

}  // namespace rollcall
