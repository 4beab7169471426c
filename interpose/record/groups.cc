// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/groups.h"

#include "interpose/record/call_record.h"
#include "interpose/record/graph_launches.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/markers.h"

namespace rollcall {
namespace {

void StampRecords(const GroupComm& part, uint64_t now, ncclResult_t result) {
  const uint64_t end = Get(part.comm->entry->recorded);
  const uint64_t oldest = OldestRecord(part.comm, end);
  for (uint64_t n = part.recorded > oldest ? part.recorded : oldest; n < end; ++n) {
    segment::RecordEntry* record = RecordAt(part.comm, n);
    if (Get(record->returned) != 0) continue;
    record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
    record->returned.store(now, std::memory_order_release);
  }
}

}  // namespace

GroupComm* JoinGroup(ThreadState* thread, LocalComm* comm, cudaStream_t stream) {
  for (int i = 0; i < thread->group_size; ++i) {
    if (thread->lists->group[i].comm == comm) return &thread->lists->group[i];
  }
  if (thread->group_size == kGroupComms || EnsureGroupLists(thread) == nullptr) return nullptr;
  GroupComm* joined = &thread->lists->group[thread->group_size++];
  segment::CommEntry* entry = comm->entry;
  *joined = {comm,
             stream,
             Get(entry->entered),
             Get(entry->p2p_entered),
             Get(entry->signature),
             Get(entry->recorded),
             FindCapture(comm, stream),
             nullptr,
             0};
  if (joined->capture > kOffLimits) {
    joined->graph = CaptureGraph(joined->capture);
    if (joined->graph != nullptr) joined->graph_calls = CallCount(joined->graph);
  }
  return joined;
}

void CloseGroup(ThreadState* thread, ncclResult_t result) {
  const uint64_t now = Now();
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    segment::CommEntry* entry = part.comm->entry;
    if (result == ncclInProgress && part.comm->non_blocking) continue;
    StampRecords(part, now, result);
    if (IsError(result)) {  // NCCL launched no call of the group
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

}  // namespace rollcall
