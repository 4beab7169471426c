// SPDX-License-Identifier: Apache-2.0
// The state that the library keeps for each thread.
//
// The hot path uses this on the thread itself: no thread reads the state of another. It lies in
// thread-local storage, so it stays small; group_lists.h has the large part.
#pragma once

#include <stdint.h>

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"

namespace rollcall {

struct CallGraph;  // captured_graphs.h

// A communicator with calls in the open group of a thread, and its state before the group, which
// CloseGroup() restores if the group fails.
struct GroupComm {
  LocalComm* comm;
  cudaStream_t stream;
  uint64_t entered, p2p_entered, signature, recorded;
  uint64_t capture;      // from FindCapture()
  CallGraph* graph;      // the graph that captures the calls, or nullptr
  uint32_t graph_calls;  // calls that `graph` held before
};

// A communicator that is created inside a group. NCCL stores its handle when the group ends.
struct PendingComm {
  LocalComm* comm;
  ncclComm_t* handle;
};

inline constexpr int kGroupComms = 32;

struct GroupLists;  // group_lists.h

struct ThreadState {
  bool inside;  // in a wrapped call: the wrappers ignore calls that the real function makes
  bool blocked_claimed;
  bool polls;                  // makes tests in a loop (poll_loops.h)
  bool locked_in;              // may not read the clock any more: `inside` stays set (prctl.cc)
  uint8_t next_shape;          // of the next call, from the program, or 0
  uint8_t kept_shape;          // of all calls until PyTorch's method returns (torch_shapes.h)
  uint16_t epoch_before_fork;  // SegmentFileEpoch(), for the child (segment_file.h)
  uint16_t group_number;
  int group_depth;
  int group_size;
  int pending_size;
  segment::BlockedEntry* blocked;
  LocalComm* last_comm;
  uint32_t thread_id;
  uint32_t messages_on;       // 1 + index of the communicator of its message call of MPI, or 0
  uint64_t nested_unique_id;  // hash of the id that CommInitAll made inside
  GroupLists* lists;          // nullptr if the thread has never opened a group
};
// A process that loads the library late (NCCL, as its plugin) has 1,664 bytes of static
// thread-local storage for all such libraries, in glibc up to 2.36.
static_assert(sizeof(ThreadState) <= 64);
// __thread, not thread_local: it needs no constructor, and so no guard at each access. The build's
// flags make it initial-exec: an access is an offset from the thread pointer.
extern __thread ThreadState this_thread;

// Marks this thread as inside a wrapped call, for the time of a scope.
class InsideCall {
 public:
  explicit InsideCall(ThreadState* thread) : thread_(thread) { thread_->inside = true; }
  ~InsideCall() { thread_->inside = false; }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  ThreadState* thread_;
};

// The thread's id as gettid() returns it. Makes no system call once LearnThreadIds() has found that
// the C library gives the id: the program may have forbidden gettid() since.
int32_t ThreadId();

// The thread that starts recording calls this.
void LearnThreadIds();

// Resets the calling thread's state, in a child of fork.
void ForgetThread();

}  // namespace rollcall
