// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/mpi_requests.h"

#include "interpose/record/comm_table.h"
#include "interpose/recorder.h"

namespace rollcall {

std::atomic<uint32_t> open_requests{0};

namespace {

using segment::CommEntry;

constexpr uint32_t kSets = 32;
constexpr uint32_t kWays = 8;  // slots of a set; a request's hash chooses the set
constexpr int kCommShift = 48;
constexpr uint64_t kPositionMask = (uint64_t{1} << kCommShift) - 1;
constexpr uint64_t kNoPosition = kPositionMask;  // of a creation: greater than any position
constexpr uint64_t kBusy = 1;                    // no call has it: communicators count from 1

struct Slot {
  std::atomic<uint64_t> call{0};  // 1 + communicator's index, and position; 0 if free; kBusy
  std::atomic<uintptr_t> request{0};
  std::atomic<uint64_t> generation{0};  // of the communicator: the child of a fork has others
  std::atomic<uint32_t> watcher{0};     // the thread inside an MPI call with this request, or 0
  std::atomic<int32_t> index{0};        // of the request in that thread's array
  bool is_persistent = false;
  uint64_t split_id = 0;
  const MpiWord* created = nullptr;
};
Slot slots[kSets * kWays];

// 1 + the position of the call that a thread is making on the communicator, or 0.
std::atomic<uint64_t> being_made[segment::kCommCapacity];

Slot* RequestSet(uintptr_t request) { return &slots[segment::Mix(0, request) % kSets * kWays]; }

uint64_t CallWord(const LocalComm* comm, uint64_t position) {
  return uint64_t{comm->index + 1} << kCommShift | (position & kPositionMask);
}

LocalComm* CallComm(uint64_t call) { return &recorder.comms[(call >> kCommShift) - 1]; }

bool IsOfComm(const Slot& slot, uint64_t call, const LocalComm* comm) {
  return CallComm(call) == comm &&
         slot.generation.load(std::memory_order_relaxed) == Generation(comm);
}

// The number of positions before the first call that is not done.
uint64_t CountDone(const LocalComm* comm) {
  uint64_t done = comm->entry->entered.load(std::memory_order_acquire);
  const uint64_t making = being_made[comm->index].load(std::memory_order_acquire);
  if (making != 0 && making - 1 < done) done = making - 1;
  if (!AnyOpenRequest()) return done;
  for (const Slot& slot : slots) {
    const uint64_t call = slot.call.load(std::memory_order_acquire);
    if (call <= kBusy || !IsOfComm(slot, call, comm)) continue;
    if ((call & kPositionMask) < done) done = call & kPositionMask;
  }
  return done;
}

void RaiseReturned(const LocalComm* comm) {
  // Makes what this thread has removed visible to other threads that count now, and theirs to us.
  if (AnyOpenRequest()) std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint64_t done = CountDone(comm);
  segment::Word* returned = &comm->entry->returned;
  uint64_t seen = returned->load(std::memory_order_relaxed);
  while (seen < done && !returned->compare_exchange_weak(seen, done, std::memory_order_release)) {
  }
}

// Adds a duplicate of the parent. It has the same ranks, so its first member is the parent's rank
// 0.
void AddCopy(const LocalComm* parent, uint64_t split_id, MpiWord handle) {
  const CommEntry* entry = parent->entry;
  NewComm what;
  what.parent_id = Get(entry->id);
  what.split_id = split_id;
  what.id = segment::Mix(split_id, 0);
  what.rank = what.parent_rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  what.size = what.parent_size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  LocalComm* comm = AddComm(what);
  if (comm != nullptr) MpiCommCreated(comm, handle);
}

// Claims the slot. False if another thread has claimed it.
bool Claim(Slot* slot, uint64_t call) {
  return slot->call.compare_exchange_strong(call, kBusy, std::memory_order_acq_rel);
}

void Free(Slot* slot) {
  slot->call.store(0, std::memory_order_release);
  open_requests.fetch_sub(1);
}

void Finish(Slot* slot, uint64_t call) {
  if (!Claim(slot, call)) return;
  const uint64_t split_id = slot->split_id;
  const MpiWord* created = slot->created;
  Free(slot);
  const LocalComm* comm = CallComm(call);
  if (created == nullptr) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in EndPositionOfWork()
    RaiseReturned(comm);
  } else if (comm->handle.load(std::memory_order_relaxed) != nullptr) {
    AddCopy(comm, split_id, HandleAt(created));
  }
}

Slot* FindRequest(uintptr_t request, uint64_t* call) {
  Slot* set = RequestSet(request);
  for (Slot* slot = set; slot != set + kWays; ++slot) {
    *call = slot->call.load(std::memory_order_acquire);
    if (*call > kBusy && slot->request.load(std::memory_order_relaxed) == request &&
        IsOfComm(*slot, *call, CallComm(*call))) {
      return slot;
    }
  }
  return nullptr;
}

void RecordOpenRequest(uint64_t call, uintptr_t request, uint64_t split_id, const MpiWord* created,
                       bool is_persistent = false) {
  uint64_t earlier = 0;
  // MPI uses a handle again when its request is done, and may use one handle for all done requests.
  Slot* same = FindRequest(request, &earlier);
  if (same != nullptr) Finish(same, earlier);
  Slot* set = RequestSet(request);
  for (Slot* slot = set; slot != set + kWays; ++slot) {
    if (!Claim(slot, 0)) continue;
    open_requests.fetch_add(1);
    slot->request.store(request, std::memory_order_relaxed);
    slot->generation.store(Generation(CallComm(call)), std::memory_order_relaxed);
    slot->watcher.store(0, std::memory_order_relaxed);
    slot->split_id = split_id;
    slot->created = created;
    slot->is_persistent = is_persistent;
    slot->call.store(call, std::memory_order_release);
    return;
  }
}

}  // namespace

