// SPDX-License-Identifier: Apache-2.0
// What a probe finds out about the host, and the lines by which it reports to the agent.
//
// A probe is a process of its own: it writes a line for each fact, and ends with a line for its
// outcome. The agent treats the lines as hostile: a probe may die in the middle of one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/host_facts.h"

namespace rollcall {

struct Fact {
  HostFactKind kind = HostFactKind::kUnknown;
  std::string subject;  // "mlx5_2 port 1"; empty means the host
  int64_t value = 0;
  std::string text;
  int64_t age_ns = 0;  // 0 means it holds now
  int32_t pid = 0;     // 0 if it belongs to no process
};

enum class ProbeOutcome : uint8_t {
  kOk,      // has looked; without a fact there is nothing to see
  kAbsent,  // the host has no such part
  kDenied,  // the agent may not look
  kLate,    // did not end in time
  kFailed,
};
const char* ProbeOutcomeName(ProbeOutcome outcome);

struct ProbeResult {
  ProbeOutcome outcome = ProbeOutcome::kOk;
  std::string note;  // the reason of an outcome other than kOk
  std::vector<Fact> facts;
};

// Returns the lines of a probe.
std::string ToLines(const ProbeResult& result);
// Reads them. Leaves out malformed lines, and what exceeds the limits. kFailed: the last line is
// missing.
ProbeResult FromLines(std::string_view lines);

}  // namespace rollcall
