// SPDX-License-Identifier: Apache-2.0
// The functions in which threads wait, and what for: wait_frames.def has the table. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {
namespace waits {

// A set of kinds, as one function may be a wait of several.
using Kinds = uint64_t;

enum Kind : Kinds {
  // A loop of a server. Of Python: a function with this name in a module of this name; else the
  // whole name.
  kServerLoop = 1 << 0,
  kServerOfThreads = 1 << 1,  // such a loop of a program that starts the threads for its requests
  kRequest = 1 << 2,          // a part of the name: the thread handles a request
  kPause = 1 << 3,            // the last word of a function of Python that only waits
  kKernelPause = 1 << 4,      // a part of the name of a function of C that only waits
  kInput = 1 << 5,            // the whole name: waits for work that another process brings
  kLoopInput = 1 << 6,        // the last words: how a loop may wait for what comes next
  // A wait for a child in a library of Python: in this file, in a function whose last word this is;
  // empty means any.
  kChildOfLibrary = 1 << 7,
  kChildOfCode = 1 << 8,       // the whole name of a function of C, without _ and libc_ before it
  kChild = 1 << 9,             // a part of the name, as are all kinds below without another note
  kPool = 1 << 10,             // of processes
  kThreadOfLibrary = 1 << 11,  // the last word of a function of a library of Python
  kThreadOfCode = 1 << 12,
  kThread = 1 << 13,
  kInterpreter = 1 << 14,  // Python's global lock
  kStore = 1 << 15,        // other ranks, before NCCL is used
  kStoreId = 1 << 16,      // the id of a communicator, which another rank makes
  kOtherLibrary = 1 << 17,
  kGpu = 1 << 18,
  kStorage = 1 << 19,
  kStorageInKernel = 1 << 20,  // a part of the kernel's name for the wait
  kFileLock = 1 << 21,
  kTerminal = 1 << 22,
  kSleep = 1 << 23,
  kInputInKernel = 1 << 24,  // a part of the kernel's name for the wait, for a socket or a pipe
  kSignalHandler = 1 << 25,  // no wait: the way into a handler, or the name of one
  // A part of the name, blanks around it: a client that waits for the answer to what it has asked.
  kAnswer = 1 << 26,
  kHandedOut = 1 << 27,       // what one rank hands out to others, as a driver does
  kPipeInKernel = 1 << 28,    // a part of the kernel's name for the wait
  kSocketInKernel = 1 << 29,  // the same; a terminal may have such a name, too
  kCollective = 1 << 30,      // a part of the name: a library of collectives
  kStage = 1ULL << 31,        // no wait, a part of the name: a stage works on what another one gave
  kMessage = 1ULL << 32,  // a part of the name: a send or a receive of torch.distributed on gloo
};

}  // namespace waits

struct WaitFrame {
  waits::Kinds kinds = 0;
  absl::string_view where;
  absl::string_view name;
};

// The rows of one kind, in order.
const std::vector<WaitFrame>& WaitFramesOf(waits::Kind kind);

// Whether the text has the name of a row of this kind as a part.
bool HasWait(absl::string_view text, waits::Kind kind);

// Whether the stack waits for a key of a store, also within the first call of a group.
bool IsAtAStore(absl::string_view functions);

// Whether it is the name of a row of this kind.
bool IsWait(absl::string_view name, waits::Kind kind);

}  // namespace rollcall
