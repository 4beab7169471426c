// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the segment's words.
//
// The whole library uses this, in any context: plain atomic accesses, no system call, no lock.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// A reader that sees the new value sees everything written before it.
inline void Raise(segment::Word* word, uint64_t value) {
  word->store(value, std::memory_order_release);
}
inline uint64_t Get(const segment::Word& word) { return word.load(std::memory_order_relaxed); }

}  // namespace rollcall
