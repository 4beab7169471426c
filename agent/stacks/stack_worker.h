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

#include "agent/symbols/file_in_use.h"
#include "base/unique_fd.h"

namespace rollcall {

struct StackWorkLimits {
  int64_t silent_ns = 1'200'000'000;  // in one read of a file
  int64_t cpu_ns = 10'000'000'000;    // of one request
  int64_t total_ns = 60'000'000'000;  // of one request, on a busy host
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
    FileId file;      // that the child read when it was ended; zeros: none
    bool was_first = false;  // the child had no request before
    std::string why;  // for kNone
  };

  static constexpr size_t kMostLeft = 8;  // children that the kernel does not let die

  // `programs`: the folder of rollcall-probe; "": that of this program. Opens it now: an upgrade
  // may replace it while this program runs.
  StackWorker(const std::string& programs, const StackWorkLimits& limits);
  ~StackWorker();
  StackWorker(const StackWorker&) = delete;
  StackWorker& operator=(const StackWorker&) = delete;

  // Blocks for limits.total_ns at most.
  Answer Ask(const std::string& request);

 private:
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
  };
  class Watch;

  std::string Start();
  bool Exchange(const std::string& request, Answer* answer);
  void Stop();

  const std::string program_;
  const UniqueFd program_fd_;
  const StackWorkLimits limits_;
  Child child_;  // pid 0: none
  uint64_t requests_ = 0;  // that this child has had
  UniqueFd socket_;
  FileInUse* in_use_ = nullptr;
  std::vector<Child> left_;
};

}  // namespace rollcall
