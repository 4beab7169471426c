// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/ucc_requests.h"

#include "interpose/calls/mpi_requests.h"
#include "interpose/record/recording.h"

namespace rollcall {

std::atomic<uint32_t> open_ucc_calls{0};

namespace {

// A request has one of the slots that follow the one of its hash.
constexpr uint32_t kSlots = 4096;
constexpr uint32_t kFarthest = 512;
// No request has these addresses.
constexpr uintptr_t kFree = 0, kReserved = 1;
// No open call has these turns.
constexpr uint64_t kNoTurn = 0, kTakenTurn = 1;

struct Slot {
  std::atomic<uintptr_t> request{kFree};
  // How many slots from this one on may have requests of this one's hash. Never becomes less. So a
  // slot is free again once its request ends, whatever other threads put into the next ones.
  std::atomic<uint32_t> reach{0};
  uint64_t generation = 0;  // of the communicator
  UccCall call;
};
Slot slots[kSlots];

// An open call. Another thread may end it, free its request, get a request at the same address and
// post that one into the same slot, while this thread looks at it. So each call that is opened has
// a turn of its own, and only who takes that turn from the slot ends the call. What is read of a
// slot holds if the turn is the same before and after.
struct OpenSlot {
  std::atomic<uint64_t> turn{kNoTurn};
  std::atomic<uintptr_t> request{0};
  std::atomic<const LocalComm*> comm{nullptr};
  std::atomic<const void*> context{nullptr};
  std::atomic<uint64_t> generation{0};
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> since{0};
};
constexpr uint32_t kMostOpen = 256;
std::atomic<uint64_t> last_turn{kTakenTurn};
OpenSlot open_slots[kMostOpen];
std::atomic<uint32_t> open_end{0};  // the slots before it may be in use

uintptr_t Key(const UccRequest* request) { return reinterpret_cast<uintptr_t>(request); }

uint32_t FirstSlotOf(uintptr_t request) {
  return static_cast<uint32_t>(segment::Mix(0, request) % kSlots);
}

Slot* FindSlot(uintptr_t request) {
  uint32_t at = FirstSlotOf(request);
  const uint32_t reach = slots[at].reach.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < reach; ++i, at = (at + 1) % kSlots) {
    if (slots[at].request.load(std::memory_order_acquire) == request) return &slots[at];
  }
  return nullptr;
}

void Raise(std::atomic<uint32_t>* number, uint32_t to) {
  uint32_t seen = number->load(std::memory_order_relaxed);
  while (seen < to && !number->compare_exchange_weak(seen, to)) {
  }
}

bool Reserve(std::atomic<uintptr_t>* request) {
  uintptr_t seen = request->load(std::memory_order_relaxed);
  return seen == kFree && request->compare_exchange_strong(seen, kReserved);
}

Slot* ReserveSlot(uintptr_t request) {
  const uint32_t first = FirstSlotOf(request);
  for (uint32_t i = 0; i < kFarthest; ++i) {
    Slot* slot = &slots[(first + i) % kSlots];
    if (!Reserve(&slot->request)) continue;
    Raise(&slots[first].reach, i + 1);
    return slot;
  }
  return nullptr;
}

OpenSlot* ReserveOpenSlot() {
  for (uint32_t i = 0; i < kMostOpen; ++i) {
    uint64_t seen = open_slots[i].turn.load(std::memory_order_relaxed);
    if (seen != kNoTurn || !open_slots[i].turn.compare_exchange_strong(seen, kTakenTurn)) continue;
    Raise(&open_end, i + 1);
    return &open_slots[i];
  }
  return nullptr;
}

bool IsOpen(uintptr_t request) {
  const auto* status = reinterpret_cast<const volatile int*>(request);
  const int seen = *status;
  return seen == kUccInProgress || seen == kUccInitialized;
}

// A copy of an open call, as this thread has seen it.
struct SeenCall {
  OpenSlot* slot;
  uint64_t turn;
  uintptr_t request;
  const LocalComm* comm;
  const void* context;
  uint64_t generation, number, since;
};

// False if the slot has no call, or has got another one meanwhile.
bool CopyOpen(OpenSlot* slot, SeenCall* call) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  call->slot = slot;
  call->turn = slot->turn.load(std::memory_order_acquire);
  if (call->turn <= kTakenTurn) return false;
  call->request = slot->request.load(kRelaxed);
  call->comm = slot->comm.load(kRelaxed);
  call->context = slot->context.load(kRelaxed);
  call->generation = slot->generation.load(kRelaxed);
  call->number = slot->number.load(kRelaxed);
  call->since = slot->since.load(kRelaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return slot->turn.load(kRelaxed) == call->turn;
}

// A communicator that has ended in the meantime has another generation, or no call any more.
bool IsCurrent(const SeenCall& call) {
  return call.comm->entry != nullptr && Generation(call.comm) == call.generation;
}

void End(const SeenCall& call) {
  uint64_t turn = call.turn;
  if (!call.slot->turn.compare_exchange_strong(turn, kTakenTurn)) return;
  open_ucc_calls.fetch_sub(1);
  if (IsCurrent(call)) FinishWorkAt(call.comm, call.number - 1, call.request);
  call.slot->turn.store(kNoTurn, std::memory_order_release);
}

// Calls `each` with every open call of the context.
template <typename Each>
void ForEachOpen(const void* context, Each each) {
  const uint32_t end = open_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i) {
    SeenCall call;
    if (CopyOpen(&open_slots[i], &call) && call.context == context) each(call);
  }
}

}  // namespace

