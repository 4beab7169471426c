// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/mpi_persistent.h"

#include "interpose/calls/mpi_requests.h"
#include "interpose/record/call_record.h"

namespace rollcall {
namespace {

constexpr uint32_t kPersistentSets = 64;
constexpr uint32_t kPersistentWays = 8;
constexpr uintptr_t kReserved = 1;  // no request has this handle

struct PersistentSlot {
  std::atomic<uintptr_t> request{0};  // 0: free
  uint64_t generation = 0;            // of the communicator
  PersistentCall call;
};
PersistentSlot persistent[kPersistentSets * kPersistentWays];
std::atomic<uint32_t> persistent_requests{0};

PersistentSlot* FindPersistent(uintptr_t request) {
  if (persistent_requests.load(std::memory_order_relaxed) == 0) return nullptr;
  PersistentSlot* set = &persistent[segment::Mix(0, request) % kPersistentSets * kPersistentWays];
  for (PersistentSlot* slot = set; slot != set + kPersistentWays; ++slot) {
    if (slot->request.load(std::memory_order_acquire) == request) return slot;
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
  if (request == mpi.null_request || request <= kReserved) return;
  PersistentSlot* same = FindPersistent(request);
  if (same != nullptr) return Fill(same, call, request);
  PersistentSlot* set = &persistent[segment::Mix(0, request) % kPersistentSets * kPersistentWays];
  for (PersistentSlot* slot = set; slot != set + kPersistentWays; ++slot) {
    uintptr_t expected = 0;
    if (!slot->request.compare_exchange_strong(expected, kReserved)) continue;
    persistent_requests.fetch_add(1, std::memory_order_relaxed);
    return Fill(slot, call, request);
  }
}

void ForgetPersistent(MpiWord request) {
  PersistentSlot* slot = FindPersistent(request);
  if (slot == nullptr) return;
  slot->request.store(0, std::memory_order_release);
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
