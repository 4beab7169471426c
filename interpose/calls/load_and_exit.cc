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
#include "interpose/segment_file.h"
#include "interpose/thread_state.h"

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

// Makes no system call: the program may have forbidden all but a few (seccomp), and ends well
// without the library. The C library reads these clocks without the kernel. Only where the kernel
// does not trust the counter, it reads none but the coarse one so.
void StampExit(SegmentHeader* header) {
  const bool by_counter = recorder.clock == segment::ClockSource::kCounter;
  if (by_counter) SetClock(&header->last_clock);
  header->exit_ticks.store(by_counter ? Now() : ClockNs(CLOCK_MONOTONIC_COARSE),
                           std::memory_order_relaxed);
}

__attribute__((destructor)) void MarkExit() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  // A child of clone runs no fork handler, and must not mark the exit of its parent. A child of
  // vfork that ends by exit() looks like its parent; the reader ignores its mark
  // (segment_reader.cc), and the agent that of a process which lives on (collector_updates.cc).
  if (header == nullptr || !MadeSegmentFile(header->pid)) return;
  if (!this_thread.locked_in) StampExit(header);
  header->exit_mark.store(static_cast<uint32_t>(segment::ExitMark::kExited),
                          std::memory_order_release);
}

}  // namespace
}  // namespace rollcall
