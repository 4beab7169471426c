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

struct Slot {
  std::atomic<uintptr_t> request{kFree};
  // How many slots from this one on may have requests of this one's hash. Never becomes less. So a
  // slot is free again once its request ends, whatever other threads put into the next ones.
  std::atomic<uint32_t> reach{0};
  uint64_t generation = 0;  // of the communicator
  UccCall call;
};
Slot slots[kSlots];

struct OpenSlot {
  std::atomic<uintptr_t> request{kFree};
  const LocalComm* comm = nullptr;
  const void* context = nullptr;
  uint64_t generation = 0;
  uint64_t number = 0;
  uint64_t since = 0;
};
constexpr uint32_t kMostOpen = 256;
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
    if (!Reserve(&open_slots[i].request)) continue;
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

// A communicator that has ended in the meantime has another generation, or no call any more.
bool IsCurrent(const OpenSlot& slot) {
  return slot.comm->entry != nullptr && Generation(slot.comm) == slot.generation;
}

void End(OpenSlot* slot, uintptr_t request) {
  if (!slot->request.compare_exchange_strong(request, kReserved)) return;
  open_ucc_calls.fetch_sub(1);
  if (IsCurrent(*slot)) FinishWork(request);
  slot->request.store(kFree, std::memory_order_release);
}

// Calls `each` with every open slot of the context, and its request.
template <typename Each>
void ForEachOpen(const void* context, Each each) {
  const uint32_t end = open_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i) {
    OpenSlot* slot = &open_slots[i];
    const uintptr_t request = slot->request.load(std::memory_order_acquire);
    if (request > kReserved && slot->context == context) each(slot, request);
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
  slot->comm = call.comm;
  slot->context = call.context;
  slot->generation = Generation(call.comm);
  slot->number = position + 1;
  slot->since = since;
  RecordWork(call.comm, position, Key(request));
  open_ucc_calls.fetch_add(1);
  slot->request.store(Key(request), std::memory_order_release);
}

void EndDoneUccCalls(const void* context) {
  ForEachOpen(context, [](OpenSlot* slot, uintptr_t request) {
    if (!IsOpen(request)) End(slot, request);
  });
}

void EndUccCall(const UccRequest* request) {
  if (!AnyOpenUccCall()) return;
  const uint32_t end = open_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i) {
    if (open_slots[i].request.load(std::memory_order_acquire) == Key(request)) {
      End(&open_slots[i], Key(request));
    }
  }
}

void EndUccCallsOf(const void* context) {
  ForEachOpen(context, [](OpenSlot* slot, uintptr_t request) { End(slot, request); });
}

OldestUccCall FindOldestUccCall(const void* context) {
  OldestUccCall oldest;
  uint64_t since = UINT64_MAX;
  ForEachOpen(context, [&](const OpenSlot* slot, uintptr_t) {
    if (slot->since >= since || !IsCurrent(*slot)) return;
    since = slot->since;
    oldest = {slot->comm, slot->number};
  });
  return oldest;
}

}  // namespace rollcall
