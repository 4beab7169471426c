// The wrappers of the calls by which communicators begin and end.
#include "interpose/lifecycle.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/creations.h"
#include "interpose/group_lists.h"
#include "interpose/late.h"
#include "interpose/real.h"
#include "interpose/side_channel.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;
using segment::Mix;

constexpr uint64_t kRecreated = 0x7265637265617465;  // keeps the kinds of ids apart
constexpr uint64_t kSplit = 0x73706c6974000000;
constexpr uint64_t kShrink = 0x736872696e6b0000;
constexpr uint64_t kGrow = 0x67726f7700000000;

// Fields that younger headers have may lie beyond what the caller's struct holds.
#define HAS_FIELD(config, field) \
  ((config) != nullptr && (config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

const char* ConfigName(const ncclConfig_t* config) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
  return HAS_FIELD(config, commName) ? config->commName : nullptr;
#else
  static_cast<void>(config);
  return nullptr;
#endif
}

bool IsNonBlocking(const ncclConfig_t* config) {
  if (HAS_FIELD(config, blocking) && config->blocking != NCCL_CONFIG_UNDEF_INT) {
    return config->blocking == 0;
  }
  const char* variable = getenv("NCCL_COMM_BLOCKING");
  return variable != nullptr && strcmp(variable, "0") == 0;
}

int32_t Ask(const char* symbol, ncclComm_t handle) {
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto query = reinterpret_cast<Query>(FindRealByName(symbol));
  int value = -1;
  return query != nullptr && query(handle, &value) == ncclSuccess ? value : -1;
}

void NoteNcclVersion() {
  segment::SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  if (header->nccl_version != 0) return;
  using Query = ncclResult_t (*)(int*);
  const auto query = reinterpret_cast<Query>(FindRealByName("ncclGetVersion"));
  int version = 0;
  if (query != nullptr && query(&version) == ncclSuccess) header->nccl_version = version;
}

// The communicator is there (or, if non-blocking, on its way) under `handle`.
void NoteCreated(LocalComm* comm, ncclComm_t handle, ncclResult_t result) {
  CommEntry* entry = comm->entry;
  entry->init_result.store(static_cast<uint32_t>(result), std::memory_order_relaxed);
  entry->init_returned.store(Now(), std::memory_order_relaxed);
  if (IsError(result)) {
    SetState(comm, CommState::kFailed);
    return;
  }
  if (handle == nullptr) {
    SetState(comm, CommState::kPassedOver);
    return;
  }
  BindHandle(comm, handle);
  if (result == ncclInProgress) {
    comm->maker.store(this_thread.thread_id, std::memory_order_relaxed);
    return;
  }
  const uint64_t split_id = Get(entry->split_id);
  if (split_id != 0) {
    entry->rank.store(static_cast<uint32_t>(Ask("ncclCommUserRank", handle)),
                      std::memory_order_relaxed);
    entry->size.store(static_cast<uint32_t>(Ask("ncclCommCount", handle)),
                      std::memory_order_relaxed);
  }
  entry->device.store(static_cast<uint32_t>(Ask("ncclCommCuDevice", handle)),
                      std::memory_order_relaxed);
  RenewClock();
  SetState(comm, CommState::kReady);
}

uint64_t IdOf(uint64_t base_id, int32_t rank) {
  const uint32_t times = TimesCreated(base_id, rank);
  return times == 0 ? base_id : Mix(base_id ^ kRecreated, times);
}

template <typename Function, typename... Args>
ncclResult_t CallBlocked(Function* real, ThreadState* thread, Op op, const LocalComm* comm,
                         Args... args) {
  const Blocked blocked(thread, op, comm, nullptr, Now());
  return real(args...);
}

// `real` creates one communicator into *handle.
template <typename Function, typename... Args>
ncclResult_t ObserveCreate(Function* real, Op op, const NewComm& what, ncclComm_t* handle,
                           Args... args) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return real(args...);
  NoteNcclVersion();
  const ncclResult_t result = CallBlocked(real, thread, op, comm, args...);
  if (thread->group_depth > 0 && !IsError(result)) {
    if (thread->pending_size < kGroupComms && ListsOf(thread) != nullptr) {
      thread->lists->pending[thread->pending_size++] = {comm, handle};
    }
    return result;
  }
  NoteCreated(comm, IsError(result) ? nullptr : *handle, result);
  if (result == ncclSuccess && *handle != nullptr) EnableMarkers(comm);
  if (result == ncclInProgress && *handle != nullptr) {
    NoteLateChange(thread, comm, op, CommState::kEmpty);
  }
  return result;
}

