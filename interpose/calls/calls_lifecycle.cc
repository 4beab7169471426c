// SPDX-License-Identifier: Apache-2.0
// The wrappers of the calls that create and end communicators.
#include "interpose/calls/observe.h"
#include "interpose/calls/side_channel.h"
#include "interpose/real.h"
#include "interpose/record/comm_ids.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/creations.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/late.h"
#include "interpose/record/lifecycle.h"
#include "interpose/record/recording.h"

namespace rollcall {
namespace {

using segment::CommState;

template <typename Function, typename... Args>
ncclResult_t CallBlocked(Function* real, ThreadState* thread, Op op, const LocalComm* comm,
                         Args... args) {
  const Blocked blocked(thread, op, comm, nullptr, Now());
  return real(args...);
}

// Records a call by which `real` creates one communicator and stores its handle in `*handle`.
template <typename Function, typename... Args>
ncclResult_t ObserveCreate(Function* real, Op op, const NewComm& what, ncclComm_t* handle,
                           Args... args) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return real(args...);
  RecordNcclVersion();
  const ncclResult_t result = CallBlocked(real, thread, op, comm, args...);
  if (thread->group_depth > 0 && !IsError(result)) {
    if (thread->pending_size < kGroupComms && EnsureGroupLists(thread) != nullptr) {
      thread->lists->pending[thread->pending_size++] = {comm, handle};
    }
    return result;
  }
  RecordCreated(comm, IsError(result) ? nullptr : *handle, result);
  if (result == ncclSuccess && *handle != nullptr) EnableMarkers(comm);
  if (result == ncclInProgress && *handle != nullptr) {
    RecordLateStateChange(thread, comm, op, CommState::kEmpty);
  }
  return result;
}

// Whether the wrapper records this call: the program makes it, not NCCL, and recording is on.
bool Observed() { return !this_thread.inside && StartRecording(); }

// Keeps ClaimBlock() from giving the communicator's block to another communicator.
class Ending {
 public:
  explicit Ending(LocalComm* comm) : comm_(comm) { comm_->ending.fetch_add(1); }
  ~Ending() { comm_->ending.fetch_sub(1); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  LocalComm* const comm_;
};

// Records a call by which `real` ends a communicator: the state is `during` inside the call and
// `after` afterwards. If another thread aborts the communicator meanwhile, it stays aborted.
template <typename Function, typename... Args>
ncclResult_t ObserveTeardown(Function* real, Op op, ncclComm_t handle, CommState during,
                             CommState after, Args... args) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  LocalComm* comm = thread->inside || !Recording() ? nullptr : FindThreadComm(thread, handle);
  if (comm == nullptr) return real(handle, args...);
  const InsideCall inside(thread);
  const auto before = static_cast<CommState>(comm->entry->state.load(std::memory_order_relaxed));
  const Ending ending(comm);
  SetState(comm, during);
  // NCCL may free the communicator and give its address to a new one.
  const bool frees = after == CommState::kDestroyed || after == CommState::kAborted;
  if (frees) ForgetHandle(comm);
  const ncclResult_t result = CallBlocked(real, thread, op, comm, handle, args...);
  RenewClock();
  if (result == ncclInProgress && !frees) {
    RecordLateStateChange(thread, comm, op, after);
    return result;
  }
  if (IsError(result)) {
    ChangeState(comm, during, before);
    if (frees) BindHandle(comm, handle);
    return result;
  }
  if (!frees) {
    ChangeState(comm, during, after);
    return result;
  }
  SetState(comm, after);
  EndLateCall(comm, LateSince(comm), 0, false);
  EndSideChannels(comm);
  return result;
}

constexpr int kMostInitAll = 64;

// CommInitAll creates a communicator for each device of one process. NCCL makes the unique id
// inside the call, by a nested ncclGetUniqueId.
ncclResult_t ObserveInitAll(decltype(&ncclCommInitAll) real, ncclComm_t* handles, int devices,
                            const int* list) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  LocalComm* comms[kMostInitAll] = {};
  const int recorded = devices < kMostInitAll ? devices : kMostInitAll;
  for (int rank = 0; rank < recorded; ++rank) {
    NewComm what;
    what.rank = rank;
    what.size = devices;
    comms[rank] = AddComm(what);
  }
  RecordNcclVersion();
  const Blocked blocked(thread, Op::kCommInitAll, comms[0], nullptr, Now());
  thread->nested_unique_id = 0;
  const ncclResult_t result = real(handles, devices, list);
  for (int rank = 0; rank < recorded; ++rank) {
    CountCreation(thread->nested_unique_id, rank);
    if (comms[rank] == nullptr) continue;
    comms[rank]->entry->base_id.store(thread->nested_unique_id, std::memory_order_relaxed);
    comms[rank]->entry->id.store(thread->nested_unique_id, std::memory_order_relaxed);
    RecordCreated(comms[rank], IsError(result) ? nullptr : handles[rank], result);
    if (result == ncclSuccess) EnableMarkersOnDevice(comms[rank]);
  }
  return result;
}

}  // namespace
}  // namespace rollcall

