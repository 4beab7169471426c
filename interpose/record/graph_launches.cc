// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/graph_launches.h"

#include "interpose/record/grouped.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// Gives each captured group a new number for this launch.
class Groups {
 public:
  explicit Groups(ThreadState* thread) : thread_(thread) {}
  uint16_t Renumbered(uint16_t captured) {
    if (captured == 0) return 0;
    if (captured != last_captured_) {
      last_captured_ = captured;
      if (++thread_->group_number == 0) thread_->group_number = 1;
    }
    return thread_->group_number;
  }

 private:
  ThreadState* thread_;
  uint16_t last_captured_ = 0;
};

// `has_part`: EndLaunch() will record the return.
void Replay(const ThreadState* thread, const CapturedCall& call, uint16_t group, void* stream,
            uint64_t now, bool has_part) {
  const CallInfo info = {call.op,   call.dtype, call.reduction,
                         call.peer, call.count, static_cast<cudaStream_t>(stream)};
  const RecordOrigin origin = {thread->thread_id, group, call.shape, segment::kRecordReplayed,
                               call.caller};
  const OpenRecord open = EnterCall(call.comm, info, origin, now);
  if (has_part) return;
  segment::CommEntry* entry = call.comm->entry;
  open.record->returned.store(now, std::memory_order_release);
  Raise(&entry->returned, Get(entry->entered));
  Raise(&entry->p2p_returned, Get(entry->p2p_entered));
}

void RecordLaunch(const GraphPart& part, const LaunchedPart& before, const CallGraph* graph) {
  segment::CommEntry* entry = part.comm->entry;
  const uint64_t launches = Get(entry->graph_launches);
  segment::GraphLaunchEntry* launch = &entry->graph_launch[launches % segment::kGraphLaunches];
  launch->graph.store(graph->number, std::memory_order_relaxed);
  launch->launch.store(Get(graph->launches), std::memory_order_relaxed);
  launch->first_record.store(before.recorded, std::memory_order_relaxed);
  launch->records.store(Get(entry->recorded) - before.recorded, std::memory_order_relaxed);
  Raise(&entry->graph_launches, launches + 1);
}

void StampReplayed(const GraphPart& part, const LaunchedPart& before, uint64_t now, bool success) {
  segment::CommEntry* entry = part.comm->entry;
  const uint64_t end = Get(entry->recorded);
  const uint64_t oldest = OldestRecord(part.comm, end);
  for (uint64_t n = before.recorded > oldest ? before.recorded : oldest; n < end; ++n) {
    segment::RecordEntry* record = RecordAt(part.comm, n);
    record->result.store(success ? ncclSuccess : ncclUnhandledCudaError, std::memory_order_relaxed);
    record->returned.store(now, std::memory_order_release);
  }
  if (!success) {
    part.comm->placed_out_of_order = true;
    entry->signature.store(before.signature, std::memory_order_relaxed);
    Raise(&entry->entered, before.entered);
    Raise(&entry->p2p_entered, before.p2p_entered);
  }
  Raise(&entry->returned, Get(entry->entered));
  Raise(&entry->p2p_returned, Get(entry->p2p_entered));
}

uint32_t GraphLaneNumber(const CallGraph* graph) { return graph->number % segment::kGraphLanes; }

// Whether every call of this part has markers in the graph.
bool HoldsMarkers(const GraphPart& part) {
  return part.collectives == part.marked_collectives && part.p2p == part.marked_p2p;
}

}  // namespace

CapturedRecord BeginCaptured(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                             const void* caller, uint64_t capture) {
  CallGraph* graph = CaptureGraph(capture);
  const uint64_t now = Now();
  const uint16_t group = IsGrouped(thread, comm) ? thread->group_number : uint16_t{0};
  const RecordOrigin origin = {thread->thread_id, group, thread->next_shape,
                               segment::kRecordCaptured, CallerWord(caller)};
  thread->next_shape = thread->kept_shape;
  segment::CommEntry* entry = comm->entry;
  const uint64_t index = Get(entry->recorded);
  segment::RecordEntry* record = RecordAt(comm, index);
  FillRecord(record, index, Get(entry->entered), info, origin, now);
  entry->last_entered.store(now, std::memory_order_relaxed);
  Raise(&entry->recorded, index + 1);
  const CapturedCall call = {comm,  Generation(comm), info.count, origin.caller,  info.peer,
                             group, info.op,          info.dtype, info.reduction, origin.shape};
  if (graph == nullptr || !AppendCall(graph, call, info.stream)) return {record, nullptr};
  if (group == 0) MarkCaptured(comm, info.stream, graph, MarkerPoint::kStarted);
  return {record, graph};
}

