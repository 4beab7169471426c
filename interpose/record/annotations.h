// SPDX-License-Identifier: Apache-2.0
// The program's annotations (rollcall.h): its step and its phase. annotations.cc defines the
// functions of rollcall.h.
//
// The program may call those functions from any thread, before the segment exists, and in a process
// without NCCL. They store words and never wait. Until the segment exists, this file keeps the
// annotations.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// Copies the annotations that the program has made so far to `to`.
void CopyAnnotations(segment::Annotations* to);

// Whether another copy of this library, loaded before this one, receives the annotations. That copy
// records the calls too.
bool AnotherCopyIsFirst();

}  // namespace rollcall
