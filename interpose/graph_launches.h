// SPDX-License-Identifier: Apache-2.0
// Records of calls in CUDA graphs: when they are captured, and when the graph is launched.
//
// A call takes no position when it is captured. A launch takes the positions of all the calls that
// the graph holds (captured_graphs.h), in the order in which they were captured, as if they were made
// there.
//
// For wrappers, on the thread that captures or launches. A launch allocates nothing and makes no
// system call but the driver's for markers; nothing here waits, throws or changes errno.
#pragma once

#include "interpose/call_record.h"
#include "interpose/captured_graphs.h"
#include "interpose/markers.h"

namespace rollcall {

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

// How a launch changed the communicators, for the case that it fails.
struct LaunchedPart {
  uint64_t entered, p2p_entered, signature, recorded;
};
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
