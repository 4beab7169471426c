// Words that the GPU itself writes: how far a communicator's calls have come,
// readable by another process with a plain load, whatever the driver, the GIL or
// any lock is doing.
//
// Two cuStreamWriteValue64 operations on the caller's stream bracket a call (or
// the outermost end of a group). The driver's functions are found at run time;
// without them, and after the first error from any of them, the communicator
// goes on without markers and everything else works with less evidence. Nothing
// is placed on a stream that is being captured.
#pragma once

#include "interpose/writer.h"

namespace rollcall {

// Registers the communicator's marker page with CUDA. Called once, when the
// communicator has been created, on a thread whose current context is its own.
void EnableMarkers(LocalComm* comm);

// The same for a communicator that was made for another device than the current one, perhaps:
// by CommInitAll, or in a group. In its device's primary context, where NCCL lives.
void EnableMarkersOfDevice(LocalComm* comm);

enum class MarkerPoint { kStarted, kFinished };

// Asks the GPU to note that `stream` has come this far: `collectives` and `p2p`
// count the calls covered (0: leave that word alone).
void PlaceMarkers(LocalComm* comm, void* stream, MarkerPoint point, uint64_t collectives,
                  uint64_t p2p);

// Whether the stream is being captured, as far as the driver says without
// disturbing the capture. Only asked where markers are in use.
bool IsCapturing(const LocalComm* comm, void* stream);

inline bool HasMarkers(const LocalComm* comm) { return comm->marker_base != 0; }

}  // namespace rollcall
