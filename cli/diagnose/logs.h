// SPDX-License-Identifier: Apache-2.0
// The ends of the files into which the processes of jobs write their output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/spare_threads.h"
#include "rollcall/v1/look.pb.h"
#include "security/redact.h"

namespace rollcall {

struct LogOptions {
  std::string proc_root = "/proc";
  int64_t patience_ns = 0;  // for all of them
  std::shared_ptr<const Redactor> redactor;
};

// Each file once, with the processes that write it, in their order. One that does not answer in
// time is left out.
std::vector<v1::LogEnd> ReadLogs(const std::vector<const v1::ProcessLook*>& processes,
                                 const LogOptions& options, SpareThreads* threads);

}  // namespace rollcall
