// SPDX-License-Identifier: Apache-2.0
// OFD locks (fcntl F_OFD_SETLK) on the first byte of a file: Rollcall's proof that a process lives.
//
// An OFD lock belongs to an open file description. A process that has mapped the file keeps the
// lock until the process ends, in any pid namespace. A query never takes the lock, and needs only a
// descriptor for reading.
#pragma once

#include <string>

namespace rollcall {

enum class HeldLock {
  kFree,
  kHeld,
  kUnknown,  // the file system does not support OFD locks
};

// Whether another open file description holds the lock.
HeldLock QueryLock(int fd);
HeldLock QueryLockAt(const std::string& path);  // kUnknown also if the file cannot be opened

// Takes the lock for the open file description of `fd`. False if another one holds the lock.
bool TakeLock(int fd);

// A file in the folder of a job. A `rollcall run` holds the lock on this file while it serves the
// job.
inline constexpr char kRunLock[] = "run.lock";

// Whether a `rollcall run` serves the processes whose segments lie in `folder`.
bool ServedByRun(const std::string& folder);

}  // namespace rollcall
