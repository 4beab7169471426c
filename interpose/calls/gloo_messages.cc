// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/gloo_messages.h"

#include "interpose/recorder.h"

namespace rollcall {
namespace {

constexpr int kMessages = 32;  // few: each message looks through them

constexpr uint64_t kNoPlace = UINT64_MAX;

enum State : uint32_t { kFree = 0, kClaimed = 1, kOpen = 2 };

struct Slot {
  std::atomic<uint32_t> state{kFree};
  std::atomic<bool> awaited{false};
  std::atomic<uintptr_t> work{0};
  std::atomic<uint32_t> comm{0};
  std::atomic<uint64_t> generation{0};  // of the communicator: the child of a fork has others
  std::atomic<uint64_t> nth{kNoPlace};
  std::atomic<uint8_t> op{0};
  IssuedMessage counted = {};  // its entry is nullptr for a message with a place in the order
  int32_t tag = 0;
};
Slot slots[kMessages];
std::atomic<int> open_messages{0};

bool IsOfComm(const Slot& slot, const LocalComm* comm) {
  return slot.state.load(std::memory_order_acquire) == kOpen &&
         slot.comm.load(std::memory_order_relaxed) == comm->index &&
         slot.generation.load(std::memory_order_relaxed) == Generation(comm);
}

bool IsAwaited(const Slot& slot, const LocalComm* comm) {
  return IsOfComm(slot, comm) && slot.awaited.load(std::memory_order_relaxed);
}

LocalComm* CommOf(const Slot& slot) {
  return &recorder.comms[slot.comm.load(std::memory_order_relaxed)];
}

// Ends what the counts of its communicator show. The child of a fork has no part in them.
void EndCounted(Slot* slot) {
  const IssuedMessage counted = slot->counted;
  slot->counted.entry = nullptr;
  LocalComm* comm = CommOf(*slot);
  const bool is_own = slot->generation.load(std::memory_order_relaxed) == Generation(comm);
  if (counted.entry == nullptr || !is_own) return;
  EndAwait(counted);
  if (!counted.is_open_choice) return;
  NoteCancelled(comm);  // which rank's message it got is not known
  EndChoice(counted);
}

// False if another thread has done it.
bool Free(Slot* slot) {
  uint32_t open = kOpen;
  if (!slot->state.compare_exchange_strong(open, kClaimed, std::memory_order_acq_rel)) return false;
  EndCounted(slot);
  slot->work.store(0, std::memory_order_relaxed);
  slot->state.store(kFree, std::memory_order_release);
  open_messages.fetch_sub(1);
  return true;
}

uint64_t CountDone(const LocalComm* comm) {
  uint64_t done = comm->entry->p2p_entered.load(std::memory_order_acquire);
  if (open_messages.load() == 0) return done;
  for (const Slot& slot : slots) {
    if (!IsAwaited(slot, comm)) continue;
    const uint64_t nth = slot.nth.load(std::memory_order_relaxed);
    if (nth < done) done = nth;
  }
  return done;
}

}  // namespace

void RaiseMessagesReturned(const LocalComm* comm) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // It may fall: a message that counted as done is one that the program waits for now.
  comm->entry->p2p_returned.store(CountDone(comm), std::memory_order_release);
}

namespace {

int Add(const LocalComm* comm, Op op, uint64_t nth, const IssuedMessage& counted, int32_t tag) {
  for (int i = 0; i < kMessages; ++i) {
    Slot& slot = slots[i];
    uint32_t expected = kFree;
    if (!slot.state.compare_exchange_strong(expected, kClaimed)) continue;
    open_messages.fetch_add(1);
    slot.awaited.store(false, std::memory_order_relaxed);
    slot.comm.store(comm->index, std::memory_order_relaxed);
    slot.generation.store(Generation(comm), std::memory_order_relaxed);
    slot.nth.store(nth, std::memory_order_relaxed);
    slot.op.store(static_cast<uint8_t>(op), std::memory_order_relaxed);
    slot.counted = counted;
    slot.tag = tag;
    slot.state.store(kOpen, std::memory_order_release);
    return i;
  }
  return -1;
}

}  // namespace

int AddMessage(const LocalComm* comm, Op op, uint64_t nth) { return Add(comm, op, nth, {}, 0); }

int AddCountedMessage(const LocalComm* comm, Op op, const IssuedMessage& counted, int32_t tag) {
  return counted.entry == nullptr ? -1 : Add(comm, op, kNoPlace, counted, tag);
}

// An open message with the same address has been given up: the address is used again. A message
// that is done by now has no address any more.
void SetMessageWork(int message, const void* work) {
  const auto wanted = reinterpret_cast<uintptr_t>(work);
  for (int i = 0; i < kMessages; ++i) {
    if (i != message && slots[i].work.load(std::memory_order_relaxed) == wanted) Free(&slots[i]);
  }
  if (message < 0 || slots[message].state.load(std::memory_order_acquire) != kOpen) return;
  slots[message].work.store(wanted, std::memory_order_release);
}

void FinishMessage(int message) {
  if (message < 0) return;
  LocalComm* comm = CommOf(slots[message]);
  if (Free(&slots[message])) RaiseMessagesReturned(comm);
}

int FindMessage(const void* work) {
  if (open_messages.load(std::memory_order_acquire) == 0) return -1;
  const auto key = reinterpret_cast<uintptr_t>(work);
  for (int i = 0; i < kMessages; ++i) {
    if (slots[i].work.load(std::memory_order_acquire) == key &&
        IsOfComm(slots[i], CommOf(slots[i])))
      return i;
  }
  return -1;
}

Message GetMessage(int message) {
  const Slot& slot = slots[message];
  return {CommOf(slot), static_cast<Op>(slot.op.load()), slot.counted.is_open_choice};
}

void SetMessageAwaited(int message) {
  Slot& slot = slots[message];
  slot.awaited.store(true, std::memory_order_relaxed);
  AwaitMessage(slot.counted);
  RaiseMessagesReturned(CommOf(slot));
}

// First the new count, so that no reader misses the receive.
void SetMessageSource(int message, int32_t source) {
  Slot& slot = slots[message];
  if (slot.counted.entry == nullptr || !slot.counted.is_open_choice || source < 0) return;
  CountMessage(CommOf(slot), MessageEnd::kReceive, source, slot.tag);
  EndAwait(slot.counted);
  EndChoice(slot.counted);
  slot.counted.entry = nullptr;
}

void CancelMessage(int message) {
  if (message < 0) return;
  if (slots[message].counted.entry != nullptr) NoteCancelled(CommOf(slots[message]));
  FinishMessage(message);
}

bool HasOpenMessage(const LocalComm* comm) {
  if (open_messages.load() == 0) return false;
  for (const Slot& slot : slots) {
    if (IsOfComm(slot, comm)) return true;
  }
  return false;
}

void ForgetMessages(const LocalComm* comm) {
  if (open_messages.load() == 0) return;
  for (Slot& slot : slots) {
    if (IsOfComm(slot, comm)) Free(&slot);
  }
}

}  // namespace rollcall
