#include "interpose/old_glibc.h"

#include "interpose/graphs.h"

#include <errno.h>
#include <sys/mman.h>

#include "interpose/recorder.h"

namespace rollcall {

namespace {

constexpr size_t kChunkBytes = 65536;

struct Chunk {
  Chunk* next;
  CapturedCall calls[(kChunkBytes - sizeof(Chunk*)) / sizeof(CapturedCall)];
};
constexpr uint32_t kCallsInChunk = sizeof(Chunk::calls) / sizeof(CapturedCall);

// Handles are looked up without a lock: an open-addressed table whose keys are set
// and removed by one atomic exchange each.
constexpr uint32_t kTableSize = 8192;  // a power of two
constexpr uint32_t kProbes = 128;
constexpr uintptr_t kEmpty = 0, kRemoved = 1;

struct Slot {
  std::atomic<uintptr_t> key;
  std::atomic<CallGraph*> graph;
};
Slot table[kTableSize];
std::atomic<uint32_t> handles_known{0};  // 0: no look-up has to be made
std::atomic<uint32_t> last_number{0};

}  // namespace

struct CallGraph {
  std::atomic<uint32_t> owners;  // handles, and captures under way
  std::atomic<uint32_t> calls;
  uint32_t number;  // nth graph of the process that holds calls, from 1
  std::atomic<uint64_t> launches;
  uint32_t parts_used;
  GraphPart parts[kGraphParts];
  Chunk* first;
  Chunk* last;
};

namespace {

void* MapChunk() {
  const int saved_errno = errno;
  void* memory =
      mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = saved_errno;
  return memory == MAP_FAILED ? nullptr : memory;
}

void Unmap(void* chunk) {
  const int saved_errno = errno;
  munmap(chunk, kChunkBytes);
  errno = saved_errno;
}

// The graph's own memory is the start of a page of its own, so that graphs need no allocator.
CallGraph* NewGraph() {
  static_assert(sizeof(CallGraph) <= kChunkBytes);
  auto* graph = static_cast<CallGraph*>(MapChunk());
  if (graph == nullptr) return nullptr;
  graph->owners.store(1, std::memory_order_relaxed);
  graph->number = last_number.fetch_add(1) + 1;
  return graph;
}

void Release(CallGraph* graph) {
  if (graph->owners.fetch_sub(1) != 1) return;
  for (Chunk* chunk = graph->first; chunk != nullptr;) {
    Chunk* next = chunk->next;
    Unmap(chunk);
    chunk = next;
  }
  Unmap(graph);
}

Slot* SlotAt(uintptr_t key, uint32_t probe) {
  return &table[(segment::Mix(0, key) + probe) & (kTableSize - 1)];
}

Slot* FindSlot(uintptr_t key) {
  if (key <= kRemoved || handles_known.load(std::memory_order_acquire) == 0) return nullptr;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Slot* slot = SlotAt(key, probe);
    const uintptr_t found = slot->key.load(std::memory_order_acquire);
    if (found == key) return slot;
    if (found == kEmpty) return nullptr;
  }
  return nullptr;
}

// The slot keeps the ownership that the caller had. False: there is no room.
bool Insert(uintptr_t key, CallGraph* graph) {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Slot* slot = SlotAt(key, probe);
    uintptr_t found = slot->key.load(std::memory_order_acquire);
    if (found != kEmpty && found != kRemoved) continue;
    if (!slot->key.compare_exchange_strong(found, key)) continue;
    slot->graph.store(graph, std::memory_order_release);
    handles_known.fetch_add(1);
    return true;
  }
  return false;
}

void Remove(uintptr_t key) {
  Slot* slot = FindSlot(key);
  if (slot == nullptr) return;
  CallGraph* graph = slot->graph.exchange(nullptr);
  slot->key.store(kRemoved, std::memory_order_release);
  if (graph == nullptr) return;
  handles_known.fetch_sub(1);
  Release(graph);
}

uintptr_t HandleKey(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

// Captures' ids are small numbers, handles are addresses.
uintptr_t CaptureKey(uint64_t capture) {
  return static_cast<uintptr_t>(segment::Mix(segment::kSignatureSeed, capture) | 3);
}

void CountLost() {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) header->lost_graph_calls.fetch_add(1);
}

// `graph` becomes known by one more handle.
void Share(CallGraph* graph, const void* handle) {
  Remove(HandleKey(handle));  // whoever had the address before is gone
  graph->owners.fetch_add(1);
  if (Insert(HandleKey(handle), graph)) return;
  CountLost();
  Release(graph);
}

