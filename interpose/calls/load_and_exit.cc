// SPDX-License-Identifier: Apache-2.0
// What the library does when the loader loads it and when the process exits normally.
//
// A constructor and a destructor. They run in every process that loads the library, also without
// NCCL. There the constructor reads one environment variable, and the destructor one word. They
// never call the loader, allocate or wait.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_errno.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

// Shows `rollcall run` that the loader loaded the library into the job: updates the time of the
// file that ROLLCALL_LOADED names. Without that variable it does nothing else.
__attribute__((constructor)) void TouchLoadedFile() {
  // Not for a setuid program, which /etc/ld.so.preload gives the library, too: its user chose the
  // name.
  const char* file = secure_getenv("ROLLCALL_LOADED");
  if (file == nullptr) return;
  const KeepErrno keep_errno;
  syscall(SYS_utimensat, AT_FDCWD, file, nullptr, 0);
}

__attribute__((destructor)) void MarkExit() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  // A child of vfork or clone runs no fork handler, and must not mark the exit of its parent.
  if (header == nullptr || header->pid != static_cast<int32_t>(getpid())) return;
  SetClock(&header->last_clock);
  header->exit_ticks.store(Now(), std::memory_order_relaxed);
  header->exit_mark.store(static_cast<uint32_t>(segment::ExitMark::kExited),
                          std::memory_order_release);
}

}  // namespace
}  // namespace rollcall
