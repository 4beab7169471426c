// SPDX-License-Identifier: Apache-2.0
// The state of one job as looks at its hosts show it, for the rules. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/looks/group.h"
#include "daemon/model/job_state.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

struct LookState {
  JobState job;
  int64_t now_ns = 0;
  bool is_numbered = true;  // false: no variable gives ranks, and they count in order of their pids
  bool is_recorded = false;        // a process runs Rollcall's library and has a segment
  std::vector<int32_t> of_member;  // by member of the group: index of the process in the job
};

// Ranks of which no process lives, although all ranks of the job are on one host, have a process
// without a pid that has ended.
LookState MakeLookState(const std::vector<v1::HostLook>& looks, const LookGroup& group);

}  // namespace rollcall
