// SPDX-License-Identifier: Apache-2.0
// The wrappers of the calls of oneCCL's C++ interface, and of the waits for their events.
//
// A call begins an operation, which goes on while the program does other work, and returns an event
// for it. So a call takes its position when it begins, as a nonblocking collective of MPI does, and
// is done when the program has seen that its event is, or drops the event.
//
// The library's own calls of these functions, such as those of its C interface, count as part of
// the call that the program has made. Calls in a group (ccl::group_start) return events of which
// nothing is known, and count as done.
#include "interpose/calls/gloo_messages.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/poll_loops.h"

namespace rollcall {
namespace {

// oneCCL's types in NCCL's numbers, or in PyTorch's where NCCL has none. A type that the program
// has made has another number on each rank.
uint8_t CclDtype(CclWord type) {
  constexpr uint8_t kTypes[] = {ncclInt8,
                                ncclUint8,
                                kTorchDtypes + kTorchInt16,
                                kTorchDtypes + kTorchUint16,
                                ncclInt32,
                                ncclUint32,
                                ncclInt64,
                                ncclUint64,
                                ncclFloat16,
                                ncclFloat32,
                                ncclFloat64,
                                ncclBfloat16};
  const auto number = static_cast<uint32_t>(type);
  return number < sizeof(kTypes) ? kTypes[number] : kNoDtype;
}

// The fourth one is an average or the program's own, by the version.
uint8_t CclReduction(CclWord reduction) {
  constexpr uint8_t kReductions[] = {ncclSum, ncclProd, ncclMin, ncclMax};
  const auto number = static_cast<uint32_t>(reduction);
  return number < sizeof(kReductions) ? kReductions[number] : kDynamicReduction;
}

int32_t CclRank(CclWord rank) { return static_cast<int32_t>(rank); }

// The call that a thread is making.
struct EventCall : OpenCall {
  LocalComm* comm;
  OpenRecord open;
  uint64_t position;
  int message;  // of a send or receive
};
EventCall* OwnEventCall() { return OpenCallRoom<EventCall>(); }

void EndEventPosition(const EventCall& call, uintptr_t event) {
  if (event == 0) return EndPosition(call.comm);
  RecordWork(call.comm, call.position, event);
  EndPositionOfWork(call.comm, event);
}

void EndEventMessage(const EventCall& call, uintptr_t event) {
  if (event == 0) {
    FinishMessage(call.message);
  } else {
    SetMessageWork(call.message, reinterpret_cast<const void*>(event));
  }
  RaiseMessagesReturned(call.comm);
}

void EndEventCall(const EventCall& call, uintptr_t event, ncclResult_t result) {
  call.open.record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  call.open.record->returned.store(Now(), std::memory_order_release);
  if (result != ncclSuccess) RevertPosition(call.comm, call.open);
  if (call.open.p2p) {
    EndEventMessage(call, event);
  } else {
    EndEventPosition(call, event);
  }
}

// oneCCL refused the call.
void EndThrownEventCall(OpenCall* open) {
  EndEventCall(*static_cast<EventCall*>(open), 0, ncclInvalidArgument);
}

// Messages that are posted while earlier ones are open go on side by side, so they count as a
// group.
bool BeginEventMessage(ThreadState* thread, LocalComm* comm, Op op) {
  if (!HasOpenMessage(comm) && ++thread->group_number == 0) ++thread->group_number;
  OwnEventCall()->message = AddMessage(comm, op, Get(comm->entry->p2p_entered));
  return true;
}

bool BeginEventPosition(const LocalComm* comm) {
  OwnEventCall()->position = Get(comm->entry->entered);
  BeginPosition(comm);
  return false;
}

uint64_t BeginEventCall(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                        const void* caller) {
  EndPolls(thread);
  ClaimedEntry(thread);
  const uint64_t now = Now();
  OwnEventCall()->thrown = &EndThrownEventCall;
  OwnEventCall()->comm = comm;
  const bool grouped = OpKind(info.op) == CallKind::kP2p ? BeginEventMessage(thread, comm, info.op)
                                                         : BeginEventPosition(comm);
  OwnEventCall()->open = BeginRecord(thread, comm, info, now, caller, grouped);
  return now;
}

// What a thread waits for in the call: 1 + its position; 0 for messages.
const void* AwaitedIn(const EventCall& call) {
  return reinterpret_cast<const void*>(call.open.p2p ? 0 : call.position + 1);
}

template <typename Function, typename... Args>
__attribute__((noinline, noclone)) CclEvent RecordEventCall(Function* real, LocalComm* comm,
                                                            const CallInfo& info,
                                                            const void* caller, Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const uint64_t now = BeginEventCall(thread, comm, info, caller);
  const Blocked blocked(thread, info.op, comm, AwaitedIn(*OwnEventCall()), now);
  const MayThrow may_throw(OwnEventCall());
  CclEvent event = real(args...);
  if (may_throw.IsOpen()) EndEventCall(*OwnEventCall(), event.state, ncclSuccess);
  return event;
}

// Returns the communicator that an argument refers to; nullptr if it is not recorded, or the thread
// is inside another call.
__attribute__((always_inline)) inline LocalComm* FindCclComm(CclWord argument) {
  if (IsInsideCall() || !Recording()) return nullptr;
  return FindComm(reinterpret_cast<const CclComm*>(argument)->handle);
}

// A wait or a test, of a collective or a message.
struct EventWait : OpenCall {
  uintptr_t event;
};

void EndEvent(uintptr_t event) {
  FinishWork(event);
  FinishMessage(FindMessage(reinterpret_cast<const void*>(event)));
}

// A call that fails is over, too.
void EndThrownEventWait(OpenCall* open) { EndEvent(static_cast<EventWait*>(open)->event); }

// Finds the open call with this event, and its operation if it is a message. Returns
// false if there is none.
bool FindEvent(uintptr_t event, AwaitedCall* call, Op* op) {
  if (event == 0) return false;
  if (FindWork(event, call)) return true;
  const int number = FindMessage(reinterpret_cast<const void*>(event));
  if (number < 0) return false;
  const Message message = GetMessage(number);
  *call = {message.comm, 0};
  *op = message.op;
  SetMessageAwaited(number);
  return true;
}

OpenCall* OpenEventWait(uintptr_t event) {
  auto* open = OpenCallRoom<EventWait>();
  open->thrown = &EndThrownEventWait;
  open->event = event;
  return open;
}

__attribute__((noinline, noclone)) void RecordEventWait(void (*real)(CclEvent*), CclEvent* event,
                                                        const AwaitedCall& call, Op op) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const uintptr_t state = event->state;
  const InsideCall inside(thread);
  EndPolls(thread);
  const Blocked blocked(thread, op, call.comm, reinterpret_cast<const void*>(call.number), Now());
  const MayThrow may_throw(OpenEventWait(state));
  real(event);
  EndEvent(state);
}

__attribute__((noinline, noclone)) bool RecordEventTest(bool (*real)(CclEvent*), CclEvent* event,
                                                        const AwaitedCall& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const uintptr_t state = event->state;
  const FailedTest test = {Op::kevent_test, reinterpret_cast<const void*>(state), Now()};
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const MayThrow may_throw(OpenEventWait(state));
  const bool is_done = real(event);
  if (is_done) {
    EndPolls(thread);
    EndEvent(state);
  } else {
    NotePoll(thread, test, call.comm, call.number, nullptr, 0);
  }
  return is_done;
}

__attribute__((always_inline)) inline bool ObserveEventTest(bool (*real)(CclEvent*),
                                                            CclEvent* event) {
  AwaitedCall call = {};
  const bool is_open =
      !IsInsideCall() && Recording() && event->state != 0 && FindWork(event->state, &call);
  return is_open ? RecordEventTest(real, event, call) : real(event);
}

void ObserveEventEnd(void (*real)(CclEvent*), CclEvent* event) {
  if (event->state != 0 && Recording()) EndEvent(event->state);
  real(event);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

#define EVENT_CALL(symbol, op, words, dtype, reduction, peer, count, comm)                         \
  EXPORT CclEvent symbol(CCL_PARAMETERS_##words) {                                                 \
    const auto real = ROLLCALL_REAL(symbol);                                                       \
    LocalComm* found = FindCclComm(comm);                                                          \
    if (found == nullptr) return real(CCL_ARGUMENTS_##words);                                      \
    const CallInfo info = {Op::k##op, dtype, reduction, peer, count, nullptr};                     \
    return RecordEventCall(real, found, info, __builtin_return_address(0), CCL_ARGUMENTS_##words); \
  }
#include "interpose/oneccl_cpp_calls.def"

EXPORT void _ZN3ccl2v15event4waitEv(CclEvent* event) {
  const auto real = ROLLCALL_REAL(_ZN3ccl2v15event4waitEv);
  AwaitedCall call = {};
  Op op = Op::kwait;
  const bool is_open = !IsInsideCall() && Recording() && FindEvent(event->state, &call, &op);
  if (is_open) return RecordEventWait(real, event, call, op);
  real(event);
}

EXPORT bool _ZN3ccl2v15event4testEv(CclEvent* event) {
  return ObserveEventTest(ROLLCALL_REAL(_ZN3ccl2v15event4testEv), event);
}

EXPORT bool _ZN3ccl2v15eventcvbEv(CclEvent* event) {
  return ObserveEventTest(ROLLCALL_REAL(_ZN3ccl2v15eventcvbEv), event);
}

EXPORT void _ZN3ccl2v15eventD1Ev(CclEvent* event) {
  ObserveEventEnd(ROLLCALL_REAL(_ZN3ccl2v15eventD1Ev), event);
}

EXPORT void _ZN3ccl2v15eventD2Ev(CclEvent* event) {
  ObserveEventEnd(ROLLCALL_REAL(_ZN3ccl2v15eventD2Ev), event);
}
