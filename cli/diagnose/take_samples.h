// SPDX-License-Identifier: Apache-2.0
// Takes the stacks of some processes several times within seconds, several processes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/process_id.h"
#include "rollcall/v1/look.pb.h"
#include "security/redact.h"

namespace rollcall {

struct SampleOptions {
  std::string proc_root = "/proc";
  int64_t apart_ns = 0;  // between the first and the last sample of one process; less if time lacks
  size_t times = 3;      // at least 2
  int64_t until_ns = 0;  // of the steady clock: the function returns by then
  size_t at_once = 4;
  std::shared_ptr<const Redactor> redactor;
  std::function<void(const std::string&)> tell;  // as in LookOptions; may be empty
};

// Returns by process, in the given order, at most `times` samples each. One that could not be taken
// has no threads, but the reason.
std::vector<std::vector<v1::StackSample>> TakeSamples(const std::vector<ProcessId>& processes,
                                                      const SampleOptions& options);

}  // namespace rollcall
