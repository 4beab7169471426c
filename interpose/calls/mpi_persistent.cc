// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/mpi_persistent.h"

#include "interpose/calls/mpi_requests.h"
#include "interpose/record/call_record.h"
#include "interpose/record/recording.h"

namespace rollcall {
namespace {

// A request has one of the slots that follow the one of its hash.
constexpr uint32_t kPersistentSlots = 4096;
constexpr uint32_t kFarthest = 512;
constexpr uint32_t kMostMessages = kPersistentSlots / 2;
constexpr uint32_t kMostCollectives = kPersistentSlots / 4 * 3;
// No request has these handles.
constexpr uintptr_t kNeverUsed = 0, kReserved = 1, kRemoved = 2;

struct PersistentSlot {
  std::atomic<uintptr_t> request{kNeverUsed};
  uint64_t generation = 0;  // of the communicator
  PersistentCall call;
};
PersistentSlot persistent[kPersistentSlots];
std::atomic<uint32_t> persistent_requests{0};

uint32_t FirstSlotOf(uintptr_t request) {
  return static_cast<uint32_t>(segment::Mix(0, request) % kPersistentSlots);
}

PersistentSlot* FindPersistent(uintptr_t request) {
  if (persistent_requests.load(std::memory_order_relaxed) == 0) return nullptr;
  uint32_t at = FirstSlotOf(request);
  for (uint32_t i = 0; i < kFarthest; ++i, at = (at + 1) % kPersistentSlots) {
    const uintptr_t seen = persistent[at].request.load(std::memory_order_acquire);
    if (seen == request) return &persistent[at];
    if (seen == kNeverUsed) return nullptr;
  }
  return nullptr;
}

// Reserves a free slot; nullptr if there is no room.
PersistentSlot* ReserveSlot(uintptr_t request, uint32_t most) {
  if (persistent_requests.load(std::memory_order_relaxed) >= most) return nullptr;
  uint32_t at = FirstSlotOf(request);
  for (uint32_t i = 0; i < kFarthest; ++i, at = (at + 1) % kPersistentSlots) {
    uintptr_t seen = persistent[at].request.load(std::memory_order_relaxed);
    if (seen != kNeverUsed && seen != kRemoved) continue;
    if (!persistent[at].request.compare_exchange_strong(seen, kReserved)) continue;
    persistent_requests.fetch_add(1, std::memory_order_relaxed);
    return &persistent[at];
  }
  return nullptr;
}

void Fill(PersistentSlot* slot, const PersistentCall& call, uintptr_t request) {
  slot->generation = Generation(call.comm);
  slot->call = call;
  slot->request.store(request, std::memory_order_release);
}

void StartCollective(ThreadState* thread, const PersistentCall& call, uintptr_t request,
                     const void* caller) {
  LocalComm* comm = call.comm;
  const CallInfo info = {call.op, kNoDtype, kNoReduction, call.peer, call.bytes, nullptr};
  BeginPosition(comm);
  const OpenRecord open = BeginRecord(thread, comm, info, Now(), caller, false);
  open.record->result.store(ncclSuccess, std::memory_order_relaxed);
  open.record->returned.store(Now(), std::memory_order_release);
  RecordRequest(comm, Get(comm->entry->entered) - 1, request, true);
  EndPosition(comm);
}

}  // namespace

void RecordPersistent(const PersistentCall& call, MpiWord request) {
  if (request == mpi.null_request || request <= kRemoved) return;
  PersistentSlot* slot = FindPersistent(request);
  if (slot == nullptr) {
    slot = ReserveSlot(request, call.is_message ? kMostMessages : kMostCollectives);
  }
  if (slot != nullptr) return Fill(slot, call, request);
  if (call.is_message) return NoteCancelled(call.comm);
  StopRecording("no room for more persistent requests of MPI:");
}

void ForgetPersistent(MpiWord request) {
  PersistentSlot* slot = FindPersistent(request);
  if (slot == nullptr) return;
  slot->request.store(kRemoved, std::memory_order_release);
  persistent_requests.fetch_sub(1, std::memory_order_relaxed);
}

void StartPersistent(ThreadState* thread, MpiWord request, const void* caller) {
  PersistentSlot* slot = FindPersistent(request);
  if (slot == nullptr || slot->call.comm->entry == nullptr ||
      Generation(slot->call.comm) != slot->generation) {
    return;
  }
  const PersistentCall& call = slot->call;
  if (!call.is_message) return StartCollective(thread, call, request, caller);
  const IssuedMessage message = Issue(call.comm, call.end, call.peer, call.tag);
  RecordMessage(call.comm, message, request, true);
}

}  // namespace rollcall
