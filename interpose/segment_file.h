// SPDX-License-Identifier: Apache-2.0
// The file of this process's segment: its name, its room, its proof of life.
//
// System calls only, and only where communicators are created. What goes wrong is said in one line
// on stderr, the first time, and never changes what the job does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "interpose/room.h"

namespace rollcall {

struct SegmentFile {
  void* memory = nullptr;      // the mapping; nullptr: there is none (said)
  bool life_lock = false;      // held until the process ends
  uint64_t pid_namespace = 0;  // inode; 0: not known
};

// Makes and maps the file, with room for the header. In the folder ROLLCALL_DIR, or
// /dev/shm/rollcall-<uid>, which is made if need be.
SegmentFile MakeSegmentFile(uint64_t start_time);

const char* SegmentPath();

// A part of the segment, and what it is for.
struct Wish {
  size_t begin, end;
  RoomFor use;
};

// Takes room in the file for the first of these that there is room for: its index; -1: for none.
int ReserveOneOf(const Wish* wishes, int count);

// Room for these bytes, which people asked for; false: there is none.
bool ReserveInSegment(size_t begin, size_t end);

// Whether somebody has cut the file shorter than what it had room for: our next write there would
// end the process (SIGBUS).
bool SegmentIsCutShort();

// Puts memory of nobody else's in the place of the mapping: who still writes there does no harm.
// The file no longer counts as a segment, since it would tell old things as if they were new.
void GiveUpSegmentFile(void* memory);

// Changes when a file begins to be made, and when that is over.
uint16_t SegmentMakings();

// In a child of fork: the same, but the file stays its parent's. Of that the child keeps neither
// memory nor descriptor, whatever the parent's threads were about. `makings_before_fork`: what
// SegmentMakings() said then.
void ForgetSegmentFile(uint16_t makings_before_fork);

// One line in all: "shorter histories" for want of room; or with another reason.
void SayLess(const char* what, const char* reason = nullptr);

}  // namespace rollcall
