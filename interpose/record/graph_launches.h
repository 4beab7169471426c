// SPDX-License-Identifier: Apache-2.0
// Writes the records of calls in CUDA graphs: at their capture, and at each launch of the graph.
//
// A captured call takes no position. A launch takes the positions of all calls that the graph holds
// (captured_graphs.h), in the order of their capture, as if the program made the calls then.
//
// Wrappers use this, on the thread that captures or launches. A launch allocates nothing, and makes
// no system calls except the driver's for markers. Nothing here waits, throws or changes errno.
#pragma once

#include "interpose/record/call_record.h"
#include "interpose/record/captured_graphs.h"
#include "interpose/record/markers.h"

namespace rollcall {

// The record of a captured call.
struct CapturedRecord {
  segment::RecordEntry* record;
  CallGraph* graph;  // nullptr if there was no room
};

// Begin and end a call that is captured into a CUDA graph. The call takes no position.
CapturedRecord BeginCaptured(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                             const void* caller, uint64_t capture);
void EndCaptured(const ThreadState* thread, LocalComm* comm, const CallInfo& info,
                 const CapturedRecord& captured, ncclResult_t result);

// With ROLLCALL_GRAPH_MARKERS=1: adds a node to the capture by which the GPU writes that it has
// reached (kStarted) or finished (kFinished) the newest captured call of the communicator.
void MarkCaptured(LocalComm* comm, void* stream, CallGraph* graph, MarkerPoint point);

// The state of a communicator before a launch, for EndLaunch() to restore if the launch fails.
struct LaunchedPart {
  uint64_t entered, p2p_entered, signature, recorded;
};
struct Launched {
  CallGraph* graph;
  LaunchedPart before[kGraphParts];
};

// Begin and end the launch of a graph on a stream that is not being captured.
void BeginLaunch(ThreadState* thread, CallGraph* graph, void* stream, Launched* launched);
void EndLaunch(const Launched& launched, void* stream, bool success);

// Records a launch into a capture, which adds the calls of `graph` to `into`.
void LaunchIntoCapture(CallGraph* graph, CallGraph* into);

}  // namespace rollcall
