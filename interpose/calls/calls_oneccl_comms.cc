// SPDX-License-Identifier: Apache-2.0
// The wrappers of the creation and the end of communicators of oneCCL's C++ interface.
//
// All ranks have the address of one store (ccl::kvs) as unique id. A store of the program's own has
// none, and its communicators are not recorded. Nor are those with several ranks in one process,
// and those that oneCCL makes without a store.
#include "interpose/calls/gloo_messages.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/calls/observe_life.h"
#include "interpose/record/exceptions.h"

namespace rollcall {
namespace {

using segment::CommState;

struct CclCreation : OpenCall {
  LocalComm* comm;
};

void FailCclCreation(OpenCall* open) {
  SetState(static_cast<CclCreation*>(open)->comm, CommState::kFailed);
}

OpenCall* OpenCclCreation(LocalComm* comm) {
  auto* creation = OpenCallRoom<CclCreation>();
  creation->thrown = &FailCclCreation;
  creation->comm = comm;
  return creation;
}

// Whether the object is a store of oneCCL's, by its table of virtual functions.
bool IsCclStore(const void* store) {
  constexpr size_t kHead = 2;  // words of the table before the functions
  const auto* table = static_cast<void* const*>(FindRealByName("_ZTVN3ccl2v13kvsE"));
  return table != nullptr && store != nullptr &&
         *static_cast<void* const* const*>(store) == table + kHead;
}

// Returns false if the communicator is not recorded.
bool FromCclStore(const void* store, int size, int rank, NewComm* what) {
  if (IsInsideCall() || !StartRecording() || !IsCclStore(store)) return false;
  const auto query = reinterpret_cast<CclAddress (*)(const void*)>(
      FindRealByName("_ZNK3ccl2v13kvs11get_addressEv"));
  if (query == nullptr) return false;
  const CclAddress address = query(store);
  *what = FromIdHash(segment::HashBytes(&address, sizeof(address)), size, rank);
  return true;
}

// Returns false if the communicator is not recorded.
bool FromCclParent(const CclComm* parent, int color, NewComm* what) {
  if (IsInsideCall() || !Recording() ||
      !FromParent(static_cast<ncclComm_t>(parent->handle), segment::kSplit, nullptr, what)) {
    return false;
  }
  what->id = segment::Mix(what->split_id, static_cast<uint32_t>(color));
  return true;
}

LocalComm* AddCclComm(const NewComm& what) {
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return nullptr;
  comm->entry->kind.store(static_cast<uint32_t>(CommKind::kOneCclEvents),
                          std::memory_order_relaxed);
  comm->entry->flags.fetch_or(segment::kFlagHostCalls);
  return comm;
}

// A part of a communicator has a rank and a size once it is created.
void LearnCclRank(const LocalComm* comm, const CclComm& made) {
  using Query = int (*)(const CclComm*);
  const auto rank = reinterpret_cast<Query>(FindRealByName("_ZNK3ccl2v112communicator4rankEv"));
  const auto size = reinterpret_cast<Query>(FindRealByName("_ZNK3ccl2v112communicator4sizeEv"));
  if (rank == nullptr || size == nullptr) return;
  comm->entry->rank.store(static_cast<uint32_t>(rank(&made)), std::memory_order_relaxed);
  comm->entry->size.store(static_cast<uint32_t>(size(&made)), std::memory_order_relaxed);
}

void EndCclCreation(LocalComm* comm, const CclComm* made) {
  const bool is_part = made != nullptr && Get(comm->entry->split_id) != 0;
  if (is_part && made->handle != nullptr) LearnCclRank(comm, *made);
  RecordAnswer(comm, made == nullptr ? nullptr : made->handle, 0);
}

const CclComm* MadeOne(const CclComm& made) { return &made; }
const CclComm* MadeOne(const CclComms& made) {
  return made.begin == made.end ? nullptr : made.begin;
}

template <typename Function, typename... Args>
__attribute__((noinline, noclone)) auto RecordCclCreation(Function* real, Op op, LocalComm* comm,
                                                          Args... args) -> decltype(real(args...)) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const MayThrow may_throw(OpenCclCreation(comm));
  decltype(real(args...)) made = real(args...);
  if (may_throw.IsOpen()) EndCclCreation(comm, MadeOne(made));
  return made;
}

struct RankAndDevice {
  int32_t rank;
  void* device[2];
};

// Finds the one rank in a vector of ranks and devices. Returns false if there are several.
bool OneRank(const void* vector, int* rank) {
  const auto* pairs = static_cast<const RankAndDevice* const*>(vector);
  if (pairs[1] - pairs[0] != 1) return false;
  *rank = pairs[0]->rank;
  return true;
}

template <typename Function, typename... Args>
__attribute__((noinline, noclone)) void CallAtEnd(Function* real, Op op, const LocalComm* comm,
                                                  Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const MayThrow may_throw(PlainCall());
  real(args...);
}

LocalComm* FindEnding(const CclComm* object) {
  const bool is_off = IsInsideCall() || object->handle == nullptr || !Recording();
  return is_off ? nullptr : FindComm(object->handle);
}

// An object that was moved from has no handle.
void ObserveCclEnd(void (*real)(CclComm*), CclComm* object) {
  LocalComm* comm = FindEnding(object);
  if (comm == nullptr) return real(object);
  SetState(comm, CommState::kFinalizing);
  ForgetHandle(comm);
  CallAtEnd(real, Op::kCommDestroy, comm, object);
  ForgetRequests(comm);
  ForgetMessages(comm);
  SetState(comm, CommState::kDestroyed);
}

template <typename... More>
CclComm ObserveCclSplit(CclComm (*real)(const CclComm*, int, int, More...), const CclComm* parent,
                        int color, int key, More... more) {
  NewComm what;
  LocalComm* comm = FromCclParent(parent, color, &what) ? AddCclComm(what) : nullptr;
  if (comm == nullptr) return real(parent, color, key, more...);
  return RecordCclCreation(real, Op::kCommSplit, comm, parent, color, key, more...);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the wrappers use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT CclComm
_ZN3ccl2v119create_communicatorEiiSt10shared_ptrINS0_13kvs_interfaceEERKNS0_9comm_attrE(
    int size, int rank, void* const* store, const void* attributes) {
  const auto real = ROLLCALL_REAL(
      _ZN3ccl2v119create_communicatorEiiSt10shared_ptrINS0_13kvs_interfaceEERKNS0_9comm_attrE);
  NewComm what;
  LocalComm* comm = FromCclStore(*store, size, rank, &what) ? AddCclComm(what) : nullptr;
  if (comm == nullptr) return real(size, rank, store, attributes);
  return RecordCclCreation(real, Op::kCommInitRank, comm, size, rank, store, attributes);
}

EXPORT CclComms
_ZNK3ccl6detail11environment20create_communicatorsINS_2v16deviceENS3_7contextEEESt6vectorINS3_12communicatorESaIS7_EEiRKS6_ISt4pairIiT_ESaISC_EERKT0_St10shared_ptrINS3_13kvs_interfaceEERKNS3_9comm_attrE(
    const void* self, int size, const void* devices, const void* context, void* const* store,
    const void* attributes) {
  const auto real = ROLLCALL_REAL(
      _ZNK3ccl6detail11environment20create_communicatorsINS_2v16deviceENS3_7contextEEESt6vectorINS3_12communicatorESaIS7_EEiRKS6_ISt4pairIiT_ESaISC_EERKT0_St10shared_ptrINS3_13kvs_interfaceEERKNS3_9comm_attrE);
  NewComm what;
  int rank = 0;
  const bool is_known = OneRank(devices, &rank) && FromCclStore(*store, size, rank, &what);
  LocalComm* comm = is_known ? AddCclComm(what) : nullptr;
  if (comm == nullptr) return real(self, size, devices, context, store, attributes);
  return RecordCclCreation(real, Op::kCommInitRank, comm, self, size, devices, context, store,
                           attributes);
}

EXPORT CclComm _ZN3ccl2v118split_communicatorERKNS0_12communicatorEii(const CclComm* parent,
                                                                      int color, int key) {
  return ObserveCclSplit(ROLLCALL_REAL(_ZN3ccl2v118split_communicatorERKNS0_12communicatorEii),
                         parent, color, key);
}

EXPORT CclComm _ZN3ccl2v112communicator5splitEiib(const CclComm* parent, int color, int key,
                                                  bool for_others) {
  return ObserveCclSplit(ROLLCALL_REAL(_ZN3ccl2v112communicator5splitEiib), parent, color, key,
                         for_others);
}

EXPORT void _ZN3ccl2v112communicator8finalizeEv(CclComm* comm) {
  const auto real = ROLLCALL_REAL(_ZN3ccl2v112communicator8finalizeEv);
  const LocalComm* ending = FindEnding(comm);
  if (ending == nullptr) return real(comm);
  CallAtEnd(real, Op::kCommFinalize, ending, comm);
}

EXPORT void _ZN3ccl2v112communicatorD1Ev(CclComm* comm) {
  ObserveCclEnd(ROLLCALL_REAL(_ZN3ccl2v112communicatorD1Ev), comm);
}

EXPORT void _ZN3ccl2v112communicatorD2Ev(CclComm* comm) {
  ObserveCclEnd(ROLLCALL_REAL(_ZN3ccl2v112communicatorD2Ev), comm);
}
