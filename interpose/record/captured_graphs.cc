// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/captured_graphs.h"

#include <errno.h>
#include <sys/mman.h>

#include "interpose/record/markers.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// An open-addressed table of handles. It needs no lock: one atomic exchange sets or removes a key.
constexpr uint32_t kTableSize = 8192;  // a power of two
constexpr uint32_t kProbes = 128;
constexpr uintptr_t kEmpty = 0, kRemoved = 1;

struct Slot {
  std::atomic<uintptr_t> key;
  std::atomic<CallGraph*> graph;
};
Slot table[kTableSize];
std::atomic<uint32_t> handle_count{0};  // 0 means every look-up returns at once
std::atomic<uint32_t> last_number{0};

void* MapChunk() {
  const int saved_errno = errno;
  void* memory =
      mmap(nullptr, kGraphChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = saved_errno;
  return memory == MAP_FAILED ? nullptr : memory;
}

void Unmap(void* chunk) {
  const int saved_errno = errno;
  munmap(chunk, kGraphChunkBytes);
  errno = saved_errno;
}

// A mapping of its own holds the graph, so that graphs need no allocator.
CallGraph* NewGraph() {
  static_assert(sizeof(CallGraph) <= kGraphChunkBytes);
  auto* graph = static_cast<CallGraph*>(MapChunk());
  if (graph == nullptr) return nullptr;
  graph->owners.store(1, std::memory_order_relaxed);
  graph->number = last_number.fetch_add(1) + 1;
  return graph;
}

void Release(CallGraph* graph) {
  if (graph->owners.fetch_sub(1) != 1) return;
  for (GraphChunk* chunk = graph->first; chunk != nullptr;) {
    GraphChunk* next = chunk->next;
    Unmap(chunk);
    chunk = next;
  }
  Unmap(graph);
}

Slot* SlotAt(uintptr_t key, uint32_t probe) {
  return &table[(segment::Mix(0, key) + probe) & (kTableSize - 1)];
}

Slot* FindSlot(uintptr_t key) {
  if (key <= kRemoved || handle_count.load(std::memory_order_acquire) == 0) return nullptr;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Slot* slot = SlotAt(key, probe);
    const uintptr_t found = slot->key.load(std::memory_order_acquire);
    if (found == key) return slot;
    if (found == kEmpty) return nullptr;
  }
  return nullptr;
}

// Moves the caller's ownership into the slot. False if there is no room.
bool Insert(uintptr_t key, CallGraph* graph) {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Slot* slot = SlotAt(key, probe);
    uintptr_t found = slot->key.load(std::memory_order_acquire);
    if (found != kEmpty && found != kRemoved) continue;
    if (!slot->key.compare_exchange_strong(found, key)) continue;
    slot->graph.store(graph, std::memory_order_release);
    handle_count.fetch_add(1);
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
  handle_count.fetch_sub(1);
  Release(graph);
}

uintptr_t HandleKey(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

// A capture's id is a small number and a handle is an address, so the hash keeps them apart.
uintptr_t CaptureKey(uint64_t capture) {
  return static_cast<uintptr_t>(segment::Mix(segment::kSignatureSeed, capture) | 3);
}

void CountLost() {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) header->lost_graph_calls.fetch_add(1);
}

// Binds one more handle to `graph`.
void Share(CallGraph* graph, const void* handle) {
  Remove(HandleKey(handle));  // an earlier graph at this address has been destroyed
  graph->owners.fetch_add(1);
  if (Insert(HandleKey(handle), graph)) return;
  CountLost();
  Release(graph);
}

void CountInPart(CallGraph* graph, const CapturedCall& call, const void* stream) {
  GraphPart* part = FindPart(graph, call.comm);
  if (part == nullptr) {
    if (graph->parts_used == kGraphParts) return;
    part = &graph->parts[graph->parts_used++];
    *part = {call.comm, call.generation, stream, 0, 0, 0, 0, false};
  }
  if (part->stream != stream) part->several_streams = true;
  ++(OpKind(call.op) == CallKind::kP2p ? part->p2p : part->collectives);
}

}  // namespace

GraphPart* FindPart(CallGraph* graph, const LocalComm* comm) {
  for (uint32_t i = 0; i < graph->parts_used; ++i) {
    if (graph->parts[i].comm == comm) return &graph->parts[i];
  }
  return nullptr;
}

bool AppendCall(CallGraph* graph, const CapturedCall& call, const void* stream) {
  const uint32_t index = graph->calls.load(std::memory_order_relaxed);
  const uint32_t at = index % kCallsInChunk;
  GraphChunk* chunk = graph->last;
  if (at == 0) {
    GraphChunk** next = chunk == nullptr ? &graph->first : &chunk->next;
    // The chunk already exists if calls after it were dropped.
    if (*next == nullptr) *next = static_cast<GraphChunk*>(MapChunk());
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

void DropCalls(CallGraph* graph, uint32_t calls) {
  const uint32_t now = CallCount(graph);
  uint32_t index = 0;
  ForEachCall(graph, [&](const CapturedCall& call) {
    if (index++ < calls) return;
    GraphPart* part = FindPart(graph, call.comm);
    if (part != nullptr) --(OpKind(call.op) == CallKind::kP2p ? part->p2p : part->collectives);
  });
  if (calls >= now) return;
  graph->calls.store(calls, std::memory_order_release);
  graph->last = calls == 0 ? nullptr : graph->first;
  for (uint32_t i = kCallsInChunk; i < calls; i += kCallsInChunk) graph->last = graph->last->next;
}

void RecordCaptureBegin() { captures_open.fetch_add(1, std::memory_order_release); }

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

void RecordCaptureEnd(uint64_t capture, const void* handle) {
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

void RecordGraphCopy(const void* from, const void* to) {
  CallGraph* graph = FindGraph(from);
  if (graph != nullptr) {
    Share(graph, to);
  } else {
    Remove(HandleKey(to));  // an update may have removed all calls
  }
}

void RecordGraphChild(const void* handle, const void* child) {
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
  ForEachCall(calls, [graph](const CapturedCall& call) { AppendCall(graph, call, nullptr); });
}

void RecordGraphDestroy(const void* handle) { Remove(HandleKey(handle)); }

const LocalComm* FirstComm(const CallGraph* graph) {
  return graph->parts_used == 0 ? nullptr : graph->parts[0].comm;
}

uint32_t CallCount(const CallGraph* graph) { return graph->calls.load(std::memory_order_acquire); }

}  // namespace rollcall
