// SPDX-License-Identifier: Apache-2.0
// Names the stacks of this host's processes, and finds Python in them, by the files of the
// processes. A child process reads these files (stack_work.h).
//
// A file that does not answer, or costs too much, is left out for a while: from it there are
// addresses only, and the error of the stack says so. So one such file costs little over a second,
// once. What a user's files have cost in vain has a limit, too; beyond it, that user's stacks have
// addresses and Python frames only. Other users do not notice.
//
// Thread-safe. The streams to several daemons share one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/processes/stack_sample.h"
#include "agent/python/python_symbols.h"
#include "agent/stacks/stack_reader.h"
#include "agent/stacks/stack_taker.h"
#include "agent/stacks/stack_work.h"
#include "agent/stacks/stack_worker.h"
#include "base/mutex.h"

namespace rollcall {

// How much time of the agent each user has wasted: a bucket that fills again. Pure.
class WastedTime {
 public:
  static constexpr int64_t kMost = 10'000'000'000;  // ns, and as much again in each minute

  bool IsOver(uint32_t user, int64_t now_ns);
  void Add(uint32_t user, int64_t wasted_ns, int64_t now_ns);

 private:
  struct Wasted {
    int64_t ns = 0;
    int64_t at_ns = 0;
  };
  static void Forgive(int64_t now_ns, Wasted* wasted);

  std::map<uint32_t, Wasted> users_;
};

class StackNamer {
 public:
  // As StackWorker.
  explicit StackNamer(std::string proc_root, const std::string& programs = "",
                      const StackWorkLimits& limits = {});

  // What it cannot name, the error of the stack says.
  ProcessStack Name(const RawSample& sample, const TakeLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);
  // As PythonSymbols::Find().
  FoundSymbols FindSymbols(pid_t pid, const ProcMap& first, const std::vector<std::string>& names,
                           ProcessMemory* memory) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ByFile = std::map<std::pair<uint64_t, uint64_t>, int64_t>;

  bool Do(StackWork* work, std::string* answer, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveOut(const StackWorker::Answer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillLeftOut(StackWork* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string proc_root_;
  Mutex mutex_;
  StackWorker worker_ ABSL_GUARDED_BY(mutex_);
  WastedTime wasted_ ABSL_GUARDED_BY(mutex_);
  // Until when. Of a device, the second number is 0.
  ByFile silent_ ABSL_GUARDED_BY(mutex_), costly_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<uint64_t>> symbols_ ABSL_GUARDED_BY(mutex_);
};

// Finds Python with a StackNamer.
class SymbolsOfNamer : public PythonSymbols {
 public:
  explicit SymbolsOfNamer(std::shared_ptr<StackNamer> namer) : namer_(std::move(namer)) {}

  FoundSymbols Find(pid_t pid, const ProcMap& first, const std::vector<std::string>& names,
                    ProcessMemory* memory) override {
    return namer_->FindSymbols(pid, first, names, memory);
  }

 private:
  const std::shared_ptr<StackNamer> namer_;
};

}  // namespace rollcall
