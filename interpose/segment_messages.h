// SPDX-License-Identifier: Apache-2.0
// The part of a segment that counts messages of MPI, and those of gloo with a tag or from any rank.
// It lies where other communicators have their markers (segment.h): those of MPI and gloo have
// none. Its flag is kFlagMessages.
//
// Counts, not records: a program may send a million small messages, which would push the
// collectives out of the ring. The nth message that a rank sends to a peer with a tag is the nth
// one that the peer receives from it with that tag, so two counts show whether the other end of a
// message was issued.
#pragma once

#include "interpose/segment.h"

namespace rollcall::segment {

inline constexpr int32_t kAnySource = -1;
inline constexpr int32_t kAnyTag = -1;
inline constexpr int32_t kMixedTags = -2;  // of the tags of a peer that have no entry of their own

// The messages with one peer and one tag. An entry with kAnySource or kAnyTag is of receives for
// which MPI chooses the source or the tag: `receives` are those that are open. Once one is done, it
// counts in the entry of its source and tag.
struct MessageEntry {
  Word key;  // MessageKey(); 0 if the entry is free
  // How many the rank has issued, modulo 2^32.
  HalfWord sends, receives;
  // How many of them must be done for a thread to go on; 0 if no thread waits for one.
  HalfWord sends_awaited, receives_awaited;
};
static_assert(sizeof(MessageEntry) == 24);

// Of BlockedEntry::reserved_words, for a thread that tests requests in a loop: how often in vain,
// and the ticks that it has spent in these tests. `since` is the first of them, and its `op` a
// test.
inline constexpr int kPollsWord = 2;
inline constexpr int kPollTicksWord = 3;

inline constexpr uint32_t kMessageEntries = 170;
// From this many used entries on, further tags of a peer share one entry; and from this many on,
// further peers have none. A table that is nearly full is slow to search.
inline constexpr uint32_t kMessageTags = 112;
inline constexpr uint32_t kMessagePeers = 144;

struct MessageTable {
  HalfWord used;       // entries
  HalfWord lost;       // messages without an entry
  HalfWord cancelled;  // nonzero if a receive may have been cancelled; it counts nevertheless
  HalfWord reserved;
  MessageEntry entries[kMessageEntries];
};
static_assert(sizeof(MessageTable) == kRingOffset - kMarkersOffset);

// Never 0, because a peer counts from 0, and kAnySource is 1 below.
constexpr uint64_t MessageKey(int32_t peer, int32_t tag) {
  return uint64_t{static_cast<uint32_t>(peer) + 2} << 32 | static_cast<uint32_t>(tag);
}
constexpr int32_t PeerOf(uint64_t key) {
  return static_cast<int32_t>(static_cast<uint32_t>(key >> 32) - 2);
}
constexpr int32_t TagOf(uint64_t key) { return static_cast<int32_t>(key & 0xffffffff); }

}  // namespace rollcall::segment
