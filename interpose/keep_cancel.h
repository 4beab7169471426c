// SPDX-License-Identifier: Apache-2.0
// Disables the cancellation of this thread for the time of a scope. The library opens files where
// the program has no cancellation point. A thread that is cancelled while it makes the segment
// would leave the segment incomplete, and one that is cancelled in the loader would keep the
// loader's lock, for which all other threads wait.
//
// It also makes cancellation deferred. glibc 2.36 decides in the thread that cancels whether this
// one may be cancelled, and then sends it a signal. The handler acts on the cancellation type alone
// (nptl/pthread_cancel.c, sigcancel_handler), so a signal that arrives late cancels a thread that
// has disabled cancellation meanwhile.
#pragma once

#include <pthread.h>

namespace rollcall {

class KeepCancel {
 public:
  KeepCancel() {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_);
  }
  // The thread may end in the last line, at a cancellation of the time of the scope.
  ~KeepCancel() {
    pthread_setcancelstate(state_, nullptr);
    pthread_setcanceltype(type_, nullptr);
  }
  KeepCancel(const KeepCancel&) = delete;
  KeepCancel& operator=(const KeepCancel&) = delete;

 private:
  int type_ = PTHREAD_CANCEL_DEFERRED;
  int state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace rollcall
