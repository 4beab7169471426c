// SPDX-License-Identifier: Apache-2.0
// Disables the cancellation of this thread for the time of a scope. The library opens files where
// the program has no cancellation point. A thread that is cancelled while it makes the segment
// would leave the segment incomplete, and one that is cancelled in the loader would keep the loader's
// lock, for which all other threads wait.
#pragma once

#include <pthread.h>

namespace rollcall {

class KeepCancel {
 public:
  KeepCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~KeepCancel() { pthread_setcancelstate(before_, nullptr); }
  KeepCancel(const KeepCancel&) = delete;
  KeepCancel& operator=(const KeepCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace rollcall