bool IsStillThere(const CapturedCall& call) {
  return call.comm->handle.load(std::memory_order_relaxed) != nullptr &&
         Generation(call.comm) == call.generation;
}

bool IsStillThere(const GraphPart& part) {
  return part.comm->handle.load(std::memory_order_relaxed) != nullptr &&
         Generation(part.comm) == part.generation;
}

GraphPart* FindPart(CallGraph* graph, const LocalComm* comm) {
  for (uint32_t i = 0; i < graph->parts_used; ++i) {
    if (graph->parts[i].comm == comm) return &graph->parts[i];
  }
  return nullptr;
}

void CountInPart(CallGraph* graph, const CapturedCall& call, const void* stream) {
  GraphPart* part = FindPart(graph, call.comm);
  if (part == nullptr) {
    if (graph->parts_used == kGraphParts) return;
    part = &graph->parts[graph->parts_used++];
    *part = {call.comm, call.generation, stream, 0, 0, 0, 0, false};
  }
  if (part->stream != stream) part->several_streams = true;
  ++(KindOf(call.op) == CallKind::kP2p ? part->p2p : part->collectives);
}

bool Append(CallGraph* graph, const CapturedCall& call, const void* stream) {
  const uint32_t index = graph->calls.load(std::memory_order_relaxed);
  const uint32_t at = index % kCallsInChunk;
  Chunk* chunk = graph->last;
  if (at == 0) {
    Chunk** next = chunk == nullptr ? &graph->first : &chunk->next;
    // There is one already where calls were dropped.
    if (*next == nullptr) *next = static_cast<Chunk*>(MapChunk());
    chunk = *next;
    if (chunk == nullptr) {
      CountLost();
      return false;
    }
  }
  graph->last = chunk;
  chunk->calls[at] = call;
  CountInPart(graph, call, stream);
  graph->calls.store(index + 1, std::memory_order_release);
  return true;
}

// Calls `each` with every captured call, in order.
template <typename Each>
void ForEachCall(const CallGraph* graph, Each each) {
  uint32_t left = graph->calls.load(std::memory_order_acquire);
  for (const Chunk* chunk = graph->first; chunk != nullptr && left > 0; chunk = chunk->next) {
    const uint32_t here = left < kCallsInChunk ? left : kCallsInChunk;
    for (uint32_t i = 0; i < here; ++i) each(chunk->calls[i]);
    left -= here;
  }
}

// Groups of one launch are not those of the next.
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

// `has_part`: EndLaunch() will say that it has returned.
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
  segment::GraphLaunchEntry* note = &entry->graph_launch[launches % segment::kGraphLaunches];
  note->graph.store(graph->number, std::memory_order_relaxed);
  note->launch.store(Get(graph->launches), std::memory_order_relaxed);
  note->first_record.store(before.recorded, std::memory_order_relaxed);
  note->records.store(Get(entry->recorded) - before.recorded, std::memory_order_relaxed);
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

// Each of its calls in the graph has markers.
bool HoldsMarkers(const GraphPart& part) {
  return part.collectives == part.marked_collectives && part.p2p == part.marked_p2p;
}

}  // namespace

void CaptureBegan() { captures_open.fetch_add(1, std::memory_order_release); }

CallGraph* CaptureGraph(uint64_t capture) {
  if (capture == kUnknownCapture) {
    CountLost();
    return nullptr;
  }
  const uintptr_t key = CaptureKey(capture);
  Slot* slot = FindSlot(key);
  if (slot != nullptr) return slot->graph.load(std::memory_order_acquire);
  CallGraph* graph = NewGraph();
  if (graph != nullptr && Insert(key, graph)) return graph;
  if (graph != nullptr) Release(graph);
  CountLost();
  return nullptr;
}

void CaptureEnded(uint64_t capture, const void* handle) {
  uint32_t open = captures_open.load(std::memory_order_relaxed);
  while (open > 0 && !captures_open.compare_exchange_weak(open, open - 1)) {
  }
  const uintptr_t key = CaptureKey(capture);
  Slot* slot = FindSlot(key);
  if (slot == nullptr) return;
  CallGraph* graph = slot->graph.load(std::memory_order_acquire);
  if (graph != nullptr && handle != nullptr) Share(graph, handle);
  Remove(key);
}

CallGraph* FindGraph(const void* handle) {
  Slot* slot = FindSlot(HandleKey(handle));
  return slot == nullptr ? nullptr : slot->graph.load(std::memory_order_acquire);
}

