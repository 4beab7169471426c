#include "interpose/graphs.h"
#include "interpose/group_lists.h"

namespace rollcall {

__thread ThreadState this_thread;

void ForgetThread() {
  this_thread.inside = false;
  this_thread.blocked_claimed = false;
  this_thread.blocked = nullptr;
  this_thread.last_comm = nullptr;
  this_thread.next_shape = 0;
  this_thread.kept_shape = 0;
  this_thread.group_depth = 0;
  this_thread.group_size = 0;
  this_thread.pending_size = 0;
  this_thread.lists = nullptr;
}

GroupComm* JoinGroup(ThreadState* thread, LocalComm* comm, cudaStream_t stream) {
  for (int i = 0; i < thread->group_size; ++i) {
    if (thread->lists->group[i].comm == comm) return &thread->lists->group[i];
  }
  if (thread->group_size == kGroupComms || ListsOf(thread) == nullptr) return nullptr;
  GroupComm* joined = &thread->lists->group[thread->group_size++];
  segment::CommEntry* entry = comm->entry;
  *joined = {comm,
             stream,
             Get(entry->entered),
             Get(entry->p2p_entered),
             Get(entry->signature),
             Get(entry->recorded),
             CaptureOf(comm, stream),
             nullptr,
             0};
  if (joined->capture > kOffLimits) {
    joined->graph = GraphOfCapture(joined->capture);
    if (joined->graph != nullptr) joined->graph_calls = CallsOf(joined->graph);
  }
  return joined;
}

}  // namespace rollcall
