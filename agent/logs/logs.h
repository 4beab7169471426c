// SPDX-License-Identifier: Apache-2.0
// The ends of the files into which the processes of jobs write their output.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "rollcall/v1/agent.pb.h"
#include "security/redact.h"

namespace rollcall {

struct LogWriter {
  ProcessId process;
  int64_t payer = SpareThreads::kNobody;  // as SpareThreads::Run()
};

struct LogOptions {
  std::string proc_root = "/proc";
  int64_t patience_ns = 0;  // for all of them
  int64_t one_ns = 50'000'000;
  // Whether the log of a process may be read. May block. Empty means all.
  std::function<bool(ProcessId)> permits;
  std::shared_ptr<const Redactor> redactor;
};

// Each file once, with the processes that write it, in their order; at most kMostLogsOfLook
// (proto/look_limits.h). One that does not answer in time is left out, and so is one of a process
// whose number is another one's by then.
std::vector<v1::LogEnd> ReadLogs(const std::vector<LogWriter>& writers, const LogOptions& options,
                                 SpareThreads* threads);

}  // namespace rollcall
