// SPDX-License-Identifier: Apache-2.0
// Restores errno at the end of a scope, so that the program never sees a value of the library's.
#pragma once

#include <errno.h>

namespace rollcall {

class KeepErrno {
 public:
  KeepErrno() = default;
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int saved_ = errno;
};

}  // namespace rollcall
