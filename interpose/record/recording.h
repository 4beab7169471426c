// SPDX-License-Identifier: Apache-2.0
// Starts and stops recording in this process: makes the segment at the first call that needs it,
// and forgets it in a child of fork.
//
// Calls that create communicators or open groups use this, from any thread; they are not on the hot
// path. While one thread makes the segment, another thread that needs it waits, at most 50 ms. No
// function here throws or changes errno. If the library cannot make the segment, it writes one line
// to stderr and records nothing. The fork handlers (recording.cc) run in the thread that forks.
#pragma once

namespace rollcall {

// Makes the segment, unless it exists or an earlier attempt failed. True if recording is on.
bool StartRecording();

// Stops recording, and reports why. Also for the handler of a fault in the segment. Threads inside
// a call go on writing, to memory without a reader.
void StopRecording(const char* why);

}  // namespace rollcall
