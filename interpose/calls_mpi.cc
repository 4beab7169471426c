// The wrappers of MPI's collectives, and of the calls by which its communicators
// begin and end. MPI's own names for tools (PMPI_X) are the real functions.
//
// Recorded as communicators like NCCL's, but for two things: the calls return when
// they are done, and their communicators are known by their place in MPI's own
// order of creation. Intercommunicators, and those made by other calls than these,
// are not followed.
#include "interpose/old_glibc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/keep_errno.h"
#include "interpose/real.h"
#include "interpose/record.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;
using segment::Mix;

constexpr uint64_t kMpi = uint64_t{1} << 63;     // no address of NCCL's has this bit
constexpr uint64_t kChild = 0x6d70696368696c64;  // keeps the kinds of ids apart
constexpr uintptr_t kMpichWorld = 0x44000000;    // MPI_COMM_WORLD of MPICH's ABI
constexpr uintptr_t kMpichNull = 0x04000000;     // MPI_COMM_NULL
constexpr int kFailed = 1;                       // not MPI_SUCCESS

// What this process's MPI is, asked of it once.
struct Implementation {
  std::atomic<bool> known{false};
  uintptr_t world = kMpichWorld, null = kMpichNull;
  bool words_are_ints = true;
  int (*rank)(MpiWord, int*) = nullptr;
  int (*size)(MpiWord, int*) = nullptr;
  int (*is_inter)(MpiWord, int*) = nullptr;
  int (*type_size)(MpiWord, int*) = nullptr;
  int (*group)(MpiWord, MpiWord*) = nullptr;
  int (*free_group)(MpiWord*) = nullptr;
  int (*translate)(MpiWord, int, const int*, MpiWord, int*) = nullptr;
};
Implementation mpi;

template <typename Function>
void Find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(FindRealByName(name));
}

// A variable of Open MPI's. A program may hold the one copy that counts, so it comes first.
uintptr_t AddressOf(const char* name) {
  void* address = RealDlsym()(RTLD_DEFAULT, name);
  if (address == nullptr) address = FindRealByName(name);
  return reinterpret_cast<uintptr_t>(address);
}

// Two threads at once write the same.
bool KnowMpi() {
  if (mpi.known.load(std::memory_order_acquire)) return mpi.rank != nullptr;
  if (RealDlsym() == nullptr) return false;
  const KeepErrno keep_errno;
  Find("MPI_Comm_rank", &mpi.rank);
  Find("MPI_Comm_size", &mpi.size);
  Find("MPI_Comm_test_inter", &mpi.is_inter);
  Find("MPI_Type_size", &mpi.type_size);
  Find("MPI_Comm_group", &mpi.group);
  Find("MPI_Group_free", &mpi.free_group);
  Find("MPI_Group_translate_ranks", &mpi.translate);
  // Open MPI's handles are the addresses of such objects.
  const uintptr_t world = AddressOf("ompi_mpi_comm_world");
  if (world != 0) {
    mpi.words_are_ints = false;
    mpi.world = world;
    mpi.null = AddressOf("ompi_mpi_comm_null");
  }
  const bool all = mpi.size != nullptr && mpi.is_inter != nullptr && mpi.type_size != nullptr &&
                   mpi.group != nullptr && mpi.free_group != nullptr && mpi.translate != nullptr;
  if (!all) mpi.rank = nullptr;
  dlerror();  // our failed look-ups are not the program's
  mpi.known.store(true, std::memory_order_release);
  return mpi.rank != nullptr;
}

uintptr_t Clean(MpiWord comm) { return mpi.words_are_ints ? static_cast<uint32_t>(comm) : comm; }

const void* HandleOf(MpiWord comm) { return reinterpret_cast<const void*>(Clean(comm) | kMpi); }

// Where MPI writes a handle: an int, or a pointer.
MpiWord HandleAt(const MpiWord* written) {
  if (!mpi.words_are_ints) return *written;
  uint32_t handle;
  memcpy(&handle, written, sizeof(handle));
  return handle;
}