NewComm FromUniqueId(const ncclUniqueId& id, int ranks, int rank, const ncclConfig_t* config) {
  NewComm what;
  what.base_id = segment::HashBytes(&id, sizeof(id));
  what.id = IdOf(what.base_id, rank);
  what.rank = rank;
  what.size = ranks;
  what.name = ConfigName(config);
  what.non_blocking = IsNonBlocking(config);
  return what;
}

// Whether this thread's call is the program's own, and worth noting.
bool Observed() { return !this_thread.inside && StartRecording(); }

// Of the parent's nth child, from 1.
uint64_t ChildId(const CommEntry* parent, uint64_t kind, uint32_t child) {
  return Mix(Mix(kind, Get(parent->id)), child);
}

// A child's id: nothing of it is known yet but its parent, and which of the
// parent's splits this is. Its colour joins when it is.
bool FromParent(ncclComm_t parent_handle, uint64_t kind, const ncclConfig_t* config,
                NewComm* what) {
  LocalComm* parent = CommOf(&this_thread, parent_handle);
  if (parent == nullptr) return false;
  CommEntry* entry = parent->entry;
  const uint32_t child = entry->child_count.fetch_add(1) + 1;
  what->parent_id = Get(entry->id);
  what->split_id = ChildId(entry, kind, child);
  what->parent_rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  what->parent_size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  what->name = ConfigName(config);
  what->non_blocking = config != nullptr ? IsNonBlocking(config) : parent->non_blocking;
  return true;
}

// Ranks that join know the unique id only; those of the parent know the parent, and one of them
// both. They all wait for it to make the id, so what it notes here comes in time.
void NoteGrowId(ncclComm_t parent_handle, const ncclUniqueId* unique_id) {
  const LocalComm* parent = FindComm(parent_handle);
  if (parent == nullptr) return;
  CommEntry* entry = parent->entry;
  const uint32_t child = entry->child_count.load(std::memory_order_relaxed) + 1;
  entry->grow_id.store(ChildId(entry, kGrow, child), std::memory_order_relaxed);
  entry->grow_base_id.store(segment::HashBytes(unique_id, sizeof(*unique_id)),
                            std::memory_order_release);
}

// A rank of the parent keeps its number in the grown communicator.
bool GrownFromParent(ncclComm_t parent_handle, int ranks, const ncclUniqueId* unique_id,
                     const ncclConfig_t* config, NewComm* what) {
  if (!FromParent(parent_handle, kGrow, config, what)) return false;
  what->id = what->split_id;
  what->split_id = 0;
  what->rank = what->parent_rank;
  what->size = ranks;
  if (unique_id != nullptr) what->base_id = segment::HashBytes(unique_id, sizeof(*unique_id));
  return true;
}

// Equal on all survivors, whichever order they list the others in.
uint64_t ExclusionHash(const int* excluded, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += Mix(kShrink, static_cast<uint64_t>(excluded[i]) + 1);
  return sum;
}

