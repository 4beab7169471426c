// SPDX-License-Identifier: Apache-2.0
// What the program says of itself through rollcall.h, whose functions annotations.cc defines.
//
// The program calls those from any thread, also before the segment is made and in processes without
// NCCL: they store words and never wait. What is said before the segment is there waits here.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// What was said before the segment was made.
void CopyAnnotations(segment::Annotations* to);

// Whether what the program says of itself goes to another copy of this library, which was loaded
// before this one: that one records the calls too.
bool AnotherCopyIsFirst();

}  // namespace rollcall
