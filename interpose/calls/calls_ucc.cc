// SPDX-License-Identifier: Apache-2.0
// The wrappers of UCC's calls.
//
// A team is a communicator. A collective takes its position at the post, as a nonblocking
// collective of MPI does: UCC matches the calls of a team in the order of their posts. A thread
// that calls nothing but ucc_context_progress() while a call is open waits for it. Calls of an
// active set, by which programs send messages, are not those of all members, and are not recorded.
// Nor are calls with a callback: UCC calls it inside the post if the call is done at once, else
// later. A callback may post the next call, which so is recorded on all ranks alike.
#include "interpose/calls/mpi_requests.h"
#include "interpose/calls/observe_life.h"
#include "interpose/calls/ucc_requests.h"
#include "interpose/calls/ucc_teams.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/poll_loops.h"

namespace rollcall {
namespace {

using segment::CommState;

constexpr int kUccMissing = kUccNotSupported;  // what a call returns where there is no UCC

// UCC's types in NCCL's numbers, or in PyTorch's where NCCL has none. A type that the program has
// made has another number on each rank.
uint8_t UccDtype(uint64_t type) {
  constexpr int kClassBits = 3;  // 0 means UCC's own
  constexpr uint8_t kComplex64 = kTorchDtypes + 9, kComplex128 = kTorchDtypes + 10;
  constexpr uint8_t kTypes[] = {ncclInt8,    kTorchDtypes + kTorchInt16,
                                ncclInt32,   ncclInt64,
                                kNoDtype,  // int128
                                ncclUint8,   kTorchDtypes + kTorchUint16,
                                ncclUint32,  ncclUint64,
                                kNoDtype,  // uint128
                                ncclFloat16, ncclFloat32,
                                ncclFloat64, ncclBfloat16,
                                kNoDtype,  // float128
                                kComplex64,  kComplex128};
  const uint64_t number = type >> kClassBits;
  return number << kClassBits == type && number < sizeof(kTypes) ? kTypes[number] : kNoDtype;
}

uint8_t UccReduction(int reduction) {
  constexpr int kMin = 3, kAvg = 12;  // up to the minimum they have NCCL's numbers
  if (reduction == kAvg) return ncclAvg;
  return reduction >= 0 && reduction <= kMin ? static_cast<uint8_t>(reduction) : kNoReduction;
}

// The side whose type and count must be equal on all members. kNone: they depend on the rank, and
// are not compared.
enum class Alike { kNone, kTarget, kSource, kTargetOfRoot, kTargetInPlace };
struct UccOperation {
  Op op;
  Alike alike;
  bool has_root, reduces;
};

// Indexed by the bit in UccCollArgs::type. A fan in and a fan out have the names of what they
// resemble.
constexpr UccOperation kOperations[] = {{Op::kAllGather, Alike::kTarget, false, false},
                                        {Op::kAllGather, Alike::kNone, false, false},
                                        {Op::kAllReduce, Alike::kTarget, false, true},
                                        {Op::kAlltoAll, Alike::kTarget, false, false},
                                        {Op::kAlltoAllv, Alike::kNone, false, false},
                                        {Op::kBarrier, Alike::kNone, false, false},
                                        {Op::kBroadcast, Alike::kSource, true, false},
                                        {Op::kReduce, Alike::kNone, true, false},
                                        {Op::kBroadcast, Alike::kNone, true, false},
                                        {Op::kGather, Alike::kNone, true, false},
                                        {Op::kGather, Alike::kNone, true, false},
                                        {Op::kReduce, Alike::kTargetOfRoot, true, true},
                                        {Op::kReduceScatter, Alike::kTargetInPlace, false, true},
                                        {Op::kReduceScatter, Alike::kNone, false, true},
                                        {Op::kScatter, Alike::kNone, true, false},
                                        {Op::kScatter, Alike::kNone, true, false}};

const UccOperation* FindOperation(int type) {
  for (size_t i = 0; i < sizeof(kOperations) / sizeof(kOperations[0]); ++i) {
    if (type == 1 << i) return &kOperations[i];
  }
  return nullptr;
}

// nullptr if there is none.
const UccBuffer* FindAlike(const UccCollArgs& args, Alike alike, uint32_t rank) {
  const bool in_place = (args.mask & kUccCollFlags) != 0 && (args.flags & kUccInPlace) != 0;
  switch (alike) {
    case Alike::kTarget:
      return &args.target.info;
    case Alike::kSource:
      return &args.source.info;
    case Alike::kTargetOfRoot:
      return args.root == rank ? &args.target.info : &args.source.info;
    case Alike::kTargetInPlace:
      return in_place ? &args.target.info : &args.source.info;
    case Alike::kNone:
      break;
  }
  return nullptr;
}

CallInfo InfoOf(const UccCollArgs& args, const UccOperation& operation, uint32_t rank) {
  CallInfo info = {operation.op, kNoDtype, kNoReduction, kNoPeer, 0, nullptr};
  if (operation.has_root) info.peer = static_cast<int32_t>(args.root);
  if (operation.reduces) info.reduction = UccReduction(args.reduction);
  const UccBuffer* alike = FindAlike(args, operation.alike, rank);
  if (alike != nullptr) info.dtype = UccDtype(alike->datatype);
  if (info.dtype != kNoDtype) info.count = alike->count;
  return info;
}

// Whether the arguments have the layouts of ucc_api.h. UCC 0.1 has others.
bool HasKnownLayouts() {
  const auto query = reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(
      FindRealByName("ucc_get_version"));
  unsigned major = 0, minor = 0, release = 0;
  if (query != nullptr) query(&major, &minor, &release);
  return major == 1;
}

// The contexts of the teams, by the number of their communicator.
std::atomic<const void*> contexts_of[segment::kCommCapacity];

// False if the call is not recorded.
bool DescribeCall(const UccCollArgs& args, const void* team, UccCall* call) {
  const UccOperation* operation = FindOperation(args.type);
  call->comm = FindComm(team);
  constexpr uint64_t kNotRecorded = kUccCollActiveSet | kUccCollCallback;
  if (call->comm == nullptr || operation == nullptr || (args.mask & kNotRecorded) != 0) {
    return false;
  }
  call->context = contexts_of[call->comm->index].load(std::memory_order_relaxed);
  call->info = InfoOf(args, *operation, call->comm->entry->rank.load(std::memory_order_relaxed));
  return true;
}

// Calls a function that records nothing, and inside of which UCC may call the program.
template <typename Function, typename... Args>
__attribute__((noinline, noclone)) int CallInside(Function* real, Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const InsideCall inside(&this_thread);
  const MayThrow may_throw(PlainCall());
  return real(args...);
}

// `*request` is known after the call.
template <typename Function, typename... Args>
int RecordPost(Function* real, UccRequest* const* request, const UccCall& call, const void* caller,
               Args... args) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  EndPolls(thread);
  EndDoneUccCalls(call.context);
  ClaimedEntry(thread);
  LocalComm* comm = call.comm;
  const uint64_t position = Get(comm->entry->entered);
  const uint64_t now = Now();
  BeginPosition(comm);
  const OpenRecord open = BeginRecord(thread, comm, call.info, now, caller, false);
  const Blocked blocked(thread, call.info.op, comm, reinterpret_cast<const void*>(position + 1),
                        now);
  const int result = real(args...);
  open.record->result.store(result == kUccOk ? ncclSuccess : ncclSystemError,
                            std::memory_order_relaxed);
  open.record->returned.store(Now(), std::memory_order_release);
  if (result == kUccOk) {
    OpenUccCall(*request, call, position, now);
    EndPositionOfWork(comm, reinterpret_cast<uintptr_t>(*request));
  } else {
    RevertPosition(comm, open);
    EndPosition(comm);
  }
  EndDoneUccCalls(call.context);
  return result;
}

template <typename Function, typename... Args>
int ObservePost(Function* real, UccRequest* request, const void* caller, Args... args) {
  UccCall call;
  const bool is_recorded = !IsInsideCall() && Recording() && FindUccRequest(request, &call);
  return is_recorded ? RecordPost(real, &request, call, caller, args...) : real(args...);
}

// Notes that a thread has called ucc_context_progress(), and that calls are open after it.
void NoteProgress(ThreadState* thread, const void* context, uint64_t began) {
  const uint32_t before = open_ucc_calls.load(std::memory_order_relaxed);
  EndDoneUccCalls(context);
  const OldestUccCall oldest = FindOldestUccCall(context);
  const bool has_ended = open_ucc_calls.load(std::memory_order_relaxed) < before;
  // A thread may progress another context in turn, on which no call is open.
  if (oldest.comm == nullptr && !has_ended) return;
  if (has_ended) return EndPolls(thread);
  ClaimedEntry(thread);
  NotePoll(thread, {Op::kucc_context_progress, context, began}, oldest.comm, oldest.number, nullptr,
           0);
}

void Created(LocalComm* comm) {
  comm->entry->flags.fetch_or(segment::kFlagHostCalls);
  SetState(comm, CommState::kReady);
}

// Records a call that begins to create a team. `comm` may be nullptr.
int RecordBegun(LocalComm* comm, const void* context, int result, void* const* team) {
  if (comm == nullptr) return result;
  if (result < 0) {
    SetState(comm, CommState::kFailed);
  } else if (*team == nullptr) {
    SetState(comm, CommState::kPassedOver);
  } else {
    contexts_of[comm->index].store(context, std::memory_order_relaxed);
    BindHandle(comm, *team);
  }
  return result;
}

LocalComm* AddTeam(const NewComm& what) {
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return nullptr;
  comm->entry->kind.store(static_cast<uint32_t>(CommKind::kUcc), std::memory_order_relaxed);
  return comm;
}

// A part of a team has a rank and a size once it is created.
void LearnRank(const LocalComm* comm, void* team) {
  if (Get(comm->entry->split_id) == 0) return;
  const auto query =
      reinterpret_cast<int (*)(void*, UccTeamAttr*)>(FindRealByName("ucc_team_get_attr"));
  UccTeamAttr attr = {};
  attr.mask = kUccAttrEp | kUccAttrSize;
  if (query == nullptr || query(team, &attr) != kUccOk) return;
  comm->entry->rank.store(static_cast<uint32_t>(attr.ep), std::memory_order_relaxed);
  comm->entry->size.store(attr.size, std::memory_order_relaxed);
}

// The team whose creation this thread asks about; nullptr if there is none, or it is not recorded.
LocalComm* FindInitializing(const void* team) {
  LocalComm* comm = IsInsideCall() || !Recording() ? nullptr : FindComm(team);
  const auto state = static_cast<uint32_t>(CommState::kInitializing);
  const bool is_new =
      comm != nullptr && comm->entry->state.load(std::memory_order_acquire) == state;
  return is_new ? comm : nullptr;
}

void EndCreation(LocalComm* comm, void* team, int result) {
  if (result == kUccOk) {
    LearnRank(comm, team);
    Created(comm);
  } else {
    ForgetHandle(comm);
    SetState(comm, CommState::kFailed);
  }
}

// A program calls ucc_team_destroy() until it is done.
int RecordDestroy(int (*real)(void*), LocalComm* comm, void* team) {
  EndPolls(&this_thread);
  ChangeState(comm, CommState::kReady, CommState::kFinalizing);
  ForgetHandle(comm);
  ForgetRequests(comm);
  const int result = CallInside(real, team);
  if (result == kUccOk) {
    SetState(comm, CommState::kDestroyed);
  } else {
    BindHandle(comm, team);
  }
  if (result < 0) SetState(comm, CommState::kReady);
  return result;
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the wrappers use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT int ucc_context_create(void* library, const UccContextParams* params, void* config,
                              void** context) {
  const auto real = ROLLCALL_REAL(ucc_context_create);
  if (real == nullptr) return kUccMissing;
  if (IsInsideCall()) return real(library, params, config, context);
  const int result = CallInside(real, library, params, config, context);
  const bool is_made = result == kUccOk && params != nullptr;
  if (is_made && HasKnownLayouts()) RecordUccContext(*context, *params);
  return result;
}

EXPORT int ucc_context_destroy(void* context) {
  const auto real = ROLLCALL_REAL(ucc_context_destroy);
  if (real == nullptr) return kUccMissing;
  ForgetUccContext(context);
  EndUccCallsOf(context);
  return IsInsideCall() ? real(context) : CallInside(real, context);
}

// UCC calls a program's callbacks in here, which may post the next call. So the thread is not
// marked as inside.
EXPORT int ucc_context_progress(void* context) {
  const auto real = ROLLCALL_REAL(ucc_context_progress);
  if (real == nullptr) return kUccMissing;
  if (IsInsideCall() || !Recording()) return real(context);
  const bool any = AnyOpenUccCall();
  const uint64_t began = any ? Now() : 0;
  const int result = real(context);
  if (any) {
    NoteProgress(&this_thread, context, began);
  } else {
    EndPolls(&this_thread);
  }
  return result;
}

EXPORT int ucc_team_create_post(void** contexts, uint32_t count, const UccTeamParams* params,
                                void** team) {
  const auto real = ROLLCALL_REAL(ucc_team_create_post);
  if (real == nullptr) return kUccMissing;
  if (IsInsideCall()) return real(contexts, count, params, team);
  NewComm what;
  const bool is_known = count == 1 && params != nullptr && StartRecording() &&
                        DescribeUccTeam(contexts[0], *params, &what);
  LocalComm* comm = is_known ? AddTeam(what) : nullptr;
  const int result = CallInside(real, contexts, count, params, team);
  return RecordBegun(comm, is_known ? contexts[0] : nullptr, result, team);
}

EXPORT int ucc_team_create_test(void* team) {
  const auto real = ROLLCALL_REAL(ucc_team_create_test);
  if (real == nullptr) return kUccMissing;
  LocalComm* comm = FindInitializing(team);
  const int result = IsInsideCall() ? real(team) : CallInside(real, team);
  if (comm != nullptr && result != kUccInProgress) EndCreation(comm, team, result);
  return result;
}

EXPORT int ucc_team_create_from_parent(uint64_t ep, uint32_t included, void* parent, void** team) {
  const auto real = ROLLCALL_REAL(ucc_team_create_from_parent);
  if (real == nullptr) return kUccMissing;
  NewComm what;
  const bool is_known =
      !IsInsideCall() && Recording() &&
      FromParent(static_cast<ncclComm_t>(parent), segment::kSplit, nullptr, &what);
  if (!is_known) return real(ep, included, parent, team);
  what.id = segment::Mix(what.split_id, included != 0 ? 1 : 0);
  const void* context = contexts_of[FindComm(parent)->index].load(std::memory_order_relaxed);
  LocalComm* comm = AddTeam(what);
  const int result = CallInside(real, ep, included, parent, team);
  void* const nobody = nullptr;
  return RecordBegun(comm, context, result, included != 0 ? team : &nobody);
}

EXPORT int ucc_team_destroy(void* team) {
  const auto real = ROLLCALL_REAL(ucc_team_destroy);
  if (real == nullptr) return kUccMissing;
  LocalComm* comm = IsInsideCall() || !Recording() ? nullptr : FindComm(team);
  return comm == nullptr ? real(team) : RecordDestroy(real, comm, team);
}

EXPORT int ucc_collective_init(UccCollArgs* args, UccRequest** request, void* team) {
  const auto real = ROLLCALL_REAL(ucc_collective_init);
  if (real == nullptr) return kUccMissing;
  UccCall call;
  const bool is_recorded =
      !IsInsideCall() && Recording() && args != nullptr && DescribeCall(*args, team, &call);
  const int result = real(args, request, team);
  if (is_recorded && result == kUccOk) DescribeUccRequest(*request, call);
  return result;
}

EXPORT int ucc_collective_post(UccRequest* request) {
  const auto real = ROLLCALL_REAL(ucc_collective_post);
  if (real == nullptr) return kUccMissing;
  return ObservePost(real, request, __builtin_return_address(0), request);
}

// The call begins when a stream of a GPU reaches it.
EXPORT int ucc_collective_triggered_post(void* engine, UccEvent* event) {
  const auto real = ROLLCALL_REAL(ucc_collective_triggered_post);
  if (real == nullptr) return kUccMissing;
  UccRequest* request = event == nullptr ? nullptr : event->request;
  return ObservePost(real, request, __builtin_return_address(0), engine, event);
}

EXPORT int ucc_collective_init_and_post(UccCollArgs* args, UccRequest** request, void* team) {
  const auto real = ROLLCALL_REAL(ucc_collective_init_and_post);
  if (real == nullptr) return kUccMissing;
  UccCall call;
  const bool is_recorded =
      !IsInsideCall() && Recording() && args != nullptr && DescribeCall(*args, team, &call);
  if (!is_recorded) return real(args, request, team);
  const int result =
      RecordPost(real, request, call, __builtin_return_address(0), args, request, team);
  if (result == kUccOk) DescribeUccRequest(*request, call);
  return result;
}

EXPORT int ucc_collective_finalize(UccRequest* request) {
  const auto real = ROLLCALL_REAL(ucc_collective_finalize);
  if (real == nullptr) return kUccMissing;
  EndUccCall(request);
  ForgetUccRequest(request);
  return real(request);
}
