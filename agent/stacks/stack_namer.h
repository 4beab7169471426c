// SPDX-License-Identifier: Apache-2.0
// Names the stacks of this host's processes, and finds Python in them, by the files of the
// processes. A child process reads these files (stack_work.h).
//
// A file that does not answer, or costs too much, is left out for a while in the stacks of that
// user: from it there are addresses only, and the error of the stack reports it. So one such file
// costs little over a second, once. Not for other users: one may make a file look bad that all
// have. What a user's files have cost in vain, or beyond the usual, has a limit, too; beyond it,
// that user's stacks have addresses and Python frames only.
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

#include "agent/processes/payer.h"
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

  bool IsOver(const Payer& user, int64_t now_ns);
  void Add(const Payer& user, int64_t wasted_ns, int64_t now_ns);

 private:
  struct Wasted {
    int64_t ns = 0;
    int64_t at_ns = 0;
  };
  static void Forgive(int64_t now_ns, Wasted* wasted);

  std::map<Payer, Wasted> users_;
};

class StackNamer {
 public:
  // See StackWorker.
  explicit StackNamer(std::string proc_root, const std::string& programs = "",
                      const StackWorkLimits& limits = {});

  // The error of the stack reports what it cannot name.
  ProcessStack Name(RawSample sample, const TakeLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);
  // See PythonSymbols::Find().
  FoundSymbols FindSymbols(pid_t pid, const ProcMap& first, const std::vector<std::string>& names,
                           ProcessMemory* memory) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct LeftOut {
    bool is_device = false;
    FileId file;
    int64_t until_ns = 0;
  };

  bool Do(StackWork* work, std::string* answer, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveOut(const StackWorker::Answer& answer, const Payer& payer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillLeftOut(const Payer& payer, StackWork* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string proc_root_;
  Mutex mutex_;
  StackWorker worker_ ABSL_GUARDED_BY(mutex_);
  WastedTime wasted_ ABSL_GUARDED_BY(mutex_);
  std::map<Payer, std::vector<LeftOut>> left_out_ ABSL_GUARDED_BY(mutex_);
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