void EndCaptured(const ThreadState* thread, LocalComm* comm, const CallInfo& info,
                 const CapturedRecord& captured, ncclResult_t result) {
  captured.record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  if (IsError(result) && captured.graph != nullptr) {
    DropCalls(captured.graph, CallCount(captured.graph) - 1);
  }
  if (!IsError(result) && IsGrouped(thread, comm)) return;  // captured when the group ends
  captured.record->returned.store(Now(), std::memory_order_release);
  if (result != ncclSuccess || captured.graph == nullptr) return;
  MarkCaptured(comm, info.stream, captured.graph, MarkerPoint::kFinished);
}

void MarkCaptured(LocalComm* comm, void* stream, CallGraph* graph, MarkerPoint point) {
  GraphPart* part = FindPart(graph, comm);
  const bool wanted = recorder.options.graph_markers && HasMarkers(comm) && !comm->non_blocking;
  if (part == nullptr || !wanted) return;
  const bool started = point == MarkerPoint::kStarted;
  const auto word = [&](uint32_t calls, uint32_t* done) -> uint64_t {
    if (calls == *done) return 0;
    if (!started) *done = calls;
    // On several streams a later marker does not prove that an earlier call is done.
    return calls | uint64_t{part->several_streams ? 0 : *done} << 32;
  };
  const uint64_t reached = word(part->collectives, &part->marked_collectives);
  const uint64_t p2p_reached = word(part->p2p, &part->marked_p2p);
  PlaceGraphMarker(comm, stream, GraphLaneNumber(graph), reached, p2p_reached);
}

void BeginLaunch(ThreadState* thread, CallGraph* graph, void* stream, Launched* launched) {
  launched->graph = graph;
  const uint64_t now = Now();
  for (uint32_t i = 0; i < graph->parts_used; ++i) {
    const segment::CommEntry* entry = graph->parts[i].comm->entry;
    launched->before[i] = {Get(entry->entered), Get(entry->p2p_entered), Get(entry->signature),
                           Get(entry->recorded)};
  }
  graph->launches.fetch_add(1, std::memory_order_relaxed);
  Groups groups(thread);
  ForEachCall(graph, [&](const CapturedCall& call) {
    if (!IsStillThere(call)) return;
    const bool has_part = graph->parts_used < kGraphParts || FindPart(graph, call.comm) != nullptr;
    Replay(thread, call, groups.Renumbered(call.group), stream, now, has_part);
  });
  for (uint32_t i = 0; i < graph->parts_used; ++i) {
    const GraphPart& part = graph->parts[i];
    const LaunchedPart& before = launched->before[i];
    if (!IsStillThere(part)) continue;
    RecordLaunch(part, before, graph);
    if (HoldsMarkers(part)) {
      PlaceGraphBase(part.comm, stream, GraphLaneNumber(graph), before.entered, before.p2p_entered);
    } else {
      // Mark the first call as started. Without nodes the GPU reports nothing until the graph is
      // done.
      PlaceMarkers(part.comm, stream, MarkerPoint::kStarted,
                   part.collectives == 0 ? 0 : before.entered + 1,
                   part.p2p == 0 ? 0 : before.p2p_entered + 1);
    }
  }
}

void EndLaunch(const Launched& launched, void* stream, bool success) {
  const uint64_t now = Now();
  for (uint32_t i = 0; i < launched.graph->parts_used; ++i) {
    const GraphPart& part = launched.graph->parts[i];
    if (!IsStillThere(part)) continue;
    StampReplayed(part, launched.before[i], now, success);
    if (!success) continue;
    PlaceMarkers(part.comm, stream, MarkerPoint::kFinished,
                 part.collectives == 0 ? 0 : Get(part.comm->entry->entered),
                 part.p2p == 0 ? 0 : Get(part.comm->entry->p2p_entered));
  }
}

void LaunchIntoCapture(CallGraph* graph, CallGraph* into) {
  ForEachCall(graph, [into](const CapturedCall& call) { AppendCall(into, call, nullptr); });
}

}  // namespace rollcall
