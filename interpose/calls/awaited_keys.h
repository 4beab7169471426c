// SPDX-License-Identifier: Apache-2.0
// Waits for keys of a store, in the segment: which key a thread waits for, and since when.
//
// The wrappers of PyTorch's stores use this. A wait in a store is a call of its own, or part of the
// creation of a group, whose members find each other through the store. Nothing here locks or
// allocates. When all entries for keys are in use, a wait has no key.
#pragma once

#include "interpose/calls/torch_objects.h"
#include "interpose/key_note.h"
#include "interpose/record/exceptions.h"
#include "interpose/recorder.h"
#include "interpose/segment.h"

namespace rollcall {

struct WantedKeys {
  TextView first, last;
  size_t count;
  uint64_t timeout_ms;  // 0 if there is none
};
inline constexpr int64_t kTimeoutOfStore = -1;  // one that the call does not pass

// Whether a wait of this thread is to be recorded. For wrappers, at their start. Inside another
// call it counts only where that call can throw: it is the creation of a group.
__attribute__((always_inline)) inline bool RecordsStoreWait() {
  if (!IsInsideCall()) return Recording();
  return open_call != nullptr && !IsInner(open_call) && this_thread.blocked != nullptr;
}

// Marks this thread as waiting, until this object goes out of scope or the real function throws.
class StoreWait {
 public:
  explicit StoreWait(const WantedKeys& keys);
  ~StoreWait();
  StoreWait(const StoreWait&) = delete;
  StoreWait& operator=(const StoreWait&) = delete;

 private:
  MayThrow may_throw_;
};

// Notes, in a process without a segment, the key on this thread's stack, until this object goes out
// of scope. A note that an exception leaves behind lies in no frame of this library any more.
class KeyOnStack {
 public:
  explicit KeyOnStack(const WantedKeys& keys);
  ~KeyOnStack();
  KeyOnStack(const KeyOnStack&) = delete;
  KeyOnStack& operator=(const KeyOnStack&) = delete;

 private:
  KeyNote note_;
};

}  // namespace rollcall
