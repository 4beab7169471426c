// CUDA graphs that hold NCCL calls.
//
// A call that is made while its stream is captured does not happen: it becomes a
// part of a graph, and happens as often as that is launched. So it takes no
// position then; a launch takes the positions of all the calls that the graph
// holds, in the order in which they were captured, as if they were made there.
//
// Captures, graphs and executable graphs are found by what CUDA calls them. Their
// memory comes from mmap, at captures and never at launches. Two threads that add
// calls to one capture at once are not expected; everything else may happen at once.
#pragma once

#include "interpose/call_record.h"
#include "interpose/markers.h"

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

// The graph that the capture with this id becomes; nullptr when there is no room (counted).
CallGraph* CaptureGraph(uint64_t capture);

uint32_t CallCount(const CallGraph* graph);

// The calls behind the first `calls` were not captured after all.
void DropCalls(CallGraph* graph, uint32_t calls);

// A record of a call that is captured into a graph.
struct CapturedRecord {
  segment::RecordEntry* record;
  CallGraph* graph;  // nullptr: there was no room
};

// Around a call that is being captured into a CUDA graph: it takes no position.
CapturedRecord BeginCaptured(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                             const void* caller, uint64_t capture);
void EndCaptured(const ThreadState* thread, LocalComm* comm, const CallInfo& info,
                 const CapturedRecord& captured, ncclResult_t result);

// Puts a node into the capture by which the GPU says that it has come to, or has done, the newest of
// the communicator's calls. Where people ask for it (ROLLCALL_GRAPH_MARKERS=1).
void MarkCaptured(LocalComm* comm, void* stream, CallGraph* graph, MarkerPoint point);

// What CUDA said. Handles are cudaGraph_t and cudaGraphExec_t, or their twins.
void CaptureBegan();
void CaptureEnded(uint64_t capture, const void* graph);
void GraphCopied(const void* from, const void* to);  // cloned, instantiated, or updated
void GraphJoined(const void* graph, const void* child);
void GraphForgotten(const void* handle);

// The graph behind a handle, where it holds calls; else nullptr.
CallGraph* FindGraph(const void* handle);
const LocalComm* FirstComm(const CallGraph* graph);

// How a launch changed the communicators, for the case that it fails.
struct LaunchedPart {
  uint64_t entered, p2p_entered, signature, recorded;
};
inline constexpr int kGraphParts = 8;  // communicators of one graph that have markers, and can be
                                       // taken back
struct Launched {
  CallGraph* graph;
  LaunchedPart before[kGraphParts];
};

// Around the launch of a graph on a stream that is not captured.
void BeginLaunch(ThreadState* thread, CallGraph* graph, void* stream, Launched* launched);
void EndLaunch(const Launched& launched, void* stream, bool success);

// A launch into a capture: its calls become part of that.
void LaunchIntoCapture(CallGraph* graph, CallGraph* into);

}  // namespace rollcall
