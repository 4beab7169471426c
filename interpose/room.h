// SPDX-License-Identifier: Apache-2.0
// How much of a file system segments may take: a rule that the library and whoever asks it for
// stacks share. Pure; measure_room.h looks.
//
// All segments of a folder together hold at most a quarter of what would be free without them. What
// people miss least is given up first, so each use has its share of that quarter: the newest
// communicator still finds a place when long histories have taken what they may. Where NCCL's own
// shared memory is on the same file system, enough stays free for it.
#pragma once

#include <cstdint>

namespace rollcall {

struct Room {
  bool unlimited = false;   // the file system has no size
  uint64_t free_bytes = 0;  // that this user may take
  uint64_t held_bytes = 0;  // by all segments of the folder
  uint64_t keep_bytes = 0;  // to leave free whatever happens
};

// NCCL takes about 33 MB of /dev/shm for the proxy of a communicator; without them its creation
// fails.
inline constexpr uint64_t kNcclBytes = uint64_t{34} << 20;

// What room is wanted for, as the eighths of the quarter up to which it is given.
enum class RoomFor : uint64_t {
  kLongHistories = 4,  // and what is there on request: call sites, shapes
  kShortHistories = 5,
  kPresence = 6,  // communicators without records
  kProcess = 7,   // a process and its first communicators, where others came before and took much
  kStacks = 8,    // taken for moments only
};

// Whether `bytes` more may be taken.
inline bool HasRoom(const Room& room, uint64_t bytes, RoomFor use) {
  if (room.unlimited) return true;
  if (bytes > room.free_bytes || room.free_bytes - bytes < room.keep_bytes) return false;
  const uint64_t quarter = (room.free_bytes + room.held_bytes) / 4;
  return room.held_bytes + bytes <= quarter / 8 * static_cast<uint64_t>(use);
}

}  // namespace rollcall