void GraphCopied(const void* from, const void* to) {
  CallGraph* graph = FindGraph(from);
  if (graph != nullptr) {
    Share(graph, to);
  } else {
    Remove(HandleKey(to));  // it held calls until it was updated
  }
}

void GraphJoined(const void* handle, const void* child) {
  const CallGraph* calls = FindGraph(child);
  if (calls == nullptr) return;
  CallGraph* graph = FindGraph(handle);
  if (graph == nullptr) {
    CallGraph* added = NewGraph();
    if (added == nullptr) return CountLost();
    Share(added, handle);
    Release(added);
    graph = FindGraph(handle);
    if (graph == nullptr) return;
  }
  ForEachCall(calls, [graph](const CapturedCall& call) { Append(graph, call, nullptr); });
}

void GraphForgotten(const void* handle) { Remove(HandleKey(handle)); }

const LocalComm* FirstComm(const CallGraph* graph) {
  return graph->parts_used == 0 ? nullptr : graph->parts[0].comm;
}

uint32_t CallCount(const CallGraph* graph) { return graph->calls.load(std::memory_order_acquire); }

CapturedRecord BeginCaptured(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                             const void* caller, uint64_t capture) {
  CallGraph* graph = CaptureGraph(capture);
  const uint64_t now = Now();
  const uint16_t group = thread->group_depth > 0 ? thread->group_number : uint16_t{0};
  const RecordOrigin origin = {thread->thread_id, group, thread->next_shape,
                               segment::kRecordCaptured, CallerWord(caller)};
  thread->next_shape = thread->kept_shape;
  segment::CommEntry* entry = comm->entry;
  const uint64_t index = Get(entry->recorded);
  segment::RecordEntry* record = RecordAt(comm, index);
  FillRecord(record, index, Get(entry->entered), info, origin, now);
  entry->last_entered.store(now, std::memory_order_relaxed);
  Raise(&entry->recorded, index + 1);
  const CapturedCall call = {comm,      Generation(comm), info.count,     origin.caller,
                             info.peer, group,              info.op,        info.dtype,
                             info.reduction, origin.shape};
  if (graph == nullptr || !Append(graph, call, info.stream)) return {record, nullptr};
  if (group == 0) MarkCaptured(comm, info.stream, graph, MarkerPoint::kStarted);
  return {record, graph};
}

void EndCaptured(const ThreadState* thread, LocalComm* comm, const CallInfo& info,
                 const CapturedRecord& captured, ncclResult_t result) {
  captured.record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  if (IsError(result) && captured.graph != nullptr) {
    DropCalls(captured.graph, CallCount(captured.graph) - 1);
  }
  if (!IsError(result) && thread->group_depth > 0) return;  // it is captured when the group ends
  captured.record->returned.store(Now(), std::memory_order_release);
  if (result != ncclSuccess || captured.graph == nullptr) return;
  MarkCaptured(comm, info.stream, captured.graph, MarkerPoint::kFinished);
}

void DropCalls(CallGraph* graph, uint32_t calls) {
  const uint32_t now = CallCount(graph);
  uint32_t index = 0;
  ForEachCall(graph, [&](const CapturedCall& call) {
    if (index++ < calls) return;
    GraphPart* part = FindPart(graph, call.comm);
    if (part != nullptr) --(KindOf(call.op) == CallKind::kP2p ? part->p2p : part->collectives);
  });
  if (calls >= now) return;
  graph->calls.store(calls, std::memory_order_release);
  graph->last = calls == 0 ? nullptr : graph->first;
  for (uint32_t i = kCallsInChunk; i < calls; i += kCallsInChunk) graph->last = graph->last->next;
}

void MarkCaptured(LocalComm* comm, void* stream, CallGraph* graph, MarkerPoint point) {
  GraphPart* part = FindPart(graph, comm);
  const bool wanted = recorder.options.graph_markers && HasMarkers(comm) && !comm->non_blocking;
  if (part == nullptr || !wanted) return;
  const bool started = point == MarkerPoint::kStarted;
  const auto word = [&](uint32_t calls, uint32_t* done) -> uint64_t {
    if (calls == *done) return 0;
    if (!started) *done = calls;
    // On several streams what comes later does not mean that what is before it has happened.
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
      // The first of its calls is as good as begun; nobody can tell how far it comes then.
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
  ForEachCall(graph, [into](const CapturedCall& call) { Append(into, call, nullptr); });
}

}  // namespace rollcall
