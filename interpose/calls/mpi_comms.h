// SPDX-License-Identifier: Apache-2.0
// What the wrappers of MPI's calls share: the MPI implementation, and its communicators.
//
// The library records MPI's communicators like NCCL's, with two differences: no call goes to a GPU,
// and the id of a communicator comes from the order of creations on its parent. It does not record
// intercommunicators, nor communicators that other calls create than those in calls_mpi_comms.cc.
//
// The wrappers of MPI's calls use this, on the thread that makes the call. Some functions call MPI,
// but never a function that waits for other ranks.
#pragma once

#include <string.h>

#include "interpose/local_comm.h"
#include "interpose/mpi_api.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/poll_loops.h"
#include "interpose/thread_state.h"

namespace rollcall {

inline constexpr int kMpiFailed = 1;  // not MPI_SUCCESS

// The facts about this process's MPI. FindMpi() fills them in once.
struct MpiImplementation {
  std::atomic<bool> searched{false};
  bool words_are_ints = true;
  // The values of MPI_COMM_WORLD, MPI_COMM_NULL and MPI_REQUEST_NULL in MPICH.
  uintptr_t world = 0x44000000, null_comm = 0x04000000, null_request = 0x2c000000;
  int (*rank)(MpiWord, int*) = nullptr;
  int (*size)(MpiWord, int*) = nullptr;
  int (*is_inter)(MpiWord, int*) = nullptr;
  int (*type_size)(MpiWord, int*) = nullptr;
  int (*group)(MpiWord, MpiWord*) = nullptr;
  int (*free_group)(MpiWord*) = nullptr;
  int (*group_rank)(MpiWord, int*) = nullptr;
  int (*group_size)(MpiWord, int*) = nullptr;
  int (*translate)(MpiWord, int, const int*, MpiWord, int*) = nullptr;
  int (*request_status)(MpiWord, int*, void*) = nullptr;  // may be missing
};
extern MpiImplementation mpi;

// False if the process has no MPI whose functions we can call.
bool FindMpi();

inline uintptr_t CleanWord(MpiWord word) {
  return mpi.words_are_ints ? static_cast<uint32_t>(word) : word;
}

// The handle at `index` of an array of MPI handles, which are ints or pointers. Without an array,
// about which MPI itself complains: the handle of no request.
inline MpiWord HandleAt(const MpiWord* handles, int index = 0) {
  if (handles == nullptr) return mpi.null_request;
  if (!mpi.words_are_ints) return handles[index];
  uint32_t handle;
  memcpy(&handle,
         reinterpret_cast<const char*>(handles) + sizeof(handle) * static_cast<size_t>(index),
         sizeof(handle));
  return handle;
}

// The communicator of a call that a thread makes inside of no other one; nullptr if it is not
// recorded.
LocalComm* FindOuterComm(ThreadState* thread, MpiWord handle);

// The same for a call that does not end a loop of tests (poll_loops.h). nullptr also if the thread
// is inside another call. For wrappers, at their start, as IsInsideCall().
__attribute__((always_inline)) inline LocalComm* FindPolledComm(ThreadState* thread,
                                                                MpiWord handle) {
  return IsInsideCall() ? nullptr : FindOuterComm(thread, handle);
}

__attribute__((always_inline)) inline LocalComm* FindMpiComm(ThreadState* thread, MpiWord handle) {
  if (IsInsideCall()) return nullptr;
  if (__builtin_expect(thread->polls, 0)) EndPolls(thread);
  return FindOuterComm(thread, handle);
}

// nullptr if the communicator is not recorded. Also for a thread that is inside another call.
LocalComm* FindKnownComm(MpiWord handle);

// False for an intercommunicator, or if MPI returned an error.
bool RankAndSize(MpiWord comm, int* rank, int* size);

// Records that the communicator is created, with this handle.
void MpiCommCreated(LocalComm* comm, MpiWord handle);

// The bytes of a call that a thread makes outside of other calls; 0 if unknown.
uint64_t OuterBytes(int64_t count, MpiWord type);
__attribute__((always_inline)) inline uint64_t MessageBytes(int64_t count, MpiWord type) {
  return IsInsideCall() ? 0 : OuterBytes(count, type);
}

}  // namespace rollcall
