// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "interpose/comm_kind.h"
#include "interpose/record/comm_table.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Whether a call on the communicator is one of this thread's open group. A call of NVSHMEM between
// the start and the end of NCCL's group is not.
inline bool IsGrouped(const ThreadState* thread, const LocalComm* comm) {
  return thread->group_depth > 0 &&
         HasGroups(ToCommKind(comm->entry->kind.load(std::memory_order_relaxed)));
}

}  // namespace rollcall
