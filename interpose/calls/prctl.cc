// SPDX-License-Identifier: Apache-2.0
// The wrapper of prctl. By two of its options a thread forbids itself to read the CPU's counter:
// the strict mode of seccomp on x86-64, and PR_SET_TSC. A later read, also by the C library for
// clock_gettime(), would end the process (SIGSEGV), so from then on the library records nothing of
// such a thread. Who makes the system call without the C library's function is not noticed.
//
// Any process may call this function, at any time, also in a signal handler. It makes the system
// call itself, takes no lock, and leaves errno as the call does.
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/real.h"
#include "interpose/record/recording.h"
#include "interpose/recorder.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

// Not in a child of vfork or clone, which has the memory of its parent.
void StopOwnRecording() {
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  const segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr || header->pid != static_cast<int32_t>(syscall(SYS_getpid))) return;
  StopRecording("the program forbids the CPU's counter:");
}

}  // namespace
}  // namespace rollcall

extern "C" ROLLCALL_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long arguments[4];
  for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  // New threads inherit this option, so no thread can be recorded.
  if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV) rollcall::StopOwnRecording();
  const long result =
      syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_STRICT && result == 0) {
    rollcall::this_thread.inside = rollcall::this_thread.locked_in = true;
  }
  return static_cast<int>(result);
}