using rollcall::NewComm;
using rollcall::ObserveCreate;
using rollcall::Observed;
using rollcall::ObserveTeardown;
using rollcall::Op;
using rollcall::segment::CommState;

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  auto* real = ROLLCALL_REAL(ncclGetUniqueId);
  if (real == nullptr) return ncclSystemError;
  const ncclResult_t result = real(uniqueId);
  if (rollcall::this_thread.inside && result == ncclSuccess) {
    rollcall::this_thread.nested_unique_id =
        rollcall::segment::HashBytes(uniqueId, sizeof(*uniqueId));
  }
  return result;
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks,
                                                         ncclUniqueId commId, int rank) {
  auto* real = ROLLCALL_REAL(ncclCommInitRank);
  if (real == nullptr) return ncclSystemError;
  if (!Observed()) return real(comm, nranks, commId, rank);
  return ObserveCreate(real, Op::kCommInitRank,
                       rollcall::FromUniqueId(commId, nranks, rank, nullptr), comm, comm, nranks,
                       commId, rank);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks,
                                                               ncclUniqueId commId, int rank,
                                                               ncclConfig_t* config) {
  auto* real = ROLLCALL_REAL(ncclCommInitRankConfig);
  if (real == nullptr) return ncclSystemError;
  if (!Observed()) return real(comm, nranks, commId, rank, config);
  return ObserveCreate(real, Op::kCommInitRankConfig,
                       rollcall::FromUniqueId(commId, nranks, rank, config), comm, comm, nranks,
                       commId, rank, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks,
                                                                 int myrank, int nId,
                                                                 ncclUniqueId* commIds,
                                                                 ncclConfig_t* config) {
  auto* real = ROLLCALL_REAL(ncclCommInitRankScalable);
  if (real == nullptr) return ncclSystemError;
  if (!Observed() || nId < 1 || commIds == nullptr) {
    return real(newcomm, nranks, myrank, nId, commIds, config);
  }
  return ObserveCreate(real, Op::kCommInitRankScalable,
                       rollcall::FromUniqueId(commIds[0], nranks, myrank, config), newcomm, newcomm,
                       nranks, myrank, nId, commIds, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev,
                                                        const int* devlist) {
  auto* real = ROLLCALL_REAL(ncclCommInitAll);
  if (real == nullptr) return ncclSystemError;
  if (!Observed()) return real(comm, ndev, devlist);
  return rollcall::ObserveInitAll(real, comm, ndev, devlist);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                                                      ncclComm_t* newcomm, ncclConfig_t* config) {
  auto* real = ROLLCALL_REAL(ncclCommSplit);
  if (real == nullptr) return ncclSystemError;
  NewComm what;
  if (!Observed() || !rollcall::FromParent(comm, rollcall::segment::kSplit, config, &what)) {
    return real(comm, color, key, newcomm, config);
  }
  what.id = rollcall::segment::Mix(what.split_id, static_cast<uint32_t>(color));
  return ObserveCreate(real, Op::kCommSplit, what, newcomm, comm, color, key, newcomm, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList,
                                                       int excludeRanksCount, ncclComm_t* newcomm,
                                                       ncclConfig_t* config, int shrinkFlags) {
  auto* real = ROLLCALL_REAL(ncclCommShrink);
  if (real == nullptr) return ncclSystemError;
  NewComm what;
  if (!Observed() || !rollcall::FromParent(comm, rollcall::segment::kShrink, config, &what)) {
    return real(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
  }
  what.split_id = rollcall::segment::ShrunkId(
      what.split_id, rollcall::ExclusionHash(excludeRanksList, excludeRanksCount));
  what.id = what.split_id;
  return ObserveCreate(real, Op::kCommShrink, what, newcomm, comm, excludeRanksList,
                       excludeRanksCount, newcomm, config, shrinkFlags);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommGetUniqueId(ncclComm_t comm,
                                                            ncclUniqueId* uniqueId) {
  const bool observed = Observed();
  const ncclResult_t result = rollcall::ObserveLocal(ROLLCALL_REAL(ncclCommGetUniqueId),
                                                     Op::kCommGetUniqueId, comm, comm, uniqueId);
  if (observed && result == ncclSuccess) rollcall::SetGrowId(comm, uniqueId);
  return result;
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks,
                                                     const ncclUniqueId* uniqueId, int rank,
                                                     ncclComm_t* newcomm, ncclConfig_t* config) {
  auto* real = ROLLCALL_REAL(ncclCommGrow);
  if (real == nullptr) return ncclSystemError;
  NewComm what;
  bool known = Observed();
  if (known && comm != nullptr) {
    known = rollcall::GrownFromParent(comm, nRanks, uniqueId, config, &what);
  } else if (known && uniqueId != nullptr) {
    what = rollcall::FromUniqueId(*uniqueId, nRanks, rank, config);
  } else {
    known = false;
  }
  if (!known) return real(comm, nRanks, uniqueId, rank, newcomm, config);
  return ObserveCreate(real, Op::kCommGrow, what, newcomm, comm, nRanks, uniqueId, rank, newcomm,
                       config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return ObserveTeardown(ROLLCALL_REAL(ncclCommFinalize), Op::kCommFinalize, comm,
                         CommState::kFinalizing, CommState::kFinalized);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return ObserveTeardown(ROLLCALL_REAL(ncclCommDestroy), Op::kCommDestroy, comm,
                         CommState::kFinalizing, CommState::kDestroyed);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return ObserveTeardown(ROLLCALL_REAL(ncclCommAbort), Op::kCommAbort, comm, CommState::kAborted,
                         CommState::kAborted);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return ObserveTeardown(ROLLCALL_REAL(ncclCommRevoke), Op::kCommRevoke, comm, CommState::kRevoked,
                         CommState::kRevoked, revokeFlags);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm,
                                                              ncclResult_t* asyncError) {
  auto* real = ROLLCALL_REAL(ncclCommGetAsyncError);
  if (real == nullptr) return ncclSystemError;
  rollcall::ThreadState* thread = &rollcall::this_thread;
  if (thread->inside || !rollcall::Recording()) return real(comm, asyncError);
  // FindComm(), not FindThreadComm(): a watchdog calls this function from its own thread.
  rollcall::LocalComm* known = rollcall::FindComm(comm);
  const uint64_t since = known == nullptr ? 0 : rollcall::LateSince(known);
  const uint64_t generation = known == nullptr ? 0 : rollcall::Generation(known);
  const ncclResult_t result = real(comm, asyncError);
  // The communicator may have ended meanwhile, and a new one may have its block, even its handle.
  if (result == ncclSuccess && known != nullptr &&
      known->handle.load(std::memory_order_acquire) == comm &&
      rollcall::Generation(known) == generation) {
    const rollcall::InsideCall inside(thread);
    rollcall::RecordAsyncError(known, comm, *asyncError, since);
  }
  return result;
}
