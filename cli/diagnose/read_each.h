// SPDX-License-Identifier: Apache-2.0
// Reads many processes of a host in /proc, one after the other, on one spare thread at a time. To
// hand each of them to a thread takes longer than to read it, and on a busy host much longer.
//
// A process whose read does not return in time loses its place: it is named, its thread is left
// behind, and another thread goes on with the next process.
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
  std::vector<std::pair<pid_t, Value>> values;  // in the order of the request
  std::vector<pid_t> silent;                    // did not answer
  bool is_cut = false;                          // the deadline came before the last one
};

namespace read_each {

inline constexpr size_t kTogether = 32;
inline constexpr int64_t kSilentAfterNs = 300'000'000;  // for one process
inline constexpr int64_t kLookEveryNs = 5'000'000;

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

}  // namespace read_each

// `what`: of the key of the spare thread. `read`: must own all that it uses. `deadline_ns`: of
// MonotonicNs(); what comes later is left out.
template <typename Value>
ReadOfEach<Value> ReadEach(const std::string& what, const std::vector<ToRead>& wanted,
                           const std::function<Value(pid_t)>& read, int64_t deadline_ns,
                           SpareThreads* threads) {
  ReadOfEach<Value> result;
  for (size_t at = 0; at < wanted.size();) {
    if (MonotonicNs() > deadline_ns) {
      result.is_cut = true;
      return result;
    }
    const auto batch = std::make_shared<read_each::Batch<Value>>();
    const int64_t payer = wanted[at].payer;
    for (size_t i = at; i < wanted.size() && wanted[i].payer == payer; ++i) {
      if (batch->pids.size() == read_each::kTogether) break;
      batch->pids.push_back(wanted[i].pid);
    }
    batch->values.resize(batch->pids.size());
    const std::string key = absl::StrCat(what, " ", wanted[at].pid);
    const auto fill = [batch, read] { batch->Fill(read); };
    if (!threads->Run(key, fill, read_each::kSilentAfterNs, payer)) {
      read_each::Await(key, *batch, *threads);
    }
    batch->is_abandoned = true;
    const size_t done = batch->done;
    for (size_t i = 0; i < done; ++i) {
      result.values.emplace_back(batch->pids[i], *std::move(batch->values[i]));
    }
    at += done;
    if (done < batch->pids.size()) result.silent.push_back(wanted[at++].pid);
  }
  return result;
}

}  // namespace rollcall
