// SPDX-License-Identifier: Apache-2.0
// The wrappers of the MPI calls that create and end communicators.
//
// All members compute the same id of a communicator without communicating. The id is a hash of the
// parent's id, the number of this creation on the parent, and the rank in the parent of the child's
// first member.
#include "interpose/calls/mpi_messages.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/creations.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/handle_table.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;
using segment::Mix;

// Seeds that keep the ids of children and of groups apart.
constexpr uint64_t kChildSeed = 0x6d70696368696c64;
constexpr uint64_t kGroupSeed = 0x6d706967726f7570;

uint64_t NextSplitId(CommEntry* parent) {
  return Mix(Mix(kChildSeed, Get(parent->id)), parent->child_count.fetch_add(1) + 1);
}

// The rank in the parent of the child's rank 0. It distinguishes the children that one call makes.
int FirstRank(MpiWord child, MpiWord parent) {
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

// A call that creates or ends a communicator.
struct LifeCall : OpenCall {
  LocalComm* comm;
};

void EndLeftCreation(OpenCall* open) {
  SetState(static_cast<LifeCall*>(open)->comm, CommState::kFailed);
}

// Records the time in the call that creates `comm`. `created` records what came of it, by MPI's
// result.
template <typename Call, typename Created>
__attribute__((noinline, noclone)) int RecordCreation(Op op, LocalComm* comm, const Call& call,
                                                      const Created& created) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  auto* own = OpenCallRoom<LifeCall>();
  own->thrown = &EndLeftCreation;
  own->comm = comm;
  const InsideCall inside(&this_thread);
  const Blocked blocked(&this_thread, op, comm, nullptr, Now());
  const MayThrow may_throw(own);
  const int result = call();
  if (!may_throw.IsOpen()) return result;
  if (result == 0) {
    created();
  } else {
    SetState(comm, CommState::kFailed);
  }
  return result;
}

void RecordChild(LocalComm* comm, uint64_t split_id, MpiWord child, MpiWord parent) {
  int rank = -1, size = 0;
  if (child == mpi.null_comm || !RankAndSize(child, &rank, &size)) {
    return SetState(comm, CommState::kPassedOver);
  }
  comm->entry->id.store(Mix(split_id, static_cast<uint32_t>(FirstRank(child, parent))),
                        std::memory_order_relaxed);
  comm->entry->rank.store(static_cast<uint32_t>(rank), std::memory_order_relaxed);
  comm->entry->size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
  MpiCommCreated(comm, child);
}

// Records a call that all members of `parent` make, and that gives each of them one communicator or
// none.
template <typename Function, typename... Args>
int ObserveMpiCreate(Function* real, Op op, MpiWord* created, MpiWord parent, Args... args) {
  if (real == nullptr) return kMpiFailed;
  LocalComm* known = FindMpiComm(&this_thread, parent);
  if (known == nullptr) return real(args...);
  CommEntry* entry = known->entry;
  NewComm what;
  what.parent_id = Get(entry->id);
  what.id = what.split_id = NextSplitId(entry);
  what.parent_rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  what.parent_size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return real(args...);
  return RecordCreation(
      op, comm, [&] { return real(args...); },
      [&] { RecordChild(comm, what.split_id, HandleAt(created), parent); });
}

// A hash of the tag and of the group's members, by their ranks in the parent. 0 if MPI returned an
// error.
uint64_t GroupId(const LocalComm* known, MpiWord parent, MpiWord group, int size, int tag) {
  MpiWord all = 0;
  if (mpi.group(parent, &all) != 0) return 0;
  uint64_t id = Mix(Mix(kGroupSeed, Get(known->entry->id)), static_cast<uint32_t>(tag));
  for (int i = 0; i < size; ++i) {
    int rank = -1;
    mpi.translate(group, 1, &i, all, &rank);
    id = Mix(id, static_cast<uint32_t>(rank));
  }
  mpi.free_group(&all);
  return id;
}

