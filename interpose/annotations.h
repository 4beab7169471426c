// What the program says of itself through rollcall.h.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// What was said before the segment was made.
void CopyAnnotations(segment::Annotations* to);

// Whether what the program says of itself goes to another copy of this library, which was loaded
// before this one: that one records the calls too.
bool AnotherCopyIsFirst();

}  // namespace rollcall
