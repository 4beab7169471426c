// SPDX-License-Identifier: Apache-2.0
// What the library remembers for each thread.
//
// For the hot path, and for whichever thread it is about: no thread looks at another one's. Lies in
// thread-local storage, so it stays small; what does not fit lies in group_lists.h.
#pragma once

#include <stdint.h>

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"

namespace rollcall {

struct CallGraph;  // captured_graphs.h

// A communicator with calls in the group that this thread has open, and how it
// stood before, for the case that the group fails.
struct GroupComm {
  LocalComm* comm;
  cudaStream_t stream;
  uint64_t entered, p2p_entered, signature, recorded;
  uint64_t capture;      // as FindCapture() says
  CallGraph* graph;      // that it is captured into; nullptr: none
  uint32_t graph_calls;  // that this held before
};

// A communicator being created inside a group: its handle appears when it ends.
struct PendingComm {
  LocalComm* comm;
  ncclComm_t* handle;
};

inline constexpr int kGroupComms = 32;

struct GroupLists;  // group_lists.h

struct ThreadState {
  bool inside;  // in a wrapped call: those that it makes itself are NCCL's business
  bool blocked_claimed;
  uint8_t next_shape;  // of the next call, as the program told it; 0: it did not
  uint8_t kept_shape;  // of all calls until PyTorch's own returns (torch_shapes.h)
  uint16_t group_number;
  uint16_t makings_before_fork;  // for its child (segment_file.h)
  int group_depth;
  int group_size;
  int pending_size;
  segment::BlockedEntry* blocked;
  LocalComm* last_comm;
  uint32_t thread_id;
  uint64_t nested_unique_id;  // hash of the id that CommInitAll made inside
  GroupLists* lists;          // of the group that it has open; nullptr: it never had one
};
// Small: whoever loads us late (an NCCL that takes us as its plugin) has 1,664 bytes left for all
// libraries of that kind, in glibc up to 2.36.
static_assert(sizeof(ThreadState) <= 64);
// __thread, not thread_local: nothing to construct, so no guard at each access.
// Initial-exec by the build's flags: a plain offset from the thread pointer.
extern __thread ThreadState this_thread;

// For the time of one wrapped call on this thread.
class InsideCall {
 public:
  explicit InsideCall(ThreadState* thread) : thread_(thread) { thread_->inside = true; }
  ~InsideCall() { thread_->inside = false; }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  ThreadState* thread_;
};

// As gettid() gives it. Makes a system call.
int32_t ThreadId();

// Forgets what the calling thread remembers of the segment. In a child of fork.
void ForgetThread();

}  // namespace rollcall
