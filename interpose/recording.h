// SPDX-License-Identifier: Apache-2.0
// When this process begins to record, and when it stops: makes the segment at the first call that
// matters, forgets it in a child of fork.
//
// For calls that create communicators or open groups, which are slow anyway, from any thread. A
// thread that comes while another one makes the segment waits, at most 50 ms. No function here throws
// or changes errno. Where the segment cannot be made, one line says so on stderr, and nothing is
// recorded. The handlers of fork (recording.cc) run in the thread that forks.
#pragma once

namespace rollcall {

// Makes the segment unless it is there, or was tried in vain. True when recording.
bool StartRecording();

// Nothing more is recorded. Threads that are within a call go on writing where nobody reads.
void StopRecording();

}  // namespace rollcall
