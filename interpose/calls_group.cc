// The wrappers of group calls. A call inside a group is entered when it is made,
// but happens (and may block the host) when the outermost group ends.
#include "interpose/graphs.h"
#include "interpose/group_lists.h"
#include "interpose/late.h"
#include "interpose/lifecycle.h"
#include "interpose/real.h"
#include "interpose/record.h"

namespace rollcall {
namespace {

// One communicator that does not block makes the whole group launch later, and only such a one is
// asked how far it is.
bool LaunchesLater(const ThreadState* thread) {
  for (int i = 0; i < thread->group_size; ++i) {
    if (thread->lists->group[i].comm->non_blocking) return true;
  }
  return false;
}

// `mark(comm, stream, collectives, p2p)`, as PlaceMarkers() takes them.
template <typename Mark>
void MarkGroup(const ThreadState* thread, MarkerPoint point, Mark mark) {
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    if (part.capture != 0) {
      if (part.graph != nullptr) MarkCaptured(part.comm, part.stream, part.graph, point);
      continue;
    }
    if (!HasMarkers(part.comm)) continue;
    const segment::CommEntry* entry = part.comm->entry;
    const uint64_t entered = Get(entry->entered);
    const uint64_t p2p = Get(entry->p2p_entered);
    mark(part.comm, part.stream, entered == part.entered ? 0 : entered,
         p2p == part.p2p_entered ? 0 : p2p);
  }
}

void MarkGroupBefore(const ThreadState* thread) {
  const bool later = LaunchesLater(thread);
  MarkGroup(thread, MarkerPoint::kStarted,
            [later](LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p) {
              if (later && !comm->non_blocking) return SwitchMarkersOff(comm);
              MarkBefore(comm, stream, collectives, p2p);
            });
}

void MarkGroupAfter(const ThreadState* thread) {
  MarkGroup(thread, MarkerPoint::kFinished, MarkAfter);
}

void StampRecords(const GroupComm& part, uint64_t now, ncclResult_t result) {
  const uint64_t end = Get(part.comm->entry->recorded);
  const uint64_t oldest = OldestRecord(part.comm, end);
  for (uint64_t n = part.recorded > oldest ? part.recorded : oldest; n < end; ++n) {
    segment::CallRecord* record = RecordAt(part.comm, n);
    if (Get(record->returned) != 0) continue;
    record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
    record->returned.store(now, std::memory_order_release);
  }
}

}  // namespace

void CloseGroup(ThreadState* thread, ncclResult_t result) {
  const uint64_t now = Now();
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    segment::CommEntry* entry = part.comm->entry;
    if (result == ncclInProgress && part.comm->non_blocking) continue;
    StampRecords(part, now, result);
    if (IsError(result)) {  // nothing of the group was launched
      part.comm->placed_out_of_order = true;
      entry->signature.store(part.signature, std::memory_order_relaxed);
      Raise(&entry->entered, part.entered);
      Raise(&entry->p2p_entered, part.p2p_entered);
      if (part.graph != nullptr) DropCalls(part.graph, part.graph_calls);
    }
    Raise(&entry->returned, Get(entry->entered));
    Raise(&entry->p2p_returned, Get(entry->p2p_entered));
  }
}

namespace {

void ForgetGroup(ThreadState* thread) {
  thread->group_size = 0;
  thread->group_depth = 0;
}

// `launches` is false for ncclGroupSimulateEnd, which plays the group through
// and throws it away.
template <typename Function, typename... Args>
ncclResult_t EndGroup(Function* real, ThreadState* thread, Op op, bool launches, Args... args) {
  const LocalComm* first = thread->group_size > 0 ? thread->lists->group[0].comm : nullptr;
  const Blocked blocked(thread, op, first, nullptr, Now());
  if (launches) MarkGroupBefore(thread);
  const ncclResult_t result = real(args...);
  CloseGroup(thread, launches ? result : ncclInvalidUsage);
  if (launches && result == ncclSuccess) MarkGroupAfter(thread);
  BindPending(thread, result);
  return result;
}

void NoteLateGroup(const ThreadState* thread) {
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    if (part.comm->non_blocking) NoteLate(thread, part.comm, part.recorded);
  }
}

template <typename Function, typename... Args>
ncclResult_t ObserveGroupEnd(Function* real, Op op, bool launches, Args... args) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  if (thread->group_depth > 1) {
    --thread->group_depth;
    return real(args...);
  }
  const InsideCall inside(thread);
  const ncclResult_t result = EndGroup(real, thread, op, launches, args...);
  if (launches && result == ncclInProgress) NoteLateGroup(thread);
  ForgetGroup(thread);
  return result;
}

}  // namespace
}  // namespace rollcall

using rollcall::ThreadState;

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupStart() {
  auto* real = ROLLCALL_REAL(ncclGroupStart);
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &rollcall::this_thread;
  if (thread->inside || !rollcall::StartRecording()) return real();
  const rollcall::InsideCall inside(thread);
  const ncclResult_t result = real();
  if (result != ncclSuccess) return result;
  if (thread->group_depth++ == 0) {
    thread->group_size = 0;
    if (++thread->group_number == 0) thread->group_number = 1;
  }
  return result;
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupEnd() {
  return rollcall::ObserveGroupEnd(ROLLCALL_REAL(ncclGroupEnd), rollcall::Op::kGroupEnd, true);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return rollcall::ObserveGroupEnd(ROLLCALL_REAL(ncclGroupSimulateEnd),
                                   rollcall::Op::kGroupSimulateEnd, false, simInfo);
}
