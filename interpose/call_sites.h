// SPDX-License-Identifier: Apache-2.0
// Which line of Python made a call (ROLLCALL_CALL_SITES=1): the innermost frame of
// this thread that is no library's, so "train.py:57" and not a line of torch.
//
// Read from the interpreter's memory, never by running it. A thread inside a call
// keeps its own frames, with or without Python's lock, so they can be read plainly;
// that they lie where they are believed to is checked once, by fault-safe copies,
// before anything is read. Each place is described in the segment when it is first
// seen; after that it is found by a hash.
//
// CurrentSite() is for the hot path: one load where call sites are off, no lock or system call where
// they are on. StartCallSites() makes system calls and calls the loader.
#pragma once

#include <stdint.h>

#include <atomic>

namespace rollcall {

extern std::atomic<bool> has_call_sites;

// Where a communicator is created; until it has found a Python that it knows.
void StartCallSites();
// In a child of fork.
void StopCallSites();

// 1 + the index of the Site that this thread calls from; 0: not known.
uint64_t FindCurrentSite();

inline uint64_t CurrentSite() {
  return __builtin_expect(has_call_sites.load(std::memory_order_acquire), 0) ? FindCurrentSite()
                                                                             : 0;
}

}  // namespace rollcall
