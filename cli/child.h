// The job that `rollcall run` runs: starting it, passing signals on, ending it
// with all that it started.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno, where there is no pid
};

// Starts `command` (found by PATH) with `environment` ("NAME=VALUE"), the
// signals of this process unblocked and at their defaults.
Spawned Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment);

// What a shell gives: the exit code, or 128 and the signal.
int ExitCodeOf(int wait_status);

// 127 for a command that is not there, 126 for one that cannot be executed.
int ExitCodeOfSpawnError(int error);

// This process's descendants, also those whose parents have gone (it must be
// their subreaper). Those that end meanwhile may be in it.
std::vector<pid_t> Descendants();

void SignalAll(const std::vector<pid_t>& processes, int signal);

}  // namespace rollcall
