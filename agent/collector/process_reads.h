// SPDX-License-Identifier: Apache-2.0
// A process as this agent sees it, and the reads of its files: each on a spare thread, because any
// of them may block, and none longer than the tick can wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "base/durations.h"

namespace rollcall {

struct SeenProcess {
  ProcessId id;
  bool visible = true;         // this agent's /proc has this process as `id`
  bool other_numbers = false;  // its own pid namespace has another pid for it
  int64_t ahead_ns = 0;        // of its CLOCK_MONOTONIC over the agent's
  // Set where the offset of its clock is unknown: no wait starts before the first reading.
  int64_t wait_floor_ns = 0;

  bool ended = false;
  int64_t ended_ns = 0;
  int64_t alive_ns = 0;  // the last look that saw it alive, or 0
  std::optional<int> exit_code, exit_signal;

  // Ends as `known`, the same process, has ended.
  void KeepEnd(const SeenProcess& known) {
    ended = known.ended;
    ended_ns = known.ended_ns;
    alive_ns = known.alive_ns;
    exit_code = known.exit_code;
    exit_signal = known.exit_signal;
  }
};

// Reads one process in one tick. The process outlives it.
class ProcessReads {
 public:
  static constexpr int64_t kTimeout = kSecond / 20;

  // `threads`: nullptr if only files of ended processes are read. `payer`: as SpareThreads::Run().
  ProcessReads(int64_t now_ns, const SeenProcess& process, int64_t payer,
               const std::string& proc_root, SpareThreads* threads)
      : now_ns_(now_ns),
        process_(process),
        payer_(payer),
        proc_root_(proc_root),
        threads_(threads) {}

  int64_t now_ns() const { return now_ns_; }
  const SeenProcess& process() const { return process_; }
  int64_t payer() const { return payer_; }
  const std::string& proc_root() const { return proc_root_; }
  bool is_live() const { return threads_ != nullptr; }
  ProcessReads PaidBy(int64_t payer) const {
    return {now_ns_, process_, payer, proc_root_, threads_};
  }

  // What `read` returns, given the root of /proc and the pid; it must own all else that it uses.
  // nullopt if it takes too long, or an earlier read of this process in /proc still runs.
  template <typename Read>
  auto Get(Read read) const {
    return GetAs(absl::StrCat("process ", process_.id.pid), std::move(read));
  }
  // The same of files that may be slow for reasons of their own, for which `source` stands.
  template <typename Read>
  auto GetFrom(absl::string_view source, Read read) const {
    return GetAs(absl::StrCat(source, " ", process_.id.pid, " ", process_.id.start_time),
                 std::move(read));
  }

 private:
  template <typename Read>
  auto GetAs(const std::string& key, Read read) const {
    using Value = std::invoke_result_t<Read, const std::string&, pid_t>;
    return threads_->Get<Value>(
        key,
        [read = std::move(read), proc_root = proc_root_, pid = process_.id.pid] {
          return read(proc_root, pid);
        },
        kTimeout, payer_);
  }

  const int64_t now_ns_;
  const SeenProcess& process_;
  const int64_t payer_;
  const std::string& proc_root_;
  SpareThreads* const threads_;
};

}  // namespace rollcall