// While it lives, the communicator's block stays its own.
class Ending {
 public:
  explicit Ending(LocalComm* comm) : comm_(comm) { comm_->ending.fetch_add(1); }
  ~Ending() { comm_->ending.fetch_sub(1); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  LocalComm* const comm_;
};

// While `real` ends a communicator, `during`; after it, `after`. Another thread may abort it
// meanwhile: then it stays aborted.
template <typename Function, typename... Args>
ncclResult_t ObserveTeardown(Function* real, Op op, ncclComm_t handle, CommState during,
                             CommState after, Args... args) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  LocalComm* comm = thread->inside || !Recording() ? nullptr : CommOf(thread, handle);
  if (comm == nullptr) return real(handle, args...);
  const InsideCall inside(thread);
  const auto before = static_cast<CommState>(comm->entry->state.load(std::memory_order_relaxed));
  const Ending ending(comm);
  SetState(comm, during);
  // The library may free the communicator and give its address to a new one.
  const bool frees = after == CommState::kDestroyed || after == CommState::kAborted;
  if (frees) ForgetHandle(comm);
  const ncclResult_t result = CallBlocked(real, thread, op, comm, handle, args...);
  RenewClock();
  if (result == ncclInProgress && !frees) {
    NoteLateChange(thread, comm, op, after);
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
  EndLate(comm, LateSince(comm), 0, false);
  EndSideChannels(comm);
  return result;
}

// `since`: LateSince() before `state` was asked for.
void NoteAsyncError(LocalComm* comm, ncclComm_t handle, ncclResult_t state, uint64_t since) {
  CommEntry* entry = comm->entry;
  if (IsError(state)) {
    entry->async_error.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  }
  const auto comm_state = static_cast<CommState>(entry->state.load(std::memory_order_relaxed));
  if (state == ncclSuccess && comm_state == CommState::kInitializing) {
    NoteCreated(comm, handle, state);
  }
  // Other threads (watchdogs) shall not stand in the driver for our sake.
  const uint32_t thread = this_thread.thread_id;
  if (state == ncclSuccess && thread != 0 &&
      comm->maker.load(std::memory_order_relaxed) == thread) {
    comm->maker.store(0, std::memory_order_relaxed);
    EnableMarkersOfDevice(comm);
  }
  if (state != ncclInProgress) EndLate(comm, since, thread, state == ncclSuccess);
}

constexpr int kMostInitAll = 64;

// CommInitAll creates a communicator for each device of one process; its id is
// made inside, by a nested ncclGetUniqueId.
ncclResult_t ObserveInitAll(decltype(&ncclCommInitAll) real, ncclComm_t* handles, int devices,
                            const int* list) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  LocalComm* comms[kMostInitAll] = {};
  const int noted = devices < kMostInitAll ? devices : kMostInitAll;
  for (int rank = 0; rank < noted; ++rank) {
    NewComm what;
    what.rank = rank;
    what.size = devices;
    comms[rank] = AddComm(what);
  }
  NoteNcclVersion();
  const Blocked blocked(thread, Op::kCommInitAll, comms[0], nullptr, Now());
  thread->nested_unique_id = 0;
  const ncclResult_t result = real(handles, devices, list);
  for (int rank = 0; rank < noted; ++rank) {
    NoteCreation(thread->nested_unique_id, rank);
    if (comms[rank] == nullptr) continue;
    comms[rank]->entry->base_id.store(thread->nested_unique_id, std::memory_order_relaxed);
    comms[rank]->entry->id.store(thread->nested_unique_id, std::memory_order_relaxed);
    NoteCreated(comms[rank], IsError(result) ? nullptr : handles[rank], result);
    if (result == ncclSuccess) EnableMarkersOfDevice(comms[rank]);
  }
  return result;
}

}  // namespace

void BindPending(ThreadState* thread, ncclResult_t result) {
  for (int i = 0; i < thread->pending_size; ++i) {
    const PendingComm& pending = thread->lists->pending[i];
    NoteCreated(pending.comm, IsError(result) ? nullptr : *pending.handle, result);
    if (result == ncclSuccess && *pending.handle != nullptr) EnableMarkersOfDevice(pending.comm);
  }
  thread->pending_size = 0;
}

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
  if (!Observed() || !rollcall::FromParent(comm, rollcall::kSplit, config, &what)) {
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
  if (!Observed() || !rollcall::FromParent(comm, rollcall::kShrink, config, &what)) {
    return real(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
  }
  what.split_id = rollcall::segment::Mix(
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
  if (observed && result == ncclSuccess) rollcall::NoteGrowId(comm, uniqueId);
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
  // FindComm, not CommOf: watchdogs call this from a thread of their own.
  rollcall::LocalComm* known = rollcall::FindComm(comm);
  const uint64_t since = known == nullptr ? 0 : rollcall::LateSince(known);
  const uint64_t generation = known == nullptr ? 0 : rollcall::GenerationOf(known);
  const ncclResult_t result = real(comm, asyncError);
  // It may have ended meanwhile, and its place be another's, with the same handle even.
  if (result == ncclSuccess && known != nullptr &&
      known->handle.load(std::memory_order_acquire) == comm &&
      rollcall::GenerationOf(known) == generation) {
    const rollcall::InsideCall inside(thread);
    rollcall::NoteAsyncError(known, comm, *asyncError, since);
  }
  return result;
}