// Processes may be spawned later; each such world has a name of its own.
uint64_t WorldId() {
  const char* name = getenv("PMIX_NAMESPACE");
  if (name == nullptr) name = "MPI_COMM_WORLD";
  return segment::HashBytes(name, strlen(name));
}

// False of communicators that are not followed.
bool RankAndSize(MpiWord comm, int* rank, int* size) {
  int inter = 0;
  return mpi.is_inter(comm, &inter) == 0 && inter == 0 && mpi.rank(comm, rank) == 0 &&
         mpi.size(comm, size) == 0;
}

void Created(LocalComm* comm, MpiWord handle) {
  CommEntry* entry = comm->entry;
  entry->flags.fetch_or(segment::kFlagHostCalls);
  entry->init_returned.store(Now(), std::memory_order_relaxed);
  SetState(comm, CommState::kReady);
  BindHandle(comm, HandleOf(handle));
}

LocalComm* AddWorld() {
  int rank = 0, size = 0;
  if (!RankAndSize(mpi.world, &rank, &size)) return nullptr;
  NewComm what;
  what.id = what.base_id = WorldId();
  what.rank = rank;
  what.size = size;
  what.name = "MPI_COMM_WORLD";
  LocalComm* comm = AddComm(what);
  if (comm != nullptr) Created(comm, mpi.world);
  return comm;
}

// nullptr: not followed, or within another call.
LocalComm* MpiCommOf(ThreadState* thread, MpiWord handle) {
  if (thread->inside || !StartRecording() || !KnowMpi()) return nullptr;
  LocalComm* comm = FindComm(HandleOf(handle));
  if (comm != nullptr || Clean(handle) != mpi.world) return comm;
  const InsideCall inside(thread);
  return AddWorld();
}

// Which rank of the parent is the child's first: tells children of one call apart, and
// all members can say it without talking.
int FirstOf(MpiWord child, MpiWord parent) {
  MpiWord from = 0, to = 0;
  int first = -1;
  const int zero = 0;
  if (mpi.group(child, &from) != 0) return first;
  if (mpi.group(parent, &to) == 0) {
    mpi.translate(from, 1, &zero, to, &first);
    mpi.free_group(&to);
  }
  mpi.free_group(&from);
  return first;
}

uint64_t BytesOf(int count, MpiWord type) {
  int size = 0;
  // Not asked of MPI where nothing is recorded; but asked for the first call too, or ranks of
  // which one began to record earlier would differ.
  if (this_thread.inside || !StartRecording() || !KnowMpi() || mpi.type_size(type, &size) != 0)
    return 0;
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(size);
}

// A collective, around the real function. `bytes` as ranks must agree on them; 0
// where they need not.
template <typename Function, typename... Args>
int ObserveMpi(Function* real, Op op, int32_t root, uint64_t bytes, const void* caller,
               MpiWord handle, Args... args) {
  if (real == nullptr) return kFailed;
  ThreadState* thread = &this_thread;
  LocalComm* comm = MpiCommOf(thread, handle);
  if (comm == nullptr) return real(args...);
  const InsideCall inside(thread);
  BlockedOf(thread);
  const uint64_t now = Now();
  const CallInfo info = {op, kNoDtype, kNoReduction, root, bytes, nullptr};
  const OpenRecord open = BeginRecord(thread, comm, info, now, caller);
  const Blocked blocked(thread, op, comm, nullptr, now);
  const int result = real(args...);
  open.record->result.store(result == 0 ? ncclSuccess : ncclSystemError, std::memory_order_relaxed);
  open.record->returned.store(Now(), std::memory_order_release);
  if (result == 0) {
    Raise(&comm->entry->returned, Get(comm->entry->entered));
  } else {
    TakeBack(comm, open);
  }
  return result;
}

