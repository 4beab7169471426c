// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/spare_threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/threads.h"

namespace rollcall {
namespace {

thread_local bool is_spare_thread = false;

}  // namespace

struct SpareThreads::Job {
  std::string key;
  std::function<void()> read;
  int64_t payer = kNobody;
  bool done = false;  // guarded by the mutex of State
};

struct SpareThreads::Worker {
  Condition wake;
  std::shared_ptr<Job> job;  // nullptr if idle; guarded by the mutex of State
};

struct SpareThreads::State {
  static std::shared_ptr<Worker> TakeWorker(const std::shared_ptr<State>& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex);

  Mutex mutex;
  Condition done;
  std::set<std::string> running ABSL_GUARDED_BY(mutex);         // keys
  std::map<int64_t, size_t> running_of ABSL_GUARDED_BY(mutex);  // by payer
  std::vector<std::shared_ptr<Worker>> idle ABSL_GUARDED_BY(mutex);
  size_t threads ABSL_GUARDED_BY(mutex) = 0;
  bool ending ABSL_GUARDED_BY(mutex) = false;
};

SpareThreads::SpareThreads(int64_t least_timeout_ns)
    : state_(std::make_shared<State>()), least_timeout_ns_(least_timeout_ns) {}

SpareThreads::~SpareThreads() { Cancel(); }

void SpareThreads::Cancel() {
  const MutexLock lock(state_->mutex);
  state_->ending = true;
  for (const std::shared_ptr<Worker>& worker : state_->idle) worker->wake.NotifyAll();
  state_->done.NotifyAll();
}

bool SpareThreads::IsCurrentThread() { return is_spare_thread; }

bool SpareThreads::IsRunning(const std::string& key) const {
  const MutexLock lock(state_->mutex);
  return state_->running.count(key) != 0;
}

void SpareThreads::Work(const std::shared_ptr<State>& state,
                        const std::shared_ptr<Worker>& worker) {
  is_spare_thread = true;
  MutexLock lock(state->mutex);
  while (true) {
    while (worker->job == nullptr && !state->ending) worker->wake.Wait(state->mutex);
    if (worker->job == nullptr) return;
    const std::shared_ptr<Job> job = std::move(worker->job);
    lock.Unlock();
    job->read();
    job->read = nullptr;  // destroys the objects that it owns, without the lock
    lock.Lock();
    job->done = true;
    state->running.erase(job->key);
    if (--state->running_of[job->payer] == 0) state->running_of.erase(job->payer);
    state->idle.push_back(worker);
    state->done.NotifyAll();
  }
}

// nullptr if the limit is reached, or the system refuses a thread.
std::shared_ptr<SpareThreads::Worker> SpareThreads::State::TakeWorker(
    const std::shared_ptr<State>& state) {
  if (!state->idle.empty()) {
    std::shared_ptr<Worker> worker = std::move(state->idle.back());
    state->idle.pop_back();
    return worker;
  }
  if (state->threads == kMostThreads) return nullptr;
  auto worker = std::make_shared<Worker>();
  // Block all signals: other threads of the program handle them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<std::thread> thread = TryThread(
      [state, worker, mark = std::make_unique<LooseThreadMark>()] { Work(state, worker); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!thread.has_value()) return nullptr;
  thread->detach();
  ++state->threads;
  return worker;
}

bool SpareThreads::Run(const std::string& key, std::function<void()> read, int64_t timeout_ns,
                       int64_t payer) {
  const auto job = std::make_shared<Job>(Job{key, std::move(read), payer});
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::nanoseconds(std::max(timeout_ns, least_timeout_ns_));
  const MutexLock lock(state_->mutex);
  if (state_->ending || state_->running.count(key) != 0) return false;
  const auto of_payer = state_->running_of.find(payer);
  if (payer != kNobody && of_payer != state_->running_of.end() &&
      of_payer->second >= kMostOfPayer) {
    return false;
  }
  const std::shared_ptr<Worker> worker = State::TakeWorker(state_);
  if (worker == nullptr) return false;
  state_->running.insert(key);
  ++state_->running_of[payer];
  worker->job = job;
  worker->wake.NotifyAll();
  while (!job->done && !state_->ending && state_->done.WaitUntil(state_->mutex, deadline)) {
  }
  return job->done;
}

}  // namespace rollcall
