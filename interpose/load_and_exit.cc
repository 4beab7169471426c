// SPDX-License-Identifier: Apache-2.0
// What the library does when the loader loads it and when the process ends normally.
//
// A constructor and a destructor, which nobody calls: they run in every process that loads the
// library, also in those without NCCL. There the constructor looks at one environment variable, and
// the destructor at one word. They never call the loader, allocate or wait.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_errno.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

// `rollcall run` wants to know whether the library got into the job at all.
// Nothing but one look at the environment happens in any other process.
__attribute__((constructor)) void SayLoaded() {
  const char* file = getenv("ROLLCALL_LOADED");
  if (file == nullptr) return;
  const KeepErrno keep_errno;
  syscall(SYS_utimensat, AT_FDCWD, file, nullptr, 0);
}

__attribute__((destructor)) void MarkExit() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  // A child of vfork or of clone, which ran no handler of ours, says nothing of its parent.
  if (header == nullptr || header->pid != static_cast<int32_t>(getpid())) return;
  SetClock(&header->last_clock);
  header->exit_ticks.store(Now(), std::memory_order_relaxed);
  header->exit_mark.store(static_cast<uint32_t>(segment::ExitMark::kExited),
                          std::memory_order_release);
}

}  // namespace
}  // namespace rollcall
