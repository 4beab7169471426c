// SPDX-License-Identifier: Apache-2.0
// Writes the library's few lines to stderr.
//
// In any context, also signal handlers: no allocation, no lock, no stdio, and never a wait.
#pragma once

namespace rollcall {

// Writes `line`, with '?' for each control character except the final line break. Writes nothing if
// that would block or send the process a signal: a full pipe, a pipe without a reader, a file at
// its size limit, a terminal of another process group. For signal handlers too.
void WriteStderrLine(const char* line);

}  // namespace rollcall
