// SPDX-License-Identifier: Apache-2.0
// How much of a file system segments may take. The library and the agent, when it requests stacks,
// share this rule. Pure; measure_room.h measures.
//
// All segments of a folder together hold at most a quarter of what would be free without them. Each
// use has a share of that quarter, so that the least useful parts are left out first: the newest
// communicator still gets room when long histories have taken their share. If NCCL's shared memory
// is on the same file system, enough stays free for NCCL.
#pragma once

#include <cstdint>

namespace rollcall {

struct Room {
  bool unlimited = false;   // the file system has no size
  uint64_t free_bytes = 0;  // that this user may take
  uint64_t held_bytes = 0;  // taken by all segments of the folder
  uint64_t keep_bytes = 0;  // to leave free in any case
};

// NCCL takes about 33 MB of /dev/shm for the proxy of a communicator. Without them it cannot create
// the communicator.
inline constexpr uint64_t kNcclBytes = uint64_t{34} << 20;

// A use of room. Its value is its share of the quarter, in eighths.
enum class RoomFor : uint64_t {
  kLongHistories = 4,  // and optional parts: call sites, shapes, states of the network
  kShortHistories = 5,
  kPresence = 6,  // communicators without records
  kProcess = 7,   // a process and its first communicators, when earlier ones took much
  kStacks = 8,    // held for moments only
};

// Whether the segments may take `bytes` more.
inline bool HasRoom(const Room& room, uint64_t bytes, RoomFor use) {
  if (room.unlimited) return true;
  if (bytes > room.free_bytes || room.free_bytes - bytes < room.keep_bytes) return false;
  const uint64_t quarter = (room.free_bytes + room.held_bytes) / 4;
  return room.held_bytes + bytes <= quarter / 8 * static_cast<uint64_t>(use);
}

}  // namespace rollcall