// A call of all of `parent` that makes communicators of some of them each.
template <typename Function, typename... Args>
int ObserveMpiCreate(Function* real, Op op, MpiWord* created, MpiWord parent, Args... args) {
  if (real == nullptr) return kFailed;
  ThreadState* thread = &this_thread;
  LocalComm* known = MpiCommOf(thread, parent);
  if (known == nullptr) return real(args...);
  const InsideCall inside(thread);
  CommEntry* entry = known->entry;
  NewComm what;
  what.parent_id = Get(entry->id);
  what.split_id = Mix(Mix(kChild, what.parent_id), entry->child_count.fetch_add(1) + 1);
  what.id = what.split_id;
  what.parent_rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  what.parent_size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return real(args...);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const int result = real(args...);
  comm->entry->init_result.store(result == 0 ? ncclSuccess : ncclSystemError,
                                 std::memory_order_relaxed);
  if (result != 0) {
    SetState(comm, CommState::kFailed);
    return result;
  }
  int rank = -1, size = 0;
  const MpiWord child = HandleAt(created);
  if (child == mpi.null || !RankAndSize(child, &rank, &size)) {
    SetState(comm, CommState::kPassedOver);
    return result;
  }
  comm->entry->id.store(Mix(what.split_id, static_cast<uint32_t>(FirstOf(child, parent))),
                        std::memory_order_relaxed);
  comm->entry->rank.store(static_cast<uint32_t>(rank), std::memory_order_relaxed);
  comm->entry->size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
  Created(comm, child);
  return result;
}

// While `real` ends a communicator.
template <typename Function, typename... Args>
int ObserveMpiEnd(Function* real, Op op, MpiWord handle, Args... args) {
  if (real == nullptr) return kFailed;
  ThreadState* thread = &this_thread;
  LocalComm* comm = MpiCommOf(thread, handle);
  if (comm == nullptr) return real(args...);
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  SetState(comm, CommState::kFinalizing);
  ForgetHandle(comm);
  const int result = real(args...);
  SetState(comm, CommState::kDestroyed);
  return result;
}

}  // namespace
}  // namespace rollcall

using rollcall::BytesOf;
using rollcall::kNoPeer;
using rollcall::ObserveMpi;
using rollcall::ObserveMpiCreate;
using rollcall::Op;

#define CALLER __builtin_return_address(0)
#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT int MPI_Barrier(MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Barrier), Op::kMPI_Barrier, kNoPeer, 0, CALLER, comm, comm);
}

EXPORT int MPI_Bcast(void* buffer, int count, MpiWord type, int root, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Bcast), Op::kMPI_Bcast, root, BytesOf(count, type), CALLER,
                    comm, buffer, count, type, root, comm);
}

EXPORT int MPI_Reduce(const void* send, void* recv, int count, MpiWord type, MpiWord op, int root,
                      MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Reduce), Op::kMPI_Reduce, root, BytesOf(count, type), CALLER,
                    comm, send, recv, count, type, op, root, comm);
}

EXPORT int MPI_Allreduce(const void* send, void* recv, int count, MpiWord type, MpiWord op,
                         MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Allreduce), Op::kMPI_Allreduce, kNoPeer, BytesOf(count, type),
                    CALLER, comm, send, recv, count, type, op, comm);
}

EXPORT int MPI_Gather(const void* send, int send_count, MpiWord send_type, void* recv,
                      int recv_count, MpiWord recv_type, int root, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Gather), Op::kMPI_Gather, root, 0, CALLER, comm, send,
                    send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORT int MPI_Gatherv(const void* send, int send_count, MpiWord send_type, void* recv,
                       const int* recv_counts, const int* places, MpiWord recv_type, int root,
                       MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Gatherv), Op::kMPI_Gatherv, root, 0, CALLER, comm, send,
                    send_count, send_type, recv, recv_counts, places, recv_type, root, comm);
}

EXPORT int MPI_Scatter(const void* send, int send_count, MpiWord send_type, void* recv,
                       int recv_count, MpiWord recv_type, int root, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Scatter), Op::kMPI_Scatter, root, 0, CALLER, comm, send,
                    send_count, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORT int MPI_Scatterv(const void* send, const int* send_counts, const int* places,
                        MpiWord send_type, void* recv, int recv_count, MpiWord recv_type, int root,
                        MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Scatterv), Op::kMPI_Scatterv, root, 0, CALLER, comm, send,
                    send_counts, places, send_type, recv, recv_count, recv_type, root, comm);
}

