// SPDX-License-Identifier: Apache-2.0
// The ids of communicators that ranks make from another one. Every rank computes the same id
// without communicating; a reader computes them to find out what a rank meant.
#pragma once

#include <cstdint>

#include "interpose/segment.h"

namespace rollcall::segment {

// Kinds of children of a communicator. Each kind has its own ids.
inline constexpr uint64_t kSplit = 0x73706c6974000000;
inline constexpr uint64_t kShrink = 0x736872696e6b0000;

// The id of the parent's nth child, counted from 1.
constexpr uint64_t ChildId(uint64_t parent, uint64_t kind, uint32_t child) {
  return Mix(Mix(kind, parent), child);
}

// What an excluded rank adds to the hash of a shrink's excluded ranks. The hash is a sum: it does
// not depend on their order.
constexpr uint64_t ExclusionTerm(int32_t rank) {
  return Mix(kShrink, static_cast<uint64_t>(rank) + 1);
}

// The id of a shrunk communicator. `shrink`: its ChildId(); `excluded`: the sum of the terms.
constexpr uint64_t ShrunkId(uint64_t shrink, uint64_t excluded) { return Mix(shrink, excluded); }

}  // namespace rollcall::segment
