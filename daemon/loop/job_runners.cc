// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/job_runners.h"

#include <algorithm>
#include <thread>

namespace rollcall {
namespace {

constexpr std::chrono::milliseconds kLookAgainAfter{2};

}  // namespace

JobRunners::JobRunners(JobRunner::Parts parts, const JobRunner::Options& options, int threads)
    : parts_(parts), options_(options), pool_(threads) {}

JobRunners::~JobRunners() { Stop(); }

void JobRunners::Post(const std::shared_ptr<TickInTransit>& tick) {
  const std::vector<RoutedTick::Part>& parts = tick->routed().parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    RunnerPtr runner = FindOrAdd(parts[i].key);
    while (runner != nullptr && !runner->Post(tick, i)) runner = FindOrAdd(parts[i].key);
    if (runner == nullptr) return;
    pool_.Wake(runner);
  }
}

// nullptr after Stop().
JobRunners::RunnerPtr JobRunners::FindOrAdd(const JobKey& key) {
  const MutexLock lock(mutex_);
  if (is_stopped_) return nullptr;
  RunnerPtr& runner = runners_[key];
  if (runner == nullptr || runner->is_over()) {
    runner = std::make_shared<JobRunner>(key, parts_, options_);
  }
  return runner;
}

void JobRunners::Wake(const std::vector<JobKey>& keys) {
  std::vector<RunnerPtr> runners;
  {
    const MutexLock lock(mutex_);
    for (const JobKey& key : keys) {
      const auto at = runners_.find(key);
      if (at != runners_.end()) runners.push_back(at->second);
    }
  }
  for (const RunnerPtr& runner : runners) {
    runner->DiagnoseNext();
    pool_.Wake(runner);
  }
}

std::vector<JobRunners::RunnerPtr> JobRunners::All() const {
  const MutexLock lock(mutex_);
  std::vector<RunnerPtr> all;
  for (const auto& [key, runner] : runners_) all.push_back(runner);
  return all;
}

void JobRunners::DropForgotten() {
  const MutexLock lock(mutex_);
  for (auto at = runners_.begin(); at != runners_.end();) {
    at = at->second->is_over() ? runners_.erase(at) : std::next(at);
  }
}

void JobRunners::Finish(std::chrono::steady_clock::time_point deadline) {
  const std::vector<RunnerPtr> all = All();
  for (const RunnerPtr& runner : all) {
    runner->DiagnoseNext();
    pool_.Wake(runner);
  }
  const auto is_idle = [](const RunnerPtr& runner) { return runner->IsIdle(); };
  while (!std::all_of(all.begin(), all.end(), is_idle)) {
    if (std::chrono::steady_clock::now() > deadline) return;
    std::this_thread::sleep_for(kLookAgainAfter);
  }
}

void JobRunners::Stop() {
  pool_.Stop();
  std::map<JobKey, RunnerPtr> runners;  // destroyed without the mutex: the ticks in them call back
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    runners.swap(runners_);
  }
}

}  // namespace rollcall
