// SPDX-License-Identifier: Apache-2.0
// The wait graph: follows the waits from each stuck call to the calls at which the
// hang began.
//
// A stuck call waits for each of its absent ranks (AND). If an absent rank waits in
// another stuck call, that call excuses the rank, and the path continues there. A rank
// may wait in several calls at once (streams): any of them excuses the rank. The path
// ends at a rank that does not wait, at a call without absent ranks, or in a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/rules/stuck_call.h"

namespace rollcall {

// The result for one stuck call.
struct WaitNode {
  std::vector<Absent> guilty;      // absent ranks without an excuse
  std::vector<int32_t> excused;    // absent ranks (in the communicator) that wait elsewhere
  std::vector<size_t> held_up_by;  // the calls in which the excused ranks wait
  size_t component = 0;            // index of the call's component
};

struct WaitGraph {
  std::vector<WaitNode> nodes;  // by index of the call
  // Strongly connected components, as calls. A component comes after those it waits for.
  std::vector<std::vector<size_t>> components;
  // Components in which calls of the same component excuse every absent rank.
  std::vector<size_t> cycles;
};

struct WaitGraphOptions {
  // A wait that has just begun is not an excuse for a rank that others have waited for much longer:
  // the rank makes progress.
  int64_t now_ns = 0;
  int64_t settled_after_ns = 0;  // 0 means any wait excuses
};

WaitGraph BuildWaitGraph(const StuckCalls& calls, const WaitGraphOptions& options);

// The calls on the path from `call` to the start of the hang, `call` first; ends early in a
// cycle.
std::vector<size_t> PathToRoot(const WaitGraph& graph, size_t call);

}  // namespace rollcall
