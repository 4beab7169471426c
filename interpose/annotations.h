// What the program says of itself through rollcall.h.
#pragma once

#include "interpose/segment.h"

namespace rollcall {

// What was said before the segment was made.
void CopyAnnotations(segment::Annotations* to);

}  // namespace rollcall
