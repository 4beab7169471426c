// Shapes of tensors that the program tells before a call (rollcall.h), each kept once
// in the segment.
#pragma once

#include <stdint.h>

namespace rollcall {

// 1 + the index of the Shape with these sizes; 0: there is no room for one more, no
// segment yet, or no such shape. Takes no lock; the first call makes room in the file.
uint8_t FindShape(int dims, const int64_t* sizes);

// In a child of fork.
void ForgetShapes();

}  // namespace rollcall
