// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/late.h"

#include "interpose/record/call_record.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/markers.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// Does what Raise() does, for a word that several threads write.
void RaiseTo(segment::Word* word, uint64_t value) {
  uint64_t seen = Get(*word);
  while (seen < value && !word->compare_exchange_weak(seen, value, std::memory_order_release)) {
  }
}

// Whether the communicator has ended: NCCL no longer reports the result of its late calls.
bool HasEnded(const LocalComm* comm) { return comm->handle.load() == nullptr; }

// Ends the wait that began at `since`. If several threads report the end, the first one records it.
// A thread never ends a wait that began after it asked NCCL.
void StopWaiting(LocalComm* comm, uint64_t since, bool launched) {
  LateCall* late = &comm->late;
  if (since == 0) return;
  segment::BlockedEntry* blocked = late->blocked.load(std::memory_order_relaxed);
  const uint64_t first = Get(late->first_record), end = Get(late->end_record);
  const uint64_t entered = Get(late->entered), p2p_entered = Get(late->p2p_entered);
  const uint32_t end_state = late->end_state.load(std::memory_order_relaxed);
  uint64_t seen = since;
  if (!late->since.compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) return;
  // The thread may be inside another call by now, with another `since`.
  seen = since;
  if (blocked != nullptr) blocked->since.compare_exchange_strong(seen, 0);
  const uint64_t now = Now();
  for (uint64_t n = first; n < end; ++n) {
    uint64_t never = 0;
    RecordAt(comm, n)->returned.compare_exchange_strong(never, now);
  }
  RaiseTo(&comm->entry->returned, entered);
  RaiseTo(&comm->entry->p2p_returned, p2p_entered);
  if (end_state != 0 && launched) SetState(comm, static_cast<segment::CommState>(end_state));
}

// Keeps the thread's entry marked as inside `op`, although the call has returned.
void KeepBlocked(const ThreadState* thread, LocalComm* comm, Op op, const void* stream,
                 uint64_t since) {
  segment::BlockedEntry* entry = thread->blocked;
  if (entry != nullptr) {
    entry->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
    entry->comm.store(comm->index, std::memory_order_relaxed);
    entry->stream.store(reinterpret_cast<uintptr_t>(stream), std::memory_order_relaxed);
    entry->since.store(since, std::memory_order_release);
  }
  comm->late.blocked.store(entry, std::memory_order_relaxed);
  comm->late.since.store(since);
  // A thread that ended the communicator meanwhile may have checked for a wait too early.
  if (HasEnded(comm)) StopWaiting(comm, since, false);
}

// Sets the records of the late call, from `first` to before `end`, and the positions after it.
void SetCalls(LateCall* late, uint64_t first, uint64_t end, uint64_t entered,
              uint64_t p2p_entered) {
  late->first_record.store(first, std::memory_order_relaxed);
  late->end_record.store(end, std::memory_order_relaxed);
  late->entered.store(entered, std::memory_order_relaxed);
  late->p2p_entered.store(p2p_entered, std::memory_order_relaxed);
}

void PlaceLateMarker(LocalComm* comm, uint32_t thread, bool launched) {
  LateCall* late = &comm->late;
  if (thread == 0 || late->marking_thread.load(std::memory_order_acquire) != thread) return;
  if (!launched || QueryCapture(comm, late->stream) != 0) return SwitchMarkersOff(comm);
  late->marking_thread.store(0, std::memory_order_relaxed);
  if (HasMarkers(comm)) MarkAfter(comm, late->stream, late->collectives, late->p2p);
}

}  // namespace

void RecordLateCalls(const ThreadState* thread, LocalComm* comm, uint64_t first_record) {
  if (HasEnded(comm)) return;
  StopWaiting(comm, LateSince(comm), true);  // NCCL runs the calls of a communicator in order
  const segment::CommEntry* entry = comm->entry;
  const uint64_t end = Get(entry->recorded);
  const uint64_t oldest = OldestRecord(comm, end);
  const uint64_t first = first_record > oldest ? first_record : oldest;
  const segment::RecordEntry* newest = nullptr;
  LateCall* late = &comm->late;
  late->collectives = late->p2p = 0;
  for (uint64_t n = first; n < end; ++n) {
    const segment::RecordEntry* record = RecordAt(comm, n);
    if ((record->flags & segment::kRecordCaptured) != 0) continue;
    newest = record;
    if ((record->flags & segment::kRecordP2p) != 0) {
      late->p2p = Get(entry->p2p_entered);
    } else {
      late->collectives = Get(entry->entered);
    }
  }
  if (newest == nullptr) return;
  SetCalls(late, first, end, Get(entry->entered), Get(entry->p2p_entered));
  late->end_state.store(0, std::memory_order_relaxed);
  late->stream = reinterpret_cast<void*>(newest->stream);
  if (HasMarkers(comm)) late->marking_thread.store(thread->thread_id, std::memory_order_release);
  KeepBlocked(thread, comm, static_cast<Op>(newest->op), late->stream, newest->entered);
}

void RecordLateCall(const ThreadState* thread, LocalComm* comm) {
  if (thread->group_depth == 0) RecordLateCalls(thread, comm, Get(comm->entry->recorded) - 1);
}

void RecordLateStateChange(const ThreadState* thread, LocalComm* comm, Op op,
                           segment::CommState end_state) {
  if (HasEnded(comm)) return;
  StopWaiting(comm, LateSince(comm), true);
  SetCalls(&comm->late, 0, 0, 0, 0);
  comm->late.end_state.store(static_cast<uint32_t>(end_state), std::memory_order_relaxed);
  KeepBlocked(thread, comm, op, nullptr, Now());
}

void EndLateCall(LocalComm* comm, uint64_t since, uint32_t thread, bool launched) {
  StopWaiting(comm, since, launched);
  PlaceLateMarker(comm, thread, launched);
}

}  // namespace rollcall