// Adds a communicator that the members of a group create. Other members of the parent do not make
// the call, so the parent's creations do not count it. The id counts the creations of this group.
LocalComm* AddGroupComm(const LocalComm* known, MpiWord parent, MpiWord group, int tag) {
  NewComm what;
  if (mpi.group_rank(group, &what.rank) != 0 || mpi.group_size(group, &what.size) != 0 ||
      what.rank < 0) {
    return nullptr;
  }
  what.base_id = GroupId(known, parent, group, what.size, tag);
  if (what.base_id == 0) return nullptr;
  what.id = Mix(what.base_id, TimesCreated(what.base_id, what.rank));
  return AddComm(what);
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordDuplication(const LocalComm* parent,
                                                         const MpiWord* created,
                                                         const MpiWord* request, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const InsideCall inside(&this_thread);
  const MayThrow may_throw(PlainCall());
  const uint64_t split_id = NextSplitId(parent->entry);
  const int result = call();
  if (result == 0 && may_throw.IsOpen()) {
    ForgetMessage(HandleAt(request));
    RecordCreationRequest(parent, split_id, HandleAt(request), created);
  }
  return result;
}

void EndComm(const LifeCall& call) {
  ForgetRequests(call.comm);
  ForgetMpiMessages(call.comm);
  SetState(call.comm, CommState::kDestroyed);
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordEnd(Op op, LocalComm* comm, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  auto* own = OpenCallRoom<LifeCall>();
  own->thrown = [](OpenCall* open) { EndComm(*static_cast<LifeCall*>(open)); };
  own->comm = comm;
  const InsideCall inside(&this_thread);
  const Blocked blocked(&this_thread, op, comm, nullptr, Now());
  SetState(comm, CommState::kFinalizing);
  ForgetHandle(comm);
  const MayThrow may_throw(own);
  const int result = call();
  if (may_throw.IsOpen()) EndComm(*own);
  return result;
}

// Records a call by which `real` ends a communicator.
template <typename Function, typename... Args>
int ObserveMpiEnd(Function* real, Op op, MpiWord handle, Args... args) {
  if (real == nullptr) return kMpiFailed;
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) return real(args...);
  return RecordEnd(op, comm, [&] { return real(args...); });
}

void AddMpiWorld() {
  if (FindMpi()) FindMpiComm(&this_thread, mpi.world);
}

MpiWord RecordedHandle(const MpiWord* comm) { return FindMpi() ? HandleAt(comm) : 0; }

}  // namespace
}  // namespace rollcall

using rollcall::LocalComm;
using rollcall::ObserveMpiCreate;
using rollcall::ObserveMpiEnd;
using rollcall::Op;
using rollcall::RecordedHandle;

#define EXPORT extern "C" ROLLCALL_EXPORT

// From now on the rank is known, also if it makes no call.
EXPORT int ROLLCALL_MPI(MPI_Init)(int* argc, char*** argv) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Init);
  const int result = real == nullptr ? rollcall::kMpiFailed : real(argc, argv);
  if (result == 0) rollcall::AddMpiWorld();
  return result;
}

EXPORT int ROLLCALL_MPI(MPI_Init_thread)(int* argc, char*** argv, int required, int* provided) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Init_thread);
  const int result = real == nullptr ? rollcall::kMpiFailed : real(argc, argv, required, provided);
  if (result == 0) rollcall::AddMpiWorld();
  return result;
}

EXPORT int ROLLCALL_MPI(MPI_Comm_dup)(MpiWord comm, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Comm_dup), Op::kMPI_Comm_dup, created, comm, comm,
                          created);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_dup_with_info)(MpiWord comm, MpiWord info, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Comm_dup_with_info), Op::kMPI_Comm_dup_with_info,
                          created, comm, comm, info, created);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_split)(MpiWord comm, int color, int key, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Comm_split), Op::kMPI_Comm_split, created, comm,
                          comm, color, key, created);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_split_type)(MpiWord comm, int type, int key, MpiWord info,
                                             MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Comm_split_type), Op::kMPI_Comm_split_type, created,
                          comm, comm, type, key, info, created);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_create)(MpiWord comm, MpiWord group, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Comm_create), Op::kMPI_Comm_create, created, comm,
                          comm, group, created);
}

