// SPDX-License-Identifier: Apache-2.0
// The few lines that the library writes to stderr.
//
// From any state, signal handlers too: no allocation, no lock, no stdio, and never a wait.
#pragma once

namespace rollcall {

// Writes `line` to stderr, with '?' for each control character but the break at its end. Says
// nothing where that would wait, or send the process a signal: a full pipe, a pipe without a
// reader, a file at its limit, a terminal of other processes. For signal handlers too.
void SayLine(const char* line);

}  // namespace rollcall
