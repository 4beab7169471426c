// SPDX-License-Identifier: Apache-2.0
// The shapes of tensors that the program gives before a call (rollcall.h). The segment holds each
// shape once.
//
// FindShape() is for the thread that makes the call, before it: no lock, no allocation. The first
// call in a process makes system calls for room in the file. The child of a fork calls
// ForgetShapes().
#pragma once

#include <stdint.h>

#include "interpose/segment.h"

namespace rollcall {

// 1 + the index of the Shape with these sizes and this name of the call (empty or nullptr if none),
// which it adds if necessary. 0 if there is no room for one more, no segment yet, or the shape is
// invalid.
uint8_t FindShape(int dims, const int64_t* sizes, const char* call = nullptr);
inline constexpr int kNameOnly = segment::kNoSizes - 1;  // as `dims`

// Forgets all shapes, in a child of fork.
void ForgetShapes();

}  // namespace rollcall