EXPORT int ROLLCALL_MPI(MPI_Cart_create)(MpiWord comm, int dims, const int* sizes,
                                         const int* periods, int reorder, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Cart_create), Op::kMPI_Cart_create, created, comm,
                          comm, dims, sizes, periods, reorder, created);
}

EXPORT int ROLLCALL_MPI(MPI_Cart_sub)(MpiWord comm, const int* remain, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Cart_sub), Op::kMPI_Cart_sub, created, comm, comm,
                          remain, created);
}

EXPORT int ROLLCALL_MPI(MPI_Graph_create)(MpiWord comm, int nodes, const int* index,
                                          const int* edges, int reorder, MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Graph_create), Op::kMPI_Graph_create, created, comm,
                          comm, nodes, index, edges, reorder, created);
}

EXPORT int ROLLCALL_MPI(MPI_Dist_graph_create)(MpiWord comm, int nodes, const int* sources,
                                               const int* degrees, const int* destinations,
                                               const int* weights, MpiWord info, int reorder,
                                               MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Dist_graph_create), Op::kMPI_Dist_graph_create,
                          created, comm, comm, nodes, sources, degrees, destinations, weights, info,
                          reorder, created);
}

EXPORT int ROLLCALL_MPI(MPI_Dist_graph_create_adjacent)(
    MpiWord comm, int in_degree, const int* sources, const int* source_weights, int out_degree,
    const int* destinations, const int* destination_weights, MpiWord info, int reorder,
    MpiWord* created) {
  return ObserveMpiCreate(ROLLCALL_REAL_MPI(MPI_Dist_graph_create_adjacent),
                          Op::kMPI_Dist_graph_create_adjacent, created, comm, comm, in_degree,
                          sources, source_weights, out_degree, destinations, destination_weights,
                          info, reorder, created);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_create_group)(MpiWord comm, MpiWord group, int tag,
                                               MpiWord* created) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Comm_create_group);
  if (real == nullptr) return rollcall::kMpiFailed;
  const LocalComm* parent = rollcall::FindMpiComm(&rollcall::this_thread, comm);
  if (parent == nullptr) return real(comm, group, tag, created);
  LocalComm* made = rollcall::AddGroupComm(parent, comm, group, tag);
  if (made == nullptr) return real(comm, group, tag, created);
  return rollcall::RecordCreation(
      Op::kMPI_Comm_create_group, made, [&] { return real(comm, group, tag, created); },
      [&] { rollcall::MpiCommCreated(made, rollcall::HandleAt(created)); });
}

// Does not block. The library adds the communicator when the request is done, and marks no thread
// as waiting for it.
EXPORT int ROLLCALL_MPI(MPI_Comm_idup)(MpiWord comm, MpiWord* created, MpiWord* request) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Comm_idup);
  if (real == nullptr) return rollcall::kMpiFailed;
  const LocalComm* parent = rollcall::FindMpiComm(&rollcall::this_thread, comm);
  if (parent == nullptr) return real(comm, created, request);
  return rollcall::RecordDuplication(parent, created, request,
                                     [&] { return real(comm, created, request); });
}

EXPORT int ROLLCALL_MPI(MPI_Comm_free)(MpiWord* comm) {
  return ObserveMpiEnd(ROLLCALL_REAL_MPI(MPI_Comm_free), Op::kMPI_Comm_free, RecordedHandle(comm),
                       comm);
}

EXPORT int ROLLCALL_MPI(MPI_Comm_disconnect)(MpiWord* comm) {
  return ObserveMpiEnd(ROLLCALL_REAL_MPI(MPI_Comm_disconnect), Op::kMPI_Comm_disconnect,
                       RecordedHandle(comm), comm);
}

EXPORT int ROLLCALL_MPI(MPI_Finalize)() {
  return ObserveMpiEnd(ROLLCALL_REAL_MPI(MPI_Finalize), Op::kMPI_Finalize,
                       rollcall::FindMpi() ? rollcall::mpi.world : 0);
}
