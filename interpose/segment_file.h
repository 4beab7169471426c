// SPDX-License-Identifier: Apache-2.0
// The file of this process's segment: its name, its room, its life lock.
//
// Uses only system calls, and only where communicators are created. The first error writes one line
// to stderr. No error changes what the job does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "interpose/room.h"

namespace rollcall {

struct SegmentFile {
  void* memory = nullptr;      // the segment's place; nullptr if there is no segment (reported)
  bool life_lock = false;      // held until the process ends
  uint64_t pid_namespace = 0;  // inode; 0 if unknown
};

// Makes the file, with room for the header, and maps what it has, in the folder ROLLCALL_DIR or
// /dev/shm/rollcall-<uid>. Makes the folder if necessary.
SegmentFile MakeSegmentFile(uint64_t start_time);

// Whether this process made the file. False in a child that has a copy of the maker's memory.
// `maker`: the maker's pid. Makes no system call (Linux before 4.14: getpid()), because the program
// may have forbidden it since.
bool MadeSegmentFile(int32_t maker);

const char* SegmentPath();

// A part of the segment, in bytes, and the use of its room.
struct SegmentPart {
  size_t begin, end;
  RoomFor use;
};

// Reserves and maps the first of these parts that there is room for. Returns its index; -1 if none
// fits.
int ReserveFirstFit(const SegmentPart* parts, int count);

// Reserves and maps the bytes of an optional part. False if there is no room.
bool ReserveInSegment(size_t begin, size_t end);

// Whether another process has truncated the file below what it reserved. Our next write there would
// end the process (SIGBUS).
bool SegmentIsCutShort();

// Whether `address` lies in the segment. Puts private memory in the segment's place then. False if
// it does not, or there is no memory. The handler of a fault there calls this.
bool CoverSegment(const void* address);

// Replaces the mapping by private memory, so that threads that still write there do no harm. Erases
// the file's magic number: its facts are out of date, and a reader must not take them as current.
// Reports `why`.
void GiveUpSegmentFile(void* memory, const char* why);

// A counter that changes when this process begins and when it ends to make the file; odd in
// between.
uint16_t SegmentFileEpoch();

// Replaces the mapping in a child of fork. The file stays the parent's. The child keeps neither its
// memory nor its descriptor, whatever the parent's threads did. `epoch_before_fork`:
// SegmentFileEpoch() before the fork.
void ForgetSegmentFile(uint16_t epoch_before_fork);

// Reports, once in a process, that it is not recorded.
void ReportNotRecording(const char* why, const char* detail);

// Reports, once in a process, what the recording lacks: `what` ("shorter histories"), for lack of
// room or for another `reason`.
void ReportPartialRecording(const char* what, const char* reason = nullptr);

}  // namespace rollcall
