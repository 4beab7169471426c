// The life of communicators: their ids, which every rank computes alike without
// talking, and what is noted when they begin and end.
#pragma once

#include "interpose/record.h"

namespace rollcall {

// Binds the handles of communicators whose creation the ending group held.
void BindPending(ThreadState* thread, ncclResult_t result);

}  // namespace rollcall
