// SPDX-License-Identifier: Apache-2.0
// What the wrappers of MPI's calls share: which MPI this is, and its communicators.
//
// They are recorded like NCCL's, but for two things: nothing goes to a GPU, and they
// are known by their place in MPI's own order of creation. Intercommunicators, and
// those made by other calls than calls_mpi_comms.cc wraps, are not followed.
//
// For the wrappers of MPI's calls alone, on the thread that makes the call. Some functions ask MPI,
// never for a call that waits for other ranks.
#pragma once

#include <string.h>

#include "interpose/local_comm.h"
#include "interpose/mpi_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

inline constexpr int kMpiFailed = 1;  // not MPI_SUCCESS

// What this process's MPI is, asked of it once.
struct MpiImplementation {
  std::atomic<bool> known{false};
  bool words_are_ints = true;
  // As MPICH numbers them: MPI_COMM_WORLD, MPI_COMM_NULL, MPI_REQUEST_NULL.
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
};
extern MpiImplementation mpi;

// False: there is none that we can ask.
bool KnowMpi();

inline uintptr_t CleanWord(MpiWord word) {
  return mpi.words_are_ints ? static_cast<uint32_t>(word) : word;
}

// The handle at `index` of an array of MPI's: of ints, or of pointers.
inline MpiWord HandleAt(const MpiWord* handles, int index = 0) {
  if (!mpi.words_are_ints) return handles[index];
  uint32_t handle;
  memcpy(&handle,
         reinterpret_cast<const char*>(handles) + sizeof(handle) * static_cast<size_t>(index),
         sizeof(handle));
  return handle;
}

// nullptr: not followed, or within another call.
LocalComm* FindMpiComm(ThreadState* thread, MpiWord handle);

// False of communicators that are not followed.
bool RankAndSize(MpiWord comm, int* rank, int* size);

// The communicator can be used from now on, by this handle.
void MpiCommCreated(LocalComm* comm, MpiWord handle);

uint64_t MessageBytes(int count, MpiWord type);

}  // namespace rollcall
