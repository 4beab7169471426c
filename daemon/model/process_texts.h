// SPDX-License-Identifier: Apache-2.0
// The memory of what a process may choose freely: its texts and its list of blocking calls.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// Bytes on the heap, without the allocator's own.
size_t HeapBytes(const std::string& text);

// Likewise, of all texts and the list of blocking calls of a process. Leaves out the host, by which
// people find the process, and the sites, which have a limit of their own.
size_t TextBytes(const Process& process);

// Gives back the memory of earlier, longer texts and lists.
void ShrinkTexts(Process* process);

// What DropTexts() dropped.
struct DroppedTexts {
  size_t texts = 0;
  bool blocked_calls = false;
};

// Drops the longest texts of the process, and then its blocking calls, until TextBytes() is at most
// `most`.
DroppedTexts DropTexts(size_t most, Process* process);

}  // namespace rollcall
