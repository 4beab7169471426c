// SPDX-License-Identifier: Apache-2.0
// Starts a program of ours that may hang or crash, apart from this process.
//
// The program gets no environment but a PATH, so a preloaded library and secrets stay out; no files
// of this process; no signal blocked or ignored; and a process group of its own, so that a key at
// the terminal does not reach it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace rollcall {

struct ChildFiles {
  int input = -1;   // -1 if there is nothing to read
  int output = -1;  // -1 means what it writes is lost
  int extra = -1;   // descriptor 3, or -1
};

// `path`: of the program. Returns 0 or an errno within two seconds: ETIMEDOUT if the program lies
// on a file server that does not answer. Until the server answers, no other program is started, so
// that it blocks one thread and not one more with each attempt.
int SpawnApart(const std::string& path, const std::vector<std::string>& arguments,
               const ChildFiles& files, pid_t* pid);

// Why SpawnApart() did not start it.
std::string SpawnErrorInWords(int error);

// Sends SIGKILL. `rollcall run` collects all children of its process, so a pid may belong to
// another process already, and only a pidfd is safe. An invalid `pidfd`: the kernel has none.
void KillChild(pid_t pid, const UniqueFd& pidfd);

// Does not wait. True if it has ended and is already collected.
bool CollectChild(pid_t pid);

// Whether this process started it so, and its end is not yet known: it does not belong to a job.
bool IsApart(pid_t pid);

// Returns the folder of the running program; empty if unknown.
std::string OwnProgramFolder();

}  // namespace rollcall
