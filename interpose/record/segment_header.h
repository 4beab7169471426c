// SPDX-License-Identifier: Apache-2.0
// Fills in the facts about this process in the header of its segment: its identity, its command,
// its place in the job, its clock.
//
// Called once for a segment, by the thread that makes it, before other threads use it. Reads /proc,
// /sys and the environment, and allocates nothing. A fact that it cannot find out stays empty.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// When this process started, in clock ticks since boot; 0 if unknown.
uint64_t OwnStartTime();

// The CPU's counter, if both the CPU and the kernel trust it.
segment::ClockSource ChooseClock();

// Fills in all fields except the magic number and those of the segment's file. Uses recorder.clock.
void FillHeader(segment::SegmentHeader* header, uint64_t start_time);

}  // namespace rollcall
