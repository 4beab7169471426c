// SPDX-License-Identifier: Apache-2.0
// The facts about this process that its segment's header holds: who it is, what it runs, its place in
// the job, its clock.
//
// Called once a segment, by the thread that makes it, before others know it. Reads /proc, /sys and
// the environment, allocates nothing, and leaves a fact empty that it cannot find out.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// When this process started, in clock ticks since boot; 0: not known.
uint64_t OwnStartTime();

// The CPU's counter where the CPU and the kernel both trust it.
segment::ClockSource ChooseClock();

// Fills in all but the magic number and what only the segment's file knows. `recorder.clock` is set.
void FillHeader(segment::SegmentHeader* header, uint64_t start_time);

}  // namespace rollcall
