// SPDX-License-Identifier: Apache-2.0
// The child process that works on stacks (stack_work.h), and the watch over it.
//
// The child is ended if it does not get on: a read of a file that does not return, too much CPU
// time, or its own death by its limit of memory. The next request starts another one. A child that
// the kernel does not let die is left behind; there are few of them.
//
// One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/processes/payer.h"
#include "agent/symbols/file_in_use.h"
#include "base/unique_fd.h"

namespace rollcall {

struct StackWorkLimits {
  int64_t silent_ns = 1'200'000'000;  // in one read of a file
  int64_t cpu_ns = 10'000'000'000;    // of one request
  int64_t total_ns = 20'000'000'000;  // of one request, on a busy host
};

class StackWorker {
 public:
  enum class End : uint8_t {
    kAnswered,
    kSilent,  // a file did not answer
    kCostly,  // too much CPU time, or time
    kLost,    // the child died, as a rule at its limit of memory
    kNone,    // there is no child: see `why`
  };
  struct Answer {
    End end = End::kNone;
    std::string bytes;
    FileId file;             // that the child read when it was ended; zeros if there is none
    bool was_first = false;  // the child had no request before
    std::string why;         // for kNone
  };

  // Children that the kernel does not let die: of all users, and of one. Who has as many gets no
  // other child until one of them has died.
  static constexpr size_t kMostLeft = 32;
  static constexpr size_t kMostLeftOfOne = 2;

  // `programs`: the folder of rollcall-probe; empty means that of this program. Opens it now: an
  // upgrade may replace it while this program runs.
  StackWorker(const std::string& programs, const StackWorkLimits& limits);
  ~StackWorker();
  StackWorker(const StackWorker&) = delete;
  StackWorker& operator=(const StackWorker&) = delete;

  // Blocks for limits.total_ns at most. `payer`: whose files the child reads.
  Answer Ask(const std::string& request, const Payer& payer);

 private:
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
    Payer payer;  // of its newest request
  };
  class Watch;

  std::string Start(const Payer& payer);
  bool Exchange(const std::string& request, Answer* answer);
  void Stop();

  const std::string program_;
  const UniqueFd program_fd_;
  const StackWorkLimits limits_;
  Child child_;            // the pid is 0 if there is none
  uint64_t requests_ = 0;  // that this child has had
  UniqueFd socket_;
  FileInUse* in_use_ = nullptr;
  std::vector<Child> left_;
};

}  // namespace rollcall
