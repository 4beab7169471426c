// SPDX-License-Identifier: Apache-2.0
// Shapes of tensors that the program tells before a call (rollcall.h), each kept once
// in the segment.
//
// FindShape() is for the thread that makes the call, before it: no lock, no allocation. The first one
// of a process makes system calls for room in the file. ForgetShapes() is for the child of a fork.
#pragma once

#include <stdint.h>

#include "interpose/segment.h"

namespace rollcall {

// 1 + the index of the Shape with these sizes and this name of the call ("" or nullptr: none);
// 0: there is no room for one more, no segment yet, or no such shape. Takes no lock; the first call
// makes room in the file.
uint8_t FindShape(int dims, const int64_t* sizes, const char* call = nullptr);
inline constexpr int kNameOnly = segment::kNoSizes - 1;  // as `dims`

// In a child of fork.
void ForgetShapes();

}  // namespace rollcall
