// SPDX-License-Identifier: Apache-2.0
// The wrappers of NVSHMEM's host calls.
//
// A team is a communicator, and a PE of it a rank. The team of all PEs has the hash of the unique
// id from which the program starts, as a communicator of NCCL does. Where there is none, the
// launcher or MPI brings the PEs together. Then they are assumed to be all ranks of the job (RANK,
// WORLD_SIZE and their like); of another number of PEs nothing is recorded, since other ranks may
// have such a team, too. A split is known by the order of the splits on its parent, and by its
// arguments, in which the parts of a parent differ. The other teams that NVSHMEM makes itself, of
// PEs that share memory, of a node and the like, are not recorded: which numbers they have depends
// on the version, and NVSHMEM may be asked about them only between its start and its end.
//
// What kernels call themselves, on the GPU, no library sees.
#include <stdlib.h>
#include <string.h>

#include "interpose/calls/observe_life.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::CommState;
using segment::Mix;

constexpr uintptr_t kNvshmem = uintptr_t{1} << 62;  // no address has this bit, nor MPI's handles
constexpr uint64_t kWorldId = 0x6e767368776f726c;
constexpr int kNvshmemFailed = 1;

std::atomic<int> starts{0};  // a program may start the library again before it ends it

const void* TeamHandle(int32_t team) {
  return reinterpret_cast<const void*>(kNvshmem | static_cast<uint32_t>(team));
}

// Asks NVSHMEM for a number that it has at hand.
template <typename... Args>
int32_t Ask(const char* symbol, Args... args) {
  const auto query = reinterpret_cast<int (*)(Args...)>(FindRealByName(symbol));
  return query == nullptr ? -1 : query(args...);
}

bool IsWholeJob(int32_t size) {
  const int32_t world = recorder.mapping.load(std::memory_order_acquire)->world_size;
  return world < 0 || world == size;
}

void SetKind(const LocalComm* comm) {
  comm->entry->kind.store(static_cast<uint32_t>(CommKind::kNvshmem), std::memory_order_relaxed);
}

// Fills in what is known once the team is there.
void LearnTeam(const LocalComm* comm, int32_t team) {
  if (Get(comm->entry->split_id) == 0) return;
  comm->entry->rank.store(static_cast<uint32_t>(Ask("nvshmem_team_my_pe", team)),
                          std::memory_order_relaxed);
  comm->entry->size.store(static_cast<uint32_t>(Ask("nvshmem_team_n_pes", team)),
                          std::memory_order_relaxed);
}

// Records the answer of a call that has made a team, or has left this PE out of it.
void EndTeam(LocalComm* comm, int32_t team, int result) {
  if (comm == nullptr) return;
  const bool is_member = result == 0 && team != kNvshmemInvalidTeam;
  if (is_member) LearnTeam(comm, team);
  RecordAnswer(comm, is_member ? TeamHandle(team) : nullptr, result);
}

LocalComm* AddTeam(const NewComm& what) {
  LocalComm* comm = AddComm(what);
  if (comm != nullptr) SetKind(comm);
  return comm;
}

// Records a call by which this thread makes a team. `comm` may be nullptr.
template <typename Call>
int ObserveTeam(Op op, LocalComm* comm, const int32_t* team, const Call& call) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const int result = call();
  EndTeam(comm, result == 0 ? *team : kNvshmemInvalidTeam, result);
  return result;
}

bool IsRecorded(int32_t team) { return FindComm(TeamHandle(team)) != nullptr; }

// The handle of a team in a call.
ncclComm_t CommOf(int32_t team) {
  return static_cast<ncclComm_t>(const_cast<void*>(TeamHandle(team)));
}

// A version is in the upper half, and the size in the lower one.
bool IsKnownVersion(int version) {
  const int number = version >> 16, bytes = version & 0xffff;
  return (number == 1 || number == 2) && bytes >= static_cast<int>(sizeof(NvshmemInitAttr));
}

// The team of all PEs, before the start. nullptr if unknown so far.
LocalComm* AddWorldById(unsigned flags, const NvshmemInitAttr* attr) {
  const bool has_id = (flags & kNvshmemByUniqueId) != 0 && attr != nullptr &&
                      IsKnownVersion(attr->version) && attr->unique.id != nullptr;
  if (!has_id) return nullptr;
  const uint64_t hash = segment::HashBytes(attr->unique.id, sizeof(*attr->unique.id));
  return AddTeam(FromIdHash(hash, attr->unique.size, attr->unique.rank));
}

