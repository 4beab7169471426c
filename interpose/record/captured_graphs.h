// SPDX-License-Identifier: Apache-2.0
// The CUDA graphs that hold NCCL calls: which calls each holds, and the handles of each.
//
// A call on a stream that is being captured does not happen. It becomes part of a graph, and
// happens with each launch of the graph (graph_launches.h). The library finds captures, graphs and
// executable graphs by their handles, without a lock.
//
// Wrappers use this, on the thread that makes the call. Memory comes from mmap, in captures and
// never in launches. Nothing here waits, throws or changes errno. Two threads must not add calls to
// one capture at once; anything else may happen concurrently.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"

namespace rollcall {

struct CapturedCall {
  LocalComm* comm;
  uint64_t generation;  // of the communicator, whose block may serve a new communicator later
  uint64_t count;
  uint64_t caller;  // as in segment::RecordEntry
  int32_t peer;
  uint16_t group;  // of the capturing thread, or 0
  Op op;
  uint8_t dtype, reduction, shape;
};

// A communicator's part of a graph.
struct GraphPart {
  LocalComm* comm;
  uint64_t generation;
  const void* stream;  // of the part's first call
  uint32_t collectives, p2p;
  uint32_t marked_collectives, marked_p2p;  // calls that have a marker after them
  bool several_streams;  // so markers may be written in another order than the calls
};

// Communicators of one graph that get markers, and whose state a failed launch restores.
inline constexpr int kGraphParts = 8;

// Captured calls, in order: as many as fit one mapping.
inline constexpr size_t kGraphChunkBytes = 65536;
struct GraphChunk {
  GraphChunk* next;
  CapturedCall calls[(kGraphChunkBytes - sizeof(GraphChunk*)) / sizeof(CapturedCall)];
};
inline constexpr uint32_t kCallsInChunk = sizeof(GraphChunk::calls) / sizeof(CapturedCall);

struct CallGraph {
  std::atomic<uint32_t> owners;  // handles, and open captures
  std::atomic<uint32_t> calls;
  uint32_t number;  // nth graph of the process that holds calls, from 1
  std::atomic<uint64_t> launches;
  uint32_t parts_used;
  GraphPart parts[kGraphParts];
  GraphChunk* first;
  GraphChunk* last;
};

// The graph that this capture builds. nullptr if there is no room (counted).
CallGraph* CaptureGraph(uint64_t capture);

uint32_t CallCount(const CallGraph* graph);

// Removes the calls after the first `calls`: NCCL refused them.
void DropCalls(CallGraph* graph, uint32_t calls);

// Adds a call. `stream`: where it was captured; nullptr if unknown. False if there is no room
// (counted).
bool AppendCall(CallGraph* graph, const CapturedCall& call, const void* stream);

// The communicator's part, or nullptr.
GraphPart* FindPart(CallGraph* graph, const LocalComm* comm);

// Whether the captured communicator still exists. Its block may serve a new communicator.
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

// Record what CUDA has done. Handles are cudaGraph_t and cudaGraphExec_t, or the driver's and
// HIP's.
void RecordCaptureBegin();
void RecordCaptureEnd(uint64_t capture, const void* graph);
void RecordGraphCopy(const void* from, const void* to);  // by clone, instantiation or update
void RecordGraphChild(const void* graph, const void* child);
void RecordGraphDestroy(const void* handle);

// The graph with this handle, if it holds calls; else nullptr.
CallGraph* FindGraph(const void* handle);
const LocalComm* FirstComm(const CallGraph* graph);

}  // namespace rollcall
