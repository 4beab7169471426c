#include "interpose/late.h"

namespace rollcall {
namespace {

// As Raise(), where others may write the word too.
void RaiseTo(segment::Word* word, uint64_t value) {
  uint64_t seen = Get(*word);
  while (seen < value && !word->compare_exchange_weak(seen, value, std::memory_order_release)) {
  }
}

// Keeps the thread inside `op`, as people see it, though the call has returned.
void StayInside(const ThreadState* thread, LocalComm* comm, Op op, const void* stream,
                uint64_t since) {
  segment::BlockedEntry* entry = thread->blocked;
  comm->late.blocked = entry;
  comm->late.since = since;
  if (entry == nullptr) return;
  entry->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
  entry->comm.store(comm->index, std::memory_order_relaxed);
  entry->stream.store(reinterpret_cast<uintptr_t>(stream), std::memory_order_relaxed);
  entry->since.store(since, std::memory_order_release);
}

// Whoever is told first notes that the host waits no more.
void StopWaiting(LocalComm* comm) {
  LateCall* late = &comm->late;
  bool open = true;
  if (!late->open.load(std::memory_order_acquire)) return;  // polled often
  if (!late->open.compare_exchange_strong(open, false)) return;
  // The thread may be inside another call by now.
  uint64_t since = late->since;
  if (late->blocked != nullptr) late->blocked->since.compare_exchange_strong(since, 0);
  const uint64_t now = Now();
  for (uint64_t n = late->first_record; n < late->end_record; ++n) {
    uint64_t never = 0;
    comm->ring[n % segment::kRingCapacity].returned.compare_exchange_strong(never, now);
  }
  RaiseTo(&comm->entry->returned, late->entered);
  RaiseTo(&comm->entry->p2p_returned, late->p2p_entered);
}

void Mark(LocalComm* comm, uint32_t thread, bool launched) {
  LateCall* late = &comm->late;
  if (thread == 0 || late->marking_thread.load(std::memory_order_acquire) != thread) return;
  if (!launched || CaptureOn(comm, late->stream) != 0) return SwitchMarkersOff(comm);
  late->marking_thread.store(0, std::memory_order_relaxed);
  if (HasMarkers(comm)) MarkAfter(comm, late->stream, late->collectives, late->p2p);
}

}  // namespace

void NoteLate(const ThreadState* thread, LocalComm* comm, uint64_t first_record) {
  StopWaiting(comm);  // NCCL takes one after the other
  const segment::CommEntry* entry = comm->entry;
  LateCall* late = &comm->late;
  late->end_record = Get(entry->recorded);
  late->first_record = late->end_record - first_record > segment::kRingCapacity
                           ? late->end_record - segment::kRingCapacity
                           : first_record;
  late->entered = Get(entry->entered);
  late->p2p_entered = Get(entry->p2p_entered);
  late->collectives = late->p2p = 0;
  const segment::CallRecord* newest = nullptr;
  for (uint64_t n = late->first_record; n < late->end_record; ++n) {
    const segment::CallRecord* record = &comm->ring[n % segment::kRingCapacity];
    if ((record->flags & segment::kRecordCaptured) != 0) continue;
    newest = record;
    if ((record->flags & segment::kRecordP2p) != 0) {
      late->p2p = late->p2p_entered;
    } else {
      late->collectives = late->entered;
    }
  }
  if (newest == nullptr) return;
  late->stream = reinterpret_cast<void*>(newest->stream);
  StayInside(thread, comm, static_cast<Op>(newest->op), late->stream, newest->entered);
  if (HasMarkers(comm)) late->marking_thread.store(thread->thread_id, std::memory_order_release);
  late->open.store(true, std::memory_order_release);
}

void NoteLateCall(const ThreadState* thread, LocalComm* comm) {
  if (thread->group_depth == 0) NoteLate(thread, comm, Get(comm->entry->recorded) - 1);
}

void NoteLateChange(const ThreadState* thread, LocalComm* comm, Op op,
                    segment::CommState end_state) {
  StopWaiting(comm);
  LateCall* late = &comm->late;
  late->first_record = late->end_record = late->entered = late->p2p_entered = 0;
  StayInside(thread, comm, op, nullptr, Now());
  late->end_state.store(static_cast<uint32_t>(end_state), std::memory_order_relaxed);
  late->open.store(true, std::memory_order_release);
}

void EndLate(LocalComm* comm, uint32_t thread, bool launched) {
  StopWaiting(comm);
  if (comm->late.end_state.load(std::memory_order_relaxed) != 0) {
    const uint32_t end_state = comm->late.end_state.exchange(0);
    if (end_state != 0 && launched) SetState(comm, static_cast<segment::CommState>(end_state));
  }
  Mark(comm, thread, launched);
}

}  // namespace rollcall
