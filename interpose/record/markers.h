// SPDX-License-Identifier: Apache-2.0
// Markers: words in the segment that the GPU itself writes, and that show how far a communicator's
// calls have come. Another process can read them with a plain load, whatever the driver, the GIL or
// any lock is doing.
//
// Two cuStreamWriteValue64 operations on the caller's stream bracket a call (or the outermost end
// of a group). The library finds the driver's functions at run time. Without them, or after the
// first error from one of them, the communicator has no markers, and the daemon has less evidence.
// The library places nothing on a stream that is being captured, except with
// ROLLCALL_GRAPH_MARKERS=1.
//
// For wrappers, on the thread that makes the call, inside it: these functions call the driver,
// which may take its own locks. They keep errno and the current context. Not for signal handlers,
// nor for a child of fork before it has a communicator of its own.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// Registers the communicator's marker page with CUDA. Called once, after the creation of the
// communicator, on a thread whose current context is the communicator's.
void EnableMarkers(LocalComm* comm);

// As EnableMarkers(), for a communicator whose device may not be the current one: created by
// CommInitAll, or in a group. Uses the primary context of the device, as NCCL does.
void EnableMarkersOnDevice(LocalComm* comm);

enum class MarkerPoint { kStarted, kFinished };

// Asks the GPU to record that `stream` has reached this point. `collectives` and `p2p` count the
// calls up to it (0 leaves that word unchanged).
void PlaceMarkers(LocalComm* comm, void* stream, MarkerPoint point, uint64_t collectives,
                  uint64_t p2p);

// Place the markers before a call or the end of a group, and after NCCL has launched it (late.h).
void MarkBefore(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p);
void MarkAfter(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p);

// Whether the GPU has written all markers placed so far, so that no late write can come. False if
// that cannot be known: two streams of one lane may run in any order.
bool MarkersHaveLanded(const LocalComm* comm);

// The communicator has no markers from now on.
void SwitchMarkersOff(LocalComm* comm);

inline bool HasMarkers(const LocalComm* comm) { return comm->marker_base != 0; }

// Captures that have begun and not ended, as far as the wrappers have seen.
extern std::atomic<uint32_t> captures_open;

// What FindCapture() returns besides the id of a capture.
inline constexpr uint64_t kOffLimits = 1;  // a capture forbids calls on the stream, or may do so
inline constexpr uint64_t kUnknownCapture = UINT64_MAX;  // captured, by a capture without an id

// Asks the driver which capture the stream is in, without disturbing the capture, or 0.
uint64_t QueryCapture(const LocalComm* comm, void* stream);

// Whether a call on `comm` has to query the capture of its stream.
inline bool MayBeCaptured(const LocalComm* comm) {
  return HasMarkers(comm) || captures_open.load(std::memory_order_relaxed) != 0;
}

inline uint64_t FindCapture(const LocalComm* comm, void* stream) {
  return MayBeCaptured(comm) ? QueryCapture(comm, stream) : 0;
}

// Adds a node to the graph that the stream's capture builds. When the GPU reaches the node, it sets
// the words of this lane (segment::GraphLane); 0 leaves the word unchanged.
void PlaceGraphMarker(LocalComm* comm, void* stream, uint32_t lane, uint64_t reached,
                      uint64_t p2p_reached);

// Resets the lane and sets its base, before the launch of a graph that holds such nodes.
void PlaceGraphBase(LocalComm* comm, void* stream, uint32_t lane, uint64_t base, uint64_t p2p_base);

}  // namespace rollcall
