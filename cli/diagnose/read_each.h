// SPDX-License-Identifier: Apache-2.0
// Reads many processes of a host in /proc, one after the other, on one spare thread at a time. To
// hand each of them to a thread takes longer than to read it, and on a busy host much longer.
//
// A process whose read does not return in time loses its place: its thread is left behind, and
// another thread goes on with the next process.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/processes/spare_threads.h"
#include "base/monotonic_clock.h"

namespace rollcall {

struct ToRead {
  pid_t pid = 0;
  int64_t payer = SpareThreads::kNobody;  // as SpareThreads::Run()
};

template <typename Value>
struct ReadOfEach {
  std::vector<std::pair<pid_t, Value>> values;  // in the order of the request, second tries last
  std::vector<pid_t> silent;                    // did not answer
  bool is_cut = false;                          // the deadline came before the last one
};

namespace read_each {

inline constexpr size_t kTogether = 32;
inline constexpr int64_t kSilentAfterNs = 300'000'000;  // for one process
inline constexpr int64_t kLookEveryNs = 5'000'000;
inline constexpr size_t kMostBlocking = 2;  // that a second try waits for

// A spare thread fills `values` in order, and may block for ever.
template <typename Value>
struct Batch {
  std::vector<pid_t> pids;
  std::vector<std::optional<Value>> values;  // valid below `done`
  std::atomic<size_t> done{0};
  std::atomic<bool> is_abandoned{false};

  void Fill(const std::function<Value(pid_t)>& read) {
    for (size_t i = 0; i < pids.size() && !is_abandoned; ++i) {
      Value value = read(pids[i]);
      if (is_abandoned) return;
      values[i] = std::move(value);
      done = i + 1;
    }
  }
};

// Waits as long as one process after the other answers.
template <typename Value>
void Await(const std::string& key, const Batch<Value>& batch, const SpareThreads& threads) {
  size_t done = 0;
  int64_t moved_ns = MonotonicNs();
  while (threads.IsRunning(key) && MonotonicNs() - moved_ns < kSilentAfterNs) {
    if (batch.done != done) moved_ns = MonotonicNs();
    done = batch.done;
    const timespec pause = {0, kLookEveryNs};
    nanosleep(&pause, nullptr);
  }
}

// Reads some of those that are left, from the first on. Returns how many; the rest was not begun,
// or its first one does not answer.
template <typename Value>
size_t ReadTogether(const std::string& what, const ToRead* left, size_t count,
                    const std::function<Value(pid_t)>& read, SpareThreads* threads,
                    ReadOfEach<Value>* result) {
  const auto batch = std::make_shared<Batch<Value>>();
  for (size_t i = 0; i < std::min(count, kTogether) && left[i].payer == left->payer; ++i)
    batch->pids.push_back(left[i].pid);
  batch->values.resize(batch->pids.size());
  const std::string key = absl::StrCat(what, " ", left->pid);
  const auto fill = [batch, read] { batch->Fill(read); };
  if (!threads->Run(key, fill, kSilentAfterNs, left->payer)) Await(key, *batch, *threads);
  batch->is_abandoned = true;
  const size_t done = batch->done;
  for (size_t i = 0; i < done; ++i)
    result->values.emplace_back(batch->pids[i], *std::move(batch->values[i]));
  if (done < batch->pids.size()) result->silent.push_back(left[done].pid);
  return std::min(done + 1, batch->pids.size());
}

}  // namespace read_each

// `what`: of the key of the spare thread. `read`: must own all that it uses. `deadline_ns`: of
// MonotonicNs(); what comes later is left out. A few that do not answer have a second try at the
// end: on a busy host a thread may be late.
template <typename Value>
ReadOfEach<Value> ReadEach(const std::string& what, const std::vector<ToRead>& wanted,
                           const std::function<Value(pid_t)>& read, int64_t deadline_ns,
                           SpareThreads* threads) {
  ReadOfEach<Value> result;
  for (size_t at = 0; at < wanted.size();) {
    result.is_cut = MonotonicNs() > deadline_ns;
    if (result.is_cut) return result;
    at += read_each::ReadTogether(what, &wanted[at], wanted.size() - at, read, threads, &result);
  }
  const std::vector<pid_t> late = std::exchange(result.silent, {});
  for (const ToRead& one : wanted) {
    if (std::find(late.begin(), late.end(), one.pid) == late.end()) continue;
    const bool is_given_up = result.silent.size() == read_each::kMostBlocking;
    if (is_given_up || MonotonicNs() > deadline_ns) {
      result.silent.push_back(one.pid);
    } else {
      read_each::ReadTogether(absl::StrCat(what, " again"), &one, 1, read, threads, &result);
    }
  }
  return result;
}

}  // namespace rollcall