void BeginPosition(const LocalComm* comm) {
  being_made[comm->index].store(Get(comm->entry->entered) + 1, std::memory_order_relaxed);
}

void EndPosition(LocalComm* comm) {
  being_made[comm->index].store(0, std::memory_order_release);
  RaiseReturned(comm);
}

void RecordRequest(const LocalComm* comm, uint64_t position, MpiWord request, bool is_persistent) {
  if (request == mpi.null_request) return;
  RecordOpenRequest(CallWord(comm, position), request, 0, nullptr, is_persistent);
}

void RecordCreationRequest(const LocalComm* parent, uint64_t split_id, MpiWord request,
                           const MpiWord* created) {
  if (request == mpi.null_request) {
    AddCopy(parent, split_id, HandleAt(created));
  } else {
    RecordOpenRequest(CallWord(parent, kNoPosition), request, split_id, created);
  }
}

void RecordWork(const LocalComm* comm, uint64_t position, uintptr_t work) {
  RecordOpenRequest(CallWord(comm, position), work, 0, nullptr);
}

void FinishWork(uintptr_t work) {
  if (!AnyOpenRequest()) return;
  uint64_t call = 0;
  Slot* slot = FindRequest(work, &call);
  if (slot != nullptr) Finish(slot, call);
}

void FinishWorkAt(const LocalComm* comm, uint64_t position, uintptr_t work) {
  if (!AnyOpenRequest()) return;
  uint64_t call = 0;
  Slot* slot = FindRequest(work, &call);
  if (slot != nullptr && call == CallWord(comm, position)) Finish(slot, call);
}

void EndPositionOfWork(LocalComm* comm, uintptr_t work) {
  being_made[comm->index].store(0, std::memory_order_release);
  // Either Finish() on the work's thread sees that the call has been made, or this sees its end.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  uint64_t call = 0;
  if (FindRequest(work, &call) == nullptr) RaiseReturned(comm);
}

bool FindWork(uintptr_t work, AwaitedCall* call) {
  uint64_t word = 0;
  if (!AnyOpenRequest() || FindRequest(work, &word) == nullptr) return false;
  *call = {CallComm(word), (word & kPositionMask) + 1};
  return true;
}

void ForgetRequests(const LocalComm* comm) {
  if (!AnyOpenRequest()) return;
  for (Slot& slot : slots) {
    const uint64_t call = slot.call.load(std::memory_order_acquire);
    if (call > kBusy && CallComm(call) == comm && Claim(&slot, call)) Free(&slot);
  }
}

WatchedRequests::WatchedRequests(const ThreadState* thread, int count, const MpiWord* requests)
    : thread_(thread->thread_id), requests_(requests) {
  if (!AnyOpenRequest()) {
    others_ = true;
    return;
  }
  for (int i = 0; i < count; ++i) {
    const uintptr_t request = HandleAt(requests, i);
    if (request == mpi.null_request) continue;
    uint64_t call = 0;
    Slot* slot = FindRequest(request, &call);
    if (slot == nullptr) {
      others_ = true;
      continue;
    }
    slot->index.store(i, std::memory_order_relaxed);
    slot->watcher.store(thread_, std::memory_order_relaxed);
    ++found_;
  }
}

void ForgetWatchedRequests(uint32_t thread) {
  if (!AnyOpenRequest()) return;
  for (Slot& slot : slots) {
    uint32_t watcher = thread;
    slot.watcher.compare_exchange_strong(watcher, 0, std::memory_order_relaxed);
  }
}

WatchedRequests::~WatchedRequests() {
  if (found_ == 0) return;
  for (Slot& slot : slots) {
    const uint64_t call = slot.call.load(std::memory_order_acquire);
    if (call <= kBusy || slot.watcher.load(std::memory_order_relaxed) != thread_) continue;
    slot.watcher.store(0, std::memory_order_relaxed);
    const uintptr_t now = HandleAt(requests_, slot.index.load(std::memory_order_relaxed));
    if (now != slot.request.load(std::memory_order_relaxed)) Finish(&slot, call);
  }
}

void WatchedRequests::FinishPersistent(const Statuses& statuses) const {
  if (found_ == 0) return;
  for (Slot& slot : slots) {
    const uint64_t call = slot.call.load(std::memory_order_acquire);
    if (call <= kBusy || slot.watcher.load(std::memory_order_relaxed) != thread_) continue;
    if (slot.is_persistent && IsDone(statuses, slot.index.load(std::memory_order_relaxed))) {
      slot.watcher.store(0, std::memory_order_relaxed);
      Finish(&slot, call);
    }
  }
}

int WatchedRequests::Awaited(AwaitedCall (&calls)[kAwaited]) const {
  int count = 0;
  if (found_ == 0) return count;
  for (const Slot& slot : slots) {
    const uint64_t call = slot.call.load(std::memory_order_acquire);
    if (call <= kBusy || slot.watcher.load(std::memory_order_relaxed) != thread_) continue;
    const LocalComm* comm = CallComm(call);
    const uint64_t number = (call & kPositionMask) + 1;
    if (number > kNoPosition) continue;
    int i = 0;
    while (i < count && calls[i].comm != comm) ++i;
    if (i == kAwaited) continue;
    if (i == count) calls[count++] = {comm, number};
    if (number < calls[i].number) calls[i].number = number;
  }
  return count;
}

}  // namespace rollcall
