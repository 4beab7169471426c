// SPDX-License-Identifier: Apache-2.0
// Looks at the distributed jobs of this host for `rollcall diagnose`, three times: which processes
// are ranks, where each of them stands, and what it has used meanwhile. Reads only: nothing is
// injected and nothing written, and no thread is stopped for longer than its stack takes to copy.
//
// What cannot be seen, the look names. Reads that may block in the kernel are left behind after
// their time (agent/processes/spare_threads.h), so the function returns in time whatever the
// processes do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rollcall/v1/look.pb.h"
#include "security/harmless_arguments.h"
#include "security/redact.h"

namespace rollcall {

struct LookOptions {
  std::string proc_root = "/proc";
  // The owner of the processes; nullopt means any user. Processes that `pids` names may be any
  // user's.
  std::optional<uid_t> uid;
  std::vector<pid_t> pids;  // only the jobs of these processes; empty means all
  std::string job;          // only jobs with this name in their environment; empty means all
  int64_t apart_ns = 6'000'000'000;      // from the first to the last sample of one process
  int64_t patience_ns = 10'000'000'000;  // for the whole look
  size_t at_once = 4;                    // processes that are sampled at a time
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();
  SendArguments arguments = SendArguments::kListed;  // of the processes' command lines
  // Called from the caller's thread, with one line for people: "taking stacks of 8 processes".
  std::function<void(const std::string&)> tell;
};

v1::HostLook GatherLook(const LookOptions& options);

}  // namespace rollcall