void DescribeUccRequest(const UccRequest* request, const UccCall& call) {
  Slot* slot = FindSlot(Key(request));
  if (slot == nullptr) slot = ReserveSlot(Key(request));
  if (slot == nullptr) return StopRecording("no room for more requests of UCC:");
  slot->generation = Generation(call.comm);
  slot->call = call;
  slot->request.store(Key(request), std::memory_order_release);
}

bool FindUccRequest(const UccRequest* request, UccCall* call) {
  const Slot* slot = request == nullptr ? nullptr : FindSlot(Key(request));
  if (slot == nullptr) return false;
  *call = slot->call;
  return call->comm->entry != nullptr && Generation(call->comm) == slot->generation &&
         call->comm->handle.load(std::memory_order_relaxed) != nullptr;
}

void ForgetUccRequest(const UccRequest* request) {
  Slot* slot = request == nullptr ? nullptr : FindSlot(Key(request));
  if (slot != nullptr) slot->request.store(kFree, std::memory_order_release);
}

void OpenUccCall(const UccRequest* request, const UccCall& call, uint64_t position,
                 uint64_t since) {
  OpenSlot* slot = ReserveOpenSlot();
  if (slot == nullptr) return;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  std::atomic_thread_fence(std::memory_order_release);  // as CopyOpen() reads
  slot->request.store(Key(request), kRelaxed);
  slot->comm.store(call.comm, kRelaxed);
  slot->context.store(call.context, kRelaxed);
  slot->generation.store(Generation(call.comm), kRelaxed);
  slot->number.store(position + 1, kRelaxed);
  slot->since.store(since, kRelaxed);
  RecordWork(call.comm, position, Key(request));
  open_ucc_calls.fetch_add(1);
  slot->turn.store(last_turn.fetch_add(1) + 1, std::memory_order_release);
}

void EndDoneUccCalls(const void* context) {
  ForEachOpen(context, [](const SeenCall& call) {
    if (!IsOpen(call.request)) End(call);
  });
}

void EndUccCall(const UccRequest* request) {
  if (!AnyOpenUccCall()) return;
  const uint32_t end = open_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i) {
    SeenCall call;
    if (CopyOpen(&open_slots[i], &call) && call.request == Key(request)) End(call);
  }
}

void EndUccCallsOf(const void* context) {
  ForEachOpen(context, [](const SeenCall& call) { End(call); });
}

OldestUccCall FindOldestUccCall(const void* context) {
  OldestUccCall oldest;
  uint64_t since = UINT64_MAX;
  ForEachOpen(context, [&](const SeenCall& call) {
    if (call.since >= since || !IsCurrent(call)) return;
    since = call.since;
    oldest = {call.comm, call.number};
  });
  return oldest;
}

}  // namespace rollcall
