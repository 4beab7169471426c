// SPDX-License-Identifier: Apache-2.0
// CUDA graphs that hold NCCL calls: which calls, and by what CUDA calls the graphs.
//
// A call that is made while its stream is captured does not happen: it becomes a part of a graph, and
// happens as often as that is launched (graph_launches.h). Captures, graphs and executable graphs are
// found by their handles, without a lock.
//
// For wrappers, on the thread that makes the call. Memory comes from mmap, at captures and never at
// launches; nothing here waits, throws or changes errno. Two threads that add calls to one capture at
// once are not expected; everything else may happen at once.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"

namespace rollcall {

struct CapturedCall {
  LocalComm* comm;
  uint64_t generation;  // of the communicator: its block may serve another one by now
  uint64_t count;
  uint64_t caller;  // as in segment::RecordEntry
  int32_t peer;
  uint16_t group;  // of the capturing thread; 0: none
  Op op;
  uint8_t dtype, reduction, shape;
};

// A communicator's part of a graph.
struct GraphPart {
  LocalComm* comm;
  uint64_t generation;
  const void* stream;       // of its first call
  uint32_t collectives, p2p;
  uint32_t marked_collectives, marked_p2p;  // with a marker behind them
  bool several_streams;     // so the markers' order is not that of the calls
};

inline constexpr int kGraphParts = 8;  // communicators of one graph that have markers, and can be
                                       // taken back

// Captured calls, in order, as many as one mapping holds.
inline constexpr size_t kGraphChunkBytes = 65536;
struct GraphChunk {
  GraphChunk* next;
  CapturedCall calls[(kGraphChunkBytes - sizeof(GraphChunk*)) / sizeof(CapturedCall)];
};
inline constexpr uint32_t kCallsInChunk = sizeof(GraphChunk::calls) / sizeof(CapturedCall);

struct CallGraph {
  std::atomic<uint32_t> owners;  // handles, and captures under way
  std::atomic<uint32_t> calls;
  uint32_t number;  // nth graph of the process that holds calls, from 1
  std::atomic<uint64_t> launches;
  uint32_t parts_used;
  GraphPart parts[kGraphParts];
  GraphChunk* first;
  GraphChunk* last;
};

// The graph that the capture with this id becomes; nullptr when there is no room (counted).
CallGraph* CaptureGraph(uint64_t capture);

uint32_t CallCount(const CallGraph* graph);

// The calls behind the first `calls` were not captured after all.
void DropCalls(CallGraph* graph, uint32_t calls);

// Adds a call; `stream`: where it was captured, nullptr: not known. False: there is no room (counted).
bool AppendCall(CallGraph* graph, const CapturedCall& call, const void* stream);

// The communicator's part; nullptr: it has none.
GraphPart* FindPart(CallGraph* graph, const LocalComm* comm);

// Whether the communicator is the one that was captured: its block may serve another one by now.
inline bool IsStillThere(const CapturedCall& call) {
  return call.comm->handle.load(std::memory_order_relaxed) != nullptr &&
         Generation(call.comm) == call.generation;
}

inline bool IsStillThere(const GraphPart& part) {
  return part.comm->handle.load(std::memory_order_relaxed) != nullptr &&
         Generation(part.comm) == part.generation;
}

// Calls `each` with every captured call, in order.
template <typename Each>
void ForEachCall(const CallGraph* graph, Each each) {
  uint32_t left = graph->calls.load(std::memory_order_acquire);
  for (const GraphChunk* chunk = graph->first; chunk != nullptr && left > 0; chunk = chunk->next) {
    const uint32_t here = left < kCallsInChunk ? left : kCallsInChunk;
    for (uint32_t i = 0; i < here; ++i) each(chunk->calls[i]);
    left -= here;
  }
}

// What CUDA said. Handles are cudaGraph_t and cudaGraphExec_t, or their twins.
void CaptureBegan();
void CaptureEnded(uint64_t capture, const void* graph);
void GraphCopied(const void* from, const void* to);  // cloned, instantiated, or updated
void GraphJoined(const void* graph, const void* child);
void GraphForgotten(const void* handle);

// The graph behind a handle, where it holds calls; else nullptr.
CallGraph* FindGraph(const void* handle);
const LocalComm* FirstComm(const CallGraph* graph);

}  // namespace rollcall
