// SPDX-License-Identifier: Apache-2.0
// What a host showed when its agent looked at it, as the rules read it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/host_facts.h"

namespace rollcall {

struct HostFact {
  HostFactKind kind = HostFactKind::kUnknown;
  std::string subject;  // "mlx5_2 port 1"; empty means the host
  int64_t value = 0;
  std::string text;   // of the source: a line of the kernel's log, a wait channel
  int64_t at_ns = 0;  // when it happened; 0 means it held when the agent looked
  int32_t pid = 0;    // 0 if it belongs to no process
};

// How the look at one part of the host ended.
struct HostProbe {
  std::string name;
  std::string outcome;  // "ok", "absent", "denied", "late", "failed"
  std::string note;
};

struct HostFacts {
  int64_t gathered_ns = 0;
  std::vector<HostFact> facts;
  std::vector<HostProbe> probes;
  std::string error;  // the reason why the agent did not look; empty if it did
};

// Whether the agent has looked at the part of the host that this probe covers.
inline bool HasLooked(const HostFacts& host, const char* probe) {
  for (const HostProbe& known : host.probes) {
    if (known.name == probe) return known.outcome == "ok";
  }
  return false;
}

}  // namespace rollcall
