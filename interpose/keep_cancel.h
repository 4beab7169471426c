// SPDX-License-Identifier: Apache-2.0
// Holds off the cancellation of this thread for the time of a scope. The files that we open are
// points of cancellation where the program has none, and a thread that ends while it makes the
// segment would leave it half made.
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