void AddWorldByPlace() {
  const int32_t size = Ask("nvshmem_n_pes");
  if (size <= 0 || !IsWholeJob(size)) return;
  const char* name = getenv("PMIX_NAMESPACE");
  const uint64_t job = name == nullptr ? 0 : segment::HashBytes(name, strlen(name));
  const uint64_t id = Mix(Mix(kWorldId, job), static_cast<uint32_t>(size));
  EndTeam(AddTeam(FromIdHash(id, size, Ask("nvshmem_my_pe"))), kNvshmemWorld, 0);
}

template <typename Call>
int ObserveStart(unsigned flags, const NvshmemInitAttr* attr, const Call& call) {
  LocalComm* comm = AddWorldById(flags, attr);
  constexpr int32_t kTeam = kNvshmemWorld;
  const int result = ObserveTeam(Op::knvshmem_init, comm, &kTeam, call);
  if (result != 0) return result;
  starts.fetch_add(1);
  if (comm == nullptr) {
    const InsideCall inside(&this_thread);
    AddWorldByPlace();
  }
  return result;
}

// One of the functions that start the library. The other one may be inside of it.
template <typename Call>
int ObserveInit(unsigned flags, const NvshmemInitAttr* attr, const Call& call) {
  if (!IsOwnCreation()) return call();
  if (!IsRecorded(kNvshmemWorld)) return ObserveStart(flags, attr, call);
  const InsideCall inside(&this_thread);
  const int result = call();
  if (result == 0) starts.fetch_add(1);
  return result;
}

// Calls `each` with the recorded teams.
template <typename Each>
void ForEachTeam(Each each) {
  ForEachComm([&](LocalComm* comm) {
    const bool is_team = comm->handle.load(std::memory_order_relaxed) != nullptr &&
                         comm->entry->kind.load(std::memory_order_relaxed) ==
                             static_cast<uint32_t>(CommKind::kNvshmem);
    if (is_team) each(comm);
  });
}

// One of the functions that end the library.
template <typename Call>
void ObserveFinalize(const Call& call) {
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return call();
  const bool is_last = starts.fetch_sub(1) == 1;
  const InsideCall inside(thread);
  if (!is_last) return call();
  LocalComm* world = FindComm(TeamHandle(kNvshmemWorld));
  ForEachTeam([](LocalComm* comm) { SetState(comm, CommState::kFinalizing); });
  const Blocked blocked(thread, Op::knvshmem_finalize, world, nullptr, Now());
  call();
  ForEachTeam([](LocalComm* comm) {
    ForgetHandle(comm);
    SetState(comm, CommState::kDestroyed);
  });
}

// A part of `parent`, by the part of the arguments that differ between the parts.
LocalComm* AddSplit(int32_t parent, uint64_t part) {
  NewComm what;
  if (!FromParent(CommOf(parent), segment::kSplit, nullptr, &what)) return nullptr;
  what.id = Mix(what.split_id, part);
  return AddTeam(what);
}

uint64_t PartOf(int start, int stride, int size) {
  return Mix(Mix(static_cast<uint32_t>(start), static_cast<uint32_t>(stride)),
             static_cast<uint32_t>(size));
}

int32_t RankIn(int32_t team) {
  const LocalComm* comm = FindComm(TeamHandle(team));
  const uint32_t rank = comm == nullptr ? 0 : comm->entry->rank.load(std::memory_order_relaxed);
  return static_cast<int32_t>(rank);
}

CallInfo Without(Op op, void* stream) {
  return {op, kNoDtype, kNoReduction, kNoPeer, 0, static_cast<cudaStream_t>(stream)};
}

// Some functions return nothing. A missing one does nothing.
template <Fn fn, typename... Args>
int CallVoid(Args... args) {
  const auto real = reinterpret_cast<void (*)(Args...)>(Real(fn));
  if (real != nullptr) real(args...);
  return 0;
}

using Typed = int (*)(int32_t team, void* to, const void* from, size_t count, void* stream);
__attribute__((noinline)) int ObserveTyped(Typed real, const CallInfo& info, const void* caller,
                                           int32_t team, void* to, const void* from, void* stream) {
  return ObserveCall(real, CommOf(team), info, caller, team, to, from, info.count, stream);
}

