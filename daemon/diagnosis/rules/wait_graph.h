// SPDX-License-Identifier: Apache-2.0
// The wait graph: follows the waits from each stuck call to the calls where the
// hang began.
//
// A stuck call waits for each of its absent ranks (AND). An absent rank that
// waits in another stuck call is excused: the path continues through that call.
// A rank may wait in several calls at once (streams); it is excused by any of
// them. The path ends at a rank that does not wait, at a call without absent ranks,
// or in a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/diagnosis/rules/stuck_call.h"

namespace rollcall {

// The result for one stuck call.
struct WaitNode {
  std::vector<Absent> guilty;        // absent without an excuse
  std::vector<int32_t> excused;      // absent ranks (of the communicator) that wait elsewhere
  std::vector<size_t> held_up_by;    // the calls in which those wait
  size_t component = 0;  // of the calls that can reach each other
};

struct WaitGraph {
  std::vector<WaitNode> nodes;                  // by index of the call
  std::vector<std::vector<size_t>> components;  // calls; those that wait for others come later
  // Components of which every absent rank is excused by the component itself.
  std::vector<size_t> cycles;
};

struct WaitGraphOptions {
  // A wait that has just begun excuses nobody from one that is long: the rank moves.
  int64_t now_ns = 0;
  int64_t settled_after_ns = 0;  // 0: any wait excuses
};

WaitGraph BuildWaitGraph(const StuckCalls& calls, const WaitGraphOptions& options);

// The calls on the path from `call` to the beginning of the hang, `call` first; ends
// early in a cycle.
std::vector<size_t> WayToRoot(const WaitGraph& graph, size_t call);

}  // namespace rollcall
