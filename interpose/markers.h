// SPDX-License-Identifier: Apache-2.0
// Words that the GPU itself writes: how far a communicator's calls have come,
// readable by another process with a plain load, whatever the driver, the GIL or
// any lock is doing.
//
// Two cuStreamWriteValue64 operations on the caller's stream bracket a call (or
// the outermost end of a group). The driver's functions are found at run time;
// without them, and after the first error from any of them, the communicator
// goes on without markers and everything else works with less evidence. Nothing is
// placed on a stream that is being captured, but where people ask for it.
//
// For wrappers, on the thread that makes the call, inside it: these functions call the driver, which
// may take its own locks. They keep errno and the current context. Never from a signal handler, nor
// in a child of fork before it has a communicator of its own.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// Registers the communicator's marker page with CUDA. Called once, when the
// communicator has been created, on a thread whose current context is its own.
void EnableMarkers(LocalComm* comm);

// The same for a communicator that was made for another device than the current one, perhaps:
// by CommInitAll, or in a group. In its device's primary context, where NCCL lives.
void EnableMarkersOfDevice(LocalComm* comm);

enum class MarkerPoint { kStarted, kFinished };

// Asks the GPU to record that `stream` has come this far: `collectives` and `p2p`
// count the calls covered (0: leave that word alone).
void PlaceMarkers(LocalComm* comm, void* stream, MarkerPoint point, uint64_t collectives,
                  uint64_t p2p);

// The same around a call, or the end of a group; MarkAfter() when it is launched (late.h).
void MarkBefore(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p);
void MarkAfter(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p);

// Whether the GPU has written all that it was told to, so that nothing comes late. False where that
// cannot be known: two streams of one lane need not be in order.
bool MarkersHaveLanded(const LocalComm* comm);

// The communicator goes on without.
void SwitchMarkersOff(LocalComm* comm);

inline bool HasMarkers(const LocalComm* comm) { return comm->marker_base != 0; }

// Captures that were seen to begin and not to end.
extern std::atomic<uint32_t> captures_open;

// What FindCapture() says besides the id of a capture.
inline constexpr uint64_t kOffLimits = 1;  // the stream must be left alone, or so it seems
inline constexpr uint64_t kUnknownCapture = UINT64_MAX;

// The capture that the stream is in, as far as the driver says without disturbing it; 0: none.
uint64_t AskCapture(const LocalComm* comm, void* stream);

// Whether that has to be asked for a call on `comm`.
inline bool MayBeCaptured(const LocalComm* comm) {
  return HasMarkers(comm) || captures_open.load(std::memory_order_relaxed) != 0;
}

inline uint64_t FindCapture(const LocalComm* comm, void* stream) {
  return MayBeCaptured(comm) ? AskCapture(comm, stream) : 0;
}

// Puts a node into the graph that the stream is being captured into: the GPU then sets the words of
// this lane (segment::GraphLane), 0: leaves it alone, whenever it comes to it.
void PlaceGraphMarker(LocalComm* comm, void* stream, uint32_t lane, uint64_t reached,
                      uint64_t p2p_reached);

// Before the launch of a graph that holds such nodes.
void PlaceGraphBase(LocalComm* comm, void* stream, uint32_t lane, uint64_t base, uint64_t p2p_base);

}  // namespace rollcall
