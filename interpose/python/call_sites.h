// SPDX-License-Identifier: Apache-2.0
// Finds the line of Python that made a call (ROLLCALL_CALL_SITES=1): the innermost frame of this
// thread that is not in a library, so "train.py:57" and not a line of torch.
//
// Reads the interpreter's memory and never runs Python. A thread inside a call keeps its own
// frames, with or without Python's lock, so plain reads are safe. Before the first of them,
// StartCallSites() checks the layout once with copies that cannot fault. The segment describes each
// site when a call from there is first seen; later calls find it by a hash.
//
// CurrentSite() is for the hot path: one load if call sites are off; no lock and no system call if
// they are on. StartCallSites() makes system calls and calls the loader.
#pragma once

#include <stdint.h>

#include <atomic>

namespace rollcall {

extern std::atomic<bool> has_call_sites;

// Called for each new communicator, until it finds a supported Python.
void StartCallSites();
// Forgets all sites, in a child of fork.
void StopCallSites();

// 1 + the index of the Site that this thread calls from; 0 if unknown.
uint64_t FindCurrentSite();

inline uint64_t CurrentSite() {
  return __builtin_expect(has_call_sites.load(std::memory_order_acquire), 0) ? FindCurrentSite()
                                                                             : 0;
}

}  // namespace rollcall
