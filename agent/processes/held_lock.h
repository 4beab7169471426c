// SPDX-License-Identifier: Apache-2.0
// Whether somebody else holds an OFD lock (fcntl F_OFD_SETLK) on the first byte of a file.
//
// Such a lock belongs to an open file description, so a process that has mapped the file keeps it
// until it ends, in whatever pid namespace: Rollcall's proof of life. Asking never takes the lock,
// and needs no more than a descriptor for reading.
#pragma once

#include <string>

namespace rollcall {

enum class HeldLock {
  kFree,
  kHeld,
  kUnknown,  // the file system knows no such locks
};

HeldLock AskLock(int fd);
HeldLock AskLockAt(const std::string& path);  // kUnknown also where it cannot be opened

// Takes the lock for the open file description of `fd`. False: another one holds it.
bool TakeLock(int fd);

// The file by which a `rollcall run` says, in its job's folder, that it serves that job itself. It
// holds the lock on it for as long.
inline constexpr char kRunLock[] = "run.lock";

// Whether a `rollcall run` serves the processes whose segments lie in `folder`.
bool ServedByRun(const std::string& folder);

}  // namespace rollcall
