// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/calls/mpi_comms.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/mpi_world.h"
#include "interpose/real.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/recording.h"
#include "interpose/recorder.h"

namespace rollcall {

MpiImplementation mpi;

namespace {

constexpr uint64_t kMpi = uint64_t{1} << 63;  // no address of an NCCL communicator has this bit

// Finds the function PMPI_X: a tool between the program and MPI may have an MPI_X of its own, which
// would take our calls for the program's.
template <typename Function>
void Find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(FindRealByName(name));
}

// A variable of Open MPI. The program may hold the copy that the linker binds, so look there first.
uintptr_t FindVariable(const char* name) {
  void* address = RealDlsym()(RTLD_DEFAULT, name);
  if (address == nullptr || !KeepLoaded(address)) address = FindRealByName(name);
  return reinterpret_cast<uintptr_t>(address);
}

bool FindFunctions() {
  Find("PMPI_Comm_rank", &mpi.rank);
  Find("PMPI_Comm_size", &mpi.size);
  Find("PMPI_Comm_test_inter", &mpi.is_inter);
  Find("PMPI_Type_size", &mpi.type_size);
  Find("PMPI_Comm_group", &mpi.group);
  Find("PMPI_Group_free", &mpi.free_group);
  Find("PMPI_Group_rank", &mpi.group_rank);
  Find("PMPI_Group_size", &mpi.group_size);
  Find("PMPI_Group_translate_ranks", &mpi.translate);
  Find("PMPI_Request_get_status", &mpi.request_status);
  return mpi.size != nullptr && mpi.is_inter != nullptr && mpi.type_size != nullptr &&
         mpi.group != nullptr && mpi.free_group != nullptr && mpi.group_rank != nullptr &&
         mpi.group_size != nullptr && mpi.translate != nullptr;
}

const void* MpiHandle(MpiWord comm) {
  return reinterpret_cast<const void*>(CleanWord(comm) | kMpi);
}

std::atomic<bool> world_left_out{false};  // there was no room for MPI_COMM_WORLD

// The id of MPI_COMM_WORLD. Spawned processes have a world of their own, with another name.
uint64_t WorldId() {
  const char* name = getenv("PMIX_NAMESPACE");
  if (name == nullptr) name = segment::kMpiWorldName;
  return segment::HashBytes(name, strlen(name));
}

LocalComm* AddWorld() {
  int rank = 0, size = 0;
  if (!RankAndSize(mpi.world, &rank, &size)) return nullptr;
  NewComm what;
  what.id = what.base_id = WorldId();
  what.rank = rank;
  what.size = size;
  what.name = segment::kMpiWorldName;
  LocalComm* comm = AddComm(what);
  if (comm != nullptr) {
    MpiCommCreated(comm, mpi.world);
  } else {
    world_left_out.store(true, std::memory_order_relaxed);
  }
  return comm;
}

}  // namespace

// Two threads that run it at once write the same values.
bool FindMpi() {
  if (mpi.searched.load(std::memory_order_acquire)) return mpi.rank != nullptr;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;  // a thread cancelled in the loader would keep the loader's lock
  if (RealDlsym() == nullptr) return false;
  const bool all = FindFunctions();
  // In Open MPI a handle is the address of an object such as this one.
  const uintptr_t world = FindVariable("ompi_mpi_comm_world");
  if (world != 0) {
    mpi.words_are_ints = false;
    mpi.world = world;
    mpi.null_comm = FindVariable("ompi_mpi_comm_null");
    mpi.null_request = FindVariable("ompi_request_null");
  }
  if (!all) mpi.rank = nullptr;
  dlerror();  // hide our failed look-ups from the program
  mpi.searched.store(true, std::memory_order_release);
  return mpi.rank != nullptr;
}

LocalComm* FindOuterComm(ThreadState* thread, MpiWord handle) {
  if (!StartRecording() || !FindMpi()) return nullptr;
  LocalComm* comm = FindComm(MpiHandle(handle));
  if (comm != nullptr || CleanWord(handle) != mpi.world ||
      world_left_out.load(std::memory_order_relaxed)) {
    return comm;
  }
  const InsideCall inside(thread);
  return AddWorld();
}

LocalComm* FindKnownComm(MpiWord handle) {
  return FindMpi() ? FindComm(MpiHandle(handle)) : nullptr;
}

bool RankAndSize(MpiWord comm, int* rank, int* size) {
  int inter = 0;
  return mpi.is_inter(comm, &inter) == 0 && inter == 0 && mpi.rank(comm, rank) == 0 &&
         mpi.size(comm, size) == 0;
}

void MpiCommCreated(LocalComm* comm, MpiWord handle) {
  comm->entry->flags.fetch_or(segment::kFlagHostCalls);
  SetState(comm, segment::CommState::kReady);
  BindHandle(comm, MpiHandle(handle));
}

uint64_t OuterBytes(int64_t count, MpiWord type) {
  int size = 0;
  // Do not call MPI if recording is off. But start recording for the first call too: otherwise
  // ranks that began to record earlier would have other bytes.
  if (!StartRecording() || !FindMpi() || mpi.type_size(type, &size) != 0) return 0;
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(size);
}

}  // namespace rollcall