using Rooted = int (*)(int32_t team, void* to, const void* from, size_t count, int root,
                       void* stream);
__attribute__((noinline)) int ObserveRooted(Rooted real, const CallInfo& info, const void* caller,
                                            int32_t team, void* to, const void* from,
                                            void* stream) {
  return ObserveCall(real, CommOf(team), info, caller, team, to, from, info.count, info.peer,
                     stream);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT
#define CALLER __builtin_return_address(0)

EXPORT int nvshmemid_hostlib_init_attr(int wanted, int* provided, unsigned flags,
                                       NvshmemInitAttr* attr, NvshmemVersion version,
                                       void* callback) {
  const auto real = ROLLCALL_REAL(nvshmemid_hostlib_init_attr);
  if (real == nullptr) return kNvshmemFailed;
  return ObserveInit(flags, attr,
                     [&] { return real(wanted, provided, flags, attr, version, callback); });
}

EXPORT int nvshmemx_hostlib_init_attr(unsigned flags, NvshmemInitAttr* attr) {
  const auto real = ROLLCALL_REAL(nvshmemx_hostlib_init_attr);
  if (real == nullptr) return kNvshmemFailed;
  return ObserveInit(flags, attr, [&] { return real(flags, attr); });
}

EXPORT void nvshmemid_hostlib_finalize(void* device, void* transport) {
  const auto real = ROLLCALL_REAL(nvshmemid_hostlib_finalize);
  if (real != nullptr) ObserveFinalize([&] { real(device, transport); });
}

EXPORT void nvshmemx_hostlib_finalize() {
  const auto real = ROLLCALL_REAL(nvshmemx_hostlib_finalize);
  if (real != nullptr) ObserveFinalize([&] { real(); });
}

EXPORT int nvshmem_team_split_strided(int32_t parent, int start, int stride, int size,
                                      const NvshmemTeamConfig* config, long mask, int32_t* team) {
  const auto real = ROLLCALL_REAL(nvshmem_team_split_strided);
  if (real == nullptr) return kNvshmemFailed;
  const auto call = [&] { return real(parent, start, stride, size, config, mask, team); };
  if (this_thread.inside || !Recording() || team == nullptr) return call();
  return ObserveTeam(Op::knvshmem_team_split_strided, AddSplit(parent, PartOf(start, stride, size)),
                     team, call);
}

// Makes a row and a column, one after the other.
EXPORT int nvshmem_team_split_2d(int32_t parent, int range, const NvshmemTeamConfig* x_config,
                                 long x_mask, int32_t* x_team, const NvshmemTeamConfig* y_config,
                                 long y_mask, int32_t* y_team) {
  const auto real = ROLLCALL_REAL(nvshmem_team_split_2d);
  if (real == nullptr) return kNvshmemFailed;
  const auto call = [&] {
    return real(parent, range, x_config, x_mask, x_team, y_config, y_mask, y_team);
  };
  const bool is_recorded =
      !this_thread.inside && Recording() && range > 0 && x_team != nullptr && y_team != nullptr;
  if (!is_recorded) return call();
  const auto rank = static_cast<uint32_t>(RankIn(parent));
  LocalComm* row = AddSplit(parent, rank / static_cast<uint32_t>(range));
  LocalComm* column = AddSplit(parent, rank % static_cast<uint32_t>(range));
  const int result = ObserveTeam(Op::knvshmem_team_split_2d, row, x_team, call);
  const InsideCall inside(&this_thread);
  EndTeam(column, result == 0 ? *y_team : kNvshmemInvalidTeam, result);
  return result;
}

// The members have a unique id for the team.
EXPORT int nvshmemx_team_init(int32_t* team, NvshmemTeamConfig* config, long mask, int size,
                              int rank) {
  const auto real = ROLLCALL_REAL(nvshmemx_team_init);
  if (real == nullptr) return kNvshmemFailed;
  const auto call = [&] { return real(team, config, mask, size, rank); };
  if (this_thread.inside || !Recording() || config == nullptr || team == nullptr) return call();
  const uint64_t hash = Mix(kNvshmem, config->unique_id);
  return ObserveTeam(Op::knvshmemx_team_init, AddTeam(FromIdHash(hash, size, rank)), team, call);
}

EXPORT void nvshmem_team_destroy(int32_t team) {
  LocalComm* comm = this_thread.inside || !Recording() ? nullptr : FindComm(TeamHandle(team));
  const auto real = ROLLCALL_REAL(nvshmem_team_destroy);
  if (real == nullptr) return;
  if (comm == nullptr) return real(team);
  const InsideCall inside(&this_thread);
  SetState(comm, CommState::kFinalizing);
  ForgetHandle(comm);
  const Blocked blocked(&this_thread, Op::knvshmem_team_destroy, comm, nullptr, Now());
  real(team);
  SetState(comm, CommState::kDestroyed);
}

EXPORT void nvshmem_barrier_all() {
  ObserveCall(&CallVoid<Fn::k_nvshmem_barrier_all>, CommOf(kNvshmemWorld),
              Without(Op::kBarrier, nullptr), CALLER);
}

EXPORT int nvshmem_barrier(int32_t team) {
  return ObserveCall(ROLLCALL_REAL(nvshmem_barrier), CommOf(team), Without(Op::kBarrier, nullptr),
                     CALLER, team);
}

EXPORT void nvshmem_sync_all() {
  ObserveCall(&CallVoid<Fn::k_nvshmem_sync_all>, CommOf(kNvshmemWorld), Without(Op::kSync, nullptr),
              CALLER);
}

EXPORT int nvshmem_team_sync(int32_t team) {
  return ObserveCall(ROLLCALL_REAL(nvshmem_team_sync), CommOf(team), Without(Op::kSync, nullptr),
                     CALLER, team);
}

EXPORT void nvshmemx_barrier_all_on_stream(void* stream) {
  ObserveCall(&CallVoid<Fn::k_nvshmemx_barrier_all_on_stream, void*>, CommOf(kNvshmemWorld),
              Without(Op::kBarrier, stream), CALLER, stream);
}

EXPORT int nvshmemx_barrier_on_stream(int32_t team, void* stream) {
  return ObserveCall(ROLLCALL_REAL(nvshmemx_barrier_on_stream), CommOf(team),
                     Without(Op::kBarrier, stream), CALLER, team, stream);
}

EXPORT void nvshmemx_sync_all_on_stream(void* stream) {
  ObserveCall(&CallVoid<Fn::k_nvshmemx_sync_all_on_stream, void*>, CommOf(kNvshmemWorld),
              Without(Op::kSync, stream), CALLER, stream);
}

EXPORT int nvshmemx_team_sync_on_stream(int32_t team, void* stream) {
  return ObserveCall(ROLLCALL_REAL(nvshmemx_team_sync_on_stream), CommOf(team),
                     Without(Op::kSync, stream), CALLER, team, stream);
}

#define WITHOUT_ROOT(symbol, op, dtype, reduction)                                          \
  EXPORT int symbol(int32_t team, void* to, const void* from, size_t count, void* stream) { \
    const CallInfo info = {Op::k##op, dtype, reduction,                                     \
                           kNoPeer,   count, static_cast<cudaStream_t>(stream)};            \
    return ObserveTyped(ROLLCALL_REAL(symbol), info, CALLER, team, to, from, stream);       \
  }
#define WITH_ROOT(symbol, dtype)                                                       \
  EXPORT int symbol(int32_t team, void* to, const void* from, size_t count, int root,  \
                    void* stream) {                                                    \
    const CallInfo info = {Op::kBroadcast, dtype, kNoReduction,                        \
                           root,           count, static_cast<cudaStream_t>(stream)};  \
    return ObserveRooted(ROLLCALL_REAL(symbol), info, CALLER, team, to, from, stream); \
  }

WITHOUT_ROOT(nvshmemx_alltoallmem_on_stream, AlltoAll, ncclUint8, kNoReduction)
WITHOUT_ROOT(nvshmemx_fcollectmem_on_stream, AllGather, ncclUint8, kNoReduction)
WITH_ROOT(nvshmemx_broadcastmem_on_stream, ncclUint8)

#define OF_TYPE(symbol, op, reduction) WITHOUT_ROOT(symbol, op, kDtype, reduction)
#define NVSHMEM_TYPED(type, dtype)                           \
  namespace of_##type {                                      \
    constexpr uint8_t kDtype = dtype;                        \
    NVSHMEM_WITHOUT_ROOT(type, OF_TYPE)                      \
    WITH_ROOT(nvshmemx_##type##_broadcast_on_stream, kDtype) \
  }
#include "interpose/nvshmem_types.def"