EXPORT int MPI_Allgather(const void* send, int send_count, MpiWord send_type, void* recv,
                         int recv_count, MpiWord recv_type, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Allgather), Op::kMPI_Allgather, kNoPeer,
                    BytesOf(recv_count, recv_type), CALLER, comm, send, send_count, send_type, recv,
                    recv_count, recv_type, comm);
}

EXPORT int MPI_Allgatherv(const void* send, int send_count, MpiWord send_type, void* recv,
                          const int* recv_counts, const int* places, MpiWord recv_type,
                          MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Allgatherv), Op::kMPI_Allgatherv, kNoPeer, 0, CALLER, comm,
                    send, send_count, send_type, recv, recv_counts, places, recv_type, comm);
}

EXPORT int MPI_Alltoall(const void* send, int send_count, MpiWord send_type, void* recv,
                        int recv_count, MpiWord recv_type, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Alltoall), Op::kMPI_Alltoall, kNoPeer, 0, CALLER, comm, send,
                    send_count, send_type, recv, recv_count, recv_type, comm);
}

EXPORT int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_places,
                         MpiWord send_type, void* recv, const int* recv_counts,
                         const int* recv_places, MpiWord recv_type, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Alltoallv), Op::kMPI_Alltoallv, kNoPeer, 0, CALLER, comm,
                    send, send_counts, send_places, send_type, recv, recv_counts, recv_places,
                    recv_type, comm);
}

EXPORT int MPI_Reduce_scatter(const void* send, void* recv, const int* recv_counts, MpiWord type,
                              MpiWord op, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Reduce_scatter), Op::kMPI_Reduce_scatter, kNoPeer, 0, CALLER,
                    comm, send, recv, recv_counts, type, op, comm);
}

EXPORT int MPI_Reduce_scatter_block(const void* send, void* recv, int recv_count, MpiWord type,
                                    MpiWord op, MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Reduce_scatter_block), Op::kMPI_Reduce_scatter_block, kNoPeer,
                    BytesOf(recv_count, type), CALLER, comm, send, recv, recv_count, type, op,
                    comm);
}

EXPORT int MPI_Scan(const void* send, void* recv, int count, MpiWord type, MpiWord op,
                    MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Scan), Op::kMPI_Scan, kNoPeer, BytesOf(count, type), CALLER,
                    comm, send, recv, count, type, op, comm);
}

EXPORT int MPI_Exscan(const void* send, void* recv, int count, MpiWord type, MpiWord op,
                      MpiWord comm) {
  return ObserveMpi(ROLLCALL_REAL(MPI_Exscan), Op::kMPI_Exscan, kNoPeer, BytesOf(count, type),
                    CALLER, comm, send, recv, count, type, op, comm);
}

EXPORT int MPI_Comm_dup(MpiWord comm, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL(MPI_Comm_dup), Op::kMPI_Comm_dup, created, comm, comm,
                          created);
}

EXPORT int MPI_Comm_split(MpiWord comm, int color, int key, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL(MPI_Comm_split), Op::kMPI_Comm_split, created, comm, comm,
                          color, key, created);
}

EXPORT int MPI_Comm_split_type(MpiWord comm, int type, int key, MpiWord info, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL(MPI_Comm_split_type), Op::kMPI_Comm_split_type, created,
                          comm, comm, type, key, info, created);
}

EXPORT int MPI_Comm_create(MpiWord comm, MpiWord group, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL(MPI_Comm_create), Op::kMPI_Comm_create, created, comm, comm,
                          group, created);
}

EXPORT int MPI_Comm_free(MpiWord* comm) {
  return rollcall::ObserveMpiEnd(ROLLCALL_REAL(MPI_Comm_free), Op::kMPI_Comm_free,
                                 rollcall::KnowMpi() ? rollcall::HandleAt(comm) : 0, comm);
}

EXPORT int MPI_Finalize() {
  return rollcall::ObserveMpiEnd(ROLLCALL_REAL(MPI_Finalize), Op::kMPI_Finalize,
                                 rollcall::KnowMpi() ? rollcall::mpi.world : 0);
}
